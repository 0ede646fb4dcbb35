// JSON through Jansson: files in and out with our statuses.
#ifndef PSI_BASE_JSON_H
#define PSI_BASE_JSON_H

#include <psifold/base.h>

#include <jansson.h>

// *out is the caller's, to be given back with json_decref. PSI_EFORMAT names the line and column.
psi_status base_json_parse(psi_ctx *ctx, const char *name, const char *text, size_t size,
                           json_t **out);
psi_status base_json_load(psi_ctx *ctx, const char *path, size_t limit, json_t **out);

// Written atomically, keys in the order in which they were set.
psi_status base_json_save(psi_ctx *ctx, const char *path, const json_t *value);

// A number, or null for one that is infinite or none at all, which JSON cannot hold: Jansson's own
// constructor fails then, and it looks as if memory had run out.
json_t *base_json_real(double value);

// Whether a text can be written: Jansson's constructors fail for others, as if memory had run out.
bool base_is_utf8(const char *text);

// PSI_ENOMEM if value is NULL, which is how Jansson's constructors report it.
psi_status base_json_made(psi_ctx *ctx, const json_t *value);

#endif
