#include "report/errors.h"

#include "base/context.h"

void report_errors_free(report_errors *errors)
{
    if (!errors) return;
    base_free(errors->ctx, errors->values);
    base_free(errors->ctx, errors->summary);
    base_free(errors->ctx, errors);
}

static psi_status judge(const report_run *run, const psi_trajectories *data, const psi_mdp *model,
                        const int32_t *labels, size_t n_latent, report_errors *errors, size_t stage)
{
    const psi_paths paths = psi_trajectories_paths(data, labels, n_latent, run->has_terminal);
    return psi_sequence_errors(run->ctx, model, &paths, NULL, PSI_ROLLOUT_SOFT,
                               errors->values + stage * errors->n_episodes,
                               &errors->summary[stage]);
}

psi_status report_errors_new(const report_run *run, const psi_trajectories *data,
                             report_errors **out)
{
    psi_status status = PSI_OK;
    report_errors *errors = NULL;
    psi_mdp *model = NULL;
    *out = NULL;
    TRY(base_alloc_zero(run->ctx, 1, sizeof *errors, &errors));
    errors->ctx = run->ctx;
    errors->n_stages = run->n_levels + 1;
    errors->n_episodes = data->n_episodes;
    TRY(base_alloc(run->ctx, errors->n_stages * data->n_episodes, sizeof(double), &errors->values));
    TRY(base_alloc_zero(run->ctx, errors->n_stages, sizeof *errors->summary, &errors->summary));
    for (size_t i = 0; i < run->n_levels; i++) {
        const size_t clusters = run->level_clusters[i];
        psi_mdp_free(run->ctx, model);
        TRY(report_count_model(run, data, run->levels[i], clusters, &model));
        TRY(judge(run, data, model, run->levels[i], clusters, errors, i));
    }
    TRY(judge(run, data, run->model, run->labels, run->n_latent, errors, run->n_levels));
    *out = errors;
    errors = NULL;
done:
    psi_mdp_free(run->ctx, model);
    report_errors_free(errors);
    return status;
}
