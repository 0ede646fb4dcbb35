// What is seen tells more than the latent states that were found: doors that look different and of
// which some lead to a fall now and then, and rewards that a coin decides about.
#include "support/collect.h"
#include "support/support.h"

#include "base/random.h"

#include <string.h>

enum { LENGTH = 20, DOORS = 8, PIXELS = 24 };

// How the doors are seen.
typedef enum look {
    LINE,  // as numbers with a little noise: clumps
    PIXEL, // one of many numbers says whether a door is odd, all others are noise
    LOOKS
} look;

typedef struct doors {
    size_t episodes;
    double fall;  // probability that action 0 at an odd door ends the episode …
    double pay;   // … with that reward
    double other; // … and at an even door with the same probability, with that one; 0: it never
} doors;

// Action 0 leads to any door, or to a fall; action 1 stays.
static psi_run *cluster_doors(psi_ctx *ctx, const doors *task, look how)
{
    const size_t width = how == LINE ? 1 : PIXELS;
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {width}},
                                   .observation_high = 100.0,
                                   .observation_low = -100.0,
                                   .n_actions = 2};
    psi_cluster_options options = psi_cluster_defaults();
    psi_collector *collector;
    psi_trajectories *data;
    psi_run *run;
    base_random random = base_random_stream(7, 0x646f, how);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < task->episodes; e++) {
        float seen[(LENGTH + 1) * PIXELS];
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        uint32_t door = base_random_below(&random, DOORS);
        size_t t = 0;
        bool over = false;
        for (;; t++) {
            for (size_t w = 0; w < width; w++) {
                const double signal = how == LINE ? 14.0 * door : w == 5 ? 14.0 * (door % 2) : 0.0;
                seen[t * width + w] = (float)(signal + base_random_normal(&random));
            }
            if (t == LENGTH || over) break;
            actions[t] = (int32_t)base_random_below(&random, 2);
            const double pay = door % 2 ? task->pay : task->other;
            over = actions[t] == 0 && pay != 0.0 && base_random_uniform(&random) < task->fall;
            rewards[t] = over ? pay : actions[t] == 1 ? 0.25 : 0.0;
            if (actions[t] == 0) door = base_random_below(&random, DOORS);
        }
        const psi_episode episode = {.length = t,
                                     .observations = seen,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .terminated = over,
                                     .truncated = !over};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    options.representation_steps = 1;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &run));
    psi_trajectories_free(ctx, data);
    return run;
}

// Few falls: the data do not say which doors they belong to, and nobody may be sure that all are
// one.
static void rare_falls_are_not_overlooked(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const doors task = {.episodes = 200, .fall = 0.05, .pay = -1.0};
    for (look how = 0; how < LOOKS; how++) {
        psi_run *run = cluster_doors(ctx, &task, how);
        assert_true(run->n_latent == 3 || run->verdict == PSI_VERDICT_UNDETERMINED);
        psi_run_free(ctx, run);
    }
    psi_ctx_free(ctx);
}

// Doors that are all the same are one latent state, and with enough of them that is certain.
static void doors_that_are_alike_are_one(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const doors task = {.episodes = 400, .fall = 1.0, .pay = -1.0, .other = -1.0};
    for (look how = 0; how < LOOKS; how++) {
        psi_run *run = cluster_doors(ctx, &task, how);
        assert_int_equal(run->n_latent, 2);
        assert_int_equal(run->verdict, PSI_VERDICT_CERTAIN);
        psi_run_free(ctx, run);
    }
    psi_ctx_free(ctx);
}

// Every second fall pays 1.1 in the place of 1: whether there is a fall varies by more than that,
// what one pays does not vary at all.
static void a_coin_does_not_hide_what_is_paid(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const doors task = {.episodes = 300, .fall = 0.5, .pay = 1.1, .other = 1.0};
    psi_run *run = cluster_doors(ctx, &task, LINE);
    assert_int_equal(run->n_latent, 3);
    psi_run_free(ctx, run);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rare_falls_are_not_overlooked),
        cmocka_unit_test(doors_that_are_alike_are_one),
        cmocka_unit_test(a_coin_does_not_hide_what_is_paid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
