#include "run/run.h"

#include "base/context.h"
#include "run/known.h"

void psi_run_free(psi_ctx *ctx, psi_run *run)
{
    if (!run || FREED(ctx, run)) return;
    base_free(ctx, run->folder);
    base_free(ctx, run->data_path);
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
