// Clustering with options by name, into a run folder.
#include "flat.h"

#include <stdio.h>

// A value of Python's as it would be given on the command line; "" for what no option takes.
static void as_text(const json_t *value, char text[PSI_OPTION_TEXT_SIZE])
{
    text[0] = '\0';
    if (json_is_boolean(value))
        snprintf(text, PSI_OPTION_TEXT_SIZE, json_is_true(value) ? "on" : "off");
    if (json_is_real(value)) snprintf(text, PSI_OPTION_TEXT_SIZE, "%.17g", json_real_value(value));
    if (json_is_integer(value))
        snprintf(text, PSI_OPTION_TEXT_SIZE, "%lld", (long long)json_integer_value(value));
    if (json_is_string(value)) snprintf(text, PSI_OPTION_TEXT_SIZE, "%s", json_string_value(value));
}

// The library's table says what there is; what is given goes on top of the paper's constants where
// these are asked for.
static int read_options(flat_session *session, const char *text, psi_cluster_options *how)
{
    const psi_option_table *table = psi_cluster_option_table();
    json_t *all = NULL, *value;
    uint64_t given = 0;
    const char *name;
    char word[PSI_OPTION_TEXT_SIZE];
    int status = flat_parse(session, text, &all);
    if (status != PSI_OK) return status;
    psi_cluster_options asked = psi_cluster_defaults();
    json_object_foreach(all, name, value)
    {
        as_text(value, word);
        status = (int)psi_option_set(session->ctx, table, &asked, name, word, &given);
        if (status != PSI_OK) break;
    }
    *how = asked;
    if (status == PSI_OK && asked.paper != PSI_PAPER_NONE) {
        as_text(json_object_get(all, "paper"), word);
        status = (int)psi_cluster_paper(session->ctx, word, how);
        if (status == PSI_OK) psi_options_copy(table, given, &asked, how);
    }
    json_decref(all);
    return status;
}

// {name: {"default": text, "value": what it takes, "help": …}}, with underscores in the names
int flat_cluster_options(flat_session *session, char **json)
{
    const psi_option_table *table = psi_cluster_option_table();
    const psi_cluster_options how = psi_cluster_defaults();
    json_t *object = json_object();
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *o = &table->rows[i];
        char name[64], text[PSI_OPTION_TEXT_SIZE];
        snprintf(name, sizeof name, "%s", o->name);
        for (char *c = name; *c; c++) *c = *c == '-' ? '_' : *c;
        json_object_set_new(object, name,
                            json_pack("{s:s, s:s*, s:s}", "default", psi_option_text(o, &how, text),
                                      "value", o->value, "help", o->help));
    }
    return flat_json(session, object, json);
}

int flat_cluster(flat_session *session, const flat_data *data, const char *options, uint64_t seed,
                 const char *folder, int mode, const char *const *data_paths, size_t n_data_paths)
{
    static const psi_folder_mode modes[] = {[FLAT_NEW] = PSI_FOLDER_NEW,
                                            [FLAT_REPLACE] = PSI_FOLDER_REPLACE,
                                            [FLAT_RESUME] = PSI_FOLDER_RESUME};
    psi_cluster_options how;
    psi_run_folder *open = NULL;
    psi_run *run = NULL;
    int status = read_options(session, options, &how);
    if (status != PSI_OK) return status;
    how.seed = seed;
    how.watch = flat_watch;
    how.user = session;
    status = (int)psi_run_folder_open(session->ctx, folder, modes[mode], &open);
    if (status != PSI_OK) return status;
    status = (int)psi_cluster_into(open, data_paths, n_data_paths, flat_data_of(data), &how, &run);
    psi_run_free(session->ctx, run);
    return status;
}
