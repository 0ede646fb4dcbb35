#include "base/comm.h"
#include "base/context.h"
#include "refine/refining.h"

#include <math.h>
#include <string.h>

enum { MOST_TURNS = 6 };      // of smoothing and grouping
enum { MOST_DOUBTED = 2048 }; // observations that all others are asked about

// Trajectories that are less sure of a label ask who looks like it.
static const float CLEAR = 0.9f;

// log-likelihood of a label that no look nearby has.
static const float UNLIKE = -9.2f; // one in 10,000; with one in 10⁹ looks are never overruled

static bool is_doubted(const refining *run, uint64_t row)
{
    return run->looks->leaf[row] >= 0 && run->found->confidence[row] < CLEAR;
}

// How many rows of the processes before this one are doubted.
static psi_status count_doubted_before(refining *run, size_t *before)
{
    size_t own = 0;
    for (size_t row = 0; row < run->problem->n_rows; row++) own += is_doubted(run, row);
    return base_sum_before(run->ctx, own, before);
}

// What looks say of every label. Rows that nobody labels nearby say nothing.
static psi_status listen_to_looks(refining *run, bool again, psi_emissions *out, int32_t **index,
                                  float **likelihood)
{
    psi_status status = PSI_OK;
    const size_t n = run->problem->n_rows;
    size_t doubted = 0;
    int32_t *all = NULL, *labels = NULL;
    TRY(base_alloc(run->ctx, n * LOOKS_LABELS, sizeof **index, index));
    TRY(base_alloc(run->ctx, n * LOOKS_LABELS, sizeof **likelihood, likelihood));
    TRY(base_alloc(run->ctx, run->looks->forest.n_nodes, sizeof *all, &all));
    TRY(problem_looks_labels(run->ctx, run->looks, run->found->labels, &labels));
    TRY(problem_looks_agree(run->ctx, run->problem, run->looks, labels, all));
    if (again) TRY(count_doubted_before(run, &doubted));
    for (size_t row = 0; row < n; row++) {
        int32_t *label = *index + row * LOOKS_LABELS;
        float *share = *likelihood + row * LOOKS_LABELS;
        size_t votes = 0;
        if (run->looks->leaf[row] >= 0) {
            // planes of the tree go along borders, and leave neighbours on the other side
            const bool anywhere = again && is_doubted(run, row) && doubted++ < MOST_DOUBTED;
            votes = problem_looks_vote(run->looks, labels, all, row, anywhere, label, share);
        } else if (labels[row] >= 0) {
            label[votes] = labels[row];
            share[votes++] = 1.0f;
        }
        for (size_t i = 0; i < votes; i++) share[i] = logf(share[i]);
        for (size_t i = votes; i < LOOKS_LABELS; i++) label[i] = -1, share[i] = 0.0f;
    }
    *out = (psi_emissions){.per_row = LOOKS_LABELS,
                           .index = *index,
                           .log_likelihood = *likelihood,
                           .absent = UNLIKE,
                           .every_row = true};
done:
    base_free(run->ctx, labels);
    base_free(run->ctx, all);
    return status;
}

// What trajectories say about observations on the borders of latent states: forward–backward with
// the latent model of all others, and with what the looks of each say.
// again: it is known of which labels they were not sure.
static psi_status smooth(refining *run, double keep, bool again, size_t *changed)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    by_evidence *found = run->found;
    psi_smooth_options how = psi_smooth_defaults();
    psi_smooth_summary summary;
    psi_emissions looks;
    int32_t *smoothed = NULL, *index = NULL;
    float *likelihood = NULL;
    const psi_paths paths = problem_paths(problem, found->labels, found->n_latent);
    TRY(listen_to_looks(run, again, &looks, &index, &likelihood));
    how.emissions = &looks;
    how.keep = keep;
    how.learn_start = true;
    how.together = true;
    if (run->rewards->n > 1) {
        how.reward_class = run->rewards->of;
        how.n_reward_classes = run->rewards->n;
    }
    TRY(base_alloc(run->ctx, problem->n_rows, sizeof *smoothed, &smoothed));
    TRY(psi_smooth(run->ctx, &paths, &how, smoothed, found->confidence, &summary));
    *changed = 0;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        *changed += smoothed[row] != found->labels[row];
        found->labels[row] = run->known[row] = smoothed[row];
    }
    TRY(base_sum_sizes(run->ctx, changed, 1));
    found->smoothed = (double)*changed / (double)problem->whole.n_states;
done:
    base_free(run->ctx, likelihood);
    base_free(run->ctx, index);
    base_free(run->ctx, smoothed);
    return status;
}

// With next latent states that trajectories have made clear, fewer cells look mixed: group and
// smooth in turn until the labels stay. The last turn labels every observation.
psi_status refine_label_mixed_cells(refining *run)
{
    psi_status status = PSI_OK;
    by_evidence *found = run->found;
    const size_t n = run->problem->n_rows;
    size_t changed, n_before = 0;
    int32_t *before = NULL;
    const bool settled = found->converged; // else cells are too mixed to be made clear
    TRY(base_alloc(run->ctx, n, sizeof *before, &before));
    for (found->turns = 0; settled && found->turns < MOST_TURNS; found->turns++) {
        double agreement = 0.0;
        TRY(smooth(run, 0.9, false, &changed));
        if (n_before == found->n_latent)
            TRY(refine_compare_with(run, before, n_before, &agreement));
        if (agreement > 1.0 - REFINE_SETTLED) break;
        memcpy(before, found->labels, n * sizeof *before);
        n_before = found->n_latent;
        TRY(refine_once(run));
    }
    // what neighbours have become says more than what their cells were
    const size_t few = (size_t)(REFINE_SETTLED * (double)run->problem->whole.n_states);
    changed = few + 1;
    for (size_t i = 0; i < MOST_TURNS && changed > few; i++) {
        TRY(smooth(run, 0.0, false, &changed));
    }
    if (settled) TRY(smooth(run, 0.0, true, &changed));
done:
    base_free(run->ctx, before);
    return status;
}
