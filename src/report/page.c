// psi_report_write: one page about a run, with nothing outside of it.
#include "report/page.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/options.h"
#include "report/exact.h"
#include "report/extremes.h"
#include "report/figures.h"

#include <dirent.h>
#include <math.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

psi_report_options psi_report_defaults(void)
{
    return (psi_report_options){.size = sizeof(psi_report_options),
                                .gamma = psi_plan_defaults().gamma};
}

// ---- computing ----------------------------------------------------------------------------------

static int larger_first(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    if (x[0] != y[0]) return x[0] < y[0] ? 1 : -1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

static psi_status measure_confidence(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    TRY(base_alloc_zero(page->ctx, run->n_latent, sizeof *page->sure, &page->sure));
    TRY(base_alloc(page->ctx, run->n_latent, sizeof *page->least, &page->least));
    for (size_t k = 0; k < run->n_latent; k++) page->least[k] = 1.0f;
    for (size_t i = 0; i < run->n_observations; i++) {
        if (run->labels[i] < 0) continue;
        const size_t k = (size_t)run->labels[i];
        page->sure[k] += (double)run->confidence[i] / (double)page->sizes[k];
        page->least[k] = fminf(page->least[k], run->confidence[i]);
    }
done:
    return status;
}

static psi_status measure_states(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    size_t *keyed = NULL; // (n_latent, 2) size and latent state
    TRY(base_alloc_zero(page->ctx, run->n_latent, sizeof *page->sizes, &page->sizes));
    TRY(base_alloc(page->ctx, run->n_latent, sizeof *page->order, &page->order));
    TRY(base_alloc(page->ctx, 2 * run->n_latent, sizeof *keyed, &keyed));
    for (size_t i = 0; i < run->n_observations; i++) {
        if (run->labels[i] < 0) {
            page->ignored++;
        } else {
            page->sizes[run->labels[i]]++;
        }
    }
    for (size_t k = 0; k < run->n_latent; k++) {
        keyed[2 * k] = page->sizes[k];
        keyed[2 * k + 1] = k;
    }
    if (run->confidence) TRY(measure_confidence(page));
    qsort(keyed, run->n_latent, 2 * sizeof *keyed, larger_first);
    for (size_t k = 0; k < run->n_latent; k++) page->order[k] = keyed[2 * k + 1];
done:
    base_free(page->ctx, keyed);
    return status;
}

static psi_status compute(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    page->result = (psi_report_result){.finished = run->finished,
                                       .latent_states = run->n_latent,
                                       .refinements = run->n_steps,
                                       .error = (double)NAN,
                                       .zero_error = (double)NAN,
                                       .best_error = (double)NAN};
    page->result.trusted =
        page->exact || (run->finished && run->verdict == PSI_VERDICT_CERTAIN && run->converged);
    TRY(measure_states(page));
    if (page->options->other) {
        TRY(report_compare(page->ctx, run, page->options->other, &page->comparison));
    }
    if (page->data) {
        TRY(report_samples_new(page->ctx, page->data, run->labels, run->n_latent,
                               page->options->seed, &page->samples));
        TRY(report_least_typical(page->samples, run->labels, page->options->seed,
                                 &page->least_typical));
        if (run->confidence) {
            TRY(report_least_sure(page->samples, run->labels, run->confidence, &page->least_sure));
        }
        TRY(psi_run_evaluate(page->ctx, run, page->data, run->labels, true, &page->errors));
        const psi_sequence_error *last = &page->errors->summary[page->errors->n_stages - 1];
        page->result.error = last->mean;
        page->result.zero_error = last->zero_baseline;
        if (run->model) {
            psi_error_floor floor;
            TRY(psi_error_floor_of(page->ctx, run, page->data, run->labels, &floor));
            page->result.best_error = floor.mean;
            page->best_by_truth = floor.truth;
        }
        page->result.pictures = true;
    }
    if (run->model) {
        psi_plan_options how = psi_plan_defaults();
        how.gamma = page->options->gamma;
        TRY(psi_value_iteration(page->ctx, run->model, &how, &page->plan));
        TRY(report_closest(page->ctx, run, page->data, page->exact != NULL, &page->closest));
    }
done:
    return status;
}

// ---- the top ------------------------------------------------------------------------------------

// Only our own script runs: its digest is in the page's policy, so that nothing that found its way
// past the escaping would.
static void put_policy(report_text *html)
{
    struct sha256_ctx digest;
    uint8_t bytes[SHA256_DIGEST_SIZE];
    sha256_init(&digest);
    sha256_update(&digest, REPORT_PAGE_JS_SIZE, (const uint8_t *)REPORT_PAGE_JS);
    sha256_digest(&digest, sizeof bytes, bytes);
    report_put(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action "
                     "'none'; script-src 'sha256-");
    report_base64(html, bytes, sizeof bytes);
    report_put(html, "'\">\n");
}

static const char *plain_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash[1] ? slash + 1 : path;
}

static void put_top(report_page *page)
{
    report_text *html = &page->html;
    const psi_run *run = page->run;
    const char *name = plain_name(run->n_data_paths > 0 ? run->data_paths[0] : page->data_path);
    if (!name) name = plain_name(run->folder);
    if (!name) name = "a run";
    report_put(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put_policy(html);
    report_put(html, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    report_escape(html, name);
    report_put(html, " – psifold</title>\n<style>\n");
    report_put_bytes(html, REPORT_PAGE_CSS, REPORT_PAGE_CSS_SIZE);
    report_put(html, "</style>\n</head>\n<body>\n<header><p class=\"brand\">psifold report</p>\n"
                     "<h1>");
    report_escape(html, name);
    report_putf(html, ": %zu latent states</h1>\n", run->n_latent);
    report_page_verdict(page);
    report_put(html, "</header>\n<main>\n");
}

// ---- figures ------------------------------------------------------------------------------------

psi_status report_page_figure(report_page *page, const char *name, bool wide, const char *alt,
                              const char *caption)
{
    psi_status status = PSI_OK;
    report_text *html = &page->html;
    report_putf(
        html,
        "<figure id=\"figure-%s\"%s><picture><source media=\"(prefers-color-scheme: dark)\" "
        "srcset=\"",
        name, wide ? " class=\"across\" tabindex=\"0\"" : "");
    TRY(report_put_svg(html, page->figures, name, "-dark"));
    report_putf(html, "\"><img alt=\"%s\" src=\"", alt);
    TRY(report_put_svg(html, page->figures, name, ""));
    report_putf(html, "\"></picture><figcaption>%s</figcaption></figure>\n", caption);
    page->n_figures++;
    status = html->status;
done:
    return status;
}

// The folder of the figures: one that stays, or one that is gone afterwards.
static psi_status open_figures(report_page *page)
{
    psi_status status = PSI_OK;
    if (page->options->figures) {
        TRY(base_output_open(page->ctx, page->options->figures, BASE_FOLDER, page->options->replace,
                             &page->kept));
        TRY(base_copy_text(page->ctx, base_output_path(page->kept), &page->figures));
    } else {
        const char *parent = getenv("TMPDIR");
        TRY(base_join(page->ctx, parent ? parent : "/tmp", "psifold-figures-XXXXXX",
                      &page->figures));
        if (!mkdtemp(page->figures)) {
            base_free(page->ctx, page->figures);
            page->figures = NULL;
            status = FAIL(page->ctx, PSI_EIO, "no folder for figures can be made");
        }
    }
done:
    return status;
}

// All that is in a folder is gone once it is replaced: it may hold nothing but figures of these
// names.
static psi_status check_replaced(const report_page *page)
{
    psi_status status = PSI_OK;
    const char *folder = page->options->figures;
    DIR *entries = page->kept ? opendir(folder) : NULL;
    char *drawn = NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        TRY(base_join(page->ctx, page->figures, entry->d_name, &drawn));
        if (!base_is_there(drawn)) {
            TRY(FAIL(page->ctx, PSI_EUSAGE,
                     "%s holds %s, which is no figure of this report: it is not replaced", folder,
                     entry->d_name));
        }
        base_free(page->ctx, drawn);
        drawn = NULL;
    }
done:
    base_free(page->ctx, drawn);
    if (entries) closedir(entries);
    return status;
}

// ---- all of it ----------------------------------------------------------------------------------

static void free_page(report_page *page)
{
    psi_ctx *ctx = page->ctx;
    if (page->figures && !page->options->figures) base_remove(page->figures);
    base_output_discard(page->kept);
    base_free(ctx, page->figures);
    psi_plan_free(ctx, page->plan);
    psi_run_errors_free(ctx, page->errors);
    report_samples_free(page->samples);
    report_samples_free(page->least_typical);
    report_samples_free(page->least_sure);
    base_free(ctx, page->sizes);
    base_free(ctx, page->order);
    base_free(ctx, page->sure);
    base_free(ctx, page->least);
    base_free(ctx, page->closest);
    report_comparison_free(page->comparison);
    psi_levels_free(ctx, &page->levels);
    report_text_free(&page->html);
}

static void put_licences(report_text *html)
{
    report_put(html, "<details><summary>Libraries in this page, and their licences</summary><pre>");
    report_escape(html, REPORT_LICENCES);
    report_put(html, "</pre></details>");
}

static psi_status write_page(report_page *page)
{
    psi_status status = PSI_OK;
    report_text *html = &page->html;
    put_top(page);
    report_page_explorer(page);
    TRY(report_page_beside(page));
    TRY(report_page_episodes(page));
    report_page_found(page);
    report_page_asked(page);
    TRY(report_page_history(page));
    TRY(report_page_pictures(page));
    report_put(html, "</section>\n");
    TRY(report_page_states(page));
    report_put(html, "</main>\n<footer>Made by psifold ");
    report_escape(html, psi_version());
    report_put(html, " from ");
    report_escape(html, page->run->folder ? page->run->folder : "a run that was not kept");
    report_put(html, ". Nothing on this page comes from the network.");
    put_licences(html);
    report_put(html, "</footer>\n");
    TRY(report_page_stages(page));
    report_put(html, "<script>");
    report_put_bytes(html, REPORT_PAGE_JS, REPORT_PAGE_JS_SIZE);
    report_put(html, "</script>\n</body>\n</html>\n");
    status = html->status;
done:
    return status;
}

// The page of what page->run has; frees everything.
static psi_status make_page(report_page *page, const char *path, psi_report_result *result)
{
    psi_status status = PSI_OK;
    TRY(compute(page));
    TRY(open_figures(page));
    TRY(write_page(page));
    TRY(check_replaced(page));
    TRY(report_text_save(&page->html, path, page->options->replace));
    if (page->kept) {
        base_output *whole = page->kept;
        page->kept = NULL;
        TRY(base_output_commit(whole));
    }
    page->result.bytes = page->html.size;
    page->result.figures = page->n_figures;
    if (result) *result = page->result;
done:
    return status;
}

// Before the work, not after it.
static psi_status refuse_what_is_there(psi_ctx *ctx, const char *path, bool replace)
{
    struct stat info;
    if (replace || !path || lstat(path, &info) != 0) return PSI_OK;
    return FAIL(ctx, PSI_EUSAGE, "%s exists already: choose another name, or remove it", path);
}

psi_status psi_report_write(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                            const char *path, const psi_report_options *options,
                            psi_report_result *result)
{
    if (FREED(ctx, run, data)) return PSI_EUSAGE;
    if (!base_options_fit(ctx, options, sizeof *options, "psi_report_defaults")) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    report_page page = {.ctx = ctx,
                        .html = {.ctx = ctx},
                        .run = run,
                        .data = data,
                        .data_path = options->data_path,
                        .options = options};
    TRY(refuse_what_is_there(ctx, path, options->replace));
    if (data && (!run->model || data->n_observations != run->n_observations)) {
        TRY(FAIL(ctx, PSI_EDATA, "%s are not the data that the run was made from",
                 page.data_path ? page.data_path : "these"));
    }
    TRY(psi_run_levels(ctx, run, &page.levels));
    TRY(make_page(&page, path, result));
done:
    free_page(&page);
    return status;
}

psi_status psi_report_model(psi_ctx *ctx, const psi_model *model, const char *name,
                            const char *path, const psi_report_options *options,
                            psi_report_result *result)
{
    if (FREED(ctx, model)) return PSI_EUSAGE;
    if (!base_options_fit(ctx, options, sizeof *options, "psi_report_defaults")) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    report_page page = {.ctx = ctx, .html = {.ctx = ctx}, .options = options};
    report_exact exact = {0};
    TRY(refuse_what_is_there(ctx, path, options->replace));
    TRY(report_exact_find(ctx, model, name, &exact));
    page.run = exact.run;
    page.exact = exact.quotient;
    page.action_names = exact.action_names;
    page.levels = exact.levels;
    exact.levels = (psi_levels){0};
    TRY(make_page(&page, path, result));
done:
    free_page(&page);
    report_exact_free(ctx, &exact);
    return status;
}
