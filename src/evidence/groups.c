#include "evidence/groups.h"

#include "base/checked.h"
#include "base/context.h"
#include "evidence/law.h"

#include <math.h>
#include <string.h>

static const size_t MOST_BYTES = (size_t)1 << 31;

psi_status evidence_groups_new(psi_ctx *ctx, const evidence_rows *rows, evidence_groups *out)
{
    psi_status status = PSI_OK;
    *out = (evidence_groups){.rows = rows};
    TRY(base_alloc(ctx, rows->n_families, sizeof *out->concentration, &out->concentration));
    TRY(base_alloc_zero(ctx, rows->n_outcomes, sizeof *out->having, &out->having));
    TRY(base_alloc(ctx, rows->n_families, sizeof *out->fewest, &out->fewest));
    for (size_t f = 0; f < rows->n_families; f++) {
        out->concentration[f] = 1.0;
        out->fewest[f] = HUGE_VAL;
    }
done:
    return status;
}

void evidence_groups_free(psi_ctx *ctx, evidence_groups *groups)
{
    base_free(ctx, groups->concentration);
    base_free(ctx, groups->cells);
    base_free(ctx, groups->count);
    base_free(ctx, groups->total);
    base_free(ctx, groups->precision);
    base_free(ctx, groups->weighted);
    base_free(ctx, groups->fewest);
    base_free(ctx, groups->having);
    base_free(ctx, groups->has);
    base_free(ctx, groups->seen);
    *groups = (evidence_groups){0};
}

void evidence_groups_empty(evidence_groups *groups, size_t g)
{
    const evidence_rows *rows = groups->rows;
    groups->cells[g] = 0;
    memset(groups->count + g * rows->n_outcomes, 0, rows->n_outcomes * sizeof *groups->count);
    memset(groups->total + g * rows->n_families, 0, rows->n_families * sizeof *groups->total);
    memset(groups->precision + g * rows->n_means, 0, rows->n_means * sizeof *groups->precision);
    memset(groups->weighted + g * rows->n_means, 0, rows->n_means * sizeof *groups->weighted);
}

void evidence_groups_clear(evidence_groups *groups)
{
    for (size_t g = 0; g < groups->n; g++) evidence_groups_empty(groups, g);
    memset(groups->having, 0, groups->rows->n_outcomes * sizeof *groups->having);
    groups->n_has = 0;
    for (size_t f = 0; f < groups->rows->n_families; f++) groups->fewest[f] = HUGE_VAL;
}

size_t evidence_groups_live(const evidence_groups *groups)
{
    size_t live = 0;
    for (size_t g = 0; g < groups->n; g++) live += groups->cells[g] > 0;
    return live;
}

static psi_status make_room(psi_ctx *ctx, evidence_groups *groups, size_t room)
{
    psi_status status = PSI_OK;
    const evidence_rows *rows = groups->rows;
    if (room <= groups->room) return PSI_OK;
    room = base_max(base_max(room, 2 * groups->room), 64);
    if (room > MOST_BYTES / sizeof *groups->count / base_max(rows->n_outcomes, 1)) {
        return FAIL(ctx, PSI_ELIMIT, "%zu latent states with %zu different outcomes are too many",
                    groups->n, rows->n_outcomes);
    }
    TRY(base_resize(ctx, room, sizeof *groups->cells, &groups->cells));
    TRY(base_resize(ctx, room, rows->n_outcomes * sizeof *groups->count, &groups->count));
    TRY(base_resize(ctx, room, rows->n_families * sizeof *groups->total, &groups->total));
    TRY(base_resize(ctx, room, rows->n_means * sizeof(double), &groups->precision));
    TRY(base_resize(ctx, room, rows->n_means * sizeof(double), &groups->weighted));
    TRY(base_resize(ctx, room, sizeof *groups->seen, &groups->seen));
    memset(groups->seen + groups->room, 0, (room - groups->room) * sizeof *groups->seen);
    groups->room = room;
done:
    return status;
}

psi_status evidence_groups_reserve(psi_ctx *ctx, evidence_groups *groups, size_t n)
{
    psi_status status = PSI_OK;
    TRY(make_room(ctx, groups, n));
    while (groups->n < n) evidence_groups_empty(groups, groups->n++);
done:
    return status;
}

psi_status evidence_groups_slot(psi_ctx *ctx, evidence_groups *groups, size_t *g)
{
    psi_status status = PSI_OK;
    for (*g = 0; *g < groups->n; ++*g) {
        if (groups->cells[*g] == 0) return PSI_OK;
    }
    TRY(evidence_groups_reserve(ctx, groups, groups->n + 1));
done:
    return status;
}

// Room for so many more entries of lists.
static psi_status make_room_for_lists(psi_ctx *ctx, evidence_groups *groups, size_t more)
{
    if (groups->n_has + more <= groups->room_has) return PSI_OK;
    if (groups->n_has + more > UINT32_MAX / 4) {
        return FAIL(ctx, PSI_ELIMIT, "%zu latent states with %zu different outcomes are too many",
                    groups->n, groups->rows->n_outcomes);
    }
    groups->room_has = 2 * (groups->n_has + more);
    return base_resize(ctx, groups->room_has, sizeof *groups->has, &groups->has);
}

static void gain(evidence_groups *groups, size_t g, uint32_t o, float n)
{
    float *count = &groups->count[g * groups->rows->n_outcomes + o];
    if (*count == 0.0f) {
        groups->has[groups->n_has] = (struct evidence_has){(uint32_t)g, groups->having[o]};
        groups->having[o] = (uint32_t)++groups->n_has;
    }
    *count += n;
}

psi_status evidence_groups_add(psi_ctx *ctx, evidence_groups *groups, size_t g, size_t node)
{
    psi_status status = PSI_OK;
    const evidence_rows *rows = groups->rows;
    double *total = groups->total + g * rows->n_families;
    TRY(make_room_for_lists(ctx, groups, rows->end[node] - rows->begin[node]));
    for (uint64_t i = rows->begin[node]; i < rows->end[node]; i++) {
        gain(groups, g, rows->outcome[i], rows->count[i]);
        total[rows->family[rows->outcome[i]]] += (double)rows->count[i];
    }
    for (size_t m = 0; m < rows->n_means; m++) {
        groups->precision[g * rows->n_means + m] += rows->precision[node * rows->n_means + m];
        groups->weighted[g * rows->n_means + m] += rows->weighted[node * rows->n_means + m];
    }
    for (size_t f = 0; groups->cells[g] == 0 && f < rows->n_families; f++) {
        groups->fewest[f] = fmin(groups->fewest[f], total[f]);
    }
    groups->cells[g]++;
done:
    return status;
}

psi_status evidence_groups_join(psi_ctx *ctx, evidence_groups *groups, size_t g, size_t h)
{
    psi_status status = PSI_OK;
    const evidence_rows *rows = groups->rows;
    TRY(make_room_for_lists(ctx, groups, rows->n_outcomes));
    for (uint32_t o = 0; o < rows->n_outcomes; o++) {
        const float n = groups->count[h * rows->n_outcomes + o];
        if (n > 0.0f) gain(groups, g, o, n);
    }
    for (size_t f = 0; f < rows->n_families; f++) {
        groups->total[g * rows->n_families + f] += groups->total[h * rows->n_families + f];
    }
    for (size_t m = 0; m < rows->n_means; m++) {
        groups->precision[g * rows->n_means + m] += groups->precision[h * rows->n_means + m];
        groups->weighted[g * rows->n_means + m] += groups->weighted[h * rows->n_means + m];
    }
    groups->cells[g] += groups->cells[h];
    evidence_groups_empty(groups, h);
done:
    return status;
}

// What the node's means add to the evidence of those of the group.
static double fit_mean(const evidence_groups *groups, size_t g, size_t node, bool own, size_t m)
{
    const evidence_rows *rows = groups->rows;
    const size_t at = node * rows->n_means + m, of = g * rows->n_means + m;
    const double p = rows->precision[at], q = rows->weighted[at], v = rows->mean_variance;
    const double others_p = own ? fmax(0.0, groups->precision[of] - p) : groups->precision[of];
    const double others_q = own ? groups->weighted[of] - q : groups->weighted[of];
    return evidence_of_mean(others_p + p, others_q + q, v) -
           evidence_of_mean(others_p, others_q, v);
}

// A node's law is drawn from Dirichlet(κ · the group's), and the group's is known as well as so
// many draws tell it: what both uncertainties leave is worth κ · draws/(κ + draws) draws.
static double evidence_scale(const evidence_groups *groups, double draws)
{
    return 1.0 / (1.0 + groups->impurity * draws);
}

// The node's draws of the family that entry *i belongs to, under the law of group g (count and
// total are its row); moves *i to the next family. alone gets them under a law of their own.
static double fit_family(const evidence_groups *groups, const float *count, const double *total,
                         size_t node, bool own, uint64_t *i, double *alone)
{
    const evidence_rows *rows = groups->rows;
    const uint32_t f = rows->family[rows->outcome[*i]], last = rows->first[f + 1];
    const uint64_t begin = *i;
    const double alpha = groups->concentration[f];
    double sum = 0.0, n = 0.0, own_sum = 0.0;
    for (uint64_t j = begin; own && j < rows->end[node] && rows->outcome[j] < last; j++) {
        n += (double)rows->count[j];
    }
    const double before = total[f] - n, scale = evidence_scale(groups, before + alpha);
    n = 0.0;
    for (; *i < rows->end[node] && rows->outcome[*i] < last; ++*i) {
        const uint32_t o = rows->outcome[*i];
        const double c = (double)rows->count[*i], prior = alpha * rows->base[o];
        const double others = (double)count[o] - (own ? c : 0.0);
        if (alone) own_sum += psi_log_rising(prior, c);
        sum += psi_log_rising(scale * (others + prior), c);
        n += c;
    }
    const double fit = sum - psi_log_rising(scale * (before + alpha), n);
    if (!alone) return fit;
    *alone = own_sum - psi_log_rising(alpha, n);
    if (groups->exact && before > 0.0) { // or by other shares of the same outcomes
        evidence_support support = {0};
        for (uint32_t o = rows->first[f]; o < last; o++) support.kinds += count[o] > 0.0f;
        for (uint64_t j = begin; j < *i; j++) {
            const double c = (double)rows->count[j];
            const double others = (double)count[rows->outcome[j]] - (own ? c : 0.0);
            evidence_support_add(&support, others, c);
            support.kinds += count[rows->outcome[j]] <= 0.0f;
        }
        *alone = evidence_two(fit, *alone, evidence_support_factor(&support, before, n));
    }
    return fit;
}

double evidence_fit(const evidence_groups *groups, size_t g, size_t node, bool own, double limit)
{
    const evidence_rows *rows = groups->rows;
    const float *count = groups->count + g * rows->n_outcomes;
    const double *total = groups->total + g * rows->n_families;
    double sum = 0.0;
    for (size_t m = 0; m < rows->n_means; m++) {
        if (rows->precision[node * rows->n_means + m] > 0.0) {
            sum += fit_mean(groups, g, node, own, m);
        }
    }
    for (uint64_t i = rows->begin[node]; i < rows->end[node];) {
        sum += fit_family(groups, count, total, node, own, &i, NULL);
        if (sum < limit) return -HUGE_VAL; // whatever comes adds the log of a probability
    }
    return sum;
}

double evidence_candidates(evidence_groups *groups, size_t node)
{
    const evidence_rows *rows = groups->rows;
    const size_t few = groups->n / 8; // a list that is longer saves nothing
    double bound = 0.0;
    groups->mark++;
    for (uint64_t i = rows->begin[node]; i < rows->end[node];) {
        const uint32_t f = rows->family[rows->outcome[i]], last = rows->first[f + 1];
        const uint64_t begin = i;
        const double fewest = groups->fewest[f] < HUGE_VAL ? groups->fewest[f] : 0.0;
        const double scale = evidence_scale(groups, fewest + groups->concentration[f]);
        double alone = 0.0, n = 0.0;
        size_t listed = 0;
        for (; i < rows->end[node] && rows->outcome[i] < last; i++) {
            const uint32_t o = rows->outcome[i];
            alone += psi_log_rising(scale * groups->concentration[f] * rows->base[o],
                                    (double)rows->count[i]);
            n += (double)rows->count[i];
            for (uint32_t at = groups->having[o]; at && listed <= few;
                 at = groups->has[at - 1].next) {
                listed++;
            }
        }
        if (listed > few) continue;         // too many: log P ≤ 0 is all that is known
        if (groups->fewest[f] < HUGE_VAL) { // the others have none of these, and as many draws
            bound += alone - psi_log_rising(scale * (fewest + groups->concentration[f]), n);
        }
        for (uint64_t j = begin; j < i; j++) {
            for (uint32_t at = groups->having[rows->outcome[j]]; at;
                 at = groups->has[at - 1].next) {
                groups->seen[groups->has[at - 1].group] = groups->mark;
            }
        }
    }
    return bound;
}

double evidence_novel(const evidence_groups *groups, size_t g, size_t node, bool own)
{
    const evidence_rows *rows = groups->rows;
    const bool shares = g < groups->n;
    const float *count = shares ? groups->count + g * rows->n_outcomes : NULL;
    const double *total = shares ? groups->total + g * rows->n_families : NULL;
    double sum = 0.0;
    for (size_t m = 0; m < rows->n_means; m++) {
        const size_t at = node * rows->n_means + m;
        if (rows->precision[at] <= 0.0) continue;
        const double alone =
            evidence_of_mean(rows->precision[at], rows->weighted[at], rows->mean_variance);
        sum += shares ? evidence_either(fit_mean(groups, g, node, own, m), alone) : alone;
    }
    for (uint64_t i = rows->begin[node]; i < rows->end[node];) {
        double alone;
        if (shares) {
            const double fit = fit_family(groups, count, total, node, own, &i, &alone);
            sum += evidence_either(fit, alone);
            continue;
        }
        const uint32_t f = rows->family[rows->outcome[i]], last = rows->first[f + 1];
        double n = 0.0;
        for (; i < rows->end[node] && rows->outcome[i] < last; i++) {
            sum += psi_log_rising(groups->concentration[f] * rows->base[rows->outcome[i]],
                                  (double)rows->count[i]);
            n += (double)rows->count[i];
        }
        sum -= psi_log_rising(groups->concentration[f], n);
    }
    return sum;
}

double evidence_against(const evidence_groups *groups, size_t g, size_t node)
{
    const evidence_rows *rows = groups->rows;
    const float *count = groups->count + g * rows->n_outcomes;
    const double *total = groups->total + g * rows->n_families;
    double sum = 0.0, alone;
    for (size_t m = 0; m < rows->n_means; m++) {
        const size_t at = node * rows->n_means + m;
        if (rows->precision[at] <= 0.0) continue;
        alone = evidence_of_mean(rows->precision[at], rows->weighted[at], rows->mean_variance);
        sum += fmax(0.0, alone - fit_mean(groups, g, node, true, m));
    }
    for (uint64_t i = rows->begin[node]; i < rows->end[node];) {
        const double fit = fit_family(groups, count, total, node, true, &i, &alone);
        sum += fmax(0.0, alone - fit);
    }
    return sum;
}

// ---- pairs of groups ----------------------------------------------------------------------------

psi_status evidence_index_new(psi_ctx *ctx, const evidence_groups *groups, evidence_index *out)
{
    psi_status status = PSI_OK;
    const size_t outcomes = groups->rows->n_outcomes;
    *out = (evidence_index){0};
    TRY(base_alloc(ctx, groups->n, sizeof *out->begin, &out->begin));
    TRY(base_alloc(ctx, groups->n, sizeof *out->end, &out->end));
    for (size_t g = 0; g < groups->n; g++) {
        const float *count = groups->count + g * outcomes;
        out->begin[g] = out->n;
        if (out->n + outcomes > out->room) {
            out->room = 2 * (out->n + outcomes);
            TRY(base_resize(ctx, out->room, sizeof *out->outcome, &out->outcome));
        }
        for (uint32_t o = 0; o < outcomes; o++) {
            if (count[o] > 0.0f) out->outcome[out->n++] = o;
        }
        out->end[g] = out->n;
    }
done:
    if (status != PSI_OK) evidence_index_free(ctx, out);
    return status;
}

psi_status evidence_index_join(psi_ctx *ctx, evidence_index *index, size_t g, size_t h)
{
    psi_status status = PSI_OK;
    uint64_t i = index->begin[g], j = index->begin[h];
    const size_t more = index->end[g] - i + index->end[h] - j;
    if (index->n + more > index->room) {
        index->room = 2 * (index->n + more);
        TRY(base_resize(ctx, index->room, sizeof *index->outcome, &index->outcome));
    }
    const uint64_t begin = index->n;
    while (i < index->end[g] || j < index->end[h]) {
        const uint32_t a = i < index->end[g] ? index->outcome[i] : UINT32_MAX;
        const uint32_t b = j < index->end[h] ? index->outcome[j] : UINT32_MAX;
        index->outcome[index->n++] = a < b ? a : b;
        i += a <= b;
        j += b <= a;
    }
    index->begin[g] = begin;
    index->end[g] = index->n;
    index->end[h] = index->begin[h];
done:
    return status;
}

void evidence_index_free(psi_ctx *ctx, evidence_index *index)
{
    base_free(ctx, index->begin);
    base_free(ctx, index->end);
    base_free(ctx, index->outcome);
    *index = (evidence_index){0};
}

double evidence_pair(const evidence_groups *groups, const evidence_index *index, size_t g, size_t h,
                     double limit)
{
    const evidence_rows *rows = groups->rows;
    const float *a = groups->count + g * rows->n_outcomes,
                *b = groups->count + h * rows->n_outcomes;
    double sum = 0.0;
    double most = M_LN2 * (double)(rows->n_families + rows->n_means); // what agreement can add
    uint64_t j = index->begin[h];
    if (groups->exact) sum = evidence_one_group((double)groups->cells[g], (double)groups->cells[h]);
    for (size_t m = 0; m < rows->n_means; m++) {
        const size_t i = g * rows->n_means + m, k = h * rows->n_means + m;
        const double p = groups->precision[i], q = groups->weighted[i], v = rows->mean_variance;
        const double r = groups->precision[k], s = groups->weighted[k];
        most -= M_LN2;
        if (p <= 0.0 || r <= 0.0) continue;
        sum += evidence_same(evidence_of_mean(p + r, q + s, v) - evidence_of_mean(p, q, v) -
                             evidence_of_mean(r, s, v));
        if (sum + most < limit) return -HUGE_VAL;
    }
    for (uint64_t i = index->begin[g]; i < index->end[g];) { // families that g has
        const uint32_t f = rows->family[index->outcome[i]], last = rows->first[f + 1];
        const double n = groups->total[g * rows->n_families + f];
        const double m = groups->total[h * rows->n_families + f];
        const double alpha = groups->concentration[f];
        double factor = psi_log_rising(alpha, m) - psi_log_rising(n + alpha, m);
        evidence_support support = {0};
        for (; i < index->end[g] && index->outcome[i] < last; i++) {
            const uint32_t o = index->outcome[i];
            support.kinds += b[o] <= 0.0f; // h's are counted below
            if (b[o] <= 0.0f) continue;
            const double prior = alpha * rows->base[o];
            factor += psi_log_rising((double)a[o] + prior, (double)b[o]) -
                      psi_log_rising(prior, (double)b[o]);
            if (groups->exact) evidence_support_add(&support, (double)a[o], (double)b[o]);
        }
        if (groups->exact && m > 0.0) {
            while (j < index->end[h] && index->outcome[j] < rows->first[f]) j++;
            for (; j < index->end[h] && index->outcome[j] < last; j++) support.kinds++;
            factor = -evidence_two(0.0, -factor, evidence_support_factor(&support, n, m));
        }
        most -= M_LN2;
        if (m > 0.0) sum += evidence_same(factor);
        if (sum + most < limit) return -HUGE_VAL;
    }
    return sum;
}

double evidence_of_group(const evidence_groups *groups, size_t g)
{
    const evidence_rows *rows = groups->rows;
    const float *count = groups->count + g * rows->n_outcomes;
    double sum = 0.0;
    for (size_t o = 0; o < rows->n_outcomes; o++) {
        if (count[o] <= 0.0f) continue;
        sum += psi_log_rising(groups->concentration[rows->family[o]] * rows->base[o],
                              (double)count[o]);
    }
    for (size_t f = 0; f < rows->n_families; f++) {
        sum -= psi_log_rising(groups->concentration[f], groups->total[g * rows->n_families + f]);
    }
    for (size_t m = 0; m < rows->n_means; m++) {
        sum += evidence_of_mean(groups->precision[g * rows->n_means + m],
                                groups->weighted[g * rows->n_means + m], rows->mean_variance);
    }
    return sum;
}

// ---- the concentration --------------------------------------------------------------------------

static double evidence_of_family(const evidence_groups *groups, size_t f, double alpha)
{
    const evidence_rows *rows = groups->rows;
    double sum = 0.0;
    for (size_t g = 0; g < groups->n; g++) {
        const double n = groups->total[g * rows->n_families + f];
        if (n <= 0.0) continue;
        const float *count = groups->count + g * rows->n_outcomes;
        for (uint32_t o = rows->first[f]; o < rows->first[f + 1]; o++) {
            if (count[o] > 0.0f) sum += psi_log_rising(alpha * rows->base[o], (double)count[o]);
        }
        sum -= psi_log_rising(alpha, n);
    }
    return sum;
}

psi_status evidence_learn_concentration(psi_ctx *ctx, evidence_groups *groups)
{
    psi_status status = PSI_OK;
    static const double GOLDEN = 0.61803398874989485;
    const size_t families = groups->rows->n_families;
    for (size_t f = 0; f < families; f++) {
        double seen = 1.0;
        for (size_t g = 0; g < groups->n; g++) seen += log1p(groups->total[g * families + f]);
        double low = -log(seen), high = log(100.0); // golden-section search for log α
        double p = high - GOLDEN * (high - low), q = low + GOLDEN * (high - low);
        double at_p = evidence_of_family(groups, f, exp(p));
        double at_q = evidence_of_family(groups, f, exp(q));
        for (int step = 0; step < 12; step++) { // to .4 % of the range
            TRY(base_cancelled(ctx));           // a look at all counts each
            if (at_p > at_q) {
                high = q, q = p, at_q = at_p;
                p = high - GOLDEN * (high - low);
                at_p = evidence_of_family(groups, f, exp(p));
            } else {
                low = p, p = q, at_p = at_q;
                q = low + GOLDEN * (high - low);
                at_q = evidence_of_family(groups, f, exp(q));
            }
        }
        groups->concentration[f] = exp(0.5 * (low + high));
    }
done:
    return status;
}
