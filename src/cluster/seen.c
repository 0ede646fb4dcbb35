#include "cluster/seen.h"

#include "base/context.h"

psi_status cluster_keep_seen(psi_ctx *ctx, psi_run *found)
{
    psi_status status = PSI_OK;
    int32_t *name = NULL; // (n_latent) the new one, −1 if no observation has it
    int32_t names = 0;
    TRY(base_alloc_zero(ctx, found->n_latent, sizeof *name, &name));
    for (size_t i = 0; i < found->n_observations; i++) {
        if (found->labels[i] >= 0) name[found->labels[i]] = 1;
    }
    for (size_t k = 0; k < found->n_latent; k++) name[k] = name[k] ? names++ : -1;
    if ((size_t)names == found->n_latent) goto done;
    for (size_t i = 0; i < found->n_observations; i++) {
        if (found->labels[i] >= 0) found->labels[i] = name[found->labels[i]];
    }
    size_t kept = 0;
    for (size_t i = 0; i < found->n_doubts; i++) {
        psi_doubt doubt = found->doubts[i];
        const bool pair = doubt.kind == PSI_DOUBT_PAIR; // else `other` is an action, or nothing
        if (doubt.state < 0) {                          // of no latent state by itself
            found->doubts[kept++] = doubt;
            continue;
        }
        doubt.state = name[doubt.state];
        if (pair) doubt.other = name[doubt.other];
        if (doubt.state >= 0 && (!pair || doubt.other >= 0)) found->doubts[kept++] = doubt;
    }
    found->n_doubts = kept;
    found->n_latent = (size_t)names;
done:
    base_free(ctx, name);
    return status;
}
