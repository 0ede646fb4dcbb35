// The whole method: refine, polish, ask whether anything is still hidden, refine further if so; at
// the end the latent model and the representation network.
#include <psifold/cluster.h>

#include "base/context.h"
#include "cluster/judge.h"
#include "cluster/network.h"
#include "cluster/polish.h"
#include "cluster/refine.h"
#include "cluster/representation.h"
#include "cluster/successor.h"

#include <math.h>
#include <string.h>

// The gap's share of the first refinement of each round: a round that finds something hidden is
// followed by one that looks closer.
static const double KICKS[] = {0.0, 0.45, 0.27, 0.16, 0.1};
static const double SAME = 0.985;

const char *psi_approximator_name(psi_approximator approximator)
{
    static const char *const NAMES[] = {
#define X(name, text) text,
        PSI_APPROXIMATOR_TABLE(X)
#undef X
    };
    return NAMES[approximator];
}

psi_cluster_options psi_cluster_defaults(void)
{
    return (psi_cluster_options){.smooth = true,
                                 .gamma = 0.5,
                                 .filter = 0.0025,
                                 .max_refinements = 25,
                                 .max_rounds = 4,
                                 .max_latent_states = 1000,
                                 .hidden = 256,
                                 .trunk_steps = 1000,
                                 .head_steps = 500,
                                 .representation_steps = 1000,
                                 .shift = 2,
                                 .learning_rate = 2e-3};
}

typedef struct clustering_run {
    psi_ctx *ctx;
    const psi_cluster_options *options;
    cluster_problem problem;
    cluster_inputs inputs;
    network_options network;
    cluster_approximator approximator;
    refinement refinement; // as refined, not polished
    psi_clustering *result;
} clustering_run;

// A table if observations repeat so often that their next states can be counted.
static psi_status try_table(clustering_run *run, bool wanted)
{
    const size_t n = run->problem.n_rows, actions = run->problem.data->n_actions;
    const size_t most = wanted ? n : n / (20 * actions);
    const psi_status status =
        cluster_table_new(run->ctx, &run->problem, most + 1, &run->approximator);
    return status == PSI_ELIMIT && !wanted ? PSI_OK : status;
}

static psi_status choose_approximator(clustering_run *run)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    psi_approximator kind = options->approximator;
    if (kind == PSI_APPROXIMATOR_AUTO || kind == PSI_APPROXIMATOR_TABLE) {
        TRY(try_table(run, kind == PSI_APPROXIMATOR_TABLE));
        if (run->approximator.self) goto done;
    }
    TRY(cluster_inputs_new(run->ctx, run->problem.data->observations, &run->inputs));
    if (kind == PSI_APPROXIMATOR_AUTO) {
        kind = run->inputs.is_image ? PSI_APPROXIMATOR_CNN : PSI_APPROXIMATOR_MLP;
    }
    const bool mlp = kind == PSI_APPROXIMATOR_MLP;
    run->network = (network_options){.kind = mlp                            ? PSI_NET_MLP
                                             : kind == PSI_APPROXIMATOR_CNN ? PSI_NET_CNN
                                                                            : PSI_NET_RESNET18,
                                     .n_hidden = mlp ? 2 : 0,
                                     .hidden = {options->hidden, options->hidden},
                                     .trunk = {.steps = options->trunk_steps,
                                               .windows = 32,
                                               .length = 8,
                                               .learning_rate = options->learning_rate,
                                               .inverse_weight = 1.0,
                                               .contrast_weight = 1.0,
                                               .next_weight = 12.0,
                                               .shift = options->shift,
                                               .seed = options->seed},
                                     .head_steps = options->head_steps,
                                     .head_batch = 512,
                                     .head_learning_rate = options->learning_rate,
                                     .seed = options->seed};
    if (mlp) run->inputs.shape = (psi_shape){1, {psi_shape_size(&run->inputs.shape)}};
    trunk_losses losses;
    TRY(cluster_network_new(run->ctx, &run->problem, &run->inputs, &run->network, &losses,
                            &run->approximator));
done:
    return status;
}

// One round: refine (from where the round before stopped), polish a copy, judge it.
typedef struct round_result {
    int32_t *labels; // (n_rows)
    size_t n_latent;
    split_test test;
    double smoothed; // share of the states whose label was changed
    bool converged;
} round_result;

static psi_status run_round(clustering_run *run, size_t round, round_result *out)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    const size_t n = run->problem.n_rows;
    const size_t last_kick = sizeof KICKS / sizeof KICKS[0] - 1;
    const double spacing = run->problem.rewards.spacing;
    const refine_options how = {
        .gamma = options->gamma,
        .epsilon_reward = options->epsilon_reward > 0.0 ? options->epsilon_reward / spacing : 0.5,
        .epsilon_sf = options->epsilon_sf,
        .gap_share = 0.75,
        .kick = KICKS[round < last_kick ? round : last_kick],
        .filter = options->filter,
        .norm = options->norm,
        .split = options->split,
        .max_refinements = options->max_refinements,
        .max_latent_states = options->max_latent_states,
        .seed = options->seed,
        .watch = options->watch,
        .user = options->user};
    TRY(cluster_refine(run->ctx, &run->problem, &run->approximator, &how, &run->refinement));
    TRY(base_alloc(run->ctx, n, sizeof *out->labels, &out->labels));
    memcpy(out->labels, run->refinement.labels, n * sizeof *out->labels);
    out->n_latent = run->refinement.n_latent;
    out->converged = run->refinement.converged;
    if (options->smooth && strcmp(run->approximator.name, "table") != 0) {
        const polish_options polishing = {.filter = options->filter,
                                          .may_lose = 0.05,
                                          .max_rounds = 12,
                                          .seed = options->seed + 10000 * (round + 1)};
        polish_summary summary;
        TRY(cluster_polish(run->ctx, &run->problem, &run->approximator, &polishing, out->labels,
                           &out->n_latent, &summary));
        out->smoothed = (double)summary.changed / (double)run->problem.n_states;
    }
    TRY(cluster_judge_split(run->ctx, &run->problem, &run->approximator, out->labels, out->n_latent,
                            options->seed + 10000 * (round + 1) + 5000, &out->test));
done:
    return status;
}

// Is a better than b? What hides nothing comes first, then fewer latent states.
static bool is_better(const round_result *a, const round_result *b)
{
    if (!b->labels) return true;
    if (a->test.hot != b->test.hot) return b->test.hot;
    if (a->test.hot) return a->test.mean < b->test.mean;
    return a->n_latent < b->n_latent;
}

// Rounds until the same latent states were found twice with nothing hidden, or no round is left.
static psi_status find_latent_states(clustering_run *run, round_result *best)
{
    psi_status status = PSI_OK;
    round_result now = {0};
    psi_clustering *result = run->result;
    int32_t *parent = NULL;
    const bool exact = strcmp(run->approximator.name, "table") == 0;
    TRY(base_alloc(run->ctx, run->options->max_latent_states + 2, sizeof *parent, &parent));
    for (size_t round = 0; round < run->options->max_rounds && !result->stable; round++) {
        double agreement = 0.0;
        base_free(run->ctx, now.labels);
        now = (round_result){0};
        TRY(run_round(run, round, &now));
        result->rounds = round + 1;
        if (best->labels && !now.test.hot && !best->test.hot && now.n_latent == best->n_latent) {
            TRY(cluster_compare(run->ctx, run->problem.n_rows, best->labels, best->n_latent,
                                now.labels, now.n_latent, &agreement, parent));
        }
        result->stable = agreement > SAME || (exact && now.converged && !now.test.hot);
        if (is_better(&now, best)) {
            const round_result swap = *best;
            *best = now;
            now = swap;
        }
    }
done:
    base_free(run->ctx, parent);
    base_free(run->ctx, now.labels);
    return status;
}

static psi_status describe(clustering_run *run, const round_result *best)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    const cluster_problem *problem = &run->problem;
    psi_counts *counts = NULL;
    const psi_paths paths = cluster_paths(problem, result->labels, result->n_latent);
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, &result->model));
    size_t ignored = 0;
    for (size_t i = 0; i < problem->n_states; i++)
        ignored += result->labels[problem->states[i]] < 0;
    result->ignored = (double)ignored / (double)problem->n_states;
    result->smoothed = best->smoothed;
    result->converged = best->converged;
    result->hot = best->test.hot;
    result->split_gain = best->test.mean;
    result->approximator = run->approximator.name;
    result->gamma = run->options->gamma;
    result->n_steps = run->refinement.n_steps;
    result->steps = run->refinement.steps;
    run->refinement.steps = NULL;
    const psi_cluster_step *last = &result->steps[result->n_steps - 1];
    result->epsilon_reward = run->options->epsilon_reward > 0.0 ? run->options->epsilon_reward
                                                                : 0.5 * problem->rewards.spacing;
    result->epsilon_sf = last->epsilon;
    result->gap = last->gap;
    result->matching_condition = psi_matching_condition(result->gamma, result->epsilon_sf);
    if (run->options->epsilon_sf > 0.0 && !result->matching_condition) {
        base_warn(run->ctx,
                  "gamma %g and epsilon %g do not meet the condition of the paper's theorem "
                  "(gamma < 1/2 and epsilon < 2/3 (1 - gamma / (1 - gamma)))",
                  result->gamma, result->epsilon_sf);
    }
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

// The labels of one part of the episodes: the held-out ones, or the others.
static void labels_of_part(const cluster_problem *problem, const int32_t *labels, bool held_out,
                           int32_t *out)
{
    const psi_trajectories *data = problem->data;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
        const bool wanted = begin < end && (problem->held_out[begin] != 0) == held_out;
        for (uint64_t row = begin + e; row <= end + e; row++) out[row] = wanted ? labels[row] : -1;
    }
}

// Judges a model of the training episodes by the held-out ones (by itself, if there are none).
static psi_status certify(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    const cluster_problem *problem = &run->problem;
    int32_t *part = NULL;
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    psi_partition *merged = NULL;
    const psi_paths all = cluster_paths(problem, result->labels, result->n_latent);
    TRY(base_alloc(run->ctx, problem->n_rows, sizeof *part, &part));
    const psi_paths paths = cluster_paths(problem, part, result->n_latent);
    labels_of_part(problem, result->labels, false, part);
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, &model));
    if (problem->n_held_out > 0) labels_of_part(problem, result->labels, true, part);
    TRY(psi_certify(run->ctx, model, result->gamma, &paths, result->epsilon_reward,
                    result->epsilon_sf, &result->certificate));
    // whether two latent states could be one is asked of all trajectories
    psi_counts_free(run->ctx, counts);
    counts = NULL;
    TRY(psi_counts_new(run->ctx, &all, &counts));
    psi_merge_options merging = psi_merge_defaults();
    merging.reward_tolerance = 0.1 * problem->rewards.spacing;
    TRY(psi_merge(run->ctx, counts, &merging, &merged));
    result->certificate->mergeable = result->n_latent - merged->n_blocks;
done:
    psi_partition_free(run->ctx, merged);
    psi_mdp_free(run->ctx, model);
    psi_counts_free(run->ctx, counts);
    base_free(run->ctx, part);
    return status;
}

static psi_status check_options(psi_ctx *ctx, const psi_cluster_options *options)
{
    const struct {
        const char *name;
        size_t value;
    } counts[] = {{"max-refinements", options->max_refinements},
                  {"max-rounds", options->max_rounds},
                  {"max-latent-states", options->max_latent_states},
                  {"hidden", options->hidden},
                  {"trunk-steps", options->trunk_steps},
                  {"head-steps", options->head_steps},
                  {"representation-steps", options->representation_steps}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].value == 0) {
            return FAIL(ctx, PSI_EUSAGE, "--%s must be at least 1", counts[i].name);
        }
    }
    if (!(options->gamma > 0.0 && options->gamma < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "gamma %g is not between 0 and 1", options->gamma);
    }
    if (!(options->filter >= 0.0 && options->filter < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "a filter of %g is not a share of the states",
                    options->filter);
    }
    if (!(options->epsilon_reward >= 0.0 && options->epsilon_sf >= 0.0)) {
        return FAIL(ctx, PSI_EUSAGE, "epsilon cannot be negative");
    }
    if (!(options->learning_rate > 0.0)) {
        return FAIL(ctx, PSI_EUSAGE, "a learning rate of %g learns nothing",
                    options->learning_rate);
    }
    return PSI_OK;
}

psi_status psi_cluster(psi_ctx *ctx, const psi_trajectories *data,
                       const psi_cluster_options *options, psi_clustering **out)
{
    psi_status status = PSI_OK;
    psi_clustering *result = NULL;
    clustering_run run = {.ctx = ctx, .options = options};
    round_result best = {0};
    *out = NULL;
    TRY(check_options(ctx, options));
    TRY(base_alloc_zero(ctx, 1, sizeof *result, &result));
    run.result = result;
    result->accuracy = (double)NAN;
    result->n_observations = data->n_observations;
    TRY(cluster_problem_new(ctx, data, options->seed, &run.problem));
    TRY(choose_approximator(&run));
    TRY(find_latent_states(&run, &best));
    result->has_terminal = run.problem.has_terminal;
    result->n_latent = best.n_latent;
    result->labels = best.labels;
    best.labels = NULL;
    TRY(describe(&run, &best));
    TRY(certify(&run));
    const psi_net *trunk = cluster_network_trunk(&run.approximator);
    if (trunk) {
        TRY(cluster_representation(ctx, &run.problem, &run.inputs, trunk, result->labels,
                                   result->n_latent, options->representation_steps, 1e-3,
                                   options->shift, options->seed + 7, &result->representation,
                                   &result->accuracy));
    }
    *out = result;
    result = NULL;
done:
    base_free(ctx, best.labels);
    if (run.approximator.self) {
        cluster_refinement_free(ctx, &run.approximator, &run.refinement);
        run.approximator.free(run.approximator.self, ctx);
    }
    cluster_inputs_free(ctx, &run.inputs);
    cluster_problem_free(ctx, &run.problem);
    psi_clustering_free(ctx, result);
    return status;
}

void psi_clustering_free(psi_ctx *ctx, psi_clustering *clustering)
{
    if (!clustering) return;
    base_free(ctx, clustering->labels);
    base_free(ctx, clustering->steps);
    psi_mdp_free(ctx, clustering->model);
    psi_certificate_free(ctx, clustering->certificate);
    psi_net_free(ctx, clustering->representation);
    base_free(ctx, clustering);
}
