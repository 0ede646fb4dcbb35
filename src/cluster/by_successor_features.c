// By successor features: what the paper does, with its whole networks for every refinement, or with
// a table or heads on features that are learnt once. How sure the answer is, nobody asks here.
#include "cluster/clustering.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "cluster/seen.h"
#include "refine/successor.h"
#include "run/run.h"

#include <math.h>
#include <string.h>

// A table if observations repeat so often that their next states can be counted.
static psi_status try_table(clustering_run *run, bool wanted)
{
    const size_t n = run->problem.n_rows, actions = run->problem.data->n_actions;
    const size_t most = wanted ? n : n / (20 * actions);
    const psi_status status =
        learn_table_new(run->ctx, &run->problem, most + 1, &run->approximator);
    return status == PSI_ELIMIT && !wanted ? PSI_OK : status;
}

static size_t hidden_of(const psi_cluster_options *options)
{
    return options->hidden > 0 ? options->hidden : 512;
}

void cluster_set_network_options(clustering_run *run, psi_net_kind kind)
{
    const psi_cluster_options *options = run->options;
    const size_t hidden = hidden_of(options);
    run->network = (network_options){.kind = kind,
                                     .n_hidden = kind == PSI_NET_MLP ? 2 : 0,
                                     .hidden = {hidden, hidden},
                                     .trunk = {.steps = options->trunk_steps,
                                               .windows = kind == PSI_NET_MLP ? 16 : 32,
                                               .length = 8,
                                               .learning_rate = options->learning_rate,
                                               .inverse_weight = options->auxiliary ? 1.0 : 0.0,
                                               .contrast_weight = options->auxiliary ? 1.0 : 0.0,
                                               .next_weight = options->auxiliary ? 12.0 : 0.0,
                                               .shift = options->shift,
                                               .seed = cluster_seed_of(run, SEED_TRUNK, 0)},
                                     .cache = options->cache,
                                     .head_steps = options->head_steps,
                                     .head_batch = 512,
                                     .dropout = options->dropout,
                                     .head_learning_rate = options->learning_rate,
                                     .seed = cluster_seed_of(run, SEED_TRUNK, 0)};
    if (options->trunk_steps == 0) run->network.trunk.steps = kind == PSI_NET_MLP ? 2000 : 1000;
}

psi_status cluster_learn_trunk(clustering_run *run)
{
    psi_status status = PSI_OK;
    run_phases *phases = &run->state.phases;
    if (run->folder) TRY(run_checkpoint_load_trunk(run->folder, &run->trunk));
    if (base_ranks(run->ctx) > 1) {
        TRY(learn_network_share_trunk(run->ctx, &run->problem, &run->inputs, &run->network,
                                      &run->trunk));
    }
    if (run->trunk) goto done;
    run_phases_turn_to(phases, PHASE_LEARNING);
    TRY(learn_network_fit_trunk(run->ctx, &run->problem, &run->inputs, &run->network, &run->trunk));
    run_phases_turn_to(phases, PHASE_REST);
    if (run->folder) TRY(run_checkpoint_save_phases(run->folder, phases));
    if (run->folder) TRY(run_checkpoint_save_trunk(run->folder, run->trunk));
done:
    return status;
}

psi_status cluster_use_heads(clustering_run *run)
{
    psi_status status = PSI_OK;
    run_phases_turn_to(&run->state.phases, PHASE_FEATURES);
    TRY(learn_network_new(run->ctx, &run->problem, &run->inputs, &run->network, run->trunk,
                          &run->approximator));
    run_phases_turn_to(&run->state.phases, PHASE_REST);
done:
    return status;
}

// Features that are learnt once, and heads on them.
static psi_status learn_features(clustering_run *run, psi_net_kind kind)
{
    psi_status status = PSI_OK;
    cluster_set_network_options(run, kind);
    TRY(cluster_learn_trunk(run));
    TRY(cluster_use_heads(run));
done:
    return status;
}

// What the paper does: a whole network for every refinement.
static psi_status use_whole_networks(clustering_run *run, psi_net_kind kind)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    run->paper = (paper_options){.kind = kind,
                                 .batch = options->batch,
                                 .reward_epochs = options->reward_epochs,
                                 .sf_epochs = options->sf_epochs,
                                 .learning_rate = options->learning_rate,
                                 .seed = cluster_seed_of(run, SEED_TRUNK, 0),
                                 .hidden = hidden_of(options)};
    if (run->folder) {
        TRY(run_folder_path(run->folder, ".", &run->fits));
        run->paper.checkpoint = run->fits;
        if (run_checkpoint_exists(run->folder)) {
            TRY(run_checkpoint_load_trunk(run->folder, &run->trunk));
        }
    }
    TRY(learn_paper_new(run->ctx, &run->problem, &run->inputs, &run->paper, run->trunk,
                        &run->approximator));
done:
    return status;
}

static psi_status choose_approximator(clustering_run *run)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    psi_approximator kind = options->approximator;
    if (kind == PSI_APPROXIMATOR_AUTO || kind == PSI_APPROXIMATOR_TABLE) {
        TRY(try_table(run, kind == PSI_APPROXIMATOR_TABLE));
        if (run->approximator.kind == PSI_APPROXIMATOR_TABLE) goto done;
    }
    if (run->problem.data->n_actions > CLUSTER_MOST_ACTIONS) {
        status = FAIL(run->ctx, PSI_ELIMIT,
                      "%zu actions are more than the %d that networks here are made for",
                      run->problem.data->n_actions, CLUSTER_MOST_ACTIONS);
        goto done;
    }
    TRY(problem_inputs_new(run->ctx, run->problem.data->observations, kind == PSI_APPROXIMATOR_MLP,
                           &run->inputs));
    TRY(problem_inputs_look(run->ctx, &run->inputs));
    if (kind == PSI_APPROXIMATOR_AUTO) {
        kind = run->inputs.is_image ? PSI_APPROXIMATOR_CNN : PSI_APPROXIMATOR_MLP;
    }
    const psi_net_kind net = kind == PSI_APPROXIMATOR_MLP   ? PSI_NET_MLP
                             : kind == PSI_APPROXIMATOR_CNN ? PSI_NET_CNN
                                                            : PSI_NET_RESNET18;
    TRY(options->paper ? use_whole_networks(run, net) : learn_features(run, net));
done:
    return status;
}

// After every refinement: what it found is kept, and told.
static psi_status after_refinement(void *user, const psi_cluster_step *step, size_t number,
                                   size_t n_observations, const int32_t *labels)
{
    psi_status status = PSI_OK;
    clustering_run *run = user;
    run_phases_update(&run->state.phases);
    if (number == 1) cluster_share_time(run);
    if (run->folder) {
        const psi_net *const *trained = run->approximator.trained;
        if (trained && number == 1) TRY(run_checkpoint_save_trunk(run->folder, *trained));
        TRY(run_checkpoint_refinement(run->folder, &run->problem, &run->state));
    }
    TRY(cluster_tell(run, step, number, n_observations, labels));
done:
    return status;
}

// The refinements that an earlier process has made are told once more.
static psi_status tell_again(const clustering_run *run)
{
    psi_status status = PSI_OK;
    const refinement *at = &run->state.refinement;
    const psi_cluster_options *options = run->options;
    for (size_t i = 0; options->watch && i < at->n_steps; i++) {
        TRY(options->watch(options->user, &at->steps[i], i + 1, run->problem.n_rows, NULL));
    }
done:
    return status;
}

// Algorithm 1, once.
static psi_status find_latent_states(clustering_run *run)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    const double spacing = run->problem.rewards.spacing;
    const refine_options how = {
        .gamma = options->gamma,
        .epsilon_reward = options->epsilon_reward > 0.0 ? options->epsilon_reward / spacing : 0.5,
        .epsilon_sf = options->epsilon_sf,
        .gap_share = 0.75,
        .filter = options->filter,
        .norm = options->norm,
        .split = options->split,
        .sf_alone = options->paper != PSI_PAPER_NONE,
        .max_refinements = options->max_refinements,
        .max_latent_states = options->max_latent_states,
        .seed = cluster_seed_of(run, SEED_REFINE, 0),
        .watch = after_refinement,
        .user = run};
    run_phases_turn_to(&run->state.phases, PHASE_REFINEMENTS);
    TRY(refine_by_successor_features(run->ctx, &run->problem, &run->approximator, &how,
                                     &run->state.refinement));
done:
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

static psi_status describe(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    const cluster_problem *problem = &run->problem;
    refinement *refined = &run->state.refinement;
    psi_counts *counts = NULL;
    result->has_terminal = problem->has_terminal;
    result->n_latent = refined->n_latent;
    result->labels = refined->labels;
    refined->labels = NULL;
    TRY(cluster_keep_seen(run->ctx, problem->n_rows, result));
    const psi_paths paths = problem_paths(problem, result->labels, result->n_latent);
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, &result->model));
    size_t ignored = 0;
    for (size_t i = 0; i < problem->n_states; i++)
        ignored += result->labels[problem->states[i]] < 0;
    result->ignored = (double)ignored / (double)problem->n_states;
    result->converged = refined->converged;
    result->approximator = run->approximator.kind;
    result->has_trunk = learn_is_network(&run->approximator);
    result->gamma = run->options->gamma;
    result->n_steps = refined->n_steps;
    result->steps = refined->steps;
    refined->steps = NULL;
    const psi_cluster_step *last = &result->steps[result->n_steps - 1];
    result->epsilon_reward = run->options->epsilon_reward > 0.0 ? run->options->epsilon_reward
                                                                : 0.5 * problem->rewards.spacing;
    result->epsilon_sf = last->epsilon;
    result->gap = last->gap;
    if (result->n_steps == 1) { // by rewards alone: nothing has looked at successor features yet
        TRY(cluster_find_gap(run->ctx, result->model, result->gamma, &result->gap));
        result->epsilon_sf = run->options->epsilon_sf > 0.0 ? run->options->epsilon_sf
                                                            : fmin(0.75 * result->gap, 0.5);
    }
    result->matching_condition = psi_matching_condition(result->gamma, result->epsilon_sf);
    if (run->options->epsilon_sf > 0.0 && !result->matching_condition) {
        base_warn(run->ctx,
                  "gamma %g and epsilon %g do not satisfy the condition of the paper's theorem "
                  "(gamma < 1/2 and epsilon < 2/3 (1 - gamma / (1 - gamma)))",
                  result->gamma, result->epsilon_sf);
    }
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

psi_status cluster_find_by_successor_features(clustering_run *run)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    const reward_classes *rewards = &run->problem.rewards;
    if (rewards->n < 2) {
        status = FAIL(run->ctx, PSI_EDATA,
                      "all %zu rewards are %g%s: nothing distinguishes one state from another",
                      run->problem.data->n_transitions, rewards->value[0],
                      rewards->deviation > 0.0 ? " up to noise" : "");
        goto done;
    }
    TRY(cluster_go_on_alone(run, "successor features are learnt by one process"));
    if (run->elsewhere) goto done;
    TRY(choose_approximator(run));
    if (run->folder) {
        TRY(run_checkpoint_load(run->folder, &run->problem, &run->approximator,
                                options->max_latent_states, &run->state));
        TRY(tell_again(run));
        if (run->state.refinement.n_steps > 0) cluster_share_time(run);
    }
    status = find_latent_states(run);
    // the last refinement that was finished is what there is
    if (run->state.refinement.n_steps > 0) status = cluster_go_without(run, status);
    TRY(status);
    cluster_set_deadline(run, CLUSTER_NEVER);
    TRY(describe(run));
done:
    return status;
}
