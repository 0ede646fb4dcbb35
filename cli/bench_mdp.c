// Figures of the mdp room: counts, the latent model, F, smoothing and roll-outs at full size.
#include "bench.h"

#include "base/context.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/random.h"

#include <math.h>

enum { TRANSITIONS = 1500000, LENGTH = 150, ACTIONS = 3, BENCH_PURPOSE = 900 };

// Walks on a ring of K − 1 latent states with a way out to the terminal one: action a moves on by
// 1, 2 or 3. A tenth of the labels is lost, a fiftieth wrong.
typedef struct ring {
    psi_paths paths;
    int32_t *labels, *actions;
    double *rewards;
    uint64_t *offsets;
    uint8_t *terminated;
} ring;

static void ring_free(psi_ctx *ctx, ring *r)
{
    base_free(ctx, r->terminated);
    base_free(ctx, r->offsets);
    base_free(ctx, r->rewards);
    base_free(ctx, r->actions);
    base_free(ctx, r->labels);
}

static void ring_fill(ring *r, uint32_t others)
{
    const size_t episodes = r->paths.n_episodes;
    for (size_t e = 0; e < episodes; e++) {
        base_random random = base_random_stream(1, BENCH_PURPOSE, e);
        uint32_t at = base_random_below(&random, others);
        for (size_t t = e * LENGTH; t < (e + 1) * LENGTH; t++) {
            const uint32_t a = base_random_below(&random, ACTIONS);
            const uint32_t luck = base_random_below(&random, 50);
            r->labels[t + e] = luck < 5    ? -1
                               : luck == 5 ? 1 + (int32_t)base_random_below(&random, others)
                                           : 1 + (int32_t)at;
            r->actions[t] = (int32_t)a;
            r->rewards[t] = at == 0;
            at = (at + 1 + a) % others;
        }
        r->offsets[e] = e * LENGTH;
        r->labels[(e + 1) * LENGTH + e] = 0;
        r->terminated[e] = 1;
    }
    r->offsets[episodes] = episodes * LENGTH;
}

static psi_status ring_new(psi_ctx *ctx, size_t n_latent, ring *r)
{
    psi_status status = PSI_OK;
    const size_t episodes = TRANSITIONS / LENGTH;
    *r = (ring){0};
    TRY(base_alloc(ctx, TRANSITIONS + episodes, sizeof *r->labels, &r->labels));
    TRY(base_alloc(ctx, TRANSITIONS, sizeof *r->actions, &r->actions));
    TRY(base_alloc(ctx, TRANSITIONS, sizeof *r->rewards, &r->rewards));
    TRY(base_alloc(ctx, episodes + 1, sizeof *r->offsets, &r->offsets));
    TRY(base_alloc(ctx, episodes, sizeof *r->terminated, &r->terminated));
    r->paths = (psi_paths){.n_episodes = episodes,
                           .n_transitions = TRANSITIONS,
                           .n_actions = ACTIONS,
                           .n_latent = n_latent,
                           .has_terminal = true,
                           .labels = r->labels,
                           .actions = r->actions,
                           .rewards = r->rewards,
                           .episode_offsets = r->offsets,
                           .terminated = r->terminated};
    ring_fill(r, (uint32_t)n_latent - 1);
done:
    return status;
}

static psi_status report(psi_ctx *ctx, json_t *results, const char *what, size_t n_latent,
                         double seconds)
{
    json_t *line =
        json_pack("{s:s, s:I, s:I, s:f}", "what", what, "latent_states", (json_int_t)n_latent,
                  "transitions", (json_int_t)TRANSITIONS, "seconds", seconds);
    const psi_status status = base_json_made(ctx, line);
    if (status != PSI_OK) return status;
    return json_array_append_new(results, line) == 0
               ? PSI_OK
               : FAIL(ctx, PSI_ENOMEM, "no memory for the results");
}

static psi_status measure(psi_ctx *ctx, size_t n_latent, bool smooth, json_t *lines)
{
    psi_status status = PSI_OK;
    ring r = {0};
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    psi_lsfm *lsfm = NULL;
    psi_partition *merged = NULL;
    int32_t *labels = NULL;
    psi_sequence_error error;
    TRY(ring_new(ctx, n_latent, &r));
    double start = base_seconds();
    TRY(psi_counts_new(ctx, &r.paths, &counts));
    TRY(psi_counts_model(ctx, counts, 0.0, &model));
    TRY(report(ctx, lines, "counts and model", n_latent, base_seconds() - start));
    start = base_seconds();
    TRY(psi_lsfm_new(ctx, model, 0.6, &lsfm));
    TRY(report(ctx, lines, "F", n_latent, base_seconds() - start));
    start = base_seconds();
    TRY(psi_merge(ctx, counts, NULL, &merged));
    TRY(report(ctx, lines, "merge", n_latent, base_seconds() - start));
    if (smooth) {
        TRY(base_alloc(ctx, TRANSITIONS + r.paths.n_episodes, sizeof *labels, &labels));
        start = base_seconds();
        TRY(psi_smooth(ctx, &r.paths, NULL, labels, NULL, NULL));
        TRY(report(ctx, lines, "smoothing, two passes", n_latent, base_seconds() - start));
        start = base_seconds();
        TRY(psi_sequence_errors(ctx, model, &r.paths, NULL, PSI_ROLLOUT_SOFT, NULL, &error));
        TRY(report(ctx, lines, "soft roll-outs", n_latent, base_seconds() - start));
    }
done:
    base_free(ctx, labels);
    psi_partition_free(ctx, merged);
    psi_lsfm_free(ctx, lsfm);
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    ring_free(ctx, &r);
    return status;
}

psi_status bench_mdp(psi_ctx *ctx, json_t *results)
{
    psi_status status = PSI_OK;
    json_t *lines = json_array();
    TRY(base_json_made(ctx, lines));
    TRY(measure(ctx, 100, true, lines));
    TRY(measure(ctx, 1000, false, lines));
    TRY(measure(ctx, 4000, false, lines));
    if (json_object_set(results, "mdp", lines) != 0)
        TRY(FAIL(ctx, PSI_ENOMEM, "no memory for the results"));
done:
    json_decref(lines);
    return status;
}
