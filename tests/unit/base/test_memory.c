// What a process may take: the machine's memory, its control groups' limits, and the context's own.
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *folder, const char *name, const char *text)
{
    test_put_text(test_path(folder, name), text);
}

static void every_group_above_counts(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    assert_ok(ctx, base_make_folders(ctx, test_path(folder, "self")));
    assert_ok(ctx, base_make_folders(ctx, test_path(folder, "groups/pod/box")));
    put(folder, "meminfo", "MemTotal:  1000000 kB\nMemFree: 1 kB\nMemAvailable:   900000 kB\n");
    char groups[512];
    snprintf(groups, sizeof groups, "%s", test_path(folder, "groups"));

    // no groups at all, then groups without a limit
    base_memory memory = base_memory_in(folder, groups);
    assert_int_equal(memory.total, 1024000000);
    assert_int_equal(memory.available, 921600000);
    put(folder, "self/cgroup", "1:name=systemd:/other\n0::/pod/box\n");
    put(folder, "groups/pod/box/memory.max", "max\n");
    memory = base_memory_in(folder, groups);
    assert_int_equal(memory.available, 921600000);

    // the limit of a group, less what is used of it and cannot be given back
    put(folder, "groups/pod/box/memory.max", "500000000\n");
    put(folder, "groups/pod/box/memory.current", "300000000\n");
    put(folder, "groups/pod/box/memory.stat", "anon 1\ninactive_file 100000000\nactive_file 7\n");
    memory = base_memory_in(folder, groups);
    assert_int_equal(memory.total, 500000000);
    assert_int_equal(memory.available, 300000000);

    // a group above is tighter; more used than allowed leaves nothing
    put(folder, "groups/pod/memory.high", "400000000\n");
    put(folder, "groups/pod/memory.current", "350000000\n");
    memory = base_memory_in(folder, groups);
    assert_int_equal(memory.total, 400000000);
    assert_int_equal(memory.available, 50000000);
    put(folder, "groups/memory.max", "1000\n");
    put(folder, "groups/memory.current", "5000\n");
    memory = base_memory_in(folder, groups);
    assert_int_equal(memory.total, 1000);
    assert_int_equal(memory.available, 0);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void the_address_space_counts(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {(rlim_t)1 << 33, (rlim_t)1 << 33};
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
        const base_memory memory = base_memory_here();
        _exit(memory.total <= (uint64_t)1 << 33 && memory.available < (uint64_t)1 << 33 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_context_has_a_bound(void **state)
{
    (void)state;
    psi_ctx *ctx, *child;
    char *first, *second, *third;
    const psi_options options = {.size = sizeof options, .threads = 1, .max_memory = 1 << 20};
    assert_int_equal(psi_ctx_new(&options, &ctx), PSI_OK);
    assert_ok(ctx, base_ctx_child(ctx, 1, &child));
    assert_ok(ctx, base_alloc(ctx, 600000, 1, &first));
    assert_status(child, base_alloc(child, 600000, 1, &second), PSI_ENOMEM); // shared by all
    test_assert_error_says(child, "--max-memory");
    assert_null(second);
    assert_ok(child, base_alloc(child, 400000, 1, &second));
    assert_status(ctx, base_resize(ctx, 700000, 1, &first), PSI_ENOMEM);
    base_free(ctx, first);
    assert_ok(ctx, base_alloc(ctx, 600000, 1, &third)); // what is given back can be had again
    base_free(ctx, third);
    base_free(child, second);
    psi_ctx_free(child);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_group_above_counts),
        cmocka_unit_test(the_address_space_counts),
        cmocka_unit_test(a_context_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
