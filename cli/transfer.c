// What the transfer study comes to: scores per seed, the statistics of rliable, the paper's claims.
#include "cli/transfer.h"

#include "base/file.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_GAIN = 0x67616973, THRESHOLDS = 21, LEFT_BROKEN = TRANSFER_TASKS - 1 };

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
        json_object_set_new(all, TRANSFER_TASK_NAMES[task], of_task);
    }
    return all;
}

// ---- statistics

// Scores of an agent in tasks first … last, as shares of the optimum where asked.
static psi_status scores_of(cli_call *cli, const transfer_study *transfer, size_t agent,
                            size_t first, size_t last, bool share, double **out)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(cli->ctx, (last - first + 1) * transfer->seeds, sizeof **out, out));
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

static psi_status iqm(cli_call *cli, const transfer_study *transfer, size_t agent, size_t first,
                      size_t last, bool share, psi_interval *out)
{
    psi_status status = PSI_OK;
    double *scores = NULL;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    TRY(scores_of(cli, transfer, agent, first, last, share, &scores));
    TRY(psi_scores_iqm(cli->ctx, &(psi_scores){last - first + 1, transfer->seeds, scores}, &how,
                       out));
done:
    base_free(cli->ctx, scores);
    return status;
}

// How probably a run of x beats one of y, in tasks first … last.
static psi_status improvement(cli_call *cli, const transfer_study *transfer, size_t x, size_t y,
                              size_t first, size_t last, psi_interval *out)
{
    psi_status status = PSI_OK;
    double *of_x = NULL, *of_y = NULL;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    const size_t tasks = last - first + 1;
    TRY(scores_of(cli, transfer, x, first, last, false, &of_x));
    TRY(scores_of(cli, transfer, y, first, last, false, &of_y));
    TRY(psi_scores_improvement(cli->ctx, &(psi_scores){tasks, transfer->seeds, of_x},
                               &(psi_scores){tasks, transfer->seeds, of_y}, &how, out));
done:
    base_free(cli->ctx, of_x);
    base_free(cli->ctx, of_y);
    return status;
}

static psi_status all_iqms(cli_call *cli, const transfer_study *transfer, json_t *into)
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
            if (!transfer_took_part(transfer, task, agent)) continue;
            TRY(iqm(cli, transfer, agent, task, task, false, &found));
            json_object_set_new(of_task, psi_agent_kind_name((psi_agent_kind)agent),
                                cli_interval_json(&found));
        }
    }
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        TRY(iqm(cli, transfer, agent, 1, TRANSFER_TASKS - 1, true, &found));
        json_object_set_new(together, psi_agent_kind_name((psi_agent_kind)agent),
                            cli_interval_json(&found));
    }
done:
    return status;
}

static psi_status profiles(cli_call *cli, const transfer_study *transfer, json_t *into)
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
        TRY(scores_of(cli, transfer, agent, 1, TRANSFER_TASKS - 1, true, &scores));
        TRY(psi_scores_profile(cli->ctx, &(psi_scores){TRANSFER_TASKS - 1, transfer->seeds, scores},
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
    TRY(improvement(of->cli, transfer, x, y, task, task, &found));
    TRY(iqm(of->cli, transfer, x, task, task, false, &of_x));
    TRY(iqm(of->cli, transfer, y, task, task, false, &of_y));
    snprintf(claim, sizeof claim, "%s beats %s in %s", psi_agent_kind_name((psi_agent_kind)x),
             psi_agent_kind_name((psi_agent_kind)y), TRANSFER_TASK_NAMES[task]);
    snprintf(ours, sizeof ours, "probability %.2f [%.2f, %.2f], %zu seeds; %.4f and %.4f a step",
             found.estimate, found.low, found.high, transfer->seeds, of_x.estimate, of_y.estimate);
    TRY(add_claim(of, claims, claim, paper, found.low > 0.5, ours, cli_interval_json(&found)));
done:
    return status;
}

// IQM of a resampling of one agent's runs in one task.
static psi_status resampled_iqm(cli_call *cli, const transfer_study *transfer, size_t agent,
                                size_t task, base_random *dice, double *room, double *out)
{
    for (size_t s = 0; s < transfer->seeds; s++) {
        const size_t run = dice ? base_random_below(dice, (uint32_t)transfer->seeds) : s;
        room[s] = transfer_trial(transfer, task, agent, run)->score.reward_per_step;
    }
    return psi_iqm(cli->ctx, room, transfer->seeds, out);
}

// How many times as much as DQN the reward-predictive agent earns in each test task, by IQM.
// Nothing is once nothing.
static psi_status gains(cli_call *cli, const transfer_study *transfer, base_random *dice,
                        double *room, double ratio[TRANSFER_TASKS])
{
    psi_status status = PSI_OK;
    for (size_t task = 1; task < TRANSFER_TASKS; task++) {
        double ours, theirs;
        TRY(resampled_iqm(cli, transfer, PSI_AGENT_REWARD_PREDICTIVE, task, dice, room, &ours));
        TRY(resampled_iqm(cli, transfer, PSI_AGENT_DQN, task, dice, room, &theirs));
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

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static json_t *number_or_null(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

// Between percentiles of leads with resampled runs, as psi_scores_iqm does.
static psi_status resample_leads(cli_call *cli, const transfer_study *transfer, double *room,
                                 psi_interval *lead, double *share)
{
    enum { REPETITIONS = 2000 };
    psi_status status = PSI_OK;
    double *leads = NULL, ratio[TRANSFER_TASKS];
    size_t above = 0;
    TRY(base_alloc(cli->ctx, REPETITIONS, sizeof *leads, &leads));
    for (size_t r = 0; r < REPETITIONS; r++) {
        base_random dice = base_random_stream(0, STREAM_GAIN, r + 1);
        TRY(gains(cli, transfer, &dice, room, ratio));
        leads[r] = lead_of(ratio);
        above += leads[r] > 1.0;
    }
    qsort(leads, REPETITIONS, sizeof *leads, ascending);
    lead->low = leads[REPETITIONS * 25 / 1000];
    lead->high = leads[REPETITIONS * 975 / 1000 - 1];
    *share = (double)above / REPETITIONS;
done:
    base_free(cli->ctx, leads);
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
    TRY(base_alloc(of->cli->ctx, transfer->seeds, sizeof *room, &room));
    TRY(gains(of->cli, transfer, NULL, room, ratio));
    lead.estimate = lead_of(ratio);
    TRY(resample_leads(of->cli, transfer, room, &lead, &share));
    for (size_t task = 1; task < TRANSFER_TASKS; task++) {
        json_object_set_new(ratios, TRANSFER_TASK_NAMES[task], number_or_null(ratio[task]));
    }
    snprintf(ours, sizeof ours,
             "%.2f times dqn's there, %.2f in swap-digits, %.2f in reversed-dial; %.2f [%.2f, "
             "%.2f] of the largest elsewhere, %zu seeds",
             ratio[LEFT_BROKEN], ratio[1], ratio[2], lead.estimate, lead.low, lead.high,
             transfer->seeds);
    TRY(add_claim(of, claims, "the gain over dqn is largest in left-dial-broken",
                  "even more significant than in the other two", lead.low > 1.0, ours,
                  json_pack("{s:O, s:f, s:o, s:o, s:o}", "ratios_of_iqm", ratios,
                            "share_of_resamplings", share, "lead", number_or_null(lead.estimate),
                            "lead_low", number_or_null(lead.low), "lead_high",
                            number_or_null(lead.high))));
done:
    json_decref(ratios);
    base_free(of->cli->ctx, room);
    return status;
}

static psi_status all_claims(study *of, const transfer_study *transfer, json_t *into)
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
        for (size_t i = 0; i < CLI_COUNT(ORDER); i++) {
            TRY(claim_order(of, transfer, ORDER[i].x, ORDER[i].y, task, ORDER[i].paper, claims));
        }
    }
    TRY(claim_gain(of, transfer, claims));
done:
    return status;
}

// ---- files and table

static psi_status print_table(study *of, const transfer_study *transfer)
{
    cli_call *cli = of->cli;
    psi_status status = PSI_OK;
    char line[256];
    int at = snprintf(line, sizeof line, "%-18s", "reward per step");
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        at += snprintf(line + at, sizeof line - (size_t)at, " %26s", TRANSFER_TASK_NAMES[task]);
    }
    cli_print(cli, "%s, %zu seeds, %zu episodes, %s\n%s", of->scale_name, transfer->seeds,
              transfer->episodes, psi_net_kind_name(transfer->net), line);
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        at = snprintf(line, sizeof line, "%-18s", psi_agent_kind_name((psi_agent_kind)agent));
        for (size_t task = 0; task < TRANSFER_TASKS; task++) {
            char cell[64] = "";
            if (transfer_took_part(transfer, task, agent)) {
                psi_interval found;
                TRY(iqm(cli, transfer, agent, task, task, false, &found));
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
                       transfer->optimum[task].reward_per_step);
    }
    cli_print(cli, "%s", line);
done:
    return status;
}

static psi_status write_curves(cli_call *cli, const transfer_study *transfer, const char *path)
{
    static const char HEAD[] = "task,agent,seed,episode,steps,total_steps,reward,truncated\n";
    psi_status status = PSI_OK;
    base_output *output = NULL;
    TRY(base_output_open(cli->ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, HEAD, sizeof HEAD - 1));
    for (size_t i = 0; i < (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * transfer->seeds; i++) {
        const cli_trial *trial = &transfer->trials[i];
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
        json_object_set_new(all, TRANSFER_TASK_NAMES[task],
                            json_real(transfer->optimum[task].reward_per_step));
    }
    return all;
}

static psi_status write_scores(study *of, const transfer_study *transfer, json_t *statistics)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *scores = json_pack(
        "{s:s, s:s, s:I, s:I, s:s}", "scale", of->scale_name, "network",
        psi_net_kind_name(transfer->net), "seeds", (json_int_t)transfer->seeds, "episodes",
        (json_int_t)transfer->episodes, "representation", transfer->representation);
    TRY(base_json_made(of->cli->ctx, scores));
    for (size_t i = 0; i < CLI_COUNT(FIGURES); i++) {
        json_object_set_new(scores, FIGURES[i].name, figures(transfer, FIGURES[i].of));
    }
    json_object_set_new(scores, "optimum", optima(transfer));
    json_object_set(scores, "statistics", statistics);
    TRY(study_path(of, "scores.json", &path));
    TRY(base_json_save(of->cli->ctx, path, scores));
done:
    base_free(of->cli->ctx, path);
    json_decref(scores);
    return status;
}

psi_status transfer_report(study *of, const transfer_study *transfer)
{
    psi_status status = PSI_OK;
    char *curves = NULL;
    json_t *statistics = json_object();
    TRY(study_path(of, "curves.csv", &curves));
    TRY(write_curves(of->cli, transfer, curves));
    TRY(print_table(of, transfer));
    TRY(all_iqms(of->cli, transfer, statistics));
    TRY(profiles(of->cli, transfer, statistics));
    TRY(all_claims(of, transfer, statistics));
    TRY(write_scores(of, transfer, statistics));
    TRY(study_set(of, "optimum", optima(transfer)));
    TRY(study_set(of, "iqm", json_incref(json_object_get(statistics, "iqm"))));
    TRY(study_file(of, "scores.json", "every score of every seed, and the statistics over them"));
    TRY(study_file(of, "curves.csv", "every episode of every agent: steps, reward"));
done:
    base_free(of->cli->ctx, curves);
    json_decref(statistics);
    return status;
}
