// A network that memorises observations has features of noise, which say what came before and after
// each. Of episodes that nothing was learnt from they cannot.
#include "verdict/held_out.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

enum { MOST_ASKED = 4096 };

// What most of the nearest references that were learnt from are called, where told is known.
static int32_t most_alike(const problem_looks *looks, const int32_t *told, uint64_t row)
{
    uint64_t nearest[LOOKS_NEAREST];
    int32_t best = -1;
    size_t most = 0;
    const size_t n = problem_looks_nearest(looks, row, nearest);
    for (size_t i = 0; i < n; i++) { // nearest first
        size_t same = 0;
        if (told[nearest[i]] < 0) continue;
        for (size_t j = 0; j < n; j++) same += told[nearest[j]] == told[nearest[i]];
        if (same > most) most = same, best = told[nearest[i]];
    }
    return best;
}

psi_status verdict_ask_held_out(psi_ctx *ctx, const cluster_problem *problem,
                                const problem_looks *looks, const int32_t *labels, double *mistaken)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t stride = problem->n_held_out / MOST_ASKED + 1;
    size_t counted[] = {0, 0}; // asked, mistaken
    size_t held = 0, own = 0;  // held-out observations so far, and of this process
    int32_t *learnt = NULL; // (n_rows) labels of observations that were learnt from; −1: others
    int32_t *told = NULL;   // the same of references, too
    *mistaken = 1.0;
    TRY(base_alloc(ctx, problem->n_rows, sizeof *learnt, &learnt));
    for (size_t i = 0; i < problem->n_rows; i++) learnt[i] = -1;
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t row = problem->row[t];
        if (!problem->held_out[t]) learnt[row] = labels[row];
        own += problem->held_out[t] && labels[row] >= 0;
    }
    TRY(base_sum_before(ctx, own, &held));
    TRY(problem_looks_labels(ctx, looks, learnt, &told));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t row = problem->row[t];
        if (!problem->held_out[t] || labels[row] < 0 || held++ % stride > 0) continue;
        const int32_t alike = most_alike(looks, told, row);
        if (alike < 0) continue;
        counted[0]++;
        counted[1] += alike != labels[row];
    }
    TRY(base_sum_sizes(ctx, counted, 2));
    if (counted[0] > 0) *mistaken = (double)counted[1] / (double)counted[0];
done:
    base_free(ctx, told);
    base_free(ctx, learnt);
    return status;
}
