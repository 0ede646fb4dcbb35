// The paper's loop. The function at the end of this file is Algorithm 1; the steps above it carry
// the paper's names.
#include "refine/refine.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"
#include "learn/samples.h"
#include "refine/successor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 4096, PATIENCE = 4 };
static const double SAME = 0.985; // agreement at which two clusterings count as equal
static const double WIDEST = 0.5; // radius of a cluster, if it is chosen here

typedef struct refining {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const learn_approximator *approximator;
    const refine_options *options;
    refinement *result;
    char phase[48]; // the name of what is being done
} refining;

// The name of a part of the refinement under way.
static const char *part(refining *run, const char *what)
{
    snprintf(run->phase, sizeof run->phase, "refinement %zu: %s", run->result->n_steps + 1, what);
    return run->phase;
}

// ---- line 4 and 10: empirical risk minimisation -----------------------------------------------

static psi_status fit(refining *run, const int32_t *target, size_t n_classes,
                      const learn_fit *start, const int32_t *parent, learn_fit **out)
{
    return learn_fit_transitions(run->ctx, run->problem, run->approximator, target, n_classes,
                                 start, parent, run->options->seed + run->result->fits++,
                                 part(run, "learning"), out);
}

// f_r(s,a) = w_rᵀ f_r(s,a) for all states, in units of the smallest difference of two rewards.
static psi_status predict_rewards(refining *run)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t actions = problem->data->n_actions, classes = problem->rewards.n;
    learn_fit *reward = NULL;
    float *p = NULL;
    TRY(fit(run, problem->rewards.of, classes, NULL, NULL, &reward));
    TRY(base_alloc(run->ctx, BLOCK, actions * classes * sizeof *p, &p));
    TRY(base_alloc(run->ctx, problem->n_states, actions * sizeof(float), &run->result->rewards));
    base_progress progress =
        base_progress_start(run->ctx, part(run, "predicting"), problem->n_states);
    for (size_t begin = 0; begin < problem->n_states; begin += BLOCK) {
        const size_t n = base_min(BLOCK, problem->n_states - begin);
        TRY(run->approximator->predict(run->approximator->self, run->ctx, reward,
                                       problem->states + begin, n, p));
        for (size_t i = 0; i < n * actions; i++) {
            double expected = 0.0;
            for (size_t c = 0; c < classes; c++) {
                expected += problem->rewards.value[c] * (double)p[i * classes + c];
            }
            run->result->rewards[begin * actions + i] =
                (float)(expected / problem->rewards.spacing);
        }
        TRY(base_progress_at(&progress, begin + n));
    }
    base_progress_end(&progress, problem->n_states);
done:
    base_free(run->ctx, p);
    learn_fit_free(run->ctx, reward);
    return status;
}

// ---- lines 6 and 12: constructing the next clustering -----------------------------------------

static void spread_labels(const refining *run, const int32_t *of_state, int32_t *labels)
{
    const cluster_problem *problem = run->problem;
    memset(labels, 0, problem->n_rows * sizeof *labels); // terminal
    for (size_t i = 0; i < problem->n_states; i++) labels[problem->states[i]] = of_state[i];
    for (size_t e = 0; e < problem->data->n_episodes; e++) {
        const uint64_t last = problem->data->episode_offsets[e + 1] + e;
        const bool missing = problem->data->final_missing[e] && !problem->data->terminated[e];
        if (missing) labels[last] = -1; // no observation at all
    }
}

// All points, clustered anew.
static psi_status cover(refining *run, const psi_cover_points *points, const psi_cover_options *how,
                        int32_t *of_state, size_t *n_latent)
{
    psi_status status = PSI_OK;
    const int32_t first = run->problem->has_terminal ? 1 : 0;
    psi_cover_result covered = {0};
    TRY(psi_cover(run->ctx, points, how, &covered));
    for (size_t i = 0; i < points->n; i++) {
        of_state[i] = covered.labels[i] < 0 ? -1 : covered.labels[i] + first;
    }
    *n_latent = covered.n_clusters + (size_t)first;
done:
    psi_cover_free(run->ctx, &covered);
    return status;
}

// Clusters the given points of all states anew, or, to split, those of every old cluster by itself.
static psi_status construct(refining *run, const psi_cover_points *points, double epsilon,
                            int32_t *of_state, size_t *n_latent)
{
    const refine_options *options = run->options;
    const psi_cover_options how = {.size = sizeof how,
                                   .epsilon = epsilon,
                                   .norm = options->norm,
                                   .filter = options->filter,
                                   .max_clusters = options->max_latent_states,
                                   .seed = options->seed + run->result->fits,
                                   .phase = part(run, "clustering")};
    if (!options->split || !run->result->labels) {
        return cover(run, points, &how, of_state, n_latent);
    }
    return refine_split(run->ctx, points, &how, run->problem, run->result->labels,
                        run->result->n_latent, of_state, n_latent);
}

// Puts the new labels in the place of the old ones; tells how far they agree and where every new
// cluster comes from.
static psi_status adopt(refining *run, const int32_t *of_state, size_t n_latent,
                        psi_cluster_step *step)
{
    psi_status status = PSI_OK;
    refinement *result = run->result;
    int32_t *labels = NULL;
    TRY(base_alloc(run->ctx, run->problem->n_rows, sizeof *labels, &labels));
    spread_labels(run, of_state, labels);
    size_t labelled = 0;
    for (size_t i = 0; i < run->problem->n_states; i++) labelled += of_state[i] >= 0;
    step->clusters = n_latent;
    step->looked_at = run->problem->n_states;
    step->ignored = (double)(step->looked_at - labelled) / (double)step->looked_at;
    if (result->labels) {
        TRY(refine_compare(run->ctx, run->problem->n_rows, result->labels, result->n_latent, labels,
                           n_latent, &step->agreement, result->parent));
    }
    base_free(run->ctx, result->labels);
    result->labels = labels;
    result->n_latent = n_latent;
    labels = NULL;
done:
    base_free(run->ctx, labels);
    return status;
}

// c_1(s) = c_1(s̃) ⟹ Σ_a |f_r(s,a) − f_r(s̃,a)| ≤ ε_r
static psi_status reward_refinement(refining *run)
{
    psi_status status = PSI_OK;
    const double started = base_seconds();
    const size_t actions = run->problem->data->n_actions;
    int32_t *of_state = NULL;
    size_t n_latent;
    psi_cluster_step step = {.epsilon = run->options->epsilon_reward, .gap = 1.0};
    TRY(predict_rewards(run));
    TRY(base_alloc(run->ctx, run->problem->n_states, sizeof *of_state, &of_state));
    refine_matrix matrix = {run->result->rewards, actions};
    const psi_cover_points points = {run->problem->n_states, actions, 1, refine_matrix_fill,
                                     &matrix};
    TRY(construct(run, &points, step.epsilon, of_state, &n_latent));
    TRY(adopt(run, of_state, n_latent, &step));
    if (run->options->sf_alone) { // no two states differ by them any more
        memset(run->result->rewards, 0, points.n * actions * sizeof *run->result->rewards);
    }
    step.seconds = base_seconds() - started;
    TRY(refine_step_add(run->ctx, run->result, &step));
done:
    base_free(run->ctx, of_state);
    return status;
}

// c_{i+1}(s) = c_{i+1}(s̃) ⟹ Σ_a ‖ψ(s,a) − ψ(s̃,a)‖ ≤ ε_ψ
static psi_status successor_feature_refinement(refining *run)
{
    psi_status status = PSI_OK;
    const double started = base_seconds();
    const cluster_problem *problem = run->problem;
    const refine_options *options = run->options;
    refinement *result = run->result;
    successor_features psi = {0};
    learn_fit *next = NULL;
    int32_t *of_state = NULL, *target = NULL;
    size_t n_latent;
    psi_cluster_step step = {0};

    // F from the counts of c_i, f_i from the labels of the next states
    TRY(base_alloc(run->ctx, problem->data->n_transitions, sizeof *target, &target));
    for (size_t t = 0; t < problem->data->n_transitions; t++) {
        target[t] = result->labels[problem->row[t] + 1];
    }
    TRY(fit(run, target, result->n_latent, result->next, result->parent, &next));
    learn_fit_free(run->ctx, result->next);
    result->next = next;
    TRY(refine_successor_new(run->ctx, problem, run->approximator, result, options->gamma, &psi));

    step.gap = psi.gap;
    step.epsilon = options->epsilon_sf > 0.0 ? options->epsilon_sf
                                             : fmin(options->gap_share * psi.gap, WIDEST);
    TRY(refine_successor_error(run->ctx, &psi, step.epsilon, part(run, "testing"),
                               &step.held_out_error, &step.perfect));
    TRY(base_alloc(run->ctx, problem->n_states, sizeof *of_state, &of_state));
    const psi_cover_points points = {problem->n_states, problem->data->n_actions,
                                     result->n_latent + 1, refine_successor_fill, &psi};
    status = construct(run, &points, step.epsilon, of_state, &n_latent);
    // where predictions are noisier than the gap is wide, a radius of the gap's size finds noise
    while (status == PSI_ELIMIT && options->epsilon_sf == 0.0 && step.epsilon < WIDEST) {
        step.epsilon = fmin(2.0 * step.epsilon, WIDEST);
        status = construct(run, &points, step.epsilon, of_state, &n_latent);
    }
    TRY(status);
    TRY(adopt(run, of_state, n_latent, &step));
    step.seconds = base_seconds() - started;
    TRY(refine_step_add(run->ctx, result, &step));
done:
    refine_successor_free(run->ctx, &psi);
    base_free(run->ctx, of_state);
    base_free(run->ctx, target);
    return status;
}

static psi_status tell(const refining *run)
{
    const refinement *result = run->result;
    if (!run->options->watch) return PSI_OK;
    return run->options->watch(run->options->user, &result->steps[result->n_steps - 1],
                               result->n_steps, run->problem->n_rows, result->labels);
}

// Equal clusterings: as many clusters, and nearly the same states in them. Or no progress: the most
// clusters ever seen were seen PATIENCE refinements ago.
static bool is_converged(const refinement *result)
{
    const psi_cluster_step *steps = result->steps;
    const size_t n = result->n_steps;
    if (n < 2) return false;
    const psi_cluster_step *now = &steps[n - 1], *before = now - 1;
    if (now->clusters == before->clusters && now->agreement > SAME) return true;
    size_t most_at = 0;
    for (size_t i = 0; i < n; i++) {
        if (steps[i].clusters > steps[most_at].clusters) most_at = i;
    }
    return n - 1 - most_at >= PATIENCE;
}

// Every cluster of c_0 comes from itself.
static psi_status begin(refining *run)
{
    psi_status status = PSI_OK;
    refinement *result = run->result;
    const size_t most = run->options->max_latent_states + 2;
    if (result->parent) return PSI_OK;
    TRY(base_alloc(run->ctx, most, sizeof *result->parent, &result->parent));
    for (size_t k = 0; k < most; k++) result->parent[k] = (int32_t)k;
done:
    return status;
}

psi_status refine_by_successor_features(psi_ctx *ctx, const cluster_problem *problem,
                                        const learn_approximator *approximator,
                                        const refine_options *options, refinement *result)
{
    psi_status status = PSI_OK;
    refining run = {.ctx = ctx,
                    .problem = problem,
                    .approximator = approximator,
                    .options = options,
                    .result = result};
    TRY(begin(&run));
    if (!result->labels) {
        TRY(reward_refinement(&run));
        TRY(tell(&run));
    }
    while (!result->converged && result->n_steps < options->max_refinements) {
        TRY(successor_feature_refinement(&run));
        result->converged = is_converged(result);
        TRY(tell(&run));
    }
done:
    return status;
}

void refine_free(psi_ctx *ctx, refinement *result)
{
    learn_fit_free(ctx, result->next);
    base_free(ctx, result->labels);
    base_free(ctx, result->rewards);
    base_free(ctx, result->steps);
    base_free(ctx, result->parent);
    *result = (refinement){0};
}
