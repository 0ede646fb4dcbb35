// Writing down what a study comes to: claims, figures, files, numbers, and lines to read.
#include "study/study.h"

#include "base/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

psi_status study_set(study *of, const char *key, json_t *value)
{
    if (value && json_object_set_new(of->results, key, value) == 0) return PSI_OK;
    return FAIL(of->ctx, PSI_ENOMEM, "no memory for the result %s", key);
}

static psi_status append(study *of, const char *list, json_t *entry)
{
    if (entry && json_array_append_new(json_object_get(of->results, list), entry) == 0) {
        return PSI_OK;
    }
    return FAIL(of->ctx, PSI_ENOMEM, "no memory for the results");
}

psi_status study_title(study *of, const char *title, const char *what)
{
    const psi_status status = study_set(of, "title", json_string(title));
    return status == PSI_OK ? study_set(of, "what", json_string(what)) : status;
}

psi_status study_claim(study *of, const char *claim, const char *paper, bool holds,
                       const char *ours, ...)
{
    char words[512];
    va_list arguments;
    va_start(arguments, ours);
    vsnprintf(words, sizeof words, ours, arguments);
    va_end(arguments);
    return append(of, "claims",
                  json_pack("{s:s, s:s, s:s, s:b}", "claim", claim, "paper", paper, "ours", words,
                            "holds", holds));
}

psi_status study_figure(study *of, const char *name, const char *alt, const char *caption)
{
    return append(of, "figures",
                  json_pack("{s:s, s:s, s:s}", "name", name, "alt", alt, "caption", caption));
}

psi_status study_wide_figure(study *of, const char *name, const char *alt, const char *caption)
{
    return append(of, "figures",
                  json_pack("{s:s, s:s, s:s, s:b}", "name", name, "alt", alt, "caption", caption,
                            "wide", true));
}

psi_status study_file(study *of, const char *name, const char *what)
{
    return append(of, "files", json_pack("{s:s, s:s}", "name", name, "what", what));
}

psi_status study_path(study *of, const char *name, char **path)
{
    return base_join(of->ctx, of->folder, name, path);
}

psi_status study_folder(const study *of, const char *name, char **folder)
{
    psi_status status = PSI_OK;
    char *middle = NULL;
    TRY(base_join(of->ctx, of->how->output, name, &middle));
    TRY(base_join(of->ctx, middle, study_scale_name(of), folder));
done:
    base_free(of->ctx, middle);
    return status;
}

bool study_has(study *of, const char *name)
{
    char *path = NULL;
    const bool there = study_path(of, name, &path) == PSI_OK && access(path, F_OK) == 0;
    base_free(of->ctx, path);
    return there;
}

static void tell(const study *of, bool detail, const char *format, va_list arguments)
{
    char line[1024];
    if (!of->how->tell) return;
    vsnprintf(line, sizeof line, format, arguments);
    of->how->tell(of->how->user, detail, line);
}

void study_prints(const study *of, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(of, false, format, arguments);
    va_end(arguments);
}

psi_status study_says(const study *of, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(of, true, format, arguments);
    va_end(arguments);
    return base_cancelled(of->ctx);
}

json_t *study_interval_json(const psi_interval *interval)
{
    return json_pack("{s:f, s:f, s:f}", "estimate", interval->estimate, "low", interval->low,
                     "high", interval->high);
}

int study_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
