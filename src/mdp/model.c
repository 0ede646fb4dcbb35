// Finite models as sparse rows (s, a) → s', with the check that everything else relies on.
#include <psifold/mdp.h>

#include "base/checked.h"
#include "base/context.h"
#include "mdp/csr.h"

#include <math.h>
#include <string.h>

psi_status psi_mdp_from_entries(psi_ctx *ctx, size_t n_states, size_t n_actions, size_t n_entries,
                                const uint64_t *row, const int32_t *next, const double *probability,
                                const double *reward, const uint8_t *terminal, psi_mdp **out)
{
    psi_status status = PSI_OK;
    psi_mdp *mdp = NULL;
    mdp_csr csr = {0};
    size_t n_rows;
    *out = NULL;
    if (n_states > INT32_MAX || !base_mul(n_states, n_actions, &n_rows)) {
        return FAIL(ctx, PSI_ELIMIT, "a model of %zu states and %zu actions is too large", n_states,
                    n_actions);
    }
    for (size_t i = 0; i < n_entries; i++) {
        if (row[i] >= n_rows || next[i] < 0 || (size_t)next[i] >= n_states) {
            return FAIL(ctx, PSI_EDATA,
                        "entry %zu leads from row %llu to state %d, in a model of "
                        "%zu states and %zu actions",
                        i, (unsigned long long)row[i], next[i], n_states, n_actions);
        }
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *mdp, &mdp));
    mdp->n_states = n_states;
    mdp->n_actions = n_actions;
    TRY(base_alloc_zero(ctx, n_rows, sizeof *mdp->reward, &mdp->reward));
    TRY(base_alloc_zero(ctx, n_states, sizeof *mdp->terminal, &mdp->terminal));
    if (reward && n_rows > 0) memcpy(mdp->reward, reward, n_rows * sizeof *reward);
    if (terminal && n_states > 0) memcpy(mdp->terminal, terminal, n_states);
    TRY(mdp_csr_build(ctx, n_rows, n_states, n_entries, row, next, probability, &csr));
    mdp->offsets = csr.offsets;
    mdp->next = csr.column;
    mdp->probability = csr.value;
    TRY(psi_mdp_check(ctx, mdp, false));
    *out = mdp;
    mdp = NULL;
done:
    psi_mdp_free(ctx, mdp);
    return status;
}

void psi_mdp_free(psi_ctx *ctx, psi_mdp *mdp)
{
    if (!mdp || FREED(ctx, mdp)) return;
    base_free(ctx, mdp->terminal);
    base_free(ctx, mdp->reward);
    base_free(ctx, mdp->probability);
    base_free(ctx, mdp->next);
    base_free(ctx, mdp->offsets);
    base_retire(ctx, mdp);
}

static psi_status check_row(psi_ctx *ctx, const psi_mdp *mdp, size_t s, size_t a, bool complete)
{
    const size_t row = s * mdp->n_actions + a;
    const uint64_t begin = mdp->offsets[row], end = mdp->offsets[row + 1];
    if (end < begin) return FAIL(ctx, PSI_EDATA, "row (%zu, %zu) ends before it begins", s, a);
    if (!isfinite(mdp->reward[row])) {
        return FAIL(ctx, PSI_EDATA, "the reward of state %zu, action %zu is not finite", s, a);
    }
    if (mdp->terminal[s]) {
        if (begin == end && mdp->reward[row] == 0.0) return PSI_OK;
        return FAIL(ctx, PSI_EDATA,
                    "state %zu is terminal, yet action %zu has a reward or a "
                    "successor",
                    s, a);
    }
    if (begin == end) {
        if (!complete) return PSI_OK;
        return FAIL(ctx, PSI_EDATA, "what follows state %zu, action %zu is not known", s, a);
    }
    double sum = 0.0;
    for (uint64_t i = begin; i < end; i++) {
        const int32_t next = mdp->next[i];
        if (next < 0 || (size_t)next >= mdp->n_states || (i > begin && next <= mdp->next[i - 1])) {
            return FAIL(ctx, PSI_EDATA,
                        "the successors of state %zu, action %zu are out of range "
                        "or order",
                        s, a);
        }
        if (!(mdp->probability[i] > 0.0)) {
            return FAIL(ctx, PSI_EDATA, "a probability of state %zu, action %zu is not positive", s,
                        a);
        }
        sum += mdp->probability[i];
    }
    if (!(fabs(sum - 1.0) <= 1e-9)) {
        return FAIL(ctx, PSI_EDATA, "the probabilities of state %zu, action %zu sum to %.12g", s, a,
                    sum);
    }
    return PSI_OK;
}

psi_status psi_mdp_check(psi_ctx *ctx, const psi_mdp *mdp, bool complete)
{
    if (FREED(ctx, mdp)) return PSI_EUSAGE;
    if (mdp->offsets[0] != 0) return FAIL(ctx, PSI_EDATA, "the first row does not begin at 0");
    for (size_t s = 0; s < mdp->n_states; s++) {
        for (size_t a = 0; a < mdp->n_actions; a++) {
            const psi_status status = check_row(ctx, mdp, s, a, complete);
            if (status != PSI_OK) return status;
        }
    }
    return PSI_OK;
}

bool psi_mdp_seen(const psi_mdp *mdp, size_t state, size_t action)
{
    const size_t row = state * mdp->n_actions + action;
    return mdp->offsets[row] < mdp->offsets[row + 1];
}

void psi_mdp_dense(const psi_mdp *mdp, size_t action, double *m)
{
    const size_t n = mdp->n_states;
    for (size_t i = 0; i < n * n; i++) m[i] = 0.0;
    for (size_t s = 0; s < n; s++) {
        const size_t row = s * mdp->n_actions + action;
        for (uint64_t i = mdp->offsets[row]; i < mdp->offsets[row + 1]; i++) {
            m[s * n + (size_t)mdp->next[i]] = mdp->probability[i];
        }
    }
}

double psi_mdp_smallest_row_maximum(const psi_mdp *mdp)
{
    double smallest = 1.0;
    for (size_t row = 0; row < mdp->n_states * mdp->n_actions; row++) {
        if (mdp->offsets[row] == mdp->offsets[row + 1]) continue;
        double largest = 0.0;
        for (uint64_t i = mdp->offsets[row]; i < mdp->offsets[row + 1]; i++) {
            largest = fmax(largest, mdp->probability[i]);
        }
        smallest = fmin(smallest, largest);
    }
    return smallest;
}
