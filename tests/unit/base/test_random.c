// Random streams: the published numbers of Philox, independence of the order in which they are
// asked, and distributions that are what they claim.
#include "support/support.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

// Known answers for philox4x32-10 from Random123's own kat_vectors file (Salmon et al., 2011).
static void philox_gives_the_published_numbers(void **state)
{
    (void)state;
    static const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    static const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    static const uint32_t pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    uint32_t number[4];
    base_random_block(0, 0, 0, 0, number);
    assert_memory_equal(number, zero, sizeof zero);
    base_random_block(UINT64_MAX, UINT32_MAX, UINT64_MAX, UINT32_MAX, number);
    assert_memory_equal(number, ones, sizeof ones);
    // key a4093822 299f31d0, counter 243f6a88 85a308d3 13198a2e 03707344
    base_random_block(0x299f31d0a4093822u, 0x85a308d3, 0x0370734413198a2eu, 0x243f6a88, number);
    assert_memory_equal(number, pi, sizeof pi);
}

static void a_stream_is_its_name_and_nothing_else(void **state)
{
    (void)state;
    uint32_t first[3][10];
    for (uint32_t i = 0; i < 3; i++) {
        base_random random = base_random_stream(42, 7, i);
        for (int k = 0; k < 10; k++) first[i][k] = base_random_u32(&random);
    }
    base_random a = base_random_stream(42, 7, 0), b = base_random_stream(42, 7, 1);
    for (int k = 0; k < 10; k++) { // interleaved
        assert_int_equal(base_random_u32(&b), first[1][k]);
        assert_int_equal(base_random_u32(&a), first[0][k]);
    }
    assert_memory_not_equal(first[0], first[1], sizeof first[0]);
    base_random other_purpose = base_random_stream(42, 8, 0),
                other_seed = base_random_stream(43, 7, 0);
    assert_int_not_equal(base_random_u32(&other_purpose), first[0][0]);
    assert_int_not_equal(base_random_u32(&other_seed), first[0][0]);
}

static void below_is_even_and_in_range(void **state)
{
    (void)state;
    base_random random = base_random_stream(1, 0, 0);
    enum { N = 10, DRAWS = 200000 };
    int count[N] = {0};
    for (int i = 0; i < DRAWS; i++) {
        const uint32_t k = base_random_below(&random, N);
        assert_in_range(k, 0, N - 1);
        count[k]++;
    }
    double chi2 = 0.0;
    for (int k = 0; k < N; k++) {
        const double excess = count[k] - (double)DRAWS / N;
        chi2 += excess * excess / ((double)DRAWS / N);
    }
    assert_true(chi2 < 33.7); // 9 degrees of freedom, p = 1e-4
    assert_int_equal(base_random_below(&random, 1), 0);
}

static void uniform_and_normal_have_their_moments(void **state)
{
    (void)state;
    base_random random = base_random_stream(2, 0, 0);
    enum { DRAWS = 200000 };
    double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0, fourth = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double u = base_random_uniform(&random), z = base_random_normal(&random);
        assert_true(u >= 0.0 && u < 1.0 && isfinite(z));
        sum += u;
        squares += u * u;
        normal_sum += z;
        normal_squares += z * z;
        fourth += z * z * z * z;
    }
    assert_true(fabs(sum / DRAWS - 0.5) < 0.003);
    assert_true(fabs(squares / DRAWS - 1.0 / 3.0) < 0.003);
    assert_true(fabs(normal_sum / DRAWS) < 0.01);
    assert_true(fabs(normal_squares / DRAWS - 1.0) < 0.015);
    assert_true(fabs(fourth / DRAWS - 3.0) < 0.12);
}

static void shuffles_are_permutations_and_even(void **state)
{
    (void)state;
    enum { N = 5, ROUNDS = 50000 };
    int place[N][N] = {{0}};
    for (uint64_t round = 0; round < ROUNDS; round++) {
        base_random random = base_random_stream(3, 0, round);
        uint32_t order[N];
        bool seen[N] = {false};
        base_random_shuffle(&random, order, N);
        for (int i = 0; i < N; i++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            place[i][order[i]]++;
        }
    }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++)
            assert_in_range(place[i][k], ROUNDS / N - 450, ROUNDS / N + 450);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_numbers),
        cmocka_unit_test(a_stream_is_its_name_and_nothing_else),
        cmocka_unit_test(below_is_even_and_in_range),
        cmocka_unit_test(uniform_and_normal_have_their_moments),
        cmocka_unit_test(shuffles_are_permutations_and_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
