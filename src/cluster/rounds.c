// By successor features: refine, polish, ask whether anything is still hidden, refine further if
// so.
#include "cluster/clustering.h"

#include "base/blas.h"
#include "base/checked.h"
#include "base/context.h"
#include "base/random.h"
#include "cluster/polish.h"
#include "cluster/run.h"
#include "cluster/seen.h"
#include "cluster/successor.h"
#include "cluster/verdict.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

// The gap's share of the first refinement of each round: a round that finds something hidden is
// followed by one that looks closer.
static const double KICKS[] = {0.0, 0.45, 0.27, 0.16, 0.1};
static const double SAME = 0.985;
static const double MISFIT = 0.5;     // nats per step by which states that fit nowhere surprise
static const double CLEARLY = 0.8;    // clearly less is less than this much of it
static const double BY_CHANCE = 0.25; // of what may be hidden: seems to be where nothing is

// A table if observations repeat so often that their next states can be counted.
static psi_status try_table(clustering_run *run, bool wanted)
{
    const size_t n = run->problem.n_rows, actions = run->problem.data->n_actions;
    const size_t most = wanted ? n : n / (20 * actions);
    const psi_status status =
        cluster_table_new(run->ctx, &run->problem, most + 1, &run->approximator);
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
    cluster_phases *phases = &run->state.phases;
    const psi_cluster_options *options = run->options;
    if (options->run) TRY(cluster_checkpoint_load_trunk(options->run, &run->trunk));
    if (run->trunk) goto done;
    cluster_phases_turn_to(phases, PHASE_LEARNING);
    TRY(cluster_network_fit_trunk(run->ctx, &run->problem, &run->inputs, &run->network,
                                  &run->trunk));
    cluster_phases_turn_to(phases, PHASE_REST);
    if (options->run) TRY(cluster_checkpoint_save_phases(options->run, phases));
    if (options->run) TRY(cluster_checkpoint_save_trunk(options->run, run->trunk));
done:
    return status;
}

// Features that are learnt once, and heads on them.
static psi_status use_heads(clustering_run *run, psi_net_kind kind)
{
    psi_status status = PSI_OK;
    cluster_set_network_options(run, kind);
    TRY(cluster_learn_trunk(run));
    cluster_phases_turn_to(&run->state.phases, PHASE_FEATURES);
    TRY(cluster_network_new(run->ctx, &run->problem, &run->inputs, &run->network, run->trunk,
                            &run->approximator));
    cluster_phases_turn_to(&run->state.phases, PHASE_REST);
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
    if (options->run) {
        TRY(cluster_folder_path(options->run, ".", &run->fits));
        run->paper.checkpoint = run->fits;
        if (cluster_checkpoint_exists(options->run)) {
            TRY(cluster_checkpoint_load_trunk(options->run, &run->trunk));
        }
    }
    TRY(cluster_paper_new(run->ctx, &run->problem, &run->inputs, &run->paper, run->trunk,
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
        if (run->approximator.self) goto done;
    }
    if (run->problem.data->n_actions > CLUSTER_MOST_ACTIONS) {
        status = FAIL(run->ctx, PSI_ELIMIT,
                      "%zu actions are more than the %d that networks here are made for",
                      run->problem.data->n_actions, CLUSTER_MOST_ACTIONS);
        goto done;
    }
    TRY(cluster_inputs_new(run->ctx, run->problem.data->observations, kind == PSI_APPROXIMATOR_MLP,
                           &run->inputs));
    if (kind == PSI_APPROXIMATOR_AUTO) {
        kind = run->inputs.is_image ? PSI_APPROXIMATOR_CNN : PSI_APPROXIMATOR_MLP;
    }
    const psi_net_kind net = kind == PSI_APPROXIMATOR_MLP   ? PSI_NET_MLP
                             : kind == PSI_APPROXIMATOR_CNN ? PSI_NET_CNN
                                                            : PSI_NET_RESNET18;
    TRY(options->paper ? use_whole_networks(run, net) : use_heads(run, net));
done:
    return status;
}

// After every refinement: what it found is kept, and told.
static psi_status after_refinement(void *user, const psi_cluster_step *step, size_t number,
                                   size_t n_observations, const int32_t *labels)
{
    psi_status status = PSI_OK;
    clustering_run *run = user;
    const psi_cluster_options *options = run->options;
    cluster_phases_update(&run->state.phases);
    if (options->run) {
        const psi_net *rewards = number == 1 ? cluster_paper_net(&run->approximator) : NULL;
        if (rewards) TRY(cluster_checkpoint_save_trunk(options->run, rewards));
        TRY(cluster_checkpoint_refinement(options->run, &run->problem, &run->approximator,
                                          &run->state));
    }
    if (options->watch) TRY(options->watch(options->user, step, number, n_observations, labels));
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

bool cluster_is_polished(const clustering_run *run)
{
    return run->options->smooth && strcmp(run->approximator.name, "table") != 0;
}

// Every how manieth episode refinements look at. What is hidden may be too rare for so few: where
// something is, twice as many are looked at in the next round. Splitting cannot catch up with
// states that it did not look at.
static size_t stride_of(const clustering_run *run)
{
    const size_t subset = run->options->subset, n = run->problem.n_states;
    if (subset == 0 || run->options->split || strcmp(run->approximator.name, "table") == 0)
        return 1;
    const size_t stride = (n + subset - 1) / subset;
    return base_max(stride >> base_min(run->state.hidden_rounds, 63), 1);
}

// One round: refine (from where the round before stopped), polish a copy, judge it.
static psi_status run_round(clustering_run *run, round_result *out)
{
    psi_status status = PSI_OK;
    const psi_cluster_options *options = run->options;
    const size_t n = run->problem.n_rows, round = run->state.round;
    const size_t last_kick = sizeof KICKS / sizeof KICKS[0] - 1;
    const double spacing = run->problem.rewards.spacing;
    double misfit;
    // what is still hidden may be too rare for the filter
    const double filter =
        options->filter / (double)((size_t)1 << base_min(run->state.hidden_rounds, 8));
    const refine_options how = {
        .gamma = options->gamma,
        .epsilon_reward = options->epsilon_reward > 0.0 ? options->epsilon_reward / spacing : 0.5,
        .epsilon_sf = options->epsilon_sf,
        .gap_share = 0.75,
        .kick = KICKS[round < last_kick ? round : last_kick],
        .filter = filter,
        .norm = options->norm,
        .split = options->split,
        .sf_alone = options->paper != PSI_PAPER_NONE,
        .max_refinements = options->max_refinements,
        .max_latent_states = options->max_latent_states,
        .stride = stride_of(run),
        .seed = cluster_seed_of(run, SEED_REFINE, 0),
        .watch = after_refinement,
        .user = run};
    refinement *refined = &run->state.refinement;
    cluster_phases *phases = &run->state.phases;
    // half of the features may be too few to see what is hidden
    run->network.dropout = options->dropout && run->state.hidden_rounds == 0;
    cluster_phases_turn_to(phases, PHASE_REFINEMENTS);
    TRY(cluster_refine(run->ctx, &run->problem, &run->approximator, &how, refined));
    TRY(base_alloc(run->ctx, n, sizeof *out->labels, &out->labels));
    memcpy(out->labels, refined->labels, n * sizeof *out->labels);
    out->n_latent = refined->n_latent;
    out->converged = refined->converged;
    if (cluster_is_polished(run)) {
        const polish_options polishing = {.filter = filter,
                                          .may_lose = 0.05,
                                          .max_rounds = 12,
                                          .seed = cluster_seed_of(run, SEED_POLISH, round)};
        polish_summary summary;
        cluster_phases_turn_to(phases, PHASE_POLISHING);
        TRY(cluster_polish(run->ctx, &run->problem, &run->approximator, &polishing, out->labels,
                           &out->n_latent, &summary));
        out->smoothed = (double)summary.changed / (double)run->problem.n_states;
    }
    if (options->paper) goto done; // it has no such question
    cluster_phases_turn_to(phases, PHASE_HIDDEN);
    TRY(cluster_judge_split(run->ctx, &run->problem, &run->approximator, out->labels, out->n_latent,
                            cluster_seed_of(run, SEED_JUDGE, round), &out->test));
    TRY(cluster_judge_homes(run->ctx, &run->problem, refined->labels, out->labels, out->n_latent,
                            &misfit));
    out->misfit = misfit > MISFIT;
    out->test.hot |= out->misfit;
    out->test.hidden = fmax(out->test.hidden, misfit / MISFIT);
done:
    cluster_phases_turn_to(phases, PHASE_REST);
    return status;
}

// Is a, which was found later, better than b? What hides nothing comes first, and of that what has
// fewer latent states; else what hides clearly less, on average or, if that is the same, somewhere.
static bool is_better(const round_result *a, const round_result *b)
{
    if (!b->labels) return true;
    if (a->test.hot != b->test.hot) return b->test.hot;
    if (!a->test.hot && a->n_latent != b->n_latent) return a->n_latent < b->n_latent;
    if (!b->test.hot && b->test.hidden < BY_CHANCE) return false;
    const double on_average =
        fmax(a->test.mean, JUDGE_HOT_MEAN) / fmax(b->test.mean, JUDGE_HOT_MEAN);
    if (on_average < CLEARLY || on_average > 1.0 / CLEARLY) return on_average < 1.0;
    return a->test.hidden < CLEARLY * b->test.hidden;
}

// Rounds until the same latent states were found twice with nothing hidden, or no round is left.
static psi_status find_latent_states(clustering_run *run)
{
    psi_status status = PSI_OK;
    round_result now = {0};
    run_state *state = &run->state;
    round_result *best = &state->best;
    int32_t *parent = NULL;
    const bool exact = strcmp(run->approximator.name, "table") == 0;
    TRY(base_alloc(run->ctx, run->options->max_latent_states + 2, sizeof *parent, &parent));
    while (state->round < run->options->max_rounds && !state->stable) {
        double agreement = 0.0;
        base_free(run->ctx, now.labels);
        now = (round_result){0};
        status = run_round(run, &now);
        // a closer look saw too much, or nothing at all
        const bool in_vain = status == PSI_ELIMIT || status == PSI_EDATA || status == PSI_ENUMERIC;
        if (in_vain && best->labels) {
            base_warn(run->ctx, "round %zu: %s; what was found before stays", state->round + 1,
                      psi_error(run->ctx)->message);
            status = PSI_OK;
            break;
        }
        TRY(status);
        if (best->labels && !now.test.hot && !best->test.hot && now.n_latent == best->n_latent) {
            TRY(cluster_compare(run->ctx, run->problem.n_rows, best->labels, best->n_latent,
                                now.labels, now.n_latent, &agreement, parent));
        }
        state->hidden_rounds += now.misfit ? 2 : now.test.hot;
        state->stable = agreement > SAME || (exact && now.converged && !now.test.hot);
        if (is_better(&now, best)) {
            const round_result swap = *best;
            *best = now;
            now = swap;
        }
        state->round++;
        if (run->options->run) {
            TRY(cluster_checkpoint_round(run->options->run, &run->problem, state));
        }
    }
    run->network.dropout = run->options->dropout;
done:
    base_free(run->ctx, parent);
    base_free(run->ctx, now.labels);
    return status;
}

// The time is up: the best round, or, if none has ended, the refinement that the first has got to.
static psi_status take_what_there_is(clustering_run *run)
{
    psi_status status = PSI_OK;
    const refinement *refined = &run->state.refinement;
    round_result *best = &run->state.best;
    const size_t n = run->problem.n_rows;
    if (!best->labels) {
        if (refined->n_steps == 0) return PSI_ECANCELLED;
        TRY(base_alloc(run->ctx, n, sizeof *best->labels, &best->labels));
        memcpy(best->labels, refined->labels, n * sizeof *best->labels);
        best->n_latent = refined->n_latent;
        best->test = (split_test){.mean = (double)NAN, .hot = true}; // something may be hidden
    }
    run->result->stopped = true;
done:
    return status;
}

static psi_status describe(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    const cluster_problem *problem = &run->problem;
    refinement *refined = &run->state.refinement;
    round_result *best = &run->state.best;
    psi_counts *counts = NULL;
    result->has_terminal = problem->has_terminal;
    result->n_latent = best->n_latent;
    result->labels = best->labels;
    best->labels = NULL;
    result->rounds = run->state.round;
    result->stable = run->state.stable;
    TRY(cluster_keep_seen(run->ctx, result));
    const psi_paths paths = cluster_paths(problem, result->labels, result->n_latent);
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, &result->model));
    size_t ignored = 0;
    for (size_t i = 0; i < problem->n_states; i++)
        ignored += result->labels[problem->states[i]] < 0;
    result->ignored = (double)ignored / (double)problem->n_states;
    result->smoothed = best->smoothed;
    result->converged = best->converged;
    result->judged = !run->options->paper;
    result->hot = best->test.hot;
    result->split_gain = result->judged ? best->test.mean : (double)NAN;
    result->approximator = run->approximator.name;
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
                  "gamma %g and epsilon %g do not meet the condition of the paper's theorem "
                  "(gamma < 1/2 and epsilon < 2/3 (1 - gamma / (1 - gamma)))",
                  result->gamma, result->epsilon_sf);
    }
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

// A tree over the features, of which 32 random sums keep distances well enough.
static psi_status grow_looks(clustering_run *run)
{
    psi_status status = PSI_OK;
    enum { WIDTH = 32, BLOCK = 1024 };
    const feature_cache *features = cluster_network_features(&run->approximator);
    float *z = NULL, *sign = NULL;
    uint64_t rows[BLOCK];
    if (!features) return PSI_OK;
    const size_t n = features->n, d = features->d;
    base_random random = base_random_stream(run->options->seed, (uint32_t)SEED_JUDGE, UINT32_MAX);
    TRY(base_alloc(run->ctx, n, WIDTH * sizeof *run->vectors, &run->vectors));
    TRY(base_alloc(run->ctx, BLOCK, d * sizeof *z, &z));
    TRY(base_alloc(run->ctx, WIDTH, d * sizeof *sign, &sign));
    TRY(base_blas_ready(run->ctx));
    for (size_t i = 0; i < WIDTH * d; i++) sign[i] = base_random_u32(&random) & 1 ? 1.0f : -1.0f;
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_cancelled(run->ctx));
        cluster_features_gather(run->ctx, features, rows, count, z);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)count, WIDTH, (blasint)d,
                    1.0f, z, (blasint)d, sign, (blasint)d, 0.0f, run->vectors + begin * WIDTH,
                    WIDTH);
    }
    TRY(cluster_looks_tree(run->ctx, &run->problem, WIDTH, run->vectors, &run->looks));
done:
    base_free(run->ctx, sign);
    base_free(run->ctx, z);
    return status;
}

// The verdict. Nothing is asked of what was not finished.
static psi_status ask_how_sure(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    cluster_set_deadline(run, CLUSTER_BEFORE_NETWORK);
    cluster_phases_turn_to(&run->state.phases, PHASE_HIDDEN);
    if (!result->stopped) status = grow_looks(run);
    if (!result->stopped && status == PSI_OK) {
        status = cluster_judge_labels(run->ctx, &run->problem, &run->looks, result);
    }
    if (status == PSI_ECANCELLED && base_time_is_up(run->ctx)) {
        result->stopped = true;
        status = PSI_OK;
    }
    if (result->stopped) {
        result->verdict = PSI_VERDICT_UNDETERMINED;
        result->margin = (double)NAN;
        result->doubtful = result->ignored;
    }
    cluster_set_deadline(run, CLUSTER_NEVER);
    cluster_forget_looks(run);
    cluster_phases_turn_to(&run->state.phases, PHASE_REST);
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
    TRY(choose_approximator(run));
    if (options->run) {
        TRY(cluster_checkpoint_load(options->run, &run->problem, &run->approximator,
                                    options->max_latent_states, &run->state));
        TRY(tell_again(run));
    }
    status = find_latent_states(run);
    if (status == PSI_ECANCELLED && base_time_is_up(run->ctx)) status = take_what_there_is(run);
    TRY(status);
    cluster_set_deadline(run, CLUSTER_NEVER);
    TRY(describe(run));
    if (!options->paper) TRY(ask_how_sure(run)); // which the paper does not
done:
    return status;
}
