// How a labelling compares with the true latent states. For evaluation only: nothing that learns
// may come here.
#include <psifold/cluster.h>

#include "base/comm.h"
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
    int64_t n_true = 0;
    size_t seen[] = {0, 0}, off_diagonal = 0; // states, and those without a label
    *out = (psi_purity){0};
    if (!data->latent_states) {
        return FAIL(ctx, PSI_EMISSING, "the data do not say what their latent states are");
    }
    for (size_t i = 0; i < data->n_observations; i++) {
        if (data->latent_states[i] < 0) {
            return FAIL(ctx, PSI_EDATA, "the true latent state of observation %zu is negative", i);
        }
        if (data->latent_states[i] >= n_true) n_true = (int64_t)data->latent_states[i] + 1;
    }
    TRY(base_maximum(ctx, &n_true, 1));
    const size_t rows = (size_t)n_true;
    TRY(base_alloc_zero(ctx, rows * n_latent, sizeof *common, &common));
    uint8_t has_terminal = 0;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        has_terminal |= data->terminated[e] != 0;
        for (uint64_t row = begin; row <= end; row++) {
            if (row == end && (data->terminated[e] || data->final_missing[e])) continue;
            const int32_t label = labels[row];
            seen[0]++;
            seen[1] += label < 0;
            if (label >= 0) common[(size_t)data->latent_states[row] * n_latent + (size_t)label]++;
        }
    }
    TRY(base_sum_sizes(ctx, common, rows * n_latent));
    TRY(base_sum_sizes(ctx, seen, 2));
    TRY(base_any(ctx, &has_terminal, 1));
    for (size_t t = 0; t < rows; t++) {
        size_t all = 0, most = 0;
        for (size_t k = 0; k < n_latent; k++) {
            all += common[t * n_latent + k];
            if (common[t * n_latent + k] > most) most = common[t * n_latent + k];
        }
        off_diagonal += all - most;
        out->true_latent_states += all > 0;
    }
    out->true_latent_states += has_terminal;
    TRY(count_shared(ctx, common, rows, n_latent, false, &out->merged));
    TRY(count_shared(ctx, common, n_latent, rows, true, &out->split));
    out->off_diagonal = (double)off_diagonal / (double)seen[0];
    out->ignored = (double)seen[1] / (double)seen[0];
    TRY(psi_agreement_of_counts(ctx, common, rows, n_latent, &out->accuracy)); // of labelled ones
    out->accuracy *= (double)(seen[0] - seen[1]) / (double)seen[0];
done:
    base_free(ctx, common);
    return status;
}
