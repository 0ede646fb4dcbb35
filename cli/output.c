#include "cli/output.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BESIDE = 3 };
static const char *const ENDINGS[BESIDE] = {".lab", ".srew", ".trew"};

struct cli_output {
    psi_ctx *ctx;
    base_output *file;
    bool replace;
    char *beside[BESIDE]; // the names that go with a .tra; else NULL
};

// The path with the ending .tra replaced.
static psi_status name_beside(psi_ctx *ctx, const char *path, const char *ending, char **out)
{
    const size_t stem = strlen(path) - strlen(".tra"), size = stem + strlen(ending) + 1;
    const psi_status status = base_alloc(ctx, size, 1, out);
    if (status == PSI_OK) snprintf(*out, size, "%.*s%s", (int)stem, path, ending);
    return status;
}

static psi_status claim_beside(cli_output *output, const char *path)
{
    psi_status status = PSI_OK;
    const size_t length = strlen(path);
    if (length <= 4 || strcmp(path + length - 4, ".tra") != 0) return PSI_OK;
    for (int i = 0; i < BESIDE; i++) {
        TRY(name_beside(output->ctx, path, ENDINGS[i], &output->beside[i]));
        if (!output->replace && base_is_there(output->beside[i])) {
            TRY(FAIL(
                output->ctx, PSI_EUSAGE,
                "%s exists already, and would be read with %s: choose another name, or remove it",
                output->beside[i], path));
        }
    }
done:
    return status;
}

static bool are_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Whether a file of a folder is what is read of it: of a run, the manifest and what it lists; of
// anything else, all of it.
static bool is_of_it(psi_ctx *ctx, const char *folder, const char *name)
{
    enum { LIMIT = 1 << 24 };
    char path[PATH_MAX];
    json_t *manifest = NULL;
    bool listed = true;
    const int n = snprintf(path, sizeof path, "%s/manifest.json", folder);
    if (n < 0 || (size_t)n >= sizeof path || !base_is_there(path)) return true;
    if (base_json_load(ctx, path, LIMIT, &manifest) == PSI_OK) {
        const json_t *files = json_object_get(manifest, "checksums");
        listed = !files || json_object_get(files, name) || strcmp(name, "manifest.json") == 0 ||
                 strncmp(name, "checkpoint/", strlen("checkpoint/")) == 0;
    }
    json_decref(manifest);
    return listed;
}

// Whether a path is this file or folder, or a file that is read of this folder.
static bool is_read(psi_ctx *ctx, const char *path, const char *input, const struct stat *as)
{
    struct stat at;
    char *whole = realpath(path, NULL); // NULL: there is nothing to destroy
    char *name = whole ? strdup(whole) : NULL;
    bool found = whole && stat(whole, &at) == 0 && are_one(as, &at);
    for (char *slash; name && !found && (slash = strrchr(whole, '/'));) {
        *slash = '\0';
        if (!*whole || stat(whole, &at) != 0 || !are_one(as, &at)) continue;
        found = is_of_it(ctx, input, name + (slash - whole) + 1);
        break;
    }
    free(name);
    free(whole);
    return found;
}

psi_status cli_output_check(const cli_call *cli, const char *path)
{
    struct stat input;
    for (size_t i = 0; i < CLI_MAX_ARGUMENTS; i++) {
        if (!cli->read[i] || stat(cli->read[i], &input) != 0 ||
            !is_read(cli->ctx, path, cli->read[i], &input)) {
            continue;
        }
        return FAIL(cli->ctx, PSI_EUSAGE, "%s is read from %s: choose another name to write to",
                    path, cli->read[i]);
    }
    return PSI_OK;
}

psi_status cli_output_open(cli_call *cli, const char *path, bool replace, cli_output **out)
{
    psi_status status = PSI_OK;
    cli_output *output = NULL;
    *out = NULL;
    if (!path) return PSI_OK;
    TRY(cli_output_check(cli, path));
    TRY(base_alloc_zero(cli->ctx, 1, sizeof *output, &output));
    output->ctx = cli->ctx;
    output->replace = replace;
    TRY(base_output_open(cli->ctx, path, BASE_FILE, replace, &output->file));
    TRY(claim_beside(output, path));
    *out = output;
    output = NULL;
done:
    cli_output_discard(output);
    return status;
}

const char *cli_output_path(const cli_output *output)
{
    return base_output_path(output->file);
}

// An older file that the new .tra does not have would be read with it: it is replaced by nothing.
static psi_status put_beside(const cli_output *output, int i, bool *placed)
{
    psi_ctx *ctx = output->ctx;
    const char *target = output->beside[i];
    char *made = NULL;
    psi_status status = name_beside(ctx, cli_output_path(output), ENDINGS[i], &made);
    if (status != PSI_OK) return status;
    const bool wanted = base_is_there(made);
    int failed = 0;
    if (wanted) {
        failed = output->replace ? rename(made, target) : base_rename_new(made, target);
    } else if (output->replace) {
        failed = unlink(target) != 0 && errno != ENOENT;
    }
    *placed = wanted && !failed;
    if (failed) status = FAIL(ctx, PSI_EIO, "cannot put %s in place: %s", target, strerror(errno));
    base_free(ctx, made);
    return status;
}

psi_status cli_output_commit(cli_output **out)
{
    psi_status status = PSI_OK;
    cli_output *output = *out;
    bool placed[BESIDE] = {false};
    *out = NULL;
    for (int i = 0; i < BESIDE && output->beside[i]; i++) TRY(put_beside(output, i, &placed[i]));
    base_output *file = output->file;
    output->file = NULL;
    TRY(base_output_commit(file));
done:
    for (int i = 0; i < BESIDE && status != PSI_OK && !output->replace; i++) {
        if (placed[i]) (void)unlink(output->beside[i]);
    }
    cli_output_discard(output);
    return status;
}

void cli_output_discard(cli_output *output)
{
    if (!output) return;
    base_output_discard(output->file);
    for (int i = 0; i < BESIDE; i++) base_free(output->ctx, output->beside[i]);
    base_free(output->ctx, output);
}
