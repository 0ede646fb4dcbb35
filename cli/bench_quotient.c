// Figures of exact quotients on models that are made here: random ones with planted blocks, and the
// chain, on which naive rounds take quadratic time. bench/quotient has Storm beside it.
#include "bench.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/random.h"

#include <string.h>
#include <time.h>

enum { BRANCHES = 4, BENCH_PURPOSE = 910, CHAIN = 1000000 };

// A Markov chain of n states, each a copy of one of k latent ones: its four transitions lead to any
// copies of the latent state's four successors.
static psi_status planted(psi_ctx *ctx, size_t n, uint32_t k, psi_model **out)
{
    psi_status status = PSI_OK;
    static const double share[BRANCHES] = {0.4, 0.3, 0.2, 0.1};
    psi_model_reward *reward;
    psi_model *model = NULL;
    base_random random = base_random_stream(1, BENCH_PURPOSE, n);
    const uint32_t copies = (uint32_t)(n / k);
    TRY(psi_model_new(ctx, n, n, n * BRANCHES, &model));
    TRY(psi_model_add_reward(ctx, model, "gain", true, false, &reward));
    model->n_actions = 1;
    model->chain = true;
    for (size_t s = 0; s < n; s++) {
        const uint32_t latent = (uint32_t)(s % k);
        uint32_t number[4];
        model->choices[s] = s;
        model->offsets[s] = s * BRANCHES;
        model->action[s] = 0;
        reward->state[s] = latent % 97 == 0;
        base_random_block(2, BENCH_PURPOSE, latent, 0, number);
        for (size_t i = 0; i < BRANCHES; i++) {
            const size_t copy = base_random_below(&random, copies);
            model->next[s * BRANCHES + i] = (int32_t)(number[i] % k + copy * k);
            model->probability[s * BRANCHES + i] = share[i];
        }
    }
    model->choices[n] = n;
    model->offsets[n] = n * BRANCHES;
    *out = model;
    model = NULL;
done:
    psi_model_free(ctx, model);
    return status;
}

static psi_status chain(psi_ctx *ctx, size_t n, psi_model **out)
{
    psi_status status = PSI_OK;
    psi_model_reward *reward;
    psi_model *model = NULL;
    TRY(psi_model_new(ctx, n, n, n, &model));
    TRY(psi_model_add_reward(ctx, model, "gain", true, false, &reward));
    model->n_actions = 1;
    model->chain = true;
    for (size_t s = 0; s < n; s++) {
        model->choices[s] = model->offsets[s] = s;
        model->action[s] = 0;
        model->next[s] = (int32_t)base_min(s + 1, n - 1);
        model->probability[s] = 1.0;
    }
    model->choices[n] = model->offsets[n] = n;
    reward->state[n - 1] = 1.0;
    *out = model;
    model = NULL;
done:
    psi_model_free(ctx, model);
    return status;
}

static psi_status measure(psi_ctx *ctx, const char *what, const psi_model *model, json_t *lines)
{
    psi_status status = PSI_OK;
    psi_quotient_result *found = NULL;
    const clock_t before = clock();
    TRY(psi_quotient_find(ctx, model, NULL, &found));
    const double processor = (double)(clock() - before) / CLOCKS_PER_SEC;
    json_t *line = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "model", what, "states",
        (json_int_t)model->n_states, "transitions", (json_int_t)model->n_transitions, "blocks",
        (json_int_t)found->partition->n_blocks, "passes", (json_int_t)found->n_passes, "rounds",
        (json_int_t)found->n_rounds, "seconds", found->seconds, "processor_seconds", processor,
        "nanoseconds_per_transition", processor * 1e9 / (double)base_max(model->n_transitions, 1),
        "bytes", (json_int_t)found->bytes);
    if (!line || json_array_append_new(lines, line) != 0)
        TRY(FAIL(ctx, PSI_ENOMEM, "no memory for the results"));
done:
    psi_quotient_free(ctx, found);
    return status;
}

psi_status bench_quotient(psi_ctx *ctx, size_t largest, json_t *results)
{
    psi_status status = PSI_OK;
    json_t *lines = json_array();
    psi_model *model = NULL;
    TRY(base_json_made(ctx, lines));
    for (size_t m = 100000; m <= largest; m *= 10) {
        TRY(planted(ctx, m / BRANCHES, (uint32_t)(m / BRANCHES / 25), &model));
        TRY(measure(ctx, "planted", model, lines));
        psi_model_free(ctx, model);
        model = NULL;
    }
    TRY(chain(ctx, CHAIN, &model));
    TRY(measure(ctx, "chain", model, lines));
    if (json_object_set(results, "quotient", lines) != 0)
        TRY(FAIL(ctx, PSI_ENOMEM, "no memory for the results"));
done:
    psi_model_free(ctx, model);
    json_decref(lines);
    return status;
}
