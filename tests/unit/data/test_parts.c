// Several files as one data set: the same as the whole, whatever they are cut into.
#include "fixture.h"

#include "support/collect.h"

#include <stdio.h>
#include <stdlib.h>

// Episodes first … end − 1 as a file of their own.
static const char *write_part(const psi_trajectories *data, size_t first, size_t end,
                              size_t n_actions, bool truth, const char *name)
{
    const char *path = test_path(folder, name);
    const psi_episode_spec spec = {.observation_dtype = psi_observations_dtype(data->observations),
                                   .observation_shape = *psi_observations_shape(data->observations),
                                   .observation_high = 100.0,
                                   .n_actions = n_actions,
                                   .latent_states = truth};
    const size_t row_bytes = psi_observations_row_bytes(data->observations);
    const char *rows = psi_observations_data(data->observations);
    psi_writer *writer;
    assert_ok(ctx, psi_writer_open(ctx, path, &spec, true, &writer));
    for (size_t e = first; e < end; e++) {
        const uint64_t t = data->episode_offsets[e];
        const psi_episode episode = {.length = (size_t)(data->episode_offsets[e + 1] - t),
                                     .observations = rows + psi_row(e, t) * row_bytes,
                                     .actions = data->actions + t,
                                     .rewards = data->rewards + t,
                                     .latent_states =
                                         truth ? data->latent_states + psi_row(e, t) : NULL,
                                     .terminated = data->terminated[e],
                                     .truncated = data->truncated[e]};
        assert_ok(ctx, psi_writer_add(writer, &episode));
    }
    assert_ok(ctx, psi_writer_commit(writer));
    return path;
}

static void assert_same(const psi_trajectories *a, const psi_trajectories *b)
{
    const size_t n = a->n_observations, row_bytes = psi_observations_row_bytes(a->observations);
    assert_int_equal(a->n_episodes, b->n_episodes);
    assert_int_equal(a->n_transitions, b->n_transitions);
    assert_int_equal(n, b->n_observations);
    assert_int_equal(a->n_actions, b->n_actions);
    assert_memory_equal(a->actions, b->actions, a->n_transitions * sizeof *a->actions);
    assert_memory_equal(a->rewards, b->rewards, a->n_transitions * sizeof *a->rewards);
    assert_memory_equal(a->episode_offsets, b->episode_offsets,
                        (a->n_episodes + 1) * sizeof *a->episode_offsets);
    assert_memory_equal(a->terminated, b->terminated, a->n_episodes);
    assert_memory_equal(a->truncated, b->truncated, a->n_episodes);
    assert_memory_equal(a->latent_states, b->latent_states, n * sizeof *a->latent_states);
    uint64_t *rows = malloc(n * sizeof *rows);
    char *got = malloc(2 * n * row_bytes);
    for (size_t i = 0; i < n; i++) rows[i] = (i * 7919) % n; // to and fro between the files
    assert_ok(ctx, psi_observations_gather(ctx, a->observations, rows, n, got));
    assert_ok(ctx, psi_observations_gather(ctx, b->observations, rows, n, got + n * row_bytes));
    assert_memory_equal(got, got + n * row_bytes, n * row_bytes);
    free(got);
    free(rows);
}

static void test_three_parts_are_the_whole(void **state)
{
    (void)state;
    psi_trajectories *whole = test_collect(ctx, "point-column-world", 30, 1, NULL), *joined;
    char paths[3][256];
    snprintf(paths[0], 256, "%s", write_part(whole, 0, 7, 4, true, "a.npz"));
    snprintf(paths[1], 256, "%s", write_part(whole, 7, 8, 4, true, "b")); // a Minari folder
    snprintf(paths[2], 256, "%s", write_part(whole, 8, 30, 4, true, "c.npz"));
    const char *list[] = {paths[0], paths[1], paths[2]};
    psi_fingerprint of_whole, of_parts;
    assert_ok(ctx, psi_fingerprint_of(ctx, whole, &of_whole));
    for (size_t limit = 0; limit < 2; limit++) { // in memory, and in the files
        const psi_read_options how = {.size = sizeof how, .memory_limit = limit};
        assert_ok(ctx, psi_trajectories_read_all(ctx, list, 3, &how, &joined));
        assert_same(whole, joined);
        assert_ok(ctx, psi_fingerprint_of(ctx, joined, &of_parts));
        assert_string_equal(of_whole.hex, of_parts.hex);
        uint64_t beyond = whole->n_observations;
        float row[2];
        assert_status(ctx, psi_observations_gather(ctx, joined->observations, &beyond, 1, row),
                      PSI_ESHAPE);
        psi_trajectories_free(ctx, joined);
    }
    // in another order it is another data set
    const char *turned[] = {paths[2], paths[1], paths[0]};
    assert_ok(ctx, psi_trajectories_read_all(ctx, turned, 3, NULL, &joined));
    assert_ok(ctx, psi_fingerprint_of(ctx, joined, &of_parts));
    assert_string_not_equal(of_whole.hex, of_parts.hex);
    psi_trajectories_free(ctx, joined);
    psi_trajectories_free(ctx, whole);
}

static void test_what_does_not_belong_together_is_refused(void **state)
{
    (void)state;
    psi_trajectories *points = test_collect(ctx, "point-column-world", 6, 1, NULL),
                     *cells = test_collect(ctx, "column-world", 6, 1, NULL), *joined;
    char paths[5][256];
    snprintf(paths[0], 256, "%s", write_part(points, 0, 3, 4, true, "points.npz"));
    snprintf(paths[1], 256, "%s", write_part(cells, 0, 3, 4, true, "cells.npz"));
    snprintf(paths[2], 256, "%s", write_part(points, 3, 6, 5, true, "five.npz"));
    snprintf(paths[3], 256, "%s", write_part(points, 3, 6, 4, false, "without.npz"));
    snprintf(paths[4], 256, "%s/missing.npz", folder);
    assert_status(ctx, psi_trajectories_read_all(ctx, NULL, 0, NULL, &joined), PSI_EUSAGE);
    const char *shapes[] = {paths[0], paths[1]}, *actions[] = {paths[0], paths[2]};
    assert_status(ctx, psi_trajectories_read_all(ctx, shapes, 2, NULL, &joined), PSI_EDATA);
    test_assert_error_says(ctx, "cells.npz");
    assert_null(joined);
    assert_status(ctx, psi_trajectories_read_all(ctx, actions, 2, NULL, &joined), PSI_EDATA);
    test_assert_error_says(ctx, "5 actions");
    const char *gone[] = {paths[0], paths[4]};
    assert_status(ctx, psi_trajectories_read_all(ctx, gone, 2, NULL, &joined), PSI_EIO);
    test_assert_error_says(ctx, "missing.npz");
    // latent states that only one of them knows are no truth about all, whichever comes first
    for (size_t i = 0; i < 2; i++) {
        const char *half[] = {paths[i ? 3 : 0], paths[i ? 0 : 3]};
        assert_ok(ctx, psi_trajectories_read_all(ctx, half, 2, NULL, &joined));
        assert_null(joined->latent_states);
        assert_int_equal(joined->n_episodes, 6);
        psi_trajectories_free(ctx, joined);
    }
    psi_trajectories_free(ctx, cells);
    psi_trajectories_free(ctx, points);
}

static psi_status read_two(psi_ctx *faulty, void *argument)
{
    psi_trajectories *joined;
    const psi_read_options how = {.size = sizeof how, .memory_limit = 1};
    const psi_status status = psi_trajectories_read_all(faulty, argument, 2, &how, &joined);
    uint64_t rows[] = {30, 0, 1};
    float got[3][2];
    psi_fingerprint of;
    if (status != PSI_OK) return status;
    psi_status then = psi_observations_gather(faulty, joined->observations, rows, 3, got);
    if (then == PSI_OK) then = psi_fingerprint_of(faulty, joined, &of);
    psi_trajectories_free(faulty, joined);
    return then;
}

static void test_no_memory(void **state)
{
    (void)state;
    psi_trajectories *whole = test_collect(ctx, "point-column-world", 4, 1, NULL);
    char paths[2][256];
    snprintf(paths[0], 256, "%s", write_part(whole, 0, 2, 4, true, "one.npz"));
    snprintf(paths[1], 256, "%s", write_part(whole, 2, 4, 4, true, "two.npz"));
    const char *list[] = {paths[0], paths[1]};
    assert_true(test_fault_sweep(read_two, list) > 20);
    psi_trajectories_free(ctx, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(three_parts_are_the_whole),
        TEST(what_does_not_belong_together_is_refused),
        TEST(no_memory),
    };
    return cmocka_run_group_tests_name("data/parts", tests, NULL, NULL);
}
