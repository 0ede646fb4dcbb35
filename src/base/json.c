#include "base/json.h"

#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *base_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

psi_status base_json_made(psi_ctx *ctx, const json_t *value)
{
    return value ? PSI_OK : FAIL(ctx, PSI_ENOMEM, "no memory for a piece of JSON");
}

psi_status base_json_parse(psi_ctx *ctx, const char *name, const char *text, size_t size,
                           json_t **out)
{
    json_error_t error;
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (*out) return PSI_OK;
    if (json_error_code(&error) == json_error_out_of_memory) {
        return FAIL(ctx, PSI_ENOMEM, "%s: no memory for what it holds", name);
    }
    return FAIL(ctx, PSI_EFORMAT, "%s: line %d, column %d: %s", name, error.line, error.column,
                error.text);
}

psi_status base_json_load(psi_ctx *ctx, const char *path, size_t limit, json_t **out)
{
    char *text;
    size_t size;
    *out = NULL;
    psi_status status = base_read_file(ctx, path, limit, &text, &size);
    if (status == PSI_OK) status = base_json_parse(ctx, path, text, size, out);
    base_free(ctx, text);
    return status;
}

psi_status base_json_save(psi_ctx *ctx, const char *path, const json_t *value)
{
    psi_status status = PSI_OK;
    base_output *output = NULL;
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (!text) return FAIL(ctx, PSI_ENOMEM, "%s: this value cannot be written as JSON", path);
    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, text, strlen(text)));
    TRY(base_output_write(output, "\n", 1));
    status = base_output_commit(output);
    output = NULL;
done:
    base_output_discard(output);
    free(text);
    return status;
}

bool base_is_utf8(const char *text)
{
    json_t *value = json_string(text);
    const bool is = value != NULL;
    json_decref(value);
    return is;
}
