// What the transfer study comes to: scores per seed, the statistics of rliable, the paper's claims.
#include "cli/transfer.h"

#include "base/file.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum { STREAM_GAIN = 0x67616973, THRESHOLDS = 21 };

// ---- scores, one per seed

typedef json_t *figure_of(const cli_trial *trial);

static json_t *reward_per_step(const cli_trial *t)
{
    return json_real(t->score.reward_per_step);
}
static json_t *area(const cli_trial *t)
{
    return json_real(t->score.area);
}
static json_t *first_solve(const cli_trial *t)
{
    return t->score.solved ? json_integer((json_int_t)t->score.steps_to_first_solve) : json_null();
}
static json_t *truncated(const cli_trial *t)
{
    return json_integer((json_int_t)t->score.truncated);
}
static json_t *diverged(const cli_trial *t)
{
    return json_boolean(t->diverged);
}
static json_t *final_reward_per_step(const cli_trial *t)
{
    return json_real(t->final.reward_per_step);
}
static json_t *steps(const cli_trial *t)
{
    return json_integer((json_int_t)t->score.steps);
}
static json_t *seconds(const cli_trial *t)
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
               {"final_reward_per_step", final_reward_per_step},
               {"steps", steps},
               {"seconds", seconds}};

static bool took_part(const transfer_study *study, size_t task, size_t agent)
{
    return transfer_trial(study, task, agent, 0)->finished;
}

static json_t *figures(const transfer_study *study, figure_of *of)
{
    json_t *all = json_object();
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        json_t *of_task = json_object();
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            if (!took_part(study, task, agent)) continue;
            json_t *list = json_array();
            for (size_t s = 0; s < study->seeds; s++) {
                json_array_append_new(list, of(transfer_trial(study, task, agent, s)));
            }
            json_object_set_new(of_task, psi_agent_kind_name((psi_agent_kind)agent), list);
        }
        json_object_set_new(all, TRANSFER_TASK_NAMES[task], of_task);
    }
    return all;
}

// ---- statistics

// Scores of an agent in tasks first … last, as shares of the optimum where asked.
static psi_status scores_of(cli_call *cli, const transfer_study *study, size_t agent, size_t first,
                            size_t last, bool share, double **out)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(cli->ctx, (last - first + 1) * study->seeds, sizeof **out, out));
    for (size_t task = first; task <= last; task++) {
        for (size_t s = 0; s < study->seeds; s++) {
            const double score = transfer_trial(study, task, agent, s)->score.reward_per_step;
            (*out)[(task - first) * study->seeds + s] =
                share ? score / study->optimum[task].reward_per_step : score;
        }
    }
done:
    return status;
}

static psi_status iqm(cli_call *cli, const transfer_study *study, size_t agent, size_t first,
                      size_t last, bool share, psi_interval *out)
{
    psi_status status = PSI_OK;
    double *scores = NULL;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    TRY(scores_of(cli, study, agent, first, last, share, &scores));
    TRY(psi_scores_iqm(cli->ctx, &(psi_scores){last - first + 1, study->seeds, scores}, &how, out));
done:
    base_free(cli->ctx, scores);
    return status;
}

// How probably a run of x beats one of y, in tasks first … last.
static psi_status improvement(cli_call *cli, const transfer_study *study, size_t x, size_t y,
                              size_t first, size_t last, psi_interval *out)
{
    psi_status status = PSI_OK;
    double *of_x = NULL, *of_y = NULL;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    const size_t tasks = last - first + 1;
    TRY(scores_of(cli, study, x, first, last, false, &of_x));
    TRY(scores_of(cli, study, y, first, last, false, &of_y));
    TRY(psi_scores_improvement(cli->ctx, &(psi_scores){tasks, study->seeds, of_x},
                               &(psi_scores){tasks, study->seeds, of_y}, &how, out));
done:
    base_free(cli->ctx, of_x);
    base_free(cli->ctx, of_y);
    return status;
}

static psi_status all_iqms(cli_call *cli, const transfer_study *study, json_t *into)
{
    psi_status status = PSI_OK;
    json_t *by_task = json_object(), *together = json_object();
    psi_interval found;
    json_object_set_new(into, "iqm", by_task);
    json_object_set_new(into, "iqm_of_test_tasks_as_share_of_optimum", together);
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        json_t *of_task = json_object();
        json_object_set_new(by_task, TRANSFER_TASK_NAMES[task], of_task);
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            if (!took_part(study, task, agent)) continue;
            TRY(iqm(cli, study, agent, task, task, false, &found));
            json_object_set_new(of_task, psi_agent_kind_name((psi_agent_kind)agent),
                                cli_interval_json(&found));
        }
    }
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        TRY(iqm(cli, study, agent, 1, TRANSFER_TASKS - 1, true, &found));
        json_object_set_new(together, psi_agent_kind_name((psi_agent_kind)agent),
                            cli_interval_json(&found));
    }
done:
    return status;
}

static psi_status profiles(cli_call *cli, const transfer_study *study, json_t *into)
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
        base_free(cli->ctx, scores);
        TRY(scores_of(cli, study, agent, 1, TRANSFER_TASKS - 1, true, &scores));
        TRY(psi_scores_profile(cli->ctx, &(psi_scores){TRANSFER_TASKS - 1, study->seeds, scores},
                               thresholds, THRESHOLDS, &how, found));
        for (size_t i = 0; i < THRESHOLDS; i++) {
            json_array_append_new(list, cli_interval_json(&found[i]));
        }
    }
done:
    base_free(cli->ctx, scores);
    return status;
}

// ---- the paper's claims

static void add_claim(cli_call *cli, json_t *claims, const char *claim, bool holds,
                      json_t *evidence)
{
    json_array_append_new(claims, json_pack("{s:s, s:b, s:o}", "claim", claim, "holds", (int)holds,
                                            "evidence", evidence));
    cli_print(cli, "  %-3s %s", holds ? "yes" : "no", claim);
}

// One agent beats another in a task: yes if the interval of the probability lies above one half.
static psi_status claim_order(cli_call *cli, const transfer_study *study, size_t x, size_t y,
                              size_t task, json_t *claims)
{
    psi_status status = PSI_OK;
    psi_interval found;
    char claim[256];
    TRY(improvement(cli, study, x, y, task, task, &found));
    snprintf(claim, sizeof claim, "%s beats %s in %s (probability %.2f [%.2f, %.2f], %zu seeds)",
             psi_agent_kind_name((psi_agent_kind)x), psi_agent_kind_name((psi_agent_kind)y),
             TRANSFER_TASK_NAMES[task], found.estimate, found.low, found.high, study->seeds);
    add_claim(cli, claims, claim, found.low > 0.5, cli_interval_json(&found));
done:
    return status;
}

// IQM of a resampling of one agent's runs in one task.
static psi_status resampled_iqm(cli_call *cli, const transfer_study *study, size_t agent,
                                size_t task, base_random *dice, double *room, double *out)
{
    for (size_t s = 0; s < study->seeds; s++) {
        const size_t run = dice ? base_random_below(dice, (uint32_t)study->seeds) : s;
        room[s] = transfer_trial(study, task, agent, run)->score.reward_per_step;
    }
    return psi_iqm(cli->ctx, room, study->seeds, out);
}

// "Most significant in left-dial-broken": the ratio of the reward-predictive agent's IQM to DQN's
// is largest there; and in how many resamplings of the runs it is.
static psi_status claim_gain(cli_call *cli, const transfer_study *study, json_t *claims)
{
    enum { REPETITIONS = 2000, LEFT = TRANSFER_TASKS - 1 };
    psi_status status = PSI_OK;
    double *room = NULL, ratio[TRANSFER_TASKS];
    size_t largest = 0;
    bool holds = false;
    json_t *ratios = json_object();
    TRY(base_alloc(cli->ctx, study->seeds, sizeof *room, &room));
    for (size_t r = 0; r <= REPETITIONS; r++) {
        base_random dice = base_random_stream(0, STREAM_GAIN, r);
        for (size_t task = 1; task < TRANSFER_TASKS; task++) {
            double ours, theirs;
            base_random *with = r == 0 ? NULL : &dice; // the first time as they are
            TRY(resampled_iqm(cli, study, PSI_AGENT_REWARD_PREDICTIVE, task, with, room, &ours));
            TRY(resampled_iqm(cli, study, PSI_AGENT_DQN, task, with, room, &theirs));
            ratio[task] = theirs > 0 ? ours / theirs : HUGE_VAL;
            if (r == 0) {
                json_object_set_new(ratios, TRANSFER_TASK_NAMES[task],
                                    isfinite(ratio[task]) ? json_real(ratio[task]) : json_null());
            }
        }
        bool here = true;
        for (size_t task = 1; task < LEFT; task++) here = here && ratio[LEFT] > ratio[task];
        if (r == 0) holds = here;
        if (r > 0) largest += here;
    }
    const double share = (double)largest / REPETITIONS;
    char claim[256];
    snprintf(claim, sizeof claim,
             "the gain over dqn is largest in left-dial-broken (%.0f %% of resamplings, %zu seeds)",
             100 * share, study->seeds);
    add_claim(cli, claims, claim, holds && share > 0.5,
              json_pack("{s:O, s:f}", "ratios_of_iqm", ratios, "share_of_resamplings", share));
done:
    json_decref(ratios);
    base_free(cli->ctx, room);
    return status;
}

static psi_status all_claims(cli_call *cli, const transfer_study *study, json_t *into)
{
    psi_status status = PSI_OK;
    json_t *claims = json_array();
    json_object_set_new(into, "claims", claims);
    cli_print(cli, "\nthe paper's claims, and the planner's; yes: the 95 %% interval is above ½");
    for (size_t task = 1; task < TRANSFER_TASKS; task++) {
        TRY(claim_order(cli, study, PSI_AGENT_REWARD_PREDICTIVE, PSI_AGENT_DQN, task, claims));
        TRY(claim_order(cli, study, PSI_AGENT_DQN, PSI_AGENT_PRETRAINED, task, claims));
        TRY(claim_order(cli, study, PSI_AGENT_PLANNER, PSI_AGENT_REWARD_PREDICTIVE, task, claims));
    }
    TRY(claim_gain(cli, study, claims));
done:
    return status;
}

// ---- files and table

static psi_status print_table(cli_call *cli, const transfer_study *study)
{
    psi_status status = PSI_OK;
    char line[256];
    int at = snprintf(line, sizeof line, "%-18s", "reward per step");
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        at += snprintf(line + at, sizeof line - (size_t)at, " %26s", TRANSFER_TASK_NAMES[task]);
    }
    cli_print(cli, "%s, %zu seeds, %zu episodes, %s\n%s", study->scale, study->seeds,
              study->episodes, study->net, line);
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        at = snprintf(line, sizeof line, "%-18s", psi_agent_kind_name((psi_agent_kind)agent));
        for (size_t task = 0; task < TRANSFER_TASKS; task++) {
            char cell[64] = "";
            if (took_part(study, task, agent)) {
                psi_interval found;
                TRY(iqm(cli, study, agent, task, task, false, &found));
                snprintf(cell, sizeof cell, "%.4f [%.4f, %.4f]", found.estimate, found.low,
                         found.high);
            }
            at += snprintf(line + at, sizeof line - (size_t)at, " %26s", cell);
        }
        cli_print(cli, "%s", line);
    }
    at = snprintf(line, sizeof line, "%-18s", "optimum");
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        at += snprintf(line + at, sizeof line - (size_t)at, " %26.4f",
                       study->optimum[task].reward_per_step);
    }
    cli_print(cli, "%s", line);
done:
    return status;
}

static psi_status write_curves(cli_call *cli, const transfer_study *study, const char *path)
{
    static const char HEAD[] = "task,agent,seed,episode,steps,total_steps,reward,truncated\n";
    psi_status status = PSI_OK;
    base_output *output = NULL;
    TRY(base_output_open(cli->ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, HEAD, sizeof HEAD - 1));
    for (size_t i = 0; i < (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * study->seeds; i++) {
        const cli_trial *trial = &study->trials[i];
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

psi_status transfer_report(cli_call *cli, const transfer_study *study, const char *folder)
{
    psi_status status = PSI_OK;
    char *scores = NULL, *curves = NULL;
    json_t *statistics = json_object(), *optima = json_object();
    TRY(base_join(cli->ctx, folder, "scores.json", &scores));
    TRY(base_join(cli->ctx, folder, "curves.csv", &curves));
    TRY(write_curves(cli, study, curves));
    TRY(cli_set(cli, "scale", json_string(study->scale)));
    TRY(cli_set(cli, "network", json_string(study->net)));
    TRY(cli_set(cli, "seeds", json_integer((json_int_t)study->seeds)));
    TRY(cli_set(cli, "episodes", json_integer((json_int_t)study->episodes)));
    TRY(cli_set(cli, "representation", json_string(study->representation)));
    for (size_t i = 0; i < CLI_COUNT(FIGURES); i++) {
        TRY(cli_set(cli, FIGURES[i].name, figures(study, FIGURES[i].of)));
    }
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        json_object_set_new(optima, TRANSFER_TASK_NAMES[task],
                            json_real(study->optimum[task].reward_per_step));
    }
    TRY(cli_set(cli, "optimum", json_incref(optima)));
    TRY(print_table(cli, study));
    TRY(all_iqms(cli, study, statistics));
    TRY(profiles(cli, study, statistics));
    TRY(all_claims(cli, study, statistics));
    TRY(cli_set(cli, "statistics", json_incref(statistics)));
    TRY(base_json_save(cli->ctx, scores, cli->result));
done:
    base_free(cli->ctx, scores);
    base_free(cli->ctx, curves);
    json_decref(statistics);
    json_decref(optima);
    return status;
}
