// The cover at scale: synthetic predictions of 3 actions and 100 latent states for 10^4 … 10^6 and
// the 1.46 million states of the paper's lock (10^7 with PSIFOLD_BENCH_LONG set), whose cost should
// grow no faster than their number.
#include "cli/bench.h"

#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ACTIONS = 3, LATENT = 100 };

// State i is in latent state i % LATENT; action a leads to another one, predicted with some blur.
typedef struct synthetic {
    float centre[LATENT][ACTIONS][LATENT];
    const uint64_t *rows;
    size_t n;
    float *out;
} synthetic;

static void fill_slice(void *argument, int thread, int threads)
{
    const synthetic *from = argument;
    size_t begin, end;
    base_slice(from->n, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const uint64_t row = from->rows[i];
        float *to = from->out + i * ACTIONS * LATENT;
        memcpy(to, from->centre[row % LATENT], sizeof from->centre[0]);
        uint32_t number[4]; // a blur of a few entries, as a softmax has it
        base_random_block(1, 0, row, 0, number);
        for (int b = 0; b < 4; b++) {
            to[number[b] % (ACTIONS * LATENT)] += 0.05f * (float)(number[b] >> 16) / 65536.0f;
        }
    }
}

static psi_status fill(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, float *out)
{
    synthetic *from = user;
    from->rows = rows;
    from->n = n;
    from->out = out;
    base_team_run(base_ctx_team(ctx), fill_slice, from);
    return PSI_OK;
}

psi_status bench_cluster(psi_ctx *ctx, json_t *results)
{
    psi_status status = PSI_OK;
    synthetic *points = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *points, &points));
    for (size_t k = 0; k < LATENT; k++) {
        for (size_t a = 0; a < ACTIONS; a++) points->centre[k][a][(k + a * a + 1) % LATENT] = 0.5f;
    }
    static const size_t sizes[] = {10000, 100000, 1000000, 1460000, 10000000};
    const size_t n_sizes = getenv("PSIFOLD_BENCH_LONG") ? 5 : 4;
    for (size_t i = 0; i < n_sizes; i++) {
        const size_t n = sizes[i];
        const psi_cover_points all = {n, ACTIONS, LATENT, fill, points};
        const psi_cover_options how = {
            .size = sizeof how, .epsilon = 0.5, .filter = 0.0025, .max_clusters = 1000};
        psi_cover_result found;
        char key[64];
        const double started = base_seconds();
        TRY(psi_cover(ctx, &all, &how, &found));
        const double seconds = base_seconds() - started;
        const size_t clusters = found.n_clusters;
        psi_cover_free(ctx, &found);
        if (clusters != LATENT) {
            status =
                FAIL(ctx, PSI_EINTERNAL, "the cover found %zu clusters, not %d", clusters, LATENT);
            goto done;
        }
        snprintf(key, sizeof key, "cover_%.3g_states_s", (double)n);
        json_object_set_new(results, key, json_real(seconds));
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    json_object_set_new(results, "peak_memory_mb", json_real((double)usage.ru_maxrss / 1000.0));
done:
    base_free(ctx, points);
    return status;
}
