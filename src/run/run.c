#include "run/run.h"

#include "base/context.h"
#include "run/known.h"

void psi_run_free(psi_ctx *ctx, psi_run *run)
{
    if (!run || FREED(ctx, run)) return;
    base_free(ctx, run->folder);
    for (size_t i = 0; i < run->n_data_paths; i++) base_free(ctx, run->data_paths[i]);
    base_free(ctx, run->data_paths);
    base_free(ctx, run->observation_key);
    base_free(ctx, run->failure);
    base_free(ctx, run->labels);
    base_free(ctx, run->confidence);
    base_free(ctx, run->doubts);
    base_free(ctx, run->steps);
    base_free(ctx, run->phases);
    psi_mdp_free(ctx, run->model);
    psi_certificate_free(ctx, run->certificate);
    psi_net_free(ctx, run->representation);
    run_known_free(ctx, run->known);
    base_retire(ctx, run);
}

psi_status run_set_data_paths(psi_ctx *ctx, psi_run *run, const char *const *paths, size_t n)
{
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, n, sizeof *run->data_paths, &run->data_paths));
    run->n_data_paths = n;
    for (size_t i = 0; i < n; i++) TRY(base_copy_text(ctx, paths[i], &run->data_paths[i]));
done:
    return status;
}
