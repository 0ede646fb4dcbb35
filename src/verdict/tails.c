// Rewards that are numbers are compared by their means, with errors that are taken to be normal.
// Where a few of them outweigh all others, as with a Cauchy distribution, they are not: there may
// be no mean, and what the bulk of the rewards says is drowned.
#include "verdict/judging.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

// So many numbers have a mean that is as good as normal: the usual convention.
static const double ENOUGH = 30.0;

// As many rewards as would have to be equally far from their means to scatter as these do:
// (Σ e²)²/Σ e⁴, with e the distance from the mean of the latent state and action.
psi_status verdict_ask_tails(judging *run)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const int32_t *labels = run->result->labels;
    const size_t actions = data->n_actions;
    const size_t pairs = run->result->n_latent * actions;
    double *mean = NULL; // (latent states, A), then Σ e², Σ e⁴
    if (run->rewards->n > 0) return PSI_OK;
    TRY(base_alloc_zero(run->ctx, pairs + 2, sizeof *mean, &mean));
    double *const square = mean + pairs, *const fourth = square + 1;
    for (size_t pass = 0; pass < 2; pass++) {
        TRY(base_take_turn(run->ctx, mean, (pairs + 2) * sizeof *mean));
        for (size_t t = 0; t < data->n_transitions; t++) {
            const int32_t label = labels[run->problem->row[t]];
            if (label < 0) continue;
            const size_t at = (size_t)label * actions + (size_t)data->actions[t];
            const double reward = data->rewards[t] - run->rewards->mean;
            if (pass == 0) {
                mean[at] += reward / (double)run->visits[at];
                continue;
            }
            // in standard deviations of all rewards, so that no fourth power is infinite
            const double e = (reward - mean[at]) * (reward - mean[at]) / run->rewards->variance;
            *square += e;
            *fourth += e * e;
        }
        TRY(base_end_turn(run->ctx, mean, (pairs + 2) * sizeof *mean));
    }
    if (*square * *square < ENOUGH * *fourth) {
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_TAILS, .state = -1, .other = -1}));
    }
done:
    base_free(run->ctx, mean);
    return status;
}
