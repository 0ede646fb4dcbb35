// Several processes find what one finds, to the last bit: threads in their place.
#include "support/collect.h"
#include "support/ranks.h"
#include "support/support.h"

#include "base/comm.h"
#include "base/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 3 };

typedef struct job {
    char *folder;
    const char *paths[MOST_FILES];
    size_t n_files, stack;
    bool table;
    const char *const *options; // of the task; or NULL
    psi_run *found;             // by one process …
    psi_run *together;          // … by several
    size_t largest;             // episodes of the one that has most
} job;

// What rewards are like beside those of the task.
typedef enum paid { AS_IT_IS, NUMBERS, FOUR_VALUES, BY_THE_PAST } paid;

static double pay(paid how, const psi_trajectories *data, uint64_t t, double reward)
{
    const uint64_t bits = (t + 1) * 0x9e3779b97f4a7c15u >> 33;
    switch (how) {
    case NUMBERS: return reward + (double)(bits % 1000003) / 1000003.0;
    case FOUR_VALUES: return reward + (double)(bits % 4) / 8.0;
    case BY_THE_PAST: return reward + (t > 0 && data->actions[t - 1] == 0 ? 1.0 : 0.0);
    default: return reward;
    }
}

// Three by three cells; somebody waits in one of the corners, or rides along, and wants to another:
// 180 states, seen as numbers, and six actions.
static psi_trajectories *drive_taxis(psi_ctx *ctx, size_t episodes)
{
    enum { SIDE = 3, STEPS = 60, RIDING = 4 };
    static const int STOP[] = {0, 2, 6, 8};
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .observation_high = 180.0, .n_actions = 6};
    psi_collector *collector;
    psi_trajectories *data;
    uint64_t random = 1;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        int64_t seen[STEPS + 1];
        int32_t action[STEPS];
        double reward[STEPS];
        int cell = (int)(e * 7 % 9), who = (int)(e % 4), to = (int)((e / 4 + 1) % 4);
        size_t n = 0;
        for (bool there = false; n < STEPS && !there; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const int a = (int)((random >> 33) % 6), x = cell % SIDE, y = cell / SIDE;
            seen[n] = (cell * 5 + who) * 4 + to;
            action[n] = a;
            reward[n] = -1.0;
            if (a == 0 && x > 0) cell--;
            if (a == 1 && x < SIDE - 1) cell++;
            if (a == 2 && y > 0) cell -= SIDE;
            if (a == 3 && y < SIDE - 1) cell += SIDE;
            const bool picks_up = a == 4 && who < RIDING && cell == STOP[who];
            there = a == 5 && who == RIDING && cell == STOP[to];
            if (picks_up) who = RIDING;
            if (there) who = to;
            if (there) reward[n] = 20.0;
            if (a > 3 && !picks_up && !there) reward[n] = -10.0;
        }
        seen[n] = (cell * 5 + who) * 4 + to;
        const psi_episode episode = {.length = n,
                                     .observations = seen,
                                     .actions = action,
                                     .rewards = reward,
                                     .terminated = reward[n - 1] > 0.0,
                                     .truncated = reward[n - 1] < 0.0};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

// task: NULL for taxis.
static void write_files(job *of, psi_ctx *ctx, const char *task, size_t episodes, paid how)
{
    psi_trajectories *data =
        task ? test_collect(ctx, task, episodes, 7, of->options) : drive_taxis(ctx, episodes);
    const psi_episode_spec spec = {.observation_dtype = psi_observations_dtype(data->observations),
                                   .observation_shape = *psi_observations_shape(data->observations),
                                   .observation_high = 255.0,
                                   .n_actions = data->n_actions};
    const char *rows = psi_observations_data(data->observations);
    const size_t row_bytes = psi_observations_row_bytes(data->observations);
    double *rewards = malloc(data->n_transitions * sizeof *rewards);
    for (uint64_t t = 0; t < data->n_transitions; t++) {
        rewards[t] = pay(how, data, t, data->rewards[t]);
    }
    for (size_t f = 0; f < of->n_files; f++) {
        static const char *const NAMES[MOST_FILES] = {"a.npz", "b.npz", "c.npz"};
        psi_writer *writer;
        of->paths[f] = NAMES[f];
        assert_ok(ctx, psi_writer_open(ctx, test_path(of->folder, NAMES[f]), &spec, true, &writer));
        for (size_t e = f * episodes / of->n_files; e < (f + 1) * episodes / of->n_files; e++) {
            const uint64_t t = data->episode_offsets[e];
            const psi_episode episode = {.length = (size_t)(data->episode_offsets[e + 1] - t),
                                         .observations = rows + psi_row(e, t) * row_bytes,
                                         .actions = data->actions + t,
                                         .rewards = rewards + t,
                                         .terminated = data->terminated[e],
                                         .truncated = data->truncated[e]};
            assert_ok(ctx, psi_writer_add(writer, &episode));
        }
        assert_ok(ctx, psi_writer_commit(writer));
    }
    free(rewards);
    psi_trajectories_free(ctx, data);
}

static psi_status read_and_cluster(psi_ctx *ctx, int rank, void *argument)
{
    psi_status status = PSI_OK;
    job *of = argument;
    psi_cluster_options how = psi_cluster_defaults();
    psi_trajectories *data = NULL;
    psi_run *found = NULL;
    char file[MOST_FILES][4096];
    const char *paths[MOST_FILES];
    how.approximator = of->table ? PSI_APPROXIMATOR_TABLE : PSI_APPROXIMATOR_AUTO;
    how.trunk_steps = how.representation_steps = 40;
    how.stack = of->stack;
    for (size_t f = 0; f < of->n_files; f++) {
        snprintf(file[f], sizeof file[f], "%s/%s", of->folder, of->paths[f]);
        paths[f] = file[f];
    }
    TRY(psi_trajectories_read_all(ctx, paths, of->n_files, NULL, &data));
    int64_t largest = (int64_t)data->n_episodes;
    TRY(base_maximum(ctx, &largest, 1));
    TRY(psi_cluster(ctx, data, &how, &found));
    if ((rank > 0) != (found == NULL)) TRY(PSI_EINTERNAL);
    if (rank > 0) goto done;
    of->largest = (size_t)largest;
    if (psi_ranks(ctx) > 1) of->together = found;
    if (psi_ranks(ctx) == 1) of->found = found;
done:
    psi_trajectories_free(ctx, data);
    return status;
}

static void assert_same_net(const psi_net *a, const psi_net *b)
{
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < psi_net_tensor_count(a); i++) {
        psi_tensor_info info;
        assert_ok(ctx, psi_net_tensor_info(ctx, a, i, &info));
        const size_t n = psi_shape_size(&info.shape);
        psi_real *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
        assert_ok(ctx, psi_net_tensor_get(ctx, a, i, x));
        assert_ok(ctx, psi_net_tensor_get(ctx, b, i, y));
        assert_memory_equal(x, y, n * sizeof *x);
        free(x);
        free(y);
    }
    psi_ctx_free(ctx);
}

static void assert_same(const psi_run *a, const psi_run *b)
{
    const size_t pairs = a->n_latent * a->model->n_actions;
    assert_string_equal(a->fingerprint.hex, b->fingerprint.hex);
    assert_int_equal(a->n_observations, b->n_observations);
    assert_int_equal(a->n_latent, b->n_latent);
    assert_memory_equal(a->labels, b->labels, a->n_observations * sizeof *a->labels);
    assert_memory_equal(a->confidence, b->confidence, a->n_observations * sizeof *a->confidence);
    assert_int_equal(a->verdict, b->verdict);
    assert_true(a->margin == b->margin && a->past == b->past && a->doubtful == b->doubtful);
    assert_int_equal(a->n_doubts, b->n_doubts);
    for (size_t i = 0; i < a->n_doubts; i++) {
        const psi_doubt *x = &a->doubts[i], *y = &b->doubts[i];
        assert_int_equal(x->kind, y->kind);
        assert_true(x->state == y->state && x->other == y->other && x->visits == y->visits);
    }
    assert_memory_equal(a->model->reward, b->model->reward, pairs * sizeof(double));
    assert_memory_equal(a->model->offsets, b->model->offsets, (pairs + 1) * sizeof(uint64_t));
    assert_memory_equal(a->model->probability, b->model->probability,
                        a->model->offsets[pairs] * sizeof(double));
    assert_memory_equal(a->certificate->sf_error, b->certificate->sf_error, pairs * sizeof(double));
    assert_true(a->certificate->worst_reward == b->certificate->worst_reward);
    assert_true((a->representation == NULL) == (b->representation == NULL));
    if (a->representation) {
        assert_true(a->accuracy == b->accuracy);
        assert_same_net(a->representation, b->representation);
    }
    assert_int_equal(a->n_steps, b->n_steps);
    for (size_t i = 0; i < a->n_steps; i++) {
        assert_int_equal(a->steps[i].clusters, b->steps[i].clusters);
        assert_true(a->steps[i].agreement == b->steps[i].agreement);
    }
}

static void compare_as(bool table, const char *task, const char *const *options, size_t episodes,
                       paid how, size_t stack, size_t n_files)
{
    psi_ctx *ctx = test_ctx(1);
    job of = {.folder = test_folder(),
              .n_files = n_files,
              .stack = stack,
              .table = table,
              .options = options};
    write_files(&of, ctx, task, episodes, how);
    test_as_ranks(1, read_and_cluster, &of);
    const size_t whole = of.largest;
    for (int n = 2; n <= 4; n++) {
        test_as_ranks(n, read_and_cluster, &of);
        assert_same(of.found, of.together);
        assert_true(of.largest < whole || episodes == 1);
        psi_run_free(ctx, of.together);
    }
    psi_run_free(ctx, of.found);
    test_folder_free(of.folder);
    psi_ctx_free(ctx);
}

static void compare(const char *task, size_t episodes, paid how, size_t stack, size_t n_files)
{
    compare_as(true, task, NULL, episodes, how, stack, n_files);
}

static void test_classes_of_rewards(void **state)
{
    (void)state;
    compare("column-world", 60, AS_IT_IS, 1, 1);
    compare("column-world", 40, FOUR_VALUES, 1, 3);
}

static void test_rewards_that_are_numbers(void **state)
{
    (void)state;
    compare("column-world", 60, NUMBERS, 1, 2);
}

static void test_what_the_past_tells(void **state)
{
    (void)state;
    compare("column-world", 100, BY_THE_PAST, 1, 1);
    compare("column-world", 60, BY_THE_PAST, 2, 3); // frames are not taken from others
}

static void test_taxis(void **state)
{
    (void)state;
    compare(NULL, 80, AS_IT_IS, 1, 2);
    compare(NULL, 60, AS_IT_IS, 3, 1); // more leaves than one process weighs
}

static void test_fewer_episodes_than_ranks(void **state)
{
    (void)state;
    compare("column-world", 3, AS_IT_IS, 1, 1);
}

// Cells of vectors, features of a network and labels that are settled; and rewards by their means.
static void test_vectors(void **state)
{
    (void)state;
    compare_as(false, "point-column-world", NULL, 40, AS_IT_IS, 1, 3);
    compare_as(false, "point-column-world", NULL, 24, NUMBERS, 1, 1);
}

// A lock of drawn digits: its cnn is learnt by all of them.
static void test_images(void **state)
{
    (void)state;
    static const char *const options[] = {"digits-per-dial", "3",     "goal", "2,2,*",
                                          "digits",          "drawn", NULL};
    compare_as(false, "combination-lock", options, 24, AS_IT_IS, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes_of_rewards),
                                       cmocka_unit_test(test_rewards_that_are_numbers),
                                       cmocka_unit_test(test_what_the_past_tells),
                                       cmocka_unit_test(test_taxis),
                                       cmocka_unit_test(test_fewer_episodes_than_ranks),
                                       cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_images)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
