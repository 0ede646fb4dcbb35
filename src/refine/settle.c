#include "refine/settle.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "learn/samples.h"
#include "refine/join.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOP = 8, BLOCK = 4096 }; // classes that are kept of what the classifier says of a row

// A label that trajectories are less sure of says nothing to those around it.
static const double CLEAR = 0.9;

// Labels have settled when no more of them move than may be misplaced in an exact partition.
static const double SETTLED = 1e-4;

typedef struct settling {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const learn_approximator *approximator;
    const settle_options *options;
    int32_t *labels; // (n_rows)
    float *confidence;
    size_t n_latent;
    int32_t *top;      // (n_rows, TOP) the classes that the classifier finds likeliest …
    float *likelihood; // (n_rows, TOP) … and log p(class | observation) − log p(class)
    float absent;      // … of all others
    settle_summary *summary;
    char phase[48]; // the name of what is being done
} settling;

static const char *part(settling *run, const char *what)
{
    snprintf(run->phase, sizeof run->phase, "labels, turn %zu: %s", run->summary->turns + 1, what);
    return run->phase;
}

// ---- what observations look like ----------------------------------------------------------------

// The likeliest classes of a row. mistaken: the chance that the classifier is wrong however sure it
// is, spread over all classes.
static void keep_top(const float *p, const double *log_prior, size_t k, double mistaken,
                     int32_t *top, float *score)
{
    size_t kept = 0;
    for (size_t c = 0; c < k; c++) {
        const double sure = (1.0 - mistaken) * (double)p[c] + mistaken / (double)k;
        const float value = (float)(log(sure) - log_prior[c]);
        size_t at = kept < TOP ? kept++ : TOP;
        if (at == TOP) {
            if (value <= score[TOP - 1]) continue;
            at = TOP - 1;
        }
        for (; at > 0 && score[at - 1] < value; at--) {
            score[at] = score[at - 1];
            top[at] = top[at - 1];
        }
        score[at] = value;
        top[at] = (int32_t)c;
    }
    for (; kept < TOP; kept++) top[kept] = -1;
}

// The share of held-out states (of all, if none are) that the classifier calls by another name than
// their label: as often it is wrong however sure it is. One more is counted than was seen.
static psi_status measure_mistakes(settling *run, const learn_fit *classifier, float *p,
                                   double *share)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t k = run->n_latent, transitions = problem->data->n_transitions;
    uint64_t rows[BLOCK];
    size_t counted[] = {1, 1}; // wrong, asked
    for (size_t t = 0; t < transitions;) {
        size_t n = 0;
        for (; t < transitions && n < BLOCK; t++) {
            if (run->labels[problem->row[t]] < 0) continue;
            if (problem->held_out[t] || problem->n_held_out == 0) rows[n++] = problem->row[t];
        }
        TRY(run->approximator->predict(run->approximator->self, run->ctx, classifier, rows, n, p));
        for (size_t i = 0; i < n; i++) {
            size_t best = 0;
            for (size_t c = 1; c < k; c++) best = p[i * k + c] > p[i * k + best] ? c : best;
            counted[0] += run->labels[rows[i]] != (int32_t)best;
        }
        counted[1] += n;
    }
    TRY(base_sum_sizes(run->ctx, counted, 2));
    const size_t once_each = (size_t)base_ranks(run->ctx) - 1; // each has begun with one
    *share = (double)(counted[0] - once_each) / (double)(counted[1] - once_each);
done:
    return status;
}

static psi_status predict(settling *run, const learn_fit *classifier, const double *log_prior,
                          double mistaken, float *p)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t k = run->n_latent;
    base_progress progress =
        base_progress_start(run->ctx, part(run, "predicting"), problem->n_states);
    for (size_t begin = 0; begin < problem->n_states; begin += BLOCK) {
        const size_t n = base_min(BLOCK, problem->n_states - begin);
        const uint64_t *rows = problem->states + begin;
        TRY(run->approximator->predict(run->approximator->self, run->ctx, classifier, rows, n, p));
        for (size_t i = 0; i < n; i++) {
            keep_top(p + i * k, log_prior, k, mistaken, run->top + rows[i] * TOP,
                     run->likelihood + rows[i] * TOP);
        }
        TRY(base_progress_at(&progress, begin + n));
    }
    base_progress_end(&progress, problem->n_states);
done:
    return status;
}

// Fits a classifier of the labels and asks it about every state.
static psi_status look(settling *run)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t k = run->n_latent;
    learn_fit *classifier = NULL;
    float *p = NULL;
    double *log_prior = NULL, mistaken;
    size_t *labelled = NULL; // (k)
    TRY(base_alloc(run->ctx, BLOCK, k * sizeof *p, &p));
    TRY(base_alloc(run->ctx, k, sizeof *log_prior, &log_prior));
    TRY(base_alloc_zero(run->ctx, k, sizeof *labelled, &labelled));
    TRY(learn_fit_states(run->ctx, problem, run->approximator, run->labels, k,
                         run->options->seed + run->summary->turns, part(run, "learning"),
                         &classifier));
    TRY(measure_mistakes(run, classifier, p, &mistaken));
    for (size_t i = 0; i < problem->n_states; i++) {
        const int32_t label = run->labels[problem->states[i]];
        if (label >= 0) labelled[label]++;
    }
    TRY(base_sum_sizes(run->ctx, labelled, k));
    for (size_t c = 0; c < k; c++) {
        log_prior[c] = log(((double)labelled[c] + 1.0) / (double)(problem->whole.n_states + k));
    }
    run->summary->mistaken = problem->n_held_out > 0 ? mistaken : 1.0;
    run->absent = (float)log(mistaken); // p = mistaken/K of a class whose share is 1/K
    TRY(predict(run, classifier, log_prior, mistaken, p));
done:
    learn_fit_free(run->ctx, classifier);
    base_free(run->ctx, labelled);
    base_free(run->ctx, log_prior);
    base_free(run->ctx, p);
    return status;
}

// ---- what trajectories say ----------------------------------------------------------------------

// foretold: of what looks and what came before tell alone.
static psi_status smooth(settling *run, double keep, bool foretold, int32_t *out)
{
    const psi_paths paths = problem_paths(run->problem, run->labels, run->n_latent);
    const psi_emissions emissions = {.per_row = TOP,
                                     .index = run->top,
                                     .log_likelihood = run->likelihood,
                                     .absent = run->absent,
                                     .every_row = true};
    psi_smooth_options how = psi_smooth_defaults();
    how.emissions = &emissions;
    how.keep = keep;
    how.learn_start = true;
    how.together = true;
    if (run->options->rewards->n > 1) {
        how.reward_class = run->options->rewards->of;
        how.n_reward_classes = run->options->rewards->n;
    }
    how.phase = part(run, "smoothing");
    how.foretell = foretold;
    if (foretold) how.passes = 1; // with the model of the labels as they are
    psi_smooth_summary summary;
    return psi_smooth(run->ctx, &paths, &how, out, foretold ? NULL : run->confidence, &summary);
}

// Trajectories tell an observation by what followed it, too, and what follows a latent state is
// then asked of labels that were chosen by it: a coin that is tossed anywhere makes two latent
// states, one for each side, which always do what they do. Only looks and what came before tell a
// label without that.
static psi_status measure_untold(settling *run, double *share)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    size_t counted[] = {0, 0}; // asked, untold
    int32_t *told = NULL;
    TRY(base_alloc(run->ctx, problem->n_rows, sizeof *told, &told));
    TRY(smooth(run, 0.0, true, told));
    for (size_t t = 0; t < problem->data->n_transitions; t++) {
        if (!problem->held_out[t] && problem->n_held_out > 0) continue;
        counted[0]++;
        counted[1] += told[problem->row[t]] != run->labels[problem->row[t]];
    }
    TRY(base_sum_sizes(run->ctx, counted, 2));
    *share = counted[0] > 0 ? (double)counted[1] / (double)counted[0] : 0.0;
done:
    base_free(run->ctx, told);
    return status;
}

// Whether a classifier has labels to learn from.
static psi_status is_anything_clear(psi_ctx *ctx, const cluster_problem *problem,
                                    const int32_t *labels, uint8_t *any)
{
    *any = 0;
    for (size_t t = 0; t < problem->data->n_transitions && !*any; t++) {
        *any = !problem->held_out[t] && labels[problem->row[t]] >= 0;
    }
    return base_any(ctx, any, 1);
}

psi_status refine_settle(psi_ctx *ctx, const cluster_problem *problem,
                         const learn_approximator *approximator, const settle_options *options,
                         int32_t *labels, float *confidence, size_t *n_latent,
                         settle_summary *summary)
{
    psi_status status = PSI_OK;
    settling run = {.ctx = ctx,
                    .problem = problem,
                    .approximator = approximator,
                    .options = options,
                    .labels = labels,
                    .confidence = confidence,
                    .n_latent = *n_latent,
                    .summary = summary};
    int32_t *first = NULL, *now = NULL;
    const size_t n = problem->n_rows;
    *summary = (settle_summary){0};
    TRY(base_alloc(ctx, n, sizeof *first, &first));
    TRY(base_alloc(ctx, n, sizeof *now, &now));
    TRY(base_alloc(ctx, n, TOP * sizeof *run.top, &run.top));
    TRY(base_alloc_zero(ctx, n, TOP * sizeof *run.likelihood, &run.likelihood));
    memcpy(first, labels, n * sizeof *first);
    for (size_t i = 0; i < n * TOP; i++) run.top[i] = -1;
    while (summary->turns < options->max_turns && !summary->settled) {
        size_t moved = 0, joined;
        uint8_t any;
        TRY(base_cancelled(ctx));
        TRY(look(&run));
        TRY(smooth(&run, CLEAR, false, now));
        TRY(is_anything_clear(ctx, problem, now, &any));
        if (!any) break; // there would be nothing to learn from
        for (size_t i = 0; i < n; i++) moved += now[i] != labels[i];
        TRY(base_sum_sizes(ctx, &moved, 1));
        memcpy(labels, now, n * sizeof *labels);
        TRY(refine_join(ctx, problem, options->max_latent_states, labels, &run.n_latent, &joined));
        summary->joined += joined;
        summary->turns++;
        summary->settled =
            joined == 0 && (double)moved <= SETTLED * (double)problem->whole.n_states;
    }
    TRY(look(&run));
    TRY(smooth(&run, 0.0, false, now));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        labels[row] = now[row];
        summary->changed += labels[row] != first[row];
    }
    TRY(base_sum_sizes(ctx, &summary->changed, 1));
    TRY(measure_untold(&run, &summary->untold));
done:
    *n_latent = run.n_latent; // of these labels, also where the time is up
    base_free(ctx, run.likelihood);
    base_free(ctx, run.top);
    base_free(ctx, now);
    base_free(ctx, first);
    return status;
}
