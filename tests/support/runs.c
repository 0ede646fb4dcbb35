#include "support/runs.h"

#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static psi_status write_episode(void *user, const psi_episode *episode)
{
    return psi_writer_add(user, episode);
}

void test_cluster_run(psi_ctx *ctx, const char *folder, const char *name, uint64_t episodes,
                      const char *const *options, const psi_cluster_options *how)
{
    psi_task task;
    psi_writer *writer;
    psi_trajectories *data;
    psi_run_folder *to;
    psi_run *run;
    const char *data_path = test_path(folder, "data.npz");
    assert_ok(ctx, psi_task_defaults(ctx, name, NULL, &task));
    for (; options && *options; options += 2) {
        assert_ok(ctx, psi_task_set(ctx, &task, options[0], options[1]));
    }
    assert_ok(ctx, psi_task_check(ctx, &task));
    const psi_episode_spec spec = psi_collect_spec(&task);
    assert_ok(ctx, psi_writer_open(ctx, data_path, &spec, false, &writer));
    assert_ok(ctx, psi_collect(ctx, &task, episodes, 1, write_episode, writer, NULL));
    assert_ok(ctx, psi_writer_commit(writer));
    assert_ok(ctx, psi_trajectories_read(ctx, data_path, NULL, &data));
    const psi_cluster_options chosen = how ? *how : psi_cluster_defaults();
    assert_ok(ctx, psi_run_folder_open(ctx, test_path(folder, "run"), PSI_FOLDER_NEW, &to));
    assert_ok(ctx, psi_cluster_into(to, &data_path, 1, data, &chosen, &run));
    test_check_run(run->folder);
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
}

psi_status test_report(psi_ctx *ctx, const char *folder, const char *data_path, const char *page,
                       psi_report_options how, psi_report_result *result)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    psi_trajectories *data = NULL;
    char why[512];
    TRY(psi_run_load_so_far(ctx, folder, &run));
    status = psi_run_data(ctx, run, data_path, NULL, &data);
    if (status == PSI_EMISSING && !data_path) {
        snprintf(why, sizeof why, "%s", psi_error(ctx)->message);
        how.no_data = why;
        status = PSI_OK;
    }
    TRY(status);
    if (data) TRY(psi_run_attach(ctx, run, data));
    TRY(psi_report_write(ctx, run, data, page, &how, result));
done:
    psi_trajectories_free(ctx, data);
    psi_run_free(ctx, run);
    return status;
}

// ---- made-up ones -------------------------------------------------------------------------------

typedef struct made_up {
    const test_run_spec *spec;
    size_t n_observations;
    int32_t *labels; // of all observations
    unsigned char *observations;
    int32_t *actions;
    double *rewards;
} made_up;

static void paint(base_random *random, const test_run_spec *spec, size_t k, unsigned char *to)
{
    const size_t n = psi_shape_size(&spec->shape);
    for (size_t i = 0; i < n; i++) {
        const double noise = base_random_uniform(random);
        const double value = (double)(k * 31 % 97) / 97.0 + (double)(i % 7) * 0.1 + 0.2 * noise;
        switch (spec->dtype) {
        case PSI_UINT8: to[i] = (unsigned char)base_random_below(random, 256); break;
        case PSI_FLOAT32: ((float *)to)[i] = (float)value; break;
        case PSI_FLOAT64: ((double *)to)[i] = value; break;
        case PSI_INT64: ((int64_t *)to)[i] = (int64_t)k; break;
        case PSI_INT32: ((int32_t *)to)[i] = (int32_t)k; break;
        }
    }
}

static void write_data(psi_ctx *ctx, const char *path, made_up *run)
{
    const test_run_spec *spec = run->spec;
    psi_writer *writer;
    const psi_episode_spec about = {.observation_dtype = spec->dtype,
                                    .observation_shape = spec->shape,
                                    .observation_low = 0.0,
                                    .observation_high = 1e6,
                                    .n_actions = spec->n_actions};
    const size_t bytes = psi_shape_size(&spec->shape) * psi_dtype_size(spec->dtype);
    assert_ok(ctx, psi_writer_open(ctx, path, &about, true, &writer));
    base_random random = base_random_stream(5, 7, 0);
    size_t row = 0;
    for (size_t e = 0; e < spec->episodes; e++) {
        size_t k = e * spec->n_latent / spec->episodes; // so that every latent state is visited
        const size_t first = row;
        for (size_t t = 0; t <= spec->length; t++, row++) {
            run->labels[row] = (int32_t)k;
            paint(&random, spec, k, run->observations + row * bytes);
            if (t == spec->length) continue;
            const size_t at = row - e;
            run->actions[at] = (int32_t)base_random_below(&random, (uint32_t)spec->n_actions);
            run->rewards[at] = k + 1 == spec->n_latent ? 1.0 : 0.0;
            k = (k + 1 + (size_t)run->actions[at]) % spec->n_latent;
        }
        const psi_episode episode = {.length = spec->length,
                                     .observations = run->observations + first * bytes,
                                     .actions = run->actions + first - e,
                                     .rewards = run->rewards + first - e,
                                     .truncated = true};
        assert_ok(ctx, psi_writer_add(writer, &episode));
    }
    assert_ok(ctx, psi_writer_commit(writer));
}

static void write_model(psi_ctx *ctx, const char *path, const test_run_spec *spec)
{
    const size_t k = spec->n_latent, actions = spec->n_actions;
    double *w, *m;
    assert_ok(ctx, base_alloc_zero(ctx, actions * k, sizeof *w, &w));
    assert_ok(ctx, base_alloc_zero(ctx, actions * k * k, sizeof *m, &m));
    for (size_t a = 0; a < actions; a++) {
        w[a * k + k - 1] = 1.0;
        for (size_t i = 0; i < k; i++) m[(a * k + i) * k + (i + 1 + a) % k] = 1.0;
    }
    const psi_array arrays[] = {{"w", PSI_FLOAT64, {2, {actions, k}}, w},
                                {"M", PSI_FLOAT64, {3, {actions, k, k}}, m}};
    assert_ok(ctx, psi_arrays_save(ctx, path, arrays, 2));
    base_free(ctx, m);
    base_free(ctx, w);
}

static void write_certificate(psi_ctx *ctx, const char *path, const test_run_spec *spec)
{
    const psi_shape shape = {2, {spec->n_latent, spec->n_actions}};
    double *zeros;
    assert_ok(ctx, base_alloc_zero(ctx, spec->n_latent * spec->n_actions, sizeof *zeros, &zeros));
    const psi_array arrays[] = {{"visits", PSI_INT64, shape, zeros},
                                {"reward_error", PSI_FLOAT64, shape, zeros},
                                {"reward_doubt", PSI_FLOAT64, shape, zeros},
                                {"sf_error", PSI_FLOAT64, shape, zeros},
                                {"sf_doubt", PSI_FLOAT64, shape, zeros}};
    assert_ok(ctx, psi_arrays_save(ctx, path, arrays, 5));
    base_free(ctx, zeros);
}

static void write_labels(psi_ctx *ctx, const char *folder, const made_up *run)
{
    const size_t n = run->n_observations;
    const psi_array final = {"x", PSI_INT32, {1, {n}}, run->labels};
    assert_ok(ctx, psi_arrays_save(ctx, test_path(folder, "clusters.npy"), &final, 1));
    int32_t *coarse;
    assert_ok(ctx, base_alloc(ctx, n, sizeof *coarse, &coarse));
    FILE *steps = fopen(test_path(folder, "refinements.jsonl"), "w");
    assert_non_null(steps);
    for (size_t r = 1; r <= run->spec->refinements; r++) {
        const size_t clusters = 1 + (run->spec->n_latent - 1) * r / run->spec->refinements;
        char name[32];
        for (size_t i = 0; i < n; i++) {
            coarse[i] = (int32_t)((size_t)run->labels[i] * clusters / run->spec->n_latent);
        }
        const psi_array array = {"x", PSI_INT32, {1, {n}}, coarse};
        snprintf(name, sizeof name, "clusters-%02zu.npy", r);
        assert_ok(ctx, psi_arrays_save(ctx, test_path(folder, name), &array, 1));
        fprintf(steps,
                "{\"refinement\":%zu,\"clusters\":%zu,\"looked_at\":%zu,"
                "\"ignored_fraction\":0.0,\"agreement\":0.5,\"gap\":0.7,\"epsilon\":0.5,\"held_out_"
                "error\":0.1,\"perfect\":0.9,"
                "\"seconds\":0.25}\n",
                r, clusters, n);
    }
    assert_int_equal(fclose(steps), 0);
    base_free(ctx, coarse);
}

static void write_manifest(psi_ctx *ctx, const char *folder, const char *data_path,
                           const test_run_spec *spec, const psi_trajectories *data)
{
    psi_fingerprint fingerprint;
    assert_ok(ctx, psi_fingerprint_of(ctx, data, &fingerprint));
    json_t *manifest = json_pack(
        "{s:s, s:s, s:i, s:i, s:f, s:{s:s, s:s, s:I, s:I, s:I, s:I}, s:{s:s, s:f}, s:{s:I, s:b, "
        "s:s, s:b, s:b, s:b, s:b, s:f, s:f, s:f, s:f, s:n}, s:{s:f, s:f, s:i, s:i, s:i, s:f, s:f, "
        "s:i}}",
        "psifold", "0.1.0", "finished", "2026-01-01T00:00:00Z", "seed", 0, "threads", 2, "seconds",
        12.0, "data", "path", spec->data_path ? spec->data_path : data_path, "fingerprint",
        fingerprint.hex, "episodes", (json_int_t)data->n_episodes, "transitions",
        (json_int_t)data->n_transitions, "observations", (json_int_t)data->n_observations,
        "n_actions", (json_int_t)data->n_actions, "options", "approximator", "auto", "gamma", 0.5,
        "result", "latent_states", (json_int_t)spec->n_latent, "has_terminal", 0, "approximator",
        spec->approximator ? spec->approximator : "table", "converged", 1, "stable", 1,
        "matching_condition", 0, "lack_of_fit", 0, "gamma", 0.5, "epsilon_reward", 0.5,
        "epsilon_sf", 0.5, "gap", 0.7, "representation_accuracy", "certificate", "epsilon_reward",
        0.5, "epsilon_sf", 0.5, "judged", 100, "violating", 0, "unseen_pairs", 0,
        "worst_reward_error", 0.0, "worst_sf_error", 0.0, "mergeable", 0);
    assert_non_null(manifest);
    assert_ok(ctx, base_json_save(ctx, test_path(folder, "manifest.json"), manifest));
    json_decref(manifest);
}

void test_made_up_run(psi_ctx *ctx, const char *folder, const test_run_spec *spec)
{
    char run_folder[1024], data_path[1024];
    snprintf(run_folder, sizeof run_folder, "%s/run", folder);
    snprintf(data_path, sizeof data_path, "%s/data.npz", folder);
    assert_int_equal(mkdir(run_folder, 0777), 0);
    const size_t n = spec->episodes * (spec->length + 1);
    const size_t bytes = psi_shape_size(&spec->shape) * psi_dtype_size(spec->dtype);
    made_up run = {.spec = spec, .n_observations = n};
    psi_trajectories *data;
    assert_ok(ctx, base_alloc(ctx, n, sizeof *run.labels, &run.labels));
    assert_ok(ctx, base_alloc(ctx, n, bytes, &run.observations));
    assert_ok(ctx, base_alloc(ctx, n, sizeof *run.actions, &run.actions));
    assert_ok(ctx, base_alloc(ctx, n, sizeof *run.rewards, &run.rewards));
    write_data(ctx, data_path, &run);
    assert_ok(ctx, psi_trajectories_read(ctx, data_path, NULL, &data));
    write_model(ctx, test_path(run_folder, "latent.npz"), spec);
    write_certificate(ctx, test_path(run_folder, "certificate.npz"), spec);
    write_labels(ctx, run_folder, &run);
    write_manifest(ctx, run_folder, data_path, spec, data);
    psi_trajectories_free(ctx, data);
    base_free(ctx, run.rewards);
    base_free(ctx, run.actions);
    base_free(ctx, run.observations);
    base_free(ctx, run.labels);
}
