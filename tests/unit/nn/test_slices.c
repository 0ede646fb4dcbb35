// What a network learns does not depend on the number of threads or processes, to the last bit:
// steps, passes with every kind of norm and gradient, Adam, predictions. Batches are of one slice,
// two and four, and of fewer rows than there are threads.
#include "support/ranks.h"
#include "support/support.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 10, VECTOR = 21, ROWS = 260, ACTIONS = 3, CLASSES = 7 };

typedef struct batch {
    float vectors[ROWS * VECTOR];
    uint8_t images[ROWS * SIDE * SIDE];
    int32_t actions[ROWS], targets[ROWS];
    float weights[ROWS];
} batch;

static batch *make_batch(void)
{
    batch *b = malloc(sizeof *b);
    base_random random = base_random_stream(4, 0, 0);
    for (size_t i = 0; i < ROWS * VECTOR; i++) b->vectors[i] = (float)base_random_normal(&random);
    for (size_t i = 0; i < sizeof b->images; i++) {
        b->images[i] = (uint8_t)base_random_below(&random, 256);
    }
    for (size_t i = 0; i < ROWS; i++) {
        b->actions[i] = (int32_t)base_random_below(&random, ACTIONS);
        b->targets[i] = (int32_t)base_random_below(&random, CLASSES);
        b->weights[i] = (float)(0.5 + base_random_uniform(&random));
    }
    return b;
}

// Everything that came out, one thing after the other.
typedef struct trail {
    char *bytes;
    size_t n;
} trail;

static void keep(trail *t, const void *from, size_t bytes)
{
    t->bytes = realloc(t->bytes, t->n + bytes);
    memcpy(t->bytes + t->n, from, bytes);
    t->n += bytes;
}

static void keep_tensors(psi_ctx *ctx, const psi_net *net, const psi_work *gradients, trail *t)
{
    for (size_t i = 0; i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        assert_ok(ctx, psi_net_tensor_info(ctx, net, i, &info));
        const size_t n = psi_shape_size(&info.shape);
        if (gradients && !info.trained) continue;
        psi_real *values = malloc(n * sizeof *values);
        if (gradients)
            assert_ok(ctx, psi_work_gradient(ctx, net, gradients, i, values));
        else
            assert_ok(ctx, psi_net_tensor_get(ctx, net, i, values));
        keep(t, values, n * sizeof *values);
        free(values);
    }
}

// A pass forward and back, from gradients of the outputs, of the features or of both.
static void passes(psi_ctx *ctx, psi_net *net, psi_work *work, psi_adam *adam, const void *inputs,
                   const psi_labels *labels, size_t n, trail *t)
{
    const size_t d = psi_net_n_features(net), k = ACTIONS * CLASSES;
    const bool vectors = psi_net_spec_of(net)->kind == PSI_NET_MLP;
    psi_real *d_outputs = malloc(ROWS * k * sizeof *d_outputs);
    psi_real *d_features = malloc(ROWS * d * sizeof *d_features);
    psi_real *d_inputs = malloc((size_t)ROWS * VECTOR * sizeof *d_inputs);
    for (size_t i = 0; i < n * d; i++) d_features[i] = (psi_real)(i % 17) / 1000;
    for (int way = 0; way < 3; way++) {
        double loss;
        assert_ok(ctx, psi_net_forward(ctx, net, work, inputs, n,
                                       way == 1 ? PSI_NORM_FROZEN : PSI_NORM_BATCH));
        keep(t, psi_work_features(work), n * d * sizeof(psi_real));
        keep(t, psi_work_outputs(work), n * k * sizeof(psi_real));
        assert_ok(ctx, psi_net_loss(ctx, net, work, labels, d_outputs, &loss));
        assert_ok(ctx, psi_net_backward(ctx, net, work, way < 2 ? d_outputs : NULL,
                                        way > 0 ? d_features : NULL, vectors ? d_inputs : NULL));
        if (vectors) keep(t, d_inputs, n * VECTOR * sizeof *d_inputs);
        keep_tensors(ctx, net, work, t);
        assert_ok(ctx, psi_adam_step(ctx, adam, net, work, 1e-3));
    }
    free(d_outputs);
    free(d_features);
    free(d_inputs);
}

static trail everything(psi_ctx *ctx, psi_net_kind kind, size_t n_hidden, const batch *b)
{
    static const size_t sizes[] = {ROWS, 100, 3};
    const bool vectors = kind == PSI_NET_MLP;
    const psi_shape shape = vectors ? (psi_shape){1, {VECTOR}} : (psi_shape){3, {1, SIDE, SIDE}};
    const void *inputs = vectors ? (const void *)b->vectors : b->images;
    const psi_labels labels = {b->actions, b->targets, b->weights, NULL};
    psi_net_spec spec =
        psi_net_defaults(kind, &shape, vectors ? PSI_FLOAT32 : PSI_UINT8, ACTIONS, CLASSES);
    const psi_work_options options = {.size = sizeof options, .max_batch = ROWS, .shared = true};
    psi_net *net;
    psi_work *work;
    psi_adam *adam;
    trail t = {NULL, 0};
    if (vectors) spec.n_hidden = n_hidden;
    if (vectors) spec.hidden[0] = spec.hidden[1] = 70;
    assert_ok(ctx, psi_net_new(ctx, &spec, 5, &net));
    assert_ok(ctx, psi_work_new(ctx, net, &options, &work));
    assert_ok(ctx, psi_adam_new(ctx, net, NULL, &adam));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double loss;
        assert_ok(ctx,
                  psi_net_train_step(ctx, net, work, adam, inputs, &labels, sizes[i], 1e-3, &loss));
        keep(&t, &loss, sizeof loss);
        keep_tensors(ctx, net, work, &t);
        if (i == 1) passes(ctx, net, work, adam, inputs, &labels, sizes[i], &t);
    }
    keep_tensors(ctx, net, NULL, &t);
    psi_real *outputs = malloc(ROWS * ACTIONS * CLASSES * sizeof *outputs);
    assert_ok(ctx, psi_net_predict(ctx, net, work, inputs, ROWS, NULL, outputs));
    keep(&t, outputs, ROWS * ACTIONS * CLASSES * sizeof *outputs);
    free(outputs);
    psi_adam_free(ctx, adam);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    return t;
}

static trail on_threads(int threads, psi_net_kind kind, size_t n_hidden, const batch *b)
{
    psi_ctx *ctx = test_ctx(threads);
    const trail t = everything(ctx, kind, n_hidden, b);
    psi_ctx_free(ctx);
    return t;
}

static void threads_change_nothing(void **state)
{
    (void)state;
    static const struct {
        psi_net_kind kind;
        size_t n_hidden;
    } nets[] = {{PSI_NET_MLP, 0}, {PSI_NET_MLP, 2}, {PSI_NET_CNN, 0}, {PSI_NET_RESNET18, 0}};
    static const int threads[] = {3, 2, 5};
    const size_t several = test_repetitions(3);
    batch *b = make_batch();
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        const trail alone = on_threads(1, nets[i].kind, nets[i].n_hidden, b);
        for (size_t k = 0; k < several; k++) {
            const trail many = on_threads(threads[k], nets[i].kind, nets[i].n_hidden, b);
            assert_int_equal(many.n, alone.n);
            assert_memory_equal(many.bytes, alone.bytes, alone.n);
            free(many.bytes);
        }
        free(alone.bytes);
    }
    free(b);
}

enum { MOST_RANKS = 5 };

typedef struct job {
    psi_net_kind kind;
    const batch *b;
    trail of[MOST_RANKS];
} job;

static psi_status as_rank(psi_ctx *ctx, int rank, void *argument)
{
    job *all = argument;
    all->of[rank] = everything(ctx, all->kind, 1, all->b);
    return PSI_OK;
}

// Every process has everything, not only its part.
static void processes_change_nothing(void **state)
{
    (void)state;
    static const psi_net_kind kinds[] = {PSI_NET_MLP, PSI_NET_CNN, PSI_NET_RESNET18};
    static const int ranks[] = {3, 2, 5};
    const size_t several = test_repetitions(3);
    batch *b = make_batch();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const trail alone = on_threads(1, kinds[i], 1, b);
        for (size_t k = 0; k < several; k++) {
            job all = {.kind = kinds[i], .b = b};
            test_as_ranks(ranks[k], as_rank, &all);
            for (int r = 0; r < ranks[k]; r++) {
                assert_int_equal(all.of[r].n, alone.n);
                assert_memory_equal(all.of[r].bytes, alone.bytes, alone.n);
                free(all.of[r].bytes);
            }
        }
        free(alone.bytes);
    }
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_change_nothing),
                                       cmocka_unit_test(processes_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
