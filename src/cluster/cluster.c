// The whole method: refine, polish, ask whether anything is still hidden, refine further if so; at
// the end the latent model and the representation network.
#include <psifold/cluster.h>

#include "base/checked.h"
#include "base/context.h"
#include "base/random.h"
#include "cluster/by_evidence.h"
#include "cluster/certificate.h"
#include "cluster/checkpoint.h"
#include "cluster/network.h"
#include "cluster/options.h"
#include "cluster/paper.h"
#include "cluster/polish.h"
#include "cluster/representation.h"
#include "cluster/run.h"
#include "cluster/samples.h"
#include "cluster/seen.h"
#include "cluster/stages.h"
#include "cluster/successor.h"
#include "cluster/verdict.h"

#include <math.h>
#include <string.h>

// The gap's share of the first refinement of each round: a round that finds something hidden is
// followed by one that looks closer.
static const double KICKS[] = {0.0, 0.45, 0.27, 0.16, 0.1};
static const double SAME = 0.985;
static const double AGREE =
    0.999;                        // of labels by looks and by features: borders are drawn elsewhere
static const double MISFIT = 0.5; // nats per step by which states that fit nowhere surprise
static const double CLEARLY = 0.8;    // clearly less is less than this much of it
static const double BY_CHANCE = 0.25; // of what may be hidden: seems to be where nothing is
enum { MOST_ACTIONS = 1024 };         // with a head for each
enum { SMALL = 128 };                 // units of a perceptron that only has to tell labels apart
enum { FEWEST_VISITS = 4 };           // of a distinct observation, on average, to be one of a table

typedef struct clustering_run {
    psi_ctx *ctx;
    const psi_cluster_options *options;
    cluster_problem problem;
    cluster_inputs inputs;
    network_options network;
    paper_options paper;
    char *fits;     // where trainings under way are kept; NULL: nowhere
    psi_net *trunk; // NULL for a table
    cluster_approximator approximator;
    run_state state;
    float *vectors; // (n_rows, width) what looks are compared by; NULL for a table
    cluster_looks looks;
    outcome_rewards outcomes;
    by_evidence found;
    psi_clustering *result;
} clustering_run;

// Every piece of work has random numbers of its own, named by what it is and the round it is in.
typedef enum seed_purpose {
    SEED_TRUNK = 0x7472756e,
    SEED_REFINE = 0x72656669,
    SEED_POLISH = 0x706f6c69,
    SEED_JUDGE = 0x6a756467,
    SEED_REPRESENTATION = 0x72657072,
    SEED_STAGES = 0x73746167,
} seed_purpose;

static uint64_t seed_of(const clustering_run *run, seed_purpose purpose, size_t round)
{
    base_random random = base_random_stream(run->options->seed, (uint32_t)purpose, round);
    return base_random_u64(&random);
}

// A table if observations repeat so often that their next states can be counted.
static psi_status try_table(clustering_run *run, bool wanted)
{
    const size_t n = run->problem.n_rows, actions = run->problem.data->n_actions;
    const size_t most = wanted ? n : n / (20 * actions);
    const psi_status status =
        cluster_table_new(run->ctx, &run->problem, most + 1, &run->approximator);
    return status == PSI_ELIMIT && !wanted ? PSI_OK : status;
}

static size_t hidden_of(const psi_cluster_options *options)
{
    return options->hidden > 0 ? options->hidden : 512;
}

static void set_network_options(clustering_run *run, psi_net_kind kind)
{
    const psi_cluster_options *options = run->options;
    const size_t hidden = hidden_of(options);
    run->network = (network_options){.kind = kind,
                                     .n_hidden = kind == PSI_NET_MLP ? 2 : 0,
                                     .hidden = {hidden, hidden},
                                     .trunk = {.steps = options->trunk_steps,
                                               .windows = kind == PSI_NET_MLP ? 16 : 32,
                                               .length = 8,
                                               .learning_rate = options->learning_rate,
                                               .inverse_weight = options->auxiliary ? 1.0 : 0.0,
                                               .contrast_weight = options->auxiliary ? 1.0 : 0.0,
                                               .next_weight = options->auxiliary ? 12.0 : 0.0,
                                               .shift = options->shift,
                                               .seed = seed_of(run, SEED_TRUNK, 0)},
                                     .cache = options->cache,
                                     .head_steps = options->head_steps,
                                     .head_batch = 512,
                                     .dropout = options->dropout,
                                     .head_learning_rate = options->learning_rate,
                                     .seed = seed_of(run, SEED_TRUNK, 0)};
    if (options->trunk_steps == 0) run->network.trunk.steps = kind == PSI_NET_MLP ? 2000 : 1000;
}

// What psifold does: features that are learnt once, and heads on them.
static psi_status use_heads(clustering_run *run, psi_net_kind kind)
{
    psi_status status = PSI_OK;
    cluster_phases *phases = &run->state.phases;
    const psi_cluster_options *options = run->options;
    set_network_options(run, kind);
    if (options->run) TRY(cluster_checkpoint_load_trunk(options->run, &run->trunk));
    if (!run->trunk) {
        cluster_phases_turn_to(phases, PHASE_LEARNING);
        TRY(cluster_network_fit_trunk(run->ctx, &run->problem, &run->inputs, &run->network,
                                      &run->trunk));
        cluster_phases_turn_to(phases, PHASE_REST);
        if (options->run) TRY(cluster_checkpoint_save_phases(options->run, phases));
        if (options->run) TRY(cluster_checkpoint_save_trunk(options->run, run->trunk));
    }
    cluster_phases_turn_to(phases, PHASE_FEATURES);
    TRY(cluster_network_new(run->ctx, &run->problem, &run->inputs, &run->network, run->trunk,
                            &run->approximator));
    cluster_phases_turn_to(phases, PHASE_REST);
done:
    return status;
}

// What the paper does: a whole network for every refinement.
static psi_status use_whole_networks(clustering_run *run, psi_net_kind kind)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    run->paper = (paper_options){.kind = kind,
                                 .batch = options->batch,
                                 .reward_epochs = options->reward_epochs,
                                 .sf_epochs = options->sf_epochs,
                                 .learning_rate = options->learning_rate,
                                 .seed = seed_of(run, SEED_TRUNK, 0),
                                 .hidden = hidden_of(options)};
    if (options->run) {
        TRY(cluster_folder_path(options->run, ".", &run->fits));
        run->paper.checkpoint = run->fits;
        if (cluster_checkpoint_exists(options->run)) {
            TRY(cluster_checkpoint_load_trunk(options->run, &run->trunk));
        }
    }
    TRY(cluster_paper_new(run->ctx, &run->problem, &run->inputs, &run->paper, run->trunk,
                          &run->approximator));
done:
    return status;
}

static psi_status choose_approximator(clustering_run *run)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    psi_approximator kind = options->approximator;
    if (kind == PSI_APPROXIMATOR_AUTO || kind == PSI_APPROXIMATOR_TABLE) {
        TRY(try_table(run, kind == PSI_APPROXIMATOR_TABLE));
        if (run->approximator.self) goto done;
    }
    if (run->problem.data->n_actions > MOST_ACTIONS) {
        status = FAIL(run->ctx, PSI_ELIMIT,
                      "%zu actions are more than the %d that networks here are made for",
                      run->problem.data->n_actions, MOST_ACTIONS);
        goto done;
    }
    TRY(cluster_inputs_new(run->ctx, run->problem.data->observations, kind == PSI_APPROXIMATOR_MLP,
                           &run->inputs));
    if (kind == PSI_APPROXIMATOR_AUTO) {
        kind = run->inputs.is_image ? PSI_APPROXIMATOR_CNN : PSI_APPROXIMATOR_MLP;
    }
    const psi_net_kind net = kind == PSI_APPROXIMATOR_MLP   ? PSI_NET_MLP
                             : kind == PSI_APPROXIMATOR_CNN ? PSI_NET_CNN
                                                            : PSI_NET_RESNET18;
    TRY(options->paper ? use_whole_networks(run, net) : use_heads(run, net));
done:
    return status;
}

// After every refinement: what it found is kept, and told.
static psi_status after_refinement(void *user, const psi_cluster_step *step, size_t number,
                                   size_t n_observations, const int32_t *labels)
{
    psi_status status = PSI_OK;
    clustering_run *run = user;
    const psi_cluster_options *options = run->options;
    cluster_phases_update(&run->state.phases);
    if (options->run) {
        const psi_net *rewards = number == 1 ? cluster_paper_net(&run->approximator) : NULL;
        if (rewards) TRY(cluster_checkpoint_save_trunk(options->run, rewards));
        TRY(cluster_checkpoint_refinement(options->run, &run->problem, &run->approximator,
                                          &run->state));
    }
    if (options->watch) TRY(options->watch(options->user, step, number, n_observations, labels));
done:
    return status;
}

// The refinements that an earlier process has made are told once more.
static psi_status tell_again(const clustering_run *run)
{
    psi_status status = PSI_OK;
    const refinement *at = &run->state.refinement;
    const psi_cluster_options *options = run->options;
    for (size_t i = 0; options->watch && i < at->n_steps; i++) {
        TRY(options->watch(options->user, &at->steps[i], i + 1, run->problem.n_rows, NULL));
    }
done:
    return status;
}

static bool is_polished(const clustering_run *run)
{
    return run->options->smooth && strcmp(run->approximator.name, "table") != 0;
}

// Every how manieth episode refinements look at. What is hidden may be too rare for so few: where
// something is, twice as many are looked at in the next round. Splitting cannot catch up with
// states that it did not look at.
static size_t stride_of(const clustering_run *run)
{
    const size_t subset = run->options->subset, n = run->problem.n_states;
    if (subset == 0 || run->options->split || strcmp(run->approximator.name, "table") == 0)
        return 1;
    const size_t stride = (n + subset - 1) / subset;
    return base_max(stride >> base_min(run->state.hot_rounds, 63), 1);
}

// One round: refine (from where the round before stopped), polish a copy, judge it.
static psi_status run_round(clustering_run *run, round_result *out)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    const size_t n = run->problem.n_rows, round = run->state.round;
    const size_t last_kick = sizeof KICKS / sizeof KICKS[0] - 1;
    const double spacing = run->problem.rewards.spacing;
    double misfit;
    // what is still hidden may be too rare for the filter
    const double filter =
        options->filter / (double)((size_t)1 << base_min(run->state.hot_rounds, 8));
    const refine_options how = {
        .gamma = options->gamma,
        .epsilon_reward = options->epsilon_reward > 0.0 ? options->epsilon_reward / spacing : 0.5,
        .epsilon_sf = options->epsilon_sf,
        .gap_share = 0.75,
        .kick = KICKS[round < last_kick ? round : last_kick],
        .filter = filter,
        .norm = options->norm,
        .split = options->split,
        .sf_alone = options->paper != PSI_PAPER_NONE,
        .max_refinements = options->max_refinements,
        .max_latent_states = options->max_latent_states,
        .stride = stride_of(run),
        .seed = seed_of(run, SEED_REFINE, 0),
        .watch = after_refinement,
        .user = run};
    refinement *refined = &run->state.refinement;
    cluster_phases *phases = &run->state.phases;
    // half of the features may be too few to see what is hidden
    run->network.dropout = options->dropout && run->state.hot_rounds == 0;
    cluster_phases_turn_to(phases, PHASE_REFINEMENTS);
    TRY(cluster_refine(run->ctx, &run->problem, &run->approximator, &how, refined));
    TRY(base_alloc(run->ctx, n, sizeof *out->labels, &out->labels));
    memcpy(out->labels, refined->labels, n * sizeof *out->labels);
    out->n_latent = refined->n_latent;
    out->converged = refined->converged;
    if (is_polished(run)) {
        const polish_options polishing = {.filter = filter,
                                          .may_lose = 0.05,
                                          .max_rounds = 12,
                                          .seed = seed_of(run, SEED_POLISH, round)};
        polish_summary summary;
        cluster_phases_turn_to(phases, PHASE_POLISHING);
        TRY(cluster_polish(run->ctx, &run->problem, &run->approximator, &polishing, out->labels,
                           &out->n_latent, &summary));
        out->smoothed = (double)summary.changed / (double)run->problem.n_states;
    }
    if (options->paper) goto done; // it has no such question
    cluster_phases_turn_to(phases, PHASE_HIDDEN);
    TRY(cluster_judge_split(run->ctx, &run->problem, &run->approximator, out->labels, out->n_latent,
                            seed_of(run, SEED_JUDGE, round), &out->test));
    TRY(cluster_judge_homes(run->ctx, &run->problem, refined->labels, out->labels, out->n_latent,
                            &misfit));
    out->misfit = misfit > MISFIT;
    out->test.hot |= out->misfit;
    out->test.hidden = fmax(out->test.hidden, misfit / MISFIT);
done:
    cluster_phases_turn_to(phases, PHASE_REST);
    return status;
}

// Is a, which was found later, better than b? What hides nothing comes first, and of that what has
// fewer latent states; else what hides clearly less, on average or, if that is the same, somewhere.
static bool is_better(const round_result *a, const round_result *b)
{
    if (!b->labels) return true;
    if (a->test.hot != b->test.hot) return b->test.hot;
    if (!a->test.hot && a->n_latent != b->n_latent) return a->n_latent < b->n_latent;
    if (!b->test.hot && b->test.hidden < BY_CHANCE) return false;
    const double on_average =
        fmax(a->test.mean, JUDGE_HOT_MEAN) / fmax(b->test.mean, JUDGE_HOT_MEAN);
    if (on_average < CLEARLY || on_average > 1.0 / CLEARLY) return on_average < 1.0;
    return a->test.hidden < CLEARLY * b->test.hidden;
}

// Rounds until the same latent states were found twice with nothing hidden, or no round is left.
static psi_status find_latent_states(clustering_run *run)
{
    psi_status status = PSI_OK;
    round_result now = {0};
    run_state *state = &run->state;
    round_result *best = &state->best;
    int32_t *parent = NULL;
    const bool exact = strcmp(run->approximator.name, "table") == 0;
    TRY(base_alloc(run->ctx, run->options->max_latent_states + 2, sizeof *parent, &parent));
    while (state->round < run->options->max_rounds && !state->stable) {
        double agreement = 0.0;
        base_free(run->ctx, now.labels);
        now = (round_result){0};
        status = run_round(run, &now);
        // a closer look saw too much, or nothing at all
        const bool in_vain = status == PSI_ELIMIT || status == PSI_EDATA || status == PSI_ENUMERIC;
        if (in_vain && best->labels) {
            base_warn(run->ctx, "round %zu: %s; what was found before stays", state->round + 1,
                      psi_error(run->ctx)->message);
            status = PSI_OK;
            break;
        }
        TRY(status);
        if (best->labels && !now.test.hot && !best->test.hot && now.n_latent == best->n_latent) {
            TRY(cluster_compare(run->ctx, run->problem.n_rows, best->labels, best->n_latent,
                                now.labels, now.n_latent, &agreement, parent));
        }
        state->hot_rounds += now.misfit ? 2 : now.test.hot;
        state->stable = agreement > SAME || (exact && now.converged && !now.test.hot);
        if (is_better(&now, best)) {
            const round_result swap = *best;
            *best = now;
            now = swap;
        }
        state->round++;
        if (run->options->run) {
            TRY(cluster_checkpoint_round(run->options->run, &run->problem, state));
        }
    }
    run->network.dropout = run->options->dropout;
done:
    base_free(run->ctx, parent);
    base_free(run->ctx, now.labels);
    return status;
}

static psi_status find_gap(psi_ctx *ctx, const psi_mdp *model, double gamma, double *gap);

static psi_status describe(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    const cluster_problem *problem = &run->problem;
    refinement *refined = &run->state.refinement;
    round_result *best = &run->state.best;
    psi_counts *counts = NULL;
    result->has_terminal = problem->has_terminal;
    result->n_latent = best->n_latent;
    result->labels = best->labels;
    best->labels = NULL;
    result->rounds = run->state.round;
    result->stable = run->state.stable;
    TRY(cluster_keep_seen(run->ctx, result));
    const psi_paths paths = cluster_paths(problem, result->labels, result->n_latent);
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, &result->model));
    size_t ignored = 0;
    for (size_t i = 0; i < problem->n_states; i++)
        ignored += result->labels[problem->states[i]] < 0;
    result->ignored = (double)ignored / (double)problem->n_states;
    result->smoothed = best->smoothed;
    result->converged = best->converged;
    result->judged = !run->options->paper;
    result->hot = best->test.hot;
    result->split_gain = result->judged ? best->test.mean : (double)NAN;
    result->approximator = run->approximator.name;
    result->gamma = run->options->gamma;
    result->n_steps = refined->n_steps;
    result->steps = refined->steps;
    refined->steps = NULL;
    const psi_cluster_step *last = &result->steps[result->n_steps - 1];
    result->epsilon_reward = run->options->epsilon_reward > 0.0 ? run->options->epsilon_reward
                                                                : 0.5 * problem->rewards.spacing;
    result->epsilon_sf = last->epsilon;
    result->gap = last->gap;
    if (result->n_steps == 1) { // by rewards alone: nothing has looked at successor features yet
        TRY(find_gap(run->ctx, result->model, result->gamma, &result->gap));
        result->epsilon_sf = run->options->epsilon_sf > 0.0 ? run->options->epsilon_sf
                                                            : fmin(0.75 * result->gap, 0.5);
    }
    result->matching_condition = psi_matching_condition(result->gamma, result->epsilon_sf);
    if (run->options->epsilon_sf > 0.0 && !result->matching_condition) {
        base_warn(run->ctx,
                  "gamma %g and epsilon %g do not meet the condition of the paper's theorem "
                  "(gamma < 1/2 and epsilon < 2/3 (1 - gamma / (1 - gamma)))",
                  result->gamma, result->epsilon_sf);
    }
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

static psi_status find_representation(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    char *path = NULL;
    const psi_cluster_options *options = run->options;
    const psi_net *from = options->paper ? cluster_paper_net(&run->approximator) : run->trunk;
    cluster_fit *fit = NULL;
    if (!from) return PSI_OK;
    cluster_phases_turn_to(&run->state.phases, PHASE_REPRESENTATION);
    if (!options->fine_tune && !options->paper && run->approximator.self) {
        TRY(cluster_fit_states(run->ctx, &run->problem, &run->approximator, result->labels,
                               result->n_latent, seed_of(run, SEED_REPRESENTATION, 0),
                               "training the representation", &fit));
        TRY(cluster_network_join(run->ctx, &run->approximator, from, fit, &result->representation));
        TRY(cluster_representation_judge(run->ctx, &run->problem, &run->inputs,
                                         result->representation, result->labels, result->n_latent,
                                         &result->accuracy));
        cluster_phases_turn_to(&run->state.phases, PHASE_REST);
        goto done;
    }
    if (run->options->run) {
        TRY(cluster_folder_path(run->options->run, "representation.safetensors", &path));
    }
    const representation_options how = {.steps = options->representation_steps,
                                        .epochs =
                                            options->paper ? options->representation_epochs : 0,
                                        .batch = options->batch,
                                        .learning_rate = options->learning_rate,
                                        .shift = options->paper ? 0 : options->shift,
                                        .seed = seed_of(run, SEED_REPRESENTATION, 0),
                                        .checkpoint = path};
    TRY(cluster_representation(run->ctx, &run->problem, &run->inputs, from, result->labels,
                               result->n_latent, &how, &result->representation));
    TRY(cluster_representation_judge(run->ctx, &run->problem, &run->inputs, result->representation,
                                     result->labels, result->n_latent, &result->accuracy));
    cluster_phases_turn_to(&run->state.phases, PHASE_REST);
done:
    if (fit) run->approximator.fit_free(run->approximator.self, run->ctx, fit);
    base_free(run->ctx, path);
    return status;
}

static psi_status find_by_successor_features(clustering_run *run)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    const reward_classes *rewards = &run->problem.rewards;
    if (rewards->n < 2) {
        status = FAIL(run->ctx, PSI_EDATA,
                      "all %zu rewards are %g%s: nothing distinguishes one state from another",
                      run->problem.data->n_transitions, rewards->value[0],
                      rewards->deviation > 0.0 ? " up to noise" : "");
        goto done;
    }
    TRY(choose_approximator(run));
    if (options->run) {
        TRY(cluster_checkpoint_load(options->run, &run->problem, &run->approximator,
                                    options->max_latent_states, &run->state));
        TRY(tell_again(run));
    }
    TRY(find_latent_states(run));
    TRY(describe(run));
    if (!options->paper) TRY(cluster_judge_labels(run->ctx, &run->problem, run->result));
done:
    return status;
}

// Heads of every refinement, for other data than these.
static psi_status keep_stages(clustering_run *run)
{
    const psi_cluster_options *options = run->options;
    psi_clustering *result = run->result;
    result->has_heads =
        options->run && options->heads && run->approximator.self && run->trunk && !options->paper;
    if (!result->has_heads) return PSI_OK;
    cluster_phases_turn_to(&run->state.phases, PHASE_HEADS);
    const psi_status status =
        cluster_stages_save(options->run, &run->problem, &run->approximator, result->steps,
                            result->n_steps, seed_of(run, SEED_STAGES, 0));
    cluster_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

// Whether such a run has this phase: asked of how it was started, not of the clock, so that it is
// the same for a run in pieces.
static bool has_phase(const clustering_run *run, cluster_phase phase)
{
    const psi_cluster_options *options = run->options;
    switch (phase) {
    case PHASE_LEARNING:
    case PHASE_FEATURES: return run->trunk && run->approximator.self && !options->paper;
    case PHASE_POLISHING: return run->approximator.self && is_polished(run);
    case PHASE_HIDDEN: return run->result->judged && !run->result->confidence;
    case PHASE_REPRESENTATION: return run->result->representation != NULL;
    case PHASE_HEADS: return run->result->has_heads;
    default: return true;
    }
}

static psi_status tell_phases(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    const cluster_phases *phases = &run->state.phases;
    cluster_phases_update(&run->state.phases);
    TRY(base_alloc(run->ctx, PHASES, sizeof *result->phases, &result->phases));
    for (cluster_phase phase = 0; phase < PHASES; phase++) {
        if (!has_phase(run, phase)) continue;
        result->phases[result->n_phases++] = (psi_cluster_phase){.name = cluster_phase_name(phase),
                                                                 .seconds = phases->seconds[phase],
                                                                 .passes = phases->passes[phase]};
    }
done:
    return status;
}

// ---- by evidence ------------------------------------------------------------------------------

static psi_status after_grouping(void *user, const psi_cluster_step *step, size_t number,
                                 size_t n_observations, const int32_t *labels)
{
    psi_status status = PSI_OK;
    clustering_run *run = user;
    const psi_cluster_options *options = run->options;
    if (options->run) {
        TRY(cluster_checkpoint_labels(options->run, number, n_observations, labels));
    }
    if (options->watch) TRY(options->watch(options->user, step, number, n_observations, labels));
done:
    return status;
}

// Observations as they are, as vectors.
static psi_status copy_vectors(clustering_run *run, size_t *width)
{
    psi_status status = PSI_OK;
    enum { BLOCK = 4096 };
    const psi_observations *from = run->problem.data->observations;
    const psi_dtype dtype = psi_observations_dtype(from);
    const size_t row_bytes = psi_observations_row_bytes(from), n = run->problem.n_rows;
    unsigned char *block = NULL;
    uint64_t *rows = NULL;
    *width = row_bytes / psi_dtype_size(dtype);
    TRY(base_alloc(run->ctx, n, *width * sizeof *run->vectors, &run->vectors));
    TRY(base_alloc(run->ctx, BLOCK, row_bytes, &block));
    TRY(base_alloc(run->ctx, BLOCK, sizeof *rows, &rows));
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        float *out = run->vectors + begin * *width;
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_cancelled(run->ctx));
        TRY(psi_observations_gather(run->ctx, from, rows, count, block));
        for (size_t i = 0; i < count * *width; i++) {
            switch (dtype) {
            case PSI_FLOAT32: out[i] = ((const float *)(const void *)block)[i]; break;
            case PSI_FLOAT64: out[i] = (float)((const double *)(const void *)block)[i]; break;
            case PSI_UINT8: out[i] = (float)block[i]; break;
            case PSI_INT32: out[i] = (float)((const int32_t *)(const void *)block)[i]; break;
            case PSI_INT64: out[i] = (float)((const int64_t *)(const void *)block)[i]; break;
            default: out[i] = (float)block[i];
            }
        }
    }
done:
    base_free(run->ctx, rows);
    base_free(run->ctx, block);
    return status;
}

static void forget_looks(clustering_run *run)
{
    cluster_by_evidence_free(run->ctx, &run->found);
    cluster_outcome_rewards_free(run->ctx, &run->outcomes);
    cluster_looks_free(run->ctx, &run->looks);
    base_free(run->ctx, run->vectors);
    run->vectors = NULL;
}

// Distinct observations, if each was seen a few times, or has no looks to compare.
static psi_status try_distinct(clustering_run *run, bool wanted, bool *done)
{
    const psi_observations *observations = run->problem.data->observations;
    const psi_dtype dtype = psi_observations_dtype(observations);
    const bool number = psi_observations_row_bytes(observations) == psi_dtype_size(dtype) &&
                        dtype != PSI_FLOAT32 && dtype != PSI_FLOAT64;
    const size_t n = run->problem.n_states, most = wanted || number ? n : n / FEWEST_VISITS;
    const psi_status status =
        cluster_looks_distinct(run->ctx, &run->problem, most + 1, &run->looks);
    *done = status == PSI_OK;
    return status == PSI_ELIMIT && !wanted && !number ? PSI_OK : status;
}

static psi_status group_looks(clustering_run *run, bool told)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    const psi_cluster_options *options = run->options;
    const by_evidence_options how = {.max_refinements = options->max_refinements,
                                     .max_latent_states = options->max_latent_states,
                                     .smooth = options->smooth,
                                     .watch = told ? after_grouping : NULL,
                                     .user = run};
    cluster_phases_turn_to(&run->state.phases, PHASE_REFINEMENTS);
    TRY(cluster_outcome_rewards(run->ctx, &run->problem, &run->looks, &run->outcomes));
    TRY(cluster_refine_by_evidence(run->ctx, &run->problem, &run->looks, &run->outcomes, &how,
                                   &run->found));
    result->labels = run->found.labels;
    result->n_latent = run->found.n_latent;
    result->has_terminal = run->problem.has_terminal;
    result->n_doubts = 0;
    TRY(cluster_judge(run->ctx, &run->problem, &run->looks, &run->outcomes, &run->found, result));
done:
    result->labels = NULL; // still in found
    cluster_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

// Vectors are compared as they are. Where that leaves nothing open, a network that tells the latent
// states apart is all that is missing; else *enough is false.
static psi_status compare_vectors(clustering_run *run, bool *enough)
{
    psi_status status = PSI_OK;
    size_t width;
    set_network_options(run, PSI_NET_MLP);
    if (run->options->hidden == 0) run->network.hidden[0] = run->network.hidden[1] = SMALL;
    TRY(copy_vectors(run, &width));
    TRY(cluster_looks_tree(run->ctx, &run->problem, width, run->vectors, &run->looks));
    TRY(group_looks(run, false));
    *enough = run->result->verdict == PSI_VERDICT_CERTAIN || run->problem.rewards.n < 2;
    if (!*enough) goto done;
    cluster_by_evidence_free(run->ctx, &run->found);
    cluster_outcome_rewards_free(run->ctx, &run->outcomes);
    base_free(run->ctx, run->result->doubts);
    run->result->doubts = NULL;
    TRY(group_looks(run, true)); // once more, and told: the same again
    TRY(cluster_network_new_trunk(run->ctx, &run->problem, &run->inputs, &run->network,
                                  &run->trunk));
done:
    return status;
}

// Where looks leave something open, features are learnt and refined by successor features. That is
// certain only if both have found the same.
static psi_status learn_features(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    int32_t *by_looks = run->found.labels, *parent = NULL;
    const size_t n_looks = run->found.n_latent;
    const double margin = result->margin;
    double agreement = 0.0;
    run->found.labels = NULL;
    forget_looks(run);
    cluster_inputs_free(run->ctx, &run->inputs);
    run->inputs = (cluster_inputs){0};
    base_free(run->ctx, result->doubts);
    result->doubts = NULL;
    result->n_doubts = 0;
    TRY(find_by_successor_features(run));
    if (result->verdict != PSI_VERDICT_CERTAIN || !by_looks) goto done;
    TRY(base_alloc(run->ctx, result->n_latent + 2, sizeof *parent, &parent));
    TRY(cluster_compare(run->ctx, run->problem.n_rows, by_looks, n_looks, result->labels,
                        result->n_latent, &agreement, parent));
    if (n_looks == result->n_latent && agreement > AGREE) {
        result->margin = margin;
    } else {
        result->verdict = PSI_VERDICT_UNDETERMINED;
    }
done:
    base_free(run->ctx, parent);
    base_free(run->ctx, by_looks);
    return status;
}

// γ · min ‖F_i − F_j‖: the smallest distance of two latent states' successor features.
static psi_status find_gap(psi_ctx *ctx, const psi_mdp *model, double gamma, double *gap)
{
    psi_status status = PSI_OK;
    psi_lsfm *lsfm = NULL;
    const size_t k = model->n_states;
    *gap = HUGE_VAL;
    TRY(psi_lsfm_new(ctx, model, gamma, &lsfm));
    for (size_t i = 0; i < k; i++) {
        for (size_t j = i + 1; j < k; j++) {
            double square = 0.0;
            for (size_t c = 0; c < k && square < *gap * *gap; c++) {
                const double d = lsfm->f[i * k + c] - lsfm->f[j * k + c];
                square += d * d;
            }
            *gap = fmin(*gap, sqrt(square));
        }
    }
    *gap = k > 1 ? gamma * *gap : 1.0;
done:
    psi_lsfm_free(ctx, lsfm);
    return status;
}

// Tables and vectors. Images whose pixels hardly repeat say little by their looks: features have to
// be learnt.
static psi_status find_by_evidence(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    by_evidence *found = &run->found;
    const psi_approximator kind = run->options->approximator;
    const double spacing = run->problem.rewards.spacing;
    psi_counts *counts = NULL;
    bool table = false;
    if (kind == PSI_APPROXIMATOR_AUTO || kind == PSI_APPROXIMATOR_TABLE) {
        TRY(try_distinct(run, kind == PSI_APPROXIMATOR_TABLE, &table));
    }
    if (!table) {
        TRY(cluster_inputs_new(run->ctx, run->problem.data->observations,
                               kind == PSI_APPROXIMATOR_MLP, &run->inputs));
        bool enough = false;
        if (!run->inputs.is_image) TRY(compare_vectors(run, &enough));
        if (!enough) {
            status = learn_features(run);
            goto done;
        }
    } else {
        TRY(group_looks(run, true));
    }
    result->labels = found->labels;
    result->confidence = found->confidence;
    result->steps = found->steps;
    result->n_steps = found->n_steps;
    found->labels = NULL;
    found->confidence = NULL;
    found->steps = NULL;
    TRY(cluster_keep_seen(run->ctx, result));
    const psi_paths paths = cluster_paths(&run->problem, result->labels, result->n_latent);
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, &result->model));
    size_t ignored = 0;
    for (size_t i = 0; i < run->problem.n_states; i++) {
        ignored += result->labels[run->problem.states[i]] < 0;
    }
    result->ignored = (double)ignored / (double)run->problem.n_states;
    result->smoothed = found->smoothed;
    result->converged = found->converged;
    result->stable = result->verdict == PSI_VERDICT_CERTAIN;
    result->hot = result->past > 0.0;
    result->judged = true;
    result->rounds = 1;
    result->has_trunk = run->approximator.self != NULL;
    result->approximator = table ? "table" : psi_net_kind_name(run->network.kind);
    result->gamma = run->options->gamma;
    TRY(find_gap(run->ctx, result->model, result->gamma, &result->gap));
    result->epsilon_reward = run->options->epsilon_reward > 0.0 ? run->options->epsilon_reward
                             : spacing > 0.0                    ? 0.5 * spacing
                                                                : 0.5;
    result->epsilon_sf =
        run->options->epsilon_sf > 0.0 ? run->options->epsilon_sf : fmin(0.75 * result->gap, 0.5);
    result->matching_condition = psi_matching_condition(result->gamma, result->epsilon_sf);
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

// ---- the whole --------------------------------------------------------------------------------

// Stopped in good order: the time since the last checkpoint was spent, too.
static psi_status keep_time(clustering_run *run)
{
    cluster_phases_update(&run->state.phases);
    return cluster_checkpoint_save_phases(run->options->run, &run->state.phases);
}

static void run_free(clustering_run *run)
{
    psi_ctx *ctx = run->ctx;
    forget_looks(run);
    base_free(ctx, run->state.best.labels);
    cluster_refinement_free(ctx, &run->approximator, &run->state.refinement);
    if (run->approximator.self) run->approximator.free(run->approximator.self, ctx);
    psi_net_free(ctx, run->trunk);
    base_free(ctx, run->fits);
    cluster_inputs_free(ctx, &run->inputs);
    cluster_problem_free(ctx, &run->problem);
    psi_clustering_free(ctx, run->result);
}

psi_status psi_cluster(psi_ctx *ctx, const psi_trajectories *data,
                       const psi_cluster_options *options, psi_clustering **out)
{
    psi_status status = PSI_OK;
    clustering_run run = {.ctx = ctx, .options = options};
    bool under_way = false; // what is kept of it was read
    cluster_phases_start(&run.state.phases, &run.inputs.passed);
    *out = NULL;
    TRY(cluster_options_check(ctx, options));
    TRY(base_alloc_zero(ctx, 1, sizeof *run.result, &run.result));
    run.result->accuracy = (double)NAN;
    run.result->n_observations = data->n_observations;
    if (options->run) {
        TRY(cluster_run_start(options->run, data, options));
        TRY(cluster_checkpoint_load_phases(options->run, &run.state.phases));
        under_way = true;
    }
    TRY(cluster_problem_new(ctx, data, options->seed, &run.problem));
    const bool evidence = options->method == PSI_METHOD_EVIDENCE && !options->paper;
    run.result->verdict = PSI_VERDICT_NOT_ASKED;
    TRY(evidence ? find_by_evidence(&run) : find_by_successor_features(&run));
    TRY(cluster_certify(ctx, &run.problem, run.result));
    TRY(find_representation(&run));
    TRY(keep_stages(&run));
    TRY(tell_phases(&run));
    *out = run.result;
    run.result = NULL;
done:
    if (status == PSI_ECANCELLED && under_way) {
        const psi_status kept = keep_time(&run);
        if (kept != PSI_OK) status = kept;
    }
    run_free(&run);
    return status;
}

void psi_clustering_free(psi_ctx *ctx, psi_clustering *clustering)
{
    if (!clustering) return;
    base_free(ctx, clustering->labels);
    base_free(ctx, clustering->confidence);
    base_free(ctx, clustering->doubts);
    base_free(ctx, clustering->steps);
    base_free(ctx, clustering->phases);
    psi_mdp_free(ctx, clustering->model);
    psi_certificate_free(ctx, clustering->certificate);
    psi_net_free(ctx, clustering->representation);
    base_free(ctx, clustering);
}
