// One pass of forward–backward smoothing over all episodes. Messages are scaled to sum to 1 at
// every step, so episodes may be as long as they like; those whose messages would not fit in memory
// are computed twice, from checkpoints.
#include <psifold/mdp.h>

#include "base/checked.h"
#include "base/context.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/threads.h"
#include "mdp/emissions.h"
#include "mdp/transitions.h"

#include <math.h>
#include <stdatomic.h>

typedef struct workspace {
    double *alpha;      // (stretch, K) forward messages of the stretch at hand, row t mod stretch
    double *emission;   // (stretch, K) likewise
    double *checkpoint; // (stretches, K) the first forward message of every stretch
    double *beta, *x;   // (K)
} workspace;

typedef struct smoothing {
    psi_ctx *ctx;
    const psi_paths *paths;
    const psi_smooth_options *options;
    const double *reward_likelihood;
    mdp_transitions transitions;
    size_t stretch; // rows whose messages are held at once
    workspace *workspaces;
    int32_t *labels;
    float *posterior;
    double *marginals;
    double *log_likelihood; // (E)
    atomic_size_t taken;
    atomic_bool cancelled;
    base_progress progress; // told by the caller's thread alone
} smoothing;

// Scales the message to sum to 1; returns what the sum was.
static double normalise(double *message, size_t n)
{
    double sum = 0.0;
    for (size_t k = 0; k < n; k++) sum += message[k];
    const double factor = 1.0 / sum;
    for (size_t k = 0; k < n; k++) message[k] *= factor;
    return sum;
}

// α_t ∝ e_t ∘ T_aᵀ α_{t−1}, α_0 ∝ e_0 ∘ start, with the rewards' share of e_t, or without (NULL).
// Returns log p(row t | rows before it).
static double forward_step(const smoothing *work, workspace *w, const double *reward_likelihood,
                           size_t e, size_t t)
{
    const psi_paths *paths = work->paths;
    const size_t n = paths->n_latent;
    double *alpha = w->alpha + t % work->stretch * n;
    double *emission = w->emission + t % work->stretch * n;
    const double scale = mdp_emission(paths, work->options, reward_likelihood, e, t, emission);
    if (t == 0) {
        const double *start = work->options->start;
        for (size_t k = 0; k < n; k++)
            alpha[k] = emission[k] * (start ? start[k] : 1.0 / (double)n);
    } else {
        const int32_t action = paths->actions[paths->episode_offsets[e] + t - 1];
        mdp_forward(&work->transitions, (size_t)action, w->alpha + (t - 1) % work->stretch * n,
                    alpha);
        for (size_t k = 0; k < n; k++) alpha[k] *= emission[k];
    }
    return log(normalise(alpha, n)) + scale;
}

// P(k | all rows) ∝ α_t ∘ β_t: the best label, kept if it is sure enough.
static void decide(const smoothing *work, const double *alpha, const double *beta, double *p,
                   uint64_t row)
{
    const size_t n = work->paths->n_latent;
    for (size_t k = 0; k < n; k++) p[k] = alpha[k] * beta[k];
    normalise(p, n);
    size_t best = 0;
    for (size_t k = 1; k < n; k++) {
        if (p[k] > p[best]) best = k;
    }
    if (work->posterior) work->posterior[row] = (float)p[best];
    if (work->labels) work->labels[row] = p[best] >= work->options->keep ? (int32_t)best : -1;
    for (size_t k = 0; work->marginals && k < n; k++) work->marginals[row * n + k] = p[k];
}

// Forward messages of the stretch that starts at row t again, from its checkpoint.
static void recompute(const smoothing *work, workspace *w, size_t e, size_t t)
{
    const size_t n = work->paths->n_latent;
    const double *checkpoint = w->checkpoint + t / work->stretch * n;
    mdp_emission(work->paths, work->options, work->reward_likelihood, e, t, w->emission);
    for (size_t k = 0; k < n; k++) w->alpha[k] = checkpoint[k];
    for (size_t i = t + 1; i < t + work->stretch; i++) {
        forward_step(work, w, work->reward_likelihood, e, i);
    }
}

// The label of every row from its look and the rows before it: α_t without the reward that
// followed.
static void foretell_episode(const smoothing *work, workspace *w, size_t e)
{
    const psi_paths *paths = work->paths;
    const size_t n = paths->n_latent;
    const uint64_t begin = paths->episode_offsets[e], end = paths->episode_offsets[e + 1];
    work->log_likelihood[e] = 0.0;
    for (size_t k = 0; k < n; k++) w->beta[k] = 1.0;
    for (size_t t = 0; t <= end - begin; t++) {
        forward_step(work, w, NULL, e, t);
        decide(work, w->alpha + t % work->stretch * n, w->beta, w->x, begin + e + t);
        work->log_likelihood[e] += forward_step(work, w, work->reward_likelihood, e, t);
    }
}

static void smooth_episode(const smoothing *work, workspace *w, size_t e)
{
    const psi_paths *paths = work->paths;
    const size_t n = paths->n_latent, stretch = work->stretch;
    const uint64_t begin = paths->episode_offsets[e];
    const size_t length = paths->episode_offsets[e + 1] - begin;
    double log_likelihood = 0.0;
    for (size_t t = 0; t <= length; t++) {
        log_likelihood += forward_step(work, w, work->reward_likelihood, e, t);
        if (t % stretch != 0) continue;
        for (size_t k = 0; k < n; k++) w->checkpoint[t / stretch * n + k] = w->alpha[k];
    }
    work->log_likelihood[e] = log_likelihood;

    for (size_t k = 0; k < n; k++) w->beta[k] = 1.0;
    for (size_t t = length;; t--) {
        if (t != length && t % stretch == stretch - 1) recompute(work, w, e, t - (stretch - 1));
        const double *emission = w->emission + t % stretch * n;
        decide(work, w->alpha + t % stretch * n, w->beta, w->x, begin + e + t);
        if (t == 0) break;
        // β_{t−1} ∝ T_a (e_t ∘ β_t)
        for (size_t k = 0; k < n; k++) w->x[k] = emission[k] * w->beta[k];
        normalise(w->x, n);
        mdp_backward(&work->transitions, (size_t)paths->actions[begin + t - 1], w->x, w->beta);
    }
}

static void smooth_episodes(void *argument, int thread, int threads)
{
    (void)threads;
    smoothing *work = argument;
    for (;;) {
        const size_t e = atomic_fetch_add(&work->taken, 1);
        if (e >= work->paths->n_episodes) return;
        const psi_status status =
            thread == 0 ? base_progress_at(&work->progress, e) : base_cancelled(work->ctx);
        if (status != PSI_OK) {
            atomic_store(&work->cancelled, true);
            return;
        }
        if (work->options->foretell) {
            foretell_episode(work, &work->workspaces[thread], e);
        } else {
            smooth_episode(work, &work->workspaces[thread], e);
        }
    }
}

// All rows of the longest episode if they fit, else about the root of its length.
static size_t choose_stretch(const smoothing *work, size_t rows)
{
    size_t bytes;
    const size_t limit =
        work->options->memory ? work->options->memory : psi_smooth_defaults().memory;
    if (base_mul(rows, 2 * sizeof(double), &bytes) &&
        base_mul(bytes, work->paths->n_latent, &bytes) && bytes <= limit) {
        return base_max(rows, 2);
    }
    return base_max((size_t)ceil(sqrt((double)rows)), 2);
}

static psi_status make_workspaces(psi_ctx *ctx, smoothing *work, size_t threads)
{
    psi_status status = PSI_OK;
    const size_t n = work->paths->n_latent;
    size_t rows = 1, size;
    for (size_t e = 0; e < work->paths->n_episodes; e++) {
        const uint64_t *offsets = work->paths->episode_offsets + e;
        rows = base_max(rows, offsets[1] - offsets[0] + 1);
    }
    work->stretch = choose_stretch(work, rows);
    const size_t stretches = (rows + work->stretch - 1) / work->stretch;
    if (!base_mul(base_max(work->stretch, stretches), n, &size))
        return FAIL(ctx, PSI_ELIMIT, "episodes of %zu rows are too long", rows);
    TRY(base_alloc_zero(ctx, threads, sizeof *work->workspaces, &work->workspaces));
    for (size_t t = 0; t < threads; t++) {
        workspace *w = &work->workspaces[t];
        TRY(base_alloc(ctx, work->stretch * n, sizeof *w->alpha, &w->alpha));
        TRY(base_alloc(ctx, work->stretch * n, sizeof *w->emission, &w->emission));
        TRY(base_alloc(ctx, stretches * n, sizeof *w->checkpoint, &w->checkpoint));
        TRY(base_alloc(ctx, n, sizeof *w->beta, &w->beta));
        TRY(base_alloc(ctx, n, sizeof *w->x, &w->x));
    }
done:
    return status;
}

static void free_workspaces(psi_ctx *ctx, smoothing *work, size_t threads)
{
    for (size_t t = 0; work->workspaces && t < threads; t++) {
        workspace *w = &work->workspaces[t];
        base_free(ctx, w->x);
        base_free(ctx, w->beta);
        base_free(ctx, w->checkpoint);
        base_free(ctx, w->emission);
        base_free(ctx, w->alpha);
    }
    base_free(ctx, work->workspaces);
}

psi_status psi_smooth_pass(psi_ctx *ctx, const psi_paths *paths, const psi_mdp *latent,
                           const double *reward_likelihood, const psi_smooth_options *options,
                           int32_t *labels, float *posterior, double *marginals,
                           double *log_likelihood)
{
    if (FREED(ctx, latent)) return PSI_EUSAGE;
    if (options && !base_options_fit(ctx, options, sizeof *options, "psi_smooth_defaults"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const psi_smooth_options chosen = options ? *options : psi_smooth_defaults();
    base_team *team = base_ctx_team(ctx);
    const size_t threads = (size_t)base_team_size(team);
    smoothing work = {.ctx = ctx,
                      .paths = paths,
                      .options = &chosen,
                      .reward_likelihood = reward_likelihood,
                      .labels = labels,
                      .posterior = posterior,
                      .marginals = marginals};
    TRY(psi_paths_check(ctx, paths));
    TRY(mdp_check_smoothing(ctx, paths, &chosen));
    if (latent->n_states != paths->n_latent || latent->n_actions != paths->n_actions) {
        TRY(FAIL(ctx, PSI_ESHAPE,
                 "the model has %zu latent states and %zu actions, the paths have %zu and %zu",
                 latent->n_states, latent->n_actions, paths->n_latent, paths->n_actions));
    }
    if (reward_likelihood && !chosen.reward_class)
        TRY(FAIL(ctx, PSI_EUSAGE, "reward likelihoods are of no use without reward classes"));
    TRY(mdp_transitions_new(ctx, latent, chosen.floor, &work.transitions));
    TRY(make_workspaces(ctx, &work, threads));
    TRY(base_alloc_zero(ctx, paths->n_episodes, sizeof *work.log_likelihood, &work.log_likelihood));
    work.progress = base_progress_start(ctx, chosen.phase, paths->n_episodes);
    base_team_run(team, smooth_episodes, &work);
    if (atomic_load(&work.cancelled)) TRY(base_cancelled(ctx));
    base_progress_end(&work.progress, paths->n_episodes);
    if (log_likelihood) {
        *log_likelihood = 0.0;
        for (size_t e = 0; e < paths->n_episodes; e++) *log_likelihood += work.log_likelihood[e];
    }
done:
    base_free(ctx, work.log_likelihood);
    free_workspaces(ctx, &work, threads);
    mdp_transitions_free(ctx, &work.transitions);
    return status;
}
