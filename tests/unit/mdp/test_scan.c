// Numbers in text, as the C library reads them.
#include "support/support.h"

#include "mdp/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_number(const char *text)
{
    char *end;
    const double expected = strtod(text, &end);
    mdp_scan scan = {.text = text, .at = text, .end = text + strlen(text)};
    double found;
    assert_true(mdp_scan_number(&scan, &found));
    assert_true(found == expected);
    assert_ptr_equal(scan.at, end);
}

// Every number of digits before and after the point, around what a uint64_t and a double hold.
static void test_numbers_of_all_lengths(void **state)
{
    (void)state;
    static const char *const digits[] = {"0000000000000000000000000", "1234567890123456789012345",
                                         "9999999999999999999999999", "1000000000000000000000001"};
    char text[64];
    for (size_t i = 0; i < sizeof digits / sizeof digits[0]; i++) {
        for (int before = 0; before <= 25; before++) {
            for (int after = before == 0; after <= 25; after++) {
                snprintf(text, sizeof text, "-%.*s.%.*s x", before, digits[i], after, digits[i]);
                check_number(text + 1);
                check_number(text);
            }
        }
    }
    check_number("1e3");
    check_number(".5e-3,");
    check_number("12345678901234567890123e-20");
}

// One page of zeros, mapped again and again: 0.000…, with more digits than an int counts.
static void test_more_digits_than_an_int_counts(void **state)
{
    (void)state;
    const size_t piece = (size_t)1 << 22, pieces = 513, size = piece * pieces;
    const int file = memfd_create("zeros", MFD_CLOEXEC);
    char *text = mmap(NULL, size + piece, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0); // what follows the digits is '\0'
    assert_true(file >= 0 && text != MAP_FAILED && ftruncate(file, (off_t)piece) == 0);
    for (size_t i = 0; i < pieces; i++) {
        const int access = PROT_READ | PROT_WRITE,
                  how = MAP_FIXED | (i == 0 ? MAP_PRIVATE : MAP_SHARED);
        assert_true(mmap(text + i * piece, piece, access, how, file, 0) != MAP_FAILED);
    }
    memset(text + piece, '0', piece); // all pieces but the first, which is a copy of its own
    memset(text, '0', piece);
    text[1] = '.';
    mdp_scan scan = {.text = text, .at = text, .end = text + size};
    double found = 1.0;
    assert_true(mdp_scan_number(&scan, &found));
    assert_true(found == 0.0 && scan.at == scan.end);
    munmap(text, size + piece);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_all_lengths),
        cmocka_unit_test(test_more_digits_than_an_int_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
