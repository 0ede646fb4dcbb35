#include "run/stages.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/vector.h"
#include "learn/samples.h"
#include "problem/observe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096, MOST_LATENT = 1 << 20 };

static psi_status stage_path(psi_ctx *ctx, const char *folder, const char *format, size_t number,
                             char **out)
{
    char name[48];
    snprintf(name, sizeof name, format, number);
    return base_join(ctx, folder, name, out);
}

// ---- out --------------------------------------------------------------------------------------

// Sparse, as psi_mdp holds it: a refinement may have hundreds of latent states.
static psi_status save_model(psi_ctx *ctx, const cluster_problem *problem, const int32_t *labels,
                             size_t n_latent, const char *path)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    const psi_paths paths = problem_paths(problem, labels, n_latent);
    TRY(psi_counts_together(ctx, &paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, &model));
    const size_t rows = model->n_states * model->n_actions, n = model->offsets[rows];
    const psi_array arrays[] = {
        {"offsets", PSI_INT64, {1, {rows + 1}}, model->offsets},
        {"next", PSI_INT32, {1, {n}}, model->next},
        {"probability", PSI_FLOAT64, {1, {n}}, model->probability},
        {"reward", PSI_FLOAT64, {2, {model->n_states, model->n_actions}}, model->reward}};
    if (base_rank(ctx) == 0)
        TRY(psi_arrays_save(ctx, path, arrays, sizeof arrays / sizeof arrays[0]));
done:
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    return status;
}

// The labels of a refinement, from its file; of several processes each gets those of its rows.
static psi_status load_labels(psi_ctx *ctx, const char *path, const cluster_problem *problem,
                              size_t n_latent, int32_t **out)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)base_ranks(ctx), n = problem->n_rows;
    size_t *rows = NULL; // (ranks)
    void *labels = NULL;
    const char *next = NULL;
    psi_shape shape;
    TRY(base_alloc(ctx, n, sizeof **out, out));
    TRY(base_alloc(ctx, ranks, sizeof *rows, &rows));
    TRY(base_gather(ctx, &n, sizeof n, rows));
    if (base_rank(ctx) == 0) {
        TRY(psi_array_load(ctx, path, NULL, PSI_INT32, &shape, &labels));
        bool sound = shape.rank == 1 && shape.dim[0] == problem->whole.n_rows;
        for (size_t i = 0; sound && i < problem->whole.n_rows; i++) {
            const int32_t label = ((const int32_t *)labels)[i];
            sound = label >= -1 && (label < 0 || (size_t)label < n_latent);
        }
        if (!sound) {
            TRY(FAIL(ctx, PSI_EFORMAT, "%s does not hold the labels of a refinement", path));
        }
        next = labels;
        memcpy(*out, next, n * sizeof **out);
    }
    for (size_t r = 1; r < ranks; r++) {
        const size_t bytes = rows[r] * sizeof **out;
        if (next) next += rows[r - 1] * sizeof **out;
        TRY(base_hand_over(ctx, next ? (void *)next : *out, bytes, 0, (int)r));
    }
done:
    psi_array_free(ctx, labels);
    base_free(ctx, rows);
    return status;
}

static psi_status save_stage(psi_ctx *ctx, const char *to, const cluster_problem *problem,
                             const learn_approximator *approximator, size_t n_latent, size_t number,
                             uint64_t seed)
{
    psi_status status = PSI_OK;
    char *clusters = NULL, *heads = NULL, *latent = NULL;
    int32_t *labels = NULL;
    learn_fit *fit = NULL;
    uint8_t there = 0;
    if (to) {
        TRY(stage_path(ctx, to, "clusters-%02zu.npy", number, &clusters));
        TRY(stage_path(ctx, to, "heads-%02zu.safetensors", number, &heads));
        TRY(stage_path(ctx, to, "latent-%02zu.npz", number, &latent));
        there = access(heads, F_OK) == 0 && access(latent, F_OK) == 0;
    }
    TRY(base_any(ctx, &there, 1));
    if (there) goto done;
    TRY(load_labels(ctx, clusters, problem, n_latent, &labels));
    TRY(learn_fit_states(ctx, problem, approximator, labels, n_latent, seed, NULL, &fit));
    if (to) TRY(learn_fit_save(ctx, fit, heads));
    TRY(save_model(ctx, problem, labels, n_latent, latent));
done:
    learn_fit_free(ctx, fit);
    base_free(ctx, labels);
    base_free(ctx, latent);
    base_free(ctx, heads);
    base_free(ctx, clusters);
    return status;
}

psi_status run_stages_save(psi_ctx *ctx, psi_run_folder *to, const cluster_problem *problem,
                           const learn_approximator *approximator, const psi_cluster_step *steps,
                           size_t n_steps, uint64_t seed)
{
    psi_status status = PSI_OK;
    base_progress progress = base_progress_start(ctx, "heads of the refinements", n_steps);
    for (size_t i = 0; i < n_steps; i++) {
        TRY(base_progress_at(&progress, i));
        TRY(save_stage(ctx, to ? to->result : NULL, problem, approximator, steps[i].clusters, i + 1,
                       seed + i + 1));
    }
    base_progress_end(&progress, n_steps);
done:
    return status;
}

// ---- in ---------------------------------------------------------------------------------------

psi_status psi_run_model(psi_ctx *ctx, const psi_run *run, size_t refinement, psi_mdp **out)
{
    psi_status status = PSI_OK;
    static const char *const names[] = {"offsets", "next", "probability", "reward"};
    static const psi_dtype types[] = {PSI_INT64, PSI_INT32, PSI_FLOAT64, PSI_FLOAT64};
    void *values[4] = {NULL};
    psi_shape shapes[4];
    uint64_t *row = NULL;
    uint8_t *terminal = NULL;
    char *path = NULL;
    *out = NULL;
    if (FREED(ctx, run)) return PSI_EUSAGE;
    if (!run->folder) return FAIL(ctx, PSI_EMISSING, "the run was not kept");
    TRY(stage_path(ctx, run->folder, "latent-%02zu.npz", refinement, &path));
    for (size_t i = 0; i < 4; i++) {
        TRY(psi_array_load(ctx, path, names[i], types[i], &shapes[i], &values[i]));
    }
    const size_t k = shapes[3].rank == 2 ? shapes[3].dim[0] : 0, n = psi_shape_size(&shapes[1]);
    const int64_t *offsets = values[0];
    bool sound = k > 0 && k <= MOST_LATENT && shapes[3].dim[1] == run->n_actions &&
                 shapes[0].rank == 1 && shapes[0].dim[0] == k * run->n_actions + 1 &&
                 shapes[1].rank == 1 && shapes[2].rank == 1 && shapes[2].dim[0] == n &&
                 offsets[0] == 0 && (uint64_t)offsets[k * run->n_actions] == n;
    for (size_t i = 0; sound && i < k * run->n_actions; i++) {
        sound = offsets[i] <= offsets[i + 1] && offsets[i + 1] <= (int64_t)n;
    }
    if (!sound) {
        status = FAIL(ctx, PSI_EFORMAT, "%s does not hold a latent model", path);
        goto done;
    }
    TRY(base_alloc(ctx, n, sizeof *row, &row));
    TRY(base_alloc_zero(ctx, k, sizeof *terminal, &terminal));
    for (size_t i = 0; i < k * run->n_actions; i++) {
        for (int64_t at = offsets[i]; at < offsets[i + 1]; at++) row[at] = i;
    }
    terminal[0] = run->has_terminal;
    TRY(psi_mdp_from_entries(ctx, k, run->n_actions, n, row, values[1], values[2], values[3],
                             terminal, out));
done:
    base_free(ctx, terminal);
    base_free(ctx, row);
    for (size_t i = 0; i < 4; i++) psi_array_free(ctx, values[i]);
    base_free(ctx, path);
    return status;
}

// The trunk and the heads of all refinements.
typedef struct stages {
    psi_net *trunk;
    psi_work *work;
    size_t n, d, widest;
    psi_net **head;   // (n)
    psi_work **works; // (n)
    float *features, *outputs;
} stages;

static void stages_free(psi_ctx *ctx, stages *all)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->works) psi_work_free(ctx, all->works[i]);
        if (all->head) psi_net_free(ctx, all->head[i]);
    }
    base_free(ctx, all->outputs);
    base_free(ctx, all->features);
    base_free(ctx, all->works);
    base_free(ctx, all->head);
    psi_work_free(ctx, all->work);
    psi_net_free(ctx, all->trunk);
}

static psi_status stages_load(psi_ctx *ctx, const char *folder, size_t n, stages *all)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    const psi_work_options how = {.size = sizeof how, .max_batch = 512, .predict_only = true};
    all->n = n;
    TRY(base_alloc_zero(ctx, n, sizeof(psi_net *), &all->head));
    TRY(base_alloc_zero(ctx, n, sizeof(psi_work *), &all->works));
    TRY(base_join(ctx, folder, "trunk.safetensors", &path));
    TRY(psi_net_load(ctx, path, &all->trunk));
    TRY(psi_work_new(ctx, all->trunk, &how, &all->work));
    all->d = psi_net_n_features(all->trunk);
    for (size_t i = 0; i < n; i++) {
        base_free(ctx, path);
        path = NULL;
        TRY(stage_path(ctx, folder, "heads-%02zu.safetensors", i + 1, &path));
        TRY(psi_net_load(ctx, path, &all->head[i]));
        const psi_net_spec *spec = psi_net_spec_of(all->head[i]);
        if (spec->kind != PSI_NET_MLP || spec->n_hidden != 0 || spec->n_actions != 1 ||
            spec->input_dtype != PSI_FLOAT32 || psi_shape_size(&spec->input) != all->d) {
            status = FAIL(ctx, PSI_EDATA, "%s does not hold heads for the run's trunk", path);
            goto done;
        }
        TRY(psi_work_new(ctx, all->head[i], &how, &all->works[i]));
        all->widest = base_max(all->widest, spec->n_classes);
    }
    TRY(base_alloc(ctx, BLOCK, all->d * sizeof(float), &all->features));
    TRY(base_alloc(ctx, BLOCK, all->widest * sizeof(float), &all->outputs));
done:
    base_free(ctx, path);
    return status;
}

psi_status psi_run_assign(psi_ctx *ctx, const psi_run *run, const psi_observations *observations,
                          int32_t *labels)
{
    if (FREED(ctx, run, observations)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const size_t n = psi_observations_count(observations);
    stages all = {0};
    problem_inputs inputs = {0};
    uint64_t *rows = NULL;
    if (!run->has_heads) {
        return FAIL(ctx, PSI_EMISSING, "%s has no heads of its refinements",
                    run->folder ? run->folder : "the run");
    }
    TRY(stages_load(ctx, run->folder, run->n_steps, &all));
    const psi_net_spec *spec = psi_net_spec_of(all.trunk);
    TRY(problem_inputs_new(ctx, observations, spec->input.rank == 1, &inputs));
    TRY(problem_inputs_match(ctx, &inputs, spec));
    TRY(base_alloc(ctx, BLOCK, sizeof *rows, &rows));
    const psi_batch_source source = {&inputs, problem_inputs_gather};
    base_progress progress = base_progress_start(ctx, "assigning latent states", n);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_progress_at(&progress, begin));
        TRY(psi_net_predict_all(ctx, all.trunk, all.work, &source, rows, count, NULL, all.features,
                                NULL));
        for (size_t stage = 0; stage < all.n; stage++) {
            const size_t k = psi_net_n_outputs(all.head[stage]);
            const size_t first = run->has_terminal && k > 1 ? 1 : 0;
            TRY(psi_net_predict(ctx, all.head[stage], all.works[stage], all.features, count, NULL,
                                all.outputs));
            for (size_t i = 0; i < count; i++) {
                labels[stage * n + begin + i] =
                    (int32_t)base_largest(all.outputs + i * k, first, k);
            }
        }
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, rows);
    problem_inputs_free(ctx, &inputs);
    stages_free(ctx, &all);
    return status;
}
