// Smoothing labels along trajectories: estimate the model from the labels that are kept, let
// forward–backward say what each row must have been, and again.
#include <psifold/mdp.h>

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/options.h"
#include "mdp/emissions.h"

#include <math.h>
#include <string.h>

psi_smooth_options psi_smooth_defaults(void)
{
    return (psi_smooth_options){.size = sizeof(psi_smooth_options),
                                .noise = 0.1,
                                .floor = 1e-3,
                                .keep = 0.9,
                                .passes = 2,
                                .reward_floor = 1e-3,
                                .memory = (size_t)64 << 20};
}

psi_status psi_reward_likelihood(psi_ctx *ctx, const psi_paths *paths,
                                 const psi_smooth_options *options, double *likelihood)
{
    if (!base_options_fit(ctx, options, sizeof *options, "psi_smooth_defaults")) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const size_t n = paths->n_latent, classes = options->n_reward_classes;
    double *seen = NULL; // (A, K)
    TRY(psi_paths_check(ctx, paths));
    TRY(mdp_check_smoothing(ctx, paths, options));
    if (!options->reward_class) TRY(FAIL(ctx, PSI_EUSAGE, "there are no reward classes"));
    TRY(base_alloc_zero(ctx, paths->n_actions * n, sizeof *seen, &seen));
    for (size_t i = 0; i < paths->n_actions * classes * n; i++) likelihood[i] = 0.0;
    const base_block turn[] = {{likelihood, paths->n_actions * classes * n * sizeof *likelihood},
                               {seen, paths->n_actions * n * sizeof *seen}};
    if (options->together) TRY(base_take_turn_with(ctx, turn, 2));
    for (size_t e = 0; e < paths->n_episodes; e++) {
        for (uint64_t t = paths->episode_offsets[e]; t < paths->episode_offsets[e + 1]; t++) {
            const int32_t label = paths->labels[t + e];
            if (label < 0) continue;
            const size_t a = (size_t)paths->actions[t], class = (size_t)options->reward_class[t];
            likelihood[(a * classes + class) * n + (size_t)label] += 1.0;
            seen[a * n + (size_t)label] += 1.0;
        }
    }
    if (options->together) TRY(base_end_turn_with(ctx, turn, 2));
    const double floor = options->reward_floor;
    for (size_t a = 0; a < paths->n_actions; a++) {
        for (size_t i = 0; i < classes * n; i++) {
            double *p = &likelihood[a * classes * n + i];
            const double visits = seen[a * n + i % n];
            *p = visits > 0.0 ? (*p / visits + floor / (double)classes) / (1.0 + floor)
                              : 1.0 / (double)classes;
        }
    }
done:
    base_free(ctx, seen);
    return status;
}

// P(first latent state) from the labels of the first rows, with the floor that the model has.
static psi_status first_states(psi_ctx *ctx, const psi_paths *paths,
                               const psi_smooth_options *options, double *start)
{
    psi_status status = PSI_OK;
    const size_t n = paths->n_latent;
    size_t *seen = NULL; // (K), then of all
    TRY(base_alloc_zero(ctx, n + 1, sizeof *seen, &seen));
    for (size_t e = 0; e < paths->n_episodes; e++) {
        const int32_t label = paths->labels[paths->episode_offsets[e] + e];
        if (label < 0) continue;
        seen[label]++;
        seen[n]++;
    }
    if (options->together) TRY(base_sum_sizes(ctx, seen, n + 1));
    for (size_t k = 0; k < n; k++) {
        const double share = seen[n] > 0 ? (double)seen[k] / (double)seen[n] : 1.0 / (double)n;
        start[k] = (share + options->floor / (double)n) / (1.0 + options->floor);
    }
done:
    base_free(ctx, seen);
    return status;
}

// A wrong label brings transitions of its own into the model, which then confirm it. So every
// transition loses one count (singletons are mostly noise), but no more than a fiftieth of its
// row's, before the model is made.
static void discount_singletons(psi_counts *counts)
{
    for (size_t row = 0; row < counts->n_latent * counts->n_actions; row++) {
        const double one = fmin(1.0, counts->visits[row] / 50.0);
        for (uint64_t i = counts->offsets[row]; i < counts->offsets[row + 1]; i++) {
            const double taken = fmin(one, counts->count[i]);
            counts->count[i] -= taken;
            counts->visits[row] -= taken;
        }
    }
}

// One pass with everything estimated from estimate->labels; the evidence is the original labels'.
// Every row gets its best label, however unsure.
static psi_status estimate_and_smooth(psi_ctx *ctx, const psi_paths *estimate,
                                      const psi_paths *evidence, const psi_smooth_options *options,
                                      int32_t *best, float *posterior, psi_smooth_summary *summary)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    psi_mdp *latent = NULL;
    double *likelihood = NULL, *start = NULL;
    size_t size;
    psi_smooth_options all = *options;
    all.keep = 0.0;
    if (options->learn_start) {
        TRY(base_alloc(ctx, estimate->n_latent, sizeof *start, &start));
        TRY(first_states(ctx, estimate, options, start));
        all.start = start;
    }
    TRY(options->together ? psi_counts_together(ctx, estimate, &counts)
                          : psi_counts_new(ctx, estimate, &counts));
    discount_singletons(counts);
    TRY(psi_counts_model(ctx, counts, 0.0, &latent));
    if (options->reward_class) {
        if (!base_mul(estimate->n_latent, estimate->n_actions, &size) ||
            !base_mul(size, options->n_reward_classes, &size))
            TRY(FAIL(ctx, PSI_ELIMIT, "too many reward classes"));
        TRY(base_alloc(ctx, size, sizeof *likelihood, &likelihood));
        TRY(psi_reward_likelihood(ctx, estimate, options, likelihood));
    }
    TRY(psi_smooth_pass(ctx, evidence, latent, likelihood, &all, best, posterior, NULL,
                        &summary->log_likelihood));
    summary->smallest_row_maximum = psi_mdp_smallest_row_maximum(latent);
done:
    base_free(ctx, start);
    base_free(ctx, likelihood);
    psi_mdp_free(ctx, latent);
    psi_counts_free(ctx, counts);
    return status;
}

// How sure smoothing must be of a row's own label for the next estimate. A label that the chain
// gave a chance of one in twenty is enough: its posterior is ρ/(ρ + 19), with ρ the odds of a label
// being itself to being one of the others. With many latent states that is above keep and changes
// nothing; with few it is not, and leaving such rows out would thin the rarer successors of
// stochastic rows, pass after pass, until one is left.
static double confirmation(const psi_paths *paths, const psi_smooth_options *options)
{
    const double others = (double)paths->n_latent - (paths->has_terminal ? 2.0 : 1.0);
    if (others <= 0.0 || options->noise == 0.0) return options->keep;
    const double odds = (1.0 - options->noise) * others / options->noise;
    return fmin(options->keep, odds / (odds + 19.0));
}

static void summarise(const psi_paths *paths, const int32_t *labels, psi_smooth_summary *summary)
{
    for (size_t row = 0; row < paths->n_transitions + paths->n_episodes; row++) {
        const int32_t before = paths->labels[row], after = labels[row];
        summary->ignored_before += before < 0;
        summary->ignored_after += after < 0;
        summary->changed += before >= 0 && after >= 0 && before != after;
    }
}

psi_status psi_smooth(psi_ctx *ctx, const psi_paths *paths, const psi_smooth_options *options,
                      int32_t *labels, float *posterior, psi_smooth_summary *summary)
{
    if (options && !base_options_fit(ctx, options, sizeof *options, "psi_smooth_defaults"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const psi_smooth_options chosen = options ? *options : psi_smooth_defaults();
    psi_smooth_summary result = {0};
    int32_t *known = NULL, *best = NULL;
    float *sure = NULL;
    if (chosen.passes == 0) return FAIL(ctx, PSI_EUSAGE, "smoothing takes at least one pass");
    TRY(psi_paths_check(ctx, paths));
    TRY(mdp_check_smoothing(ctx, paths, &chosen));
    const size_t rows = paths->n_transitions + paths->n_episodes;
    const double confirmed = confirmation(paths, &chosen);
    TRY(base_alloc(ctx, rows, sizeof *known, &known));
    TRY(base_alloc(ctx, rows, sizeof *best, &best));
    TRY(base_alloc(ctx, rows, sizeof *sure, &sure));
    if (rows > 0) memcpy(known, paths->labels, rows * sizeof *known);
    for (size_t pass = 0; pass < chosen.passes; pass++) {
        psi_paths estimate = *paths;
        estimate.labels = known;
        TRY(estimate_and_smooth(ctx, &estimate, paths, &chosen, best, sure, &result));
        for (size_t row = 0; row < rows; row++) {
            const double enough = best[row] == paths->labels[row] ? confirmed : chosen.keep;
            known[row] = (double)sure[row] >= enough ? best[row] : -1;
        }
    }
    for (size_t row = 0; row < rows; row++) {
        if ((double)sure[row] < chosen.keep) best[row] = -1;
    }
    summarise(paths, best, &result);
    if (rows > 0) memcpy(labels, best, rows * sizeof *labels);
    if (rows > 0 && posterior) memcpy(posterior, sure, rows * sizeof *posterior);
    if (summary) *summary = result;
done:
    base_free(ctx, sure);
    base_free(ctx, best);
    base_free(ctx, known);
    return status;
}
