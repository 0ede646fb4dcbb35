// Labels of cells, settled in turns as those of images are. A tree halves vectors by what varies
// most, and a cell mixes latent states where that is not what tells them apart: hundreds of numbers
// that vary by themselves drown a few that matter. Heads on the features learn the labels instead,
// so that every number weighs what it tells; forward–backward and evidence do the rest.
#include "cluster/clustering.h"

#include "base/checked.h"
#include "base/context.h"
#include "refine/settle.h"
#include "verdict/verdict.h"

#include <string.h>

// Labels that looks, trajectories and evidence agree on, from those of cells; latent states as
// observations of a table, so that what was found is whole: run->found.
static psi_status settle(clustering_run *run, const by_evidence *cells)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = run->ctx;
    const size_t n = run->problem.n_rows, first = run->problem.has_terminal ? 1 : 0;
    const psi_cluster_options *options = run->options;
    const settle_options turns = {.rewards = &run->outcomes,
                                  .max_turns = CLUSTER_MOST_TURNS,
                                  .max_latent_states = options->max_latent_states,
                                  .seed = cluster_seed_of(run, SEED_POLISH, 0)};
    const by_evidence_options once = {.max_refinements = options->max_refinements,
                                      .max_latent_states = options->max_latent_states};
    learn_approximator heads = {0};
    problem_looks table = {0};
    outcome_rewards rewards = {0};
    settle_summary summary;
    size_t n_latent = cells->n_latent;
    int32_t *labels = NULL;
    float *confidence = NULL;
    TRY(base_alloc(ctx, n, sizeof *labels, &labels));
    TRY(base_alloc(ctx, n, sizeof *confidence, &confidence));
    memcpy(labels, cells->labels, n * sizeof *labels);
    memcpy(confidence, cells->confidence, n * sizeof *confidence);
    TRY(learn_network_new(ctx, &run->problem, &run->inputs, &run->network, run->trunk, &heads));
    TRY(refine_settle(ctx, &run->problem, &heads, &turns, labels, confidence, &n_latent, &summary));
    TRY(problem_looks_of_labels(ctx, &run->problem, labels, n_latent - first, first, &table));
    TRY(problem_outcome_rewards(ctx, &run->problem, &table, &rewards));
    TRY(refine_by_evidence(ctx, &run->problem, &table, &rewards, &once, &run->found));
    memcpy(run->found.confidence, confidence,
           n * sizeof *confidence); // trajectories', not a table's
    run->found.smoothed = (double)summary.changed / (double)run->problem.whole.n_states;
    run->found.turns = summary.turns;
    run->found.untold = summary.untold;
    run->found.mistaken = summary.mistaken;
    run->found.converged &= summary.settled;
done:
    problem_outcome_rewards_free(ctx, &rewards);
    problem_looks_free(ctx, &table);
    learn_approximator_free(ctx, &heads);
    base_free(ctx, confidence);
    base_free(ctx, labels);
    return status;
}

static psi_status judge(clustering_run *run)
{
    psi_run *result = run->result;
    result->labels = run->found.labels;
    result->confidence = run->found.confidence;
    result->n_latent = run->found.n_latent;
    result->converged = run->found.converged;
    const psi_status status =
        verdict_judge_labels(run->ctx, &run->problem, &run->looks, run->found.untold, result);
    result->labels = NULL; // still in found
    result->confidence = NULL;
    return status;
}

psi_status cluster_settle_labels(clustering_run *run, bool *settled)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    cluster_answer cells = {0};
    *settled = false;
    // the past may tell no more than which observations are misplaced
    const bool open =
        result->verdict == PSI_VERDICT_UNDETERMINED || result->verdict == PSI_VERDICT_NOT_MARKOV;
    if (!open || !run->found.converged || run->outcomes.n < 2 || !run->options->smooth) {
        return PSI_OK;
    }
    cells = cluster_set_aside(run);
    run_phases_turn_to(&run->state.phases, PHASE_REFINEMENTS);
    status = settle(run, &cells.found);
    if (status == PSI_OK) status = judge(run);
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    *settled = status == PSI_OK && (result->verdict == PSI_VERDICT_CERTAIN ||
                                    cluster_share_open(result->doubtful, result->past) <
                                        cluster_share_open(cells.doubtful, cells.past));
    if (!*settled) cluster_take_back(run, &cells);
    if (status != PSI_OK) status = cluster_go_without(run, status); // labels of cells are an answer
    cluster_answer_free(run->ctx, &cells);
    return status;
}
