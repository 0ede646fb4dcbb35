// The transfer study's statistics over seeds, as rliable defines them.
#include "study/transfer.h"

enum { THRESHOLDS = 21 };

// Scores of an agent in tasks first … last, as shares of the optimum where asked.
static psi_status scores_of(psi_ctx *ctx, const transfer_study *transfer, size_t agent,
                            size_t first, size_t last, bool share, double **out)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, (last - first + 1) * transfer->seeds, sizeof **out, out));
    for (size_t task = first; task <= last; task++) {
        for (size_t s = 0; s < transfer->seeds; s++) {
            const double score = transfer_trial(transfer, task, agent, s)->score.reward_per_step;
            (*out)[(task - first) * transfer->seeds + s] =
                share ? score / transfer->optimum[task].reward_per_step : score;
        }
    }
done:
    return status;
}

psi_status study_transfer_iqm(psi_ctx *ctx, const transfer_study *transfer, size_t agent,
                              size_t first, size_t last, bool share, psi_interval *out)
{
    psi_status status = PSI_OK;
    double *scores = NULL;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    TRY(scores_of(ctx, transfer, agent, first, last, share, &scores));
    TRY(psi_scores_iqm(ctx, &(psi_scores){last - first + 1, transfer->seeds, scores}, &how, out));
done:
    base_free(ctx, scores);
    return status;
}

// How probably a run of x beats one of y, in tasks first … last.
psi_status study_transfer_improvement(psi_ctx *ctx, const transfer_study *transfer, size_t x,
                                      size_t y, size_t first, size_t last, psi_interval *out)
{
    psi_status status = PSI_OK;
    double *of_x = NULL, *of_y = NULL;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    const size_t tasks = last - first + 1;
    TRY(scores_of(ctx, transfer, x, first, last, false, &of_x));
    TRY(scores_of(ctx, transfer, y, first, last, false, &of_y));
    TRY(psi_scores_improvement(ctx, &(psi_scores){tasks, transfer->seeds, of_x},
                               &(psi_scores){tasks, transfer->seeds, of_y}, &how, out));
done:
    base_free(ctx, of_x);
    base_free(ctx, of_y);
    return status;
}

psi_status study_transfer_iqms(psi_ctx *ctx, const transfer_study *transfer, json_t *into)
{
    psi_status status = PSI_OK;
    json_t *by_task = json_object(), *together = json_object();
    psi_interval found;
    json_object_set_new(into, "iqm", by_task);
    json_object_set_new(into, "iqm_of_test_tasks_as_share_of_optimum", together);
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        json_t *of_task = json_object();
        json_object_set_new(by_task, STUDY_TRANSFER_TASK_NAMES[task], of_task);
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            if (!transfer_took_part(transfer, task, agent)) continue;
            TRY(study_transfer_iqm(ctx, transfer, agent, task, task, false, &found));
            json_object_set_new(of_task, psi_agent_kind_name((psi_agent_kind)agent),
                                study_interval_json(&found));
        }
    }
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        TRY(study_transfer_iqm(ctx, transfer, agent, 1, TRANSFER_TASKS - 1, true, &found));
        json_object_set_new(together, psi_agent_kind_name((psi_agent_kind)agent),
                            study_interval_json(&found));
    }
done:
    return status;
}

psi_status study_transfer_profiles(psi_ctx *ctx, const transfer_study *transfer, json_t *into)
{
    psi_status status = PSI_OK;
    double thresholds[THRESHOLDS], *scores = NULL;
    psi_interval found[THRESHOLDS];
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    json_t *all = json_object(), *at = json_array();
    json_object_set_new(into, "profiles_of_share_of_optimum", all);
    json_object_set_new(all, "thresholds", at);
    for (size_t i = 0; i < THRESHOLDS; i++) {
        thresholds[i] = (double)i / (THRESHOLDS - 1);
        json_array_append_new(at, json_real(thresholds[i]));
    }
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        json_t *list = json_array();
        json_object_set_new(all, psi_agent_kind_name((psi_agent_kind)agent), list);
        base_free(ctx, scores);
        TRY(scores_of(ctx, transfer, agent, 1, TRANSFER_TASKS - 1, true, &scores));
        TRY(psi_scores_profile(ctx, &(psi_scores){TRANSFER_TASKS - 1, transfer->seeds, scores},
                               thresholds, THRESHOLDS, &how, found));
        for (size_t i = 0; i < THRESHOLDS; i++) {
            json_array_append_new(list, study_interval_json(&found[i]));
        }
    }
done:
    base_free(ctx, scores);
    return status;
}
