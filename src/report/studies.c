// Pages about the paper: its claims beside what came out here, with the figures.
#include "report/page.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"

#include <string.h>

enum { RESULTS_LIMIT = 1 << 22, MAX_ENTRIES = 200 };

static void put_member(report_text *html, const json_t *object, const char *member)
{
    const char *words = json_string_value(json_object_get(object, member));
    report_escape(html, words ? words : "–");
}

static void put_claims(report_text *html, const json_t *results)
{
    const json_t *claims = json_object_get(results, "claims");
    const size_t n = base_min(json_array_size(claims), MAX_ENTRIES);
    if (n == 0) return;
    report_put(html,
               "<div class=\"wide\" role=\"region\" tabindex=\"0\" "
               "aria-label=\"Claims\"><table><thead><tr><th>claim</th><th>paper</th><th>here</th>"
               "<th>holds</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < n; i++) {
        const json_t *claim = json_array_get(claims, i), *holds = json_object_get(claim, "holds");
        report_put(html, "<tr><td>");
        put_member(html, claim, "claim");
        report_put(html, "</td><td>");
        put_member(html, claim, "paper");
        report_put(html, "</td><td>");
        put_member(html, claim, "ours");
        report_put(html, json_is_true(holds)    ? "</td><td><span class=\"tag good\">yes</span>"
                         : json_is_false(holds) ? "</td><td><span class=\"tag bad\">no</span>"
                                                : "</td><td>–");
        report_put(html, "</td></tr>\n");
    }
    report_put(html, "</tbody></table></div>\n");
}

// Names lead to files beside results.json and to nothing else.
static bool plain_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    return name && *name && *name != '.' && strlen(name) < 64 &&
           name[strspn(name, allowed)] == '\0';
}

static psi_status put_figures(report_text *html, const char *folder, const json_t *results)
{
    psi_status status = PSI_OK;
    const json_t *figures = json_object_get(results, "figures");
    report_put(html, "<div class=\"figures\">\n");
    for (size_t i = 0; i < base_min(json_array_size(figures), MAX_ENTRIES); i++) {
        const json_t *figure = json_array_get(figures, i);
        const char *name = json_string_value(json_object_get(figure, "name"));
        if (!plain_name(name)) {
            status = FAIL(html->ctx, PSI_EFORMAT, "%s/results.json: figure %zu has no plain name",
                          folder, i + 1);
            goto done;
        }
        const bool wide = json_is_true(json_object_get(figure, "wide"));
        report_putf(html,
                    "<figure%s><picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"",
                    wide ? " class=\"across\" tabindex=\"0\"" : "");
        TRY(report_put_svg(html, folder, name, "-dark"));
        report_put(html, "\"><img alt=\"");
        put_member(html, figure, "alt");
        report_put(html, "\" src=\"");
        TRY(report_put_svg(html, folder, name, ""));
        report_put(html, "\"></picture><figcaption>");
        put_member(html, figure, "caption");
        report_put(html, "</figcaption></figure>\n");
    }
    report_put(html, "</div>\n");
    status = html->status;
done:
    return status;
}

static void put_files(report_text *html, const json_t *results)
{
    const json_t *files = json_object_get(results, "files");
    const size_t n = base_min(json_array_size(files), MAX_ENTRIES);
    if (n == 0) return;
    report_put(html, "<details><summary>Data behind this</summary><dl class=\"facts\">");
    for (size_t i = 0; i < n; i++) {
        report_put(html, "<dt>");
        put_member(html, json_array_get(files, i), "name");
        report_put(html, "</dt><dd>");
        put_member(html, json_array_get(files, i), "what");
        report_put(html, "</dd>");
    }
    report_put(html, "</dl></details>\n");
}

static psi_status put_study(report_text *html, const char *folder)
{
    psi_status status = PSI_OK;
    json_t *results = NULL;
    char *path = NULL;
    TRY(base_join(html->ctx, folder, "results.json", &path));
    TRY(base_json_load(html->ctx, path, RESULTS_LIMIT, &results));
    if (!json_is_object(results) || !json_is_string(json_object_get(results, "title"))) {
        status = FAIL(html->ctx, PSI_EFORMAT, "%s does not hold the results of a study", path);
        goto done;
    }
    report_put(html, "<section><h2>");
    put_member(html, results, "title");
    report_put(html, "</h2>\n<p>");
    put_member(html, results, "what");
    report_put(html, "</p>\n");
    put_claims(html, results);
    TRY(put_figures(html, folder, results));
    put_files(html, results);
    report_put(html, "</section>\n");
    status = html->status;
done:
    json_decref(results);
    base_free(html->ctx, path);
    return status;
}

psi_status psi_report_studies(psi_ctx *ctx, const char *page, const char *title, size_t n,
                              const char *const *folders)
{
    psi_status status = PSI_OK;
    report_text html = {.ctx = ctx};
    report_put(&html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "img-src data:; style-src 'unsafe-inline'\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    report_escape(&html, title);
    report_put(&html, "</title>\n<style>\n");
    report_put_bytes(&html, REPORT_PAGE_CSS, REPORT_PAGE_CSS_SIZE);
    report_put(&html,
               "</style>\n</head>\n<body>\n<header><p class=\"brand\">psifold reproduce</p>\n"
               "<h1>");
    report_escape(&html, title);
    report_put(&html, "</h1>\n<p>The paper's figures and claims (<cite>Reward-Predictive "
                      "Clustering</cite>, Lehnert, Frank, Littman) beside what came out "
                      "here.</p></header>\n<main>\n");
    for (size_t i = 0; i < n; i++) TRY(put_study(&html, folders[i]));
    report_put(&html, "</main>\n<footer>Made by psifold ");
    report_escape(&html, psi_version());
    report_put(&html, ".</footer>\n</body>\n</html>\n");
    TRY(report_text_save(&html, page, true));
done:
    report_text_free(&html);
    return status;
}
