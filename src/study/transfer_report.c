// What the transfer study comes to, in files and as a table: every score of every seed.
#include "study/transfer.h"

#include "base/file.h"

#include <stdio.h>

// ---- scores, one per seed

typedef json_t *figure_of(const psi_trial *trial);

static json_t *reward_per_step(const psi_trial *t)
{
    return json_real(t->score.reward_per_step);
}
static json_t *area(const psi_trial *t)
{
    return json_real(t->score.area);
}
static json_t *first_solve(const psi_trial *t)
{
    return t->score.solved ? json_integer((json_int_t)t->score.steps_to_first_solve) : json_null();
}
static json_t *truncated(const psi_trial *t)
{
    return json_integer((json_int_t)t->score.truncated);
}
static json_t *diverged(const psi_trial *t)
{
    return json_boolean(t->diverged);
}
static json_t *not_played(const psi_trial *t)
{
    return json_integer((json_int_t)t->not_played);
}
static json_t *final_reward_per_step(const psi_trial *t)
{
    return json_real(t->final.reward_per_step);
}
static json_t *steps(const psi_trial *t)
{
    return json_integer((json_int_t)t->score.steps);
}
static json_t *seconds(const psi_trial *t)
{
    return json_real(t->seconds);
}

static const struct {
    const char *name;
    figure_of *of;
} FIGURES[] = {{"reward_per_step", reward_per_step},
               {"steps_to_first_solve", first_solve},
               {"area_under_curve", area},
               {"truncated", truncated},
               {"diverged", diverged},
               {"not_played", not_played},
               {"final_reward_per_step", final_reward_per_step},
               {"steps", steps},
               {"seconds", seconds}};

static json_t *figures(const transfer_study *transfer, figure_of *of)
{
    json_t *all = json_object();
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        json_t *of_task = json_object();
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            if (!transfer_took_part(transfer, task, agent)) continue;
            json_t *list = json_array();
            for (size_t s = 0; s < transfer->seeds; s++) {
                json_array_append_new(list, of(transfer_trial(transfer, task, agent, s)));
            }
            json_object_set_new(of_task, psi_agent_kind_name((psi_agent_kind)agent), list);
        }
        json_object_set_new(all, STUDY_TRANSFER_TASK_NAMES[task], of_task);
    }
    return all;
}

// ---- files and table

static psi_status print_table(study *of, const transfer_study *transfer)
{
    psi_ctx *ctx = of->ctx;
    psi_status status = PSI_OK;
    char line[256];
    int at = snprintf(line, sizeof line, "%-18s", "reward per step");
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        at +=
            snprintf(line + at, sizeof line - (size_t)at, " %26s", STUDY_TRANSFER_TASK_NAMES[task]);
    }
    study_prints(of, "%s, %zu seeds, %zu episodes, %s\n%s", study_scale_name(of), transfer->seeds,
                 transfer->episodes, psi_net_kind_name(transfer->net), line);
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        at = snprintf(line, sizeof line, "%-18s", psi_agent_kind_name((psi_agent_kind)agent));
        for (size_t task = 0; task < TRANSFER_TASKS; task++) {
            char cell[64] = "";
            if (transfer_took_part(transfer, task, agent)) {
                psi_interval found;
                TRY(study_transfer_iqm(ctx, transfer, agent, task, task, false, &found));
                snprintf(cell, sizeof cell, "%.4f [%.4f, %.4f]", found.estimate, found.low,
                         found.high);
            }
            at += snprintf(line + at, sizeof line - (size_t)at, " %26s", cell);
        }
        study_prints(of, "%s", line);
    }
    at = snprintf(line, sizeof line, "%-18s", "optimum");
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        at += snprintf(line + at, sizeof line - (size_t)at, " %26.4f",
                       transfer->optimum[task].reward_per_step);
    }
    study_prints(of, "%s", line);
done:
    return status;
}

// How many runs were stopped, since they had forgotten their task.
static psi_status count_forgotten(study *of, const transfer_study *transfer)
{
    psi_status status = PSI_OK;
    size_t forgot = 0, left_out = 0;
    for (size_t i = 0; i < (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * transfer->seeds; i++) {
        forgot += transfer->trials[i].not_played > 0;
        left_out += transfer->trials[i].not_played;
    }
    if (forgot > 0) {
        study_prints(of, "runs that had forgotten their task: %zu, %zu episodes were not played",
                     forgot, left_out);
    }
    TRY(study_set(of, "forgot", json_integer((json_int_t)forgot)));
done:
    return status;
}

static psi_status write_curves(psi_ctx *ctx, const transfer_study *transfer, const char *path)
{
    static const char HEAD[] = "task,agent,seed,episode,steps,total_steps,reward,truncated\n";
    psi_status status = PSI_OK;
    base_output *output = NULL;
    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, HEAD, sizeof HEAD - 1));
    for (size_t i = 0; i < (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * transfer->seeds; i++) {
        const psi_trial *trial = &transfer->trials[i];
        unsigned long long total = 0;
        for (size_t e = 0; e < trial->n_curve; e++) {
            const psi_agent_episode *episode = &trial->curve[e];
            char line[256];
            total += episode->steps;
            const int length = snprintf(
                line, sizeof line, "%s,%s,%llu,%zu,%llu,%llu,%.17g,%d\n", trial->task.preset,
                psi_agent_kind_name(trial->options.kind), (unsigned long long)trial->options.seed,
                e + 1, (unsigned long long)episode->steps, total, episode->reward,
                episode->truncated);
            TRY(base_output_write(output, line, (size_t)length));
        }
    }
    base_output *whole = output;
    output = NULL;
    TRY(base_output_commit(whole));
done:
    base_output_discard(output);
    return status;
}

static json_t *optima(const transfer_study *transfer)
{
    json_t *all = json_object();
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        json_object_set_new(all, STUDY_TRANSFER_TASK_NAMES[task],
                            json_real(transfer->optimum[task].reward_per_step));
    }
    return all;
}

static psi_status write_scores(study *of, const transfer_study *transfer, json_t *statistics)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *scores = json_pack(
        "{s:s, s:s, s:I, s:I, s:s}", "scale", study_scale_name(of), "network",
        psi_net_kind_name(transfer->net), "seeds", (json_int_t)transfer->seeds, "episodes",
        (json_int_t)transfer->episodes, "representation", transfer->representation);
    TRY(base_json_made(of->ctx, scores));
    for (size_t i = 0; i < COUNT(FIGURES); i++) {
        json_object_set_new(scores, FIGURES[i].name, figures(transfer, FIGURES[i].of));
    }
    json_object_set_new(scores, "optimum", optima(transfer));
    json_object_set(scores, "statistics", statistics);
    TRY(study_path(of, "scores.json", &path));
    TRY(base_json_save(of->ctx, path, scores));
done:
    base_free(of->ctx, path);
    json_decref(scores);
    return status;
}

psi_status study_transfer_report(study *of, const transfer_study *transfer)
{
    psi_status status = PSI_OK;
    char *curves = NULL;
    json_t *statistics = json_object();
    TRY(study_path(of, "curves.csv", &curves));
    TRY(write_curves(of->ctx, transfer, curves));
    TRY(print_table(of, transfer));
    TRY(count_forgotten(of, transfer));
    TRY(study_transfer_iqms(of->ctx, transfer, statistics));
    TRY(study_transfer_profiles(of->ctx, transfer, statistics));
    TRY(study_transfer_claims(of, transfer, statistics));
    TRY(write_scores(of, transfer, statistics));
    TRY(study_set(of, "optimum", optima(transfer)));
    TRY(study_set(of, "iqm", json_incref(json_object_get(statistics, "iqm"))));
    TRY(study_file(of, "scores.json", "every score of every seed, and the statistics over them"));
    TRY(study_file(of, "curves.csv", "every episode of every agent: steps, reward"));
done:
    base_free(of->ctx, curves);
    json_decref(statistics);
    return status;
}
