// What must hold of every finished run, whatever it was made from: files agree with each other, and
// every latent state that is counted was seen.
#include "run/run.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

// Labels below `n_latent`, −1 for none; if all are wanted, each of them somewhere. `wrong` is what
// it is called if not.
static psi_status check_labels(psi_ctx *ctx, psi_status wrong, const char *what, size_t n,
                               const int32_t *labels, size_t n_latent, bool all)
{
    psi_status status = PSI_OK;
    size_t *seen = NULL;
    TRY(base_alloc_zero(ctx, n_latent, sizeof *seen, &seen));
    for (size_t i = 0; i < n; i++) {
        if (labels[i] == -1) continue;
        if (labels[i] < 0 || (size_t)labels[i] >= n_latent) {
            TRY(FAIL(ctx, wrong, "%s: label %d of observation %zu is none of %zu latent states",
                     what, labels[i], i, n_latent));
        }
        seen[labels[i]]++;
    }
    for (size_t k = 0; all && k < n_latent; k++) {
        if (seen[k] == 0) {
            TRY(FAIL(ctx, wrong, "%s: no observation is in latent state %zu of %zu", what, k,
                     n_latent));
        }
    }
done:
    base_free(ctx, seen);
    return status;
}

static psi_status check_refinements(psi_ctx *ctx, const psi_run *run)
{
    psi_status status = PSI_OK;
    int32_t *labels = NULL;
    for (size_t i = 0; i < run->n_steps; i++) {
        TRY(psi_run_labels(ctx, run, i + 1, &labels));
        TRY(check_labels(ctx, PSI_EDATA, run->folder, run->n_observations, labels,
                         run->steps[i].clusters, false));
        psi_array_free(ctx, labels);
        labels = NULL;
    }
done:
    psi_array_free(ctx, labels);
    return status;
}

psi_status run_check_found(psi_ctx *ctx, const psi_run *run)
{
    return check_labels(ctx, PSI_EINTERNAL, "the run that was found", run->n_observations,
                        run->labels, run->n_latent, true);
}

psi_status psi_run_check(psi_ctx *ctx, const char *folder)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    TRY(psi_run_load(ctx, folder, &run)); // checksums, shapes, and that the model is one
    TRY(check_labels(ctx, PSI_EDATA, folder, run->n_observations, run->labels, run->n_latent,
                     true));
    TRY(check_refinements(ctx, run));
done:
    psi_run_free(ctx, run);
    return status;
}
