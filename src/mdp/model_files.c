// Files of models: which format it is, and from there to its reader or writer.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "base/context.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const size_t LARGEST_FILE = (size_t)1 << 40;

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

// The path with its last four letters (".tra") replaced.
static psi_status beside(psi_ctx *ctx, const char *tra, const char *ending, char **out)
{
    const size_t stem = strlen(tra) - 4;
    const psi_status status = base_alloc(ctx, stem + strlen(ending) + 1, 1, out);
    if (status != PSI_OK) return status;
    memcpy(*out, tra, stem);
    strcpy(*out + stem, ending); // NOLINT: there is room
    return PSI_OK;
}

static psi_status read_beside(psi_ctx *ctx, const char *tra, const char *ending, char **text,
                              size_t *size)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    TRY(beside(ctx, tra, ending, &path));
    if (access(path, F_OK) == 0) TRY(base_read_file(ctx, path, LARGEST_FILE, text, size));
done:
    base_free(ctx, path);
    return status;
}

static psi_status read_tables(psi_ctx *ctx, const char *path, psi_model **out)
{
    psi_status status = PSI_OK;
    char *tra = NULL, *lab = NULL, *srew = NULL, *trew = NULL;
    mdp_prism_texts texts = {0};
    TRY(base_read_file(ctx, path, LARGEST_FILE, &tra, &texts.tra_size));
    TRY(read_beside(ctx, path, ".lab", &lab, &texts.lab_size));
    TRY(read_beside(ctx, path, ".srew", &srew, &texts.srew_size));
    TRY(read_beside(ctx, path, ".trew", &trew, &texts.trew_size));
    texts.tra = tra;
    texts.lab = lab;
    texts.srew = srew;
    texts.trew = trew;
    TRY(mdp_read_prism(ctx, path, &texts, out));
done:
    base_free(ctx, trew);
    base_free(ctx, srew);
    base_free(ctx, lab);
    base_free(ctx, tra);
    return status;
}

psi_status mdp_read_model(psi_ctx *ctx, const char *name, const char *bytes, size_t size,
                          psi_model **out)
{
    *out = NULL;
    if ((size > 2 && memcmp(bytes, "\x1F\x8B\x08", 3) == 0) ||
        (size > 262 && memcmp(bytes + 257, "ustar", 5) == 0))
        return mdp_read_umb(ctx, name, bytes, size, out);
    if (size > 5 && memcmp(bytes, "\xFD\x37zXZ", 5) == 0) {
        return FAIL(ctx, PSI_EUNSUPPORTED, "%s is compressed with xz; unpack it with xz -d first",
                    name);
    }
    const size_t first = strspn(bytes, " \t\r\n");
    if (bytes[first] == '{' || bytes[first] == '[')
        return mdp_read_gymnasium(ctx, name, bytes, size, out);
    if (bytes[first] == '@' || (bytes[first] == '/' && bytes[first + 1] == '/'))
        return mdp_read_drn(ctx, name, bytes, size, out);
    return FAIL(ctx, PSI_EFORMAT, "%s is not a model: neither DRN nor UMB nor JSON", name);
}

psi_status psi_model_read(psi_ctx *ctx, const char *path, psi_model **out)
{
    psi_status status = PSI_OK;
    char *bytes = NULL;
    size_t size;
    *out = NULL;
    if (path && ends_with(path, ".tra")) return read_tables(ctx, path, out);
    TRY(base_read_file(ctx, path, LARGEST_FILE, &bytes, &size));
    TRY(mdp_read_model(ctx, path, bytes, size, out));
done:
    base_free(ctx, bytes);
    return status;
}

// ---- writing ------------------------------------------------------------------------------------

typedef psi_status writer(psi_ctx *ctx, const psi_model *model, base_output *output);

static psi_status write_file(psi_ctx *ctx, const psi_model *model, const char *path, writer *write)
{
    psi_status status = PSI_OK;
    base_output *output = NULL;
    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    TRY(write(ctx, model, output));
    status = base_output_commit(output);
    output = NULL;
done:
    base_output_discard(output);
    return status;
}

static psi_status write_tables(psi_ctx *ctx, const psi_model *model, const char *path)
{
    static const char *const ending[] = {".tra", ".lab", ".srew", ".trew"};
    psi_status status = PSI_OK;
    char *name = NULL;
    base_output *output = NULL;
    for (int part = MDP_TRA; part <= MDP_TREW; part++) {
        bool wanted = part == MDP_TRA || part == MDP_LAB;
        if (!wanted && model->n_rewards > 0) {
            wanted = part == MDP_SREW ? model->rewards[0].state != NULL
                                      : model->rewards[0].choice != NULL;
        }
        if (!wanted) continue;
        TRY(beside(ctx, path, ending[part], &name));
        TRY(base_output_open(ctx, name, BASE_FILE, true, &output));
        TRY(mdp_write_prism(ctx, model, (mdp_prism_part)part, output));
        status = base_output_commit(output);
        output = NULL;
        if (status != PSI_OK) goto done;
        base_free(ctx, name);
        name = NULL;
    }
done:
    base_output_discard(output);
    base_free(ctx, name);
    return status;
}

psi_status psi_model_write(psi_ctx *ctx, const psi_model *model, const char *path)
{
    if (FREED(ctx, model)) return PSI_EUSAGE;
    const psi_status status = psi_model_check(ctx, model);
    if (status != PSI_OK) return status;
    if (ends_with(path, ".drn")) return write_file(ctx, model, path, mdp_write_drn);
    if (ends_with(path, ".umb")) return write_file(ctx, model, path, mdp_write_umb);
    if (ends_with(path, ".json")) return write_file(ctx, model, path, mdp_write_gymnasium);
    if (ends_with(path, ".tra")) return write_tables(ctx, model, path);
    return FAIL(ctx, PSI_EUSAGE, "%s: a model is written as .drn, .umb, .tra or .json", path);
}
