// A run and a data set together: the labels that the run gives to the data.
#include <psifold/cluster.h>

#include "base/context.h"

#include <string.h>

void psi_mark_terminals(const psi_trajectories *data, int32_t *labels)
{
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row < end; row++) {
            if (labels[row] == 0) labels[row] = -1; // the episode went on: it was not terminal
        }
        if (data->terminated[e]) labels[end] = 0;
    }
}

psi_status psi_run_observe(psi_ctx *ctx, const psi_run_result *run, const psi_trajectories *data,
                           psi_observations **out)
{
    return psi_observations_stack(ctx, data->observations, run->stack, data->n_episodes,
                                  data->episode_offsets, out);
}

psi_status psi_run_label(psi_ctx *ctx, const psi_run_result *run, const psi_trajectories *data,
                         int32_t *labels, bool *own)
{
    psi_status status = PSI_OK;
    psi_fingerprint fingerprint;
    psi_predictor *predictor = NULL;
    psi_observations *observations = NULL;
    if (data->n_actions != run->n_actions) {
        return FAIL(ctx, PSI_ESHAPE, "the run knows %zu actions, the data have %zu", run->n_actions,
                    data->n_actions);
    }
    TRY(psi_fingerprint_of(ctx, data, &fingerprint));
    const bool same = strcmp(fingerprint.hex, run->fingerprint.hex) == 0 &&
                      data->n_observations == run->n_observations;
    if (own) *own = same;
    if (same) {
        memcpy(labels, run->labels, data->n_observations * sizeof *labels);
        goto done;
    }
    TRY(psi_predictor_new(ctx, run, &predictor));
    TRY(psi_run_observe(ctx, run, data, &observations));
    TRY(psi_predict(ctx, predictor, observations, 0.0, labels, NULL));
    if (run->has_terminal) psi_mark_terminals(data, labels);
done:
    psi_observations_free(ctx, observations);
    psi_predictor_free(ctx, predictor);
    return status;
}
