// What the tests share: cmocka, a context whose Nth allocation fails, and a folder for files.
#ifndef PSI_TESTS_SUPPORT_H
#define PSI_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <psifold/psifold.h>

// A plain context with this many threads; the test fails if there is none.
psi_ctx *test_ctx(int threads);

// Counts what is allocated and makes one allocation fail. Set fail_at to N (counted from 1) to
// refuse the Nth; live must be 0 when everything was given back.
typedef struct test_faults {
    long fail_at; // 0: never
    long count;   // allocations asked for so far
    long live;    // blocks that were not given back
} test_faults;

psi_ctx *test_faulty_ctx(test_faults *faults, int threads); // NULL if making it failed

// Runs work with the 1st, 2nd, … allocation failing until it succeeds untouched. Every failing run
// must return PSI_ENOMEM and leave no block behind. Returns how many allocations were swept.
long test_fault_sweep(psi_status (*work)(psi_ctx *ctx, void *argument), void *argument);

// How many of n repetitions are run: all; under sanitizers, which look at memory and take four
// times as long, the first quarter, and all with PSIFOLD_FULL_SWEEPS (`make test-long`).
size_t test_repetitions(size_t n);

#define assert_ok(ctx, expression) assert_status(ctx, expression, PSI_OK)
#define assert_status(ctx, expression, expected)                                                   \
    test_assert_status((ctx), (expression), (expected), #expression, __FILE__, __LINE__)
void test_assert_status(psi_ctx *ctx, psi_status got, psi_status expected, const char *expression,
                        const char *file, int line);

// Fails unless the context's last error sentence contains the text.
void test_assert_error_says(psi_ctx *ctx, const char *text);

// A fresh empty folder below the build folder's tmp; removed again with test_folder_free.
char *test_folder(void);
void test_folder_free(char *folder);

// "folder/name", overwritten by the fourth next call.
const char *test_path(const char *folder, const char *name);

// A file of these bytes, in the place of what was there.
void test_put(const char *path, const void *bytes, size_t size);
void test_put_text(const char *path, const char *text);

#endif
