#include "files.h"
#include "fixture.h"

// Rows 0–3 terminate, 4–7 are cut off, 8 is cut off at once, 9–11 end with the file.
enum { ROWS = 12 };

typedef struct table {
    float observations[ROWS][2], next[ROWS][2];
    int64_t actions[ROWS];
    double rewards[ROWS];
    uint8_t terminals[ROWS], timeouts[ROWS];
} table;

static table make_table(void)
{
    table made = {0};
    for (int i = 0; i < ROWS; i++) {
        made.observations[i][0] = (float)i;
        made.observations[i][1] = -(float)i;
        made.next[i][0] = made.next[i][1] = 100 + (float)i;
        made.actions[i] = i % 4;
        made.rewards[i] = 0.1 * i;
    }
    made.terminals[3] = made.timeouts[7] = made.timeouts[8] = 1;
    return made;
}

typedef struct how {
    bool next, column, npz, stored, d3rlpy;
    hsize_t actions, terminals; // rows, if not all of them
} how;

static const char *write_hdf5(const table *made, how options)
{
    const char *path = test_path(folder, "flat.bin");
    const hid_t file = test_h5_create(path);
    const int rank = options.column ? 2 : 1;
    const hsize_t two[2] = {ROWS, 2}, one[2] = {ROWS, 1};
    const hsize_t actions[2] = {options.actions ? options.actions : ROWS, 1};
    const hsize_t terminals[2] = {options.terminals ? options.terminals : ROWS, 1};
    const hid_t truth = test_h5_truth();
    uint8_t ends[ROWS];
    for (int i = 0; i < ROWS; i++) ends[i] = made->terminals[i] | made->timeouts[i];
    test_h5_put(file, "observations", H5T_NATIVE_FLOAT, 2, two, made->observations,
                (test_layout){0});
    if (options.next) {
        test_h5_put(file, "next_observations", H5T_NATIVE_FLOAT, 2, two, made->next,
                    (test_layout){0});
    }
    test_h5_put(file, "actions", H5T_NATIVE_INT64, rank, actions, made->actions, (test_layout){0});
    test_h5_put(file, "rewards", H5T_NATIVE_DOUBLE, rank, one, made->rewards, (test_layout){0});
    test_h5_put(file, "terminals", truth, rank, terminals, made->terminals, (test_layout){0});
    if (options.d3rlpy) {
        test_h5_put(file, "episode_terminals", truth, rank, one, ends, (test_layout){0});
    } else {
        test_h5_put(file, "timeouts", truth, rank, one, made->timeouts, (test_layout){0});
    }
    H5Tclose(truth);
    H5Fclose(file);
    return path;
}

static const char *write_npz(const table *made, how options)
{
    const char *path = test_path(folder, "flat.bin");
    zip_t *zip = test_npz_create(path);
    test_npz_put(zip, "observations", "<f4", "(12, 2)", made->observations,
                 sizeof made->observations, false, 1);
    if (options.next) {
        test_npz_put(zip, "next_observations", "<f4", "(12, 2)", made->next, sizeof made->next,
                     false, 2);
    }
    test_npz_put(zip, "actions", "<i8", "(12,)", made->actions, sizeof made->actions, false, 1);
    test_npz_put(zip, "rewards", "<f8", "(12, 1)", made->rewards, sizeof made->rewards, false, 1);
    test_npz_put(zip, "terminals", "|b1", "(12,)", made->terminals, ROWS, false, 1);
    test_npz_put(zip, "timeouts", "|u1", "(12,)", made->timeouts, ROWS, false, 1);
    test_npz_finish(zip, options.stored);
    return path;
}

static void check_rows(const psi_trajectories *data, const float *expected, size_t n)
{
    assert_int_equal(data->n_observations, n);
    for (uint64_t i = 0; i < n; i++) {
        float row[2];
        assert_ok(ctx, psi_observations_gather(ctx, data->observations, &i, 1, row));
        if (row[0] != expected[i]) fail_msg("row %d is %g", (int)i, (double)row[0]);
    }
}

// Episodes of 4, 3 and 2 steps: the rows that have no successor only end an episode.
static void check(const char *path)
{
    static const float rows[] = {0, 1, 2, 3, 3, 4, 5, 6, 7, 9, 10, 11};
    static const int steps[] = {0, 1, 2, 3, 4, 5, 6, 9, 10};
    for (size_t limit = 0; limit < 2; limit++) {
        psi_trajectories *data;
        psi_summary *summary;
        const psi_read_options options = {.size = sizeof options, .memory_limit = limit};
        assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
        assert_int_equal(data->n_episodes, 3);
        assert_int_equal(data->n_transitions, 9);
        assert_int_equal(data->n_actions, 4);
        static const uint8_t terminated[] = {1, 0, 0}, missing[] = {1, 0, 0};
        for (int e = 0; e < 3; e++) {
            assert_int_equal(data->terminated[e], terminated[e]);
            assert_int_equal(data->truncated[e], !terminated[e]);
            assert_int_equal(data->final_missing[e], missing[e]);
        }
        for (int t = 0; t < 9; t++) {
            assert_int_equal(data->actions[t], steps[t] % 4);
            assert_true(data->rewards[t] == 0.1 * steps[t]);
        }
        check_rows(data, rows, 12);
        assert_ok(ctx, psi_trajectories_summary(ctx, data, &summary));
        assert_int_equal(summary->n_final_missing, 1);
        assert_int_equal(summary->n_problems, 4); // missing, dropped, left out, counted
        assert_non_null(strstr(summary->problems[0], "1 terminated episodes come without"));
        assert_non_null(strstr(summary->problems[1], "3 episodes were cut off"));
        assert_non_null(strstr(summary->problems[2], "1 episodes of a single row"));
        psi_summary_free(ctx, summary);
        psi_trajectories_free(ctx, data);
    }
}

static void test_d4rl(void **state)
{
    (void)state;
    const table made = make_table();
    check(write_hdf5(&made, (how){0}));
    check(write_hdf5(&made, (how){.column = true}));
}

static void test_d3rlpy_1(void **state)
{
    (void)state;
    const table made = make_table();
    check(write_hdf5(&made, (how){.d3rlpy = true}));
}

static void test_d4rl_names_in_npz(void **state)
{
    (void)state;
    const table made = make_table();
    check(write_npz(&made, (how){.stored = true}));
    check(write_npz(&made, (how){.stored = false}));
}

static void check_nothing_lost(const char *path)
{
    static const float rows[] = {0, 1, 2, 3, 103, 4, 5, 6, 7, 107, 8, 108, 9, 10, 11, 111};
    for (size_t limit = 0; limit < 2; limit++) {
        psi_trajectories *data;
        const psi_read_options options = {.size = sizeof options, .memory_limit = limit};
        assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
        assert_int_equal(data->n_episodes, 4);
        assert_int_equal(data->n_transitions, ROWS);
        for (int e = 0; e < 4; e++) assert_int_equal(data->final_missing[e], 0);
        for (int t = 0; t < ROWS; t++) assert_int_equal(data->actions[t], t % 4);
        check_rows(data, rows, 16);
        psi_trajectories_free(ctx, data);
    }
}

static void test_next_observations_lose_nothing(void **state)
{
    (void)state;
    const table made = make_table();
    check_nothing_lost(write_hdf5(&made, (how){.next = true}));
    check_nothing_lost(write_npz(&made, (how){.next = true}));
}

static void test_lengths_that_do_not_agree(void **state)
{
    (void)state;
    const table made = make_table();
    test_refused(ctx, write_hdf5(&made, (how){.actions = 11}), NULL, PSI_EDATA, "actions has 11",
                 "but there are 12 rewards");
    test_refused(ctx, write_hdf5(&made, (how){.terminals = 10}), NULL, PSI_EDATA,
                 "terminals has 10", "but there are 12 rewards");
}

static void test_values_that_cannot_be(void **state)
{
    (void)state;
    table made = make_table();
    made.rewards[5] = strtod("nan", NULL);
    test_refused(ctx, write_hdf5(&made, (how){0}), NULL, PSI_EDATA, "episode 1, rewards", "step 1");
    made = make_table();
    made.actions[2] = -1;
    test_refused(ctx, write_npz(&made, (how){0}), NULL, PSI_EDATA, "actions", "-1 at step 2");
    made = make_table();
    made.timeouts[2] = 2;
    test_refused(ctx, write_npz(&made, (how){0}), NULL, PSI_EDATA, "timeouts", "neither 0 nor 1");
}

static void test_a_file_of_something_else(void **state)
{
    (void)state;
    const char *path = test_path(folder, "other");
    const hid_t file = test_h5_create(path);
    test_h5_put(file, "weights", H5T_NATIVE_INT64, 1, (hsize_t[]){1}, &(int64_t){1},
                (test_layout){0});
    H5Fclose(file);
    test_refused(ctx, path, NULL, PSI_EFORMAT, "not in the layout", "weights");
    test_put_text(path, "some text that is longer than a signature");
    test_refused(ctx, path, NULL, PSI_EFORMAT, "neither", ".npz");
    test_put_text(path, "");
    test_refused(ctx, path, NULL, PSI_EFORMAT, "neither", ".npz");
    remove(path);
    test_refused(ctx, path, NULL, PSI_EIO, "cannot open", "No such file");
}

static void test_d3rlpy_2(void **state)
{
    (void)state;
    const char *path = test_path(folder, "d3");
    const hid_t file = test_h5_create(path), truth = test_h5_truth();
    const size_t lengths[] = {3, 4, 1};
    for (int e = 0, row = 0; e < 3; e++) {
        char name[32];
        uint8_t images[4], ended = e == 0;
        int64_t actions[4];
        float rewards[4];
        for (size_t t = 0; t < lengths[e]; t++, row++) {
            images[t] = (uint8_t)row;
            actions[t] = row % 2;
            rewards[t] = (float)row;
        }
        const hsize_t dims[2] = {lengths[e], 1};
        snprintf(name, sizeof name, "observations_%d", e);
        test_h5_put(file, name, H5T_NATIVE_UINT8, 2, dims, images, (test_layout){0});
        snprintf(name, sizeof name, "actions_%d", e);
        test_h5_put(file, name, H5T_NATIVE_INT64, 2, dims, actions, (test_layout){0});
        snprintf(name, sizeof name, "rewards_%d", e);
        test_h5_put(file, name, H5T_NATIVE_FLOAT, 2, dims, rewards, (test_layout){0});
        snprintf(name, sizeof name, "terminated_%d", e);
        test_h5_put(file, name, truth, 0, NULL, &ended, (test_layout){0});
    }
    test_h5_put(file, "num_episodes", H5T_NATIVE_INT64, 0, NULL, &(int64_t){3}, (test_layout){0});
    H5Tclose(truth);
    H5Fclose(file);
    static const uint8_t rows[] = {0, 1, 2, 2, 3, 4, 5, 6};
    static const double rewards[] = {0, 1, 2, 3, 4, 5};
    for (size_t limit = 0; limit < 2; limit++) {
        psi_trajectories *data;
        const psi_read_options options = {.size = sizeof options, .memory_limit = limit};
        assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
        assert_int_equal(data->n_episodes, 2);
        assert_int_equal(data->n_transitions, 6);
        assert_int_equal(data->final_missing[0], 1);
        assert_int_equal(data->final_missing[1], 0);
        assert_int_equal(data->truncated[1], 1);
        for (int t = 0; t < 6; t++) assert_true(data->rewards[t] == rewards[t]);
        for (uint64_t i = 0; i < 8; i++) {
            uint8_t image;
            assert_ok(ctx, psi_observations_gather(ctx, data->observations, &i, 1, &image));
            assert_int_equal(image, rows[i]);
        }
        psi_trajectories_free(ctx, data);
    }
    test_read_sweep(path, NULL);
    const hid_t again = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(again, "actions_1", H5P_DEFAULT);
    H5Fclose(again);
    test_refused(ctx, path, NULL, PSI_EDATA, "actions_1", "missing");
}

static void test_allocation_faults(void **state)
{
    (void)state;
    const table made = make_table();
    test_read_sweep(write_hdf5(&made, (how){0}), NULL);
    test_read_sweep(write_hdf5(&made, (how){.next = true}), NULL);
    test_read_sweep(write_npz(&made, (how){.stored = true}), NULL);
    test_read_sweep(write_npz(&made, (how){.stored = false}), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(d4rl),
        TEST(d3rlpy_1),
        TEST(d4rl_names_in_npz),
        TEST(next_observations_lose_nothing),
        TEST(lengths_that_do_not_agree),
        TEST(values_that_cannot_be),
        TEST(a_file_of_something_else),
        TEST(d3rlpy_2),
        TEST(allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
