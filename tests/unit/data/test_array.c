#include "data/array.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

static void put(const data_element *element, uint64_t bits, unsigned char *out)
{
    for (size_t i = 0; i < element->size; i++) {
        const size_t at = element->swapped ? element->size - 1 - i : i;
        out[at] = (unsigned char)(bits >> 8 * i);
    }
}

// Every half-precision number against its definition: sign, exponent − 15, ten bits of fraction.
static void test_half_precision(void **state)
{
    (void)state;
    for (int swapped = 0; swapped < 2; swapped++) {
        const data_element half = {DATA_FLOAT, 2, swapped};
        for (uint32_t bits = 0; bits < 65536; bits++) {
            const int exponent = bits >> 10 & 31, fraction = bits & 1023;
            double expected = exponent ? ldexp(1 + fraction / 1024.0, exponent - 15)
                                       : ldexp(fraction / 1024.0, -14);
            if (exponent == 31) expected = fraction ? (double)NAN : (double)INFINITY;
            if (bits >> 15) expected = -expected;
            unsigned char bytes[2];
            float got;
            put(&half, bits, bytes);
            assert_true(data_convert(&half, bytes, 1, &got));
            if (isnan(expected)) {
                assert_true(isnan(got));
            } else {
                assert_true((double)got == expected && !signbit(got) == !signbit(expected));
            }
        }
    }
}

// Integers of all widths and byte orders at the ends of their ranges.
static void test_integers(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        const data_element element = {i & 1 ? DATA_SIGNED : DATA_UNSIGNED, (size_t)1 << (i >> 2),
                                      i & 2};
        const unsigned width = (unsigned)(8 * element.size);
        const uint64_t all = UINT64_MAX >> (64 - width), top = (uint64_t)1 << (width - 1);
        const uint64_t cases[] = {0, 1, 77, top - 1, top, all};
        psi_dtype dtype;
        assert_true(data_element_dtype(&element, &dtype));
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            const bool negative = element.kind == DATA_SIGNED && cases[k] & top;
            const int64_t expected = (int64_t)(negative ? cases[k] | ~all : cases[k]);
            const bool fits = element.kind == DATA_SIGNED || cases[k] <= INT64_MAX;
            unsigned char bytes[8];
            int64_t value;
            put(&element, cases[k], bytes);
            assert_int_equal(data_to_integer(&element, bytes, 1, &value), fits);
            if (fits) assert_int_equal(value, expected);
            double real;
            data_to_double(&element, bytes, 1, &real);
            assert_true(real == (fits ? (double)expected : (double)cases[k]));
            union {
                uint8_t byte;
                int32_t word;
                int64_t number;
            } out;
            assert_int_equal(data_convert(&element, bytes, 1, &out), fits);
            if (!fits) continue;
            if (dtype == PSI_UINT8) assert_int_equal(out.byte, expected);
            if (dtype == PSI_INT32) assert_int_equal(out.word, expected);
            if (dtype == PSI_INT64) assert_int_equal(out.number, expected);
        }
    }
}

static void test_reals_that_are_no_integers(void **state)
{
    (void)state;
    const data_element real = {DATA_FLOAT, 8, false};
    const double good[] = {0, -3, 4503599627370496.0},
                 bad[] = {0.5, 1e300, (double)NAN, (double)INFINITY, -(double)INFINITY};
    int64_t out[3];
    assert_int_equal(data_to_integer(&real, good, 3, out), 3);
    assert_int_equal(out[1], -3);
    for (int i = 0; i < 5; i++) assert_int_equal(data_to_integer(&real, &bad[i], 1, out), 0);
}

static void test_types_that_are_refused(void **state)
{
    (void)state;
    const data_element refused[] = {{DATA_FLOAT, 16, false},   {DATA_FLOAT, 1, false},
                                    {DATA_UNSIGNED, 3, false}, {DATA_BOOL, 4, false},
                                    {DATA_SIGNED, 16, false},  {DATA_OTHER, 8, false}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        psi_dtype dtype;
        assert_false(data_element_dtype(&refused[i], &dtype));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_reals_that_are_no_integers),
        cmocka_unit_test(test_types_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
