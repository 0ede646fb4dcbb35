// The whole method: find the latent states, certify them, learn the network that tells them apart.
#include "cluster/clustering.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"
#include "cluster/certificate.h"
#include "cluster/options.h"
#include "cluster/representation.h"
#include "cluster/run.h"
#include "cluster/samples.h"
#include "cluster/stages.h"

#include <math.h>
#include <string.h>

uint64_t cluster_seed_of(const clustering_run *run, seed_purpose purpose, size_t round)
{
    base_random random = base_random_stream(run->options->seed, (uint32_t)purpose, round);
    return base_random_u64(&random);
}

void cluster_set_deadline(clustering_run *run, double share)
{
    const double budget = run->options->budget;
    const bool never = budget <= 0.0 || share <= 0.0;
    base_set_deadline(run->ctx, never ? 0.0 : run->began + share * budget);
}

// What a network has not learnt in time it does not know: how much that is, its accuracy says.
static bool is_late(clustering_run *run, psi_status status)
{
    if (status != PSI_ECANCELLED || !base_time_is_up(run->ctx)) return false;
    run->result->stopped = true;
    if (run->result->verdict == PSI_VERDICT_CERTAIN) {
        run->result->verdict = PSI_VERDICT_UNDETERMINED;
        run->result->stable = false;
    }
    return true;
}

static psi_status find_representation(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    char *path = NULL;
    const psi_cluster_options *options = run->options;
    const psi_net *from = options->paper ? cluster_paper_net(&run->approximator) : run->trunk;
    cluster_fit *fit = NULL;
    if (!from) return PSI_OK;
    cluster_phases_turn_to(&run->state.phases, PHASE_REPRESENTATION);
    if (!options->fine_tune && !options->paper && run->approximator.self) {
        TRY(cluster_fit_states(run->ctx, &run->problem, &run->approximator, result->labels,
                               result->n_latent, cluster_seed_of(run, SEED_REPRESENTATION, 0),
                               "training the representation", &fit));
        TRY(cluster_network_join(run->ctx, &run->approximator, from, fit, &result->representation));
        TRY(cluster_representation_judge(run->ctx, &run->problem, &run->inputs,
                                         result->representation, result->labels, result->n_latent,
                                         &result->accuracy));
        cluster_phases_turn_to(&run->state.phases, PHASE_REST);
        goto done;
    }
    // what has learnt labels that are not the last, or not in time, is not gone on with
    if (run->options->run && options->budget <= 0.0) {
        TRY(cluster_folder_path(run->options->run, "representation.safetensors", &path));
    }
    const representation_options how = {.steps = options->representation_steps,
                                        .epochs =
                                            options->paper ? options->representation_epochs : 0,
                                        .batch = options->batch,
                                        .learning_rate = options->learning_rate,
                                        .shift = options->paper ? 0 : options->shift,
                                        .seed = cluster_seed_of(run, SEED_REPRESENTATION, 0),
                                        .checkpoint = path};
    cluster_set_deadline(run, CLUSTER_BEFORE_WRITING);
    status = cluster_representation(run->ctx, &run->problem, &run->inputs, from, result->labels,
                                    result->n_latent, &how, &result->representation);
    if (result->representation && is_late(run, status)) status = PSI_OK;
    cluster_set_deadline(run, CLUSTER_NEVER);
    TRY(status);
    TRY(cluster_representation_judge(run->ctx, &run->problem, &run->inputs, result->representation,
                                     result->labels, result->n_latent, &result->accuracy));
    cluster_phases_turn_to(&run->state.phases, PHASE_REST);
done:
    if (fit) run->approximator.fit_free(run->approximator.self, run->ctx, fit);
    base_free(run->ctx, path);
    return status;
}

// Heads of every refinement, for other data than these.
static psi_status keep_stages(clustering_run *run)
{
    const psi_cluster_options *options = run->options;
    psi_clustering *result = run->result;
    result->has_heads = options->run && options->heads && run->approximator.self && run->trunk &&
                        !options->paper && !result->stopped;
    if (!result->has_heads) return PSI_OK;
    cluster_phases_turn_to(&run->state.phases, PHASE_HEADS);
    cluster_set_deadline(run, CLUSTER_BEFORE_WRITING);
    psi_status status =
        cluster_stages_save(options->run, &run->problem, &run->approximator, result->steps,
                            result->n_steps, cluster_seed_of(run, SEED_STAGES, 0));
    if (is_late(run, status)) {
        result->has_heads = false;
        status = PSI_OK;
    }
    cluster_set_deadline(run, CLUSTER_NEVER);
    cluster_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

// Whether such a run has this phase: asked of how it was started, not of the clock, so that it is
// the same for a run in pieces.
static bool has_phase(const clustering_run *run, cluster_phase phase)
{
    const psi_cluster_options *options = run->options;
    switch (phase) {
    case PHASE_LEARNING:
    case PHASE_FEATURES:
        return (run->trunk && run->approximator.self && !options->paper) || run->result->has_trunk;
    case PHASE_POLISHING: return run->approximator.self && cluster_is_polished(run);
    case PHASE_HIDDEN: return run->result->judged && !run->result->confidence;
    case PHASE_REPRESENTATION: return run->result->representation != NULL;
    case PHASE_HEADS: return run->result->has_heads;
    default: return true;
    }
}

static psi_status tell_phases(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_clustering *result = run->result;
    const cluster_phases *phases = &run->state.phases;
    cluster_phases_update(&run->state.phases);
    TRY(base_alloc(run->ctx, PHASES, sizeof *result->phases, &result->phases));
    for (cluster_phase phase = 0; phase < PHASES; phase++) {
        if (!has_phase(run, phase)) continue;
        result->phases[result->n_phases++] = (psi_cluster_phase){.name = cluster_phase_name(phase),
                                                                 .seconds = phases->seconds[phase],
                                                                 .passes = phases->passes[phase]};
    }
done:
    return status;
}

// Stopped in good order: the time since the last checkpoint was spent, too.
static psi_status keep_time(clustering_run *run)
{
    cluster_phases_update(&run->state.phases);
    return cluster_checkpoint_save_phases(run->options->run, &run->state.phases);
}

static void run_free(clustering_run *run)
{
    psi_ctx *ctx = run->ctx;
    cluster_forget_looks(run);
    base_free(ctx, run->state.best.labels);
    cluster_refinement_free(ctx, &run->approximator, &run->state.refinement);
    if (run->approximator.self) run->approximator.free(run->approximator.self, ctx);
    psi_net_free(ctx, run->trunk);
    base_free(ctx, run->fits);
    cluster_inputs_free(ctx, &run->inputs);
    cluster_problem_free(ctx, &run->problem);
    psi_clustering_free(ctx, run->result);
}

psi_status psi_cluster(psi_ctx *ctx, const psi_trajectories *data,
                       const psi_cluster_options *options, psi_clustering **out)
{
    psi_status status = PSI_OK;
    clustering_run run = {.ctx = ctx, .options = options, .began = base_seconds()};
    psi_trajectories seen = *data;
    psi_observations *stacked = NULL;
    bool under_way = false; // what is kept of it was read
    cluster_phases_start(&run.state.phases, &run.inputs.passed);
    *out = NULL;
    TRY(cluster_options_check(ctx, options));
    TRY(base_alloc_zero(ctx, 1, sizeof *run.result, &run.result));
    run.result->accuracy = (double)NAN;
    run.result->n_observations = data->n_observations;
    run.result->stack = options->stack;
    if (options->run) {
        run.began = options->run->started; // reading the data counts
        TRY(cluster_run_start(options->run, data, options));
        TRY(cluster_checkpoint_load_phases(options->run, &run.state.phases));
        under_way = true;
    }
    TRY(psi_observations_stack(ctx, data->observations, options->stack, data->n_episodes,
                               data->episode_offsets, &stacked));
    seen.observations = stacked;
    TRY(cluster_problem_new(ctx, &seen, options->seed, &run.problem));
    const bool evidence = options->method == PSI_METHOD_EVIDENCE && !options->paper;
    run.result->verdict = PSI_VERDICT_NOT_ASKED;
    cluster_set_deadline(&run, CLUSTER_BEFORE_NETWORK);
    status = evidence ? cluster_find_by_evidence(&run) : cluster_find_by_successor_features(&run);
    if (status == PSI_ECANCELLED && base_time_is_up(ctx)) {
        status = FAIL(ctx, PSI_ECANCELLED,
                      "a budget of %g s, half of which is for finding latent states, ended before "
                      "the first refinement was done",
                      options->budget);
    }
    TRY(status);
    TRY(cluster_certify(ctx, &run.problem, run.result));
    TRY(find_representation(&run));
    TRY(keep_stages(&run));
    TRY(tell_phases(&run));
    if (under_way && run.result->stopped) TRY(keep_time(&run));
    *out = run.result;
    run.result = NULL;
done:
    if (status == PSI_ECANCELLED && under_way) {
        const psi_status kept = keep_time(&run);
        if (kept != PSI_OK) status = kept;
    }
    base_set_deadline(ctx, 0.0);
    run_free(&run);
    psi_observations_free(ctx, stacked);
    return status;
}

void psi_clustering_free(psi_ctx *ctx, psi_clustering *clustering)
{
    if (!clustering) return;
    base_free(ctx, clustering->labels);
    base_free(ctx, clustering->confidence);
    base_free(ctx, clustering->doubts);
    base_free(ctx, clustering->steps);
    base_free(ctx, clustering->phases);
    psi_mdp_free(ctx, clustering->model);
    psi_certificate_free(ctx, clustering->certificate);
    psi_net_free(ctx, clustering->representation);
    base_free(ctx, clustering);
}
