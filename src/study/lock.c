// Figure 5: the Combination Lock, seen as images of digits.
#include "study/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEST = 1000, STAGES = 5, DIALS = 3 };

static const size_t TRAINING[] = {1000, 3000, 10000};
static const double SMALL = 1e-3; // an error below this is a sequence predicted

typedef struct lock_study {
    psi_task train, test;
    psi_trajectories *data, *fresh;
    psi_run *run;
    psi_levels levels;
} lock_study;

static psi_status make_tasks(study *of, lock_study *lock)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    char digits[16], images[16];
    const char *from;
    psi_task *const tasks[] = {&lock->train, &lock->test};
    TRY(study_images(of, &from));
    TRY(study_set(of, "digits_per_dial", json_integer((json_int_t)of->how->digits_per_dial)));
    snprintf(digits, sizeof digits, "%zu", of->how->digits_per_dial);
    for (size_t i = 0; i < 2; i++) {
        snprintf(images, sizeof images, "%s%s", from, i ? "-test" : "");
        TRY(psi_task_defaults(ctx, "combination-lock", NULL, tasks[i]));
        TRY(psi_task_set(ctx, tasks[i], "digits-per-dial", digits));
        TRY(psi_task_set(ctx, tasks[i], "digits", images));
        TRY(psi_task_check(ctx, tasks[i]));
    }
done:
    return status;
}

static psi_status draw_map(study *of, const lock_study *lock)
{
    psi_status status = PSI_OK;
    char words[DIALS][32];
    const char *text[DIALS];
    int colour[DIALS];
    for (int i = 0; i < DIALS; i++) {
        const bool broken = lock->train.broken[i];
        colour[i] = broken ? 7 : -1; // grey
        if (broken) {
            snprintf(words[i], sizeof words[i], "broken");
        } else {
            snprintf(words[i], sizeof words[i], "0 to %d", lock->train.digits_per_dial - 1);
        }
        text[i] = words[i];
    }
    const psi_figure at = {.folder = of->folder, .name = "map"};
    TRY(psi_figure_map(of->ctx, &at, 1, DIALS, colour, text));
    TRY(study_figure(of, "map", "Three dials, the right one broken",
                     "The task (5a): each action turns one dial; the broken one takes a random "
                     "digit. The highest digit on both others is rewarded and ends the episode."));
done:
    return status;
}

// ---- reward-sequence errors ---------------------------------------------------------------------

// Five stages, evenly over the refinements, the final labels last.
static size_t choose_stages(const psi_levels *levels, size_t chosen[STAGES])
{
    const size_t last = levels->n - 2; // the last refinement
    size_t n = 0;
    for (size_t i = 0; i + 1 < STAGES; i++) {
        const size_t at = 1 + (last - 1) * i / (STAGES - 2);
        if (n == 0 || chosen[n - 1] != at) chosen[n++] = at;
    }
    chosen[n++] = levels->n - 1;
    return n;
}

static psi_status claim_errors(study *of, size_t n_stages, size_t n, double *errors,
                               const psi_sequence_error *summary)
{
    psi_status status = PSI_OK;
    json_t *list = json_array();
    size_t predicted = 0;
    bool falling = true;
    char medians[160] = "";
    for (size_t i = 0; i < n_stages; i++) {
        const size_t used = strlen(medians);
        snprintf(medians + used, sizeof medians - used, "%s%.3g", i ? ", " : "", summary[i].mean);
        falling = falling && (i == 0 || summary[i].mean <= summary[i - 1].mean * 1.02);
        json_array_append_new(list, json_pack("{s:f, s:f, s:f, s:I}", "mean", summary[i].mean,
                                              "median", summary[i].median, "zero_baseline",
                                              summary[i].zero_baseline, "judged",
                                              (json_int_t)summary[i].judged));
    }
    double *last = errors + (n_stages - 1) * n;
    qsort(last, n, sizeof *last, study_ascending);
    for (size_t i = 0; i < n; i++) predicted += last[i] < SMALL;
    const double share = (double)predicted / (double)n;
    TRY(study_set(of, "sequence_errors", json_incref(list)));
    TRY(study_set(of, "predicted_fraction", json_real(share)));
    TRY(study_claim(of, "Almost all reward sequences of test images are predicted",
                    "almost all of 1,000, not perfectly", share > 0.95,
                    "%.1f %% of %zu with an error below %g; %.2g on average, %.2g for predicting "
                    "zero",
                    100.0 * share, n, SMALL, summary[n_stages - 1].mean,
                    summary[n_stages - 1].zero_baseline));
    TRY(study_claim(of, "Errors fall from refinement to refinement", "plainly visible", falling,
                    "mean errors of the stages: %s", medians));
done:
    json_decref(list);
    return status;
}

static psi_status judge_stages(study *of, const lock_study *lock)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const size_t n = lock->fresh->n_episodes;
    size_t chosen[STAGES] = {0};
    const size_t n_stages = choose_stages(&lock->levels, chosen);
    const int32_t *labels[STAGES];
    char words[STAGES][32];
    const char *names[STAGES];
    psi_sequence_error summary[STAGES];
    double *errors = NULL;
    for (size_t i = 0; i < n_stages; i++) {
        labels[i] = lock->levels.labels[chosen[i]];
        snprintf(words[i], sizeof words[i], "refinement %zu", chosen[i]);
        names[i] = i + 1 == n_stages ? "final" : words[i];
    }
    TRY(base_alloc(ctx, n_stages * n, sizeof *errors, &errors));
    const psi_stages stages = {
        lock->run->representation, lock->data, n_stages, labels, lock->fresh, of->how->seed};
    TRY(psi_stage_errors(ctx, &stages, errors, summary));
    TRY(study_save_errors(of, "errors", n_stages, n, errors, names));
    const psi_figure at = {of->folder, "sequence-errors", "error per step of an episode",
                           "trajectories"};
    TRY(psi_figure_histogram(ctx, &at, n_stages, n, errors, names, 1e-7));
    TRY(study_figure(of, "sequence-errors", "Histograms of reward-sequence errors at five stages",
                     "Reward-sequence errors of 1,000 test trajectories with test images at five "
                     "stages (5b), on a logarithmic axis, each trajectory a stroke above; errors "
                     "below the left end are counted there."));
    TRY(claim_errors(of, n_stages, n, errors, summary));
done:
    base_free(ctx, errors);
    return status;
}

// ---- images that were never seen ----------------------------------------------------------------

// What the representation network makes of test images, and of their reward sequences if only the
// most probable latent state is followed.
static psi_status judge_representation(study *of, const lock_study *lock)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const psi_trajectories *fresh = lock->fresh;
    int32_t *labels = NULL;
    double *errors = NULL;
    size_t predicted = 0;
    psi_purity purity;
    psi_sequence_error summary;
    TRY(base_alloc(ctx, fresh->n_observations, sizeof *labels, &labels));
    TRY(base_alloc(ctx, fresh->n_episodes, sizeof *errors, &errors));
    TRY(psi_run_label(ctx, lock->run, fresh, 0.0, labels, NULL));
    TRY(psi_purity_of(ctx, fresh, labels, lock->run->n_latent, &purity));
    TRY(study_set(of, "test_accuracy", json_real(purity.accuracy)));
    TRY(study_says(of, "test images: %.2f %% in the right latent state", 100.0 * purity.accuracy));
    const psi_paths paths =
        psi_trajectories_paths(fresh, labels, lock->run->n_latent, lock->run->has_terminal);
    TRY(psi_sequence_errors(ctx, lock->run->model, &paths, NULL, PSI_ROLLOUT_ARGMAX, errors,
                            &summary));
    for (size_t i = 0; i < fresh->n_episodes; i++) predicted += errors[i] < SMALL;
    TRY(study_set(of, "predicted_fraction_argmax",
                  json_real((double)predicted / (double)fresh->n_episodes)));
done:
    base_free(ctx, errors);
    base_free(ctx, labels);
    return status;
}

// ---- the confusion matrix -----------------------------------------------------------------------

typedef struct confusion {
    size_t patterns, latent; // rows, columns without the ignored one
    double *share;           // (patterns, latent + 1) of the pattern's observations
    size_t *count;           // the same, counted
    size_t *column;          // (latent) where a latent state stands
} confusion;

// Pattern i is latent state i + 1 of the truth; the last one is the rewarding combination, 0.
static size_t pattern_of(const confusion *of, int32_t truth)
{
    return truth == 0 ? of->patterns - 1 : (size_t)truth - 1;
}

// Latent states stand in the order of the patterns that most of them are.
static void order_columns(confusion *of)
{
    size_t next = 0;
    for (size_t k = 0; k < of->latent; k++) of->column[k] = SIZE_MAX;
    for (size_t row = 0; row < of->patterns; row++) {
        for (size_t k = 0; k < of->latent; k++) {
            size_t best = 0;
            for (size_t r = 1; r < of->patterns; r++) {
                if (of->count[r * (of->latent + 1) + k] > of->count[best * (of->latent + 1) + k]) {
                    best = r;
                }
            }
            if (best == row && of->column[k] == SIZE_MAX) of->column[k] = next++;
        }
    }
}

static psi_status count_confusion(study *of, const lock_study *lock, confusion *table)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const psi_trajectories *data = lock->data;
    const size_t digits = (size_t)lock->train.digits_per_dial, width = lock->run->n_latent + 1;
    table->patterns = digits * digits;
    table->latent = lock->run->n_latent;
    TRY(base_alloc_zero(ctx, table->patterns * width, sizeof *table->count, &table->count));
    TRY(base_alloc_zero(ctx, table->patterns * width, sizeof *table->share, &table->share));
    TRY(base_alloc_zero(ctx, table->latent, sizeof *table->column, &table->column));
    for (size_t i = 0; i < data->n_observations; i++) {
        const size_t row = pattern_of(table, data->latent_states[i]);
        const int32_t label = lock->run->labels[i];
        if (row >= table->patterns) continue;
        table->count[row * width + (label < 0 ? table->latent : (size_t)label)]++;
    }
    order_columns(table);
    for (size_t row = 0; row < table->patterns; row++) {
        size_t all = 0;
        for (size_t k = 0; k < width; k++) all += table->count[row * width + k];
        for (size_t k = 0; k < width && all > 0; k++) {
            const size_t column = k < table->latent ? table->column[k] : k;
            table->share[row * width + column] =
                (double)table->count[row * width + k] / (double)all;
        }
    }
done:
    return status;
}

static psi_status save_confusion(study *of, const confusion *table)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    const size_t width = table->latent + 1;
    int64_t *count = NULL;
    TRY(base_alloc(of->ctx, table->patterns * width, sizeof *count, &count));
    for (size_t i = 0; i < table->patterns * width; i++) count[i] = (int64_t)table->count[i];
    const psi_array array = {"confusion", PSI_INT64, {2, {table->patterns, width}}, count};
    TRY(study_path(of, "confusion.npy", &path));
    TRY(psi_arrays_save(of->ctx, path, &array, 1));
    TRY(study_file(of, "confusion.npy",
                   "observations of every pattern (rows, in order; the "
                   "rewarding one last) in every latent state; the last "
                   "column is ignored"));
done:
    base_free(of->ctx, count);
    base_free(of->ctx, path);
    return status;
}

static psi_status draw_confusion(study *of, const lock_study *lock)
{
    psi_status status = PSI_OK;
    confusion table = {0};
    const int digits = lock->train.digits_per_dial;
    char(*words)[24] = NULL;
    const char **names = NULL;
    TRY(count_confusion(of, lock, &table));
    TRY(save_confusion(of, &table));
    TRY(base_alloc(of->ctx, table.patterns, sizeof *words, &words));
    TRY(base_alloc(of->ctx, table.patterns, sizeof *names, &names));
    for (size_t i = 0; i < table.patterns; i++) {
        snprintf(words[i], sizeof words[i], "(%d,%d,*)", (int)i / digits, (int)i % digits);
        names[i] = words[i];
    }
    const psi_figure at = {of->folder, "confusion", "latent state, in the order of the patterns",
                           NULL};
    const psi_figure_matrix_options how = {
        .size = sizeof how, .row_names = names, .last_apart = true};
    TRY(psi_figure_matrix(of->ctx, &at, table.patterns, table.latent + 1, table.share, &how));
    TRY(study_figure(of, "confusion", "Confusion matrix of patterns and latent states",
                     "Where the training images of every pattern went (5c), as shares of the "
                     "pattern's images; the last column holds those that are ignored."));
done:
    base_free(of->ctx, names);
    base_free(of->ctx, words);
    base_free(of->ctx, table.column);
    base_free(of->ctx, table.share);
    base_free(of->ctx, table.count);
    return status;
}

static psi_status claim_clusters(study *of, const lock_study *lock)
{
    psi_status status = PSI_OK;
    psi_purity purity;
    const size_t digits = of->how->digits_per_dial, patterns = digits * digits;
    char paper[64];
    TRY(psi_purity_of(of->ctx, lock->data, lock->run->labels, lock->run->n_latent, &purity));
    snprintf(paper, sizeof paper, digits == 10 ? "100 latent states" : "%zu would be right",
             patterns);
    TRY(study_set(of, "latent_states", json_integer((json_int_t)lock->run->n_latent)));
    TRY(study_set(of, "off_diagonal", json_real(purity.off_diagonal)));
    TRY(study_set(of, "ignored_fraction", json_real(purity.ignored)));
    TRY(study_claim(of, "As many latent states as patterns of the dials that matter", paper,
                    lock->run->n_latent == patterns, "%zu latent states", lock->run->n_latent));
    TRY(study_claim(of, "No image is in the latent state of another pattern",
                    "all off-diagonal elements are 0", purity.off_diagonal == 0.0,
                    "%.4g %% of the training images are", 100.0 * purity.off_diagonal));
    TRY(study_claim(of, "Few images are ignored", "less than 0.5 %", purity.ignored < 0.005,
                    "%.3g %%", 100.0 * purity.ignored));
done:
    return status;
}

psi_status study_combination_lock(study *of)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    lock_study lock = {0};
    const size_t episodes = of->how->episodes ? of->how->episodes : TRAINING[of->how->scale];
    TRY(study_title(
        of, "Figure 5: Combination Lock",
        "Three dials seen as images of digits. Only the first two matter: a network has "
        "to read digits and to learn to ignore the third."));
    TRY(make_tasks(of, &lock));
    TRY(draw_map(of, &lock));
    TRY(study_trajectories(of, &lock.train, episodes, of->how->seed, "data", &lock.data));
    TRY(study_trajectories(of, &lock.test, TEST, of->how->seed + 1000003, "test", &lock.fresh));
    psi_cluster_options how;
    TRY(study_cluster_options(of, "combination-lock", &how));
    const bool resnet = strcmp(of->how->net, "resnet18") == 0 ||
                        (strcmp(of->how->net, "auto") == 0 && of->how->scale > 0);
    how.approximator = resnet ? PSI_APPROXIMATOR_RESNET18 : PSI_APPROXIMATOR_CNN;
    TRY(study_set(of, "net", json_string(resnet ? "resnet18" : "cnn")));
    TRY(study_set(of, "episodes", json_integer((json_int_t)episodes)));
    TRY(study_set(of, "transitions", json_integer((json_int_t)lock.data->n_transitions)));
    TRY(study_cluster(of, "data", lock.data, &how, "run", &lock.run));
    TRY(study_levels(of, lock.run, &lock.levels));
    if (lock.run->n_steps == 0) {
        TRY(FAIL(ctx, PSI_EDATA, "%s has no refinement to judge", lock.run->folder));
    }
    TRY(study_refinements(of, lock.run, &lock.levels, "refinements"));
    TRY(claim_clusters(of, &lock));
    TRY(draw_confusion(of, &lock));
    TRY(judge_stages(of, &lock));
    TRY(judge_representation(of, &lock));
    TRY(study_file(of, "run-phases.json",
                   "seconds and observations passed through a network, phase by phase"));
    TRY(study_file(of, "run", "the run folder; run.html is its report"));
    TRY(study_file(of, "data", "training trajectories, images from the training digits"));
    TRY(study_file(of, "test", "test trajectories, images from the test digits"));
done:
    psi_levels_free(ctx, &lock.levels);
    psi_run_free(ctx, lock.run);
    psi_trajectories_free(ctx, lock.fresh);
    psi_trajectories_free(ctx, lock.data);
    return status;
}
