// The input is a sequence of calls of the public functions, in any order, with what earlier calls
// made, with contexts that something else was made in, with numbers and names that fit nothing,
// with what was freed before and with options of another size. A status with a sentence, and what
// was asked for or NULL: never a crash, a leak, or a defect.
#include "fuzz_files.h"

#include <psifold/agent.h>

#include "base/checked.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { SLOTS = 2, MOST_CALLS = 48, MOST_CLUSTERINGS = 2, MANY = 64, GHOSTS = 16 };

// What was freed, and the context that knows.
typedef struct ghost {
    enum kind { DATA, RUN, MDP, MODEL, PARTITION, NET, ENV, COLLECTOR } kind;
    psi_ctx *ctx;
    void *handle;
} ghost;

typedef struct calls {
    const uint8_t *at, *end;
    psi_ctx *ctx[SLOTS]; // the second has little memory
    psi_task task[SLOTS];
    bool has_task[SLOTS];
    psi_trajectories *data[SLOTS];
    psi_run *run[SLOTS];
    psi_mdp *mdp[SLOTS];
    psi_model *model[SLOTS];
    psi_partition *partition[SLOTS];
    psi_net *net[SLOTS];
    psi_env *env[SLOTS];
    psi_cluster_options options;
    size_t clusterings;
    ghost ghosts[GHOSTS]; // the latest, in turns
    size_t n_ghosts;
} calls;

// ---- numbers and names --------------------------------------------------------------------------

static uint8_t byte(calls *c)
{
    return c->at < c->end ? *c->at++ : 0;
}

static size_t slot(calls *c)
{
    return byte(c) % SLOTS;
}

static psi_ctx *any_ctx(calls *c)
{
    return c->ctx[slot(c)];
}

static double number(calls *c)
{
    static const double odd[] = {0,    0.5,   1,   -1,          2,        1e308,
                                 1e-9, -0.25, 0.9, (double)NAN, HUGE_VAL, 0.1};
    const uint8_t b = byte(c);
    return b < 12 ? odd[b] : (double)b / 255.0;
}

static size_t count(calls *c) // mostly small
{
    const uint8_t b = byte(c);
    return b == 255 ? SIZE_MAX : b == 254 ? (size_t)1 << 40 : b % 12;
}

static const char *word(calls *c)
{
    static const char *const words[] = {NULL,
                                        "",
                                        "column-world",
                                        "nothing",
                                        "width",
                                        "height",
                                        "max-steps",
                                        "-1",
                                        "99999999999",
                                        "0",
                                        "3",
                                        "5",
                                        "nan",
                                        "true",
                                        "goal",
                                        "1,1,0",
                                        "dials",
                                        "digits",
                                        "drawn",
                                        "combination-lock",
                                        "gamma",
                                        "seed",
                                        "stack",
                                        "reward",
                                        "table",
                                        "mlp",
                                        "point-column-world"};
    return words[byte(c) % (sizeof words / sizeof *words)];
}

// The status of a call that makes something: there is one if and only if it succeeded.
static bool made(psi_ctx *ctx, psi_status status, const void *what)
{
    fuzz_judge(ctx, status);
    REQUIRE((status == PSI_OK) == (what != NULL));
    return what != NULL;
}

// The call comes first, then the look at what it made.
#define MADE(ctx, call, what) (last = (call), made(ctx, last, what))
static psi_status last;

// ---- what was freed -----------------------------------------------------------------------------

static void bury(calls *c, enum kind kind, psi_ctx *ctx, void *handle)
{
    if (handle) c->ghosts[c->n_ghosts++ % GHOSTS] = (ghost){kind, ctx, handle};
}

// It is remembered as long as its context lives, which frees much in a clustering.
static void forget_ghosts(calls *c, const psi_ctx *ctx)
{
    for (size_t i = 0; i < GHOSTS; i++) {
        if (c->ghosts[i].ctx == ctx) c->ghosts[i] = (ghost){0};
    }
}

static psi_status use_ghost(const ghost *of, bool again)
{
    psi_ctx *ctx = of->ctx;
    void *const handle = of->handle;
    const psi_cluster_options how = psi_cluster_defaults();
    psi_run *run;
    psi_levels levels;
    psi_plan *plan;
    psi_quotient_result *quotient;
    psi_net *net;
    psi_trajectories *data;
    uint8_t seen[1];
    switch (of->kind) {
    case DATA:
        if (again) psi_trajectories_free(ctx, handle);
        return psi_cluster(ctx, handle, &how, &run);
    case RUN:
        if (again) psi_run_free(ctx, handle);
        return psi_run_levels(ctx, handle, &levels);
    case MDP:
        if (again) psi_mdp_free(ctx, handle);
        return psi_value_iteration(ctx, handle, NULL, &plan);
    case MODEL:
        if (again) psi_model_free(ctx, handle);
        return psi_quotient_find(ctx, handle, NULL, &quotient);
    case PARTITION:
        if (again) psi_partition_free(ctx, handle);
        return psi_partition_check(ctx, handle);
    case NET:
        if (again) psi_net_free(ctx, handle);
        return psi_net_n_features(handle) == 0 ? psi_net_clone(ctx, handle, &net) : PSI_OK;
    case ENV:
        if (again) psi_env_free(ctx, handle);
        return psi_env_count(handle) == 0 ? psi_env_reset(ctx, handle, NULL, seen) : PSI_OK;
    default:
        if (again) psi_collector_discard(handle);
        return psi_collector_finish(handle, &data);
    }
}

static void call_freed(calls *c)
{
    const ghost *of = &c->ghosts[byte(c) % GHOSTS];
    const bool again = byte(c) % 2;
#if defined(PSI_DEBUG_HANDLES)
    if (!of->handle) return;
    REQUIRE(use_ghost(of, again) == PSI_EUSAGE);
    fuzz_judge(of->ctx, PSI_EUSAGE);
#else
    (void)of, (void)again, (void)use_ghost;
#endif
}

// ---- options of another size --------------------------------------------------------------------

// The struct ends where it says that it does.
static void call_sizes(calls *c)
{
    static const size_t right[] = {
        sizeof(psi_cluster_options),    sizeof(psi_refine_options), sizeof(psi_plan_options),
        sizeof(psi_quotient_options),   sizeof(psi_net_spec),       sizeof(psi_read_options),
        sizeof(psi_model_plan_options), sizeof(psi_agent_options),  sizeof(psi_train_options)};
    psi_ctx *ctx = any_ctx(c);
    const size_t which = byte(c) % (sizeof right / sizeof *right);
    const uint8_t b = byte(c);
    const size_t claims = b == 255 ? SIZE_MAX : b;
    size_t *how = malloc(sizeof *how);
    void *out;
    psi_status status = PSI_OK;
    REQUIRE(how);
    *how = claims == right[which] ? 0 : claims;
    const void *options = how;
    if (which == 0) status = psi_cluster(ctx, &(psi_trajectories){0}, options, (psi_run **)&out);
    if (which == 1) status = psi_refine(ctx, c->mdp[0], options, (psi_refinement **)&out);
    if (which == 2) status = psi_value_iteration(ctx, c->mdp[0], options, (psi_plan **)&out);
    if (which == 3)
        status = psi_quotient_find(ctx, c->model[0], options, (psi_quotient_result **)&out);
    if (which == 4) status = psi_net_new(ctx, options, 0, (psi_net **)&out);
    if (which == 5) status = psi_trajectories_read(ctx, "", options, (psi_trajectories **)&out);
    if (which == 6)
        status = psi_model_plan_find(ctx, c->model[0], options, (psi_model_plan **)&out);
    if (which == 7) status = psi_agent_new(ctx, &c->task[0], options, (psi_agent **)&out);
    if (which == 8)
        status = psi_training_new(ctx, c->net[0], NULL, NULL, options, (psi_training **)&out);
    free(how);
    fuzz_judge(ctx, status);
    REQUIRE(status == PSI_EUSAGE && !out);
}

// ---- tasks and data -----------------------------------------------------------------------------

static void call_task(calls *c)
{
    char text[PSI_TASK_JSON_SIZE];
    psi_ctx *ctx = any_ctx(c);
    const size_t i = slot(c);
    psi_task *task = &c->task[i];
    switch (byte(c) % 4) {
    case 0: {
        const char *name = word(c);
        const psi_status status = psi_task_defaults(ctx, name, NULL, task);
        fuzz_judge(ctx, status);
        c->has_task[i] = status == PSI_OK;
        break;
    }
    case 1: {
        const char *option = word(c), *value = word(c);
        if (c->has_task[i]) fuzz_judge(ctx, psi_task_set(ctx, task, option, value));
        break;
    }
    case 2:
        if (c->has_task[i]) fuzz_judge(ctx, psi_task_check(ctx, task));
        break;
    default:
        if (!c->has_task[i] || psi_task_json(ctx, task, text) != PSI_OK) break;
        fuzz_judge(ctx, psi_task_from_json(ctx, text, task));
    }
}

static psi_status keep(void *user, const psi_episode *episode)
{
    return psi_collector_add(user, episode);
}

static bool is_small(const psi_task *task)
{
    return task->max_steps <= 50 && task->width <= 30 && task->height <= 30 && task->dials <= 3 &&
           task->images_per_digit <= 20 && task->digits != PSI_DIGITS_MNIST;
}

static void call_collect(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const size_t i = slot(c), j = slot(c), episodes = count(c) % MANY;
    psi_collector *collector;
    psi_task task = c->task[i];
    if (!c->has_task[i] || psi_task_check(ctx, &task) != PSI_OK || !is_small(&task)) return;
    const psi_episode_spec spec = psi_collect_spec(&task);
    const psi_status status = psi_collector_new(ctx, &spec, &collector);
    if (!MADE(ctx, status, collector)) return;
    const psi_status collected = psi_collect(ctx, &task, episodes, byte(c), keep, collector, NULL);
    fuzz_judge(ctx, collected);
    psi_trajectories *data;
    if (collected != PSI_OK) {
        psi_collector_discard(collector);
        bury(c, COLLECTOR, ctx, collector);
    } else if (MADE(ctx, psi_collector_finish(collector, &data), data)) {
        psi_trajectories_free(ctx, c->data[j]);
        bury(c, DATA, ctx, c->data[j]);
        c->data[j] = data;
    }
}

static void call_data(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const psi_trajectories *data = c->data[slot(c)];
    psi_summary *summary;
    psi_fingerprint fingerprint;
    psi_observations *stacked;
    if (!data) return;
    fuzz_judge(ctx, psi_trajectories_check(ctx, data, "data"));
    if (MADE(ctx, psi_trajectories_summary(ctx, data, &summary), summary))
        psi_summary_free(ctx, summary);
    fuzz_judge(ctx, psi_fingerprint_of(ctx, data, &fingerprint));
    const psi_status status = psi_observations_stack(
        ctx, data->observations, count(c), data->n_episodes, data->episode_offsets, &stacked);
    fuzz_judge(ctx, status);
    psi_observations_free(ctx, stacked);
}

static void call_env(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const size_t i = slot(c), j = slot(c), n = count(c) % 5;
    uint8_t which[8], ended[8], cut[8];
    int32_t actions[8];
    double rewards[8];
    if (byte(c) % 2 == 0) {
        psi_env *env;
        if (!c->has_task[i] || !is_small(&c->task[i])) return;
        if (!MADE(ctx, psi_env_new(ctx, &c->task[i], n, byte(c), &env), env)) return;
        psi_env_free(ctx, c->env[j]);
        bury(c, ENV, ctx, c->env[j]);
        c->env[j] = env;
        return;
    }
    psi_env *env = c->env[j];
    if (!env) return;
    const psi_task_space *space = psi_env_space(env);
    const size_t row = psi_shape_size(&space->shape) * psi_dtype_size(space->dtype);
    void *seen = calloc(psi_env_count(env) + 1, row);
    REQUIRE(seen);
    for (size_t e = 0; e < 8; e++) which[e] = byte(c) % 2, actions[e] = (int32_t)byte(c) - 4;
    fuzz_judge(ctx, psi_env_reset(ctx, env, byte(c) % 2 ? which : NULL, seen));
    fuzz_judge(ctx, psi_env_step(ctx, env, actions, seen, rewards, ended, cut));
    free(seen);
}

// ---- clustering ---------------------------------------------------------------------------------

static void call_options(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const psi_option_table *table = psi_cluster_option_table();
    const char *name = word(c), *text = word(c);
    uint64_t given = 0;
    if (byte(c) % 4 == 0) c->options = psi_cluster_defaults();
    fuzz_judge(ctx, psi_option_set(ctx, table, &c->options, name, text, &given));
    fuzz_judge(ctx, psi_options_check(ctx, table, &c->options));
}

static void call_cluster(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const psi_trajectories *data = c->data[slot(c)];
    const size_t j = slot(c);
    psi_run *run;
    psi_cluster_options how = c->options;
    how.gamma = number(c);
    how.epsilon_sf = byte(c) % 2 ? number(c) : 0.0;
    how.method = (psi_method)(byte(c) % 3);
    how.approximator = PSI_APPROXIMATOR_TABLE;
    how.max_latent_states = byte(c) % 2 ? 1000 : count(c);
    how.max_refinements = base_min(count(c), 6);
    how.stack = base_min(how.stack, 4);
    if (!data || c->clusterings++ >= MOST_CLUSTERINGS) return;
    forget_ghosts(c, ctx);
    if (!MADE(ctx, psi_cluster(ctx, data, &how, &run), run)) return;
    REQUIRE(run->n_latent > 0 && run->model && run->labels);
    psi_run_free(ctx, c->run[j]);
    bury(c, RUN, ctx, c->run[j]);
    c->run[j] = run;
}

// Of a run on data that may be other ones, of another task.
static void call_run(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const psi_run *run = c->run[slot(c)];
    const psi_trajectories *data = c->data[slot(c)];
    char text[256];
    bool own;
    psi_run_errors *errors;
    psi_error_floor floor;
    psi_purity purity;
    psi_certificate *certificate;
    psi_levels levels;
    if (!run || !data) return;
    psi_verdict_sentence(run, text, byte(c));
    int32_t *labels = calloc(data->n_observations + 1, sizeof *labels);
    REQUIRE(labels);
    const psi_status status = psi_run_label(ctx, run, data, number(c), labels, &own);
    fuzz_judge(ctx, status);
    if (status == PSI_OK) {
        psi_mark_terminals(data, labels);
        if (MADE(ctx, psi_run_evaluate(ctx, run, data, labels, own, &errors), errors))
            psi_run_errors_free(ctx, errors);
        fuzz_judge(ctx, psi_error_floor_of(ctx, run, data, labels, &floor));
        fuzz_judge(ctx, psi_purity_of(ctx, data, labels, run->n_latent, &purity));
        const psi_paths paths =
            psi_trajectories_paths(data, labels, run->n_latent, run->has_terminal);
        if (MADE(
                ctx,
                psi_certify(ctx, run->model, number(c), &paths, number(c), number(c), &certificate),
                certificate))
            psi_certificate_free(ctx, certificate);
    }
    if (psi_run_levels(ctx, run, &levels) == PSI_OK) psi_levels_free(ctx, &levels);
    free(labels);
}

// ---- finite models ------------------------------------------------------------------------------

static void call_mdp(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const size_t j = slot(c), states = 1 + byte(c) % 6, actions = 1 + byte(c) % 3;
    const size_t n = byte(c) % 24;
    uint64_t row[24];
    int32_t next[24];
    double probability[24], reward[18];
    uint8_t terminal[6];
    psi_mdp *mdp;
    for (size_t i = 0; i < n; i++) {
        row[i] = byte(c) % (states * actions + (byte(c) == 0));
        next[i] = (int32_t)(byte(c) % (states + 1)) - (byte(c) == 0);
        probability[i] = byte(c) % 4 ? 1.0 : number(c);
    }
    for (size_t i = 0; i < states * actions; i++) reward[i] = number(c);
    for (size_t i = 0; i < states; i++) terminal[i] = byte(c) % 4 == 0;
    if (!MADE(ctx,
              psi_mdp_from_entries(ctx, states, actions, n, row, next, probability, reward,
                                   byte(c) % 2 ? terminal : NULL, &mdp),
              mdp))
        return;
    psi_mdp_free(ctx, c->mdp[j]);
    bury(c, MDP, ctx, c->mdp[j]);
    c->mdp[j] = mdp;
}

static void call_partition(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    psi_partition *a = c->partition[slot(c)];
    const size_t j = slot(c);
    psi_partition *b = c->partition[j];
    int32_t key[MANY];
    bool holds;
    double share;
    for (size_t i = 0; i < MANY; i++) key[i] = (int32_t)(byte(c) % 5) - (byte(c) == 1);
    if (!a || !b || byte(c) % 3 == 0) {
        psi_partition *fresh;
        if (!MADE(ctx, psi_partition_new(ctx, byte(c) % 8, key, &fresh), fresh)) return;
        psi_partition_free(ctx, c->partition[j]);
        bury(c, PARTITION, ctx, c->partition[j]);
        c->partition[j] = fresh;
        return;
    }
    fuzz_judge(ctx, psi_partition_check(ctx, a));
    fuzz_judge(ctx, psi_partition_equal(ctx, a, b, &holds));
    fuzz_judge(ctx, psi_partition_is_subclustering(ctx, a, b, &holds));
    fuzz_judge(ctx, psi_partition_agreement(ctx, a, b, &share));
    fuzz_judge(ctx, psi_partition_split(ctx, b, key));
    fuzz_judge(ctx, psi_partition_join(ctx, b, key));
}

static void call_theory(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const psi_mdp *mdp = c->mdp[slot(c)];
    const psi_partition *of = c->partition[slot(c)];
    psi_lsfm *lsfm;
    psi_refinement *refinement;
    psi_partition *found;
    psi_plan *plan;
    psi_mdp *small;
    double a, b;
    if (!mdp) return;
    if (MADE(ctx, psi_lsfm_new(ctx, mdp, number(c), &lsfm), lsfm)) psi_lsfm_free(ctx, lsfm);
    psi_refine_options how = psi_refine_defaults();
    how.gamma = number(c);
    if (byte(c) % 2) how.epsilon_sf = number(c);
    if (MADE(ctx, psi_refine(ctx, mdp, &how, &refinement), refinement))
        psi_refinement_free(ctx, refinement);
    if (MADE(ctx, psi_bisimulation(ctx, mdp, number(c), &found), found))
        psi_partition_free(ctx, found);
    psi_plan_options planning = psi_plan_defaults();
    planning.gamma = number(c);
    planning.max_sweeps = 200;
    if (MADE(ctx, psi_value_iteration(ctx, mdp, &planning, &plan), plan)) psi_plan_free(ctx, plan);
    if (!of) return;
    fuzz_judge(ctx, psi_reward_predictive_error(ctx, mdp, of, number(c), &a, &b));
    if (MADE(ctx, psi_quotient(ctx, mdp, of, &small, &a), small)) psi_mdp_free(ctx, small);
}

static void call_model(calls *c)
{
    static const char *const files[] = {"m.drn", "m.umb", "m.tra", "m.json", "m.nothing", ""};
    psi_ctx *ctx = any_ctx(c);
    const size_t i = slot(c), j = slot(c);
    char path[256];
    psi_model *model = NULL;
    psi_mdp *mdp;
    psi_quotient_result *found;
    psi_model_plan *plan;
    if (byte(c) % 2 == 0 && c->mdp[i]) {
        if (!MADE(ctx, psi_model_from_mdp(ctx, c->mdp[i], &model), model)) return;
    } else if (c->model[i]) {
        fuzz_path(path, files[byte(c) % 6]);
        const psi_status status = psi_model_write(ctx, c->model[i], path);
        fuzz_judge(ctx, status);
        if (!MADE(ctx, psi_model_read(ctx, path, &model), model)) return;
    }
    if (!model) return;
    psi_model_free(ctx, c->model[j]);
    bury(c, MODEL, ctx, c->model[j]);
    c->model[j] = model;
    psi_quotient_options how = psi_quotient_defaults();
    how.labels = byte(c) % 3 ? NULL : word(c);
    how.tolerance = byte(c) % 3 ? 0.0 : number(c);
    how.epsilon_sf = byte(c) % 4 ? 0.0 : number(c);
    how.ignore_actions = byte(c) % 2;
    if (MADE(ctx, psi_quotient_find(ctx, model, &how, &found), found))
        psi_quotient_free(ctx, found);
    psi_model_plan_options planning = psi_model_plan_defaults();
    planning.reward = word(c);
    planning.max_sweeps = 200;
    if (MADE(ctx, psi_model_plan_find(ctx, model, &planning, &plan), plan))
        psi_model_plan_free(ctx, plan);
    if (MADE(ctx, psi_mdp_from_model(ctx, model, byte(c) % 2 ? word(c) : NULL, &mdp), mdp)) {
        psi_mdp_free(ctx, c->mdp[j]);
        bury(c, MDP, ctx, c->mdp[j]);
        c->mdp[j] = mdp;
    }
}

// ---- networks -----------------------------------------------------------------------------------

static void call_net(calls *c)
{
    psi_ctx *ctx = any_ctx(c);
    const size_t i = slot(c), j = slot(c);
    psi_net *net = NULL;
    psi_work *work;
    psi_tensor_info info;
    if (!c->net[i] || byte(c) % 4 == 0) {
        const psi_shape shape = {byte(c) % 6, {count(c), count(c), count(c), 1}};
        psi_net_spec spec = psi_net_defaults((psi_net_kind)(byte(c) % 5), &shape,
                                             (psi_dtype)(byte(c) % 8), count(c), count(c));
        spec.n_hidden = byte(c) % 8;
        for (size_t h = 0; h < PSI_MAX_HIDDEN; h++) spec.hidden[h] = count(c);
        if (spec.kind != PSI_NET_MLP) return; // others are large
        if (!MADE(ctx, psi_net_new(ctx, &spec, 0, &net), net)) return;
    } else if (byte(c) % 2) {
        if (!MADE(ctx, psi_net_clone(ctx, c->net[i], &net), net)) return;
    } else if (!MADE(ctx, psi_net_head(ctx, c->net[i], count(c), count(c), 0, &net), net)) {
        return;
    }
    psi_net_free(ctx, c->net[j]);
    bury(c, NET, ctx, c->net[j]);
    c->net[j] = net;
    fuzz_judge(ctx, psi_net_tensor_info(ctx, net, count(c), &info));
    const psi_work_options room = {
        .size = sizeof room, .max_batch = count(c), .kernels = byte(c) % 4 ? NULL : word(c)};
    if (MADE(ctx, psi_work_new(ctx, net, &room, &work), work)) psi_work_free(ctx, work);
    if (c->net[1 - j]) {
        fuzz_judge(ctx, psi_net_blend(ctx, net, c->net[1 - j], number(c)));
        fuzz_judge(ctx, psi_net_set_head(ctx, net, c->net[1 - j]));
    }
}

static void call_context(calls *c)
{
    const size_t i = slot(c);
    if (byte(c) % 2) {
        psi_cancel(c->ctx[i]); // everything after it is cancelled, until there is another
        return;
    }
    psi_ctx *fresh;
    const psi_options how = {
        .size = sizeof how, .threads = 1, .max_memory = i == 0 ? (size_t)1 << 30 : (size_t)1 << 18};
    REQUIRE(psi_ctx_new(&how, &fresh) == PSI_OK);
    forget_ghosts(c, c->ctx[i]);
    psi_ctx_free(c->ctx[i]); // what was made in it lives on
    c->ctx[i] = fresh;
}

// ---- all of it ----------------------------------------------------------------------------------

static void free_all(calls *c)
{
    psi_ctx *ctx = c->ctx[0];
    for (size_t i = 0; i < SLOTS; i++) {
        psi_env_free(ctx, c->env[i]);
        psi_net_free(ctx, c->net[i]);
        psi_partition_free(ctx, c->partition[i]);
        psi_model_free(ctx, c->model[i]);
        psi_mdp_free(ctx, c->mdp[i]);
        psi_run_free(ctx, c->run[i]);
        psi_trajectories_free(ctx, c->data[i]);
    }
    for (size_t i = 0; i < SLOTS; i++) psi_ctx_free(c->ctx[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static void (*const call[])(calls *) = {call_task,      call_collect, call_data,  call_env,
                                            call_options,   call_cluster, call_run,   call_mdp,
                                            call_partition, call_theory,  call_model, call_net,
                                            call_context,   call_freed,   call_sizes};
    calls c = {.at = bytes, .end = bytes + size, .options = psi_cluster_defaults()};
    (void)fuzz_first_time();
    for (size_t i = 0; i < SLOTS; i++) {
        const psi_options how = {.size = sizeof how,
                                 .threads = 1,
                                 .max_memory = i == 0 ? (size_t)1 << 30 : (size_t)1 << 18};
        REQUIRE(psi_ctx_new(&how, &c.ctx[i]) == PSI_OK);
    }
    REQUIRE(psi_task_defaults(c.ctx[0], "column-world", NULL, &c.task[0]) == PSI_OK);
    REQUIRE(psi_task_set(c.ctx[0], &c.task[0], "max-steps", "12") == PSI_OK);
    c.has_task[0] = true;
    for (size_t n = 0; n < MOST_CALLS && c.at < c.end; n++) {
        call[byte(&c) % (sizeof call / sizeof *call)](&c);
    }
    free_all(&c);
    return 0;
}
