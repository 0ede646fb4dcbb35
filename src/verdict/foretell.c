#include "verdict/foretell.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Visits that the law of the stratum counts for, beside what followed the same thing known.
static const double PRIOR_VISITS = 4.0;

typedef struct move {
    uint64_t key; // stratum, next latent state
    uint32_t at;
} move;

// ---- what followed ------------------------------------------------------------------------------

static int by_key(const void *a, const void *b)
{
    const move *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

typedef struct run_of {
    size_t begin, end; // of one next latent state
} run_of;

static int longer_first(const void *a, const void *b)
{
    const run_of *x = a, *y = b;
    const size_t n = x->end - x->begin, m = y->end - y->begin;
    if (n != m) return n < m ? 1 : -1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

// Kinds of next latent states, the most frequent of a stratum first; 255: the stratum has only one.
static psi_status number_kinds(psi_ctx *ctx, size_t n, const uint8_t *asked,
                               const uint32_t *stratum, const int32_t *next, uint8_t *kind)
{
    psi_status status = PSI_OK;
    move *moves = NULL;
    run_of *runs = NULL;
    size_t m = 0;
    TRY(base_alloc(ctx, n, sizeof *moves, &moves));
    TRY(base_alloc(ctx, n, sizeof *runs, &runs));
    for (size_t t = 0; t < n; t++) {
        if (asked[t])
            moves[m++] = (move){(uint64_t)stratum[t] << 32 | (uint32_t)next[t], (uint32_t)t};
    }
    qsort(moves, m, sizeof *moves, by_key);
    for (size_t i = 0; i < m;) { // a stratum
        const uint64_t of = moves[i].key >> 32;
        size_t kinds = 0;
        while (i < m && moves[i].key >> 32 == of) {
            const size_t begin = i;
            while (i < m && moves[i].key == moves[begin].key) i++;
            runs[kinds++] = (run_of){begin, i};
        }
        qsort(runs, kinds, sizeof *runs, longer_first);
        for (size_t k = 0; k < kinds; k++) {
            const size_t name = base_min(k, FORETELL_KINDS - 1);
            for (size_t j = runs[k].begin; j < runs[k].end; j++) {
                kind[moves[j].at] = kinds == 1 ? UINT8_MAX : (uint8_t)name;
            }
        }
    }
done:
    base_free(ctx, runs);
    base_free(ctx, moves);
    return status;
}

// Means and variances of the rewards of all strata.
static void add_up(foretold *out)
{
    for (size_t i = 0; i < out->n; i++) {
        const size_t s = out->stratum[i];
        out->visits[s]++;
        out->total[s * FORETELL_KINDS + out->kind[i]] += (double)out->value[i];
        out->kinds[s] = (uint8_t)base_max(out->kinds[s], (size_t)out->kind[i] + 1);
    }
    for (size_t i = 0; out->variance && i < out->n; i++) {
        const size_t s = out->stratum[i];
        const double away = (double)out->value[i] - out->total[s * FORETELL_KINDS] / out->visits[s];
        out->variance[s] += away * away / fmax(out->visits[s] - 1.0, 1.0);
    }
}

psi_status verdict_foretold_new(psi_ctx *ctx, size_t n_transitions, const uint8_t *asked,
                                const uint32_t *stratum, size_t n_strata, const int32_t *next,
                                const double *rewards, foretold *out)
{
    psi_status status = PSI_OK;
    uint8_t *kind = NULL, *varies = NULL;
    uint32_t *number = NULL;
    double *first = NULL, largest = 0.0;
    *out = (foretold){0};
    TRY(base_alloc_zero(ctx, n_transitions, sizeof *kind, &kind));
    TRY(base_alloc(ctx, n_strata, sizeof *number, &number));
    TRY(base_alloc_zero(ctx, n_strata, sizeof *varies, &varies));
    TRY(base_alloc(ctx, n_strata, sizeof *first, &first));
    for (size_t s = 0; s < n_strata; s++) {
        number[s] = FORETELL_NONE;
        first[s] = (double)NAN;
    }
    if (next) TRY(number_kinds(ctx, n_transitions, asked, stratum, next, kind));
    for (size_t t = 0; t < n_transitions; t++) {
        const size_t s = stratum[t];
        if (!asked[t]) continue;
        if (isnan(first[s])) first[s] = rewards[t];
        varies[s] |= next ? kind[t] < UINT8_MAX : rewards[t] != first[s];
        largest = fmax(largest, fabs(rewards[t]));
    }
    for (size_t t = 0; t < n_transitions; t++) out->n += asked[t] && varies[stratum[t]];
    TRY(base_alloc(ctx, out->n, sizeof *out->at, &out->at));
    TRY(base_alloc(ctx, out->n, sizeof *out->stratum, &out->stratum));
    TRY(base_alloc(ctx, out->n, sizeof *out->kind, &out->kind));
    TRY(base_alloc(ctx, out->n, sizeof *out->value, &out->value));
    size_t i = 0;
    for (size_t t = 0; t < n_transitions; t++) {
        const size_t s = stratum[t];
        if (!asked[t] || !varies[s]) continue;
        if (number[s] == FORETELL_NONE) number[s] = (uint32_t)out->strata++;
        out->at[i] = (uint32_t)t;
        out->stratum[i] = number[s];
        out->kind[i] = next ? kind[t] : 0;
        out->value[i++] = next ? 1.0f : (float)((rewards[t] - first[s]) / largest);
    }
    const size_t numbers = out->strata * FORETELL_KINDS;
    TRY(base_alloc_zero(ctx, out->strata, sizeof *out->kinds, &out->kinds));
    TRY(base_alloc_zero(ctx, out->strata, sizeof *out->visits, &out->visits));
    TRY(base_alloc_zero(ctx, numbers, sizeof *out->total, &out->total));
    TRY(base_alloc(ctx, out->strata, sizeof *out->seen, &out->seen));
    TRY(base_alloc(ctx, numbers, sizeof *out->seen_total, &out->seen_total));
    if (!next) TRY(base_alloc_zero(ctx, out->strata, sizeof *out->variance, &out->variance));
    TRY(base_alloc(ctx, base_max(out->strata, 1), sizeof *out->each, &out->each));
    add_up(out);
    for (out->slots = 64; out->slots < 2 * out->n; out->slots *= 2) {
    }
    TRY(base_alloc(ctx, out->slots, sizeof *out->key, &out->key));
    TRY(base_alloc(ctx, out->slots, sizeof *out->learnt_visits, &out->learnt_visits));
    TRY(base_alloc(ctx, out->slots, FORETELL_KINDS * sizeof *out->learnt, &out->learnt));
done:
    base_free(ctx, first);
    base_free(ctx, varies);
    base_free(ctx, number);
    base_free(ctx, kind);
    if (status != PSI_OK) verdict_foretold_free(ctx, out);
    return status;
}

void verdict_foretold_free(psi_ctx *ctx, foretold *what)
{
    base_free(ctx, what->at);
    base_free(ctx, what->stratum);
    base_free(ctx, what->kind);
    base_free(ctx, what->value);
    base_free(ctx, what->kinds);
    base_free(ctx, what->visits);
    base_free(ctx, what->total);
    base_free(ctx, what->variance);
    base_free(ctx, what->seen);
    base_free(ctx, what->seen_total);
    base_free(ctx, what->key);
    base_free(ctx, what->learnt_visits);
    base_free(ctx, what->learnt);
    base_free(ctx, what->each);
    *what = (foretold){0};
}

// ---- the sum ------------------------------------------------------------------------------------

// What is foretold of a transition, x, is a function of what came before it; what follows it, y, is
// compared with what followed the *later* visits of its stratum. If the latent states are Markov,
// what follows the visits of a stratum are independent draws, and those of later visits know
// nothing of x: Σ x (y − mean of later y) has mean zero, and its terms are uncorrelated. With means
// of the same data, or of earlier ones, what follows seems to be correlated with what preceded it.
static void begin(foretold *what)
{
    memset(what->seen, 0, what->strata * sizeof *what->seen);
    memset(what->seen_total, 0, what->strata * FORETELL_KINDS * sizeof *what->seen_total);
}

// Transition i comes: afterwards its stratum's later visits are those that are not seen.
static void see(foretold *what, size_t i)
{
    const size_t s = what->stratum[i];
    what->seen[s]++;
    what->seen_total[s * FORETELL_KINDS + what->kind[i]] += (double)what->value[i];
}

// Adds the term of transition i, which was seen; x (kinds of its stratum).
static void add(const foretold *what, size_t i, const double *x, foretell_sum *out)
{
    const size_t s = what->stratum[i], kinds = what->kinds[s];
    const double later = what->visits[s] - what->seen[s];
    const double *total = what->total + s * FORETELL_KINDS;
    const double *seen = what->seen_total + s * FORETELL_KINDS;
    double term = x[what->kind[i]] * (double)what->value[i], mean = 0.0, square = 0.0, wide = 0.0;
    if (later < 1.0) return;
    for (size_t k = 0; k < kinds; k++) {
        const double share = total[k] / what->visits[s];
        term -= x[k] * (total[k] - seen[k]) / later;
        mean += x[k] * share;
        square += x[k] * x[k] * share;
        wide = fmax(wide, fabs(x[k]));
    }
    const double of_one = what->variance ? x[0] * x[0] * what->variance[s] : square - mean * mean;
    out->sum += term;
    out->variance += of_one * (1.0 + 1.0 / later);
    out->largest = fmax(out->largest, fabs(term));
    out->widest = fmax(out->widest, wide);
}

// Sums of martingale differences of at most c with variance V exceed s with a probability below
// exp(−V/c² · h(u)), u = c s/V, h(u) = (1 + u) log(1 + u) − u (Freedman's inequality in Bennett's
// form); of many terms, with one that is smaller by θ √(2π V (1 + u)), θ = log(1 + u)/c (Bahadur
// and Rao), in either direction.
static double nats_of(const foretell_sum *all, double most, double *moved)
{
    *moved = all->widest > 0.0 ? fabs(all->sum) / (all->widest * most) : 0.0;
    if (all->sum == 0.0 || all->variance <= 0.0) return 0.0;
    const double c = all->largest, v = all->variance, u = c * fabs(all->sum) / v;
    const double bound = v / (c * c) * ((1.0 + u) * log1p(u) - u);
    const double sharper = log1p(u) / c * sqrt(2.0 * M_PI * v * (1.0 + u));
    return bound + fmax(0.0, log(0.5 * sharper));
}

// ---- what foretells -----------------------------------------------------------------------------

// What is known is compared with its mean at earlier visits of the stratum. Of strata: each by
// itself, or all together. *most: the largest of what follows.
static void correlate(foretold *what, const float *known, bool strata, double *most)
{
    *most = 0.0;
    begin(what);
    memset(what->learnt_visits, 0, what->strata * sizeof *what->learnt_visits);
    memset(what->learnt, 0, what->strata * sizeof *what->learnt);
    memset(what->each, 0, what->strata * sizeof *what->each);
    for (size_t i = 0; i < what->n; i++) {
        const size_t s = what->stratum[i];
        const double x = (double)known[what->at[i]];
        see(what, i);
        *most = fmax(*most, fabs((double)what->value[i]));
        if (isnan(x)) continue;
        if (what->learnt_visits[s] > 0.0) {
            const double away[FORETELL_KINDS] = {x - what->learnt[s] / what->learnt_visits[s]};
            add(what, i, away, &what->each[strata ? s : 0]);
        }
        what->learnt_visits[s]++;
        what->learnt[s] += x;
    }
}

double verdict_foretell_by_number(foretold *what, const float *known, double *moved)
{
    double most;
    correlate(what, known, false, &most);
    return nats_of(&what->each[0], most, moved);
}

double verdict_foretell_in_a_stratum(foretold *what, const float *known, double *moved)
{
    double most, best = 0.0;
    correlate(what, known, true, &most);
    *moved = 0.0;
    for (size_t s = 0; s < what->strata; s++) {
        double of_stratum;
        const double nats = nats_of(&what->each[s], most, &of_stratum);
        if (nats > best) best = nats, *moved = of_stratum;
    }
    return best - log((double)what->strata);
}

// Of all that changes steadily over the visits of a stratum, Σ x (y − mean of later y) finds most
// with x as the share of the visits that are still to come: of contrasts Σ c y with c = 1 … n,
// these are the coefficients in the orthogonal contrasts y − mean of later y. Times are known
// beforehand, so that no mean has to be taken away.
double verdict_foretell_by_time(foretold *what, const uint64_t *when, size_t end, double *moved)
{
    foretell_sum all = {0};
    double most = 0.0;
    begin(what);
    for (size_t i = 0; i < what->n; i++) {
        const double x[FORETELL_KINDS] = {1.0 - (double)when[what->at[i]] / (double)end};
        see(what, i);
        most = fmax(most, fabs((double)what->value[i]));
        add(what, i, x, &all);
    }
    return nats_of(&all, most, moved);
}

static size_t slot_of(const foretold *what, size_t s, uint32_t known)
{
    const uint64_t key = ((uint64_t)s << 32 | known) + 1;
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (what->slots - 1);
    while (what->key[at] != 0 && what->key[at] != key) at = (at + 1) & (what->slots - 1);
    if (what->key[at] == 0) {
        what->key[at] = key;
        what->learnt_visits[at] = 0.0;
        memset(what->learnt + at * FORETELL_KINDS, 0, FORETELL_KINDS * sizeof *what->learnt);
    }
    return at;
}

// What is foretold of every kind: how much more often it followed the same thing known than the
// stratum. As odds, rare kinds count as much as frequent ones: where something happens only after a
// certain past, that it is rare elsewhere is what tells.
static void foretell_kinds(const foretold *what, size_t kinds, bool odds, const double *learnt,
                           double n, const double *earlier, double before, double *x)
{
    for (size_t k = 0; k < kinds; k++) {
        x[k] = (learnt[k] / n - earlier[k] / before) * n / (n + PRIOR_VISITS);
        if (!odds || what->variance) continue;
        const double share = (earlier[k] + 0.5) / (before + 0.5 * (double)kinds);
        x[k] = log((learnt[k] + PRIOR_VISITS * share) / ((n + PRIOR_VISITS) * share));
    }
}

double verdict_foretell_by_context(foretold *what, const uint32_t *known, bool odds, double *moved)
{
    foretell_sum all = {0};
    double most = 0.0;
    begin(what);
    memset(what->key, 0, what->slots * sizeof *what->key);
    for (size_t i = 0; i < what->n; i++) {
        const size_t s = what->stratum[i], kinds = what->kinds[s];
        const double before = what->seen[s];
        double x[FORETELL_KINDS] = {0.0}, earlier[FORETELL_KINDS];
        memcpy(earlier, what->seen_total + s * FORETELL_KINDS, sizeof earlier);
        see(what, i);
        most = fmax(most, fabs((double)what->value[i]));
        if (known[what->at[i]] == FORETELL_NONE) continue;
        const size_t at = slot_of(what, s, known[what->at[i]]);
        double *learnt = what->learnt + at * FORETELL_KINDS, *n = &what->learnt_visits[at];
        if (*n > 0.0 && *n < before) {
            foretell_kinds(what, kinds, odds, learnt, *n, earlier, before, x);
            add(what, i, x, &all);
        }
        ++*n;
        learnt[what->kind[i]] += (double)what->value[i];
    }
    if (all.sum < 0.0) all.sum = 0.0; // what was learnt is wrong
    return nats_of(&all, most, moved);
}

double verdict_foretell_by_echo(foretold *what, const uint32_t *episode, double scale,
                                double *moved)
{
    const double keep = 1.0 - 1.0 / scale;
    foretell_sum all = {0};
    double most = 0.0;
    begin(what);
    memset(what->learnt_visits, 0, what->strata * sizeof *what->learnt_visits);
    memset(what->learnt, 0, what->strata * FORETELL_KINDS * sizeof *what->learnt);
    memset(what->key, 0, what->strata * sizeof *what->key); // the episode of the last visit
    for (size_t i = 0; i < what->n; i++) {
        const size_t s = what->stratum[i], kinds = what->kinds[s];
        double *echo = what->learnt + s * FORETELL_KINDS, *n = &what->learnt_visits[s];
        const double before = what->seen[s];
        double x[FORETELL_KINDS] = {0.0}, earlier[FORETELL_KINDS];
        memcpy(earlier, what->seen_total + s * FORETELL_KINDS, sizeof earlier);
        see(what, i);
        most = fmax(most, fabs((double)what->value[i]));
        if (episode && what->key[s] != episode[what->at[i]]) {
            what->key[s] = episode[what->at[i]];
            memset(echo, 0, FORETELL_KINDS * sizeof *echo);
            *n = 0.0;
        }
        if (*n > 0.0) {
            for (size_t k = 0; k < kinds; k++) x[k] = echo[k] - *n * earlier[k] / before;
            add(what, i, x, &all);
        }
        for (size_t k = 0; k < kinds; k++) echo[k] *= keep;
        *n = *n * keep + 1.0;
        echo[what->kind[i]] += (double)what->value[i];
    }
    return nats_of(&all, most, moved);
}
