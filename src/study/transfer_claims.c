// The paper's claims about transfer, each with the probability that it rests on.
#include "study/transfer.h"

#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STREAM_GAIN = 0x67616973, LEFT_BROKEN = TRANSFER_TASKS - 1 };

// Into the results of the study, and with the evidence as numbers into scores.json. Takes over the
// evidence.
static psi_status add_claim(study *of, json_t *claims, const char *claim, const char *paper,
                            bool holds, const char *ours, json_t *evidence)
{
    char both[384];
    snprintf(both, sizeof both, "%s (%s)", claim, ours);
    json_array_append_new(claims, json_pack("{s:s, s:b, s:o}", "claim", both, "holds", (int)holds,
                                            "evidence", evidence));
    return study_claim(of, claim, paper, holds, "%s", ours);
}

// One agent beats another in a task: yes if the interval of the probability lies above one half.
static psi_status claim_order(study *of, const transfer_study *transfer, size_t x, size_t y,
                              size_t task, const char *paper, json_t *claims)
{
    psi_status status = PSI_OK;
    psi_interval found, of_x, of_y;
    char claim[128], ours[192];
    TRY(study_transfer_improvement(of->ctx, transfer, x, y, task, task, &found));
    TRY(study_transfer_iqm(of->ctx, transfer, x, task, task, false, &of_x));
    TRY(study_transfer_iqm(of->ctx, transfer, y, task, task, false, &of_y));
    snprintf(claim, sizeof claim, "%s beats %s in %s", psi_agent_kind_name((psi_agent_kind)x),
             psi_agent_kind_name((psi_agent_kind)y), STUDY_TRANSFER_TASK_NAMES[task]);
    snprintf(ours, sizeof ours, "probability %.2f [%.2f, %.2f], %zu seeds; %.4f and %.4f a step",
             found.estimate, found.low, found.high, transfer->seeds, of_x.estimate, of_y.estimate);
    TRY(add_claim(of, claims, claim, paper, found.low > 0.5, ours, study_interval_json(&found)));
done:
    return status;
}

// IQM of a resampling of one agent's runs in one task.
static psi_status resampled_iqm(psi_ctx *ctx, const transfer_study *transfer, size_t agent,
                                size_t task, base_random *dice, double *room, double *out)
{
    for (size_t s = 0; s < transfer->seeds; s++) {
        const size_t run = dice ? base_random_below(dice, (uint32_t)transfer->seeds) : s;
        room[s] = transfer_trial(transfer, task, agent, run)->score.reward_per_step;
    }
    return psi_iqm(ctx, room, transfer->seeds, out);
}

// How many times as much as DQN the reward-predictive agent earns in each test task, by IQM.
// Nothing is once nothing.
static psi_status gains(psi_ctx *ctx, const transfer_study *transfer, base_random *dice,
                        double *room, double ratio[TRANSFER_TASKS])
{
    psi_status status = PSI_OK;
    for (size_t task = 1; task < TRANSFER_TASKS; task++) {
        double ours, theirs;
        TRY(resampled_iqm(ctx, transfer, PSI_AGENT_REWARD_PREDICTIVE, task, dice, room, &ours));
        TRY(resampled_iqm(ctx, transfer, PSI_AGENT_DQN, task, dice, room, &theirs));
        ratio[task] = theirs > 0 ? ours / theirs : ours > 0 ? HUGE_VAL : 1.0;
    }
done:
    return status;
}

// The gain in left-dial-broken as a multiple of the largest elsewhere.
static double lead_of(const double ratio[TRANSFER_TASKS])
{
    double elsewhere = 0.0;
    for (size_t task = 1; task < LEFT_BROKEN; task++) elsewhere = fmax(elsewhere, ratio[task]);
    return ratio[LEFT_BROKEN] == elsewhere ? 1.0 : ratio[LEFT_BROKEN] / elsewhere;
}

// Between percentiles of leads with resampled runs, as psi_scores_iqm does.
static psi_status resample_leads(psi_ctx *ctx, const transfer_study *transfer, double *room,
                                 psi_interval *lead, double *share)
{
    enum { REPETITIONS = 2000 };
    psi_status status = PSI_OK;
    double *leads = NULL, ratio[TRANSFER_TASKS];
    size_t above = 0;
    TRY(base_alloc(ctx, REPETITIONS, sizeof *leads, &leads));
    for (size_t r = 0; r < REPETITIONS; r++) {
        base_random dice = base_random_stream(0, STREAM_GAIN, r + 1);
        TRY(gains(ctx, transfer, &dice, room, ratio));
        leads[r] = lead_of(ratio);
        above += leads[r] > 1.0;
    }
    qsort(leads, REPETITIONS, sizeof *leads, study_ascending);
    lead->low = leads[REPETITIONS * 25 / 1000];
    lead->high = leads[REPETITIONS * 975 / 1000 - 1];
    *share = (double)above / REPETITIONS;
done:
    base_free(ctx, leads);
    return status;
}

// "Most significant in left-dial-broken": the ratio of the reward-predictive agent's IQM to DQN's
// is largest there; yes if it is in 97.5 % of resamplings of the runs.
static psi_status claim_gain(study *of, const transfer_study *transfer, json_t *claims)
{
    psi_status status = PSI_OK;
    double *room = NULL, ratio[TRANSFER_TASKS], share;
    psi_interval lead;
    char ours[256];
    json_t *ratios = json_object();
    TRY(base_alloc(of->ctx, transfer->seeds, sizeof *room, &room));
    TRY(gains(of->ctx, transfer, NULL, room, ratio));
    lead.estimate = lead_of(ratio);
    TRY(resample_leads(of->ctx, transfer, room, &lead, &share));
    for (size_t task = 1; task < TRANSFER_TASKS; task++) {
        json_object_set_new(ratios, STUDY_TRANSFER_TASK_NAMES[task], base_json_real(ratio[task]));
    }
    snprintf(ours, sizeof ours,
             "%.2f times dqn's there, %.2f in swap-digits, %.2f in reversed-dial; %.2f [%.2f, "
             "%.2f] of the largest elsewhere, %zu seeds",
             ratio[LEFT_BROKEN], ratio[1], ratio[2], lead.estimate, lead.low, lead.high,
             transfer->seeds);
    TRY(add_claim(of, claims, "the gain over dqn is largest in left-dial-broken",
                  "even more significant than in the other two", lead.low > 1.0, ours,
                  json_pack("{s:O, s:f, s:o, s:o, s:o}", "ratios_of_iqm", ratios,
                            "share_of_resamplings", share, "lead", base_json_real(lead.estimate),
                            "lead_low", base_json_real(lead.low), "lead_high",
                            base_json_real(lead.high))));
done:
    json_decref(ratios);
    base_free(of->ctx, room);
    return status;
}

psi_status study_transfer_claims(study *of, const transfer_study *transfer, json_t *into)
{
    static const struct {
        psi_agent_kind x, y;
        const char *paper;
    } ORDER[] = {
        {PSI_AGENT_REWARD_PREDICTIVE, PSI_AGENT_DQN, "outperforms the other two, 20 seeds"},
        {PSI_AGENT_REWARD_PREDICTIVE, PSI_AGENT_PRETRAINED, "outperforms the other two, 20 seeds"},
        {PSI_AGENT_DQN, PSI_AGENT_PRETRAINED, "a random start would be more efficient"},
        {PSI_AGENT_PLANNER, PSI_AGENT_REWARD_PREDICTIVE, "not in the paper"},
    };
    psi_status status = PSI_OK;
    json_t *claims = json_array();
    json_object_set_new(into, "claims", claims);
    for (size_t task = 1; task < TRANSFER_TASKS; task++) {
        for (size_t i = 0; i < COUNT(ORDER); i++) {
            TRY(claim_order(of, transfer, ORDER[i].x, ORDER[i].y, task, ORDER[i].paper, claims));
        }
    }
    TRY(claim_gain(of, transfer, claims));
done:
    return status;
}
