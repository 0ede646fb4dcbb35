#include "cluster/judge.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"
#include "cluster/samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double FLOOR = 1e-3; // of every probability, so that a surprise costs a finite amount
static const double HOT_CLUSTER = 0.03; // nats per step
static const double DOUBT = 2.0; // standard errors that a cluster's gain must exceed them by …
static const double DOUBT_OF_PAST = 3.0; // … where it comes from all transitions, not a tenth
static const double PRIOR = 5.0; // transitions that what the label says is worth, beside a past's
enum { BLOCK = 4096, FEW = 20 };

// How often (key, action) was followed by each class: dense, (n_keys, A, n_classes).
typedef struct frequencies {
    size_t n_actions, n_classes;
    double *count, *total; // total (n_keys, A)
} frequencies;

static void frequency_free(psi_ctx *ctx, frequencies *f)
{
    base_free(ctx, f->count);
    base_free(ctx, f->total);
    *f = (frequencies){0};
}

static psi_status frequency_new(psi_ctx *ctx, size_t n_keys, size_t n_actions, size_t n_classes,
                                frequencies *out)
{
    psi_status status = PSI_OK;
    *out = (frequencies){.n_actions = n_actions, .n_classes = n_classes};
    TRY(base_alloc_zero(ctx, n_keys * n_actions * n_classes, sizeof *out->count, &out->count));
    TRY(base_alloc_zero(ctx, n_keys * n_actions, sizeof *out->total, &out->total));
done:
    if (status != PSI_OK) frequency_free(ctx, out);
    return status;
}

static void frequency_add(frequencies *f, int32_t key, int32_t action, int32_t class)
{
    const size_t row = (size_t)key * f->n_actions + (size_t)action;
    f->count[row * f->n_classes + (size_t) class] += 1.0;
    f->total[row] += 1.0;
}

static double frequency_log(const frequencies *f, int32_t key, int32_t action, int32_t class)
{
    const size_t row = (size_t)key * f->n_actions + (size_t)action;
    const double uniform = 1.0 / (double)f->n_classes;
    const double p = f->total[row] > 0.0
                         ? f->count[row * f->n_classes + (size_t) class] / f->total[row]
                         : uniform;
    return log((1.0 - FLOOR) * p + FLOOR * uniform);
}

// How many numbers are free in a row: one less than the classes that were seen.
static double row_freedom(const frequencies *f, size_t row)
{
    size_t seen = 0;
    for (size_t c = 0; c < f->n_classes; c++) seen += f->count[row * f->n_classes + c] > 0.0;
    return seen > 1 ? (double)(seen - 1) : 0.0;
}

// What frequencies with so many free numbers may gain over the true ones by chance, in nats, on the
// transitions that they were counted from: half of a χ², its mean and three standard deviations.
static double gain_by_chance(double free)
{
    return free / 2.0 + 3.0 * sqrt(free / 2.0);
}

psi_status cluster_judge_loss(psi_ctx *ctx, const cluster_problem *problem, const int32_t *finer,
                              size_t n_finer, const int32_t *coarser, size_t n_coarser,
                              double *lost)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t actions = data->n_actions, classes = problem->rewards.n;
    frequencies next_finer = {0}, next_coarser = {0}, reward_finer = {0}, reward_coarser = {0};
    double *visits = NULL, *free_coarser = NULL, *free = NULL; // (n_coarser, A), (n_finer, A)
    TRY(frequency_new(ctx, n_finer, actions, n_coarser, &next_finer));
    TRY(frequency_new(ctx, n_coarser, actions, n_coarser, &next_coarser));
    TRY(frequency_new(ctx, n_finer, actions, classes, &reward_finer));
    TRY(frequency_new(ctx, n_coarser, actions, classes, &reward_coarser));
    TRY(base_alloc_zero(ctx, n_finer, sizeof *visits, &visits));
    TRY(base_alloc_zero(ctx, n_coarser * actions, sizeof *free_coarser, &free_coarser));
    TRY(base_alloc_zero(ctx, n_finer * actions, sizeof *free, &free));
    memset(lost, 0, n_finer * sizeof *lost);
    for (int pass = 0; pass < 2; pass++) { // first count, then compare
        for (size_t t = 0; t < data->n_transitions; t++) {
            const uint64_t row = problem->row[t];
            const int32_t k = finer[row], c = coarser[row], next = coarser[row + 1];
            const int32_t a = data->actions[t], r = problem->rewards.of[t];
            if (k < 0 || c < 0 || next < 0) continue;
            if (pass == 0) {
                frequency_add(&next_finer, k, a, next);
                frequency_add(&next_coarser, c, a, next);
                frequency_add(&reward_finer, k, a, r);
                frequency_add(&reward_coarser, c, a, r);
            } else {
                lost[k] += frequency_log(&next_finer, k, a, next) -
                           frequency_log(&next_coarser, c, a, next) +
                           frequency_log(&reward_finer, k, a, r) -
                           frequency_log(&reward_coarser, c, a, r);
                visits[k] += 1.0;
                double *own = &free[(size_t)k * actions + (size_t)a];
                *own = fmax(*own, free_coarser[(size_t)c * actions + (size_t)a]);
            }
        }
        for (size_t row = 0; pass == 0 && row < n_coarser * actions; row++) {
            free_coarser[row] = row_freedom(&next_coarser, row) + row_freedom(&reward_coarser, row);
        }
    }
    for (size_t k = 0; k < n_finer; k++) {
        double all = 0.0;
        for (size_t a = 0; a < actions; a++) all += free[k * actions + a];
        lost[k] = visits[k] > 0.0 ? (lost[k] - gain_by_chance(all)) / visits[k] : 0.0;
    }
done:
    base_free(ctx, free);
    base_free(ctx, free_coarser);
    base_free(ctx, visits);
    frequency_free(ctx, &reward_coarser);
    frequency_free(ctx, &reward_finer);
    frequency_free(ctx, &next_coarser);
    frequency_free(ctx, &next_finer);
    return status;
}

// What one more of `class` is worth to a row of `total` (this one not counted) over `usual`, the
// probability that it leans towards where it has few.
static double own_gain(double count, double total, double usual)
{
    return log((count - 1.0 + PRIOR * usual) / (total - 1.0 + PRIOR) / usual);
}

// Adds to gain[j], for all j, what class is worth to row (k, a) of f over that of k and j together.
static void add_apart(const frequencies *f, size_t n_keys, int32_t k, int32_t a, int32_t class,
                      double *gain)
{
    const size_t row = (size_t)k * f->n_actions + (size_t)a;
    const double count = f->count[row * f->n_classes + (size_t) class], total = f->total[row];
    for (size_t j = 0; j < n_keys; j++) {
        const size_t other = j * f->n_actions + (size_t)a;
        const double together =
            (count + f->count[other * f->n_classes + (size_t) class]) / (total + f->total[other]);
        gain[j] += own_gain(count, total, together);
    }
}

psi_status cluster_judge_apart(psi_ctx *ctx, const cluster_problem *problem, const int32_t *said,
                               size_t n_latent, double *gain)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    frequencies next = {0}, reward = {0};
    double *visits = NULL;
    TRY(frequency_new(ctx, n_latent, data->n_actions, n_latent, &next));
    TRY(frequency_new(ctx, n_latent, data->n_actions, problem->rewards.n, &reward));
    TRY(base_alloc_zero(ctx, n_latent, sizeof *visits, &visits));
    memset(gain, 0, n_latent * n_latent * sizeof *gain);
    for (int pass = 0; pass < 2; pass++) { // first count, then compare
        for (size_t t = 0; t < data->n_transitions; t++) {
            const uint64_t row = problem->row[t];
            const int32_t k = said[row], to = said[row + 1], a = data->actions[t];
            if (!problem->held_out[t] || k < 0 || to < 0) continue;
            if (pass == 0) {
                frequency_add(&next, k, a, to);
                frequency_add(&reward, k, a, problem->rewards.of[t]);
                visits[k] += 1.0;
            } else {
                add_apart(&next, n_latent, k, a, to, gain + (size_t)k * n_latent);
                add_apart(&reward, n_latent, k, a, problem->rewards.of[t],
                          gain + (size_t)k * n_latent);
            }
        }
        TRY(base_cancelled(ctx));
    }
    for (size_t i = 0; i < n_latent; i++) {
        for (size_t j = 0; j <= i; j++) {
            const bool enough = i != j && visits[i] >= FEW && visits[j] >= FEW;
            const double both = gain[i * n_latent + j] + gain[j * n_latent + i];
            gain[i * n_latent + j] = gain[j * n_latent + i] = enough ? both : HUGE_VAL;
        }
    }
done:
    base_free(ctx, visits);
    frequency_free(ctx, &reward);
    frequency_free(ctx, &next);
    return status;
}

// ---- the split test ----------------------------------------------------------------------------

// Three experts try to beat the labels. Two see the observation: one alone, and one that knows the
// label as well. Where observations are hard to read the first cannot win; where successors are
// many the second counts twice what both know. The third sees no observation, only where the state
// was entered from: true latent states have no memory, while one that hides a rare state remembers.
enum { ALONE, WITH_LABEL, WITH_PAST, EXPERTS };

typedef struct expert_gains {
    double *each[EXPERTS]; // (N) gain over the label's prediction, in nats
} expert_gains;

// log Σ_k P(k | label, a) · f(k | s,a) / P(k | a), the denominator of the expert with the label.
static double log_evidence(const frequencies *of_labels, const frequencies *usual, int32_t label,
                           int32_t a, const float *f)
{
    double sum = 0.0;
    for (int32_t k = 0; k < (int32_t)of_labels->n_classes; k++) {
        sum += (double)f[k] *
               exp(frequency_log(of_labels, label, a, k) - frequency_log(usual, 0, a, k));
    }
    return log(fmax(sum, 1e-300));
}

// The test has four parts: for each of the two targets the expert learns and is tested.
enum { PHASE_NAME = 48 };
static const char *part(char name[PHASE_NAME], size_t number)
{
    snprintf(name, PHASE_NAME, "looking for hidden states %zu/4", number);
    return name;
}

// Adds what the experts gain on `target` (per transition, −1: none). first is the number of the
// first of its parts.
static psi_status add_gains(psi_ctx *ctx, const cluster_problem *problem,
                            const cluster_approximator *approximator, const int32_t *labels,
                            size_t n_latent, const int32_t *target, size_t n_classes, uint64_t seed,
                            size_t first, expert_gains *gains)
{
    char name[PHASE_NAME];
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t actions = data->n_actions;
    frequencies of_labels = {0}, usual = {0};
    cluster_fit *direct = NULL;
    uint64_t *rows = NULL, *transition = NULL;
    float *p = NULL;
    size_t n = 0;
    TRY(frequency_new(ctx, n_latent, actions, n_classes, &of_labels));
    TRY(frequency_new(ctx, 1, actions, n_classes, &usual));
    TRY(base_alloc(ctx, BLOCK, sizeof *rows, &rows));
    TRY(base_alloc(ctx, BLOCK, sizeof *transition, &transition));
    TRY(base_alloc(ctx, BLOCK, actions * n_classes * sizeof *p, &p));
    TRY(cluster_fit_transitions(ctx, problem, approximator, target, n_classes, NULL, NULL, seed,
                                part(name, first), &direct));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t k = labels[problem->row[t]];
        if (problem->held_out[t] || k < 0 || target[t] < 0) continue;
        frequency_add(&of_labels, k, data->actions[t], target[t]);
        frequency_add(&usual, 0, data->actions[t], target[t]);
    }
    base_progress progress = base_progress_start(ctx, part(name, first + 1), data->n_transitions);
    for (size_t t = 0; t <= data->n_transitions; t++) {
        if (n == BLOCK || (t == data->n_transitions && n > 0)) {
            TRY(approximator->predict(approximator->self, ctx, direct, rows, n, p));
            for (size_t i = 0; i < n; i++) {
                const uint64_t at = transition[i];
                const int32_t a = data->actions[at], class = target[at], label = labels[rows[i]];
                float *f = p + (i * actions + (size_t)a) * n_classes;
                for (size_t k = 0; k < n_classes; k++) {
                    f[k] = (float)((1.0 - FLOOR) * (double)f[k] + FLOOR / (double)n_classes);
                }
                const double own = log((double)f[class]);
                gains->each[ALONE][at] += own - frequency_log(&of_labels, label, a, class);
                gains->each[WITH_LABEL][at] += own - frequency_log(&usual, 0, a, class) -
                                               log_evidence(&of_labels, &usual, label, a, f);
            }
            n = 0;
            TRY(base_progress_at(&progress, t));
        }
        if (t == data->n_transitions) break;
        if (problem->n_held_out > 0 && !problem->held_out[t]) continue;
        if (labels[problem->row[t]] < 0 || target[t] < 0) continue;
        rows[n] = problem->row[t];
        transition[n++] = t;
    }
    base_progress_end(&progress, data->n_transitions);
done:
    cluster_fit_free(ctx, direct);
    base_free(ctx, p);
    base_free(ctx, transition);
    base_free(ctx, rows);
    frequency_free(ctx, &usual);
    frequency_free(ctx, &of_labels);
    return status;
}

// A transition with the one before it: (label, action) twice.
typedef struct remembered {
    uint64_t past; // both pairs as one number
    uint64_t transition;
} remembered;

static int by_past(const void *a, const void *b)
{
    const remembered *x = a, *y = b;
    if (x->past != y->past) return x->past < y->past ? -1 : 1;
    return x->transition < y->transition ? -1 : x->transition > y->transition;
}

// The transitions that have a past, those with the same one together.
static psi_status remember(psi_ctx *ctx, const cluster_problem *problem, const int32_t *labels,
                           size_t n_latent, const int32_t *target, remembered **out, size_t *n)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const uint64_t actions = data->n_actions, pairs = n_latent * actions;
    *n = 0;
    TRY(base_alloc(ctx, data->n_transitions, sizeof **out, out));
    for (size_t t = 1; t < data->n_transitions; t++) {
        const uint64_t row = problem->row[t], before = problem->row[t - 1];
        if (row != before + 1) continue; // an episode begins
        if (labels[row] < 0 || labels[before] < 0 || target[t] < 0) continue;
        const uint64_t from = (uint64_t)labels[before] * actions + (uint64_t)data->actions[t - 1];
        const uint64_t now = (uint64_t)labels[row] * actions + (uint64_t)data->actions[t];
        (*out)[(*n)++] = (remembered){from * pairs + now, t};
    }
    if (*n > 0) qsort(*out, *n, sizeof **out, by_past);
done:
    return status;
}

// Adds what is gained by knowing the past. Every transition is predicted from the others with the
// same past (which makes up for none being held out), leaning towards what the label says where
// these are few.
static psi_status add_gains_of_past(psi_ctx *ctx, const cluster_problem *problem,
                                    const int32_t *labels, size_t n_latent, const int32_t *target,
                                    size_t n_classes, double *gains)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    frequencies of_labels = {0};
    remembered *with = NULL;
    double *count = NULL; // (n_classes)
    size_t n;
    TRY(frequency_new(ctx, n_latent, data->n_actions, n_classes, &of_labels));
    TRY(base_alloc_zero(ctx, n_classes, sizeof *count, &count));
    TRY(remember(ctx, problem, labels, n_latent, target, &with, &n));
    for (size_t i = 0; i < n; i++) {
        const uint64_t t = with[i].transition;
        frequency_add(&of_labels, labels[problem->row[t]], data->actions[t], target[t]);
    }
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin; end < n && with[end].past == with[begin].past; end++) {
            count[target[with[end].transition]] += 1.0;
        }
        for (size_t i = begin; i < end; i++) {
            const uint64_t t = with[i].transition;
            const double usual =
                frequency_log(&of_labels, labels[problem->row[t]], data->actions[t], target[t]);
            gains[t] += own_gain(count[target[t]], (double)(end - begin), exp(usual));
        }
        for (size_t i = begin; i < end; i++) count[target[with[i].transition]] = 0.0;
        TRY(base_cancelled(ctx));
    }
done:
    base_free(ctx, count);
    base_free(ctx, with);
    frequency_free(ctx, &of_labels);
    return status;
}

// What one expert gains, over all judged transitions and in the cluster that gains most.
static psi_status sum_gains(psi_ctx *ctx, const cluster_problem *problem, const int32_t *labels,
                            size_t n_latent, const double *each, bool held_out, double doubt,
                            split_test *out)
{
    psi_status status = PSI_OK;
    double *sum = NULL, *square = NULL, *count = NULL; // (n_latent)
    double total = 0.0, judged = 0.0;
    *out = (split_test){.cluster = -1, .largest = -HUGE_VAL};
    TRY(base_alloc_zero(ctx, n_latent, sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, n_latent, sizeof *square, &square));
    TRY(base_alloc_zero(ctx, n_latent, sizeof *count, &count));
    for (size_t t = 0; t < problem->data->n_transitions; t++) {
        const int32_t k = labels[problem->row[t]];
        if (k < 0 || (held_out && !problem->held_out[t])) continue;
        sum[k] += each[t];
        square[k] += each[t] * each[t];
        count[k] += 1.0;
        total += each[t];
        judged += 1.0;
    }
    out->mean = judged > 0.0 ? total / judged : 0.0;
    for (size_t k = 0; k < n_latent; k++) {
        if (count[k] < 2.0) continue;
        const double mean = sum[k] / count[k];
        const double variance = fmax(square[k] / count[k] - mean * mean, 0.0);
        const double surely = mean - doubt * sqrt(variance / count[k]);
        if (surely > out->largest) {
            out->largest = surely;
            out->cluster = (int32_t)k;
        }
    }
    out->hidden = fmax(out->largest / HOT_CLUSTER, out->mean / JUDGE_HOT_MEAN);
    out->hot = out->hidden > 1.0;
done:
    base_free(ctx, count);
    base_free(ctx, square);
    base_free(ctx, sum);
    return status;
}

psi_status cluster_judge_split(psi_ctx *ctx, const cluster_problem *problem,
                               const cluster_approximator *approximator, const int32_t *labels,
                               size_t n_latent, uint64_t seed, split_test *out)
{
    psi_status status = PSI_OK;
    const size_t n = problem->data->n_transitions;
    int32_t *next = NULL;
    expert_gains gains = {0};
    split_test of[EXPERTS];
    TRY(base_alloc(ctx, n, sizeof *next, &next));
    for (size_t i = 0; i < EXPERTS; i++) {
        TRY(base_alloc_zero(ctx, n, sizeof *gains.each[i], &gains.each[i]));
    }
    for (size_t t = 0; t < n; t++) next[t] = labels[problem->row[t] + 1];
    TRY(add_gains(ctx, problem, approximator, labels, n_latent, next, n_latent, seed, 1, &gains));
    TRY(add_gains(ctx, problem, approximator, labels, n_latent, problem->rewards.of,
                  problem->rewards.n, seed + 1, 3, &gains));
    TRY(add_gains_of_past(ctx, problem, labels, n_latent, next, n_latent, gains.each[WITH_PAST]));
    TRY(add_gains_of_past(ctx, problem, labels, n_latent, problem->rewards.of, problem->rewards.n,
                          gains.each[WITH_PAST]));
    for (size_t i = 0; i < EXPERTS; i++) {
        const bool all = i == WITH_PAST; // each was predicted from the others
        TRY(sum_gains(ctx, problem, labels, n_latent, gains.each[i],
                      !all && problem->n_held_out > 0, all ? DOUBT_OF_PAST : DOUBT, &of[i]));
    }
    *out = of[ALONE];
    for (size_t i = 1; i < EXPERTS; i++) {
        if (of[i].hot > out->hot || (of[i].hot == out->hot && of[i].mean > out->mean)) {
            *out = of[i];
        }
    }
    for (size_t i = 0; i < EXPERTS; i++) out->hidden = fmax(out->hidden, of[i].hidden);
done:
    for (size_t i = 0; i < EXPERTS; i++) base_free(ctx, gains.each[i]);
    base_free(ctx, next);
    return status;
}

// ---- the homes of those who had none ------------------------------------------------------------

psi_status cluster_judge_homes(psi_ctx *ctx, const cluster_problem *problem, const int32_t *before,
                               const int32_t *after, size_t n_latent, double *misfit)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t actions = data->n_actions, classes = problem->rewards.n;
    frequencies next = {0}, reward = {0};
    double *usual = NULL; // (n_latent, A) mean surprise of the others' transitions
    double n = 0.0, sum = 0.0, square = 0.0;
    *misfit = 0.0;
    TRY(frequency_new(ctx, n_latent, actions, n_latent, &next));
    TRY(frequency_new(ctx, n_latent, actions, classes, &reward));
    TRY(base_alloc_zero(ctx, n_latent * actions, sizeof *usual, &usual));
    for (int pass = 0; pass < 3; pass++) { // count the others, their surprises, compare
        for (size_t t = 0; t < data->n_transitions; t++) {
            const uint64_t row = problem->row[t];
            const int32_t k = after[row], to = after[row + 1];
            const int32_t a = data->actions[t], r = problem->rewards.of[t];
            if (k < 0 || to < 0) continue;
            const bool other = before[row] >= 0 && before[row + 1] >= 0;
            const size_t pair = (size_t)k * actions + (size_t)a;
            if (pass == 0 && other) {
                frequency_add(&next, k, a, to);
                frequency_add(&reward, k, a, r);
            }
            if (pass == 0 || next.total[pair] == 0.0) continue; // a pair that nobody else shows
            const double surprise =
                -frequency_log(&next, k, a, to) - frequency_log(&reward, k, a, r);
            if (pass == 1 && other) usual[pair] += surprise / next.total[pair];
            if (pass == 2 && !other) {
                const double excess = surprise - usual[pair];
                n += 1.0;
                sum += excess;
                square += excess * excess;
            }
        }
    }
    if (n >= FEW) *misfit = sum / n - sqrt(fmax(square / n - sum / n * (sum / n), 0.0) / n);
done:
    base_free(ctx, usual);
    frequency_free(ctx, &reward);
    frequency_free(ctx, &next);
    return status;
}
