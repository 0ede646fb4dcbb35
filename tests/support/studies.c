#include "support/studies.h"

#include "support/support.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void test_hear(void *user, bool detail, const char *line)
{
    test_listener *all = user;
    const size_t used = strlen(all->text);
    assert_true(line[0] != '\0');
    snprintf(all->text + used, sizeof all->text - used, "\n%s%s", detail ? "  " : "", line);
    if (all->cancel && strstr(line, all->when)) psi_cancel(all->cancel);
}

void test_assert_heard(const test_listener *all, const char *words)
{
    if (!strstr(all->text, words)) fail_msg("\"%s\" is not among:%s", words, all->text);
}

psi_study_options test_study_options(const char *output, test_listener *all)
{
    psi_study_options options = psi_study_defaults();
    options.output = output;
    options.digits = "drawn";
    options.tell = test_hear;
    options.user = all;
    return options;
}

study test_study_begun(psi_ctx *ctx, char *folder, const psi_study_options *how)
{
    return (study){.ctx = ctx,
                   .how = how,
                   .name = "test",
                   .folder = folder,
                   .results = json_pack("{s:[], s:[], s:[]}", "claims", "figures", "files")};
}

void test_study_run(psi_ctx *ctx, const char *name, const psi_study_options *how)
{
    psi_study_result made;
    assert_ok(ctx, psi_study_run(ctx, name, how, &made));
    psi_study_result_free(ctx, &made);
}

void test_study_refused(psi_ctx *ctx, const char *name, const psi_study_options *how,
                        psi_status status, const char *sentence)
{
    psi_study_result made;
    assert_status(ctx, psi_study_run(ctx, name, how, &made), status);
    test_assert_error_says(ctx, sentence);
    assert_true(made.n == 0 && !made.page);
}

json_t *test_load(psi_ctx *ctx, const char *folder, const char *name)
{
    json_t *json;
    assert_ok(ctx, base_json_load(ctx, test_path(folder, name), 1 << 22, &json));
    return json;
}

char *test_text(psi_ctx *ctx, const char *folder, const char *name)
{
    char *text = NULL;
    size_t size;
    assert_ok(ctx, base_read_file(ctx, test_path(folder, name), 1 << 22, &text, &size));
    return text;
}

void test_assert_text(psi_ctx *ctx, const char *folder, const char *name, const char *expected)
{
    char *text = test_text(ctx, folder, name);
    assert_string_equal(text, expected);
    base_free(ctx, text);
}

const char *test_claim(const json_t *results, const char *words, bool *holds)
{
    json_t *claim;
    size_t i;
    *holds = false;
    json_array_foreach(json_object_get(results, "claims"), i, claim)
    {
        const char *says = json_string_value(json_object_get(claim, "claim"));
        if (strncmp(says, words, strlen(words)) != 0) continue;
        *holds = json_is_true(json_object_get(claim, "holds"));
        return json_string_value(json_object_get(claim, "ours"));
    }
    fail_msg("there is no claim \"%s…\"", words);
    return NULL;
}

double test_number(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    if (!json_is_number(value)) fail_msg("there is no number %s", key);
    return json_number_value(value);
}

size_t test_figure_numbers(psi_ctx *ctx, const char *folder, const char *name, size_t part,
                           double *out, size_t room)
{
    size_t n = 0;
    char *text = test_text(ctx, folder, name), *at = text, *rest = NULL;
    for (; part > 0; part--) {
        at = strstr(at, "\n\n\n");
        assert_non_null(at);
        at += 3;
    }
    const char *const next = strstr(at, "\n\n\n"), *const end = next ? next : at + strlen(at);
    for (char *line = strtok_r(at, "\n", &rest); line && line < end;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#') continue;
        for (char *after;; line = after) {
            const double value = strtod(line, &after);
            if (after == line) break; // a word, or the end
            assert_true(n < room);
            out[n++] = value;
        }
    }
    base_free(ctx, text);
    return n;
}

void test_change_options(psi_ctx *ctx, const char *run, json_t *options)
{
    json_t *manifest = test_load(ctx, run, "manifest.json");
    assert_int_equal(json_object_update(json_object_get(manifest, "options"), options), 0);
    assert_ok(ctx, base_json_save(ctx, test_path(run, "manifest.json"), manifest));
    json_decref(manifest);
    json_decref(options);
}
