// What was seen a few times only, and not every time: an end that two of ten thousand steps came
// to. All of it may be owed to some of the observations that were put into one latent state, and
// the data could not show it.
#include "cluster/judging.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>

// What followed transition t: a latent state, or, after these, a class of rewards; −1: not known.
static int64_t what_followed(const judging *run, size_t t, bool reward)
{
    if (reward) return (int64_t)run->result->n_latent + run->rewards->of[t];
    return run->result->labels[run->problem->row[t] + 1];
}

// How often what followed transition t followed all of its latent state and action.
static uint64_t count_alike(const judging *run, size_t t, bool reward)
{
    const psi_trajectories *data = run->problem->data;
    const int32_t from = run->result->labels[run->problem->row[t]];
    uint64_t n = 0;
    for (size_t i = 0; i < data->n_transitions; i++) {
        n += data->actions[i] == data->actions[t] &&
             run->result->labels[run->problem->row[i]] == from &&
             what_followed(run, i, reward) == what_followed(run, t, reward);
    }
    return n;
}

// n times, all of them in one half of the looks, has a probability of 2^−n by chance. That must be
// small for each of so many ways to halve them as there are leaves.
psi_status judging_ask_seldom(judging *run, size_t n_leaves)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t latent = run->result->n_latent, classes = run->rewards->n;
    const double enough = judging_safe((double)n_leaves) / M_LN2;
    uint64_t *seen = NULL; // (K + classes) times
    uint8_t *said = NULL;
    TRY(base_alloc_zero(run->ctx, latent + classes, sizeof *seen, &seen));
    TRY(base_alloc_zero(run->ctx, latent + classes, sizeof *said, &said));
    for (size_t t = 0; t < data->n_transitions; t++) {
        for (size_t reward = 0; reward < (classes > 1 ? 2 : 1); reward++) {
            const int64_t what = what_followed(run, t, reward == 1);
            if (what >= 0) seen[what]++;
        }
    }
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t from = run->result->labels[run->problem->row[t]];
        for (size_t reward = 0; from >= 0 && reward < (classes > 1 ? 2 : 1); reward++) {
            const int64_t what = what_followed(run, t, reward == 1);
            if (what < 0 || said[what] || (double)seen[what] >= enough) continue;
            const size_t at = (size_t)from * data->n_actions + (size_t)data->actions[t];
            if (count_alike(run, t, reward == 1) == run->visits[at]) continue; // it always follows
            said[what] = 1;
            TRY(judging_doubt(run, (psi_doubt){.kind = PSI_DOUBT_SELDOM,
                                               .state = from,
                                               .other = data->actions[t],
                                               .visits = seen[what]}));
        }
    }
done:
    base_free(run->ctx, said);
    base_free(run->ctx, seen);
    return status;
}
