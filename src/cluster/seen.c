#include "cluster/seen.h"

#include "base/comm.h"
#include "base/context.h"

psi_status cluster_keep_seen(psi_ctx *ctx, size_t n_rows, psi_run *found)
{
    psi_status status = PSI_OK;
    uint8_t *seen = NULL; // (n_latent)
    int32_t *name = NULL; // (n_latent) the new one, −1 if no observation has it
    int32_t names = 0;
    TRY(base_alloc(ctx, found->n_latent, sizeof *name, &name));
    TRY(base_alloc_zero(ctx, found->n_latent, 1, &seen));
    for (size_t i = 0; i < n_rows; i++) {
        if (found->labels[i] >= 0) seen[found->labels[i]] = 1;
    }
    TRY(base_any(ctx, seen, found->n_latent));
    for (size_t k = 0; k < found->n_latent; k++) name[k] = seen[k] ? names++ : -1;
    if ((size_t)names == found->n_latent) goto done;
    for (size_t i = 0; i < n_rows; i++) {
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
    base_free(ctx, seen);
    base_free(ctx, name);
    return status;
}

// Few latent states take a byte or two each on their way.
psi_status cluster_collect_labels(psi_ctx *ctx, size_t n_rows, const int32_t *labels,
                                  size_t n_latent, int32_t **out)
{
    psi_status status = PSI_OK;
    const size_t width = n_latent < UINT8_MAX ? 1 : n_latent < UINT16_MAX ? 2 : 4;
    uint8_t *packed = NULL, *all = NULL;
    size_t bytes;
    *out = NULL;
    TRY(base_alloc(ctx, n_rows, width, &packed));
    for (size_t i = 0; i < n_rows; i++) {
        const uint32_t name = (uint32_t)(labels[i] + 1);
        for (size_t b = 0; b < width; b++) packed[i * width + b] = (uint8_t)(name >> 8 * b);
    }
    TRY(base_collect(ctx, packed, n_rows * width, &all, &bytes));
    if (base_rank(ctx) > 0) goto done;
    TRY(base_alloc(ctx, bytes / width, sizeof **out, out));
    for (size_t i = 0; i < bytes / width; i++) {
        uint32_t name = 0;
        for (size_t b = 0; b < width; b++) name |= (uint32_t)all[i * width + b] << 8 * b;
        (*out)[i] = (int32_t)name - 1;
    }
done:
    base_free(ctx, all);
    base_free(ctx, packed);
    return status;
}
