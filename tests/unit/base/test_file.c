// Files appear whole or not at all, whatever happens on the way.
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int entries(const char *folder)
{
    DIR *handle = opendir(folder);
    assert_non_null(handle);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(handle));) n += entry->d_name[0] != '.';
    closedir(handle);
    return n;
}

static void assert_content(psi_ctx *ctx, const char *path, const char *expected)
{
    char *bytes;
    size_t size;
    assert_ok(ctx, base_read_file(ctx, path, 1000, &bytes, &size));
    assert_string_equal(bytes, expected);
    assert_int_equal(size, strlen(expected));
    base_free(ctx, bytes);
}

static void a_file_appears_at_commit_and_not_before(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "out");
    base_output *output;
    assert_ok(ctx, base_output_open(ctx, path, BASE_FILE, false, &output));
    assert_ok(ctx, base_output_write(output, "hello", 5));
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(ctx, base_output_commit(output));
    assert_content(ctx, path, "hello");
    assert_int_equal(entries(folder), 1);

    // discarding leaves the old content; replacing needs to be asked for
    assert_ok(ctx, base_output_open(ctx, path, BASE_FILE, true, &output));
    assert_ok(ctx, base_output_write(output, "other", 5));
    base_output_discard(output);
    assert_content(ctx, path, "hello");
    assert_int_equal(entries(folder), 1);
    assert_status(ctx, base_output_open(ctx, path, BASE_FILE, false, &output), PSI_EUSAGE);
    test_assert_error_says(ctx, "exists already");
    assert_null(output);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void write_inside(psi_ctx *ctx, base_output *output, const char *text)
{
    char *path;
    assert_ok(ctx, base_join(ctx, base_output_path(output), "inner", &path));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    base_free(ctx, path);
}

static void a_folder_appears_at_commit_and_replaces_an_old_one(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "data/"); // a slash at the end is fine
    const char *inner = test_path(folder, "data/inner");
    base_output *output;
    for (int round = 0; round < 2; round++) {
        assert_ok(ctx, base_output_open(ctx, path, BASE_FOLDER, round > 0, &output));
        write_inside(ctx, output, round ? "new" : "old");
        assert_ok(ctx, base_output_commit(output));
        assert_content(ctx, inner, round ? "new" : "old");
        assert_int_equal(entries(folder), 1);
    }
    assert_ok(ctx, base_output_open(ctx, path, BASE_FOLDER, true, &output));
    write_inside(ctx, output, "never");
    base_output_discard(output);
    assert_content(ctx, inner, "new");
    assert_int_equal(entries(folder), 1);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void what_appears_before_the_commit_stays(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    for (int kind = BASE_FILE; kind <= BASE_FOLDER; kind++) {
        const char *path = test_path(folder, kind == BASE_FILE ? "file" : "folder");
        base_output *output;
        assert_ok(ctx, base_output_open(ctx, path, (base_output_kind)kind, false, &output));
        test_put_text(path, "precious");
        assert_status(ctx, base_output_commit(output), PSI_EUSAGE);
        test_assert_error_says(ctx, "appeared while it was being written");
        assert_content(ctx, path, "precious");
    }
    assert_int_equal(entries(folder), 2);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void only_abandoned_temporaries_of_the_same_target_are_removed(void **state)
{
    (void)state;
    static const char *const foreign[] = {"other.tmp-0123456789abcdef", "out.tmp-4711",
                                          "out.tmp-0123456789abcdeg", "out.tmp-0123456789abcdef0"};
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    base_output *living, *next;
    assert_ok(ctx, base_output_open(ctx, test_path(folder, "out"), BASE_FILE, true, &living));
    assert_int_equal(mkdir(test_path(folder, "out.tmp-0123456789abcdef"), 0777), 0);
    assert_int_equal(mkdir(test_path(folder, "out.tmp-0123456789abcdef/out"), 0777), 0);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        assert_int_equal(mkdir(test_path(folder, foreign[i]), 0777), 0);
    }
    // a link with such a name may lead to anything
    assert_int_equal(symlink("out.tmp-4711", test_path(folder, "out.tmp-00000000deadbeef")), 0);
    assert_int_equal(entries(folder), 7);
    assert_ok(ctx, base_output_open(ctx, test_path(folder, "out"), BASE_FILE, true, &next));
    assert_int_equal(access(test_path(folder, "out.tmp-0123456789abcdef"), F_OK), -1);
    assert_int_equal(access(base_output_path(living), F_OK), 0);
    assert_int_equal(entries(folder), 7); // one less, and the next one's own
    assert_ok(ctx, base_output_commit(living));
    assert_ok(ctx, base_output_commit(next));
    assert_int_equal(entries(folder), 6);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void pipes_and_devices_are_neither_read_nor_replaced(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), *bytes;
    size_t size;
    base_output *output;
    const char *pipe = test_path(folder, "pipe");
    assert_int_equal(mkfifo(pipe, 0666), 0);
    assert_status(ctx, base_read_file(ctx, pipe, 10, &bytes, &size), PSI_EIO); // and does not block
    test_assert_error_says(ctx, "is not a file");
    assert_status(ctx, base_read_file(ctx, "/dev/zero", 10, &bytes, &size), PSI_EIO);
    for (int kind = BASE_FILE; kind <= BASE_FOLDER; kind++) {
        assert_status(ctx, base_output_open(ctx, pipe, (base_output_kind)kind, true, &output),
                      PSI_EUSAGE);
    }
    assert_status(ctx, base_output_open(ctx, folder, BASE_FILE, true, &output), PSI_EUSAGE);
    assert_status(ctx, base_output_open(ctx, "..", BASE_FOLDER, true, &output), PSI_EUSAGE);
    assert_int_equal(entries(folder), 1);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void removing_follows_no_link(void **state)
{
    (void)state;
    char *folder = test_folder();
    assert_int_equal(mkdir(test_path(folder, "kept"), 0777), 0);
    assert_int_equal(mkdir(test_path(folder, "kept/inside"), 0777), 0);
    assert_int_equal(mkdir(test_path(folder, "gone"), 0777), 0);
    assert_int_equal(mkdir(test_path(folder, "gone/deeper"), 0777), 0);
    assert_int_equal(symlink("../../kept", test_path(folder, "gone/deeper/link")), 0);
    base_remove(test_path(folder, "gone"));
    assert_int_equal(access(test_path(folder, "gone"), F_OK), -1);
    assert_int_equal(access(test_path(folder, "kept/inside"), F_OK), 0);
    test_folder_free(folder);
}

static void errors_name_the_file_and_the_reason(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *bytes;
    size_t size;
    base_output *output;
    assert_status(ctx, base_read_file(ctx, "/nowhere/x", 10, &bytes, &size), PSI_EIO);
    test_assert_error_says(ctx, "/nowhere/x: cannot open: No such file");
    assert_status(ctx, base_read_file(ctx, "/", 10, &bytes, &size), PSI_EIO);
    test_assert_error_says(ctx, "is not a file");
    assert_status(ctx, base_output_open(ctx, "/nowhere/x", BASE_FILE, true, &output), PSI_EIO);
    char *folder = test_folder();
    const char *path = test_path(folder, "long");
    assert_ok(ctx, base_output_open(ctx, path, BASE_FILE, true, &output));
    assert_ok(ctx, base_output_write(output, "0123456789ab", 12));
    assert_ok(ctx, base_output_commit(output));
    assert_status(ctx, base_read_file(ctx, path, 10, &bytes, &size), PSI_ELIMIT);
    assert_null(bytes);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void a_full_disk_is_reported_and_leaves_nothing(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip();
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    base_output *output;
    const char *path = test_path(folder, "full");
    assert_ok(ctx, base_output_open(ctx, path, BASE_FILE, true, &output));
    // the temporary's descriptor now leads to a device that is always full
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    for (int fd = 3; fd < 64; fd++) {
        char link[64], target[512] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, target, sizeof target - 1) > 0 &&
            strcmp(target, base_output_path(output)) == 0) {
            assert_int_equal(dup2(fileno(full), fd), fd);
        }
    }
    assert_status(ctx, base_output_write(output, "x", 1), PSI_EIO);
    test_assert_error_says(ctx, "No space left");
    base_output_discard(output);
    fclose(full);
    assert_int_equal(entries(folder), 0);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static psi_status save_and_load(psi_ctx *ctx, void *argument)
{
    psi_status status = PSI_OK;
    json_t *loaded = NULL;
    char *deep = NULL, *path = NULL;
    TRY(base_join(ctx, argument, "a/b/c", &deep));
    TRY(base_make_folders(ctx, deep));
    TRY(base_join(ctx, deep, "x.json", &path));
    json_t *value = json_pack("{s:i, s:f}", "clusters", 100, "error", 0.1);
    status = base_json_save(ctx, path, value);
    json_decref(value);
    TRY(status);
    TRY(base_json_load(ctx, path, 1000, &loaded));
    assert_int_equal(json_integer_value(json_object_get(loaded, "clusters")), 100);
    assert_true(json_real_value(json_object_get(loaded, "error")) == 0.1);
done:
    json_decref(loaded);
    base_free(ctx, path);
    base_free(ctx, deep);
    return status;
}

static void json_goes_out_and_in(void **state)
{
    (void)state;
    char *folder = test_folder();
    assert_in_range(test_fault_sweep(save_and_load, folder), 8, 40);
    test_folder_free(folder);
    psi_ctx *ctx = test_ctx(1);
    json_t *value;
    const char *broken = "{\"a\": 1,\n \"b\" 2}";
    assert_status(ctx, base_json_parse(ctx, "x.json", broken, strlen(broken), &value), PSI_EFORMAT);
    test_assert_error_says(ctx, "x.json: line 2");
    psi_ctx_free(ctx);
}

typedef struct audience {
    int times;
    psi_progress last;
} audience;

static void remember(void *user, const psi_progress *progress)
{
    audience *told = user;
    told->times++;
    told->last = *progress;
}

static void progress_is_told_seldom_and_cancel_stops_it(void **state)
{
    (void)state;
    audience told = {0};
    psi_ctx *ctx;
    const psi_options options = {
        .size = sizeof options, .progress = remember, .user = &told, .threads = 1};
    assert_int_equal(psi_ctx_new(&options, &ctx), PSI_OK);
    base_progress progress = base_progress_start(ctx, "reading", 100000);
    for (uint64_t i = 0; i < 100000; i++) assert_ok(ctx, base_progress_at(&progress, i));
    assert_in_range(told.times, 0, 50);
    base_progress_end(&progress, 100000);
    assert_int_equal(told.last.done, 100000);
    assert_string_equal(told.last.phase, "reading");
    psi_cancel(ctx);
    assert_status(ctx, base_progress_at(&progress, 5), PSI_ECANCELLED);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_at_commit_and_not_before),
        cmocka_unit_test(a_folder_appears_at_commit_and_replaces_an_old_one),
        cmocka_unit_test(what_appears_before_the_commit_stays),
        cmocka_unit_test(only_abandoned_temporaries_of_the_same_target_are_removed),
        cmocka_unit_test(pipes_and_devices_are_neither_read_nor_replaced),
        cmocka_unit_test(removing_follows_no_link),
        cmocka_unit_test(errors_name_the_file_and_the_reason),
        cmocka_unit_test(a_full_disk_is_reported_and_leaves_nothing),
        cmocka_unit_test(json_goes_out_and_in),
        cmocka_unit_test(progress_is_told_seldom_and_cancel_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
