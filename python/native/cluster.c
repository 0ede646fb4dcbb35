// Clustering with options by name, into a run folder.
#include "flat.h"

#include <stddef.h>
#include <string.h>

typedef enum option_kind { FLAG, SIZE, REAL, CHOICE } option_kind;

// The fields of psi_cluster_options by the names that the manifest has for them.
typedef struct option {
    const char *name;
    option_kind kind;
    size_t offset;
    const char *const *words; // of a choice: the enum's values in order
} option;

static const char *const METHODS[] = {"evidence", "successor-features", NULL};
static const char *const NORMS[] = {"l2", "l1", NULL};
static const char *const CACHES[] = {"auto", "full", "half", NULL};
#define X(name, text) text,
static const char *const APPROXIMATORS[] = {PSI_APPROXIMATOR_TABLE(X) NULL};
#undef X

#define FIELD(name, kind, words)                                                                   \
    {                                                                                              \
#name, kind, offsetof(psi_cluster_options, name), words                                    \
    }
static const option OPTIONS[] = {
    FIELD(method, CHOICE, METHODS),
    FIELD(approximator, CHOICE, APPROXIMATORS),
    FIELD(split, FLAG, NULL),
    FIELD(fine_tune, FLAG, NULL),
    FIELD(heads, FLAG, NULL),
    FIELD(auxiliary, FLAG, NULL),
    FIELD(dropout, FLAG, NULL),
    FIELD(smooth, FLAG, NULL),
    FIELD(norm, CHOICE, NORMS),
    FIELD(cache, CHOICE, CACHES),
    FIELD(gamma, REAL, NULL),
    FIELD(epsilon_reward, REAL, NULL),
    FIELD(epsilon_sf, REAL, NULL),
    FIELD(filter, REAL, NULL),
    FIELD(max_refinements, SIZE, NULL),
    FIELD(max_rounds, SIZE, NULL),
    FIELD(max_latent_states, SIZE, NULL),
    FIELD(subset, SIZE, NULL),
    FIELD(hidden, SIZE, NULL),
    FIELD(trunk_steps, SIZE, NULL),
    FIELD(head_steps, SIZE, NULL),
    FIELD(representation_steps, SIZE, NULL),
    FIELD(shift, SIZE, NULL),
    FIELD(learning_rate, REAL, NULL),
    FIELD(batch, SIZE, NULL),
    FIELD(reward_epochs, SIZE, NULL),
    FIELD(sf_epochs, SIZE, NULL),
    FIELD(representation_epochs, SIZE, NULL),
    FIELD(seed, SIZE, NULL),
};
enum { N_OPTIONS = sizeof OPTIONS / sizeof OPTIONS[0] };

// Enums and sizes are written as what they are in the struct.
_Static_assert(sizeof(psi_method) == sizeof(int) && sizeof(psi_norm) == sizeof(int) &&
                   sizeof(psi_cache) == sizeof(int) && sizeof(psi_approximator) == sizeof(int) &&
                   sizeof(size_t) == sizeof(uint64_t),
               "a choice is an int, a size holds a seed");

static int set_choice(flat_session *session, const option *o, const char *word, int *field)
{
    char known[256] = "";
    for (int i = 0; o->words[i]; i++) {
        if (word && strcmp(word, o->words[i]) == 0) {
            *field = i;
            return PSI_OK;
        }
        if (i > 0) strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, o->words[i], sizeof known - strlen(known) - 1);
    }
    return flat_fail(session, PSI_EUSAGE, "%s is one of: %s", o->name, known);
}

static int set_option(flat_session *session, const option *o, const json_t *value,
                      psi_cluster_options *how)
{
    char *field = (char *)how + o->offset;
    switch (o->kind) {
    case FLAG:
        if (!json_is_boolean(value))
            return flat_fail(session, PSI_EUSAGE, "%s is True or False", o->name);
        *(bool *)(void *)field = json_is_true(value);
        return PSI_OK;
    case SIZE:
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return flat_fail(session, PSI_EUSAGE, "%s is a whole number from 0 on", o->name);
        *(uint64_t *)(void *)field = (uint64_t)json_integer_value(value);
        return PSI_OK;
    case REAL:
        if (!json_is_number(value))
            return flat_fail(session, PSI_EUSAGE, "%s is a number", o->name);
        *(double *)(void *)field = json_number_value(value);
        return PSI_OK;
    case CHOICE: return set_choice(session, o, json_string_value(value), (int *)(void *)field);
    }
    return PSI_EINTERNAL;
}

// "paper" names a task: its constants are the defaults for what the other options leave open.
static int read_options(flat_session *session, const char *text, psi_cluster_options *how)
{
    json_t *given = NULL;
    int status = flat_parse(session, text, &given);
    if (status != PSI_OK) return status;
    const json_t *paper = json_object_get(given, "paper");
    *how = psi_cluster_defaults();
    if (paper && !json_is_null(paper)) {
        const char *task = json_string_value(paper);
        status = psi_cluster_paper(session->ctx, task ? task : "", how);
    }
    const char *name;
    json_t *value;
    json_object_foreach(given, name, value)
    {
        if (status != PSI_OK) break;
        if (strcmp(name, "paper") == 0) continue;
        size_t i = 0;
        while (i < N_OPTIONS && strcmp(OPTIONS[i].name, name) != 0) i++;
        status = i == N_OPTIONS ? flat_fail(session, PSI_EUSAGE, "cluster has no option '%s'", name)
                                : set_option(session, &OPTIONS[i], value, how);
    }
    json_decref(given);
    return status;
}

int flat_cluster_options(flat_session *session, char **json)
{
    const psi_cluster_options how = psi_cluster_defaults();
    json_t *object = json_object();
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const option *o = &OPTIONS[i];
        const char *field = (const char *)&how + o->offset;
        json_t *value = NULL;
        switch (o->kind) {
        case FLAG: value = json_boolean(*(const bool *)(const void *)field); break;
        case SIZE:
            value = json_integer((json_int_t) * (const uint64_t *)(const void *)field);
            break;
        case REAL: value = json_real(*(const double *)(const void *)field); break;
        case CHOICE: value = json_string(o->words[*(const int *)(const void *)field]); break;
        }
        json_object_set_new(object, o->name, value);
    }
    json_object_set_new(object, "paper", json_null());
    return flat_json(session, object, json);
}

int flat_cluster(flat_session *session, const flat_data *data, const char *options,
                 const char *folder, int mode, const char *data_path)
{
    psi_cluster_options how;
    psi_run *run = NULL;
    psi_clustering *found = NULL;
    int status = read_options(session, options, &how);
    if (status != PSI_OK) return status;
    status =
        (int)(mode == FLAT_RESUME ? psi_run_resume(session->ctx, folder, &run)
                                  : psi_run_new(session->ctx, folder, mode == FLAT_REPLACE, &run));
    if (status != PSI_OK) return status;
    if (psi_run_finished(run)) {
        psi_run_suspend(run);
        return PSI_OK;
    }
    how.run = run;
    how.watch = flat_watch;
    how.user = session;
    status = (int)psi_cluster(session->ctx, flat_data_of(data), &how, &found);
    if (status == PSI_OK) {
        status = (int)psi_run_commit(run, data_path, flat_data_of(data), &how, found);
    } else if (status == PSI_ECANCELLED || status == PSI_EIO || status == PSI_ENOMEM) {
        psi_run_suspend(run); // the reason may pass
    } else {
        psi_run_discard(run);
    }
    psi_clustering_free(session->ctx, found);
    return status;
}
