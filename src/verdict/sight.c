// Does what is seen tell more than the latent state? Cells and clumps go by what varies most; a
// number that varies no more than all others may be the one that matters.
#include "verdict/sight.h"

#include "base/checked.h"
#include "base/context.h"
#include "verdict/foretell.h"

#include <math.h>
#include <string.h>

enum { MOST_ASKED = 1 << 18, LONG_PART = 4096 };   // transitions that are enough; of a part
static const size_t MOST_LEARNT = (size_t)1 << 24; // numbers: strata times numbers of a vector
enum { AT_ONCE = 16 };                             // floats of a cache line

typedef struct looking {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const problem_looks *looks;
    foretold what;
    float *known;         // (at_once, transitions)
    size_t at_once;       // numbers of a vector that are looked at together
    double *mean, *slope; // (strata, width) of numbers, and of numbers times what follows
    double *visits, *sum; // (strata) visits, and the sum of what follows
} looking;

static const float *vector_at(const looking *run, size_t t)
{
    return run->looks->vectors + run->problem->row[t] * run->looks->width;
}

// What is seen along the direction that what follows has been correlated with, at earlier visits of
// the stratum.
static psi_status learn_directions(looking *run)
{
    psi_status status = PSI_OK;
    const foretold *what = &run->what;
    const size_t width = run->looks->width;
    TRY(base_alloc_zero(run->ctx, what->strata * width, sizeof *run->mean, &run->mean));
    TRY(base_alloc_zero(run->ctx, what->strata * width, sizeof *run->slope, &run->slope));
    TRY(base_alloc_zero(run->ctx, what->strata, sizeof *run->visits, &run->visits));
    TRY(base_alloc_zero(run->ctx, what->strata, sizeof *run->sum, &run->sum));
    for (size_t i = 0; i < what->n; i++) {
        const size_t s = what->stratum[i];
        const float *x = vector_at(run, what->at[i]);
        double *mean = run->mean + s * width, *slope = run->slope + s * width;
        const double n = run->visits[s];
        const double y = what->kind[i] == 0 ? (double)what->value[i] : 0.0;
        const double away = n > 0.0 ? y - run->sum[s] / n : 0.0;
        double along = 0.0, square = 0.0;
        for (size_t w = 0; w < width; w++) {
            const double d = (double)x[w] - mean[w];
            along += slope[w] * d;
            square += slope[w] * slope[w];
            slope[w] += away * d;
            mean[w] += d / (n + 1.0);
        }
        run->known[what->at[i]] = square > 0.0 ? (float)(along / sqrt(square)) : NAN;
        run->visits[s]++;
        run->sum[s] += y;
    }
done:
    base_free(run->ctx, run->mean);
    base_free(run->ctx, run->slope);
    base_free(run->ctx, run->visits);
    base_free(run->ctx, run->sum);
    return status;
}

// Numbers w … w + count − 1 of what is seen. One by one, each would fetch all vectors anew.
static void look_at(looking *run, size_t w, size_t count)
{
    const size_t n = run->problem->data->n_transitions;
    for (size_t i = 0; i < run->what.n; i++) {
        const size_t t = run->what.at[i];
        const float *x = vector_at(run, t) + w;
        for (size_t c = 0; c < count; c++) run->known[c * n + t] = x[c];
    }
}

static void square(const looking *run, float *known)
{
    for (size_t i = 0; i < run->what.n; i++) {
        const size_t t = run->what.at[i];
        known[t] *= known[t];
    }
}

// Whether what is known foretells what follows of more than a share of the transitions.
static bool foretells(looking *run, const float *known, bool strata, double suspect, double share)
{
    double moved;
    const double nats = strata ? verdict_foretell_in_a_stratum(&run->what, known, &moved)
                               : verdict_foretell_by_number(&run->what, known, &moved);
    return nats > suspect && moved > share * (double)run->problem->data->n_transitions;
}

// Whether anything does: a number, its square, or a direction.
static psi_status ask(looking *run, double allowed, double share, bool *told)
{
    psi_status status = PSI_OK;
    const size_t n = run->problem->data->n_transitions, width = run->looks->width;
    const double suspect = log(2.0 * (4.0 * (double)width + 1.0) / allowed);
    if (run->what.n == 0 || width == 0) return PSI_OK;
    for (size_t w = 0; w < width && !*told; w++) {
        float *known = run->known + w % run->at_once * n;
        TRY(base_cancelled(run->ctx));
        if (w % run->at_once == 0) look_at(run, w, base_min(run->at_once, width - w));
        for (size_t turn = 0; turn < 2 && !*told; turn++) {
            if (turn == 1) square(run, known);
            *told = foretells(run, known, false, suspect, share) ||
                    foretells(run, known, true, suspect, share);
        }
    }
    if (*told || run->what.strata > MOST_LEARNT / width) goto done;
    TRY(learn_directions(run));
    *told = foretells(run, run->known, false, suspect, share);
done:
    return status;
}

psi_status verdict_ask_sight(psi_ctx *ctx, const cluster_problem *problem,
                             const problem_looks *looks, const int32_t *of, size_t n_of,
                             const int32_t *labels, double allowed, double share, bool *told)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t n = data->n_transitions, stride = 1 + n / MOST_ASKED;
    const size_t at_once = base_max(1, base_min(AT_ONCE, MOST_LEARNT / base_max(n, 1)));
    looking run = {.ctx = ctx, .problem = problem, .looks = looks, .at_once = at_once};
    uint8_t *asked = NULL;
    uint32_t *stratum = NULL;
    int32_t *next = NULL;
    *told = false;
    TRY(base_alloc(ctx, n, sizeof *asked, &asked));
    TRY(base_alloc(ctx, n, sizeof *stratum, &stratum));
    TRY(base_alloc(ctx, n, sizeof *next, &next));
    TRY(base_alloc(ctx, n, at_once * sizeof *run.known, &run.known));
    for (size_t t = 0; t < n; t++) {
        const int32_t from = of[problem->row[t]];
        next[t] = labels[problem->row[t] + 1];
        asked[t] = from >= 0 && next[t] >= 0 && t / LONG_PART % stride == 0;
        stratum[t] = (uint32_t)(asked[t] ? from : 0) * (uint32_t)data->n_actions +
                     (uint32_t)data->actions[t];
    }
    for (size_t rewards = 0; rewards < 2 && !*told; rewards++) {
        TRY(verdict_foretold_new(ctx, n, asked, stratum, n_of * data->n_actions,
                                 rewards ? NULL : next, data->rewards, &run.what));
        TRY(ask(&run, allowed, share, told));
        verdict_foretold_free(ctx, &run.what);
    }
done:
    verdict_foretold_free(ctx, &run.what);
    base_free(ctx, run.known);
    base_free(ctx, next);
    base_free(ctx, stratum);
    base_free(ctx, asked);
    return status;
}
