#include "files.h"
#include "fixture.h"

#include <unistd.h>

static const char METADATA[] =
    "{\"total_episodes\": 3, \"action_space\": \"{\\\"type\\\": \\\"Discrete\\\", "
    "\\\"dtype\\\": \\\"int64\\\", \\\"start\\\": %d, \\\"n\\\": %d}\"}";

static void write_metadata(int start, int n)
{
    char text[512];
    snprintf(text, sizeof text, METADATA, start, n);
    test_put_text(test_path(folder, "metadata.json"), text);
}

static const char *sample(test_minari how)
{
    const char *path = test_path(folder, "main_data.hdf5");
    test_minari_write(path, &how);
    return path;
}

static void read_and_check(const char *path, size_t n_actions)
{
    for (size_t limit = 0; limit < 2; limit++) {
        psi_trajectories *data;
        const psi_read_options options = {.size = sizeof options, .memory_limit = limit};
        assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
        assert_int_equal(psi_observations_data(data->observations) == NULL, limit == 1);
        assert_int_equal(data->n_actions, n_actions);
        assert_null(data->latent_states);
        test_minari_check(ctx, data);
        psi_trajectories_free(ctx, data);
    }
}

static void test_file_and_folders(void **state)
{
    (void)state;
    write_metadata(0, 7);
    const char *path = sample((test_minari){0});
    read_and_check(path, 7);
    read_and_check(folder, 7); // like <root>/data
    char command[4096];
    snprintf(command, sizeof command,
             "cd '%s' && mkdir data && mv metadata.json main_data.hdf5 data", folder);
    assert_int_equal(system(command), 0);
    read_and_check(folder, 7); // like <root>
}

static void test_every_layout(void **state)
{
    (void)state;
    write_metadata(0, 3);
    static const hsize_t chunks[][3] = {{1, 2, 3}, {2, 2, 3}, {5, 2, 3}, {1, 1, 1},
                                        {2, 1, 2}, {3, 2, 2}, {4, 1, 3}};
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        for (int deflate = 0; deflate < 2; deflate++) {
            // chunks may not be longer than the array, the shortest of which has three rows
            if (chunks[i][0] > 3) continue;
            read_and_check(sample((test_minari){.layout = {chunks[i], deflate}}), 3);
        }
    }
}

static void test_action_space_that_does_not_start_at_0(void **state)
{
    (void)state;
    for (int start = -4; start <= 4; start += 4) {
        write_metadata(start, 5);
        read_and_check(sample((test_minari){.start = start}), 5);
    }
    // ids outside of the space
    write_metadata(1, 3);
    test_refused(ctx, sample((test_minari){.start = 0}), NULL, PSI_EDATA, "episode_0/actions",
                 "0 at step 0");
    write_metadata(0, 2);
    test_refused(ctx, sample((test_minari){.start = 0}), NULL, PSI_EDATA, "episode 1, actions",
                 "2 actions 0 … 1");
}

static void test_without_metadata_actions_are_counted_with_a_finding(void **state)
{
    (void)state;
    psi_trajectories *data;
    psi_summary *summary;
    assert_ok(ctx, psi_trajectories_read(ctx, sample((test_minari){0}), NULL, &data));
    assert_int_equal(data->n_actions, 3);
    assert_ok(ctx, psi_trajectories_summary(ctx, data, &summary));
    assert_int_equal(summary->n_problems, 1);
    assert_non_null(strstr(summary->problems[0], "how many actions"));
    psi_summary_free(ctx, summary);
    psi_trajectories_free(ctx, data);
}

static void test_latent_states(void **state)
{
    (void)state;
    psi_trajectories *data;
    assert_ok(ctx, psi_trajectories_read(ctx, sample((test_minari){.latent = true}), NULL, &data));
    for (size_t i = 0; i < TEST_STATES; i++) assert_int_equal(data->latent_states[i], i % 4);
    psi_trajectories_free(ctx, data);
}

static void test_dict_observations(void **state)
{
    (void)state;
    const char *path = sample((test_minari){.observations = "observations/inner/image"});
    psi_trajectories *data;
    assert_ok(ctx, psi_trajectories_read(ctx, path, NULL, &data)); // the only one needs no choice
    test_minari_check(ctx, data);
    psi_trajectories_free(ctx, data);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    test_h5_put(file, "episode_0/observations/colour", H5T_NATIVE_INT64, 1, (hsize_t[]){3},
                (int64_t[]){1, 2, 3}, (test_layout){0});
    H5Fclose(file);
    test_refused(ctx, path, NULL, PSI_EUSAGE, "colour", "inner/image");
    test_refused(ctx, path, "shape", PSI_EUSAGE, "colour", "inner/image");
    test_refused(ctx, path, "inner", PSI_EUSAGE, "colour", "inner/image");
    const psi_read_options options = {.size = sizeof options, .observation_key = "inner/image"};
    assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
    test_minari_check(ctx, data);
    psi_trajectories_free(ctx, data);
    test_refused(ctx, sample((test_minari){0}), "image", PSI_EUSAGE, "one array", "image");
}

static void test_lengths_that_do_not_agree(void **state)
{
    (void)state;
    test_refused(ctx, sample((test_minari){.episode = 1, .observations_less = 1}), NULL, PSI_EDATA,
                 "episode 1", "last observation is missing");
    test_refused(ctx, sample((test_minari){.episode = 2, .observations_less = 2}), NULL, PSI_EDATA,
                 "episode 2", "3 observations for 4 steps");
    test_refused(ctx, sample((test_minari){.episode = 1, .actions_less = 1}), NULL, PSI_EDATA,
                 "episode_1/actions has 2 rows", "there are 3 rewards");
    test_refused(ctx, sample((test_minari){.episode = 2, .actions_less = 1, .rewards_less = 1}),
                 NULL, PSI_EDATA, "episode 2", "terminations: 4 values for 3 steps");
}

static void test_values_that_cannot_be(void **state)
{
    (void)state;
    test_refused(ctx, sample((test_minari){.episode = 1, .reward = strtod("nan", NULL)}), NULL,
                 PSI_EDATA, "episode 1, rewards", "nan");
    test_refused(ctx, sample((test_minari){.episode = 2, .reward = strtod("inf", NULL)}), NULL,
                 PSI_EDATA, "episode 2, rewards", "inf");
    test_refused(ctx, sample((test_minari){.episode = 1, .action = 0.5}), NULL, PSI_EDATA,
                 "episode_1/actions", "0.5 at step 0 is not a whole number");
    test_refused(ctx, sample((test_minari){.episode = 1, .early_end = true}), NULL, PSI_EDATA,
                 "episode 1, terminations", "step 0");
}

static void test_ends(void **state)
{
    (void)state;
    psi_trajectories *data;
    psi_summary *summary;
    write_metadata(0, 3);
    assert_ok(ctx, psi_trajectories_read(ctx, sample((test_minari){.episode = 2, .no_end = true}),
                                         NULL, &data));
    assert_int_equal(data->terminated[2], 0);
    assert_int_equal(data->truncated[2], 1); // only a terminated episode ends in a terminal state
    assert_ok(ctx, psi_trajectories_summary(ctx, data, &summary));
    assert_int_equal(summary->n_problems, 1);
    assert_non_null(strstr(summary->problems[0], "1 episodes are neither"));
    psi_summary_free(ctx, summary);
    psi_trajectories_free(ctx, data);
    assert_ok(ctx, psi_trajectories_read(
                       ctx, sample((test_minari){.episode = 2, .both_ends = true}), NULL, &data));
    assert_int_equal(data->terminated[2], 1);
    assert_int_equal(data->truncated[2], 1);
    assert_ok(ctx, psi_trajectories_summary(ctx, data, &summary));
    assert_non_null(strstr(summary->problems[0], "1 episodes are both"));
    psi_summary_free(ctx, summary);
    psi_trajectories_free(ctx, data);
}

static void test_metadata_that_contradicts(void **state)
{
    (void)state;
    const char *path = sample((test_minari){0});
    const char *metadata = test_path(folder, "metadata.json");
    psi_trajectories *data;
    test_put_text(metadata, "{\"total_episodes\": 4}");
    assert_status(ctx, psi_trajectories_read(ctx, path, NULL, &data), PSI_EDATA);
    test_assert_error_says(ctx, "total_episodes is 4");
    test_put_text(metadata, "{\"action_space\": \"{\\\"type\\\": \\\"Box\\\"}\"}");
    assert_status(ctx, psi_trajectories_read(ctx, path, NULL, &data), PSI_EUNSUPPORTED);
    test_assert_error_says(ctx, "Box");
    test_put_text(metadata, "{\"action_space\": \"{\"}");
    assert_status(ctx, psi_trajectories_read(ctx, path, NULL, &data), PSI_EFORMAT);
    test_put_text(metadata, "[");
    assert_status(ctx, psi_trajectories_read(ctx, path, NULL, &data), PSI_EFORMAT);
    remove(path);
    test_put_text(metadata, "{\"data_format\": \"arrow\"}");
    assert_status(ctx, psi_trajectories_read(ctx, folder, NULL, &data), PSI_EUNSUPPORTED);
    test_assert_error_says(ctx, "arrow");
    remove(metadata);
    assert_status(ctx, psi_trajectories_read(ctx, folder, NULL, &data), PSI_EFORMAT);
}

static void test_an_episode_that_is_missing(void **state)
{
    (void)state;
    const char *path = sample((test_minari){0});
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Lmove(file, "episode_1", file, "episode_9", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    test_refused(ctx, path, NULL, PSI_EDATA, "episode 1 is missing", "3 episodes");
}

static void test_a_file_that_ends_too_early(void **state)
{
    (void)state;
    const char *path = sample((test_minari){0});
    psi_trajectories *data;
    for (int part = 0; part < 16; part++) {
        sample((test_minari){0});
        FILE *file = fopen(path, "r+b");
        fseek(file, 0, SEEK_END);
        const long size = ftell(file) * part / 16;
        assert_int_equal(ftruncate(fileno(file), size), 0);
        fclose(file);
        assert_true(psi_trajectories_read(ctx, path, NULL, &data) != PSI_OK);
        assert_null(data);
    }
}

// The file shrinks after it was opened: a status, not a signal.
static void test_a_file_that_is_cut_while_it_is_read(void **state)
{
    (void)state;
    const char *path = sample((test_minari){0});
    psi_trajectories *data;
    const psi_read_options options = {.size = sizeof options, .memory_limit = 1};
    assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
    assert_int_equal(truncate(path, 100), 0);
    uint8_t row[TEST_ROW];
    assert_status(ctx, psi_observations_gather(ctx, data->observations, &(uint64_t){5}, 1, row),
                  PSI_EIO);
    assert_status(ctx, psi_observations_gather(ctx, data->observations, &(uint64_t){12}, 1, row),
                  PSI_ESHAPE);
    psi_trajectories_free(ctx, data);
}

static void test_allocation_faults(void **state)
{
    (void)state;
    write_metadata(0, 3);
    test_read_sweep(sample((test_minari){.latent = true}), NULL);
    static const hsize_t chunk[3] = {2, 1, 2};
    test_read_sweep(sample((test_minari){.layout = {chunk, 0}}), NULL);
    test_read_sweep(sample((test_minari){.layout = {chunk, 1}}), NULL);
    test_read_sweep(sample((test_minari){.observations = "observations/a/b"}), "a/b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(file_and_folders),
        TEST(every_layout),
        TEST(action_space_that_does_not_start_at_0),
        TEST(without_metadata_actions_are_counted_with_a_finding),
        TEST(latent_states),
        TEST(dict_observations),
        TEST(lengths_that_do_not_agree),
        TEST(values_that_cannot_be),
        TEST(ends),
        TEST(metadata_that_contradicts),
        TEST(an_episode_that_is_missing),
        TEST(a_file_that_ends_too_early),
        TEST(a_file_that_is_cut_while_it_is_read),
        TEST(allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
