#include "learn/samples.h"

#include "base/context.h"

typedef struct sample_set {
    uint64_t *rows;
    int32_t *actions, *targets;
    size_t n;
} sample_set;

static void sample_set_free(psi_ctx *ctx, sample_set *set)
{
    base_free(ctx, set->rows);
    base_free(ctx, set->actions);
    base_free(ctx, set->targets);
}

static psi_status sample_set_new(psi_ctx *ctx, size_t room, sample_set *out)
{
    psi_status status = PSI_OK;
    *out = (sample_set){0};
    TRY(base_alloc(ctx, room, sizeof *out->rows, &out->rows));
    TRY(base_alloc(ctx, room, sizeof *out->actions, &out->actions));
    TRY(base_alloc(ctx, room, sizeof *out->targets, &out->targets));
done:
    if (status != PSI_OK) sample_set_free(ctx, out);
    return status;
}

psi_status learn_fit_transitions(psi_ctx *ctx, const cluster_problem *problem,
                                 const learn_approximator *approximator, const int32_t *target,
                                 size_t n_classes, const learn_fit *start, const int32_t *parent,
                                 uint64_t seed, const char *phase, learn_fit **out)
{
    const psi_trajectories *data = problem->data;
    sample_set set;
    *out = NULL;
    psi_status status = sample_set_new(ctx, data->n_transitions, &set);
    if (status != PSI_OK) return status;
    for (size_t t = 0; t < data->n_transitions; t++) {
        if (problem->held_out[t] || target[t] < 0) continue;
        set.rows[set.n] = problem->row[t];
        set.actions[set.n] = data->actions[t];
        set.targets[set.n++] = target[t];
    }
    const learn_samples samples = {.n = set.n,
                                   .rows = set.rows,
                                   .actions = set.actions,
                                   .targets = set.targets,
                                   .n_actions = data->n_actions,
                                   .n_classes = n_classes,
                                   .phase = phase};
    status = approximator->fit(approximator->self, ctx, &samples, start, parent, seed, out);
    sample_set_free(ctx, &set);
    return status;
}

psi_status learn_fit_states(psi_ctx *ctx, const cluster_problem *problem,
                            const learn_approximator *approximator, const int32_t *labels,
                            size_t n_classes, uint64_t seed, const char *phase, learn_fit **out)
{
    sample_set set;
    *out = NULL;
    psi_status status = sample_set_new(ctx, problem->data->n_transitions, &set);
    if (status != PSI_OK) return status;
    for (size_t t = 0; t < problem->data->n_transitions; t++) {
        const int32_t label = labels[problem->row[t]];
        if (problem->held_out[t] || label < 0) continue;
        set.rows[set.n] = problem->row[t];
        set.targets[set.n++] = label;
    }
    const learn_samples samples = {.n = set.n,
                                   .rows = set.rows,
                                   .targets = set.targets,
                                   .n_actions = 1,
                                   .n_classes = n_classes,
                                   .phase = phase};
    status = approximator->fit(approximator->self, ctx, &samples, NULL, NULL, seed, out);
    sample_set_free(ctx, &set);
    return status;
}
