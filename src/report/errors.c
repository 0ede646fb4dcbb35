#include "report/errors.h"

#include "base/context.h"

void report_errors_free(report_errors *errors)
{
    if (!errors) return;
    base_free(errors->ctx, errors->values);
    base_free(errors->ctx, errors->summary);
    base_free(errors->ctx, errors);
}

static psi_status count_model(psi_ctx *ctx, const psi_paths *paths, psi_mdp **out)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    TRY(psi_counts_new(ctx, paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, out));
done:
    psi_counts_free(ctx, counts);
    return status;
}

// Stage i is level i + 1: c_0 predicts nothing.
static psi_status judge(psi_ctx *ctx, const psi_run *run, const psi_levels *levels,
                        const psi_trajectories *data, report_errors *errors, size_t stage)
{
    psi_status status = PSI_OK;
    const bool final = stage + 1 == errors->n_stages;
    const psi_paths paths = psi_trajectories_paths(
        data, levels->labels[stage + 1], final ? run->n_latent : levels->clusters[stage + 1],
        run->has_terminal);
    psi_mdp *model = NULL;
    if (!final) TRY(count_model(ctx, &paths, &model));
    TRY(psi_sequence_errors(ctx, final ? run->model : model, &paths, NULL, PSI_ROLLOUT_SOFT,
                            errors->values + stage * errors->n_episodes, &errors->summary[stage]));
done:
    psi_mdp_free(ctx, model);
    return status;
}

psi_status report_errors_new(psi_ctx *ctx, const psi_run *run, const psi_levels *levels,
                             const psi_trajectories *data, report_errors **out)
{
    psi_status status = PSI_OK;
    report_errors *errors = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *errors, &errors));
    errors->ctx = ctx;
    errors->n_stages = levels->n - 1;
    errors->n_episodes = data->n_episodes;
    TRY(base_alloc(ctx, errors->n_stages * data->n_episodes, sizeof(double), &errors->values));
    TRY(base_alloc_zero(ctx, errors->n_stages, sizeof *errors->summary, &errors->summary));
    for (size_t i = 0; i < errors->n_stages; i++) TRY(judge(ctx, run, levels, data, errors, i));
    *out = errors;
    errors = NULL;
done:
    report_errors_free(errors);
    return status;
}
