#include "verdict/chance.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <psifold/mdp.h>

#include <math.h>

// Standard errors that a difference may seem smaller than it is, in one of a hundred cases.
static const double BAD_LUCK = 2.3263478740408408;

// Standard errors of n draws by which a law has to be apart to be noticed: odds of nine to one for
// two laws, each of which was as probable before, with the usual penalty for another probability,
// ½ log n; and with bad luck.
static double standard_errors(double n)
{
    return sqrt(2.0 * (log(9.0) + M_LN2 + 0.5 * log(fmax(n, 1.0)))) + BAD_LUCK;
}

bool verdict_is_noticed(double difference, double n, double m)
{
    return n > 0.0 && m > 0.0 && difference > standard_errors(n) * sqrt(1.0 / n + 1.0 / m);
}

static double variance_near(double p)
{
    const double near =
        p < 0.5 ? fmin(p + VERDICT_DIFFERENCE, 0.5) : fmax(p - VERDICT_DIFFERENCE, 0.5);
    return near * (1.0 - near);
}

// Of n outcomes that came so many times; of one that never did the variance is variance_near(0).
static void add_law(chance *out, int kind, const double *times, size_t n, double total)
{
    double most = variance_near(0.0), usual = 0.0;
    for (size_t i = 0; total > 0.0 && i < n; i++) {
        most = fmax(most, variance_near(times[i] / total));
        usual = fmax(usual, times[i]);
    }
    out->variance[kind] = most;
    out->unusual[kind] = total - usual;
}

// An action that leaves nothing to chance anywhere can be taken at its word.
static void forget_what_is_sure(chance *all, int kind, size_t n_states, size_t n_actions,
                                double exceptions)
{
    for (size_t a = 0; a < n_actions; a++) {
        double unusual = 0.0;
        for (size_t k = 0; k < n_states; k++) unusual += all[k * n_actions + a].unusual[kind];
        for (size_t k = 0; unusual <= exceptions && k < n_states; k++) {
            all[k * n_actions + a].variance[kind] = 0.0;
        }
    }
}

static psi_status where_it_leads(judging *run, double exceptions, chance *out)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    const psi_run *result = run->result;
    const psi_paths paths = problem_paths(run->problem, result->labels, result->n_latent);
    const bool numbers = run->rewards->n == 0;
    TRY(psi_counts_together(run->ctx, &paths, &counts));
    for (size_t at = 0; at < counts->n_latent * counts->n_actions; at++) {
        const size_t first = counts->offsets[at], n = counts->offsets[at + 1] - first;
        const double rewards = counts->rewards[at], scatter = counts->reward_scatter[at];
        add_law(&out[at], CHANCE_NEXT, counts->count + first, n, counts->visits[at]);
        if (!numbers || rewards < 2.0 || scatter <= 0.0) continue;
        out[at].variance[CHANCE_NUMBER] = scatter / (rewards - 1.0) / run->rewards->variance;
        out[at].unusual[CHANCE_NUMBER] = rewards;
    }
    forget_what_is_sure(out, CHANCE_NEXT, counts->n_latent, counts->n_actions, exceptions);
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

static psi_status what_it_pays(judging *run, double exceptions, chance *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t actions = data->n_actions, classes = run->rewards->n;
    const size_t n = run->result->n_latent * actions;
    uint32_t *times = NULL; // (K, A, classes)
    double *parts = NULL;   // (classes) of one latent state and action
    if (classes < 2) return PSI_OK;
    TRY(base_alloc_zero(run->ctx, n, classes * sizeof *times, &times));
    TRY(base_alloc(run->ctx, classes, sizeof *parts, &parts));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t label = run->result->labels[run->problem->row[t]];
        if (label < 0) continue;
        const size_t at = (size_t)label * actions + (size_t)data->actions[t];
        times[at * classes + (size_t)run->rewards->of[t]]++;
    }
    TRY(base_sum_u32(run->ctx, times, n * classes));
    for (size_t at = 0; at < n; at++) {
        double total = 0.0;
        for (size_t r = 0; r < classes; r++) total += parts[r] = times[at * classes + r];
        add_law(&out[at], CHANCE_CLASS, parts, classes, total);
    }
    forget_what_is_sure(out, CHANCE_CLASS, run->result->n_latent, actions, exceptions);
done:
    base_free(run->ctx, parts);
    base_free(run->ctx, times);
    return status;
}

psi_status verdict_chances_new(judging *run, double misplaced, chance **out)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    const double exceptions = 2.0 * misplaced * (double)run->problem->whole.n_transitions;
    *out = NULL;
    TRY(base_alloc_zero(run->ctx, run->result->n_latent * actions, sizeof **out, out));
    TRY(where_it_leads(run, exceptions, *out));
    TRY(what_it_pays(run, exceptions, *out));
done:
    if (status != PSI_OK) {
        base_free(run->ctx, *out);
        *out = NULL;
    }
    return status;
}

bool verdict_shows(const chance *of, double n, double m)
{
    for (int i = 0; i < CHANCES; i++) {
        const double variance = of->variance[i];
        if (variance <= 0.0) continue;
        if (!verdict_is_noticed(VERDICT_DIFFERENCE / sqrt(variance), n, m)) return false;
    }
    return n > 0.0;
}

uint64_t verdict_draws_that_show(const chance *of, double others)
{
    enum { MOST_DOUBLINGS = 40 };
    double low = 0.0, high = 1.0;
    for (int i = 0; !verdict_shows(of, high, fmax(others, high)); i++) {
        if (i == MOST_DOUBLINGS) return 0;
        low = high;
        high *= 2.0;
    }
    while (high - low > 1.0) {
        const double middle = floor(0.5 * (low + high));
        *(verdict_shows(of, middle, fmax(others, middle)) ? &high : &low) = middle;
    }
    return (uint64_t)high;
}
