// Planning with the latent MDP: only the map from observations to latent states is kept from the
// clustering run. w_a and M_a of the task at hand are counted from the agent's own steps, and value
// iteration says what to do.
//
// Every pair (k, a) starts with a few imagined visits (options.optimism) that ended the episode
// with a reward. They are outweighed as real ones come in, but never quite vanish: where the map
// hides something that matters, as in left-dial-broken, one visit does not say all, and the agent
// does not get stuck.
#include "agent/learner.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <psifold/data.h>
#include <psifold/mdp.h>

#include <math.h>
#include <string.h>

// Where a pair (k, a) has led so far.
typedef struct agent_outcomes {
    size_t n, room;
    int32_t *next; // K: the episode ended
    double *count;
    double visits, reward_sum;
} agent_outcomes;

typedef struct planner_mind {
    agent_learner learner;
    agent_outcomes *pair; // (K, A)
    psi_plan *plan;
    bool stale;    // something was learnt since the plan was made
    bool cautious; // the plan was made without imagined visits

    // room for the entries of the model, as psi_mdp_from_entries takes them
    size_t room;
    uint64_t *rows;
    int32_t *next;
    double *probability, *reward;
    uint8_t *terminal;
} planner_mind;

static planner_mind *of(agent_learner *learner)
{
    return (planner_mind *)learner;
}

static void planner_free(psi_ctx *ctx, agent_learner *learner)
{
    planner_mind *self = of(learner);
    if (!self) return;
    for (size_t i = 0; self->pair && i < learner->encoder->n_states * learner->n_actions; i++) {
        base_free(ctx, self->pair[i].next);
        base_free(ctx, self->pair[i].count);
    }
    base_free(ctx, self->pair);
    base_free(ctx, self->rows);
    base_free(ctx, self->next);
    base_free(ctx, self->probability);
    base_free(ctx, self->reward);
    base_free(ctx, self->terminal);
    psi_plan_free(ctx, self->plan);
    base_free(ctx, self);
}

static psi_status count(psi_ctx *ctx, agent_outcomes *pair, int32_t next, double times)
{
    psi_status status = PSI_OK;
    size_t i = 0;
    while (i < pair->n && pair->next[i] != next) i++;
    if (i == pair->room) {
        const size_t room = pair->room ? 2 * pair->room : 4;
        TRY(base_resize(ctx, room, sizeof *pair->next, &pair->next));
        TRY(base_resize(ctx, room, sizeof *pair->count, &pair->count));
        pair->room = room;
    }
    if (i == pair->n) {
        pair->next[pair->n] = next;
        pair->count[pair->n++] = 0;
    }
    pair->count[i] += times;
    pair->visits += times;
done:
    return status;
}

static psi_status make_room(psi_ctx *ctx, planner_mind *self, size_t entries)
{
    psi_status status = PSI_OK;
    if (entries <= self->room) return PSI_OK;
    const size_t room = base_max(entries, 2 * self->room);
    TRY(base_resize(ctx, room, sizeof *self->rows, &self->rows));
    TRY(base_resize(ctx, room, sizeof *self->next, &self->next));
    TRY(base_resize(ctx, room, sizeof *self->probability, &self->probability));
    self->room = room;
done:
    return status;
}

// The model as counted, with the imagined visits: state K is the end of an episode.
static psi_status make_model(psi_ctx *ctx, planner_mind *self, psi_mdp **out)
{
    psi_status status = PSI_OK;
    const size_t n_states = self->learner.encoder->n_states,
                 pairs = n_states * self->learner.n_actions;
    const double imagined = self->learner.exploit ? 0 : self->learner.options.optimism;
    const double best = self->learner.options.best_value;
    size_t n = 0;
    for (size_t row = 0; row < pairs; row++) {
        const agent_outcomes *pair = &self->pair[row];
        const double visits = pair->visits + imagined;
        TRY(make_room(ctx, self, n + pair->n + 1));
        for (size_t i = 0; i < pair->n; i++, n++) {
            self->rows[n] = row;
            self->next[n] = pair->next[i];
            self->probability[n] = pair->count[i] / visits;
        }
        self->reward[row] = visits > 0 ? (pair->reward_sum + imagined * best) / visits : 0;
        if (imagined == 0) continue; // a pair never seen is not chosen then
        self->rows[n] = row;
        self->next[n] = (int32_t)n_states;
        self->probability[n++] = imagined / visits;
    }
    status = psi_mdp_from_entries(ctx, n_states + 1, self->learner.n_actions, n, self->rows,
                                  self->next, self->probability, self->reward, self->terminal, out);
done:
    return status;
}

static psi_status replan(psi_ctx *ctx, planner_mind *self)
{
    psi_status status = PSI_OK;
    psi_mdp *model = NULL;
    psi_plan *plan = NULL;
    psi_plan_options how = psi_plan_defaults();
    how.gamma = self->learner.options.gamma;
    how.tolerance = 1e-6 * fmax(1, fabs(self->learner.options.best_value));
    TRY(make_model(ctx, self, &model));
    TRY(psi_value_iteration(ctx, model, &how, &plan));
    psi_plan_free(ctx, self->plan);
    self->plan = plan;
    self->stale = false;
    self->cautious = self->learner.exploit;
    self->learner.updates++;
done:
    psi_mdp_free(ctx, model);
    return status;
}

static psi_status planner_begin(psi_ctx *ctx, agent_learner *learner, const void *row)
{
    (void)ctx;
    (void)row;
    of(learner)->stale = true;
    return PSI_OK;
}

static psi_status planner_values(psi_ctx *ctx, agent_learner *learner, const void *row, psi_real *q)
{
    psi_status status = PSI_OK;
    planner_mind *self = of(learner);
    if (self->stale || !self->plan || self->cautious != learner->exploit) TRY(replan(ctx, self));
    const double *values = self->plan->q + (size_t) * (const int32_t *)row * learner->n_actions;
    for (size_t a = 0; a < learner->n_actions; a++) q[a] = (psi_real)values[a];
done:
    return status;
}

static psi_status planner_learn(psi_ctx *ctx, agent_learner *learner, const agent_step *step)
{
    // a pair seen this often changes little with one more visit: the next episode's plan will do
    static const double FAMILIAR = 32;
    psi_status status = PSI_OK;
    planner_mind *self = of(learner);
    const size_t k = (size_t) * (const int32_t *)step->row;
    agent_outcomes *pair = &self->pair[k * learner->n_actions + (size_t)step->action];
    const int32_t next =
        step->terminated ? (int32_t)learner->encoder->n_states : *(const int32_t *)step->next;
    learner->steps++;
    TRY(count(ctx, pair, next, 1));
    pair->reward_sum += step->reward;
    if (pair->visits <= FAMILIAR || step->reward != 0) self->stale = true;
done:
    return status;
}

static psi_status planner_save(psi_ctx *ctx, const agent_learner *learner, const char *folder)
{
    psi_status status = PSI_OK;
    const planner_mind *self = (const planner_mind *)learner;
    const size_t pairs = learner->encoder->n_states * learner->n_actions;
    char *path = NULL;
    int64_t *rows = NULL;
    int32_t *next = NULL;
    double *counts = NULL, *rewards = NULL;
    size_t n = 0;
    for (size_t i = 0; i < pairs; i++) n += self->pair[i].n;
    TRY(base_join(ctx, folder, "counts.npz", &path));
    TRY(base_alloc(ctx, n, sizeof *rows, &rows));
    TRY(base_alloc(ctx, n, sizeof *next, &next));
    TRY(base_alloc(ctx, n, sizeof *counts, &counts));
    TRY(base_alloc(ctx, pairs, sizeof *rewards, &rewards));
    n = 0;
    for (size_t i = 0; i < pairs; i++) {
        const agent_outcomes *pair = &self->pair[i];
        for (size_t j = 0; j < pair->n; j++, n++) {
            rows[n] = (int64_t)i;
            next[n] = pair->next[j];
            counts[n] = pair->count[j];
        }
        rewards[i] = pair->reward_sum;
    }
    const psi_array arrays[] = {{"rows", PSI_INT64, {1, {n}}, rows},
                                {"next", PSI_INT32, {1, {n}}, next},
                                {"counts", PSI_FLOAT64, {1, {n}}, counts},
                                {"reward_sum", PSI_FLOAT64, {1, {pairs}}, rewards}};
    TRY(psi_arrays_save(ctx, path, arrays, 4));
done:
    base_free(ctx, path);
    base_free(ctx, rows);
    base_free(ctx, next);
    base_free(ctx, counts);
    base_free(ctx, rewards);
    return status;
}

static psi_status planner_load(psi_ctx *ctx, agent_learner *learner, const char *folder)
{
    psi_status status = PSI_OK;
    planner_mind *self = of(learner);
    const size_t n_states = learner->encoder->n_states, pairs = n_states * learner->n_actions;
    char *path = NULL;
    void *rows = NULL, *next = NULL, *counts = NULL, *rewards = NULL;
    psi_shape shape[4];
    TRY(base_join(ctx, folder, "counts.npz", &path));
    TRY(psi_array_load(ctx, path, "rows", PSI_INT64, &shape[0], &rows));
    TRY(psi_array_load(ctx, path, "next", PSI_INT32, &shape[1], &next));
    TRY(psi_array_load(ctx, path, "counts", PSI_FLOAT64, &shape[2], &counts));
    TRY(psi_array_load(ctx, path, "reward_sum", PSI_FLOAT64, &shape[3], &rewards));
    bool sound = psi_shape_size(&shape[3]) == pairs;
    const size_t n = psi_shape_size(&shape[0]);
    for (size_t i = 1; i < 3; i++) sound = sound && psi_shape_size(&shape[i]) == n;
    for (size_t i = 0; sound && i < n; i++) {
        const int64_t row = ((int64_t *)rows)[i], to = ((int32_t *)next)[i];
        const double times = ((double *)counts)[i];
        sound = row >= 0 && (size_t)row < pairs && to >= 0 && (size_t)to <= n_states && times > 0 &&
                isfinite(times);
    }
    for (size_t i = 0; sound && i < pairs; i++) sound = isfinite(((double *)rewards)[i]);
    if (!sound) {
        status = FAIL(ctx, PSI_EFORMAT, "%s does not count steps among %zu latent states", path,
                      n_states);
        goto done;
    }
    for (size_t i = 0; i < pairs; i++) {
        self->pair[i].n = 0;
        self->pair[i].visits = 0;
        self->pair[i].reward_sum = ((double *)rewards)[i];
    }
    for (size_t i = 0; i < n; i++) {
        TRY(count(ctx, &self->pair[((int64_t *)rows)[i]], ((int32_t *)next)[i],
                  ((double *)counts)[i]));
    }
    self->stale = true;
done:
    base_free(ctx, path);
    psi_array_free(ctx, rows);
    psi_array_free(ctx, next);
    psi_array_free(ctx, counts);
    psi_array_free(ctx, rewards);
    return status;
}

static const agent_learner_rules RULES = {planner_begin, planner_values, planner_learn,
                                          planner_save,  planner_load,   planner_free};

psi_status agent_planner_new(psi_ctx *ctx, const agent_encoder *encoder,
                             const psi_agent_options *options, agent_learner **out)
{
    psi_status status = PSI_OK;
    planner_mind *self = NULL;
    *out = NULL;
    if (!encoder->numbered) {
        return FAIL(ctx, PSI_EUSAGE, "a planner needs numbered states; the view %s has none",
                    psi_view_name(encoder->view));
    }
    const size_t pairs = encoder->n_states * encoder->space.n_actions;
    TRY(base_alloc_zero(ctx, 1, sizeof *self, &self));
    self->learner = (agent_learner){.rules = &RULES,
                                    .options = *options,
                                    .encoder = encoder,
                                    .n_actions = encoder->space.n_actions};
    self->stale = true;
    TRY(base_alloc_zero(ctx, pairs, sizeof *self->pair, &self->pair));
    TRY(base_alloc_zero(ctx, pairs + encoder->space.n_actions, sizeof *self->reward,
                        &self->reward));
    TRY(base_alloc_zero(ctx, encoder->n_states + 1, sizeof *self->terminal, &self->terminal));
    self->terminal[encoder->n_states] = 1;
    *out = &self->learner;
    self = NULL;
done:
    if (self) planner_free(ctx, &self->learner);
    return status;
}
