// resnet18 learns to read. Single digits, and the 100 patterns of the combination lock's two dials
// that matter (the third shows any digit), each judged on images it never saw.
//
//     learn_digits          drawn digits, a small training: part of the tests
//     learn_digits mnist    MNIST's 60,000 and 10,000 images, some minutes: 99.0 % and 98.5 %
#include "support/support.h"

#include "base/context.h"
#include "base/random.h"
#include "env/digits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { SIDE = PSI_DIGIT_SIDE, MOST_SHIFT = 2, DIALS = 3, DIGITS = 10 };

// Images of digits as a source of inputs. Every reading draws the digits of a class anew, and
// moves them by a pixel or two while training.
typedef struct reading {
    const env_digits *digits;
    const int32_t *targets; // (n) 0 … 9, or ten times the left digit and the middle one
    size_t channels;        // 1, or the lock's 3
    bool shift;
    const uint32_t *image; // (n) which image; NULL: any of the digit
    base_random random;
} reading;

static void put_digit(reading *r, const uint8_t *image, uint8_t *out)
{
    int down = 0, right = 0;
    if (r->shift) {
        down = (int)base_random_below(&r->random, 2 * MOST_SHIFT + 1) - MOST_SHIFT;
        right = (int)base_random_below(&r->random, 2 * MOST_SHIFT + 1) - MOST_SHIFT;
    }
    memset(out, 0, ENV_DIGIT_BYTES);
    for (int y = 0; y < SIDE; y++) {
        if (y + down < 0 || y + down >= SIDE) continue;
        const int from = right < 0 ? -right : 0, to = right > 0 ? SIDE - right : SIDE;
        memcpy(out + (y + down) * SIDE + from + right, image + y * SIDE + from,
               (size_t)(to - from));
    }
}

static psi_status read_digits(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, void *out)
{
    (void)ctx;
    reading *r = user;
    uint8_t *to = out;
    for (size_t i = 0; i < n; i++) {
        const unsigned target = (unsigned)r->targets[rows[i]];
        const unsigned shown[DIALS] = {r->channels == 1 ? target : target / DIGITS, target % DIGITS,
                                       base_random_below(&r->random, DIGITS)};
        for (size_t c = 0; c < r->channels; c++, to += ENV_DIGIT_BYTES) {
            const uint8_t *image =
                r->image ? r->digits->images + (size_t)r->image[rows[i]] * ENV_DIGIT_BYTES
                         : env_digits_pick(r->digits, shown[c], &r->random);
            put_digit(r, image, to);
        }
    }
    return PSI_OK;
}

// How large a run is.
typedef struct learning {
    const char *name;
    size_t channels, samples, epochs, test_samples;
    double learning_rate, wanted;
} learning;

static psi_status say_epoch(void *user, const psi_epoch *epoch, bool *stop)
{
    const learning *l = user;
    *stop = false;
    print_message("%s: epoch %d of %zu, loss %.4f, %.0f s\n", l->name, (int)epoch->epoch, l->epochs,
                  epoch->training_loss, epoch->seconds);
    return PSI_OK;
}

static double judge(psi_ctx *ctx, psi_net *net, psi_work *work, reading *r, size_t n)
{
    const size_t classes = psi_net_n_outputs(net);
    const psi_batch_source source = {r, read_digits};
    float *outputs = malloc(n * classes * sizeof *outputs);
    size_t right = 0;
    assert_ok(ctx, psi_net_predict_all(ctx, net, work, &source, NULL, n, "judging", NULL, outputs));
    for (size_t i = 0; i < n; i++) {
        const float *z = outputs + i * classes;
        size_t best = 0;
        for (size_t k = 1; k < classes; k++) best = z[k] > z[best] ? k : best;
        right += best == (size_t)r->targets[i];
    }
    free(outputs);
    return (double)right / (double)n;
}

static void learns(psi_ctx *ctx, learning *l, const env_digits *train, const env_digits *test,
                   uint64_t seed)
{
    enum { BATCH = 256 };
    const size_t classes = l->channels == 1 ? DIGITS : DIGITS * DIGITS;
    int32_t *targets = malloc(l->samples * sizeof *targets);
    for (size_t i = 0; i < l->samples; i++) targets[i] = (int32_t)(i % classes);
    reading reader = {.digits = train,
                      .targets = targets,
                      .channels = l->channels,
                      .shift = true,
                      .random = base_random_stream(seed, 1, 0)};
    const psi_shape shape = {3, {l->channels, SIDE, SIDE}};
    const psi_net_spec spec = psi_net_defaults(PSI_NET_RESNET18, &shape, PSI_UINT8, 1, classes);
    const psi_work_options work_options = {.size = sizeof work_options, .max_batch = BATCH};
    const psi_samples samples = {
        .source = {&reader, read_digits}, .n = l->samples, .targets = targets};
    const psi_train_options options = {
        .size = sizeof options,
        .batch = BATCH,
        .epochs = l->epochs,
        .schedule = {.kind = PSI_COSINE, .learning_rate = l->learning_rate, .warmup_steps = 20},
        .seed = seed,
        .after_epoch = say_epoch,
        .user = l};
    psi_net *net;
    psi_work *work;
    assert_ok(ctx, psi_net_new(ctx, &spec, seed, &net));
    assert_ok(ctx, psi_work_new(ctx, net, &work_options, &work));
    assert_ok(ctx, psi_net_train(ctx, net, work, &samples, &options));

    // single digits: every image once; patterns: as the lock shows them
    const size_t n = l->channels == 1 ? test->first[DIGITS] : l->test_samples;
    int32_t *expected = malloc(n * sizeof *expected);
    uint32_t *image = malloc(n * sizeof *image);
    for (size_t i = 0, digit = 0; i < n; i++) {
        while (l->channels == 1 && i >= test->first[digit + 1]) digit++;
        expected[i] = (int32_t)(l->channels == 1 ? digit : i % classes);
        image[i] = (uint32_t)i;
    }
    reading judged = {.digits = test,
                      .targets = expected,
                      .channels = l->channels,
                      .image = l->channels == 1 ? image : NULL,
                      .random = base_random_stream(seed, 2, 0)};
    const double accuracy = judge(ctx, net, work, &judged, n);
    print_message("%s: %.2f %% of %zu test images, %.2f %% wanted (seed %d)\n", l->name,
                  100 * accuracy, n, 100 * l->wanted, (int)seed);
    if (accuracy < l->wanted) fail_msg("%s is right on %.4f only", l->name, accuracy);
    free(targets);
    free(expected);
    free(image);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
}

static double resident_mb(void) // the most so far
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)usage.ru_maxrss / 1024;
}

// A step of the paper's network on the paper's images: everything it needs besides the data. The
// first test, since what was resident once is counted for ever.
static void a_training_fits_into_600_mb(void **state)
{
    (void)state;
    enum { BATCH = 256 };
    static uint8_t images[BATCH * DIALS * ENV_DIGIT_BYTES];
    static int32_t actions[BATCH], targets[BATCH];
    psi_ctx *ctx = test_ctx(2);
    const psi_shape shape = {3, {DIALS, SIDE, SIDE}};
    const psi_net_spec spec = psi_net_defaults(PSI_NET_RESNET18, &shape, PSI_UINT8, 3, 100);
    const psi_work_options work_options = {.size = sizeof work_options, .max_batch = BATCH};
    const psi_labels labels = {.actions = actions, .targets = targets};
    base_random random = base_random_stream(1, 3, 0);
    for (size_t i = 0; i < sizeof images; i++) images[i] = (uint8_t)base_random_below(&random, 256);
    for (size_t i = 0; i < BATCH; i++) actions[i] = (int32_t)(i % 3);
    const double before = resident_mb();
    psi_net *net;
    psi_work *work;
    psi_adam *adam;
    double loss;
    assert_ok(ctx, psi_net_new(ctx, &spec, 1, &net));
    assert_ok(ctx, psi_work_new(ctx, net, &work_options, &work));
    assert_ok(ctx, psi_adam_new(ctx, net, NULL, &adam));
    for (int i = 0; i < 2; i++) {
        assert_ok(ctx,
                  psi_net_train_step(ctx, net, work, adam, images, &labels, BATCH, 1e-3, &loss));
    }
    const double grown = resident_mb() - before;
    print_message("training resnet18 on 3×28×28 in batches of 256: %.0f MB\n", grown);
    assert_true(grown > 100); // it is really measured
    assert_true(grown <= 600);
    psi_adam_free(ctx, adam);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
}

static void drawn_digits(void **state)
{
    (void)state;
    enum { PER_DIGIT = 300, TEST_PER_DIGIT = 100 };
    learning single = {"drawn digits", 1, 10000, 4, 0, 2e-3, 0.99};
    learning patterns = {"patterns of drawn digits", 3, 12000, 5, 2000, 2e-3, 0.985};
    psi_ctx *ctx = test_ctx(1);
    env_digits *train, *test;
    assert_ok(ctx, env_digits_drawn(ctx, 1, 1, DIGITS, PER_DIGIT, &train));
    assert_ok(ctx, env_digits_drawn(ctx, 1, 2, DIGITS, TEST_PER_DIGIT, &test));
    learns(ctx, &single, train, test, 1);
    learns(ctx, &patterns, train, test, 1);
    env_digits_free(ctx, train);
    env_digits_free(ctx, test);
    psi_ctx_free(ctx);
}

static void learns_mnist(learning *l)
{
    psi_ctx *ctx = test_ctx(2);
    env_digits *train, *test;
    assert_ok(ctx, env_digits_mnist(ctx, false, &train));
    assert_ok(ctx, env_digits_mnist(ctx, true, &test));
    learns(ctx, l, train, test, 1);
    env_digits_free(ctx, train);
    env_digits_free(ctx, test);
    psi_ctx_free(ctx);
}

static void mnist(void **state)
{
    (void)state;
    learning single = {"MNIST", 1, 60000, 5, 0, 1e-3, 0.99};
    learns_mnist(&single);
}

// Eight epochs reach 98.43 %: two digits have to be right at once.
static void mnist_patterns(void **state)
{
    (void)state;
    learning patterns = {"patterns of MNIST", 3, 60000, 16, 10000, 1e-3, 0.985};
    learns_mnist(&patterns);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest small[] = {cmocka_unit_test(a_training_fits_into_600_mb),
                                       cmocka_unit_test(drawn_digits)};
    const struct CMUnitTest large[] = {cmocka_unit_test(mnist), cmocka_unit_test(mnist_patterns)};
    if (count < 2 || strcmp(arguments[1], "mnist") != 0) {
        return cmocka_run_group_tests(small, NULL, NULL);
    }
    if (count > 2) cmocka_set_test_filter(arguments[2]); // mnist mnist_patterns
    return cmocka_run_group_tests(large, NULL, NULL);
}
