// Labels along trajectories become sparse counts, and counts the latent model {w_a, M_a} of
// appendix A.
#include <psifold/mdp.h>

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "mdp/csr.h"

#include <math.h>
#include <string.h>

static psi_status check_labels(psi_ctx *ctx, const psi_paths *paths, size_t e)
{
    const uint64_t begin = paths->episode_offsets[e], end = paths->episode_offsets[e + 1];
    for (uint64_t row = begin + e; row <= end + e; row++) {
        const int32_t label = paths->labels[row];
        if (label < -1 || (label >= 0 && (size_t)label >= paths->n_latent)) {
            return FAIL(ctx, PSI_EDATA, "episode %zu: label %d is not one of %zu latent states", e,
                        label, paths->n_latent);
        }
        if (!paths->has_terminal || label < 0) continue;
        const bool at_end = row == end + e && paths->terminated[e];
        if ((label == 0) != at_end) {
            return FAIL(ctx, PSI_EDATA,
                        "episode %zu, row %llu has label %d, but latent state 0 is "
                        "for the ends of terminated episodes alone",
                        e, (unsigned long long)(row - begin - e), label);
        }
    }
    return PSI_OK;
}

psi_status psi_paths_check(psi_ctx *ctx, const psi_paths *paths)
{
    const uint64_t *offsets = paths->episode_offsets;
    if (paths->n_latent > INT32_MAX || paths->n_actions > INT32_MAX) {
        return FAIL(ctx, PSI_ELIMIT, "%zu latent states and %zu actions are too many",
                    paths->n_latent, paths->n_actions);
    }
    if (paths->has_terminal && paths->n_latent == 0) {
        return FAIL(ctx, PSI_ESHAPE, "the terminal state counts as a latent state");
    }
    if (offsets[0] != 0 || offsets[paths->n_episodes] != paths->n_transitions) {
        return FAIL(ctx, PSI_EDATA, "the episodes do not cover the %zu transitions",
                    paths->n_transitions);
    }
    for (size_t e = 0; e < paths->n_episodes; e++) {
        if (offsets[e + 1] < offsets[e] || offsets[e + 1] > paths->n_transitions) {
            return FAIL(ctx, PSI_EDATA, "episode %zu ends before it begins", e);
        }
        for (uint64_t t = offsets[e]; t < offsets[e + 1]; t++) {
            if (paths->actions[t] < 0 || (size_t)paths->actions[t] >= paths->n_actions) {
                return FAIL(ctx, PSI_EDATA, "episode %zu: action %d is not one of %zu", e,
                            paths->actions[t], paths->n_actions);
            }
            if (!isfinite(paths->rewards[t])) {
                return FAIL(ctx, PSI_EDATA, "episode %zu: a reward is not finite", e);
            }
        }
        const psi_status status = check_labels(ctx, paths, e);
        if (status != PSI_OK) return status;
    }
    return PSI_OK;
}

void psi_counts_free(psi_ctx *ctx, psi_counts *counts)
{
    if (!counts || FREED(ctx, counts)) return;
    base_free(ctx, counts->reward_scatter);
    base_free(ctx, counts->reward_sum);
    base_free(ctx, counts->rewards);
    base_free(ctx, counts->visits);
    base_free(ctx, counts->count);
    base_free(ctx, counts->next);
    base_free(ctx, counts->offsets);
    base_retire(ctx, counts);
}

// Rewards of the kept labels: number, sum and scatter around the mean, in Welford's form.
static void count_rewards(const psi_paths *paths, psi_counts *counts)
{
    for (size_t e = 0; e < paths->n_episodes; e++) {
        for (uint64_t t = paths->episode_offsets[e]; t < paths->episode_offsets[e + 1]; t++) {
            const int32_t label = paths->labels[t + e];
            if (label < 0) continue;
            const size_t row = (size_t)label * paths->n_actions + (size_t)paths->actions[t];
            const double n = counts->rewards[row], r = paths->rewards[t];
            const double from_mean = n > 0.0 ? r - counts->reward_sum[row] / n : 0.0;
            counts->rewards[row] = n + 1.0;
            counts->reward_sum[row] += r;
            counts->reward_scatter[row] += from_mean * from_mean * n / (n + 1.0);
        }
    }
}

// An entry of the sparse rows, as it travels.
typedef struct entry {
    uint64_t row;
    double count;
    int32_t next, unused;
} entry;

// The rows of all processes, added up.
static psi_status add_others(psi_ctx *ctx, mdp_csr *csr)
{
    psi_status status = PSI_OK;
    entry *own = NULL, *all = NULL;
    uint64_t *row = NULL;
    int32_t *next = NULL;
    double *count = NULL;
    const size_t entries = csr->offsets[csr->n_rows], n_rows = csr->n_rows;
    const size_t n_columns = csr->n_columns;
    size_t bytes;
    TRY(base_alloc(ctx, entries, sizeof *own, &own));
    for (size_t r = 0; r < n_rows; r++) {
        for (uint64_t i = csr->offsets[r]; i < csr->offsets[r + 1]; i++) {
            own[i] = (entry){r, csr->value[i], csr->column[i], 0};
        }
    }
    TRY(base_gather_parts(ctx, own, entries * sizeof *own, &all, &bytes));
    const size_t n = bytes / sizeof *all;
    TRY(base_alloc(ctx, n, sizeof *row, &row));
    TRY(base_alloc(ctx, n, sizeof *next, &next));
    TRY(base_alloc(ctx, n, sizeof *count, &count));
    for (size_t i = 0; i < n; i++) {
        row[i] = all[i].row;
        next[i] = all[i].next;
        count[i] = all[i].count;
    }
    mdp_csr_free(ctx, csr);
    TRY(mdp_csr_build(ctx, n_rows, n_columns, n, row, next, count, csr));
done:
    base_free(ctx, count);
    base_free(ctx, next);
    base_free(ctx, row);
    base_free(ctx, all);
    base_free(ctx, own);
    return status;
}

// together: with the paths of all other processes.
static psi_status count(psi_ctx *ctx, const psi_paths *paths, bool together, psi_counts **out)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    uint64_t *row = NULL;
    int32_t *next = NULL;
    mdp_csr csr = {0};
    size_t n_rows, n = 0;
    *out = NULL;
    TRY(psi_paths_check(ctx, paths));
    if (!base_mul(paths->n_latent, paths->n_actions, &n_rows))
        TRY(FAIL(ctx, PSI_ELIMIT, "too many latent states and actions"));
    TRY(base_alloc_zero(ctx, 1, sizeof *counts, &counts));
    counts->n_latent = paths->n_latent;
    counts->n_actions = paths->n_actions;
    counts->has_terminal = paths->has_terminal;
    TRY(base_alloc_zero(ctx, n_rows, sizeof *counts->visits, &counts->visits));
    TRY(base_alloc_zero(ctx, n_rows, sizeof *counts->rewards, &counts->rewards));
    TRY(base_alloc_zero(ctx, n_rows, sizeof *counts->reward_sum, &counts->reward_sum));
    TRY(base_alloc_zero(ctx, n_rows, sizeof *counts->reward_scatter, &counts->reward_scatter));
    TRY(base_alloc(ctx, paths->n_transitions, sizeof *row, &row));
    TRY(base_alloc(ctx, paths->n_transitions, sizeof *next, &next));
    for (size_t e = 0; e < paths->n_episodes; e++) {
        for (uint64_t t = paths->episode_offsets[e]; t < paths->episode_offsets[e + 1]; t++) {
            const int32_t from = paths->labels[t + e], to = paths->labels[t + e + 1];
            if (from < 0 || to < 0) continue;
            row[n] = (uint64_t)from * paths->n_actions + (uint64_t)paths->actions[t];
            next[n++] = to;
        }
    }
    TRY(mdp_csr_build(ctx, n_rows, paths->n_latent, n, row, next, NULL, &csr));
    if (together && base_ranks(ctx) > 1) TRY(add_others(ctx, &csr));
    counts->offsets = csr.offsets;
    counts->next = csr.column;
    counts->count = csr.value;
    csr = (mdp_csr){0};
    for (size_t r = 0; r < n_rows; r++) {
        for (uint64_t i = counts->offsets[r]; i < counts->offsets[r + 1]; i++)
            counts->visits[r] += counts->count[i];
    }
    const base_block turn[] = {{counts->rewards, n_rows * sizeof *counts->rewards},
                               {counts->reward_sum, n_rows * sizeof *counts->reward_sum},
                               {counts->reward_scatter, n_rows * sizeof *counts->reward_scatter}};
    if (together) TRY(base_take_turn_with(ctx, turn, 3));
    count_rewards(paths, counts);
    if (together) TRY(base_end_turn_with(ctx, turn, 3));
    *out = counts;
    counts = NULL;
done:
    mdp_csr_free(ctx, &csr);
    base_free(ctx, next);
    base_free(ctx, row);
    psi_counts_free(ctx, counts);
    return status;
}

psi_status psi_counts_new(psi_ctx *ctx, const psi_paths *paths, psi_counts **out)
{
    return count(ctx, paths, false, out);
}

psi_status psi_counts_together(psi_ctx *ctx, const psi_paths *paths, psi_counts **out)
{
    return count(ctx, paths, true, out);
}

psi_status psi_counts_model(psi_ctx *ctx, const psi_counts *counts, double min_visits,
                            psi_mdp **out)
{
    *out = NULL;
    if (FREED(ctx, counts)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    psi_mdp *mdp = NULL;
    const size_t n_rows = counts->n_latent * counts->n_actions;
    const uint64_t nnz = counts->offsets[n_rows];
    TRY(base_alloc_zero(ctx, 1, sizeof *mdp, &mdp));
    mdp->n_states = counts->n_latent;
    mdp->n_actions = counts->n_actions;
    TRY(base_alloc(ctx, n_rows + 1, sizeof *mdp->offsets, &mdp->offsets));
    TRY(base_alloc(ctx, nnz, sizeof *mdp->next, &mdp->next));
    TRY(base_alloc(ctx, nnz, sizeof *mdp->probability, &mdp->probability));
    TRY(base_alloc_zero(ctx, n_rows, sizeof *mdp->reward, &mdp->reward));
    TRY(base_alloc_zero(ctx, counts->n_latent, sizeof *mdp->terminal, &mdp->terminal));
    if (counts->has_terminal) mdp->terminal[0] = 1;
    uint64_t filled = 0;
    for (size_t row = 0; row < n_rows; row++) {
        mdp->offsets[row] = filled;
        if (counts->rewards[row] > 0.0)
            mdp->reward[row] = counts->reward_sum[row] / counts->rewards[row];
        if (counts->visits[row] < min_visits) continue;
        for (uint64_t i = counts->offsets[row]; i < counts->offsets[row + 1]; i++) {
            mdp->next[filled] = counts->next[i];
            mdp->probability[filled++] = counts->count[i] / counts->visits[row];
        }
    }
    mdp->offsets[n_rows] = filled;
    *out = mdp;
    mdp = NULL;
done:
    psi_mdp_free(ctx, mdp);
    return status;
}
