// psifold bench env: steps per second of the tasks, alone and collected into episodes.
#include "cli/bench.h"

#include "base/context.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/random.h"

#include <psifold/agent.h>
#include <psifold/env.h>

#include <math.h>

// Each figure is the best of a few short windows: what the machine can do when nothing else runs.
enum { WINDOWS = 5 };
static const double SECONDS = 0.3;

typedef struct bench_buffers {
    int32_t *actions;
    char *observations;
    double *rewards;
    uint8_t *terminated, *truncated;
} bench_buffers;

static void buffers_free(psi_ctx *ctx, bench_buffers *buffers)
{
    base_free(ctx, buffers->actions);
    base_free(ctx, buffers->observations);
    base_free(ctx, buffers->rewards);
    base_free(ctx, buffers->terminated);
    base_free(ctx, buffers->truncated);
}

static psi_status buffers_make(psi_ctx *ctx, const psi_env *env, bench_buffers *buffers)
{
    psi_status status = PSI_OK;
    const size_t n = psi_env_count(env);
    TRY(base_alloc_zero(ctx, n, sizeof *buffers->actions, &buffers->actions));
    TRY(base_alloc_zero(ctx, n, psi_env_space(env)->row_bytes, &buffers->observations));
    TRY(base_alloc_zero(ctx, n, sizeof *buffers->rewards, &buffers->rewards));
    TRY(base_alloc_zero(ctx, n, 1, &buffers->terminated));
    TRY(base_alloc_zero(ctx, n, 1, &buffers->truncated));
done:
    return status;
}

// Steps a batch with random actions, episodes that are over begun again, for a while.
static psi_status steps_per_second(psi_ctx *ctx, const psi_task *task, size_t n, double *out)
{
    psi_status status = PSI_OK;
    psi_env *env = NULL;
    bench_buffers b = {0};
    TRY(psi_env_new(ctx, task, n, 1, &env));
    TRY(buffers_make(ctx, env, &b));
    TRY(psi_env_reset(ctx, env, NULL, b.observations));
    base_random choice = base_random_stream(1, 1, 0);
    const uint32_t n_actions = (uint32_t)psi_env_space(env)->n_actions;
    *out = 0.0;
    for (int window = 0; window < WINDOWS; window++) {
        const double start = base_seconds();
        uint64_t steps = 0;
        while (base_seconds() - start < SECONDS) {
            for (size_t i = 0; i < n; i++) {
                b.actions[i] = (int32_t)base_random_below(&choice, n_actions);
            }
            TRY(psi_env_step(ctx, env, b.actions, b.observations, b.rewards, b.terminated,
                             b.truncated));
            for (size_t i = 0; i < n; i++) b.terminated[i] |= b.truncated[i];
            TRY(psi_env_reset(ctx, env, b.terminated, b.observations));
            steps += n;
        }
        *out = fmax(*out, (double)steps / (base_seconds() - start));
    }
done:
    buffers_free(ctx, &b);
    psi_env_free(ctx, env);
    return status;
}

static psi_status drop(void *user, const psi_episode *episode)
{
    (void)user;
    (void)episode;
    return PSI_OK;
}

static psi_status put(psi_ctx *ctx, json_t *results, const char *name, double value)
{
    if (json_object_set_new(results, name, json_real(value)) == 0) return PSI_OK;
    return base_json_made(ctx, NULL);
}

psi_status bench_env(psi_ctx *ctx, json_t *results)
{
    psi_status status = PSI_OK;
    psi_ctx *one = NULL;
    psi_task task;
    psi_collect_result collected;
    double rate;
    status = psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &one);
    if (status != PSI_OK) return FAIL(ctx, status, "no memory for a second context");

    TRY(psi_task_defaults(ctx, "column-world", NULL, &task));
    TRY(steps_per_second(one, &task, 4096, &rate));
    TRY(put(ctx, results, "column_world_steps_per_second_per_core", rate));
    TRY(psi_task_defaults(ctx, "point-column-world", NULL, &task));
    TRY(steps_per_second(one, &task, 4096, &rate));
    TRY(put(ctx, results, "point_column_world_steps_per_second_per_core", rate));

    TRY(psi_task_defaults(ctx, "combination-lock", NULL, &task));
    task.digits = psi_mnist_present(ctx) ? PSI_DIGITS_MNIST : PSI_DIGITS_DRAWN;
    if (json_object_set_new(results, "lock_digits",
                            json_string(task.digits == PSI_DIGITS_MNIST ? "mnist" : "drawn")) !=
        0) {
        TRY(base_json_made(ctx, NULL));
    }
    TRY(steps_per_second(one, &task, 256, &rate));
    TRY(put(ctx, results, "lock_rendered_steps_per_second_per_core", rate));
    TRY(steps_per_second(ctx, &task, 256, &rate));
    TRY(put(ctx, results, "lock_rendered_steps_per_second", rate));

    rate = 0.0;
    for (int window = 0; window < WINDOWS; window++) {
        const double start = base_seconds();
        TRY(psi_collect(ctx, &task, 3000, 1, drop, NULL, &collected));
        rate = fmax(rate, (double)collected.steps / (base_seconds() - start));
    }
    TRY(put(ctx, results, "lock_collected_steps_per_second", rate));
done:
    if (status != PSI_OK && psi_error(one)->status != PSI_OK) {
        status = FAIL(ctx, status, "%s", psi_error(one)->message);
    }
    psi_ctx_free(one);
    return status;
}
