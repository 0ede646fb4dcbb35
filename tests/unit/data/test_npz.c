#include "data/npy.h"
#include "files.h"
#include "fixture.h"

// Two episodes of 2 and 3 steps, seven observations of 2 × 2.
typedef struct sample {
    uint8_t observations[7][2][2];
    int64_t actions[5], lengths[2], states[7];
    double rewards[5];
    uint8_t terminated[2], truncated[2];
    bool stored, fortran, no_truncated, n_actions, latent;
    const char *observation_shape, *actions_shape;
} sample;

static sample make_sample(void)
{
    sample made = {.lengths = {2, 3},
                   .terminated = {1, 0},
                   .truncated = {0, 1},
                   .stored = true,
                   .observation_shape = "(7, 2, 2)",
                   .actions_shape = "(5,)"};
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 4; k++) made.observations[i][k / 2][k % 2] = (uint8_t)(10 * i + k);
        made.states[i] = i % 3;
    }
    for (int t = 0; t < 5; t++) {
        made.actions[t] = t % 3;
        made.rewards[t] = 1.0 / 3 * t;
    }
    return made;
}

static const char *write_sample(const sample *made)
{
    const char *path = test_path(folder, "sample.npz");
    zip_t *zip = test_npz_create(path);
    uint8_t turned[28];
    const void *images = made->observations;
    if (made->fortran) {
        for (int i = 0; i < 7; i++) {
            for (int k = 0; k < 4; k++) {
                turned[i + 7 * (k / 2 + 2 * (k % 2))] = made->observations[i][k / 2][k % 2];
            }
        }
        images = turned;
    }
    const long rows = atol(made->observation_shape + 1), steps = atol(made->actions_shape + 1);
    const size_t bytes = rows > 7 ? 28 : (size_t)rows * 4;
    test_npz_put(zip, "observations", "|u1", made->observation_shape, images, bytes, made->fortran,
                 1);
    test_npz_put(zip, "actions", "<i8", made->actions_shape, made->actions, (size_t)steps * 8,
                 false, 2);
    test_npz_put(zip, "rewards", "<f8", "(5,)", made->rewards, 40, false, 1);
    test_npz_put(zip, "episode_lengths", "<i8", "(2,)", made->lengths, 16, false, 1);
    test_npz_put(zip, "terminated", "|b1", "(2,)", made->terminated, 2, false, 1);
    if (!made->no_truncated) {
        test_npz_put(zip, "truncated", "|b1", "(2,)", made->truncated, 2, false, 1);
    }
    if (made->n_actions) test_npz_put(zip, "n_actions", "<i8", "()", &(int64_t){9}, 8, false, 1);
    if (made->latent) {
        test_npz_put(zip, "latent_states", "<i8", "(7,)", made->states, 56, false, 1);
    }
    test_npz_finish(zip, made->stored);
    return path;
}

static void check(const char *path, size_t memory_limit, size_t n_actions, bool latent)
{
    psi_trajectories *data;
    const psi_read_options options = {.size = sizeof options, .memory_limit = memory_limit};
    assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
    assert_int_equal(data->n_episodes, 2);
    assert_int_equal(data->n_transitions, 5);
    assert_int_equal(data->n_actions, n_actions);
    assert_int_equal(data->episode_offsets[1], 2);
    assert_int_equal(data->terminated[0], 1);
    assert_int_equal(data->terminated[1], 0);
    assert_int_equal(data->truncated[0], 0);
    assert_int_equal(data->truncated[1], 1);
    for (int t = 0; t < 5; t++) {
        assert_int_equal(data->actions[t], t % 3);
        assert_true(data->rewards[t] == 1.0 / 3 * t);
    }
    for (uint64_t i = 0; i < 7; i++) {
        uint8_t row[4];
        assert_ok(ctx, psi_observations_gather(ctx, data->observations, &i, 1, row));
        for (int k = 0; k < 4; k++) assert_int_equal(row[k], 10 * i + (uint64_t)k);
        if (latent) assert_int_equal(data->latent_states[i], i % 3);
    }
    assert_int_equal(data->latent_states != NULL, latent);
    psi_trajectories_free(ctx, data);
}

static void test_stored_and_compressed(void **state)
{
    (void)state;
    sample made = make_sample();
    for (int i = 0; i < 16; i++) {
        made.stored = i & 1;
        made.no_truncated = i & 2;
        made.n_actions = i & 4;
        made.latent = i & 8;
        const char *path = write_sample(&made);
        for (size_t limit = 0; limit < 2; limit++) check(path, limit, i & 4 ? 9 : 3, i & 8);
    }
}

static void test_fortran_order(void **state)
{
    (void)state;
    sample made = make_sample();
    made.fortran = true;
    const char *path = write_sample(&made);
    check(path, 0, 3, false);
    psi_trajectories *data;
    const psi_read_options options = {.size = sizeof options, .memory_limit = 1};
    assert_status(ctx, psi_trajectories_read(ctx, path, &options, &data), PSI_EUNSUPPORTED);
    test_assert_error_says(ctx, "Fortran order");
}

static void test_contradictions(void **state)
{
    (void)state;
    sample made = make_sample();
    made.lengths[1] = 2;
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "episode_lengths", "sum to 4");
    made = make_sample();
    made.lengths[0] = 4;
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "episode_lengths", "at least 7");
    made = make_sample();
    made.lengths[0] = 0;
    made.lengths[1] = 5;
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "episode 0, episode_lengths",
                 "0 steps");
    made = make_sample();
    made.lengths[0] = -1;
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "episode 0, episode_lengths", "-1");
    made = make_sample();
    made.observation_shape = "(5, 2, 2)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "observations",
                 "last observation of every episode is missing");
    made = make_sample();
    made.observation_shape = "(6, 2, 2)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "observations has 6", "7 states");
    made = make_sample();
    made.actions_shape = "(4,)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "actions has 4", "5 rewards");
    made = make_sample();
    made.observation_shape = "(9, 2, 2)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EFORMAT, "observations",
                 "shorter than its header");
    made.observation_shape = "(4611686018427387904, 4, 2)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EFORMAT, "observations",
                 "shorter than its header");
    made.observation_shape = "(0, 0, 4)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "observations", "size 0");
    made.observation_shape = "(7, 2, 1)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EFORMAT, "observations", "longer than");
    made.observation_shape = "(0, 2, 2)";
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "observations has 0", "7 states");
    made = make_sample();
    made.n_actions = true;
    made.actions[3] = 9;
    test_refused(ctx, write_sample(&made), NULL, PSI_EDATA, "episode 1, actions", "9 at step 1");
}

// The checksum of the first entry, in the directory at the end of the archive.
static long place_of_checksum(const char *path)
{
    char bytes[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t i = 0; i + 20 < size; i++) {
        if (memcmp(bytes + i, "PK\1\2", 4) == 0) return (long)i + 16;
    }
    fail();
    return 0;
}

// In memory, in place and on the way to a file of its own: whatever is read is compared.
static void test_damage_is_found_by_the_checksum(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        sample made = make_sample();
        made.stored = i & 1;
        const char *path = write_sample(&made);
        // a byte inside observations.npy, or what it is compared with
        const long inside = made.stored ? 180 : 60;
        FILE *file = fopen(path, "r+b");
        fseek(file, i & 2 ? place_of_checksum(path) : inside, SEEK_SET);
        fputc(0xee, file);
        fclose(file);
        psi_trajectories *data;
        const psi_read_options options = {.size = sizeof options, .memory_limit = i & 4 ? 1 : 0};
        assert_status(ctx, psi_trajectories_read(ctx, path, &options, &data), PSI_EFORMAT);
        test_assert_error_says(ctx, "observations");
    }
}

static void test_headers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }", true},
        {"{'shape':(3,4),'fortran_order':True,'descr':'>i2'}", true},
        {"{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (3L, 4L)}", true},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4}", false},
        {"{'descr': '<f8', 'fortran_order': Maybe, 'shape': (3, 4)}", false},
        {"{'descr': '<f8', 'fortran_order': False}", false},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3, 4)}", false},
        {"{'descr': '<f0', 'fortran_order': False, 'shape': (3, 4)}", false},
        {"{'descr': '?f8', 'fortran_order': False, 'shape': (3, 4)}", false},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4, 5, 6, 7, 8)}", false},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 4)}", false},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 4)}", false},
        {"{'descr': '<f8' 'fortran_order': False, 'shape': (3, 4)}", false},
        {"{'other': '<f8', 'fortran_order': False, 'shape': (3, 4)}", false},
        {"{'descr': '<f8", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[256];
        const size_t length = strlen(cases[i].text);
        memcpy(header, "\x93NUMPY\x01\x00", 8);
        header[8] = (char)(length + 2);
        header[9] = 0;
        memcpy(header + 10, cases[i].text, length);
        memcpy(header + 10 + length, " \n", 2);
        data_array array = {0};
        bool fortran;
        if (data_npy_parse(header, 12 + length, &array, &fortran) != cases[i].good) {
            fail_msg("%s", cases[i].text);
        }
        if (cases[i].good) {
            assert_int_equal(array.rank, 2);
            assert_int_equal(array.dim[0], 3);
            assert_int_equal(array.dim[1], 4);
        }
        // every shorter text is refused, not read beyond
        for (size_t n = 0; n < 12 + length; n++) {
            char *exact = malloc(n + 1);
            memcpy(exact, header, n);
            assert_false(data_npy_parse(exact, n, &array, &fortran));
            free(exact);
        }
    }
}

static void test_headers_round_trip(void **state)
{
    (void)state;
    for (size_t rank = 0; rank <= 5; rank++) {
        char header[256];
        const size_t dim[5] = {1000000007, 3, 28, 28, 2};
        const size_t size = data_npy_format(header, sizeof header, "<i4", rank, dim);
        data_array array = {0};
        bool fortran = true;
        assert_true(size > 0 && size % 64 == 0);
        assert_true(data_npy_parse(header, size, &array, &fortran));
        assert_false(fortran);
        assert_int_equal(array.rank, rank);
        for (size_t d = 0; d < rank; d++) assert_int_equal(array.dim[d], dim[d]);
        assert_int_equal(array.element.kind, DATA_SIGNED);
        assert_int_equal(data_npy_format(header, 64, "<i4", rank, dim) > 64, false);
    }
}

static void test_allocation_faults(void **state)
{
    (void)state;
    sample made = make_sample();
    made.latent = made.n_actions = true;
    for (int stored = 0; stored < 2; stored++) {
        made.stored = stored;
        test_read_sweep(write_sample(&made), NULL);
    }
    made.fortran = true;
    test_reading reading = {write_sample(&made), NULL, 0};
    assert_true(test_fault_sweep(test_read_work, &reading) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stored_and_compressed),
        TEST(fortran_order),
        TEST(contradictions),
        TEST(damage_is_found_by_the_checksum),
        TEST(headers),
        TEST(headers_round_trip),
        TEST(allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
