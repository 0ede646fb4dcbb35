// One latent state, beside the terminal one, says that nothing that is seen matters. No other one
// is there to say how far apart latent states are, so that nothing may have been told apart because
// little was seen. Were half of what is seen another latent state, whichever half that is, each
// action would have to show it.
#include "verdict/judging.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <math.h>

// What followed an action.
typedef struct followed {
    double n, ends;
    double first, low, high; // rewards
    double sum, square;      // of rewards, less the first
} followed;

static void count(const judging *run, int32_t state, followed *of)
{
    const psi_trajectories *data = run->problem->data;
    for (size_t e = 0; e < data->n_episodes; e++) {
        for (uint64_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            if (run->result->labels[run->problem->row[t]] != state) continue;
            followed *at = &of[data->actions[t]];
            const double reward = data->rewards[t];
            if (at->n++ == 0.0) at->first = at->low = at->high = reward;
            at->low = fmin(at->low, reward);
            at->high = fmax(at->high, reward);
            at->sum += reward - at->first;
            at->square += (reward - at->first) * (reward - at->first);
            at->ends += t + 1 == data->episode_offsets[e + 1] && data->terminated[e];
        }
    }
}

// Whether n draws would have shown that half of them are of another latent state: by the odds of an
// end, or by mean rewards, in parts of their range where they are classes, else of their deviation.
static bool would_show(const judging *run, const followed *of, double n)
{
    const double odds = of->ends / of->n;
    const double variance = (of->square - of->sum * of->sum / of->n) / fmax(of->n - 1.0, 1.0);
    const double scale = run->rewards->n == 0 ? sqrt(run->rewards->variance) : of->high - of->low;
    if (of->ends > 0.0 && of->ends < of->n &&
        !verdict_is_noticed(VERDICT_DIFFERENCE / sqrt(verdict_variance_near(odds)), 0.5 * n,
                            0.5 * n)) {
        return false;
    }
    if (of->high <= of->low) return true;
    return verdict_is_noticed(VERDICT_DIFFERENCE * scale / sqrt(variance), 0.5 * n, 0.5 * n);
}

psi_status verdict_ask_one_state(judging *run)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    followed *of = NULL;
    if (run->result->n_latent != (size_t)first + 1) return PSI_OK;
    TRY(base_alloc_zero(run->ctx, actions, sizeof *of, &of));
    TRY(base_take_turn(run->ctx, of, actions * sizeof *of));
    count(run, first, of);
    TRY(base_end_turn(run->ctx, of, actions * sizeof *of));
    for (size_t a = 0; a < actions; a++) {
        double enough = of[a].n;
        if (of[a].n == 0.0 || would_show(run, &of[a], of[a].n)) continue;
        while (enough < 1e15 && !would_show(run, &of[a], enough)) enough *= 1.01;
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_RARE,
                                           .state = first,
                                           .other = (int32_t)a,
                                           .visits = (uint64_t)of[a].n,
                                           .enough = verdict_enough(enough)}));
    }
done:
    base_free(run->ctx, of);
    return status;
}
