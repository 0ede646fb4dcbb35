// psifold reproduce sweep: table 2. Each option of deep Q-learning over the values that the paper
// tried, the others at their best, on the training task.
#include "study/study.h"

#include "base/file.h"

#include <math.h>
#include <string.h>

typedef enum sweep_option { LEARNING_RATE, BATCH, BUFFER, EXPLORATION, N_OPTIONS } sweep_option;

// A figure each: its name, and what its axis says.
static const struct {
    const char *figure, *words;
} OPTIONS[N_OPTIONS] = {
    {"learning-rate", "learning rate"},
    {"batch", "batch size"},
    {"buffer", "observations in the replay memory"},
    {"exploration", "episodes until exploration ends"},
};

static const struct {
    sweep_option option;
    const char *name;
    double value, best; // best: the paper's
} SETTINGS[] = {
    {LEARNING_RATE, "learning_rate", 1e-4, 1e-3},
    {LEARNING_RATE, "learning_rate", 1e-3, 1e-3},
    {LEARNING_RATE, "learning_rate", 1e-2, 1e-3},
    {LEARNING_RATE, "learning_rate", 1e-1, 1e-3},
    {BATCH, "batch", 100, 200},
    {BATCH, "batch", 200, 200},
    {BATCH, "batch", 500, 200},
    {BUFFER, "buffer", 100, 10000},
    {BUFFER, "buffer", 1000, 10000},
    {BUFFER, "buffer", 10000, 10000},
    {EXPLORATION, "exploration_episodes", 5, 10},
    {EXPLORATION, "exploration_episodes", 10, 10},
    {EXPLORATION, "exploration_episodes", 20, 10},
    {EXPLORATION, "exploration_episodes", 50, 10},
    {EXPLORATION, "exploration_episodes", 80, 10},
};
enum { N_SETTINGS = COUNT(SETTINGS) };

static void apply(size_t setting, psi_agent_options *options)
{
    const double value = SETTINGS[setting].value;
    switch (SETTINGS[setting].option) {
    case LEARNING_RATE: options->learning_rate = value; break;
    case BATCH: options->batch = (size_t)value; break;
    case BUFFER: options->buffer = (size_t)value; break;
    case EXPLORATION: options->exploration_episodes = (size_t)value; break;
    case N_OPTIONS: break;
    }
}

// The setting with the paper's values stands in every row, but is run once.
static size_t same_as(size_t setting)
{
    return SETTINGS[setting].value == SETTINGS[setting].best ? 1 : setting;
}

typedef struct sweep {
    psi_task task;
    psi_net_kind net;
    size_t seeds, episodes;
    psi_trial *trials; // (n) seeds of every setting that is run
    size_t n;
} sweep;

static psi_status make_task(study *of, psi_task *task)
{
    psi_status status = PSI_OK;
    const char *digits;
    char per_dial[16];
    snprintf(per_dial, sizeof per_dial, "%zu", of->how->digits_per_dial);
    TRY(study_images(of, &digits));
    TRY(psi_task_defaults(of->ctx, "combination-lock", "train", task));
    if (of->how->digits_per_dial != 10)
        TRY(psi_task_set(of->ctx, task, "digits-per-dial", per_dial));
    TRY(psi_task_set(of->ctx, task, "digits", digits));
    task->max_steps = 1000;
    TRY(psi_task_check(of->ctx, task));
done:
    return status;
}

static psi_status make_trials(study *of, sweep *all)
{
    psi_status status = PSI_OK;
    for (size_t i = 0; i < N_SETTINGS; i++) {
        for (size_t s = 0; s < all->seeds && same_as(i) == i; s++) {
            psi_trial *trial = &all->trials[all->n++];
            char name[128];
            *trial = (psi_trial){.task = all->task,
                                 .options = psi_agent_defaults(PSI_AGENT_DQN),
                                 .episodes = all->episodes};
            trial->options.net = all->net;
            trial->options.seed = of->how->seed + s;
            apply(i, &trial->options);
            snprintf(name, sizeof name, "runs/%s-%g/seed-%llu", SETTINGS[i].name, SETTINGS[i].value,
                     (unsigned long long)trial->options.seed);
            TRY(study_path(of, name, &trial->folder));
        }
    }
done:
    return status;
}

// The trials of a setting: where they begin.
static size_t first_of(size_t setting, size_t seeds)
{
    size_t before = 0;
    for (size_t i = 0; i < same_as(setting); i++) before += same_as(i) == i;
    return before * seeds;
}

static void scores_of(const sweep *all, size_t setting, double *scores)
{
    const psi_trial *of = all->trials + first_of(setting, all->seeds);
    for (size_t s = 0; s < all->seeds; s++) scores[s] = of[s].score.reward_per_step;
}

// ---- what came out

static json_t *member(json_t *object, const char *name)
{
    if (!json_object_get(object, name)) json_object_set_new(object, name, json_object());
    return json_object_get(object, name);
}

// One line of the table, and its numbers.
static psi_status tell_setting(study *of, const sweep *all, size_t setting, double *scores,
                               json_t *table, json_t *bad)
{
    psi_status status = PSI_OK;
    const psi_trial *trials = all->trials + first_of(setting, all->seeds);
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    const char *name = SETTINGS[setting].name;
    char value[32];
    size_t diverged = 0;
    psi_interval mean;
    json_t *list = json_array();
    scores_of(all, setting, scores);
    for (size_t s = 0; s < all->seeds; s++) {
        diverged += trials[s].diverged;
        json_array_append_new(list, json_real(scores[s]));
    }
    snprintf(value, sizeof value, "%g", SETTINGS[setting].value);
    json_object_set_new(member(table, name), value, list);
    json_object_set_new(member(bad, name), value, json_integer((json_int_t)diverged));
    TRY(psi_scores_iqm(of->ctx, &(psi_scores){1, all->seeds, scores}, &how, &mean));
    study_prints(of, "%-22s %10s %10.4f [%.4f, %.4f]%s", name, value, mean.estimate, mean.low,
                 mean.high, diverged ? "  some diverged" : "");
done:
    return status;
}

static psi_status write_scores(study *of, const sweep *all)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    double *scores = NULL;
    json_t *table = json_object(), *bad = json_object(), *whole = NULL;
    TRY(base_alloc(of->ctx, all->seeds, sizeof *scores, &scores));
    study_prints(of, "%-22s %10s %28s", "option", "value", "reward per step");
    for (size_t i = 0; i < N_SETTINGS; i++) TRY(tell_setting(of, all, i, scores, table, bad));
    whole = json_pack("{s:I, s:O, s:O}", "seeds", (json_int_t)all->seeds, "reward_per_step", table,
                      "diverged", bad);
    TRY(base_json_made(of->ctx, whole));
    TRY(study_path(of, "scores.json", &path));
    TRY(base_json_save(of->ctx, path, whole));
    TRY(study_file(of, "scores.json", "reward per step of every seed, and how many diverged"));
    TRY(study_file(of, "runs", "every trial: its result, learning curve and TensorBoard events"));
done:
    base_free(of->ctx, path);
    base_free(of->ctx, scores);
    json_decref(whole);
    json_decref(table);
    json_decref(bad);
    return status;
}

// The settings of an option stand together.
static size_t settings_of(sweep_option option, size_t *first)
{
    size_t n = 0;
    for (size_t i = N_SETTINGS; i-- > 0;) {
        if (SETTINGS[i].option != option) continue;
        *first = i;
        n++;
    }
    return n;
}

static psi_status draw_option(study *of, const sweep *all, sweep_option option, double optimum)
{
    psi_status status = PSI_OK;
    size_t first = 0;
    const size_t n = settings_of(option, &first);
    double *values = NULL, levels[N_SETTINGS];
    char words[N_SETTINGS][16], alt[96], caption[256];
    const char *names[N_SETTINGS], *const agent[] = {"dqn"};
    TRY(base_alloc(of->ctx, n * all->seeds, sizeof *values, &values));
    for (size_t i = 0; i < n; i++) {
        scores_of(all, first + i, values + i * all->seeds);
        snprintf(words[i], sizeof words[i], "%g", SETTINGS[first + i].value);
        names[i] = words[i];
        levels[i] = optimum;
    }
    const psi_figure at = {of->folder, OPTIONS[option].figure, OPTIONS[option].words,
                           "reward per step"};
    TRY(psi_figure_scores(of->ctx, &at, n, 1, all->seeds, values, names, agent,
                          &(psi_figure_line){"optimum", levels}));
    snprintf(alt, sizeof alt, "Bars of reward per step, by %s", OPTIONS[option].words);
    snprintf(caption, sizeof caption,
             "Reward per step in the training task, by %s: means over %zu seeds, each a dot. The "
             "other options are at the paper's best.",
             OPTIONS[option].words, all->seeds);
    TRY(study_figure(of, OPTIONS[option].figure, alt, caption));
done:
    base_free(of->ctx, values);
    return status;
}

// The paper's best value holds unless another beats it with an interval above one half.
static psi_status claim_option(study *of, const sweep *all, sweep_option option)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    size_t first = 0, rival = 0;
    const size_t n = settings_of(option, &first);
    double *theirs = NULL, *ours = NULL;
    psi_interval strongest = {.estimate = -1.0}, found;
    bool holds = true;
    char claim[128], paper[64];
    TRY(base_alloc(ctx, all->seeds, sizeof *theirs, &theirs));
    TRY(base_alloc(ctx, all->seeds, sizeof *ours, &ours));
    scores_of(all, 1, ours); // the paper's values, of all options
    for (size_t i = first; i < first + n; i++) {
        if (same_as(i) == 1) continue;
        scores_of(all, i, theirs);
        TRY(psi_scores_improvement(ctx, &(psi_scores){1, all->seeds, theirs},
                                   &(psi_scores){1, all->seeds, ours}, &how, &found));
        holds = holds && !(found.low > 0.5);
        if (found.estimate <= strongest.estimate) continue;
        strongest = found;
        rival = i;
    }
    const double best = SETTINGS[first].best;
    snprintf(claim, sizeof claim, "%s: nothing beats %g", OPTIONS[option].words, best);
    snprintf(paper, sizeof paper, "%g was best", best);
    TRY(study_claim(of, claim, paper, holds,
                    "%g comes closest, or beyond: probability %.2f [%.2f, %.2f] of beating it, %zu "
                    "seeds",
                    SETTINGS[rival].value, strongest.estimate, strongest.low, strongest.high,
                    all->seeds));
done:
    base_free(ctx, theirs);
    base_free(ctx, ours);
    return status;
}

static psi_status report(study *of, const sweep *all)
{
    psi_status status = PSI_OK;
    psi_optimum optimum;
    TRY(study_title(of, "Table 2: the options of deep Q-learning",
                    "A Q-network from random weights in the training task, each option over the "
                    "values that the paper tried, the others at its best. No means that another "
                    "value beats the paper's, with a 95 % interval of the probability above one "
                    "half."));
    TRY(study_set(of, "net", json_string(psi_net_kind_name(all->net))));
    TRY(study_set(of, "seeds", json_integer((json_int_t)all->seeds)));
    TRY(study_set(of, "episodes", json_integer((json_int_t)all->episodes)));
    TRY(psi_task_optimum(of->ctx, &all->task, psi_agent_defaults(PSI_AGENT_DQN).gamma, &optimum));
    TRY(study_set(of, "optimum", json_real(optimum.reward_per_step)));
    TRY(write_scores(of, all));
    for (int option = 0; option < N_OPTIONS; option++) {
        TRY(draw_option(of, all, (sweep_option)option, optimum.reward_per_step));
        TRY(claim_option(of, all, (sweep_option)option));
    }
done:
    return status;
}

psi_status study_sweep(study *of)
{
    psi_status status = PSI_OK;
    static const size_t SEEDS[] = {2, 2, 5};
    sweep all = {.net = of->how->scale == 0 ? PSI_NET_CNN : PSI_NET_RESNET18,
                 .seeds = of->how->seeds ? of->how->seeds : SEEDS[of->how->scale],
                 .episodes = of->how->agent_episodes ? of->how->agent_episodes : 100};
    if (strcmp(of->how->net, "auto") != 0) {
        TRY(psi_net_kind_from_name(of->ctx, of->how->net, &all.net));
    }
    TRY(base_alloc_zero(of->ctx, N_SETTINGS * all.seeds, sizeof *all.trials, &all.trials));
    TRY(make_task(of, &all.task));
    TRY(make_trials(of, &all));
    TRY(psi_trials_run(of->ctx, all.trials, all.n, false));
    TRY(report(of, &all));
done:
    psi_trials_free(of->ctx, all.trials, all.n);
    base_free(of->ctx, all.trials);
    return status;
}
