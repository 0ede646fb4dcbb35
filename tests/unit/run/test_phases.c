// Phases: what a run says of where its time went, what it tells while it is under way, and that it
// can be stopped in every part of it.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/json.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>

enum { TRUNK = 12, STEPS = 11, EPISODES = 20, LENGTH = 15 };

static psi_cluster_options quick(void)
{
    psi_cluster_options options = psi_cluster_defaults();
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    options.approximator = PSI_APPROXIMATOR_MLP;
    options.trunk_steps = TRUNK;
    options.head_steps = 12;
    options.representation_steps = STEPS;
    options.hidden = 16;
    options.max_refinements = 3;
    return options;
}

// Episodes of one length without an end: a number that is rewarded when it is large.
static psi_trajectories *numbers(psi_ctx *ctx)
{
    const psi_episode_spec spec = {
        .observation_dtype = PSI_FLOAT32, .observation_shape = {1, {1}}, .n_actions = 1};
    psi_collector *collector;
    psi_trajectories *data;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        float observations[LENGTH + 1];
        double rewards[LENGTH];
        int32_t actions[LENGTH] = {0};
        base_random random = base_random_stream(1, 0, e);
        for (size_t i = 0; i <= LENGTH; i++) {
            observations[i] = (float)base_random_below(&random, 1000) / 1000.0f;
            if (i < LENGTH) rewards[i] = observations[i] > 0.5f ? 1.0 : 0.0;
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = observations,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static const psi_cluster_phase *phase(const psi_run *found, const char *name)
{
    for (size_t i = 0; i < found->n_phases; i++) {
        if (strcmp(found->phases[i].name, name) == 0) return &found->phases[i];
    }
    fail_msg("there is no phase '%s'", name);
    return NULL;
}

// Batches of 256, but for the last of an epoch, which is left out if it would be a single one.
static uint64_t trained_on(uint64_t n)
{
    const uint64_t per_epoch = n / 256 + (n % 256 > 1);
    return STEPS / per_epoch * (n % 256 == 1 ? n - 1 : n) + STEPS % per_epoch * 256;
}

static void passes_are_those_of_the_work(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = numbers(ctx);
    const psi_cluster_options options = quick();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    static const char *const names[] = {"learning features", "computing features", "refinements",
                                        "training the representation", "everything else"};
    assert_int_equal(found->n_phases, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(found->phases[i].name, names[i]);
        assert_true(found->phases[i].seconds > 0.0);
    }
    // 16 windows of 8 observations a step; every observation once; heads see features alone
    assert_int_equal(phase(found, "learning features")->passes, TRUNK * 16 * 8);
    assert_int_equal(phase(found, "computing features")->passes, EPISODES * (LENGTH + 1));
    assert_int_equal(phase(found, "refinements")->passes, 0);
    assert_int_equal(phase(found, "everything else")->passes, 0);
    // two episodes of the twenty are held out, whichever; labels that are ignored are not learnt
    const size_t all = EPISODES * (LENGTH + 1), judged = 2 * (LENGTH + 1);
    const uint64_t passes = phase(found, "training the representation")->passes;
    assert_true(passes > 0 && passes <= trained_on(all - judged) + judged);
    assert_true(found->ignored > 0.0 || passes == trained_on(all - judged) + judged);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static void a_table_passes_nothing(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "column-world", 100, 1, NULL);
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    static const char *const names[] = {"refinements", "everything else"};
    assert_int_equal(found->n_phases, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(found->phases[i].name, names[i]);
        assert_int_equal(found->phases[i].passes, 0);
    }
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// The paper's schedule trains the whole network at every refinement.
static void whole_networks_pass_in_refinements(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 20, 5, NULL);
    psi_cluster_options options;
    assert_ok(ctx, psi_cluster_paper(ctx, "column-world", &options));
    options.hidden = 16;
    options.max_refinements = 2;
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->n_phases, 3);
    assert_string_equal(found->phases[0].name, "refinements");
    assert_string_equal(found->phases[1].name, "training the representation");
    const size_t trained = data->n_transitions * 8 / 10; // at least; ignored states are left out
    assert_true(found->phases[0].passes > found->n_steps * options.sf_epochs * trained);
    assert_true(found->phases[1].passes > options.representation_epochs * trained);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// ---- told, and stopped --------------------------------------------------------------------------

// Hears every name, and cancels when it hears a certain one.
typedef struct listener {
    psi_ctx *ctx;
    const char *stop_at; // NULL: nothing
    bool heard;
    uint64_t total;
} listener;

static void listen(void *user, const psi_progress *progress)
{
    listener *to = user;
    assert_true(strlen(progress->phase) <= 30); // fits into the bar of the command
    assert_true(progress->total == 0 || progress->done <= progress->total);
    if (!to->stop_at || strcmp(progress->phase, to->stop_at) != 0) return;
    to->heard = true;
    to->total = progress->total;
    psi_cancel(to->ctx);
}

static psi_ctx *listening(listener *to, const char *stop_at)
{
    *to = (listener){.stop_at = stop_at};
    const psi_options options = {
        .size = sizeof options, .progress = listen, .user = to, .threads = 1};
    assert_int_equal(psi_ctx_new(&options, &to->ctx), PSI_OK);
    return to->ctx;
}

// Clusters to the end, or until it is stopped.
static psi_status work_on(psi_ctx *ctx, const psi_trajectories *data, const char *folder)
{
    const psi_cluster_options options = quick();
    psi_run *run;
    const psi_status status =
        test_cluster_into(ctx, folder, PSI_FOLDER_RESUME, data, &options, &run);
    psi_run_free(ctx, run);
    return status;
}

static json_t *manifest_of(psi_ctx *ctx, const char *folder)
{
    char path[1024];
    json_t *manifest;
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    assert_ok(ctx, base_json_load(ctx, path, 1 << 20, &manifest));
    return manifest;
}

static void every_part_is_told_and_can_be_stopped(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t total; // 0: not known here
    } parts[] = {{"fingerprint of the data", EPISODES * (LENGTH + 1)},
                 {"checking observations", EPISODES * (LENGTH + 1)},
                 {"learning features", TRUNK},
                 {"computing features", EPISODES * (LENGTH + 1)},
                 {"refinement 1: learning", 12},
                 {"refinement 1: predicting", EPISODES * (LENGTH + 1)},
                 {"refinement 1: clustering", EPISODES * (LENGTH + 1)},
                 {"refinement 2: learning", 12},
                 {"refinement 2: testing", EPISODES * LENGTH},
                 {"refinement 2: clustering", EPISODES * (LENGTH + 1)},
                 {"training the representation", STEPS},
                 {"testing the representation", 0}};
    listener to, patient; // each with a context of its own
    psi_ctx *ctx = listening(&patient, NULL);
    char *folder = test_folder();
    char whole[512], pieces[512];
    snprintf(whole, sizeof whole, "%s/whole", folder);
    psi_trajectories *data = numbers(ctx);
    assert_ok(ctx, work_on(ctx, data, whole));
    json_t *expected = manifest_of(ctx, whole);
    assert_int_equal(json_array_size(json_object_get(expected, "phases")), 6);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        psi_ctx *stopped = listening(&to, parts[i].name);
        snprintf(pieces, sizeof pieces, "%s/%zu", folder, i);
        const psi_status status = work_on(stopped, data, pieces);
        if (!to.heard) fail_msg("nothing was told of '%s'", parts[i].name);
        if (parts[i].total > 0) assert_int_equal(to.total, parts[i].total);
        assert_int_equal(status, PSI_ECANCELLED);
        psi_ctx_free(stopped);
        assert_ok(ctx, work_on(ctx, data, pieces));
        json_t *found = manifest_of(ctx, pieces);
        assert_true(
            json_equal(json_object_get(found, "phases"), json_object_get(expected, "phases")));
        json_decref(found);
    }
    json_decref(expected);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Clusters that are only ever split are told, too.
static void splitting_is_told(void **state)
{
    (void)state;
    listener to;
    psi_ctx *ctx = listening(&to, "refinement 2: clustering");
    psi_trajectories *data = numbers(ctx);
    psi_cluster_options options = quick();
    options.split = true;
    psi_run *found;
    assert_status(ctx, psi_cluster(ctx, data, &options, &found), PSI_ECANCELLED);
    assert_true(to.heard);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_those_of_the_work),
        cmocka_unit_test(a_table_passes_nothing),
        cmocka_unit_test(whole_networks_pass_in_refinements),
        cmocka_unit_test(every_part_is_told_and_can_be_stopped),
        cmocka_unit_test(splitting_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
