// By evidence: what is compared are distinct observations where they repeat, else vectors as they
// are, and where these leave something open, features that are learnt.
#include "cluster/clustering.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "cluster/seen.h"
#include "refine/successor.h"
#include "run/run.h"
#include "verdict/contexts.h"
#include "verdict/verdict.h"

#include <math.h>
#include <string.h>

psi_status cluster_after_grouping(void *user, const psi_cluster_step *step, size_t number,
                                  size_t n_observations, const int32_t *labels)
{
    psi_status status = PSI_OK;
    clustering_run *run = user;
    int32_t *whole = NULL; // labels of all processes
    const bool shared = base_ranks(run->ctx) > 1;
    number += run->result->n_steps;
    if (number == 1) cluster_share_time(run);
    if (shared) {
        TRY(cluster_collect_labels(run->ctx, n_observations, labels, step->clusters, &whole));
        if (base_rank(run->ctx) > 0) goto done; // rank 0 keeps and tells it
        labels = whole;
        n_observations = run->problem.whole.n_rows;
    }
    if (run->folder) {
        TRY(run_checkpoint_labels(run->folder, number, n_observations, labels));
    }
    TRY(cluster_tell(run, step, number, n_observations, labels));
done:
    base_free(run->ctx, whole);
    return status;
}

void cluster_forget_looks(clustering_run *run)
{
    refine_by_evidence_free(run->ctx, &run->found);
    problem_outcome_rewards_free(run->ctx, &run->outcomes);
    problem_looks_free(run->ctx, &run->looks);
    base_free(run->ctx, run->vectors);
    run->vectors = NULL;
    problem_looks_free(run->ctx, &run->raw_looks);
    base_free(run->ctx, run->raw);
    run->raw = NULL;
    problem_outcome_rewards_free(run->ctx, &run->raw_outcomes);
    cluster_answer_free(run->ctx, &run->raw_answer);
}

// Distinct observations, if each was seen a few times, or has no looks to compare.
static psi_status try_distinct(clustering_run *run, bool wanted, bool *done)
{
    const psi_observations *observations = run->problem.data->observations;
    const psi_dtype dtype = psi_observations_dtype(observations);
    const bool number =
        psi_observations_row_bytes(observations) == run->options->stack * psi_dtype_size(dtype) &&
        dtype != PSI_FLOAT32 && dtype != PSI_FLOAT64;
    const size_t n = run->problem.whole.n_states;
    const size_t most = wanted || number ? n : n / CLUSTER_FEWEST_VISITS;
    const psi_status status =
        problem_looks_distinct(run->ctx, &run->problem, most + 1, &run->looks);
    *done = status == PSI_OK;
    return status == PSI_ELIMIT && !wanted && !number ? PSI_OK : status;
}

psi_status cluster_add_steps(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    by_evidence *found = &run->found;
    const size_t n = result->n_steps + found->n_steps;
    TRY(base_resize(run->ctx, n, sizeof *result->steps, &result->steps));
    for (size_t i = 0; i < found->n_steps; i++) result->steps[result->n_steps++] = found->steps[i];
done:
    return status;
}

by_evidence_options cluster_how_to_refine(clustering_run *run)
{
    const psi_cluster_options *options = run->options;
    return (by_evidence_options){.max_refinements = options->max_refinements,
                                 .max_latent_states = options->max_latent_states,
                                 .smooth = options->smooth,
                                 .strict = run->tentative,
                                 .watch = run->tentative ? NULL : cluster_after_grouping,
                                 .user = run};
}

// Refinements by these rewards, as far as they get.
static psi_status refine_by(clustering_run *run, const by_evidence_options *how)
{
    const psi_status status =
        refine_by_evidence(run->ctx, &run->problem, &run->looks, &run->outcomes, how, &run->found);
    const psi_status added = run->tentative ? PSI_OK : cluster_add_steps(run);
    return status != PSI_OK ? status : added;
}

// Rewards by their values, or by their means.
static psi_status find_rewards(clustering_run *run, bool means)
{
    problem_outcome_rewards_free(run->ctx, &run->outcomes);
    return means ? problem_mean_rewards(run->ctx, &run->problem, &run->looks, NULL, &run->outcomes)
                 : problem_outcome_rewards(run->ctx, &run->problem, &run->looks, &run->outcomes);
}

psi_status cluster_share_mixed(clustering_run *run, double *share)
{
    psi_status status = PSI_OK;
    const by_evidence_options once = {.max_refinements = 1,
                                      .max_latent_states = run->options->max_latent_states};
    TRY(find_rewards(run, false));
    TRY(refine_by_evidence(run->ctx, &run->problem, &run->looks, &run->outcomes, &once,
                           &run->found));
    *share = run->found.steps[0].ignored;
done:
    refine_by_evidence_free(run->ctx, &run->found);
    return status;
}

// Large cells first; then smaller ones at borders between latent states.
static psi_status refine_cells(clustering_run *run, bool means)
{
    psi_status status = PSI_OK;
    by_evidence_options how = cluster_how_to_refine(run);
    by_evidence large = {0};
    const bool sampled = problem_looks_are_sampled(&run->problem, &run->looks);
    how.smooth = how.smooth && !sampled;
    TRY(find_rewards(run, means));
    TRY(refine_by(run, &how));
    if (!sampled) goto done;
    TRY(problem_looks_deepen(run->ctx, &run->problem, run->found.grouping->group, &run->looks));
    TRY(find_rewards(run, means));
    large = run->found; // the answer, until there is another one
    run->found = (by_evidence){0};
    how = cluster_how_to_refine(run);
    how.start = large.labels;
    how.n_start = large.n_latent;
    status = refine_by(run, &how);
    if (!run->found.labels) {
        run->found = large;
        large = (by_evidence){0};
    }
done:
    refine_by_evidence_free(run->ctx, &large);
    return status;
}

// Rewards are numbers where their values part what their means do not.
static psi_status refine_looks(clustering_run *run)
{
    psi_status status = PSI_OK;
    double margin;
    int32_t pair[2];
    TRY(refine_cells(run, false));
    if (run->outcomes.n < 3 || !run->looks.forest.looks) goto done;
    TRY(verdict_ask_pairs_by_means(run->ctx, &run->problem, run->found.labels, run->found.n_latent,
                                   &margin, pair));
    if (margin >= 0.0) goto done;
    by_evidence by_values = run->found; // the answer, until there is another one
    run->found = (by_evidence){0};
    status = refine_cells(run, true);
    if (!run->found.labels) {
        run->found = by_values;
        by_values = (by_evidence){0};
    }
    refine_by_evidence_free(run->ctx, &by_values);
done:
    return status;
}

psi_status cluster_group_looks(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    run_phases_turn_to(&run->state.phases, PHASE_REFINEMENTS);
    TRY(refine_looks(run));
    result->labels = run->found.labels;
    result->n_latent = run->found.n_latent;
    result->has_terminal = run->problem.has_terminal;
    TRY(verdict_judge(run->ctx, &run->problem, &run->looks, &run->outcomes, &run->found, result));
done:
    result->labels = NULL; // still in found
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

// γ · min ‖F_i − F_j‖: the smallest distance of two latent states' successor features.
psi_status cluster_find_gap(psi_ctx *ctx, const psi_mdp *model, double gamma, double *gap)
{
    psi_status status = PSI_OK;
    psi_lsfm *lsfm = NULL;
    const size_t k = model->n_states;
    *gap = HUGE_VAL;
    TRY(psi_lsfm_new(ctx, model, gamma, &lsfm));
    for (size_t i = 0; i < k; i++) {
        TRY(base_cancelled(ctx));
        for (size_t j = i + 1; j < k; j++) {
            double square = 0.0;
            for (size_t c = 0; c < k && square < *gap * *gap; c++) {
                const double d = lsfm->f[i * k + c] - lsfm->f[j * k + c];
                square += d * d;
            }
            *gap = fmin(*gap, sqrt(square));
        }
    }
    *gap = k > 1 ? gamma * *gap : 1.0;
done:
    psi_lsfm_free(ctx, lsfm);
    return status;
}

// The model of the labels, and what they mean in the paper's terms.
static psi_status describe(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    by_evidence *found = &run->found;
    const double spacing = run->problem.rewards.spacing;
    psi_counts *counts = NULL;
    result->labels = found->labels;
    result->confidence = found->confidence;
    found->labels = NULL;
    found->confidence = NULL;
    TRY(cluster_keep_seen(run->ctx, run->problem.n_rows, result));
    if (result->verdict == PSI_VERDICT_NO_SMALL_ANSWER) result->growth[2] = result->n_latent;
    const psi_paths paths = problem_paths(&run->problem, result->labels, result->n_latent);
    TRY(psi_counts_together(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, &result->model));
    size_t ignored = 0;
    for (size_t i = 0; i < run->problem.n_states; i++) {
        ignored += result->labels[run->problem.states[i]] < 0;
    }
    TRY(base_sum_sizes(run->ctx, &ignored, 1));
    result->ignored = (double)ignored / (double)run->problem.whole.n_states;
    result->smoothed = found->smoothed;
    result->converged = found->converged;
    result->gamma = run->options->gamma;
    status = cluster_find_gap(run->ctx, result->model, result->gamma, &result->gap);
    if (status != PSI_OK) result->gap = (double)NAN;
    TRY(cluster_go_without(run, status));
    result->epsilon_reward = run->options->epsilon_reward > 0.0 ? run->options->epsilon_reward
                             : spacing > 0.0                    ? 0.5 * spacing
                                                                : 0.5;
    result->epsilon_sf =
        run->options->epsilon_sf > 0.0 ? run->options->epsilon_sf : fmin(0.75 * result->gap, 0.5);
    result->matching_condition = psi_matching_condition(result->gamma, result->epsilon_sf);
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

// What pixels have found is the answer after all: told as one refinement, the last of theirs.
static psi_status adopt_tentative(clustering_run *run)
{
    psi_status status = PSI_OK;
    by_evidence *found = &run->found;
    found->steps[0] = found->steps[found->n_steps - 1];
    found->n_steps = 1;
    TRY(cluster_after_grouping(run, found->steps, 1, run->problem.n_rows, found->labels));
    TRY(cluster_add_steps(run));
done:
    return status;
}

// The last question to what has survived all others.
static psi_status ask_for_resolution(clustering_run *run)
{
    psi_run *result = run->result;
    outcome_rewards rewards = {.n = run->problem.rewards.n, .of = run->problem.rewards.of};
    if (result->verdict != PSI_VERDICT_CERTAIN) return PSI_OK;
    if (run->outcomes.n > 0 || run->outcomes.variance > 0.0) rewards = run->outcomes;
    result->labels = run->found.labels;
    const psi_status status = verdict_judge_resolution(run->ctx, &run->problem, &rewards,
                                                       run->atoms, run->found.mistaken, result);
    result->labels = NULL; // still in found
    return status;
}

psi_status cluster_find_by_evidence(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    const psi_approximator kind = run->options->approximator;
    bool table = false;
    if (kind == PSI_APPROXIMATOR_AUTO || kind == PSI_APPROXIMATOR_TABLE) {
        TRY(try_distinct(run, kind == PSI_APPROXIMATOR_TABLE, &table));
    }
    if (!table) {
        TRY(problem_inputs_new(run->ctx, run->problem.data->observations,
                               kind == PSI_APPROXIMATOR_MLP, &run->inputs));
        TRY(problem_inputs_look(run->ctx, &run->inputs));
        status = run->inputs.is_image ? cluster_find_in_images(run) : cluster_find_in_vectors(run);
    } else {
        run->atoms = true;
        status = cluster_group_looks(run);
    }
    if (status == PSI_OK) status = ask_for_resolution(run);
    if (status != PSI_OK && run->found.labels) {
        TRY(cluster_go_without(run, status));
        result->n_latent = run->found.n_latent;
        result->has_terminal = run->problem.has_terminal;
        TRY(verdict_judge_unfinished(run->ctx, &run->problem, &run->found, result));
        if (result->n_steps == 0) TRY(adopt_tentative(run));
    }
    TRY(status);
    cluster_set_deadline(run, CLUSTER_NEVER);
    if (!table && !run->trunk) {
        TRY(cluster_go_without(run, learn_network_new_trunk(run->ctx, &run->problem, &run->inputs,
                                                            &run->network, &run->trunk)));
    }
    result->approximator = table ? PSI_APPROXIMATOR_TABLE : learn_kind_of(run->network.kind);
    TRY(describe(run));
done:
    return status;
}
