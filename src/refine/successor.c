#include "refine/successor.h"

#include "base/blas.h"
#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/threads.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 4096 };

// γ · min_{i≠j} ‖F_i − F_j‖₂: two states whose actions lead to latent states i and j, all else
// equal, are this far apart at least.
static double smallest_gap(const psi_lsfm *lsfm)
{
    double smallest = HUGE_VAL;
    const size_t k = lsfm->n_latent;
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < i; j++) {
            double square = 0.0;
            for (size_t w = 0; w < k && square < smallest; w++) {
                const double d = lsfm->f[i * k + w] - lsfm->f[j * k + w];
                square += d * d;
            }
            smallest = fmin(smallest, square);
        }
    }
    return lsfm->gamma * sqrt(smallest);
}

psi_status refine_successor_new(psi_ctx *ctx, const cluster_problem *problem,
                                const learn_approximator *approximator, const refinement *of,
                                double gamma, successor_features *out)
{
    psi_status status = PSI_OK;
    const size_t actions = problem->data->n_actions, k = of->n_latent;
    psi_counts *counts = NULL;
    psi_lsfm *lsfm = NULL;
    *out = (successor_features){.problem = problem,
                                .approximator = approximator,
                                .of = of,
                                .n_actions = actions,
                                .n_latent = k};
    const psi_paths paths = problem_paths(problem, of->labels, k);
    TRY(base_blas_ready(ctx));
    TRY(psi_counts_new(ctx, &paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, &out->model));
    TRY(psi_lsfm_new(ctx, out->model, gamma, &lsfm));
    out->gap = k > 1 ? smallest_gap(lsfm) : 1.0;
    TRY(base_alloc(ctx, k * k, sizeof *out->gamma_f, &out->gamma_f));
    for (size_t i = 0; i < k * k; i++) out->gamma_f[i] = (float)(gamma * lsfm->f[i]);
    TRY(base_alloc(ctx, BLOCK, sizeof *out->rows, &out->rows));
    TRY(base_alloc(ctx, BLOCK, actions * k * sizeof *out->p, &out->p));
done:
    psi_lsfm_free(ctx, lsfm);
    psi_counts_free(ctx, counts);
    if (status != PSI_OK) refine_successor_free(ctx, out);
    return status;
}

void refine_successor_free(psi_ctx *ctx, successor_features *psi)
{
    psi_mdp_free(ctx, psi->model);
    base_free(ctx, psi->gamma_f);
    base_free(ctx, psi->rows);
    base_free(ctx, psi->p);
    *psi = (successor_features){0};
}

// points = [reward, p · γF] for the states of one block, each thread its slice.
typedef struct filling {
    const successor_features *psi;
    const uint64_t *states;
    size_t count;
    float *to;
} filling;

static void fill_slice(void *argument, int thread, int threads)
{
    const filling *job = argument;
    const successor_features *psi = job->psi;
    const size_t actions = psi->n_actions, k = psi->n_latent;
    size_t begin, end;
    base_slice(job->count, thread, threads, &begin, &end);
    if (begin == end) return;
    float *to = job->to + begin * actions * (k + 1);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)((end - begin) * actions), (int)k,
                (int)k, 1.0f, psi->p + begin * actions * k, (int)k, psi->gamma_f, (int)k, 0.0f,
                to + 1, (int)(k + 1));
    for (size_t i = begin; i < end; i++) {
        for (size_t a = 0; a < actions; a++) {
            job->to[(i * actions + a) * (k + 1)] = psi->of->rewards[job->states[i] * actions + a];
        }
    }
}

psi_status refine_successor_fill(void *user, psi_ctx *ctx, const uint64_t *states, size_t n,
                                 float *out)
{
    const successor_features *psi = user;
    const size_t actions = psi->n_actions, k = psi->n_latent;
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) psi->rows[i] = psi->problem->states[states[begin + i]];
        const psi_status status = psi->approximator->predict(
            psi->approximator->self, ctx, psi->of->next, psi->rows, count, psi->p);
        if (status != PSI_OK) return status;
        filling job = {psi, states + begin, count, out + begin * actions * (k + 1)};
        base_team_run(base_ctx_team(ctx), fill_slice, &job);
    }
    return PSI_OK;
}

psi_status refine_successor_error(psi_ctx *ctx, successor_features *psi, double epsilon,
                                  const char *phase, double *mean, double *perfect)
{
    psi_status status = PSI_OK;
    enum { LOOKED_AT = 8192 };
    const cluster_problem *problem = psi->problem;
    const size_t actions = psi->n_actions, k = psi->n_latent;
    const size_t n = problem->data->n_transitions;
    size_t held = 0, looked_at = 0, within = 0;
    double sum = 0.0;
    double *difference = NULL;
    *mean = *perfect = 0.0;
    TRY(base_alloc(ctx, k, sizeof *difference, &difference));
    for (size_t t = 0; t < n; t++) held += problem->held_out[t];
    const size_t judged = held ? held : n, stride = judged / LOOKED_AT + 1;
    base_progress progress = base_progress_start(ctx, phase, n);
    for (size_t t = 0, seen = 0; t < n; t++) {
        if (held && !problem->held_out[t]) continue;
        const int32_t label = psi->of->labels[problem->row[t]];
        const size_t a = (size_t)problem->data->actions[t];
        if (seen++ % stride != 0 || label < 0) continue;
        const size_t row = (size_t)label * actions + a;
        if (!psi_mdp_seen(psi->model, (size_t)label, a)) continue;
        TRY(psi->approximator->predict(psi->approximator->self, ctx, psi->of->next,
                                       &problem->row[t], 1, psi->p));
        for (size_t j = 0; j < k; j++) difference[j] = (double)psi->p[a * k + j];
        for (uint64_t i = psi->model->offsets[row]; i < psi->model->offsets[row + 1]; i++) {
            difference[psi->model->next[i]] -= psi->model->probability[i];
        }
        double square = 0.0;
        for (size_t w = 0; w < k; w++) {
            double component = 0.0;
            for (size_t j = 0; j < k; j++)
                component += difference[j] * (double)psi->gamma_f[j * k + w];
            square += component * component;
        }
        sum += sqrt(square);
        within += sqrt(square) <= epsilon / 2.0;
        looked_at++;
        TRY(base_progress_at(&progress, t + 1));
    }
    base_progress_end(&progress, n);
    if (looked_at > 0) {
        *mean = sum / (double)looked_at;
        *perfect = (double)within / (double)looked_at;
    }
done:
    base_free(ctx, difference);
    return status;
}

psi_status refine_matrix_fill(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, float *out)
{
    (void)ctx;
    const refine_matrix *matrix = user;
    for (size_t i = 0; i < n; i++) {
        memcpy(out + i * matrix->width, matrix->values + rows[i] * matrix->width,
               matrix->width * sizeof *out);
    }
    return PSI_OK;
}

psi_status refine_compare(psi_ctx *ctx, size_t n_rows, const int32_t *a, size_t n_a,
                          const int32_t *b, size_t n_b, double *agreement, int32_t *parent)
{
    psi_status status = PSI_OK;
    size_t *common = NULL; // (n_a, n_b)
    TRY(base_alloc_zero(ctx, n_a * n_b, sizeof *common, &common));
    for (size_t i = 0; i < n_rows; i++) {
        if (a[i] >= 0 && b[i] >= 0) common[(size_t)a[i] * n_b + (size_t)b[i]]++;
    }
    TRY(base_sum_sizes(ctx, common, n_a * n_b));
    TRY(psi_agreement_of_counts(ctx, common, n_a, n_b, agreement));
    for (size_t k = 0; k < n_b; k++) {
        size_t most = 0;
        parent[k] = -1;
        for (size_t j = 0; j < n_a; j++) {
            if (common[j * n_b + k] > most) {
                most = common[j * n_b + k];
                parent[k] = (int32_t)j;
            }
        }
    }
done:
    base_free(ctx, common);
    return status;
}

// Some of the points, seen as points of their own.
typedef struct members {
    const psi_cover_points *all;
    uint64_t *point; // which of them
    uint64_t *block; // (BLOCK) scratch
} members;

static psi_status members_fill(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, float *out)
{
    const members *of = user;
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) of->block[i] = of->point[rows[begin + i]];
        const psi_status status = of->all->fill(of->all->user, ctx, of->block, count,
                                                out + begin * of->all->groups * of->all->width);
        if (status != PSI_OK) return status;
    }
    return PSI_OK;
}

psi_status refine_split(psi_ctx *ctx, const psi_cover_points *points,
                        const psi_cover_options *options, const cluster_problem *problem,
                        const int32_t *labels, size_t n_labels, int32_t *of_state, size_t *n_latent)
{
    psi_status status = PSI_OK;
    members inside = {.all = points};
    psi_cover_result covered = {0};
    *n_latent = problem->has_terminal;
    TRY(base_alloc(ctx, points->n, sizeof *inside.point, &inside.point));
    TRY(base_alloc(ctx, BLOCK, sizeof *inside.block, &inside.block));
    for (size_t i = 0; i < points->n; i++) of_state[i] = -1;
    size_t done = 0; // points of clusters that were gone through
    base_progress progress = base_progress_start(ctx, options->phase, points->n);
    for (size_t k = problem->has_terminal; k < n_labels; k++) {
        size_t n = 0;
        for (size_t i = 0; i < points->n; i++) {
            if (labels[problem->states[i]] == (int32_t)k) inside.point[n++] = i;
        }
        if (n == 0) continue;
        psi_cover_points of = *points;
        of.n = n;
        of.fill = members_fill;
        of.user = &inside;
        psi_cover_options how = *options;
        how.filter = options->filter * (double)points->n / (double)n;
        how.phase = NULL; // each is but a part
        how.max_clusters = options->max_clusters - base_min(*n_latent, options->max_clusters);
        psi_cover_free(ctx, &covered);
        TRY(psi_cover(ctx, &of, &how, &covered));
        for (size_t i = 0; i < n; i++) {
            if (covered.labels[i] < 0) continue;
            of_state[inside.point[i]] = covered.labels[i] + (int32_t)*n_latent;
        }
        *n_latent += covered.n_clusters;
        TRY(base_progress_at(&progress, done += n));
    }
    base_progress_end(&progress, points->n);
done:
    psi_cover_free(ctx, &covered);
    base_free(ctx, inside.block);
    base_free(ctx, inside.point);
    return status;
}

psi_status refine_step_add(psi_ctx *ctx, refinement *result, const psi_cluster_step *step)
{
    const psi_status status =
        base_resize(ctx, result->n_steps + 1, sizeof *result->steps, &result->steps);
    if (status == PSI_OK) result->steps[result->n_steps++] = *step;
    return status;
}
