// Options from tables (psifold/base.h): what rooms and the command need beyond the public part.
#ifndef PSI_BASE_OPTIONS_H
#define PSI_BASE_OPTIONS_H

#include "base/json.h"

// Offset and size of a field, for a row of a table.
#define OPTION_FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)

// The words of a choice from an X-macro whose second column they are: OPTION_WORDS(PSI_VIEW_TABLE)
// is "auto|observation|…".
#define OPTION_WORD(name, text, ...) "|" text
#define OPTION_WORDS(table)          (&"" table(OPTION_WORD)[1])

// Every struct of options begins with its size. False, with a sentence that says how options are
// made, for NULL and for another size: a program that was built with other headers, or a struct
// that nobody has filled.
bool base_options_fit(psi_ctx *ctx, const void *options, size_t size, const char *made_with);

enum { BASE_OPTION_PROBLEM = 256 };

// Sets the field from its text (NULL: "on"). False if it makes no sense; problem then holds a
// sentence, and the struct is as it was.
bool base_option_read(const psi_option *option, const char *text, void *options,
                      char problem[BASE_OPTION_PROBLEM]);

// All options, by name, in the order of the table: for a manifest, or as the key of a result.
// without_changing leaves out those that may change when a run is resumed. *out is the caller's.
psi_status base_options_json(psi_ctx *ctx, const psi_option_table *table, const void *options,
                             bool without_changing, json_t **out);

// … and back: options that the object has, as base_options_json wrote them; others stay. Texts are
// borrowed from it. PSI_EFORMAT, with the name of the file, for a value that makes no sense.
psi_status base_options_read(psi_ctx *ctx, const psi_option_table *table, const char *path,
                             const json_t *object, void *options);

#endif
