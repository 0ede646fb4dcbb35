// Whether episodes end by a clock that no observation shows: a time limit that is recorded as an
// end. An end is what followed an observation like any other, and by its latent state alone it may
// come at any time; a limit of 500 steps makes many ends at one age, and none at others.
#include "verdict/judging.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <psifold/evidence.h>

#include <math.h>

// Transitions after so many steps of an episode that may have ended it, or not.
typedef struct age {
    size_t n, ends;
    double alike; // log P(which of them ended it | their latent states and actions)
} age;

// log P(which of them ended it | this age has its own odds, which it shows): each as probable by
// what came before it, with half an end and half of none (Krichevsky and Trofimov).
static double log_clocked(const age *at)
{
    const double ends = (double)at->ends, others = (double)(at->n - at->ends);
    return psi_log_rising(0.5, ends) + psi_log_rising(0.5, others) -
           psi_log_rising(1.0, ends + others);
}

// What every age has, of latent states and actions that do not always end an episode, or never.
static void count_ages(const judging *run, const size_t *ends, age *ages)
{
    const psi_trajectories *data = run->problem->data;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t first = data->episode_offsets[e], last = data->episode_offsets[e + 1];
        for (uint64_t t = first; t < last; t++) {
            const int32_t k = run->result->labels[run->problem->row[t]];
            if (k < 0) continue;
            const size_t pair = (size_t)k * data->n_actions + (size_t)data->actions[t];
            const double odds = (double)ends[pair] / (double)run->visits[pair];
            const bool ended = t + 1 == last && data->terminated[e];
            age *at = &ages[t - first];
            if (ends[pair] == 0 || ends[pair] == run->visits[pair]) continue;
            at->n++;
            at->ends += ended;
            at->alike += log(ended ? odds : 1.0 - odds);
        }
    }
}

static psi_status count_ends(const judging *run, size_t *ends, size_t *longest)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t pairs = run->result->n_latent * data->n_actions;
    int64_t most = 0;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t first = data->episode_offsets[e], last = data->episode_offsets[e + 1];
        const int32_t k = last > first ? run->result->labels[run->problem->row[last - 1]] : -1;
        most = (int64_t)base_max((size_t)most, (size_t)(last - first));
        if (!data->terminated[e] || k < 0) continue;
        ends[(size_t)k * data->n_actions + (size_t)data->actions[last - 1]]++;
    }
    TRY(base_sum_sizes(run->ctx, ends, pairs));
    TRY(base_maximum(run->ctx, &most, 1));
    *longest = (size_t)most;
done:
    return status;
}

// Every age has odds of its own with a probability of one in as many as there are. Under the latent
// states' odds the result is a bet that nobody can expect to win: more than log 1/p nats come with
// a probability of p at most (Ville's inequality). Their odds are those of the data themselves, the
// likeliest, which makes it harder to win.
psi_status verdict_ask_the_clock(judging *run, double allowed, bool *told)
{
    psi_status status = PSI_OK;
    const size_t pairs = run->result->n_latent * run->problem->data->n_actions;
    size_t *ends = NULL, longest, worst = 0;
    age *ages = NULL;
    double nats = 0.0, most = 0.0;
    *told = false;
    if (!run->result->has_terminal) return PSI_OK;
    TRY(base_alloc_zero(run->ctx, pairs, sizeof *ends, &ends));
    TRY(count_ends(run, ends, &longest));
    TRY(base_alloc_zero(run->ctx, longest, sizeof *ages, &ages));
    TRY(base_take_turn(run->ctx, ages, longest * sizeof *ages));
    count_ages(run, ends, ages);
    TRY(base_end_turn(run->ctx, ages, longest * sizeof *ages));
    for (size_t i = 0; i < longest; i++) {
        const double one = 1.0 / (double)longest;
        const double gain = log_clocked(&ages[i]) - ages[i].alike;
        // log((1 − one) + one · exp(gain))
        const double bet = gain > 30.0 ? gain + log(one) : log1p(one * expm1(gain));
        nats += bet;
        if (bet > most) most = bet, worst = i;
    }
    *told = nats > -log(allowed);
    if (*told) {
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_CLOCK,
                                           .state = -1,
                                           .other = -1,
                                           .nats = nats,
                                           .visits = worst + 1}));
    }
done:
    base_free(run->ctx, ages);
    base_free(run->ctx, ends);
    return status;
}
