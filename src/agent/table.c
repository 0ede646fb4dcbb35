// Q-learning on a table of states, with the same replay memory: what deep Q-learning comes to when
// nothing has to be recognised.
#include "agent/learner.h"

#include "base/context.h"
#include "base/file.h"

#include <psifold/data.h>

#include <math.h>
#include <string.h>

typedef struct table_mind {
    agent_learner learner;
    double *q; // (states, A)
    agent_replay *replay;
    agent_batch batch;
    double largest_reward;
} table_mind;

static table_mind *of(agent_learner *learner)
{
    return (table_mind *)learner;
}

static void table_free(psi_ctx *ctx, agent_learner *learner)
{
    table_mind *self = of(learner);
    if (!self) return;
    agent_replay_free(ctx, self->replay);
    agent_batch_free(ctx, &self->batch);
    base_free(ctx, self->q);
    base_free(ctx, self);
}

static psi_status table_begin(psi_ctx *ctx, agent_learner *learner, const void *row)
{
    (void)ctx;
    agent_replay_begin(of(learner)->replay, row);
    return PSI_OK;
}

static double *row_of(const table_mind *self, const void *rows, size_t i)
{
    return self->q + (size_t)((const int32_t *)rows)[i] * self->learner.n_actions;
}

static psi_status table_values(psi_ctx *ctx, agent_learner *learner, const void *row, psi_real *q)
{
    (void)ctx;
    const double *values = row_of(of(learner), row, 0);
    for (size_t a = 0; a < learner->n_actions; a++) q[a] = (psi_real)values[a];
    return PSI_OK;
}

// Q(s,a) ← Q(s,a) + α (r + γ max Q(s',·) − Q(s,a)) for every transition of a batch in turn.
static psi_status update(psi_ctx *ctx, table_mind *self)
{
    const psi_agent_options *options = &self->learner.options;
    const agent_batch *batch = &self->batch;
    double loss = 0, largest = 0;
    base_random random =
        base_random_stream(options->seed, AGENT_STREAM_BATCH, self->learner.updates);
    agent_replay_sample(self->replay, &random, &self->batch);
    for (size_t i = 0; i < batch->n; i++) {
        double *q = row_of(self, batch->observations, i) + batch->actions[i];
        double y = (double)batch->rewards[i];
        if (!batch->terminated[i]) {
            const double *next = row_of(self, batch->next, i);
            double best = next[0];
            for (size_t a = 1; a < self->learner.n_actions; a++) best = fmax(best, next[a]);
            y += options->gamma * best;
        }
        loss += (*q - y) * (*q - y);
        largest = fmax(largest, fabs(y));
        *q += options->table_rate * (y - *q);
    }
    self->learner.updates++;
    self->learner.loss_sum += loss / (double)batch->n;
    self->learner.losses++;
    return agent_check_values(ctx, &self->learner, largest, self->largest_reward);
}

static psi_status table_learn(psi_ctx *ctx, agent_learner *learner, const agent_step *step)
{
    table_mind *self = of(learner);
    agent_replay_add(self->replay, step->action, step->reward, step->terminated, step->next);
    self->largest_reward = fmax(self->largest_reward, fabs(step->reward));
    learner->steps++;
    return agent_update_due(learner, self->replay) ? update(ctx, self) : PSI_OK;
}

static psi_status table_save(psi_ctx *ctx, const agent_learner *learner, const char *folder)
{
    psi_status status = PSI_OK;
    const table_mind *self = (const table_mind *)learner;
    char *table = NULL, *replay = NULL;
    TRY(base_join(ctx, folder, "table.npz", &table));
    TRY(base_join(ctx, folder, "replay.npz", &replay));
    const psi_array arrays[] = {
        {"q", PSI_FLOAT64, {2, {learner->encoder->n_states, learner->n_actions}}, self->q},
        {"largest_reward", PSI_FLOAT64, {0}, &self->largest_reward}};
    TRY(psi_arrays_save(ctx, table, arrays, 2));
    TRY(agent_replay_save(ctx, self->replay, replay));
done:
    base_free(ctx, table);
    base_free(ctx, replay);
    return status;
}

static psi_status table_load(psi_ctx *ctx, agent_learner *learner, const char *folder)
{
    psi_status status = PSI_OK;
    table_mind *self = of(learner);
    char *table = NULL, *replay = NULL;
    void *q = NULL, *largest = NULL;
    psi_shape shape, single;
    TRY(base_join(ctx, folder, "table.npz", &table));
    TRY(base_join(ctx, folder, "replay.npz", &replay));
    TRY(psi_array_load(ctx, table, "q", PSI_FLOAT64, &shape, &q));
    TRY(psi_array_load(ctx, table, "largest_reward", PSI_FLOAT64, &single, &largest));
    if (shape.rank != 2 || shape.dim[0] != learner->encoder->n_states ||
        shape.dim[1] != learner->n_actions || single.rank != 0) {
        status = FAIL(ctx, PSI_ESHAPE, "%s is not a table of %zu states and %zu actions", table,
                      learner->encoder->n_states, learner->n_actions);
        goto done;
    }
    TRY(agent_replay_load(ctx, self->replay, learner->n_actions, learner->encoder->n_states,
                          replay));
    memcpy(self->q, q, learner->encoder->n_states * learner->n_actions * sizeof *self->q);
    memcpy(&self->largest_reward, largest, sizeof self->largest_reward);
done:
    psi_array_free(ctx, q);
    psi_array_free(ctx, largest);
    base_free(ctx, table);
    base_free(ctx, replay);
    return status;
}

static const agent_learner_rules RULES = {table_begin, table_values, table_learn,
                                          table_save,  table_load,   table_free};

psi_status agent_table_new(psi_ctx *ctx, const agent_encoder *encoder,
                           const psi_agent_options *options, agent_learner **out)
{
    psi_status status = PSI_OK;
    table_mind *self = NULL;
    const size_t n_actions = encoder->space.n_actions;
    *out = NULL;
    if (!encoder->numbered) {
        return FAIL(ctx, PSI_EUSAGE, "a table needs numbered states; the view %s has none",
                    psi_view_name(encoder->view));
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *self, &self));
    self->learner = (agent_learner){
        .rules = &RULES, .options = *options, .encoder = encoder, .n_actions = n_actions};
    TRY(base_alloc_zero(ctx, encoder->n_states * n_actions, sizeof *self->q, &self->q));
    TRY(agent_replay_new(ctx, options->buffer, encoder->row_bytes, &self->replay));
    TRY(agent_batch_new(ctx, options->batch, encoder->row_bytes, &self->batch));
    *out = &self->learner;
    self = NULL;
done:
    if (self) table_free(ctx, &self->learner);
    return status;
}
