// A few observations that look like nothing else: are they doubted where too little followed them?
#include "support/support.h"

#include "base/random.h"

enum { LENGTH = 40, EPISODES = 60, PLACES = 4 };

// Places 0 … 3 in a row, seen with a deviation of 0.05: action 0 goes left, 1 goes right, and what
// is done in the last one pays. So many episodes begin in a place that looks like the next one
// behind the last, and does what the last one does; but only action 0 was taken there.
static psi_trajectories *walk(psi_ctx *ctx, size_t strangers)
{
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {1}},
                                   .observation_high = 5.0,
                                   .n_actions = 2};
    psi_collector *collector;
    psi_trajectories *data;
    base_random random = base_random_stream(0, 0x636c6d, 0);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        float seen[LENGTH + 1];
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        uint32_t place = base_random_below(&random, PLACES);
        const bool strange = e < strangers;
        if (strange) place = PLACES - 1;
        for (size_t t = 0; t <= LENGTH; t++) {
            const float at = strange && t == 0 ? (float)PLACES : (float)place;
            seen[t] = at + 0.05f * (float)base_random_normal(&random);
            if (t == LENGTH) break;
            actions[t] = strange && t == 0 ? 0 : (int32_t)base_random_below(&random, 2);
            rewards[t] = place == PLACES - 1;
            place += actions[t] == 1 ? place < PLACES - 1 : place > 0 ? UINT32_MAX : 0;
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = seen,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static void a_few_that_stand_apart_are_doubted(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t strangers = 0; strangers <= 4; strangers += 2) {
        psi_trajectories *data = walk(ctx, strangers);
        psi_cluster_options options = psi_cluster_defaults();
        psi_run *run;
        assert_ok(ctx, psi_cluster(ctx, data, &options, &run));
        assert_int_equal(run->n_latent, PLACES);
        assert_int_equal(run->verdict,
                         strangers == 0 ? PSI_VERDICT_CERTAIN : PSI_VERDICT_UNDETERMINED);
        psi_run_free(ctx, run);
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_that_stand_apart_are_doubted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
