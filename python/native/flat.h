// The flat layer under the Python package: psifold's public headers, and nothing else, as functions
// that ctypes can call. Handles are opaque, options and summaries are JSON, arrays are pointers
// into memory that somebody keeps alive: the caller's for what goes in, a handle's for what comes
// out. psifold/_native.py has the same declarations in Python.
#ifndef PSIFOLD_FLAT_H
#define PSIFOLD_FLAT_H

#include <psifold/psifold.h>

#include <jansson.h>
#include <pthread.h>

#define FLAT_API PSI_API

// ---- a session: one context, how far it is, what it has to say ----------------------------------

enum { FLAT_TEXT = 512, FLAT_MESSAGES = 64 };

typedef struct flat_message {
    int32_t level; // psi_log_level
    char text[FLAT_TEXT];
} flat_message;

typedef struct flat_progress {
    char phase[64];
    uint64_t done, total;
    double seconds, seconds_left;
    uint64_t refinements; // so far
} flat_progress;

// Python polls a session from the thread that asked, while another one works: no callback ever
// enters Python from C.
typedef struct flat_session {
    psi_ctx *ctx;
    char error[FLAT_TEXT]; // of this layer; "": the context's
    char told[FLAT_TEXT];  // … once it was asked for
    pthread_mutex_t lock;  // of what follows
    flat_progress progress;
    flat_message messages[FLAT_MESSAGES];
    size_t n_messages;
    psi_cluster_step *steps;
    size_t n_labels; // the latest refinement's, so that an interrupted run keeps them
    int32_t *labels;
} flat_session;

FLAT_API int flat_session_new(int threads, size_t max_memory, flat_session **out);
FLAT_API void flat_session_free(flat_session *session);
FLAT_API const char *flat_error(flat_session *session); // of the call that failed
FLAT_API void flat_cancel(flat_session *session);       // from any thread
FLAT_API void flat_progress_get(flat_session *session, flat_progress *out);
FLAT_API int flat_message_take(flat_session *session, flat_message *out); // 0: there is none
FLAT_API size_t flat_steps(flat_session *session, size_t room, psi_cluster_step *out);
FLAT_API size_t flat_labels(flat_session *session, size_t room, int32_t *out);
FLAT_API void flat_text_free(char *text);
// The sizes of the structs that cross the border: progress, message, step, columns, model.
FLAT_API void flat_sizes(size_t out[5]);

// Says what is wrong, and is the status.
int flat_fail(flat_session *session, psi_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The object as text for the caller, who gives it back with flat_text_free; takes the object.
int flat_json(flat_session *session, json_t *object, char **out);
// Parses an object that Python has made.
int flat_parse(flat_session *session, const char *text, json_t **out);
json_t *flat_real(double value); // null unless finite
psi_status flat_watch(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                      const int32_t *labels);

// ---- trajectories -------------------------------------------------------------------------------

// The columns of psi_trajectories, in either direction.
typedef struct flat_columns {
    size_t n_episodes, n_transitions, n_observations, n_actions;
    int32_t dtype;
    size_t rank, dim[PSI_MAX_RANK];
    const void *observations; // NULL, coming out: they are in a file
    const int32_t *actions;
    const double *rewards;
    const uint64_t *episode_offsets;
    const uint8_t *terminated, *truncated, *final_missing;
    const int32_t *latent_states; // may be NULL
    const char *observation_key;  // may be NULL
} flat_columns;

typedef struct flat_data flat_data;

// Over the caller's memory, which must outlive it.
FLAT_API int flat_data_over(flat_session *session, const flat_columns *columns, flat_data **out);
FLAT_API int flat_data_read(flat_session *session, const char *const *paths, size_t n,
                            const char *key, flat_data **out);
// task: {"task": …, "preset": …, "options": {…}}
FLAT_API int flat_data_generate(flat_session *session, const char *task, uint64_t episodes,
                                uint64_t seed, flat_data **out);
FLAT_API void flat_data_free(flat_session *session, flat_data *data);
FLAT_API void flat_data_columns(const flat_data *data, flat_columns *out);
FLAT_API int flat_data_gather(flat_session *session, const flat_data *data, const uint64_t *rows,
                              size_t n, void *out);
FLAT_API int flat_data_summary(flat_session *session, const flat_data *data, char **json);
FLAT_API int flat_data_save(flat_session *session, const flat_data *data, const char *path,
                            const char *name, int replace);
const psi_trajectories *flat_data_of(const flat_data *data);

// ---- clustering, and what a run is good for -----------------------------------------------------

enum { FLAT_NEW, FLAT_REPLACE, FLAT_RESUME };
FLAT_API int flat_cluster_options(flat_session *session, char **json); // the defaults
FLAT_API int flat_cluster(flat_session *session, const flat_data *data, const char *options,
                          uint64_t seed, const char *folder, int mode,
                          const char *const *data_paths, size_t n_data_paths);

typedef struct flat_model {
    size_t n_states, n_actions, n_entries;
    const uint64_t *offsets; // and so on as in psi_mdp
    const int32_t *next;
    const double *probability, *reward;
    const uint8_t *terminal;
} flat_model;

typedef struct flat_run flat_run;
FLAT_API int flat_run_load(flat_session *session, const char *folder, flat_run **out);
FLAT_API void flat_run_free(flat_session *session, flat_run *run);
FLAT_API size_t flat_run_labels(const flat_run *run, const int32_t **labels);
FLAT_API void flat_run_model(const flat_run *run, flat_model *out);
// observations: count rows of what columns says, as the run sees them; or, if n_episodes is 1, one
// episode of single ones, which are stacked if the run does so. confidence may be NULL
FLAT_API int flat_run_predict(flat_session *session, flat_run *run, const flat_columns *rows,
                              double min_confidence, int32_t *labels, float *confidence);
// … of trajectories: the ends of terminated episodes are known, as `psifold assign` has them
FLAT_API int flat_run_predict_data(flat_session *session, flat_run *run, const flat_data *data,
                                   double min_confidence, int32_t *labels, float *confidence);
FLAT_API int flat_run_network(flat_session *session, const flat_run *run, char **json);
FLAT_API int flat_run_tensor(flat_session *session, const flat_run *run, size_t index, float *out);
FLAT_API int flat_run_export(flat_session *session, const flat_run *run, const char *path);
// the data that it was made from, read from where it says; PSI_EMISSING if they are gone
FLAT_API int flat_run_data(flat_session *session, const flat_run *run, flat_data **out);
// data may be NULL: no_data then says why
FLAT_API int flat_report(flat_session *session, const flat_run *run, const flat_data *data,
                         const char *page, const char *no_data, double gamma, char **json);
const psi_run *flat_run_of(const flat_run *run);

// ---- finite models ------------------------------------------------------------------------------

// options: {"gamma": …, "tolerance": …, "unseen": "excluded" | "optimistic", "optimistic_value": …}
FLAT_API int flat_plan(flat_session *session, const flat_model *model, const char *options,
                       double *value, double *q, int32_t *policy, char **json);

typedef struct flat_quotient flat_quotient;
FLAT_API int flat_quotient_find(flat_session *session, const char *path, const char *options,
                                flat_quotient **out);
FLAT_API void flat_quotient_free(flat_session *session, flat_quotient *quotient);
FLAT_API size_t flat_quotient_labels(const flat_quotient *quotient, const int32_t **labels);
FLAT_API void flat_quotient_model(const flat_quotient *quotient, flat_model *out);
FLAT_API int flat_quotient_summary(flat_session *session, const flat_quotient *quotient,
                                   char **json);

#endif
