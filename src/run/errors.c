// Reward-sequence errors of a run: how well its refinements and its final model predict the rewards
// of whole episodes from their first observation.
#include "run/run.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

void psi_run_errors_free(psi_ctx *ctx, psi_run_errors *errors)
{
    if (!errors || FREED(ctx, errors)) return;
    base_free(ctx, errors->values);
    base_free(ctx, errors->summary);
    base_retire(ctx, errors);
}

static psi_status errors_new(psi_ctx *ctx, size_t most, size_t n_episodes, psi_run_errors **out)
{
    psi_status status = PSI_OK;
    psi_run_errors *errors = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *errors, &errors));
    errors->n_episodes = n_episodes;
    TRY(base_alloc(ctx, most * n_episodes, sizeof(double), &errors->values));
    TRY(base_alloc_zero(ctx, most, sizeof *errors->summary, &errors->summary));
    *out = errors;
    errors = NULL;
done:
    psi_run_errors_free(ctx, errors);
    return status;
}

// One more stage: of this model, from the labels of first observations.
static psi_status add_stage(psi_ctx *ctx, const psi_mdp *model, const psi_paths *paths,
                            psi_run_errors *errors)
{
    const psi_status status = psi_sequence_errors_together(
        ctx, model, paths, PSI_ROLLOUT_SOFT, errors->values + errors->n_stages * errors->n_episodes,
        &errors->summary[errors->n_stages]);
    if (status == PSI_OK) errors->n_stages++;
    return status;
}

// A refinement on the run's own data, with the model of its own labels. first: the first row of
// this process.
static psi_status add_own(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                          const int32_t *labels, size_t first, psi_run_errors *errors)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    size_t n_latent = 0;
    for (size_t i = 0; i < run->n_observations; i++) {
        if (labels[i] >= 0) n_latent = base_max(n_latent, (size_t)labels[i] + 1);
    }
    const psi_paths paths =
        psi_trajectories_paths(data, labels + first, n_latent, run->has_terminal);
    TRY(psi_counts_together(ctx, &paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, &model));
    TRY(add_stage(ctx, model, &paths, errors));
done:
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    return status;
}

static psi_status add_refinements(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                                  psi_run_errors *errors)
{
    psi_status status = PSI_OK;
    int32_t *labels = NULL;
    size_t first;
    TRY(base_sum_before(ctx, data->n_observations, &first));
    for (size_t i = 1; i <= run->n_steps; i++) {
        psi_array_free(ctx, labels);
        TRY(run_refinement_labels(ctx, run, i, &labels));
        if (!labels) break; // removed to save space
        TRY(add_own(ctx, run, data, labels, first, errors));
    }
done:
    psi_array_free(ctx, labels);
    return status;
}

// The same on other data: what the heads of each refinement call them, with its own model.
static psi_status add_heads(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                            psi_run_errors *errors)
{
    psi_status status = PSI_OK;
    const size_t n = data->n_observations;
    int32_t *labels = NULL;
    psi_mdp *model = NULL;
    psi_observations *observations = NULL;
    TRY(base_alloc(ctx, run->n_steps, n * sizeof *labels, &labels));
    TRY(psi_run_observe(ctx, run, data, &observations));
    TRY(psi_run_assign(ctx, run, observations, labels));
    for (size_t i = 0; i < run->n_steps; i++) {
        int32_t *own = labels + i * n;
        psi_mdp_free(ctx, model);
        TRY(psi_run_model(ctx, run, i + 1, &model));
        for (size_t row = 0; row < n; row++) {
            if (own[row] < (int32_t)model->n_states) continue;
            TRY(FAIL(ctx, PSI_EDATA, "%s: heads and latent model %zu disagree", run->folder,
                     i + 1));
        }
        if (run->has_terminal) psi_mark_terminals(data, own);
        const psi_paths paths =
            psi_trajectories_paths(data, own, model->n_states, run->has_terminal);
        TRY(add_stage(ctx, model, &paths, errors));
    }
done:
    psi_observations_free(ctx, observations);
    psi_mdp_free(ctx, model);
    base_free(ctx, labels);
    return status;
}

psi_status psi_run_evaluate(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                            const int32_t *labels, bool own, psi_run_errors **out)
{
    psi_status status = PSI_OK;
    psi_run_errors *errors = NULL;
    *out = NULL;
    if (FREED(ctx, run, data)) return PSI_EUSAGE;
    TRY(errors_new(ctx, run->n_steps + 1, data->n_episodes, &errors));
    if (own) {
        TRY(add_refinements(ctx, run, data, errors));
    } else if (run->has_heads) {
        TRY(add_heads(ctx, run, data, errors));
    }
    const psi_paths paths = psi_trajectories_paths(data, labels, run->n_latent, run->has_terminal);
    TRY(add_stage(ctx, run->model, &paths, errors));
    *out = errors;
    errors = NULL;
done:
    psi_run_errors_free(ctx, errors);
    return status;
}
