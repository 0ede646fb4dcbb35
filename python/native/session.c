// A session: one context, how far it is, and what it has to say.
#include "flat.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_log(void *user, psi_log_level level, const char *sentence)
{
    flat_session *session = user;
    pthread_mutex_lock(&session->lock);
    if (session->n_messages < FLAT_MESSAGES) { // more than that says nothing new
        flat_message *message = &session->messages[session->n_messages++];
        message->level = (int32_t)level;
        snprintf(message->text, sizeof message->text, "%s", sentence);
    }
    pthread_mutex_unlock(&session->lock);
}

static void on_progress(void *user, const psi_progress *progress)
{
    flat_session *session = user;
    pthread_mutex_lock(&session->lock);
    flat_progress *p = &session->progress;
    snprintf(p->phase, sizeof p->phase, "%s", progress->phase);
    p->done = progress->done;
    p->total = progress->total;
    p->seconds = progress->seconds;
    p->seconds_left = progress->seconds_left;
    pthread_mutex_unlock(&session->lock);
}

int flat_session_new(int threads, size_t max_memory, flat_session **out)
{
    flat_session *session = calloc(1, sizeof *session);
    *out = NULL;
    if (!session) return PSI_ENOMEM;
    pthread_mutex_init(&session->lock, NULL);
    const psi_options options = {.size = sizeof options,
                                 .log = on_log,
                                 .progress = on_progress,
                                 .user = session,
                                 .threads = threads,
                                 .max_memory = max_memory};
    const psi_status status = psi_ctx_new(&options, &session->ctx);
    if (status != PSI_OK) {
        flat_session_free(session);
        return (int)status;
    }
    *out = session;
    return PSI_OK;
}

void flat_session_free(flat_session *session)
{
    if (!session) return;
    psi_ctx_free(session->ctx);
    pthread_mutex_destroy(&session->lock);
    free(session->steps);
    free(session->labels);
    free(session);
}

int flat_fail(flat_session *session, psi_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is the line above
    vsnprintf(session->error, sizeof session->error, format, arguments);
    va_end(arguments);
    return (int)status;
}

const char *flat_error(flat_session *session)
{
    if (!session->error[0]) return psi_error(session->ctx)->message;
    memcpy(session->told, session->error, sizeof session->told); // told once: the next may be C's
    session->error[0] = '\0';
    return session->told;
}

void flat_cancel(flat_session *session)
{
    psi_cancel(session->ctx);
}

void flat_progress_get(flat_session *session, flat_progress *out)
{
    pthread_mutex_lock(&session->lock);
    *out = session->progress;
    pthread_mutex_unlock(&session->lock);
}

int flat_message_take(flat_session *session, flat_message *out)
{
    pthread_mutex_lock(&session->lock);
    const bool any = session->n_messages > 0;
    if (any) {
        *out = session->messages[0];
        memmove(session->messages, session->messages + 1,
                --session->n_messages * sizeof *session->messages);
    }
    pthread_mutex_unlock(&session->lock);
    return any;
}

// ---- what a clustering has found so far ---------------------------------------------------------

psi_status flat_watch(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                      const int32_t *labels)
{
    flat_session *session = user;
    psi_status status = PSI_ENOMEM;
    pthread_mutex_lock(&session->lock);
    const size_t count = refinement; // they are told in order
    psi_cluster_step *steps = realloc(session->steps, count * sizeof *steps);
    if (!steps) goto done;
    session->steps = steps;
    steps[count - 1] = *step;
    if (labels) {
        int32_t *copy = realloc(session->labels, n * sizeof *copy);
        if (!copy) goto done;
        memcpy(copy, labels, n * sizeof *copy);
        session->labels = copy;
        session->n_labels = n;
    }
    session->progress.refinements = count;
    status = PSI_OK;
done:
    pthread_mutex_unlock(&session->lock);
    return status;
}

size_t flat_steps(flat_session *session, size_t room, psi_cluster_step *out)
{
    pthread_mutex_lock(&session->lock);
    const size_t n = (size_t)session->progress.refinements;
    if (out && room >= n && n > 0) memcpy(out, session->steps, n * sizeof *out);
    pthread_mutex_unlock(&session->lock);
    return n;
}

size_t flat_labels(flat_session *session, size_t room, int32_t *out)
{
    pthread_mutex_lock(&session->lock);
    const size_t n = session->n_labels;
    if (out && room >= n && n > 0) memcpy(out, session->labels, n * sizeof *out);
    pthread_mutex_unlock(&session->lock);
    return n;
}

// ---- JSON ---------------------------------------------------------------------------------------

json_t *flat_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

int flat_json(flat_session *session, json_t *object, char **out)
{
    *out = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(object);
    return *out ? PSI_OK : flat_fail(session, PSI_ENOMEM, "no memory for a summary");
}

int flat_parse(flat_session *session, const char *text, json_t **out)
{
    json_error_t error;
    *out = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(*out)) return PSI_OK;
    json_decref(*out);
    *out = NULL;
    return flat_fail(session, PSI_EUSAGE, "the options are no JSON object: %s", error.text);
}

void flat_text_free(char *text)
{
    free(text);
}

void flat_sizes(size_t out[5])
{
    out[0] = sizeof(flat_progress);
    out[1] = sizeof(flat_message);
    out[2] = sizeof(psi_cluster_step);
    out[3] = sizeof(flat_columns);
    out[4] = sizeof(flat_model);
}
