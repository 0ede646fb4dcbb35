// What every test of files needs: a context of two threads and an empty folder, fresh each time.
#ifndef PSI_TESTS_DATA_FIXTURE_H
#define PSI_TESTS_DATA_FIXTURE_H

#include "support/support.h"

static char *folder;
static psi_ctx *ctx;

static int set_up(void **state)
{
    (void)state;
    folder = test_folder();
    ctx = test_ctx(2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    psi_ctx_free(ctx);
    test_folder_free(folder);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

#endif
