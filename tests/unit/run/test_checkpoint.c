// Runs that are interrupted between two refinements and resumed, and checkpoints that were tampered
// with. tests/faults/interrupt does the same from outside, with kill −9.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static psi_cluster_options quick(void)
{
    psi_cluster_options options = psi_cluster_defaults();
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    options.trunk_steps = options.head_steps = options.representation_steps = 12;
    options.hidden = 16;
    options.max_refinements = 3;
    return options;
}

// Stops a run after so many refinements, those that are told once more not counted.
typedef struct stopper {
    psi_ctx *ctx;
    size_t left, seen, told_again;
} stopper;

static psi_status stop_after(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                             const int32_t *labels)
{
    (void)step, (void)n;
    stopper *stop = user;
    assert_int_equal(refinement, ++stop->seen); // from 1, without a gap
    if (!labels) {
        stop->told_again++;
        return PSI_OK;
    }
    return stop->left-- == 1 ? FAIL(stop->ctx, PSI_ECANCELLED, "stopped") : PSI_OK;
}

static char *read_all(psi_ctx *ctx, const char *path, size_t *size)
{
    char *bytes;
    assert_ok(ctx, base_read_file(ctx, path, 1 << 24, &bytes, size));
    return bytes;
}

static void assert_same_file(psi_ctx *ctx, const char *one, const char *other, const char *name)
{
    char path[512];
    size_t n, m;
    snprintf(path, sizeof path, "%s/%s", one, name);
    char *a = read_all(ctx, path, &n);
    snprintf(path, sizeof path, "%s/%s", other, name);
    char *b = read_all(ctx, path, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    base_free(ctx, b);
    base_free(ctx, a);
}

static void cluster_into(psi_ctx *ctx, const psi_trajectories *data, psi_cluster_options options,
                         const char *folder)
{
    psi_run *run;
    assert_ok(ctx, test_cluster_into(ctx, folder, PSI_FOLDER_NEW, data, &options, &run));
    psi_run_free(ctx, run);
}

// What a run that was stopped says of the time it took, so far.
static double seconds_kept(psi_ctx *ctx, const char *folder)
{
    char path[640];
    psi_shape shape;
    void *spent;
    snprintf(path, sizeof path, "%s/checkpoint/phases.npz", folder);
    assert_ok(ctx, psi_array_load(ctx, path, "spent", PSI_FLOAT64, &shape, &spent));
    const double seconds = *(const double *)spent;
    psi_array_free(ctx, spent);
    return seconds;
}

// Passes are part of the result; seconds are not, but those of the pieces are all there.
static void assert_same_phases(psi_ctx *ctx, const char *whole, const char *pieces, double spent)
{
    const char *const folders[] = {whole, pieces};
    json_t *manifest[2];
    for (size_t i = 0; i < 2; i++) {
        char path[640];
        snprintf(path, sizeof path, "%s/manifest.json", folders[i]);
        assert_ok(ctx, base_json_load(ctx, path, 1 << 20, &manifest[i]));
        const json_t *timings = json_object_get(manifest[i], "timings");
        const double all = json_number_value(json_object_get(timings, "seconds"));
        double sum = 0.0;
        const char *name;
        json_t *seconds;
        json_object_foreach(json_object_get(timings, "phases"), name, seconds)
        {
            sum += json_number_value(seconds);
        }
        assert_true(sum > 0.0 && sum <= all);
        if (i == 1) assert_true(all > spent && sum > 0.5 * spent);
    }
    const json_t *phases = json_object_get(manifest[0], "phases");
    assert_true(json_array_size(phases) >= 2);
    assert_true(json_equal(phases, json_object_get(manifest[1], "phases")));
    json_decref(manifest[1]);
    json_decref(manifest[0]);
}

// Stops after every refinement and resumes, to the end. Returns how often it was stopped.
static size_t cluster_in_pieces(psi_ctx *ctx, const psi_trajectories *data,
                                psi_cluster_options options, const char *folder, double *spent)
{
    *spent = 0.0;
    for (size_t stopped = 0;; stopped++) {
        stopper stop = {.ctx = ctx, .left = 1};
        psi_run *run;
        options.watch = stop_after;
        options.user = &stop;
        const psi_status status =
            test_cluster_into(ctx, folder, PSI_FOLDER_RESUME, data, &options, &run);
        assert_int_equal(stop.told_again, stopped);
        psi_run_free(ctx, run);
        if (status == PSI_OK) return stopped;
        assert_int_equal(status, PSI_ECANCELLED);
        const double before = *spent;
        *spent = seconds_kept(ctx, folder);
        assert_true(*spent > before);
        assert_status(ctx, psi_run_load(ctx, folder, &run), PSI_EMISSING);
        test_assert_error_says(ctx, "--resume");
    }
}

static void a_run_in_pieces_is_the_same_run(void **state)
{
    (void)state;
    static const char *const files[] = {"clusters.npy",
                                        "clusters-01.npy",
                                        "clusters-02.npy",
                                        "latent.npz",
                                        "certificate.npz",
                                        "trunk.safetensors",
                                        "representation.safetensors",
                                        "heads-02.safetensors",
                                        "latent-02.npz"};
    for (int kind = 0; kind < 3; kind++) { // a table, heads, the paper's schedule
        psi_ctx *ctx = test_ctx(1);
        char *folder = test_folder();
        const char *whole = test_path(folder, "whole"), *pieces = test_path(folder, "pieces");
        psi_cluster_options options = quick();
        if (kind == 2) {
            assert_ok(ctx, psi_cluster_paper(ctx, "column-world", &options));
            options.hidden = 16;
            options.max_refinements = 3;
        }
        options.approximator = kind == 0 ? PSI_APPROXIMATOR_TABLE : PSI_APPROXIMATOR_MLP;
        options.seed = 3;
        psi_trajectories *data =
            test_collect(ctx, kind == 0 ? "column-world" : "point-column-world", 40, 5, NULL);
        cluster_into(ctx, data, options, whole);
        double spent;
        assert_in_range(cluster_in_pieces(ctx, data, options, pieces, &spent), 2, 20);
        assert_same_phases(ctx, whole, pieces, spent);
        for (size_t i = 0; i < (kind == 0 ? 5 : kind == 2 ? 7 : 9); i++) {
            assert_same_file(ctx, whole, pieces, files[i]);
        }
        assert_int_not_equal(access(test_path(pieces, "checkpoint"), F_OK), 0);
        psi_run_folder *at;
        assert_ok(ctx, psi_run_folder_open(ctx, pieces, PSI_FOLDER_RESUME, &at));
        assert_true(psi_run_folder_finished(at));
        psi_run_folder_close(at);
        assert_ok(ctx, psi_run_check(ctx, pieces));
        psi_trajectories_free(ctx, data);
        test_folder_free(folder);
        psi_ctx_free(ctx);
    }
}

// A run that was stopped after so many refinements.
static void interrupt_after(psi_ctx *ctx, size_t refinements, const psi_trajectories *data,
                            psi_cluster_options options, const char *folder)
{
    stopper stop = {.ctx = ctx, .left = refinements};
    psi_run *run;
    options.watch = stop_after;
    options.user = &stop;
    assert_status(ctx, test_cluster_into(ctx, folder, PSI_FOLDER_NEW, data, &options, &run),
                  PSI_ECANCELLED);
}

static void interrupt(psi_ctx *ctx, const psi_trajectories *data, psi_cluster_options options,
                      const char *folder)
{
    interrupt_after(ctx, 2, data, options, folder);
}

static void assert_refused(psi_ctx *ctx, const psi_trajectories *data, psi_cluster_options options,
                           const char *folder, const char *sentence)
{
    psi_run *run;
    assert_status(ctx, test_cluster_into(ctx, folder, PSI_FOLDER_RESUME, data, &options, &run),
                  PSI_EUSAGE);
    test_assert_error_says(ctx, sentence); // and the folder is as it was
    char start[640];
    snprintf(start, sizeof start, "%s/checkpoint/start.json", folder);
    assert_int_equal(access(start, F_OK), 0);
}

static void only_the_same_run_is_resumed(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1), *other_ctx = test_ctx(2);
    char *folder = test_folder();
    char path[512];
    snprintf(path, sizeof path, "%s/run", folder);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 40, 5, NULL);
    psi_trajectories *other = test_collect(ctx, "point-column-world", 40, 6, NULL);
    psi_cluster_options options = quick();
    interrupt(ctx, data, options, path);
    assert_refused(ctx, other, options, path, "started with data");
    assert_refused(other_ctx, data, options, path, "started with threads 1, not 2");
    options.seed = 1;
    assert_refused(ctx, data, options, path, "started with seed 0, not 1");
    options = quick();
    options.gamma = 0.6;
    assert_refused(ctx, data, options, path, "started with gamma 0.5, not 0.6");
    // neither is it overwritten by accident
    psi_run_folder *at, *second;
    assert_status(ctx, psi_run_folder_open(ctx, path, PSI_FOLDER_NEW, &at), PSI_EUSAGE);
    test_assert_error_says(ctx, "--resume");
    assert_ok(ctx, psi_run_folder_open(ctx, path, PSI_FOLDER_RESUME, &at));
    assert_status(ctx, psi_run_folder_open(ctx, path, PSI_FOLDER_RESUME, &second), PSI_EUSAGE);
    test_assert_error_says(ctx, "another process");
    assert_status(ctx, psi_run_folder_open(ctx, path, PSI_FOLDER_REPLACE, &second), PSI_EUSAGE);
    psi_run_folder_close(at);
    assert_ok(ctx, psi_run_folder_open(ctx, path, PSI_FOLDER_REPLACE, &at));
    psi_run_folder_close(at);
    // what is no run is left alone
    assert_status(ctx, psi_run_folder_open(ctx, "src", PSI_FOLDER_REPLACE, &at), PSI_EUSAGE);
    test_assert_error_says(ctx, "is no run");
    psi_trajectories_free(ctx, other);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(other_ctx);
    psi_ctx_free(ctx);
}

// The files of a checkpoint, to be damaged and put back.
enum { FILES = 7 };
static const char *const FILE_NAMES[FILES] = {"start.json",
                                              "state.npz",
                                              "phases.npz",
                                              "rewards.npy",
                                              "next-02.safetensors",
                                              "result/clusters-02.npy",
                                              "result/trunk.safetensors"};

typedef struct snapshot {
    char path[FILES][640];
    char *bytes[FILES];
    size_t size[FILES];
} snapshot;

static void take(psi_ctx *ctx, const char *run, snapshot *out)
{
    for (size_t f = 0; f < FILES; f++) {
        snprintf(out->path[f], sizeof out->path[f], "%s/checkpoint/%s", run, FILE_NAMES[f]);
        out->bytes[f] = read_all(ctx, out->path[f], &out->size[f]);
    }
}

static void put_back(const snapshot *from)
{
    for (size_t f = 0; f < FILES; f++) test_put(from->path[f], from->bytes[f], from->size[f]);
}

static void snapshot_free(psi_ctx *ctx, snapshot *from)
{
    for (size_t f = 0; f < FILES; f++) base_free(ctx, from->bytes[f]);
}

// Resumes a checkpoint that may be damaged: an answer, or a sentence.
static psi_status resume(psi_ctx *ctx, const psi_trajectories *data, const char *folder)
{
    psi_cluster_options options = quick();
    stopper stop = {.ctx = ctx, .left = 1};
    psi_run *run;
    options.watch = stop_after;
    options.user = &stop;
    const psi_status status =
        test_cluster_into(ctx, folder, PSI_FOLDER_RESUME, data, &options, &run);
    psi_run_free(ctx, run);
    return status;
}

static void assert_refused_or_resumed(psi_ctx *ctx, psi_status status)
{
    if (status == PSI_OK || status == PSI_ECANCELLED) return;
    assert_true(psi_error(ctx)->message[0] != '\0');
    assert_int_not_equal(status, PSI_EINTERNAL);
    assert_int_not_equal(status, PSI_ENOMEM);
}

static void a_damaged_checkpoint_is_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    char run[512];
    snprintf(run, sizeof run, "%s/run", folder);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 12, 5, NULL);
    base_random random = base_random_stream(7, 0, 0);
    snapshot whole;
    interrupt(ctx, data, quick(), run);
    take(ctx, run, &whole);
    for (size_t f = 0; f < FILES; f++) {
        for (int damage = 0; damage < 40; damage++) {
            put_back(&whole);
            const uint32_t size = (uint32_t)whole.size[f], at = base_random_below(&random, size);
            const char before = whole.bytes[f][at];
            whole.bytes[f][at] ^= (char)(1 + base_random_below(&random, 255));
            test_put(whole.path[f], whole.bytes[f], damage < 10 ? (size_t)at : size);
            whole.bytes[f][at] = before;
            assert_refused_or_resumed(ctx, resume(ctx, data, run));
        }
    }
    put_back(&whole);
    assert_int_equal(resume(ctx, data, run), PSI_ECANCELLED); // it was the damage
    snapshot_free(ctx, &whole);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Times in phases.npz that are none.
static void assert_times_are_checked(psi_ctx *ctx, const psi_trajectories *data, const char *run,
                                     size_t n_phases)
{
    char path[640];
    double seconds[16] = {0.0}, spent = 0.0;
    int64_t passes[16] = {0};
    assert_in_range(n_phases, 1, 16);
    const psi_array arrays[] = {{"seconds", PSI_FLOAT64, {1, {n_phases}}, seconds},
                                {"passes", PSI_INT64, {1, {n_phases}}, passes},
                                {"spent", PSI_FLOAT64, {1, {1}}, &spent}};
    snprintf(path, sizeof path, "%s/checkpoint/phases.npz", run);
    static const double lies[] = {-1.0, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < 6; i++) {
        double *at = i < 3 ? &seconds[n_phases - 1] : &spent;
        *at = lies[i % 3];
        assert_ok(ctx, psi_arrays_save(ctx, path, arrays, 3));
        assert_status(ctx, resume(ctx, data, run), PSI_EFORMAT);
        test_assert_error_says(ctx, "times");
        *at = 0.0;
    }
    passes[0] = INT64_MIN;
    assert_ok(ctx, psi_arrays_save(ctx, path, arrays, 3));
    assert_status(ctx, resume(ctx, data, run), PSI_EFORMAT);
}

// Whole files whose numbers lie.
static void a_lying_checkpoint_is_refused(void **state)
{
    (void)state;
    enum { COUNTERS = 4, FIELDS = 9 };
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    char run[512], path[640];
    snprintf(run, sizeof run, "%s/run", folder);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 12, 5, NULL);
    snapshot whole;
    interrupt(ctx, data, quick(), run);
    take(ctx, run, &whole);
    snprintf(path, sizeof path, "%s/checkpoint/state.npz", run);
    enum { ARRAYS = 4 };
    psi_shape shapes[ARRAYS];
    void *values[ARRAYS];
    static const char *const names[] = {"counters", "steps", "parent", "passes"};
    static const psi_dtype types[] = {PSI_INT64, PSI_FLOAT64, PSI_INT32, PSI_INT64};
    psi_array arrays[ARRAYS];
    for (size_t i = 0; i < ARRAYS; i++) {
        assert_ok(ctx, psi_array_load(ctx, path, names[i], types[i], &shapes[i], &values[i]));
        arrays[i] = (psi_array){names[i], types[i], shapes[i], values[i]};
    }
    assert_int_equal(shapes[0].dim[0], COUNTERS);
    assert_int_equal(shapes[1].dim[1], FIELDS);
    int64_t *counters = values[0];
    static const int64_t lies[] = {-1, 2, 7, 1000000, INT64_MAX, INT64_MIN};
    size_t refused = 0;
    for (size_t i = 0; i < COUNTERS; i++) {
        const int64_t truth = counters[i];
        for (size_t lie = 0; lie < sizeof lies / sizeof lies[0]; lie++) {
            counters[i] = lies[lie];
            assert_ok(ctx, psi_arrays_save(ctx, path, arrays, ARRAYS));
            const psi_status status = resume(ctx, data, run);
            assert_refused_or_resumed(ctx, status);
            refused += status == PSI_EFORMAT || status == PSI_EDATA;
            counters[i] = truth;
            put_back(&whole);
        }
    }
    assert_in_range(refused, 14, 24);
    int32_t *parent = values[2];
    static const int32_t strangers[] = {-2, 1000, INT32_MAX, INT32_MIN};
    for (size_t lie = 0; lie < 4; lie++) {
        const int32_t truth = parent[0];
        parent[0] = strangers[lie];
        assert_ok(ctx, psi_arrays_save(ctx, path, arrays, ARRAYS));
        assert_status(ctx, resume(ctx, data, run), PSI_EFORMAT);
        parent[0] = truth;
    }
    int64_t *passes = values[3];
    passes[0] = -1;
    assert_ok(ctx, psi_arrays_save(ctx, path, arrays, ARRAYS));
    assert_status(ctx, resume(ctx, data, run), PSI_EFORMAT);
    test_assert_error_says(ctx, "passes");
    put_back(&whole);
    assert_times_are_checked(ctx, data, run, shapes[3].dim[0]);
    for (size_t i = 0; i < ARRAYS; i++) psi_array_free(ctx, values[i]);
    snapshot_free(ctx, &whole);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

typedef struct sweep {
    const psi_trajectories *data;
    const char *folder;
} sweep;

static psi_status interrupt_and_resume(psi_ctx *ctx, void *argument)
{
    psi_status status = PSI_OK;
    const sweep *on = argument;
    psi_cluster_options options = quick();
    options.approximator = PSI_APPROXIMATOR_TABLE;
    options.watch = stop_after;
    psi_run *run = NULL;
    base_remove(on->folder);
    for (size_t piece = 0; piece < 2; piece++) {
        stopper stop = {.ctx = ctx, .left = piece == 0 ? 2 : SIZE_MAX};
        options.user = &stop;
        status = test_cluster_into(ctx, on->folder, PSI_FOLDER_RESUME, on->data, &options, &run);
        if (piece == 0 && status == PSI_ECANCELLED) status = PSI_OK;
        if (status != PSI_OK) break;
    }
    psi_run_free(ctx, run);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_trajectories *data = test_collect(ctx, "column-world", 12, 5, NULL);
    sweep on = {data, test_path(folder, "run")};
    assert_in_range(test_fault_sweep(interrupt_and_resume, &on), 200, 4000);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_in_pieces_is_the_same_run),
        cmocka_unit_test(only_the_same_run_is_resumed),
        cmocka_unit_test(a_damaged_checkpoint_is_refused),
        cmocka_unit_test(a_lying_checkpoint_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
