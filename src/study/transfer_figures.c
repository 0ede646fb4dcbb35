// The figures of the transfer study: scores as bars, learning curves with bands.
#include "study/transfer.h"

#include "base/checked.h"

#include <math.h>

enum { WINDOW = 10 }; // episodes that a point of a learning curve looks back on

static const psi_agent_kind LEARNERS[] = {PSI_AGENT_DQN, PSI_AGENT_PRETRAINED,
                                          PSI_AGENT_REWARD_PREDICTIVE, PSI_AGENT_PLANNER};
enum { N_LEARNERS = COUNT(LEARNERS) };

// ---- bars

static psi_status draw_scores(study *of, const transfer_study *transfer)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const size_t seeds = transfer->seeds;
    double *values = NULL, optimum[TRANSFER_TASKS];
    const char *agents[TRANSFER_AGENTS];
    TRY(base_alloc(ctx, (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * seeds, sizeof *values, &values));
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        agents[agent] = psi_agent_kind_name((psi_agent_kind)agent);
        for (size_t task = 0; task < TRANSFER_TASKS; task++) {
            const bool there = transfer_took_part(transfer, task, agent);
            for (size_t s = 0; s < seeds; s++) {
                values[(task * TRANSFER_AGENTS + agent) * seeds + s] =
                    there ? transfer_trial(transfer, task, agent, s)->score.reward_per_step
                          : (double)NAN;
            }
        }
    }
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        optimum[task] = transfer->optimum[task].reward_per_step;
    }
    const psi_figure at = {of->folder, "scores", NULL, "reward per step"};
    TRY(psi_figure_scores(ctx, &at, TRANSFER_TASKS, TRANSFER_AGENTS, seeds, values,
                          STUDY_TRANSFER_TASK_NAMES, agents,
                          &(psi_figure_line){"optimum", optimum}));
    TRY(study_wide_figure(of, "scores", "Bars of reward per step for every task and agent",
                          "Reward per step over all episodes, exploration included (6c): means, "
                          "with every seed as a dot. The dashed lines are what the best policy "
                          "earns. Tabular sees the true latent states of the task it is in."));
done:
    base_free(ctx, values);
    return status;
}

// ---- learning curves

// Reward per step of the last episodes. A run that diverged stays where it ended.
static double lately(const psi_trial *trial, size_t episode)
{
    double reward = 0.0, steps = 0.0;
    if (trial->n_curve == 0) return 0.0;
    const size_t last = base_min(episode, trial->n_curve - 1);
    for (size_t e = last + 1 - base_min(WINDOW, last + 1); e <= last; e++) {
        reward += trial->curve[e].reward;
        steps += (double)trial->curve[e].steps;
    }
    return steps > 0.0 ? reward / steps : 0.0;
}

// The interquartile mean over seeds with its interval at every episode: three rows of numbers.
static psi_status curve_of(study *of, const transfer_study *transfer, size_t task, size_t agent,
                           double *mean, double *low, double *high)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    double *scores = NULL;
    psi_interval found;
    TRY(base_alloc(ctx, transfer->seeds, sizeof *scores, &scores));
    for (size_t e = 0; e < transfer->episodes; e++) {
        for (size_t s = 0; s < transfer->seeds; s++) {
            scores[s] = lately(transfer_trial(transfer, task, agent, s), e);
        }
        TRY(psi_scores_iqm(ctx, &(psi_scores){1, transfer->seeds, scores}, &how, &found));
        mean[e] = found.estimate;
        low[e] = found.low;
        high[e] = found.high;
    }
done:
    base_free(ctx, scores);
    return status;
}

static psi_status draw_curves(study *of, const transfer_study *transfer, size_t task)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const size_t n = transfer->episodes;
    double *rows = NULL;
    const char *names[N_LEARNERS];
    char name[64], alt[128], caption[256];
    TRY(base_alloc(ctx, (1 + 3 * N_LEARNERS) * n, sizeof *rows, &rows));
    double *const x = rows, *const mean = x + n, *const low = mean + N_LEARNERS * n,
                  *const high = low + N_LEARNERS * n;
    for (size_t e = 0; e < n; e++) x[e] = (double)(e + 1);
    for (size_t i = 0; i < N_LEARNERS; i++) {
        names[i] = psi_agent_kind_name(LEARNERS[i]);
        TRY(curve_of(of, transfer, task, LEARNERS[i], mean + i * n, low + i * n, high + i * n));
    }
    snprintf(name, sizeof name, "curves-%s", STUDY_TRANSFER_TASK_NAMES[task]);
    const psi_figure at = {of->folder, name, "episode", "reward per step"};
    const psi_figure_line optimum = {"optimum", &transfer->optimum[task].reward_per_step};
    TRY(psi_figure_curves(ctx, &at, N_LEARNERS, n, x, mean, low, high, names, &optimum));
    snprintf(alt, sizeof alt, "Learning curves of %d agents in %s", N_LEARNERS,
             STUDY_TRANSFER_TASK_NAMES[task]);
    snprintf(caption, sizeof caption,
             "Learning %s: reward per step of the last %d episodes, interquartile mean over %zu "
             "seeds with its 95 %% bootstrap interval.",
             STUDY_TRANSFER_TASK_NAMES[task], WINDOW, transfer->seeds);
    TRY(study_figure(of, name, alt, caption));
done:
    base_free(ctx, rows);
    return status;
}

psi_status study_transfer_figures(study *of, const transfer_study *transfer)
{
    psi_status status = PSI_OK;
    TRY(draw_scores(of, transfer));
    for (size_t task = 1; task < TRANSFER_TASKS; task++) TRY(draw_curves(of, transfer, task));
done:
    return status;
}
