// Data that nobody would call a good data set: a sentence or a sensible answer, with tables and
// with networks, in bounded time and memory.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 3, MOST = 64 };

// A little world: `places` observations in a ring, action 0 stays, any other goes on to the next
// one; going on from the last one is rewarded.
typedef struct world {
    size_t places, actions, episodes, length;
    double reward;   // for going round once
    bool terminates; // at the end of every episode
    bool every_reward_differs, every_look_differs;
    double scale;     // of the observations; 0: 1
    double poison;    // a value put into one observation; 0: none
    size_t poison_at; // … this one of the last episode
} world;

static psi_trajectories *make(psi_ctx *ctx, const world *in)
{
    psi_collector *collector;
    psi_trajectories *data;
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT64,
                                   .observation_shape = {1, {WIDTH}},
                                   .n_actions = in->actions};
    base_random random = base_random_stream(5, 0, 0);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < in->episodes; e++) {
        double observations[(MOST + 1) * WIDTH], rewards[MOST];
        int32_t actions[MOST];
        size_t place = 0;
        for (size_t t = 0; t <= in->length; t++) {
            double *o = observations + t * WIDTH;
            o[0] = (double)place * (in->scale > 0.0 ? in->scale : 1.0);
            o[1] = in->every_look_differs ? base_random_normal(&random) : 0.0;
            o[2] = 7.0; // the same for ever
            if (in->poison != 0.0 && e + 1 == in->episodes && t == in->poison_at) {
                o[1] = in->poison;
            }
            if (t == in->length) break;
            actions[t] = (int32_t)base_random_below(&random, (uint32_t)in->actions);
            const bool goes_on = actions[t] > 0 || in->actions == 1;
            const bool round = goes_on && place + 1 >= in->places;
            rewards[t] = in->every_reward_differs ? base_random_uniform(&random)
                         : round                  ? in->reward
                                                  : 0.0;
            place = goes_on ? (round ? 0 : place + 1) : place;
        }
        const psi_episode episode = {.length = in->length,
                                     .observations = observations,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .terminated = in->terminates,
                                     .truncated = !in->terminates};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static psi_cluster_options quick(psi_approximator approximator)
{
    psi_cluster_options options = psi_cluster_defaults();
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    options.approximator = approximator;
    options.trunk_steps = options.representation_steps = 200;
    options.head_steps = 100;
    options.hidden = 30; // not a multiple of four
    options.max_refinements = 8;
    return options;
}

static const psi_approximator BOTH[] = {PSI_APPROXIMATOR_TABLE, PSI_APPROXIMATOR_MLP};

// Clusters, and takes the answer through a run folder as the command does.
static psi_status cluster(psi_ctx *ctx, const psi_trajectories *data, psi_cluster_options options,
                          size_t *n_latent)
{
    psi_status status = PSI_OK;
    psi_run *found = NULL, *read = NULL;
    char *folder = test_folder();
    const char *path = test_path(folder, "run");
    *n_latent = 0;
    TRY(test_cluster_into(ctx, path, PSI_FOLDER_NEW, data, &options, &found));
    TRY(psi_run_load(ctx, path, &read));
    *n_latent = read->n_latent;
done:
    psi_run_free(ctx, read);
    psi_run_free(ctx, found);
    test_folder_free(folder);
    return status;
}

typedef struct expectation {
    const char *name;
    world in;
    psi_status status;
    size_t least, most;   // latent states, if there is an answer
    const char *sentence; // else
} expectation;

static void odd_data_get_an_answer(void **state)
{
    (void)state;
    const world usual = {.places = 3, .actions = 2, .episodes = 20, .length = 20, .reward = 1.0};
    world one_action = usual, one_episode = usual, two_episodes = usual, one_place = usual,
          short_ones = usual, ends_at_once = usual, many_rewards = usual, large = usual,
          small = usual, large_rewards = usual, small_rewards = usual, one_step = usual,
          constant = usual, nan = usual, infinite = usual, late_nan = usual, too_large = usual;
    one_action.actions = 1;
    one_episode.episodes = 1;
    one_episode.length = 60;
    two_episodes.episodes = 2;
    one_place.places = 1;
    short_ones.length = 1;
    short_ones.places = 1;
    short_ones.episodes = 200;
    ends_at_once = short_ones;
    ends_at_once.terminates = true;
    many_rewards.every_reward_differs = true;
    large.scale = 1e30;
    small.scale = 1e-30;
    large_rewards.reward = 1e300;
    small_rewards.reward = 1e-300;
    one_step.episodes = 1;
    one_step.length = 1;
    constant.reward = 0.0;
    nan.poison = (double)NAN;
    infinite.poison = (double)INFINITY;
    late_nan.episodes = 300; // one of 6,300 observations
    late_nan.poison = (double)NAN;
    late_nan.poison_at = 14;
    too_large.poison = 1e300; // no float
    const expectation all[] = {
        {"as usual", usual, PSI_OK, 2, 4, NULL},
        {"one action", one_action, PSI_OK, 2, 4, NULL},
        {"one episode", one_episode, PSI_OK, 2, 4, NULL},
        {"two episodes", two_episodes, PSI_OK, 2, 4, NULL},
        {"all states identical", one_place, PSI_OK, 1, 1, NULL},
        {"episodes of one step", short_ones, PSI_OK, 1, 1, NULL},
        {"episodes of one step that terminate", ends_at_once, PSI_OK, 2, 2, NULL},
        {"more rewards than states", many_rewards, PSI_OK, 1, 30, NULL},
        {"large observations", large, PSI_OK, 2, 4, NULL},
        {"small observations", small, PSI_OK, 2, 4, NULL},
        {"large rewards", large_rewards, PSI_OK, 2, 4, NULL},
        {"small rewards", small_rewards, PSI_OK, 2, 4, NULL},
        {"a single step", one_step, PSI_EDATA, 0, 0, "nothing distinguishes"},
        {"constant reward", constant, PSI_EDATA, 0, 0, "all 400 rewards are 0"},
        {"not a number", nan, PSI_EDATA, 0, 0, "observation 399"},
        {"infinite", infinite, PSI_EDATA, 0, 0, "observation 399"},
        {"not a number, late", late_nan, PSI_EDATA, 0, 0, "observation 6293"},
        {"too large for a float", too_large, PSI_EDATA, 0, 0, "observation 399"},
    };
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        psi_trajectories *data = make(ctx, &all[i].in);
        for (size_t kind = 0; kind < 2; kind++) {
            size_t n_latent;
            const psi_status status = cluster(ctx, data, quick(BOTH[kind]), &n_latent);
            if (status != all[i].status || n_latent < all[i].least || n_latent > all[i].most) {
                fail_msg("%s, %s: %s, %zu latent states: %s", all[i].name,
                         psi_approximator_name(BOTH[kind]), psi_status_name(status), n_latent,
                         psi_error(ctx)->message);
            }
            if (status != PSI_OK) test_assert_error_says(ctx, all[i].sentence);
        }
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
}

// An allocator that refuses more than its limit: what needs more must say so before it asks.
typedef struct purse {
    size_t used, most, limit;
} purse;

static void *take(void *user, void *block, size_t size)
{
    purse *from = user;
    size_t *head = block ? (size_t *)block - 8 : NULL; // 64 bytes keep alignment
    const size_t before = head ? *head : 0;
    if (from->used - before + size > from->limit) return NULL;
    head = realloc(head, size + 64);
    if (!head) return NULL;
    from->used += size - before;
    from->most = from->used > from->most ? from->used : from->most;
    *head = size;
    return head + 8;
}

static void give_back(void *user, void *block)
{
    purse *to = user;
    if (!block) return;
    to->used -= ((size_t *)block)[-8];
    free((size_t *)block - 8);
}

static psi_ctx *thrifty_ctx(purse *from, size_t limit)
{
    psi_ctx *ctx;
    *from = (purse){.limit = limit};
    const psi_options options = {
        .size = sizeof options, .allocator = {take, give_back, from}, .threads = 1};
    assert_int_equal(psi_ctx_new(&options, &ctx), PSI_OK);
    return ctx;
}

static void too_many_latent_states_are_a_limit(void **state)
{
    (void)state;
    purse from;
    psi_ctx *ctx = thrifty_ctx(&from, (size_t)1 << 28);
    const world in = {.places = 3,
                      .actions = 4,
                      .episodes = 60,
                      .length = 40,
                      .every_look_differs = true,
                      .every_reward_differs = true};
    psi_trajectories *data = make(ctx, &in);
    for (size_t kind = 0; kind < 2; kind++) {
        psi_cluster_options options = quick(BOTH[kind]);
        options.epsilon_reward = options.epsilon_sf = 1e-9;
        options.filter = 0.0;
        options.max_latent_states = 300;
        size_t n_latent;
        const psi_status status = cluster(ctx, data, options, &n_latent);
        if (status == PSI_OK) { // once a refinement was done, it is the answer (test_late.c)
            assert_in_range(n_latent, 1, 300);
            continue;
        }
        assert_int_equal(status, PSI_ELIMIT);
        test_assert_error_says(ctx, "--max-latent-states");
    }
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
    assert_int_equal(from.used, 0);
}

static void too_many_actions_are_a_limit(void **state)
{
    (void)state;
    purse from;
    psi_ctx *ctx = thrifty_ctx(&from, (size_t)1 << 28);
    const world in = {.places = 3,
                      .actions = 1000000,
                      .episodes = 100,
                      .length = 60,
                      .reward = 1.0,
                      .every_look_differs = true};
    psi_trajectories *data = make(ctx, &in);
    for (size_t kind = 0; kind < 2; kind++) {
        size_t n_latent;
        assert_status(ctx, cluster(ctx, data, quick(BOTH[kind]), &n_latent), PSI_ELIMIT);
        test_assert_error_says(ctx, "1000000 actions");
    }
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
    assert_int_equal(from.used, 0);
}

static void nothing_at_all_is_said_to_be_nothing(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const uint64_t offsets[] = {0};
    psi_trajectories nothing = {.n_actions = 2, .episode_offsets = offsets};
    assert_ok(ctx, psi_observations_over(ctx, PSI_FLOAT32, &(psi_shape){1, {WIDTH}}, 0, "",
                                         &nothing.observations));
    for (size_t kind = 0; kind < 2; kind++) {
        size_t n_latent;
        assert_status(ctx, cluster(ctx, &nothing, quick(BOTH[kind]), &n_latent), PSI_EDATA);
        test_assert_error_says(ctx, "no transition");
    }
    psi_observations_free(ctx, nothing.observations);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_data_get_an_answer),
        cmocka_unit_test(too_many_latent_states_are_a_limit),
        cmocka_unit_test(too_many_actions_are_a_limit),
        cmocka_unit_test(nothing_at_all_is_said_to_be_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
