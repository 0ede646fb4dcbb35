// Does what is seen tell more than the latent state? Cells and clumps go by what varies most; a
// number that varies no more than all others may be the one that matters.
#include "verdict/sight.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "verdict/foretell.h"

#include <math.h>
#include <string.h>

enum { MOST_ASKED = 1 << 18, LONG_PART = 4096 };   // transitions that are enough; of a part
static const size_t MOST_LEARNT = (size_t)1 << 24; // numbers: strata times numbers of a vector
enum { AT_ONCE = 16 };                             // floats of a cache line

// The transitions that are asked, of all processes in the order of the data.
typedef struct looking {
    psi_ctx *ctx;
    size_t n, width;
    const problem_looks *looks;
    uint64_t *row;     // (n) what is seen before each: rows of this process, if it is alone, …
    float *seen;       // (n, width) … else of all
    uint8_t *all;      // (n) 1
    uint32_t *stratum; // (n)
    int32_t *next;     // (n) the latent state that it ends in
    double *reward;    // (n)
    double least;      // transitions that have to be foretold
    foretold what;
    float *known;         // (at_once, n)
    size_t at_once;       // numbers of a vector that are looked at together
    double *mean, *slope; // (strata, width) of numbers, and of numbers times what follows
    double *visits, *sum; // (strata) visits, and the sum of what follows
} looking;

static const float *vector_at(const looking *run, size_t t)
{
    return run->seen ? run->seen + t * run->width : problem_looks_vector(run->looks, run->row[t]);
}

// What is seen along the direction that what follows has been correlated with, at earlier visits of
// the stratum.
static psi_status learn_directions(looking *run)
{
    psi_status status = PSI_OK;
    const foretold *what = &run->what;
    const size_t width = run->width;
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
    for (size_t i = 0; i < run->what.n; i++) {
        const size_t t = run->what.at[i];
        const float *x = vector_at(run, t) + w;
        for (size_t c = 0; c < count; c++) run->known[c * run->n + t] = x[c];
    }
}

static void square(const looking *run, float *known)
{
    for (size_t i = 0; i < run->what.n; i++) {
        const size_t t = run->what.at[i];
        known[t] *= known[t];
    }
}

// Whether what is known foretells what follows of so many of the transitions.
static bool foretells(looking *run, const float *known, bool strata, double suspect)
{
    double moved;
    const double nats = strata ? verdict_foretell_in_a_stratum(&run->what, known, &moved)
                               : verdict_foretell_by_number(&run->what, known, &moved);
    return nats > suspect && moved > run->least;
}

// Whether anything does: a number, its square, or a direction. Several processes ask of some of the
// numbers each.
static psi_status ask(looking *run, double allowed, uint8_t *told)
{
    psi_status status = PSI_OK;
    const size_t width = run->width, block = run->at_once;
    const size_t ranks = (size_t)base_ranks(run->ctx), rank = (size_t)base_rank(run->ctx);
    const double suspect = log(2.0 * (4.0 * (double)width + 1.0) / allowed);
    if (run->what.n == 0 || width == 0) return PSI_OK;
    for (size_t w = 0; w < width && !*told; w++) {
        float *known = run->known + w % block * run->n;
        if (w / block % ranks != rank) continue;
        TRY(base_cancelled(run->ctx));
        if (w % block == 0) look_at(run, w, base_min(block, width - w));
        for (size_t turn = 0; turn < 2 && !*told; turn++) {
            if (turn == 1) square(run, known);
            *told = foretells(run, known, false, suspect) || foretells(run, known, true, suspect);
        }
    }
    TRY(base_any(run->ctx, told, 1));
    if (*told || run->what.strata > MOST_LEARNT / width) goto done;
    TRY(learn_directions(run));
    *told = foretells(run, run->known, false, suspect);
done:
    return status;
}

static void looking_free(psi_ctx *ctx, looking *run)
{
    verdict_foretold_free(ctx, &run->what);
    base_free(ctx, run->known);
    base_free(ctx, run->reward);
    base_free(ctx, run->next);
    base_free(ctx, run->stratum);
    base_free(ctx, run->all);
    base_free(ctx, run->seen);
    base_free(ctx, run->row);
}

// Those whose latent states are known, of all or of long parts of the data.
static psi_status looking_new(psi_ctx *ctx, const cluster_problem *problem,
                              const problem_looks *looks, const int32_t *of, const int32_t *labels,
                              looking *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t width = looks->width, all = problem->whole.n_transitions;
    const size_t first = problem->whole.first_transition, stride = 1 + all / MOST_ASKED;
    const size_t ranks = (size_t)base_ranks(ctx);
    float *seen = NULL;
    uint32_t *stratum = NULL;
    int32_t *next = NULL;
    double *reward = NULL;
    size_t n = 0, room = 0, bytes;
    *out = (looking){.ctx = ctx, .looks = looks, .width = width};
    for (size_t t = 0; t < data->n_transitions; t++) room += (first + t) / LONG_PART % stride == 0;
    TRY(base_alloc(ctx, room, sizeof *out->row, &out->row));
    TRY(base_alloc(ctx, room, sizeof *stratum, &stratum));
    TRY(base_alloc(ctx, room, sizeof *next, &next));
    TRY(base_alloc(ctx, room, sizeof *reward, &reward));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t row = problem->row[t];
        if (of[row] < 0 || labels[row + 1] < 0 || (first + t) / LONG_PART % stride != 0) continue;
        out->row[n] = row;
        stratum[n] = (uint32_t)of[row] * (uint32_t)data->n_actions + (uint32_t)data->actions[t];
        next[n] = labels[row + 1];
        reward[n++] = data->rewards[t];
    }
    if (ranks > 1) {
        TRY(base_alloc(ctx, n, width * sizeof *seen, &seen));
        for (size_t i = 0; i < n; i++) {
            memcpy(seen + i * width, vector_at(out, i), width * sizeof *seen);
        }
        TRY(base_gather_parts(ctx, seen, n * width * sizeof *seen, &out->seen, &bytes));
    }
    TRY(base_gather_parts(ctx, stratum, n * sizeof *stratum, &out->stratum, &bytes));
    TRY(base_gather_parts(ctx, next, n * sizeof *next, &out->next, &bytes));
    TRY(base_gather_parts(ctx, reward, n * sizeof *reward, &out->reward, &bytes));
    out->n = bytes / sizeof *reward;
    out->at_once = base_max(1, base_min(base_min(AT_ONCE, (width + ranks - 1) / ranks),
                                        MOST_LEARNT / base_max(out->n, 1)));
    TRY(base_alloc(ctx, out->n, 1, &out->all));
    memset(out->all, 1, out->n);
    TRY(base_alloc(ctx, out->n, out->at_once * sizeof *out->known, &out->known));
done:
    base_free(ctx, reward);
    base_free(ctx, next);
    base_free(ctx, stratum);
    base_free(ctx, seen);
    return status;
}

psi_status verdict_ask_sight(psi_ctx *ctx, const cluster_problem *problem,
                             const problem_looks *looks, const int32_t *of, size_t n_of,
                             const int32_t *labels, double allowed, double share, bool *told)
{
    psi_status status = PSI_OK;
    looking run;
    uint8_t any = 0;
    *told = false;
    TRY(looking_new(ctx, problem, looks, of, labels, &run));
    run.least = share * (double)problem->whole.n_transitions;
    for (size_t rewards = 0; rewards < 2 && !any; rewards++) {
        TRY(verdict_foretold_new(ctx, run.n, run.all, run.stratum, n_of * problem->data->n_actions,
                                 rewards ? NULL : run.next, run.reward, &run.what));
        TRY(ask(&run, allowed, &any));
        verdict_foretold_free(ctx, &run.what);
    }
    *told = any != 0;
done:
    looking_free(ctx, &run);
    return status;
}
