#include "files.h"
#include "fixture.h"

// One test per trap that users of offline data have fallen into elsewhere.

static psi_trajectories *read_sample(test_minari how, size_t memory_limit)
{
    psi_trajectories *data;
    const char *path = test_path(folder, "main_data.hdf5");
    const psi_read_options options = {.size = sizeof options, .memory_limit = memory_limit};
    test_minari_write(path, &how);
    assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
    return data;
}

// (s, a, r) misaligned by one across episodes: every transition must lead to the next row of its
// own episode. Here observation i begins with the byte i, and the reward of step t is t / 10.
static void test_no_transition_crosses_an_episode(void **state)
{
    (void)state;
    psi_trajectories *data = read_sample((test_minari){0}, 0);
    const uint8_t *images = psi_observations_data(data->observations);
    size_t step = 0, row = 0;
    for (size_t e = 0; e < data->n_episodes; e++, row++) {
        for (size_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            assert_int_equal(images[psi_row(e, t) * TEST_ROW], row++);
            assert_int_equal(images[(psi_row(e, t) + 1) * TEST_ROW], row);
            assert_true(data->rewards[t] == (double)step++ / 10);
        }
    }
    assert_int_equal(row, data->n_observations);
    psi_trajectories_free(ctx, data);
}

// Final observation lost: an episode of L steps has L + 1 observations, or is refused.
static void test_the_final_observation_is_not_lost(void **state)
{
    (void)state;
    psi_trajectories *data = read_sample((test_minari){0}, 0);
    const uint8_t *images = psi_observations_data(data->observations);
    assert_int_equal(images[psi_row(0, data->episode_offsets[1]) * TEST_ROW], 2);
    assert_int_equal(images[psi_row(1, data->episode_offsets[2]) * TEST_ROW], 6);
    psi_trajectories_free(ctx, data);
    const char *path = test_path(folder, "main_data.hdf5");
    test_minari_write(path, &(test_minari){.episode = 2, .observations_less = 1});
    test_refused(ctx, path, NULL, PSI_EDATA, "episode 2", "the last observation is missing");
}

// Terminated and truncated confused: an episode that was cut off has not ended in a terminal state.
static void test_truncated_is_not_terminated(void **state)
{
    (void)state;
    psi_trajectories *data = read_sample((test_minari){0}, 0);
    for (size_t e = 0; e < 3; e++) {
        assert_int_equal(data->terminated[e], e != 1);
        assert_int_equal(data->truncated[e], e == 1);
    }
    psi_trajectories_free(ctx, data);
    data = read_sample((test_minari){.episode = 0, .no_end = true}, 0);
    assert_int_equal(data->terminated[0], 0);
    psi_trajectories_free(ctx, data);
}

// Action ids that never occur are counted all the same, if the action space has them.
static void test_actions_that_never_occur_count(void **state)
{
    (void)state;
    test_put_text(test_path(folder, "metadata.json"),
                  "{\"action_space\": \"{\\\"type\\\": \\\"Discrete\\\", \\\"n\\\": 6, "
                  "\\\"start\\\": 0}\"}");
    psi_trajectories *data = read_sample((test_minari){0}, 0);
    psi_summary *summary;
    assert_int_equal(data->n_actions, 6);
    assert_ok(ctx, psi_trajectories_summary(ctx, data, &summary));
    assert_int_equal(summary->n_actions, 6);
    assert_int_equal(summary->n_actions_never_taken, 3);
    static const uint64_t counts[] = {3, 3, 3, 0, 0, 0};
    assert_memory_equal(summary->action_counts, counts, sizeof counts);
    assert_non_null(strstr(summary->problems[0], "3 of 6 actions are never taken"));
    psi_summary_free(ctx, summary);
    psi_trajectories_free(ctx, data);
}

// Rewards of 64 bits keep all of them, through files and memory.
static void test_rewards_are_not_narrowed(void **state)
{
    (void)state;
    const double fine = 1.0 + 0x1p-52;
    psi_trajectories *data = read_sample((test_minari){.episode = 1, .reward = fine}, 0);
    assert_true(data->rewards[2] == fine);
    static const char *const names[] = {"set", "set.npz"};
    for (int i = 0; i < 2; i++) {
        const psi_episode_spec spec = {
            .observation_dtype = PSI_UINT8, .observation_high = 255, .n_actions = 1};
        const psi_episode episode = {.length = 1,
                                     .observations = "ab",
                                     .actions = (int32_t[]){0},
                                     .rewards = &fine,
                                     .terminated = true};
        psi_writer *writer;
        psi_trajectories *again;
        assert_ok(ctx, psi_writer_open(ctx, test_path(folder, names[i]), &spec, false, &writer));
        assert_ok(ctx, psi_writer_add(writer, &episode));
        assert_ok(ctx, psi_writer_commit(writer));
        assert_ok(ctx, psi_trajectories_read(ctx, test_path(folder, names[i]), NULL, &again));
        assert_true(again->rewards[0] == fine);
        psi_trajectories_free(ctx, again);
    }
    psi_trajectories_free(ctx, data);
}

// Observations and next observations are not stored twice: N + E rows, not 2 N.
static void test_observations_are_stored_once(void **state)
{
    (void)state;
    psi_trajectories *data = read_sample((test_minari){0}, 0);
    assert_int_equal(psi_observations_count(data->observations),
                     data->n_transitions + data->n_episodes);
    psi_trajectories_free(ctx, data);
}

// Images of bytes stay bytes.
static void test_images_stay_uint8(void **state)
{
    (void)state;
    psi_trajectories *data = read_sample((test_minari){0}, 0);
    psi_summary *summary;
    assert_int_equal(psi_observations_dtype(data->observations), PSI_UINT8);
    assert_int_equal(psi_observations_row_bytes(data->observations), TEST_ROW);
    assert_ok(ctx, psi_trajectories_summary(ctx, data, &summary));
    assert_int_equal(summary->observation_bytes, TEST_STATES * TEST_ROW);
    psi_summary_free(ctx, summary);
    psi_trajectories_free(ctx, data);
}

// Counts what is allocated at once, and the most of it.
typedef struct meter {
    size_t now, most;
} meter;

static void *meter_resize(void *user, void *ptr, size_t size)
{
    meter *all = user;
    size_t *block = realloc(ptr ? (size_t *)ptr - 2 : NULL, size + 16);
    if (!block) return NULL;
    all->now += size - (ptr ? block[0] : 0);
    if (all->now > all->most) all->most = all->now;
    block[0] = size;
    return block + 2;
}

static void meter_release(void *user, void *ptr)
{
    meter *all = user;
    if (!ptr) return;
    size_t *block = (size_t *)ptr - 2;
    all->now -= block[0];
    free(block);
}

// A data set larger than memory may be: it is written, opened and read without ever holding more
// than a batch. 64 MB of observations pass through less than 4 MB.
static void test_a_data_set_larger_than_memory(void **state)
{
    (void)state;
    enum { ROW = 1 << 15, LENGTH = 31, EPISODES = 64 };
    meter meter_now = {0};
    const psi_options options = {.size = sizeof options,
                                 .allocator = {meter_resize, meter_release, &meter_now},
                                 .threads = 2};
    static uint8_t images[(LENGTH + 1) * ROW];
    static const char *const names[] = {"set", "set.npz"};
    for (int i = 0; i < 2; i++) {
        psi_ctx *metered;
        psi_writer *writer;
        psi_trajectories *data;
        const char *path = test_path(folder, names[i]);
        assert_int_equal(psi_ctx_new(&options, &metered), PSI_OK);
        const psi_episode_spec spec = {.observation_dtype = PSI_UINT8,
                                       .observation_shape = {.rank = 1, .dim = {ROW}},
                                       .observation_high = 255,
                                       .n_actions = 2};
        assert_ok(metered, psi_writer_open(metered, path, &spec, false, &writer));
        for (int e = 0; e < EPISODES; e++) {
            int32_t actions[LENGTH] = {0};
            double rewards[LENGTH] = {1};
            memset(images, e, sizeof images);
            const psi_episode episode = {LENGTH, images, actions, rewards, NULL, true, false};
            assert_ok(metered, psi_writer_add(writer, &episode));
        }
        assert_ok(metered, psi_writer_commit(writer));
        const psi_read_options limit = {.size = sizeof limit, .memory_limit = 1 << 20};
        assert_ok(metered, psi_trajectories_read(metered, path, &limit, &data));
        assert_null(psi_observations_data(data->observations));
        for (uint64_t row = 0; row < data->n_observations; row += 32) {
            uint64_t rows[32];
            for (uint64_t k = 0; k < 32; k++) rows[k] = row + k;
            assert_ok(metered,
                      psi_observations_gather(metered, data->observations, rows, 32, images));
            assert_int_equal(images[0], row / (LENGTH + 1));
            assert_int_equal(images[32 * ROW - 1], (row + 31) / (LENGTH + 1));
        }
        psi_trajectories_free(metered, data);
        psi_ctx_free(metered);
    }
    assert_int_equal(meter_now.now, 0);
    if (meter_now.most > 4 << 20) fail_msg("%zu bytes were held", meter_now.most);
}

// No reward variation at all: a status for whoever wants to learn, a sentence for whoever looks.
static void test_rewards_without_variation(void **state)
{
    (void)state;
    const psi_episode_spec spec = {
        .observation_dtype = PSI_UINT8, .observation_high = 255, .n_actions = 2, .name = "flat"};
    for (int varies = 0; varies < 2; varies++) {
        const psi_episode episode = {.length = 3,
                                     .observations = "abcd",
                                     .actions = (int32_t[]){0, 1, 0},
                                     .rewards = (double[]){0.5, 0.5, varies ? 0.25 : 0.5},
                                     .terminated = true};
        psi_collector *collector;
        psi_trajectories *data;
        psi_summary *summary;
        assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
        assert_ok(ctx, psi_collector_add(collector, &episode));
        assert_ok(ctx, psi_collector_finish(collector, &data));
        assert_ok(ctx, psi_trajectories_summary(ctx, data, &summary));
        assert_int_equal(summary->n_problems, !varies);
        if (!varies) {
            assert_non_null(strstr(summary->problems[0], "Every reward is 0.5"));
        }
        psi_summary_free(ctx, summary);
        psi_trajectories_free(ctx, data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_transition_crosses_an_episode),
        TEST(the_final_observation_is_not_lost),
        TEST(truncated_is_not_terminated),
        TEST(actions_that_never_occur_count),
        TEST(rewards_are_not_narrowed),
        TEST(observations_are_stored_once),
        TEST(images_stay_uint8),
        TEST(a_data_set_larger_than_memory),
        TEST(rewards_without_variation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
