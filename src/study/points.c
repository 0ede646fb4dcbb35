// Figure 4: Point Column World, where every observation is a new point.
#include "study/study.h"

#include <math.h>
#include <stdlib.h>

enum { TRAINING = 1000, TEST = 100, REWARDED = 2, MAX_STAGES = 128, DRAWN = 4000 };

static const size_t SEEDS[] = {1, 3, 10};

static psi_status draw_map(study *of)
{
    psi_status status = PSI_OK;
    int colour[16];
    const psi_figure at = {.folder = of->folder, .name = "map"};
    for (int cell = 0; cell < 16; cell++) colour[cell] = cell % 4 == 3 ? REWARDED : -1;
    const char *text[16] = {"(0.83, 3.22)"};
    TRY(psi_figure_map(of->ctx, &at, 4, 4, colour, text));
    TRY(study_figure(of, "map", "The grid, with an example of a point in its top left cell",
                     "The task (4a): in each cell a random point of it is seen, as in the example; "
                     "entering the right column is rewarded and ends the episode."));
done:
    return status;
}

static psi_status draw_points(study *of, const psi_trajectories *data, const psi_run *run)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const size_t n = data->n_observations < DRAWN ? data->n_observations : DRAWN;
    uint64_t *rows = NULL;
    float *seen = NULL;
    double *points = NULL;
    int32_t *labels = NULL;
    TRY(base_alloc(ctx, n, sizeof *rows, &rows));
    TRY(base_alloc(ctx, 2 * n, sizeof *seen, &seen));
    TRY(base_alloc(ctx, 2 * n, sizeof *points, &points));
    TRY(base_alloc(ctx, n, sizeof *labels, &labels));
    for (size_t i = 0; i < n; i++) {
        rows[i] = i * data->n_observations / n;
        labels[i] = run->labels[rows[i]];
    }
    TRY(psi_observations_gather(ctx, data->observations, rows, n, seen));
    for (size_t i = 0; i < 2 * n; i++) points[i] = (double)seen[i];
    const psi_figure at = {of->folder, "clustering", "x", "y"};
    TRY(psi_figure_scatter(ctx, &at, n, points, labels));
    TRY(study_figure(of, "clustering", "Points coloured by latent state: the columns",
                     "The final clustering of the training observations (4b); grey points are "
                     "ignored."));
done:
    base_free(ctx, labels);
    base_free(ctx, points);
    base_free(ctx, seen);
    base_free(ctx, rows);
    return status;
}

// Errors of all cluster functions on fresh trajectories, into a table; those of the first seed are
// drawn.
static psi_status judge_stages(study *of, size_t index, const psi_trajectories *data,
                               const psi_run *run, const psi_trajectories *test,
                               const psi_levels *levels, double *worst, psi_sequence_error *summary)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const size_t n = test->n_episodes;
    double *errors = NULL;
    char words[MAX_STAGES][24];
    const char *names[MAX_STAGES];
    for (size_t i = 0; i < levels->n; i++) {
        snprintf(words[i], sizeof words[i], "%zu", i);
        names[i] = i + 1 == levels->n ? "final" : words[i];
    }
    TRY(base_alloc(ctx, levels->n * n, sizeof *errors, &errors));
    const psi_stages stages = {
        run->representation, data, levels->n, (const int32_t *const *)levels->labels, test,
        of->how->seed};
    TRY(psi_stage_errors(ctx, &stages, errors, summary));
    for (size_t i = 0; i < levels->n; i++) {
        worst[i] = 0.0;
        for (size_t e = 0; e < n; e++) worst[i] = fmax(worst[i], errors[i * n + e]);
    }
    char name[32];
    snprintf(name, sizeof name, "errors-%zu", index);
    TRY(study_save_errors(of, name, levels->n, n, errors, names));
    if (index > 0) goto done;
    const psi_figure at = {of->folder, "sequence-errors", "refinement",
                           "error per step of an episode"};
    TRY(psi_figure_boxes(ctx, &at, levels->n, n, errors, names,
                         summary[levels->n - 1].zero_baseline));
    TRY(study_figure(of, "sequence-errors", "Box plots of reward-sequence errors per refinement",
                     "Reward-sequence errors on 100 fresh trajectories (4c); refinement 0 knows "
                     "only which states are terminal. The dashed line is the mean error of "
                     "predicting zero."));
done:
    base_free(ctx, errors);
    return status;
}

// From which stage on no error is above the bound: n if there is none.
static psi_status claim_drop(study *of, size_t n, const double *worst,
                             const psi_sequence_error *last)
{
    char when[64];
    size_t first = n;
    while (first > 0 && worst[first - 1] < 1e-3) first--;
    if (first == n) {
        snprintf(when, sizeof when, "errors above 0.001 to the end");
    } else {
        snprintf(when, sizeof when, "no error above 0.001 %s %zu",
                 first + 1 == n ? "only after the clean-up, stage" : "from refinement", first);
    }
    return study_claim(of, "Errors drop to zero after the second refinement",
                       "all errors 0 from c_2 on", first <= 2 && first < n,
                       "%s; %.2g on average at the end, %.2g for predicting zero", when, last->mean,
                       last->zero_baseline);
}

// One seed from data to labels. The first one is also drawn.
static psi_status run_seed(study *of, const psi_task *task, size_t index, bool *exact, bool *zero)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const uint64_t seed = of->how->seed + index;
    psi_trajectories *data = NULL, *test = NULL;
    psi_run *run = NULL;
    psi_levels levels = {0};
    psi_purity purity;
    double worst[MAX_STAGES];
    psi_sequence_error summary[MAX_STAGES];
    char data_name[32], run_name[32], test_name[32];
    snprintf(data_name, sizeof data_name, "data-%zu", index);
    snprintf(test_name, sizeof test_name, "test-%zu", index);
    snprintf(run_name, sizeof run_name, "run-%zu", index);
    TRY(study_trajectories(of, task, of->how->episodes ? of->how->episodes : TRAINING, seed,
                           data_name, &data));
    TRY(study_trajectories(of, task, TEST, seed + 1000003, test_name, &test));
    psi_cluster_options how;
    TRY(study_cluster_options(of, "column-world", &how));
    how.seed = seed;
    TRY(study_cluster(of, data_name, data, &how, run_name, &run));
    TRY(psi_purity_of(ctx, data, run->labels, run->n_latent, &purity));
    *exact = run->n_latent == purity.true_latent_states && purity.off_diagonal == 0.0;
    TRY(study_levels(of, run, &levels));
    if (levels.n == 0 || levels.n > MAX_STAGES) {
        status = FAIL(ctx, PSI_ELIMIT, "not between 1 and %d refinements", MAX_STAGES - 2);
        goto done;
    }
    TRY(judge_stages(of, index, data, run, test, &levels, worst, summary));
    *zero = worst[levels.n - 1] < 1e-6;
    if (index == 0) {
        TRY(draw_points(of, data, run));
        TRY(study_refinements(of, run, &levels, "refinements"));
        TRY(claim_drop(of, levels.n, worst, &summary[levels.n - 1]));
        TRY(study_file(of, data_name, "random trajectories of training"));
        TRY(study_file(of, test_name, "fresh trajectories"));
        TRY(study_file(of, run_name, "the run folder of the first seed; run-0.html is its report"));
    }
done:
    psi_levels_free(ctx, &levels);
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, test);
    psi_trajectories_free(ctx, data);
    return status;
}

psi_status study_point_column_world(study *of)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    psi_task task;
    size_t exact = 0, zero = 0;
    const size_t seeds = SEEDS[of->how->scale];
    TRY(study_title(of, "Figure 4: Point Column World",
                    "The grid of figure 1, but every observation is a point drawn at random from "
                    "the agent's cell: none is seen twice, and a network has to generalise."));
    TRY(psi_task_defaults(ctx, "point-column-world", NULL, &task));
    TRY(psi_task_check(ctx, &task));
    TRY(draw_map(of));
    for (size_t i = 0; i < seeds; i++) {
        bool is_exact = false, is_zero = false;
        TRY(run_seed(of, &task, i, &is_exact, &is_zero));
        exact += is_exact;
        zero += is_zero;
    }
    TRY(study_set(of, "seeds", json_integer((json_int_t)seeds)));
    TRY(study_set(of, "exact_seeds", json_integer((json_int_t)exact)));
    TRY(study_claim(of, "Every point is in the latent state of its column", "4 latent states",
                    exact == seeds, "exactly so for %zu of %zu seeds", exact, seeds));
    TRY(study_claim(of, "Rewards of fresh trajectories are predicted without error", "error 0",
                    zero == seeds, "not one error in 100 trajectories for %zu of %zu seeds", zero,
                    seeds));
done:
    return status;
}
