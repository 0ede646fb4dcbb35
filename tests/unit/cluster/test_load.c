// A day's work in one process: clusterings of small tasks one after the other, while memory is
// refused, files cannot grow and somebody cancels, at random. Nothing leaks, no answer is wrong,
// the same seed gives the same bytes, and what was interrupted goes on to them. 40 clusterings, or
// 500 where PSIFOLD_FULL_SWEEPS is set.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"
#include "base/random.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// Under sanitizers every block is larger, and memory is not given back at once.
static const long MOST_GROWTH = 1 << 20;

typedef struct instance {
    const char *task;
    uint64_t episodes, seed;
    const char *const *settings;
    psi_trajectories *data;
    psi_cluster_options how;
    long allocations;     // that an undisturbed clustering asks for
    char *labels, *model; // the bytes of clusters.npy and latent.npz
    size_t labels_size, model_size;
} instance;

typedef enum fault { NOTHING, NO_MEMORY, NO_ROOM, CANCELLED, FAULTS } fault;
static const psi_status EXPECTED[FAULTS] = {PSI_OK, PSI_ENOMEM, PSI_EIO, PSI_ECANCELLED};

typedef struct stopper {
    psi_ctx *ctx;
    size_t left; // refinements until it cancels; 0: never
} stopper;

static psi_status watch(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                        const int32_t *labels)
{
    stopper *one = user;
    (void)step, (void)refinement, (void)n, (void)labels;
    if (one->left > 0 && --one->left == 0) psi_cancel(one->ctx);
    return PSI_OK;
}

static psi_status run_into(psi_ctx *ctx, const instance *of, const char *folder,
                           psi_folder_mode mode, size_t cancel_after)
{
    stopper one = {ctx, cancel_after};
    psi_cluster_options how = of->how;
    psi_run *run;
    how.watch = watch;
    how.user = &one;
    const psi_status status = test_cluster_into(ctx, folder, mode, of->data, &how, &run);
    assert_true((status == PSI_OK) == (run != NULL));
    assert_true(status == PSI_OK || psi_error(ctx)->message[0] != '\0');
    psi_run_free(ctx, run);
    return status;
}

static char *read_bytes(psi_ctx *ctx, const char *folder, const char *name, size_t *size)
{
    char *bytes;
    assert_ok(ctx, base_read_file(ctx, test_path(folder, name), 1 << 24, &bytes, size));
    return bytes;
}

static void assert_bytes(psi_ctx *ctx, const instance *of, const char *folder)
{
    size_t n;
    char *labels = read_bytes(ctx, folder, "clusters.npy", &n);
    assert_int_equal(n, of->labels_size);
    assert_memory_equal(labels, of->labels, n);
    base_free(ctx, labels);
    char *model = read_bytes(ctx, folder, "latent.npz", &n);
    assert_int_equal(n, of->model_size);
    assert_memory_equal(model, of->model, n);
    base_free(ctx, model);
    assert_ok(ctx, psi_run_check(ctx, folder));
}

static void undisturbed(psi_ctx *ctx, instance *of, const char *folder)
{
    test_faults faults = {0};
    of->data = test_collect(ctx, of->task, of->episodes, of->seed, of->settings);
    of->how = psi_cluster_defaults();
    of->how.seed = of->seed;
    of->how.hidden = 16; // networks, where there are any, are small and learn little
    of->how.trunk_steps = of->how.head_steps = of->how.representation_steps = 30;
    psi_ctx *counting = test_faulty_ctx(&faults, 1);
    assert_ok(counting, run_into(counting, of, folder, PSI_FOLDER_NEW, 0));
    psi_ctx_free(counting);
    assert_int_equal(faults.live, 0);
    of->allocations = faults.count;
    of->labels = read_bytes(ctx, folder, "clusters.npy", &of->labels_size);
    of->model = read_bytes(ctx, folder, "latent.npz", &of->model_size);
    base_remove(folder);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// One clustering with a fault, and what is left of it.
static psi_status disturbed(const instance *of, fault with, base_random *random, const char *folder)
{
    const uint32_t where = base_random_below(random, 1000);
    test_faults faults = {.fail_at = with == NO_MEMORY ? 1 + of->allocations * where / 1000 : 0};
    psi_ctx *ctx = test_faulty_ctx(&faults, 1);
    if (!ctx) return PSI_ENOMEM;
    if (with == NO_ROOM) limit_files(where * 2); // the largest files have a few thousand bytes
    const psi_status status =
        run_into(ctx, of, folder, PSI_FOLDER_NEW, with == CANCELLED ? 1 + where % 3 : 0);
    if (with == NO_ROOM) limit_files(RLIM_INFINITY);
    if (status != PSI_OK && status != EXPECTED[with])
        fail_msg("%s with fault %d: %s: %s", of->task, with, psi_status_name(status),
                 psi_error(ctx)->message);
    psi_ctx_free(ctx);
    assert_int_equal(faults.live, 0);
    return status;
}

static void one_after_the_other(void **state)
{
    (void)state;
    static const char *const short_walk[] = {"max-steps", "30", NULL};
    instance all[] = {
        {.task = "column-world", .episodes = 12, .settings = short_walk},
        {.task = "column-world", .episodes = 40, .seed = 1},
        {.task = "point-column-world", .episodes = 8, .seed = 2, .settings = short_walk}};
    enum { KINDS = sizeof all / sizeof *all };
    const size_t total = getenv("PSIFOLD_FULL_SWEEPS") ? 500 : 40;
    size_t ended[FAULTS][2] = {0}, resumed = 0;
    long before = 0;
    base_random random = base_random_stream(19, 0x6c6f6164, 0);
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    char *const path = strdup(test_path(folder, "run"));
    signal(SIGXFSZ, SIG_IGN); // as the command has it
    for (size_t k = 0; k < KINDS; k++) undisturbed(ctx, &all[k], path);
    for (size_t i = 0; i < total; i++) {
        const instance *of = &all[base_random_below(&random, KINDS)];
        const fault with = (fault)base_random_below(&random, FAULTS);
        const psi_status status = disturbed(of, with, &random, path);
        ended[with][status != PSI_OK]++;
        if (status != PSI_OK) { // a run that was stopped is gone on with, or made anew
            const psi_status again = run_into(ctx, of, path, PSI_FOLDER_RESUME, 0);
            assert_ok(ctx, again);
            resumed++;
        }
        assert_bytes(ctx, of, path);
        base_remove(path);
        if (i == total / 4) before = (long)mallinfo2().uordblks;
    }
    const long growth = (long)mallinfo2().uordblks - before;
    for (size_t k = 0; k < KINDS; k++) {
        psi_trajectories_free(ctx, all[k].data);
        base_free(ctx, all[k].labels);
        base_free(ctx, all[k].model);
    }
    for (size_t f = 1; f < FAULTS; f++) assert_true(ended[f][1] > 0); // each was met
    assert_true(resumed > 0);
    print_message("%zu clusterings: %zu undisturbed, %zu without memory, %zu without room, %zu "
                  "cancelled; memory grew by %ld bytes\n",
                  total, ended[NOTHING][0], ended[NO_MEMORY][1], ended[NO_ROOM][1],
                  ended[CANCELLED][1], growth);
    assert_true(growth < MOST_GROWTH);
    free(path);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_after_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
