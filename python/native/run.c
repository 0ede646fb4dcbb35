// A finished run: labels, latent model, network, predictions, the report.
#include "flat.h"

#include <stdlib.h>
#include <string.h>

struct flat_run {
    psi_run *run;
    psi_predictor *predictor; // made when it is first asked
};

const psi_run *flat_run_of(const flat_run *run)
{
    return run->run;
}

int flat_run_load(flat_session *session, const char *folder, flat_run **out)
{
    flat_run *run = calloc(1, sizeof *run);
    *out = NULL;
    if (!run) return flat_fail(session, PSI_ENOMEM, "no memory for a run");
    const psi_status status = psi_run_load(session->ctx, folder, &run->run);
    if (status != PSI_OK) {
        flat_run_free(session, run);
        return (int)status;
    }
    *out = run;
    return PSI_OK;
}

void flat_run_free(flat_session *session, flat_run *run)
{
    if (!run) return;
    psi_predictor_free(session->ctx, run->predictor);
    psi_run_free(session->ctx, run->run);
    free(run);
}

size_t flat_run_labels(const flat_run *run, const int32_t **labels)
{
    *labels = run->run->labels;
    return run->run->n_observations;
}

void flat_run_model(const flat_run *run, flat_model *out)
{
    const psi_mdp *m = run->run->model;
    *out = (flat_model){m->n_states, m->n_actions, (size_t)m->offsets[m->n_states * m->n_actions],
                        m->offsets,  m->next,      m->probability,
                        m->reward,   m->terminal};
}

static psi_status predict(flat_session *session, flat_run *run, const psi_observations *asked,
                          double min_confidence, int32_t *labels, float *confidence)
{
    psi_status status = PSI_OK;
    if (!run->predictor) {
        status = psi_predictor_new(session->ctx, run->run, &run->predictor);
    }
    if (status != PSI_OK) return status;
    return psi_predict(session->ctx, run->predictor, asked, min_confidence, labels, confidence);
}

int flat_run_predict_data(flat_session *session, flat_run *run, const flat_data *data,
                          double min_confidence, int32_t *labels, float *confidence)
{
    psi_observations *seen = NULL;
    const psi_trajectories *asked = flat_data_of(data);
    psi_status status = psi_run_observe(session->ctx, run->run, asked, &seen);
    if (status == PSI_OK) {
        status = predict(session, run, seen, min_confidence, labels, confidence);
    }
    psi_observations_free(session->ctx, seen);
    if (status != PSI_OK || !run->run->has_terminal) return (int)status;
    psi_mark_terminals(asked, labels);
    for (size_t e = 0; confidence && e < asked->n_episodes; e++) { // where one ends is known
        if (asked->terminated[e]) confidence[asked->episode_offsets[e + 1] + e] = 1.0F;
    }
    return PSI_OK;
}

int flat_run_predict(flat_session *session, flat_run *run, const flat_columns *rows,
                     double min_confidence, int32_t *labels, float *confidence)
{
    psi_shape shape = {.rank = rows->rank};
    memcpy(shape.dim, rows->dim, sizeof shape.dim);
    psi_observations *asked = NULL, *seen = NULL;
    const size_t frames = rows->n_episodes > 0 ? run->run->options.stack : 1;
    const uint64_t one[] = {0, rows->n_observations > 0 ? rows->n_observations - 1 : 0};
    psi_status status = psi_observations_over(session->ctx, (psi_dtype)rows->dtype, &shape,
                                              rows->n_observations, rows->observations, &asked);
    if (status == PSI_OK && frames > 1) {
        status = psi_observations_stack(session->ctx, asked, frames, 1, one, &seen);
    }
    if (status == PSI_OK) {
        status = predict(session, run, seen ? seen : asked, min_confidence, labels, confidence);
    }
    psi_observations_free(session->ctx, seen);
    psi_observations_free(session->ctx, asked);
    return (int)status;
}

// ---- the network --------------------------------------------------------------------------------

static int network_of(flat_session *session, const flat_run *run, const psi_net **out)
{
    *out = run->run->representation;
    if (*out) return PSI_OK;
    return flat_fail(session, PSI_EMISSING, "this run used a table: there is no network");
}

static json_t *floats(const float *values, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(array, flat_real((double)values[i]));
    return array;
}

static json_t *sizes(const size_t *values, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer((json_int_t)values[i]));
    return array;
}

int flat_run_network(flat_session *session, const flat_run *run, char **json)
{
    const psi_net *net;
    int status = network_of(session, run, &net);
    *json = NULL;
    if (status != PSI_OK) return status;
    const psi_net_spec *spec = psi_net_spec_of(net);
    const size_t parts = spec->input.dim[0];
    json_t *tensors = json_array();
    for (size_t i = 0; i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        status = (int)psi_net_tensor_info(session->ctx, net, i, &info);
        if (status != PSI_OK) {
            json_decref(tensors);
            return status;
        }
        json_array_append_new(tensors, json_pack("{s:s, s:o}", "name", info.name, "shape",
                                                 sizes(info.shape.dim, info.shape.rank)));
    }
    return flat_json(session,
                     json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:o}", "kind",
                               psi_net_kind_name(spec->kind), "input",
                               sizes(spec->input.dim, spec->input.rank), "dtype",
                               psi_dtype_name(spec->input_dtype), "mean",
                               spec->mean ? floats(spec->mean, parts) : json_null(), "scale",
                               spec->scale ? floats(spec->scale, parts) : json_null(), "hidden",
                               sizes(spec->hidden, spec->n_hidden), "n_features",
                               (json_int_t)psi_net_n_features(net), "n_outputs",
                               (json_int_t)psi_net_n_outputs(net), "tensors", tensors),
                     json);
}

int flat_run_tensor(flat_session *session, const flat_run *run, size_t index, float *out)
{
    const psi_net *net;
    const int status = network_of(session, run, &net);
    return status == PSI_OK ? (int)psi_net_tensor_get(session->ctx, net, index, out) : status;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    return n > m && strcmp(text + n - m, ending) == 0;
}

int flat_run_export(flat_session *session, const flat_run *run, const char *path)
{
    const psi_net *net = NULL;
    const bool onnx = ends_with(path, ".onnx"), tensors = ends_with(path, ".safetensors");
    if (onnx || tensors) {
        const int status = network_of(session, run, &net);
        if (status != PSI_OK) return status;
        return (int)(onnx ? psi_net_save_onnx(session->ctx, net, path)
                          : psi_net_save(session->ctx, net, path));
    }
    psi_model *model = NULL;
    psi_status status = psi_model_from_mdp(session->ctx, run->run->model, &model);
    if (status == PSI_OK) status = psi_model_write(session->ctx, model, path);
    psi_model_free(session->ctx, model);
    return (int)status;
}

int flat_report(flat_session *session, const flat_run *run, const flat_data *data, const char *page,
                const char *no_data, double gamma, char **json)
{
    psi_report_options how = psi_report_defaults();
    psi_report_result made;
    *json = NULL;
    how.no_data = no_data;
    how.replace = true;
    if (gamma > 0.0) how.gamma = gamma;
    const psi_status status = psi_report_write(session->ctx, run->run,
                                               data ? flat_data_of(data) : NULL, page, &how, &made);
    if (status != PSI_OK) return (int)status;
    return flat_json(session,
                     json_pack("{s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "finished",
                               made.finished, "trusted", made.trusted, "pictures", made.pictures,
                               "latent_states", (json_int_t)made.latent_states, "refinements",
                               (json_int_t)made.refinements, "figures", (json_int_t)made.figures,
                               "bytes", (json_int_t)made.bytes, "sequence_error",
                               flat_real(made.error), "zero_baseline", flat_real(made.zero_error),
                               "best_possible", flat_real(made.best_error)),
                     json);
}
