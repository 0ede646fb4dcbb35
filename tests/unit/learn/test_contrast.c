// The contrast's gradients against central differences, and that it falls when pairs fit.
#include "support/support.h"

#include "base/random.h"
#include "learn/contrast.h"

#include <math.h>

enum { N = 7, W = CONTRAST_WIDTH };
static const double TEMPERATURE = 0.1;

static void draw(uint64_t seed, float *values)
{
    base_random random = base_random_stream(seed, 0, 0);
    for (size_t i = 0; i < N * W; i++) values[i] = (float)base_random_normal(&random);
}

static double loss(const float *query, const float *key)
{
    static float scratch[N * (N + 2 * W + 2)], d_query[N * W], d_key[N * W];
    assert_true(learn_contrast_scratch(N) <= sizeof scratch / sizeof scratch[0]);
    return learn_contrast(query, key, N, TEMPERATURE, scratch, d_query, d_key);
}

static void gradients_are_the_slopes(void **state)
{
    (void)state;
    static float query[N * W], key[N * W], d_query[N * W], d_key[N * W];
    static float scratch[N * (N + 2 * W + 2)];
    draw(1, query);
    draw(2, key);
    learn_contrast(query, key, N, TEMPERATURE, scratch, d_query, d_key);
    for (int side = 0; side < 2; side++) {
        float *values = side ? key : query;
        const float *gradient = side ? d_key : d_query;
        for (size_t i = 0; i < N * W; i += 5) {
            const float was = values[i], step = 1e-2f;
            values[i] = was + step;
            const double above = loss(query, key);
            values[i] = was - step;
            const double below = loss(query, key);
            values[i] = was;
            const double slope = (above - below) / (2.0 * (double)step);
            assert_true(fabs(slope - (double)gradient[i]) < 2e-3 + 0.02 * fabs(slope));
        }
    }
}

static void fitting_pairs_cost_little(void **state)
{
    (void)state;
    static float query[N * W], other[N * W];
    draw(3, query);
    draw(4, other);
    assert_true(loss(query, query) < 0.05);
    assert_true(loss(query, other) > 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_the_slopes),
        cmocka_unit_test(fitting_pairs_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
