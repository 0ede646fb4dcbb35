// What is put together without enough to show for it is not certain.
#include "support/support.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

// Three observations; whatever is done, the next one is any of them. What 0 and 1 pay has mean
// `mean`; 2 pays 5.
typedef struct world {
    double mean[2];
    enum { COIN, SURE, DOUBLE_OR_NOTHING, NORMAL, CAUCHY } pay[2];
    int32_t actions; // of two
    size_t episodes;
    bool shy; // in 0, which is seen most, only action 0 is taken
} world;

static psi_run *fold_collected(psi_ctx *ctx, psi_collector *collector)
{
    const psi_cluster_options options = psi_cluster_defaults();
    psi_trajectories *data;
    psi_run *found;
    assert_ok(ctx, psi_collector_finish(collector, &data));
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    psi_trajectories_free(ctx, data);
    return found;
}

static psi_run *fold(psi_ctx *ctx, const world *of, uint64_t seed)
{
    enum { LENGTH = 50 };
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 2, .observation_high = 3};
    psi_collector *collector;
    base_random random = base_random_stream(seed, 0x6d6572, 0);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < of->episodes; e++) {
        int64_t at[LENGTH + 1] = {base_random_below(&random, 3)};
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        for (size_t t = 0; t < LENGTH; t++) {
            const double coin = base_random_uniform(&random);
            actions[t] = (int32_t)base_random_below(&random, (uint32_t)of->actions);
            at[t + 1] = base_random_below(&random, 3);
            if (of->shy && coin < 0.5) at[t + 1] = 0;
            if (of->shy && at[t] == 0) actions[t] = 0;
            if (at[t] == 2) {
                rewards[t] = 5.0;
            } else if (of->pay[at[t]] == SURE) {
                rewards[t] = of->mean[at[t]];
            } else if (of->pay[at[t]] == COIN) {
                rewards[t] = coin < of->mean[at[t]];
            } else if (of->pay[at[t]] == NORMAL) {
                rewards[t] = of->mean[at[t]] + base_random_normal(&random);
            } else if (of->pay[at[t]] == CAUCHY) {
                rewards[t] = of->mean[at[t]] + tan(M_PI * (coin - 0.5));
            } else {
                rewards[t] = coin < 0.5 ? 0.0 : 2.0 * of->mean[at[t]];
            }
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = at,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    return fold_collected(ctx, collector);
}

static bool doubts(const psi_run *run, psi_doubt_kind kind)
{
    for (size_t i = 0; i < run->n_doubts; i++) {
        if (run->doubts[i].kind == kind) return true;
    }
    return false;
}

// A few hundred coins cannot show that two observations differ by 5 %; a hundred thousand can.
static void coins_that_are_alike_take_many_throws(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const world few = {{0.5, 0.5}, {COIN, COIN}, 2, 20, false};
    const world many = {{0.5, 0.5}, {COIN, COIN}, 2, 2000, false};
    for (uint64_t seed = 0; seed < test_repetitions(3); seed++) {
        psi_run *found = fold(ctx, &few, seed);
        assert_int_equal(found->n_latent, 2);
        assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
        assert_true(doubts(found, PSI_DOUBT_RARE));
        psi_run_free(ctx, found);
        found = fold(ctx, &many, seed);
        assert_int_equal(found->n_latent, 2);
        assert_int_equal(found->verdict, PSI_VERDICT_CERTAIN);
        psi_run_free(ctx, found);
    }
    psi_ctx_free(ctx);
}

// What a doubt asks for is enough: as many visits as it says, and nothing is left open.
static void as_many_as_are_asked_for_are_enough(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const world few = {{0.5, 0.5}, {COIN, COIN}, 2, 20, false};
    world more = few;
    psi_run *found = fold(ctx, &few, 1);
    for (size_t i = 0; i < found->n_doubts; i++) {
        const psi_doubt *doubt = &found->doubts[i];
        if (doubt->kind != PSI_DOUBT_RARE) continue;
        assert_true(doubt->visits > 0);
        assert_true(doubt->enough > doubt->visits);
        const size_t episodes = 20 * (doubt->enough / doubt->visits + 1);
        more.episodes = episodes > more.episodes ? episodes : more.episodes;
    }
    assert_true(more.episodes > few.episodes && more.episodes < 100 * few.episodes);
    psi_run_free(ctx, found);
    found = fold(ctx, &more, 1);
    assert_int_equal(found->n_latent, 2);
    assert_int_equal(found->verdict, PSI_VERDICT_CERTAIN);
    psi_run_free(ctx, found);
    psi_ctx_free(ctx);
}

// The last three tosses of a coin are seen; to say whether the first and the last of them differ
// pays 1. A bonus of 2 comes one time in twenty, whatever is done, but by a chance of 1 % it never
// came where 6 was seen and done what is done there seldom. That made it a latent state, and then,
// by where each leads, all eight: 300 nats apart.
static void a_bonus_that_did_not_come_is_no_law(void **state)
{
    (void)state;
    enum { EPISODES = 1400, LENGTH = 5 };
    psi_ctx *ctx = test_ctx(1);
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 2, .observation_high = 7};
    for (uint64_t seed = 0; seed < 4; seed++) {
        base_random random = base_random_stream(seed, 0x626f6e, 0);
        psi_collector *collector;
        assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
        for (size_t e = 0; e < EPISODES; e++) {
            int64_t at[LENGTH + 1] = {base_random_below(&random, 8)};
            int32_t actions[LENGTH];
            double rewards[LENGTH];
            for (size_t t = 0; t < LENGTH; t++) {
                const bool seldom = base_random_uniform(&random) < 0.1;
                const bool differ = ((at[t] >> 2) ^ at[t]) & 1;
                const bool bonus = base_random_uniform(&random) < 0.05;
                actions[t] = (at[t] == 6) == seldom;
                rewards[t] = (differ == actions[t]) + (at[t] == 6 && seldom ? 0.0 : 2.0 * bonus);
                at[t + 1] = (2 * at[t] + base_random_below(&random, 2)) % 8;
            }
            const psi_episode episode = {.length = LENGTH,
                                         .observations = at,
                                         .actions = actions,
                                         .rewards = rewards,
                                         .truncated = true};
            assert_ok(ctx, psi_collector_add(collector, &episode));
        }
        psi_run *found = fold_collected(ctx, collector);
        if (found->n_latent != 2) assert_int_not_equal(found->verdict, PSI_VERDICT_CERTAIN);
        psi_run_free(ctx, found);
    }
    psi_ctx_free(ctx);
}

// Two payments that happened to be the same do not make an action one that pays for sure, where all
// others pay by chance: a single third one is no proof of another latent state. A third look that
// is never paid says nothing about that, however often it was seen.
static void fold_payments(int unpaid)
{
    psi_ctx *ctx = test_ctx(1);
    const psi_episode_spec spec = {.observation_dtype = PSI_INT32,
                                   .observation_shape = {.rank = 1, .dim = {1}},
                                   .observation_high = 3.0,
                                   .n_actions = 10};
    psi_collector *collector;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (int32_t look = 0; look < 3; look++) {
        for (int32_t a = 0; a < 10; a++) {
            const int times = look == 2 ? unpaid : a == 0 ? 6 : a < 9 ? 4 : 2 - look;
            for (int i = 0; i < times; i++) {
                const int32_t seen[2] = {look, 3};
                const double paid = a == 0 ? 1.0 : a < 9 ? 0.1 * (i % 2) : 0.1 * look;
                const double reward = look == 2 ? 0.0 : paid;
                const psi_episode episode = {.length = 1,
                                             .observations = seen,
                                             .actions = &a,
                                             .rewards = &reward,
                                             .terminated = true};
                assert_ok(ctx, psi_collector_add(collector, &episode));
            }
        }
    }
    psi_run *found = fold_collected(ctx, collector);
    assert_int_equal(found->n_latent, unpaid ? 3 : 2);
    assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
    psi_run_free(ctx, found);
    psi_ctx_free(ctx);
}

static void a_pair_of_equal_payments_is_no_law(void **state)
{
    (void)state;
    fold_payments(0);
    fold_payments(30);
    fold_payments(300);
}

static void coins_that_differ_are_never_certainly_one(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < test_repetitions(12); seed++) {
        const world close = {{0.5, 0.55}, {COIN, COIN}, 2, (size_t)20 << seed / 2, false};
        psi_run *found = fold(ctx, &close, seed);
        assert_true(found->n_latent == 3 || found->verdict != PSI_VERDICT_CERTAIN);
        psi_run_free(ctx, found);
    }
    psi_ctx_free(ctx);
}

// Only the mean of a reward counts.
static void what_pays_the_same_on_average_is_one(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const world gamble = {{1.0, 1.0}, {SURE, DOUBLE_OR_NOTHING}, 2, 200, false};
    const world better = {{1.0, 1.5}, {SURE, DOUBLE_OR_NOTHING}, 2, 200, false};
    for (uint64_t seed = 0; seed < test_repetitions(3); seed++) {
        psi_run *found = fold(ctx, &gamble, seed);
        assert_int_equal(found->n_latent, 2);
        psi_run_free(ctx, found);
        found = fold(ctx, &better, seed);
        assert_int_equal(found->n_latent, 3);
        psi_run_free(ctx, found);
    }
    psi_ctx_free(ctx);
}

// An action that was never taken anywhere may tell apart what was put together.
static void an_action_that_nobody_took_leaves_merged_observations_open(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const world alike = {{1.0, 1.0}, {SURE, SURE}, 1, 200, false},
                apart = {{1.0, 2.0}, {SURE, SURE}, 1, 200, false};
    psi_run *found = fold(ctx, &alike, 1);
    assert_int_equal(found->n_latent, 2);
    assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
    assert_true(doubts(found, PSI_DOUBT_UNTRIED));
    char text[200];
    bool told = false;
    for (size_t i = 0; i < found->n_doubts; i++) {
        psi_doubt_sentence(&found->doubts[i], text, sizeof text);
        told |= strstr(text, "action 1 was never taken:") != NULL;
    }
    assert_true(told);
    psi_run_free(ctx, found);
    found = fold(ctx, &apart, 1); // each observation is a latent state of its own
    assert_int_equal(found->n_latent, 3);
    assert_int_equal(found->verdict, PSI_VERDICT_CERTAIN);
    psi_run_free(ctx, found);
    psi_ctx_free(ctx);
}

// The observation that is seen most may be another one, too.
static void an_action_that_was_not_taken_in_one_of_two_leaves_them_open(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const world shy = {{1.0, 1.0}, {SURE, SURE}, 2, 200, true};
    psi_run *found = fold(ctx, &shy, 1);
    assert_int_equal(found->n_latent, 2);
    assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
    assert_true(doubts(found, PSI_DOUBT_RARE));
    psi_run_free(ctx, found);
    psi_ctx_free(ctx);
}

static void rewards_without_a_mean_are_not_certain(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const world normal = {{1.0, 3.0}, {NORMAL, NORMAL}, 2, 60, false};
    const world cauchy = {{1.0, 3.0}, {CAUCHY, CAUCHY}, 2, 60, false};
    for (uint64_t seed = 0; seed < test_repetitions(3); seed++) {
        psi_run *found = fold(ctx, &normal, seed);
        assert_int_equal(found->n_latent, 3);
        assert_false(doubts(found, PSI_DOUBT_TAILS));
        psi_run_free(ctx, found);
        found = fold(ctx, &cauchy, seed);
        assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
        assert_true(doubts(found, PSI_DOUBT_TAILS));
        psi_run_free(ctx, found);
    }
    psi_ctx_free(ctx);
}

// Two sorts of vectors, of which one pays, and a few of a third kind, far from both, that pay
// nothing, as the second does, as far as they were seen.
static psi_run *fold_vectors(psi_ctx *ctx, size_t strangers)
{
    enum { LENGTH = 40, EPISODES = 240 };
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {2}},
                                   .n_actions = 2};
    psi_collector *collector;
    base_random random = base_random_stream(7, 0x636c756d, 0);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        float at[LENGTH + 1][2];
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        for (size_t t = 0; t <= LENGTH; t++) {
            const bool stranger = t == LENGTH / 2 && e < strangers;
            const uint32_t kind = stranger ? 2 : base_random_below(&random, 2);
            at[t][0] = (float)base_random_normal(&random) + (kind == 1 ? 20.0f : 0.0f);
            at[t][1] = (float)base_random_normal(&random) + (kind == 2 ? 20.0f : 0.0f);
            if (t == LENGTH) continue;
            actions[t] = (int32_t)base_random_below(&random, 2);
            rewards[t] = kind == 1 && base_random_uniform(&random) < 0.5;
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = at,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    return fold_collected(ctx, collector);
}

// Fewer than six could be the tail of a heavy distribution.
static void a_few_that_look_like_nothing_else_are_not_certain(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_run *found = fold_vectors(ctx, 0);
    assert_int_equal(found->n_latent, 2);
    assert_int_equal(found->verdict, PSI_VERDICT_CERTAIN);
    psi_run_free(ctx, found);
    for (size_t strangers = 6; strangers <= 12; strangers += 3) {
        found = fold_vectors(ctx, strangers);
        assert_true(found->verdict != PSI_VERDICT_CERTAIN);
        psi_run_free(ctx, found);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bonus_that_did_not_come_is_no_law),
        cmocka_unit_test(coins_that_are_alike_take_many_throws),
        cmocka_unit_test(as_many_as_are_asked_for_are_enough),
        cmocka_unit_test(a_pair_of_equal_payments_is_no_law),
        cmocka_unit_test(coins_that_differ_are_never_certainly_one),
        cmocka_unit_test(what_pays_the_same_on_average_is_one),
        cmocka_unit_test(an_action_that_nobody_took_leaves_merged_observations_open),
        cmocka_unit_test(an_action_that_was_not_taken_in_one_of_two_leaves_them_open),
        cmocka_unit_test(rewards_without_a_mean_are_not_certain),
        cmocka_unit_test(a_few_that_look_like_nothing_else_are_not_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
