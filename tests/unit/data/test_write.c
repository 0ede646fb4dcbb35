#include "base/random.h"
#include "files.h"
#include "fixture.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

// Random episodes of any element type and shape, remembered to be compared with.
enum { MOST_STEPS = 40, MOST_BYTES = 400 };

typedef struct memory {
    psi_episode_spec spec;
    size_t row_bytes, n;
    psi_episode episode[12];
    char observations[12][(MOST_STEPS + 1) * MOST_BYTES];
    int32_t actions[12][MOST_STEPS], states[12][MOST_STEPS + 1];
    double rewards[12][MOST_STEPS];
} memory;

static memory *make_memory(uint64_t seed)
{
    static const psi_dtype dtypes[] = {PSI_UINT8, PSI_INT32, PSI_INT64, PSI_FLOAT32, PSI_FLOAT64};
    base_random random = base_random_stream(seed, 0, 0);
    memory *made = calloc(1, sizeof *made);
    made->spec = (psi_episode_spec){.observation_dtype = dtypes[seed % 5],
                                    .observation_shape = {.rank = seed / 5 % 5},
                                    .observation_low = seed % 2 ? 0 : -HUGE_VAL,
                                    .observation_high = seed % 2 ? 1 : HUGE_VAL,
                                    .n_actions = 1 + base_random_below(&random, 9),
                                    .latent_states = seed % 3 == 0,
                                    .name = seed % 4 ? "random-v3" : NULL,
                                    .task_options = seed % 2 ? "{\"seed\": 5}" : NULL};
    made->row_bytes = psi_dtype_size(made->spec.observation_dtype);
    for (size_t d = 0; d < made->spec.observation_shape.rank; d++) {
        made->spec.observation_shape.dim[d] = 1 + base_random_below(&random, 2 + (d == 0));
        made->row_bytes *= made->spec.observation_shape.dim[d];
    }
    made->n = 1 + base_random_below(&random, 12);
    for (size_t e = 0; e < made->n; e++) {
        const size_t length = 1 + base_random_below(&random, MOST_STEPS);
        for (size_t i = 0; i < (length + 1) * made->row_bytes; i++) {
            made->observations[e][i] = (char)base_random_u32(&random);
        }
        for (size_t t = 0; t < length; t++) {
            made->actions[e][t] =
                (int32_t)base_random_below(&random, (uint32_t)made->spec.n_actions);
            made->rewards[e][t] = base_random_normal(&random);
        }
        for (size_t t = 0; t <= length; t++) {
            made->states[e][t] = (int32_t)base_random_below(&random, 1000);
        }
        const unsigned end = 1 + base_random_below(&random, 3);
        made->episode[e] =
            (psi_episode){.length = length,
                          .observations = made->observations[e],
                          .actions = made->actions[e],
                          .rewards = made->rewards[e],
                          .latent_states = made->spec.latent_states ? made->states[e] : NULL,
                          .terminated = end & 1,
                          .truncated = end >> 1};
    }
    return made;
}

static void check(const memory *made, const psi_trajectories *data)
{
    size_t step = 0, row = 0;
    assert_int_equal(data->n_episodes, made->n);
    assert_int_equal(data->n_actions, made->spec.n_actions);
    assert_int_equal(psi_observations_dtype(data->observations), made->spec.observation_dtype);
    assert_int_equal(psi_observations_row_bytes(data->observations), made->row_bytes);
    for (size_t e = 0; e < made->n; e++) {
        const psi_episode *episode = &made->episode[e];
        assert_int_equal(data->episode_offsets[e], step);
        assert_int_equal(data->terminated[e], episode->terminated);
        assert_int_equal(data->truncated[e], episode->truncated);
        assert_int_equal(data->final_missing[e], 0);
        assert_memory_equal(data->actions + step, episode->actions, episode->length * 4);
        assert_memory_equal(data->rewards + step, episode->rewards, episode->length * 8);
        if (made->spec.latent_states) {
            assert_memory_equal(data->latent_states + row, episode->latent_states,
                                (episode->length + 1) * 4);
        } else {
            assert_null(data->latent_states);
        }
        for (size_t t = 0; t <= episode->length; t++) {
            char got[MOST_BYTES];
            const uint64_t which = row + t;
            assert_ok(ctx, psi_observations_gather(ctx, data->observations, &which, 1, got));
            assert_memory_equal(got, made->observations[e] + t * made->row_bytes, made->row_bytes);
        }
        step += episode->length;
        row += episode->length + 1;
    }
    assert_int_equal(data->n_transitions, step);
    assert_int_equal(data->n_observations, row);
}

static psi_status write_all(psi_ctx *with, const char *path, const memory *made)
{
    psi_writer *writer;
    psi_status status = psi_writer_open(with, path, &made->spec, true, &writer);
    if (status != PSI_OK) return status;
    for (size_t e = 0; e < made->n && status == PSI_OK; e++) {
        status = psi_writer_add(writer, &made->episode[e]);
    }
    if (status == PSI_OK) return psi_writer_commit(writer);
    psi_writer_discard(writer);
    return status;
}

static void test_round_trips(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        memory *made = make_memory(seed);
        const char *path = test_path(folder, seed % 2 ? "set" : "set.npz");
        assert_ok(ctx, write_all(ctx, path, made));
        for (size_t limit = 0; limit < 2; limit++) {
            psi_trajectories *data;
            const psi_read_options options = {.size = sizeof options, .memory_limit = limit};
            assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
            check(made, data);
            psi_trajectories_free(ctx, data);
        }
        free(made);
    }
}

static psi_status collect(psi_ctx *with, const memory *made, psi_trajectories **out)
{
    psi_collector *collector;
    *out = NULL;
    psi_status status = psi_collector_new(with, &made->spec, &collector);
    if (status != PSI_OK) return status;
    for (size_t e = 0; e < made->n && status == PSI_OK; e++) {
        status = psi_collector_add(collector, &made->episode[e]);
    }
    if (status == PSI_OK) return psi_collector_finish(collector, out);
    psi_collector_discard(collector);
    return status;
}

static void test_collector(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        memory *made = make_memory(seed);
        psi_trajectories *data;
        assert_ok(ctx, collect(ctx, made, &data));
        check(made, data);
        assert_non_null(psi_observations_data(data->observations));
        psi_trajectories_free(ctx, data);
        free(made);
    }
}

// More than one page of observations.
static void test_collector_of_many_pages(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    uint8_t *images = malloc(3 * BYTES);
    const psi_episode_spec spec = {.observation_dtype = PSI_UINT8,
                                   .observation_shape = {.rank = 1, .dim = {BYTES}},
                                   .observation_high = 255,
                                   .n_actions = 2};
    psi_collector *collector;
    psi_trajectories *data;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (int e = 0; e < 20; e++) {
        for (int t = 0; t < 3; t++) memset(images + t * BYTES, 3 * e + t, BYTES);
        const psi_episode episode = {.length = 2,
                                     .observations = images,
                                     .actions = (int32_t[]){0, 1},
                                     .rewards = (double[]){0, e},
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    const uint8_t *all = psi_observations_data(data->observations);
    for (size_t i = 0; i < 60; i++) {
        assert_int_equal(all[i * BYTES], i);
        assert_int_equal(all[(i + 1) * BYTES - 1], i);
    }
    psi_trajectories_free(ctx, data);
    free(images);
}

static void test_episodes_that_are_refused(void **state)
{
    (void)state;
    memory *made = make_memory(3);
    psi_collector *collector;
    psi_writer *writer;
    assert_ok(ctx, psi_collector_new(ctx, &made->spec, &collector));
    assert_ok(ctx, psi_writer_open(ctx, test_path(folder, "set"), &made->spec, false, &writer));
    const psi_episode good = made->episode[0];
    double nan[MOST_STEPS] = {strtod("nan", NULL)};
    int32_t large[MOST_STEPS] = {(int32_t)made->spec.n_actions}, low[MOST_STEPS + 1] = {-1};
    psi_episode bad[7];
    for (int i = 0; i < 7; i++) bad[i] = good;
    static const char *const says[] = {"0 steps", "neither", "rewards",      "actions",
                                       "actions", "missing", "latent states"};
    bad[0].length = 0;
    bad[1].terminated = bad[1].truncated = false;
    bad[2].rewards = nan;
    bad[3].actions = large;
    bad[4].actions = low;
    bad[5].latent_states = NULL;
    bad[6].latent_states = low;
    for (int i = 0; i < 7; i++) {
        assert_status(ctx, psi_collector_add(collector, &bad[i]), PSI_EDATA);
        test_assert_error_says(ctx, says[i]);
        assert_status(ctx, psi_writer_add(writer, &bad[i]), PSI_EDATA);
        test_assert_error_says(ctx, says[i]);
    }
    // a good one may follow
    assert_ok(ctx, psi_collector_add(collector, &good));
    assert_ok(ctx, psi_writer_add(writer, &good));
    psi_collector_discard(collector);
    psi_writer_discard(writer);
    psi_trajectories *data;
    assert_ok(ctx, psi_collector_new(ctx, &made->spec, &collector));
    assert_status(ctx, psi_collector_finish(collector, &data), PSI_EDATA);
    test_assert_error_says(ctx, "no episodes");
    psi_episode_spec spec = made->spec;
    spec.n_actions = 0;
    assert_status(ctx, psi_collector_new(ctx, &spec, &collector), PSI_ESHAPE);
    spec = made->spec;
    spec.observation_shape = (psi_shape){.rank = 1};
    assert_status(ctx, psi_collector_new(ctx, &spec, &collector), PSI_ESHAPE);
    spec = made->spec;
    spec.observation_low = 2;
    assert_status(ctx, psi_writer_open(ctx, test_path(folder, "x"), &spec, false, &writer),
                  PSI_EUSAGE);
    assert_null(writer);
    free(made);
}

static int entries(void)
{
    int n = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open));) n += entry->d_name[0] != '.';
    closedir(open);
    return n;
}

static void test_targets_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    static const char *const names[] = {"set", "set.npz"};
    for (int i = 0; i < 2; i++) {
        memory *made = make_memory((uint64_t)i + 7);
        const char *path = test_path(folder, names[i]);
        psi_writer *writer;
        psi_trajectories *data;
        assert_ok(ctx, psi_writer_open(ctx, path, &made->spec, false, &writer));
        assert_ok(ctx, psi_writer_add(writer, &made->episode[0]));
        assert_int_not_equal(access(path, F_OK), 0);
        psi_writer_discard(writer);
        assert_int_equal(entries(), i);
        assert_ok(ctx, psi_writer_open(ctx, path, &made->spec, false, &writer));
        assert_status(ctx, psi_writer_commit(writer), PSI_EDATA); // nothing in it
        assert_int_equal(entries(), i);
        assert_ok(ctx, write_all(ctx, path, made));
        assert_status(ctx, psi_writer_open(ctx, path, &made->spec, false, &writer), PSI_EUSAGE);
        assert_ok(ctx, write_all(ctx, path, made)); // replaces
        assert_ok(ctx, psi_trajectories_read(ctx, path, NULL, &data));
        check(made, data);
        psi_trajectories_free(ctx, data);
        assert_int_equal(entries(), i + 1);
        free(made);
    }
    memory *made = make_memory(1);
    psi_writer *writer;
    assert_status(ctx, psi_writer_open(ctx, "/no/such/folder/set", &made->spec, false, &writer),
                  PSI_EIO);
    assert_status(ctx, psi_writer_open(ctx, "/no/such/folder/set.npz", &made->spec, false, &writer),
                  PSI_EIO);
    made->spec.task_options = "{"; // not JSON: found when it is written
    assert_status(ctx, write_all(ctx, test_path(folder, "bad"), made), PSI_EFORMAT);
    assert_int_equal(entries(), 2);
    free(made);
}

typedef struct fault_work {
    const memory *made;
    const char *path;
} fault_work;

static psi_status write_work(psi_ctx *with, void *argument)
{
    const fault_work *work = argument;
    const psi_status status = write_all(with, work->path, work->made);
    assert_int_equal(access(work->path, F_OK) == 0, status == PSI_OK);
    assert_int_equal(entries(), status == PSI_OK);
    return status;
}

static psi_status collect_work(psi_ctx *with, void *argument)
{
    const fault_work *work = argument;
    psi_trajectories *data;
    const psi_status status = collect(with, work->made, &data);
    psi_trajectories_free(with, data);
    return status;
}

static void test_allocation_faults(void **state)
{
    (void)state;
    memory *made = make_memory(27); // latent states and task options
    fault_work work = {made, test_path(folder, "set")};
    assert_true(test_fault_sweep(write_work, &work) > 5);
    char command[512];
    snprintf(command, sizeof command, "rm -r '%s'", work.path);
    assert_int_equal(system(command), 0);
    work.path = test_path(folder, "set.npz");
    assert_true(test_fault_sweep(write_work, &work) > 5);
    assert_true(test_fault_sweep(collect_work, &work) > 5);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(round_trips),
        TEST(collector),
        TEST(collector_of_many_pages),
        TEST(episodes_that_are_refused),
        TEST(targets_appear_whole_or_not_at_all),
        TEST(allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
