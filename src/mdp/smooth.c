// Smoothing labels along trajectories: estimate the model from the labels that are kept, let
// forward–backward say what each row must have been, and again.
#include <psifold/mdp.h>

#include "base/checked.h"
#include "base/context.h"
#include "mdp/emissions.h"

#include <string.h>

psi_smooth_options psi_smooth_defaults(void)
{
    return (psi_smooth_options){.noise = 0.1,
                                .floor = 1e-3,
                                .keep = 0.9,
                                .passes = 2,
                                .reward_floor = 1e-3,
                                .memory = (size_t)64 << 20};
}

psi_status psi_reward_likelihood(psi_ctx *ctx, const psi_paths *paths,
                                 const psi_smooth_options *options, double *likelihood)
{
    psi_status status = PSI_OK;
    const size_t n = paths->n_latent, classes = options->n_reward_classes;
    double *seen = NULL; // (A, K)
    TRY(psi_paths_check(ctx, paths));
    TRY(mdp_check_smoothing(ctx, paths, options));
    if (!options->reward_class) TRY(FAIL(ctx, PSI_EUSAGE, "there are no reward classes"));
    TRY(base_alloc_zero(ctx, paths->n_actions * n, sizeof *seen, &seen));
    for (size_t i = 0; i < paths->n_actions * classes * n; i++) likelihood[i] = 0.0;
    for (size_t e = 0; e < paths->n_episodes; e++) {
        for (uint64_t t = paths->episode_offsets[e]; t < paths->episode_offsets[e + 1]; t++) {
            const int32_t label = paths->labels[t + e];
            if (label < 0) continue;
            const size_t a = (size_t)paths->actions[t], class = (size_t)options->reward_class[t];
            likelihood[(a * classes + class) * n + (size_t)label] += 1.0;
            seen[a * n + (size_t)label] += 1.0;
        }
    }
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

// One pass with everything estimated from paths->labels; the evidence is that of the original.
static psi_status estimate_and_smooth(psi_ctx *ctx, const psi_paths *estimate,
                                      const psi_paths *evidence, const psi_smooth_options *options,
                                      int32_t *labels, float *posterior,
                                      psi_smooth_summary *summary)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    psi_mdp *latent = NULL;
    double *likelihood = NULL;
    size_t size;
    TRY(psi_counts_new(ctx, estimate, &counts));
    TRY(psi_counts_model(ctx, counts, 0.0, &latent));
    if (options->reward_class) {
        if (!base_mul(estimate->n_latent, estimate->n_actions, &size) ||
            !base_mul(size, options->n_reward_classes, &size))
            TRY(FAIL(ctx, PSI_ELIMIT, "too many reward classes"));
        TRY(base_alloc(ctx, size, sizeof *likelihood, &likelihood));
        TRY(psi_reward_likelihood(ctx, estimate, options, likelihood));
    }
    TRY(psi_smooth_pass(ctx, evidence, latent, likelihood, options, labels, posterior, NULL,
                        &summary->log_likelihood));
    summary->smallest_row_maximum = psi_mdp_smallest_row_maximum(latent);
done:
    base_free(ctx, likelihood);
    psi_mdp_free(ctx, latent);
    psi_counts_free(ctx, counts);
    return status;
}

psi_status psi_smooth(psi_ctx *ctx, const psi_paths *paths, const psi_smooth_options *options,
                      int32_t *labels, float *posterior, psi_smooth_summary *summary)
{
    psi_status status = PSI_OK;
    const psi_smooth_options chosen = options ? *options : psi_smooth_defaults();
    psi_smooth_summary result = {0};
    int32_t *kept = NULL, *smoothed = NULL;
    if (chosen.passes == 0) return FAIL(ctx, PSI_EUSAGE, "smoothing takes at least one pass");
    TRY(psi_paths_check(ctx, paths));
    const size_t rows = paths->n_transitions + paths->n_episodes;
    TRY(base_alloc(ctx, rows, sizeof *kept, &kept));
    TRY(base_alloc(ctx, rows, sizeof *smoothed, &smoothed));
    if (rows > 0) memcpy(kept, paths->labels, rows * sizeof *kept);
    for (size_t pass = 0; pass < chosen.passes; pass++) {
        psi_paths estimate = *paths;
        estimate.labels = kept;
        TRY(estimate_and_smooth(ctx, &estimate, paths, &chosen, smoothed, posterior, &result));
        int32_t *const swap = kept;
        kept = smoothed;
        smoothed = swap;
    }
    for (size_t row = 0; row < rows; row++) {
        const int32_t before = paths->labels[row], after = kept[row];
        result.ignored_before += before < 0;
        result.ignored_after += after < 0;
        result.changed += before >= 0 && after >= 0 && before != after;
    }
    if (rows > 0) memcpy(labels, kept, rows * sizeof *labels);
    if (summary) *summary = result;
done:
    base_free(ctx, smoothed);
    base_free(ctx, kept);
    return status;
}
