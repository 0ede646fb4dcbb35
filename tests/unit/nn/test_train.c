// Training: it learns, it stops and continues exactly, it is deterministic, it takes no memory in a
// step, and it says what is wrong.
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A toy task: images in which one of four quadrants is bright; action 1 counts the other way round.
enum { SIDE = 16, PIXELS = SIDE * SIDE, SAMPLES = 512, CLASSES = 4, ACTIONS = 2 };

typedef struct toy {
    uint8_t images[SAMPLES][PIXELS];
    int32_t actions[SAMPLES], targets[SAMPLES];
} toy;

static toy *make_toy(void)
{
    toy *t = calloc(1, sizeof *t);
    uint32_t state = 1;
    for (size_t i = 0; i < SAMPLES; i++) {
        const int quadrant = (int)(i % CLASSES);
        t->actions[i] = (int32_t)(i / CLASSES % ACTIONS);
        t->targets[i] = t->actions[i] ? CLASSES - 1 - quadrant : quadrant;
        for (size_t p = 0; p < PIXELS; p++) {
            const int here = (p / SIDE >= SIDE / 2) * 2 + (p % SIDE >= SIDE / 2);
            state = state * 1664525u + 1013904223u;
            t->images[i][p] = (uint8_t)((state >> 24) / 4 + (here == quadrant ? 120 : 0));
        }
    }
    return t;
}

static psi_status gather(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, void *out)
{
    (void)ctx;
    const toy *t = user;
    for (size_t i = 0; i < n; i++) memcpy((char *)out + i * PIXELS, t->images[rows[i]], PIXELS);
    return PSI_OK;
}

static psi_samples samples_of(toy *t)
{
    return (psi_samples){
        .source = {t, gather}, .n = SAMPLES, .actions = t->actions, .targets = t->targets};
}

static psi_net *make_net(psi_ctx *ctx, psi_net_kind kind)
{
    const psi_shape shape =
        kind == PSI_NET_MLP ? (psi_shape){1, {PIXELS}} : (psi_shape){3, {1, SIDE, SIDE}};
    psi_net_spec spec = psi_net_defaults(kind, &shape, PSI_UINT8, ACTIONS, CLASSES);
    spec.hidden[0] = 64;
    spec.hidden[1] = 40;
    psi_net *net;
    assert_ok(ctx, psi_net_new(ctx, &spec, 5, &net));
    return net;
}

static psi_work *make_work(psi_ctx *ctx, const psi_net *net, size_t batch)
{
    const psi_work_options options = {.size = sizeof options, .max_batch = batch};
    psi_work *work;
    assert_ok(ctx, psi_work_new(ctx, net, &options, &work));
    return work;
}

static psi_train_options usual(size_t epochs)
{
    return (psi_train_options){
        .size = sizeof(psi_train_options),
        .batch = 60,
        .epochs = epochs,
        .schedule = {.kind = PSI_COSINE, .learning_rate = 2e-3, .warmup_steps = 3},
        .held_out = 0.2,
        .seed = 9};
}

static psi_status keep_epoch(void *user, const psi_epoch *epoch, bool *stop)
{
    *(psi_epoch *)user = *epoch;
    *stop = false;
    return PSI_OK;
}

static void learns(psi_net_kind kind, size_t epochs)
{
    psi_ctx *ctx = test_ctx(2);
    toy *t = make_toy();
    psi_net *net = make_net(ctx, kind);
    psi_work *work = make_work(ctx, net, 64);
    const psi_samples samples = samples_of(t);
    psi_train_options options = usual(epochs);
    psi_epoch last = {0};
    options.after_epoch = keep_epoch;
    options.user = &last;
    assert_ok(ctx, psi_net_train(ctx, net, work, &samples, &options));
    assert_int_equal(last.epoch, epochs);
    assert_true(last.training_loss < 0.1);
    assert_true(last.held_out_accuracy > 0.98);
    // the heads alone, on cached features, do as well
    const size_t n_features = psi_net_n_features(net);
    float *features = malloc(SAMPLES * n_features * sizeof *features);
    float *outputs = malloc(SAMPLES * ACTIONS * CLASSES * sizeof *outputs);
    float *again = malloc(SAMPLES * ACTIONS * CLASSES * sizeof *again);
    assert_ok(ctx, psi_net_predict_all(ctx, net, work, &samples.source, NULL, SAMPLES, NULL,
                                       features, outputs));
    psi_net *head;
    assert_ok(ctx, psi_net_head(ctx, net, ACTIONS, CLASSES, 1, &head));
    psi_work *head_work = make_work(ctx, head, 100);
    assert_ok(ctx, psi_net_predict(ctx, head, head_work, features, SAMPLES, NULL, again));
    for (size_t i = 0; i < SAMPLES * ACTIONS * CLASSES; i++) {
        assert_true(fabsf(again[i] - outputs[i]) <= 1e-4f * (1 + fabsf(outputs[i])));
    }
    assert_ok(ctx, psi_net_set_head(ctx, net, head));
    psi_work_free(ctx, head_work);
    psi_net_free(ctx, head);
    free(features);
    free(outputs);
    free(again);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    free(t);
    psi_ctx_free(ctx);
}

static void mlp_learns(void **state)
{
    (void)state;
    learns(PSI_NET_MLP, 10);
}

static void cnn_learns(void **state)
{
    (void)state;
    learns(PSI_NET_CNN, 6);
}

static void resnet18_learns(void **state)
{
    (void)state;
    learns(PSI_NET_RESNET18, 10);
}

// All parameters and statistics in a row.
static psi_real *all_numbers(psi_ctx *ctx, const psi_net *net, size_t *n)
{
    psi_real *numbers = NULL;
    *n = 0;
    for (size_t t = 0; t < psi_net_tensor_count(net); t++) {
        psi_tensor_info info;
        assert_ok(ctx, psi_net_tensor_info(ctx, net, t, &info));
        const size_t size = psi_shape_size(&info.shape);
        numbers = realloc(numbers, (*n + size) * sizeof *numbers);
        assert_ok(ctx, psi_net_tensor_get(ctx, net, t, numbers + *n));
        *n += size;
    }
    return numbers;
}

static psi_real *trained(int threads, psi_net_kind kind, uint64_t stop_at, size_t *n)
{
    psi_ctx *ctx = test_ctx(threads);
    toy *t = make_toy();
    psi_net *net = make_net(ctx, kind);
    psi_work *work = make_work(ctx, net, 64);
    const psi_samples samples = samples_of(t);
    const psi_train_options options = usual(2);
    psi_training *training;
    assert_ok(ctx, psi_training_new(ctx, net, work, &samples, &options, &training));
    if (stop_at > 0) { // into a file, and on with everything made anew
        char *folder = test_folder();
        const char *path = test_path(folder, "state.safetensors");
        assert_ok(ctx, psi_training_run(ctx, training, stop_at));
        assert_false(psi_training_finished(training));
        assert_ok(ctx, psi_training_save(ctx, training, path));
        psi_training_free(ctx, training);
        psi_net_free(ctx, net);
        net = make_net(ctx, kind);
        assert_ok(ctx, psi_training_new(ctx, net, work, &samples, &options, &training));
        assert_ok(ctx, psi_training_load(ctx, training, path));
        test_folder_free(folder);
    }
    assert_ok(ctx, psi_training_run(ctx, training, 0));
    assert_true(psi_training_finished(training));
    psi_real *numbers = all_numbers(ctx, net, n);
    psi_training_free(ctx, training);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    free(t);
    psi_ctx_free(ctx);
    return numbers;
}

static void same_seed_gives_the_same_bytes(void **state)
{
    (void)state;
    size_t n, m;
    psi_real *a = trained(2, PSI_NET_CNN, 0, &n), *b = trained(2, PSI_NET_CNN, 0, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n * sizeof *a);
    free(a);
    free(b);
}

static void continuing_is_exact(void **state)
{
    (void)state;
    const uint64_t stops[] = {1, 7, 8};
    size_t n, m;
    psi_real *whole = trained(2, PSI_NET_CNN, 0, &n);
    for (size_t i = 0; i < 3; i++) {
        psi_real *resumed = trained(2, PSI_NET_CNN, stops[i], &m);
        assert_memory_equal(whole, resumed, n * sizeof *whole);
        free(resumed);
    }
    free(whole);
}

// How many samples were asked for while a network was trained on them.
static psi_status count_gathered(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n,
                                 void *out)
{
    (void)ctx, (void)rows;
    *(uint64_t *)user += n;
    memset(out, 0, n * PIXELS);
    return PSI_OK;
}

static void what_was_seen_is_what_was_gathered(void **state)
{
    (void)state;
    toy *t = make_toy();
    psi_ctx *ctx = test_ctx(1);
    // the last batch of an epoch is full, small, or a single one, which is left out; or all is one
    static const size_t sizes[] = {120, 150, 121, 40};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        psi_net *net = make_net(ctx, PSI_NET_MLP);
        psi_work *work = make_work(ctx, net, 64);
        uint64_t gathered = 0;
        psi_samples samples = samples_of(t);
        samples.source = (psi_batch_source){&gathered, count_gathered};
        samples.n = sizes[i];
        psi_train_options options = usual(3);
        options.held_out = 0.0;
        options.max_steps = 5; // may end within an epoch
        psi_training *training;
        assert_ok(ctx, psi_training_new(ctx, net, work, &samples, &options, &training));
        while (!psi_training_finished(training)) {
            assert_int_equal(psi_training_seen(training), gathered);
            assert_ok(ctx, psi_training_run(ctx, training, 1));
        }
        assert_int_equal(psi_training_seen(training), gathered);
        psi_training_free(ctx, training);
        psi_work_free(ctx, work);
        psi_net_free(ctx, net);
    }
    free(t);
    psi_ctx_free(ctx);
}

// One step: later ones amplify rounding.
static void threads_agree_to_rounding(void **state)
{
    (void)state;
    toy *t = make_toy();
    double loss[2];
    psi_real *outputs[2];
    for (int threads = 1; threads <= 2; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        psi_net *net = make_net(ctx, PSI_NET_RESNET18);
        psi_work *work = make_work(ctx, net, 63);
        const psi_labels labels = {.actions = t->actions, .targets = t->targets};
        assert_ok(ctx, psi_net_forward(ctx, net, work, t->images, 63, PSI_NORM_BATCH));
        assert_ok(ctx, psi_net_loss(ctx, net, work, &labels, NULL, &loss[threads - 1]));
        outputs[threads - 1] = malloc(63 * 8 * sizeof(psi_real));
        memcpy(outputs[threads - 1], psi_work_outputs(work), 63 * 8 * sizeof(psi_real));
        psi_work_free(ctx, work);
        psi_net_free(ctx, net);
        psi_ctx_free(ctx);
    }
    assert_float_equal(loss[0], loss[1], 1e-5);
    for (size_t i = 0; i < 63 * 8; i++) assert_float_equal(outputs[0][i], outputs[1][i], 1e-4);
    free(outputs[0]);
    free(outputs[1]);
    free(t);
}

// Batches smaller than the number of threads leave some threads without rows.
static void small_batches_work(void **state)
{
    (void)state;
    toy *t = make_toy();
    psi_ctx *ctx = test_ctx(4);
    psi_net *net = make_net(ctx, PSI_NET_RESNET18);
    psi_work *work = make_work(ctx, net, 8);
    psi_adam *adam;
    assert_ok(ctx, psi_adam_new(ctx, net, NULL, &adam));
    const psi_labels labels = {.actions = t->actions, .targets = t->targets};
    for (size_t n = 2; n <= 8; n += 3) {
        double loss;
        assert_ok(ctx,
                  psi_net_train_step(ctx, net, work, adam, t->images, &labels, n, 1e-3, &loss));
        assert_true(isfinite(loss));
    }
    psi_adam_free(ctx, adam);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
    free(t);
}

static void a_step_takes_no_memory(void **state)
{
    (void)state;
    test_faults faults = {0};
    toy *t = make_toy();
    psi_ctx *ctx = test_faulty_ctx(&faults, 2);
    psi_net *net = make_net(ctx, PSI_NET_RESNET18);
    psi_work *work = make_work(ctx, net, 32);
    psi_adam *adam;
    assert_ok(ctx, psi_adam_new(ctx, net, NULL, &adam));
    const psi_labels labels = {.actions = t->actions, .targets = t->targets};
    double loss;
    float outputs[32 * ACTIONS * CLASSES];
    const long before = faults.count;
    for (int i = 0; i < 2; i++) {
        assert_ok(ctx,
                  psi_net_train_step(ctx, net, work, adam, t->images, &labels, 32, 1e-3, &loss));
        assert_ok(ctx, psi_net_predict(ctx, net, work, t->images, 32, NULL, outputs));
    }
    assert_int_equal(faults.count, before);
    psi_adam_free(ctx, adam);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
    free(t);
}

static void a_loss_that_is_no_number_is_said(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    toy *t = make_toy();
    psi_net *net = make_net(ctx, PSI_NET_CNN);
    psi_work *work = make_work(ctx, net, 64);
    const psi_samples samples = samples_of(t);
    psi_train_options options = usual(1);
    options.schedule = (psi_schedule){.kind = PSI_CONSTANT, .learning_rate = 1e30};
    assert_status(ctx, psi_net_train(ctx, net, work, &samples, &options), PSI_ENUMERIC);
    test_assert_error_says(ctx, "step 2");
    test_assert_error_says(ctx, "1e+30");
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    free(t);
    psi_ctx_free(ctx);
}

static void wrong_labels_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    toy *t = make_toy();
    psi_net *net = make_net(ctx, PSI_NET_MLP);
    psi_work *work = make_work(ctx, net, 64);
    psi_samples samples = samples_of(t);
    const psi_train_options options = usual(1);
    t->targets[300] = CLASSES;
    assert_status(ctx, psi_net_train(ctx, net, work, &samples, &options), PSI_EDATA);
    test_assert_error_says(ctx, "sample 300");
    t->targets[300] = 0;
    t->actions[17] = -1;
    assert_status(ctx, psi_net_train(ctx, net, work, &samples, &options), PSI_EDATA);
    psi_train_options large = usual(1);
    t->actions[17] = 0;
    large.batch = 65;
    assert_status(ctx, psi_net_train(ctx, net, work, &samples, &large), PSI_EUSAGE);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    free(t);
    psi_ctx_free(ctx);
}

static psi_status make_and_train(psi_ctx *ctx, void *argument)
{
    const psi_samples samples = samples_of(argument);
    const psi_shape shape = {3, {1, SIDE, SIDE}};
    const psi_net_spec spec = psi_net_defaults(PSI_NET_CNN, &shape, PSI_UINT8, ACTIONS, CLASSES);
    const psi_work_options work_options = {.size = sizeof work_options, .max_batch = 8};
    const psi_train_options options = {.size = sizeof options,
                                       .batch = 8,
                                       .epochs = 1,
                                       .max_steps = 1,
                                       .schedule = {.learning_rate = 1e-3},
                                       .seed = 1};
    psi_net *net = NULL, *copy = NULL;
    psi_work *work = NULL;
    psi_status status = psi_net_new(ctx, &spec, 1, &net);
    if (status == PSI_OK) status = psi_net_clone(ctx, net, &copy);
    if (status == PSI_OK) status = psi_work_new(ctx, net, &work_options, &work);
    if (status == PSI_OK) status = psi_net_train(ctx, net, work, &samples, &options);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    psi_net_free(ctx, copy);
    return status;
}

static void running_out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    toy *t = make_toy();
    assert_true(test_fault_sweep(make_and_train, t) > 20);
    free(t);
}

static void schedules_rise_and_fall(void **state)
{
    (void)state;
    const psi_schedule linear = {PSI_LINEAR, 1.0, 4, 0.5}, cosine = {PSI_COSINE, 2.0, 0, 0};
    assert_float_equal(psi_schedule_at(&linear, 0, 100), 0.2, 1e-12);
    assert_float_equal(psi_schedule_at(&linear, 4, 100), 1.0, 1e-12);
    assert_float_equal(psi_schedule_at(&linear, 50, 100), 1.0, 1e-12);
    assert_float_equal(psi_schedule_at(&linear, 75, 100), 0.5, 1e-12);
    assert_float_equal(psi_schedule_at(&linear, 100, 100), 0.0, 1e-12);
    assert_float_equal(psi_schedule_at(&cosine, 50, 100), 1.0, 1e-12);
    const psi_schedule constant = {PSI_CONSTANT, 0.5, 0, 0};
    assert_float_equal(psi_schedule_at(&constant, 99, 100), 0.5, 1e-12);
}

static void blending_is_a_weighted_mean(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_net *a = make_net(ctx, PSI_NET_MLP), *b;
    const psi_net_spec spec = *psi_net_spec_of(a);
    assert_ok(ctx, psi_net_new(ctx, &spec, 6, &b));
    size_t n;
    psi_real *before = all_numbers(ctx, a, &n), *other = all_numbers(ctx, b, &n);
    assert_ok(ctx, psi_net_blend(ctx, a, b, 0.25));
    psi_real *after = all_numbers(ctx, a, &n);
    for (size_t i = 0; i < n; i++) {
        assert_float_equal(after[i], 0.75f * before[i] + 0.25f * other[i], 1e-6f);
    }
    psi_net *resnet = make_net(ctx, PSI_NET_RESNET18);
    assert_status(ctx, psi_net_blend(ctx, a, resnet, 0.5), PSI_ESHAPE);
    // torchvision counts 11,689,512 with three channels of input
    assert_int_equal(psi_net_n_parameters(resnet), 11683240 + 8 * 1001);
    free(before);
    free(other);
    free(after);
    psi_net_free(ctx, a);
    psi_net_free(ctx, b);
    psi_net_free(ctx, resnet);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mlp_learns),
        cmocka_unit_test(cnn_learns),
        cmocka_unit_test(resnet18_learns),
        cmocka_unit_test(same_seed_gives_the_same_bytes),
        cmocka_unit_test(continuing_is_exact),
        cmocka_unit_test(what_was_seen_is_what_was_gathered),
        cmocka_unit_test(threads_agree_to_rounding),
        cmocka_unit_test(small_batches_work),
        cmocka_unit_test(a_step_takes_no_memory),
        cmocka_unit_test(a_loss_that_is_no_number_is_said),
        cmocka_unit_test(wrong_labels_are_refused),
        cmocka_unit_test(running_out_of_memory_leaks_nothing),
        cmocka_unit_test(schedules_rise_and_fall),
        cmocka_unit_test(blending_is_a_weighted_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
