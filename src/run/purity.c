// How a labelling compares with the true latent states. For evaluation only: nothing that learns
// may come here.
#include <psifold/cluster.h>

#include "base/context.h"

// Rows whose largest entry is in a column that another row with a larger one has already; rows
// without any entry are not counted. common (rows, columns), or its transpose.
static psi_status count_shared(psi_ctx *ctx, const size_t *common, size_t rows, size_t columns,
                               bool transposed, size_t *shared)
{
    psi_status status = PSI_OK;
    uint8_t *taken = NULL;
    *shared = 0;
    TRY(base_alloc_zero(ctx, columns, sizeof *taken, &taken));
    for (size_t i = 0; i < rows; i++) {
        size_t most = 0, where = 0;
        for (size_t j = 0; j < columns; j++) {
            const size_t n = common[transposed ? j * rows + i : i * columns + j];
            if (n > most) most = n, where = j;
        }
        if (most == 0) continue;
        *shared += taken[where];
        taken[where] = 1;
    }
done:
    base_free(ctx, taken);
    return status;
}

psi_status psi_purity_of(psi_ctx *ctx, const psi_trajectories *data, const int32_t *labels,
                         size_t n_latent, psi_purity *out)
{
    if (FREED(ctx, data)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    size_t *common = NULL; // (true, label)
    int32_t *truth = NULL, *found = NULL;
    size_t n_true = 0, n = 0, ignored = 0, off_diagonal = 0;
    *out = (psi_purity){0};
    if (!data->latent_states) {
        return FAIL(ctx, PSI_EMISSING, "the data do not say what their latent states are");
    }
    for (size_t i = 0; i < data->n_observations; i++) {
        if (data->latent_states[i] < 0) {
            return FAIL(ctx, PSI_EDATA, "the true latent state of observation %zu is negative", i);
        }
        if ((size_t)data->latent_states[i] >= n_true) n_true = (size_t)data->latent_states[i] + 1;
    }
    TRY(base_alloc_zero(ctx, n_true * n_latent, sizeof *common, &common));
    TRY(base_alloc(ctx, data->n_observations, sizeof *truth, &truth));
    TRY(base_alloc(ctx, data->n_observations, sizeof *found, &found));
    bool has_terminal = false;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        has_terminal |= data->terminated[e] != 0;
        for (uint64_t row = begin; row <= end; row++) {
            if (row == end && (data->terminated[e] || data->final_missing[e])) continue;
            const int32_t label = labels[row];
            truth[n] = data->latent_states[row];
            found[n++] = label;
            ignored += label < 0;
            if (label >= 0) common[(size_t)data->latent_states[row] * n_latent + (size_t)label]++;
        }
    }
    for (size_t t = 0; t < n_true; t++) {
        size_t all = 0, most = 0;
        for (size_t k = 0; k < n_latent; k++) {
            all += common[t * n_latent + k];
            if (common[t * n_latent + k] > most) most = common[t * n_latent + k];
        }
        off_diagonal += all - most;
        out->true_latent_states += all > 0;
    }
    out->true_latent_states += has_terminal;
    TRY(count_shared(ctx, common, n_true, n_latent, false, &out->merged));
    TRY(count_shared(ctx, common, n_latent, n_true, true, &out->split));
    out->off_diagonal = (double)off_diagonal / (double)n;
    out->ignored = (double)ignored / (double)n;
    const psi_partition a = {n, n_true, truth}, b = {n, n_latent, found};
    TRY(psi_partition_agreement(ctx, &a, &b, &out->accuracy));
done:
    base_free(ctx, found);
    base_free(ctx, truth);
    base_free(ctx, common);
    return status;
}
