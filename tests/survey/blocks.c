// Random block MDPs of every kind, default options only: how often are number and partition of the
// latent states right, and does a run that is wrong say so? Two looks may be 8.3 standard
// deviations apart, so that of 50,000 observations one or two lie nearer to another look than to
// their own: the partition counts as exact if at most one observation in 10,000 is elsewhere.
//     survey_blocks [FROM [TO [THREADS]]]
#include "support/block_mdp.h"

#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

static block_options instance(uint64_t number)
{
    static const size_t DIMENSIONS[] = {2, 3, 4, 8, 16, 32, 64};
    base_random random = base_random_stream(number, 0x626c6f63, 0);
    block_options options = {.seed = 1000 + number};
    options.latent_states = 4 + base_random_below(&random, 61);
    options.actions = 2 + base_random_below(&random, 3);
    options.looks = 1 + base_random_below(&random, 4);
    options.dimensions = DIMENSIONS[base_random_below(&random, 7)];
    options.stochastic = base_random_below(&random, 2);
    options.noisy_rewards = base_random_below(&random, 2);
    options.rare = base_random_below(&random, 4) == 0;
    options.uneven = base_random_below(&random, 2);
    options.length = 50;
    options.episodes = 400 + 12 * options.latent_states; // 23,000 … 58,000 transitions
    return options;
}

int main(int argc, char **argv)
{
    const uint64_t from = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const uint64_t to = argc > 2 ? strtoull(argv[2], NULL, 10) : from + 100;
    size_t exact = 0, silent = 0;
    psi_ctx *ctx;
    const psi_options shared = {.size = sizeof shared, .threads = argc > 3 ? atoi(argv[3]) : 0};
    if (psi_ctx_new(&shared, &ctx) != PSI_OK) return 1;
    for (uint64_t i = from; i < to; i++) {
        const block_options options = instance(i);
        psi_cluster_options defaults = psi_cluster_defaults();
        defaults.representation_steps = 1; // comes after the partition and is not asked about
        const double started = base_seconds();
        psi_trajectories *data = NULL;
        psi_run *found = NULL;
        psi_purity purity = {0};
        psi_status status = block_mdp_collect(ctx, &options, &data);
        if (status == PSI_OK) status = psi_cluster(ctx, data, &defaults, &found);
        if (status == PSI_OK) {
            status = psi_purity_of(ctx, data, found->labels, found->n_latent, &purity);
        }
        if (status != PSI_OK) {
            printf("%llu: %s\n", (unsigned long long)i, psi_error(ctx)->message);
        } else {
            const bool right = found->n_latent == purity.true_latent_states &&
                               purity.off_diagonal <= 1e-4 && purity.accuracy > 0.99;
            const bool sure = found->verdict == PSI_VERDICT_CERTAIN;
            exact += right;
            silent += sure && !right;
            printf(
                "%3llu %s %-12s %zu of %zu states, off-diagonal %.4f %%, ignored %.4f %%, %zu "
                "actions, %zu looks, R^%zu%s%s%s%s, margin %.0f, doubtful %.4f %%, past %.4f %%, "
                "%.1f s\n",
                (unsigned long long)i, right ? "exact" : "WRONG", psi_verdict_name(found->verdict),
                found->n_latent, purity.true_latent_states, 100.0 * purity.off_diagonal,
                100.0 * purity.ignored, options.actions, options.looks, options.dimensions,
                options.stochastic ? ", stochastic" : "", options.noisy_rewards ? ", noisy" : "",
                options.rare ? ", rare" : "", options.uneven ? ", uneven" : "", found->margin,
                100.0 * found->doubtful, 100.0 * found->past, base_seconds() - started);
        }
        fflush(stdout);
        psi_run_free(ctx, found);
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
    printf("%zu of %llu exact, %zu wrong without a word\n", exact, (unsigned long long)(to - from),
           silent);
    return 100 * exact >= 95 * (to - from) && silent == 0 ? 0 : 1;
}
