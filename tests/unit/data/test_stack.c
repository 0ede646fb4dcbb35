// Observations with those before them, from memory and from files.
#include "fixture.h"

#include <string.h>

// Two episodes, of three and two observations.
static const uint64_t OFFSETS[] = {0, 2, 3};

static psi_observations *over(psi_dtype dtype, psi_shape shape, size_t n, const void *rows)
{
    psi_observations *made;
    assert_ok(ctx, psi_observations_over(ctx, dtype, &shape, n, rows, &made));
    return made;
}

static void test_the_first_of_an_episode_repeats(void **state)
{
    (void)state;
    const int64_t numbers[] = {10, 11, 12, 20, 21};
    const int64_t expected[5][3] = {
        {10, 10, 10}, {10, 10, 11}, {10, 11, 12}, {20, 20, 20}, {20, 20, 21}};
    const uint64_t rows[] = {4, 0, 2, 3, 1, 2};
    int64_t got[6][3];
    psi_observations *frames = over(PSI_INT64, (psi_shape){0}, 5, numbers), *stacked;
    assert_ok(ctx, psi_observations_stack(ctx, frames, 3, 2, OFFSETS, &stacked));
    assert_int_equal(psi_observations_count(stacked), 5);
    assert_int_equal(psi_observations_row_bytes(stacked), sizeof got[0]);
    assert_int_equal(psi_observations_shape(stacked)->rank, 1);
    assert_int_equal(psi_observations_shape(stacked)->dim[0], 3);
    assert_null(psi_observations_data(stacked));
    assert_ok(ctx, psi_observations_gather(ctx, stacked, rows, 6, got));
    for (size_t i = 0; i < 6; i++) assert_memory_equal(got[i], expected[rows[i]], sizeof got[i]);
    assert_status(ctx, psi_observations_gather(ctx, stacked, (uint64_t[]){5}, 1, got), PSI_ESHAPE);
    psi_observations_free(ctx, stacked);
    psi_observations_free(ctx, frames);
}

static void test_vectors_grow_and_images_get_a_dimension(void **state)
{
    (void)state;
    uint8_t pixels[5][24], got[5][48];
    const uint64_t rows[] = {0, 1, 2, 3, 4};
    for (size_t i = 0; i < sizeof pixels; i++) ((uint8_t *)pixels)[i] = (uint8_t)(7 * i);
    psi_observations *vectors = over(PSI_UINT8, (psi_shape){1, {24}}, 5, pixels), *stacked;
    psi_observations *images = over(PSI_UINT8, (psi_shape){3, {2, 4, 3}}, 5, pixels);
    assert_ok(ctx, psi_observations_stack(ctx, vectors, 2, 2, OFFSETS, &stacked));
    assert_int_equal(psi_observations_shape(stacked)->rank, 1);
    assert_int_equal(psi_observations_shape(stacked)->dim[0], 48);
    psi_observations_free(ctx, stacked);
    assert_ok(ctx, psi_observations_stack(ctx, images, 2, 2, OFFSETS, &stacked));
    const psi_shape *shape = psi_observations_shape(stacked);
    assert_int_equal(shape->rank, 4);
    assert_memory_equal(shape->dim, ((size_t[]){2, 2, 4, 3}), sizeof shape->dim);
    assert_ok(ctx, psi_observations_gather(ctx, stacked, rows, 5, got));
    const size_t before[] = {0, 0, 1, 3, 3};
    for (size_t i = 0; i < 5; i++) {
        assert_memory_equal(got[i], pixels[before[i]], 24);
        assert_memory_equal(got[i] + 24, pixels[i], 24);
    }
    psi_observations *deeper;
    assert_status(ctx, psi_observations_stack(ctx, stacked, 2, 2, OFFSETS, &deeper),
                  PSI_EUNSUPPORTED);
    assert_null(deeper);
    psi_observations_free(ctx, stacked);
    psi_observations_free(ctx, images);
    psi_observations_free(ctx, vectors);
}

static void test_one_frame_is_what_it_was(void **state)
{
    (void)state;
    const float values[5] = {1, 2, 3, 4, 5};
    psi_observations *frames = over(PSI_FLOAT32, (psi_shape){0}, 5, values), *same;
    assert_ok(ctx, psi_observations_stack(ctx, frames, 1, 2, OFFSETS, &same));
    assert_ptr_equal(psi_observations_data(same), values);
    assert_int_equal(psi_observations_shape(same)->rank, 0);
    psi_observations_free(ctx, same);
    // what cannot be
    assert_status(ctx, psi_observations_stack(ctx, frames, 0, 2, OFFSETS, &same), PSI_ESHAPE);
    assert_status(ctx, psi_observations_stack(ctx, frames, 256, 2, OFFSETS, &same), PSI_ESHAPE);
    assert_status(ctx, psi_observations_stack(ctx, frames, 2, 1, OFFSETS, &same), PSI_ESHAPE);
    assert_null(same);
    psi_observations_free(ctx, frames);
}

// More rows than are put together at once, left in their file.
static void test_rows_of_a_file(void **state)
{
    (void)state;
    enum { EPISODES = 200, LENGTH = 49, ROWS = EPISODES * (LENGTH + 1) };
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT64,
                                   .observation_shape = {1, {3}},
                                   .observation_low = -1e9,
                                   .observation_high = 1e9,
                                   .n_actions = 1,
                                   .name = "stack-v0"};
    static double values[ROWS][3], got[ROWS][2][3], rewards[LENGTH];
    static int32_t actions[LENGTH];
    static uint64_t rows[ROWS];
    psi_writer *writer;
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = (i * 7919) % ROWS;
        for (size_t k = 0; k < 3; k++) values[i][k] = (double)(3 * i + k);
    }
    for (const char *const *name = (const char *[]){"data", "data.npz", NULL}; *name; name++) {
        assert_ok(ctx, psi_writer_open(ctx, test_path(folder, *name), &spec, false, &writer));
        for (size_t e = 0; e < EPISODES; e++) {
            const psi_episode episode = {.length = LENGTH,
                                         .observations = values[e * (LENGTH + 1)],
                                         .actions = actions,
                                         .rewards = rewards,
                                         .truncated = true};
            assert_ok(ctx, psi_writer_add(writer, &episode));
        }
        assert_ok(ctx, psi_writer_commit(writer));
        psi_trajectories *data;
        psi_observations *stacked;
        const psi_read_options reading = {.size = sizeof reading, .memory_limit = 1};
        assert_ok(ctx, psi_trajectories_read(ctx, test_path(folder, *name), &reading, &data));
        assert_null(psi_observations_data(data->observations));
        for (size_t n = 1; n <= 2; n++) { // one frame of a file is passed through
            assert_ok(ctx, psi_observations_stack(ctx, data->observations, n, data->n_episodes,
                                                  data->episode_offsets, &stacked));
            assert_ok(ctx, psi_observations_gather(ctx, stacked, rows, ROWS, got));
            psi_observations_free(ctx, stacked);
        }
        for (size_t i = 0; i < ROWS; i++) {
            const uint64_t row = rows[i], before = row % (LENGTH + 1) ? row - 1 : row;
            assert_memory_equal(got[i][0], values[before], sizeof values[0]);
            assert_memory_equal(got[i][1], values[row], sizeof values[0]);
        }
        psi_trajectories_free(ctx, data);
    }
}

static psi_status stack_and_gather(psi_ctx *with, void *argument)
{
    psi_observations *frames = NULL, *stacked = NULL;
    int32_t got[10];
    psi_status status =
        psi_observations_over(with, PSI_INT32, &(psi_shape){0}, 5, argument, &frames);
    if (status == PSI_OK) {
        status = psi_observations_stack(with, frames, 2, 2, OFFSETS, &stacked);
    }
    if (status == PSI_OK) {
        status = psi_observations_gather(with, stacked, (uint64_t[]){0, 1, 2, 3, 4}, 5, got);
    }
    psi_observations_free(with, stacked);
    psi_observations_free(with, frames);
    return status;
}

static void test_every_refusal_of_memory_is_survived(void **state)
{
    (void)state;
    int32_t values[5] = {1, 2, 3, 4, 5};
    assert_true(test_fault_sweep(stack_and_gather, values) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_of_an_episode_repeats),
        TEST(vectors_grow_and_images_get_a_dimension),
        TEST(one_frame_is_what_it_was),
        TEST(rows_of_a_file),
        TEST(every_refusal_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("data/stack", tests, NULL, NULL);
}
