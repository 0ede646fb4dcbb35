// The whole method: find the latent states, certify them, learn the network that tells them apart.
#include "cluster/clustering.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/json.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/random.h"
#include "cluster/seen.h"
#include "learn/representation.h"
#include "learn/samples.h"
#include "run/known.h"
#include "run/options.h"
#include "run/run.h"
#include "run/stages.h"
#include "verdict/certificate.h"

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

void cluster_share_time(clustering_run *run)
{
    const bool network = run->inputs.row_bytes > 0;
    cluster_set_deadline(run, network ? CLUSTER_BEFORE_NETWORK : CLUSTER_BEFORE_WRITING);
}

bool cluster_is_late(const clustering_run *run, psi_status status)
{
    return status == PSI_ECANCELLED && base_time_is_up(run->ctx);
}

bool cluster_can_spare(const clustering_run *run, psi_status status)
{
    if (base_ranks(run->ctx) > 1) return false; // the others have not failed
    switch (status) {
    case PSI_OK:
    case PSI_EINTERNAL: return false;
    case PSI_ECANCELLED: return cluster_is_late(run, status);
    case PSI_EIO:
    case PSI_EFORMAT: // of a checkpoint
    case PSI_ENOMEM: return !run->refused && !run->folder;
    default: return !run->refused;
    }
}

psi_status cluster_go_without(clustering_run *run, psi_status status)
{
    psi_run *result = run->result;
    if (!cluster_can_spare(run, status)) return status;
    if (cluster_is_late(run, status)) {
        result->stopped = true;
        return PSI_OK;
    }
    base_warn(run->ctx, "%s; what was found before is kept", psi_error(run->ctx)->message);
    return result->failure
               ? PSI_OK
               : base_copy_text(run->ctx, psi_error(run->ctx)->message, &result->failure);
}

psi_status cluster_tell(clustering_run *run, const psi_cluster_step *step, size_t number,
                        size_t n_observations, const int32_t *labels)
{
    const psi_cluster_options *options = run->options;
    if (!options->watch) return PSI_OK;
    const psi_status status = options->watch(options->user, step, number, n_observations, labels);
    run->refused = status != PSI_OK;
    return status;
}

// Makes a problem of the data, as they are looked at.
static psi_status look_at(clustering_run *run, const psi_trajectories *data)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = run->ctx;
    problem_free(ctx, &run->problem);
    psi_observations_free(ctx, run->stacked);
    run->stacked = NULL;
    run->seen = *data;
    TRY(psi_observations_stack(ctx, data->observations, run->options->stack, data->n_episodes,
                               data->episode_offsets, &run->stacked));
    run->seen.observations = run->stacked;
    TRY(problem_new(ctx, &run->seen, run->options->seed, &run->problem));
done:
    return status;
}

psi_status cluster_go_on_alone(clustering_run *run, const char *why)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = run->ctx;
    if (base_ranks(ctx) == 1) return PSI_OK;
    if (base_rank(ctx) == 0) {
        base_warn(ctx, "%s: process 0 of %d gathers all observations and goes on alone", why,
                  base_ranks(ctx));
    }
    TRY(psi_trajectories_collect(ctx, run->given, &run->whole));
    run->elsewhere = base_rank(ctx) > 0;
    base_go_alone(ctx);
    if (!run->elsewhere) TRY(look_at(run, run->whole));
done:
    return status;
}

// What several processes have found is brought together where it is written.
static psi_status bring_together(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    const size_t n = run->problem.n_rows;
    int32_t *labels = NULL;
    float *confidence = NULL;
    size_t bytes;
    if (base_ranks(run->ctx) == 1) return PSI_OK;
    TRY(cluster_collect_labels(run->ctx, n, result->labels, result->n_latent, &labels));
    TRY(base_collect(run->ctx, result->confidence, n * sizeof *confidence, &confidence, &bytes));
    base_free(run->ctx, result->labels);
    base_free(run->ctx, result->confidence);
    result->labels = labels;
    result->confidence = confidence;
    labels = NULL;
    run->elsewhere = base_rank(run->ctx) > 0;
done:
    base_free(run->ctx, labels);
    return status;
}

static psi_status find_representation(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    char *path = NULL;
    const psi_cluster_options *options = run->options;
    const psi_net *const *trained = run->approximator.trained,
                         *from = trained ? *trained : run->trunk;
    learn_fit *fit = NULL;
    if (!from) return PSI_OK;
    run_phases_turn_to(&run->state.phases, PHASE_REPRESENTATION);
    if (!options->fine_tune && run->approximator.features) {
        TRY(learn_fit_states(run->ctx, &run->problem, &run->approximator, result->labels,
                             result->n_latent, cluster_seed_of(run, SEED_REPRESENTATION, 0),
                             "training the representation", &fit));
        TRY(learn_network_join(run->ctx, run->approximator.features, from, fit,
                               &result->representation));
        TRY(learn_representation_judge(run->ctx, &run->problem, &run->inputs,
                                       result->representation, result->labels, result->n_latent,
                                       &result->accuracy));
        run_phases_turn_to(&run->state.phases, PHASE_REST);
        goto done;
    }
    // what has learnt labels that are not the last, or not in time, is not gone on with
    if (run->folder && options->budget <= 0.0) {
        TRY(run_folder_path(run->folder, "representation.safetensors", &path));
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
    status = learn_representation(run->ctx, &run->problem, &run->inputs, from, result->labels,
                                  result->n_latent, &how, &result->representation);
    status = cluster_go_without(run, status); // as far as it got
    cluster_set_deadline(run, CLUSTER_NEVER);
    TRY(status);
    if (!result->representation) goto done;
    TRY(learn_representation_judge(run->ctx, &run->problem, &run->inputs, result->representation,
                                   result->labels, result->n_latent, &result->accuracy));
    run_phases_turn_to(&run->state.phases, PHASE_REST);
done:
    learn_fit_free(run->ctx, fit);
    base_free(run->ctx, path);
    return status;
}

// Heads of every refinement, for other data than these.
static psi_status keep_stages(clustering_run *run)
{
    const psi_cluster_options *options = run->options;
    psi_run *result = run->result;
    uint8_t kept = run->folder != NULL; // rank 0 has it
    const psi_status told = base_any(run->ctx, &kept, 1);
    if (told != PSI_OK) return told;
    result->has_heads = kept && options->heads && run->approximator.features && !result->stopped &&
                        !result->failure;
    if (!result->has_heads) return PSI_OK;
    run_phases_turn_to(&run->state.phases, PHASE_HEADS);
    cluster_set_deadline(run, CLUSTER_BEFORE_WRITING);
    psi_status status =
        run_stages_save(run->ctx, run->folder, &run->problem, &run->approximator, result->steps,
                        result->n_steps, cluster_seed_of(run, SEED_STAGES, 0));
    if (status != PSI_OK) result->has_heads = false;
    status = cluster_go_without(run, status);
    cluster_set_deadline(run, CLUSTER_NEVER);
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

// Whether such a run has this phase: asked of how it was started, not of the clock, so that it is
// the same for a run in pieces.
static bool has_phase(const clustering_run *run, run_phase phase)
{
    const psi_cluster_options *options = run->options;
    switch (phase) {
    case PHASE_LEARNING:
    case PHASE_FEATURES: return run->result->has_trunk && !options->paper;
    case PHASE_LABELS:
    case PHASE_JUDGING: return learn_is_network(&run->approximator) && run->result->confidence;
    case PHASE_REPRESENTATION: return run->result->representation != NULL;
    case PHASE_HEADS: return run->result->has_heads;
    default: return true;
    }
}

static psi_status tell_phases(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    const run_phases *phases = &run->state.phases;
    run_phases_update(&run->state.phases);
    TRY(base_alloc(run->ctx, PHASES, sizeof *result->phases, &result->phases));
    for (run_phase phase = 0; phase < PHASES; phase++) {
        if (!has_phase(run, phase)) continue;
        result->phases[result->n_phases++] = (psi_cluster_phase){.name = run_phase_name(phase),
                                                                 .seconds = phases->seconds[phase],
                                                                 .passes = phases->passes[phase],
                                                                 .talk = phases->talk[phase]};
    }
done:
    return status;
}

// What the latent states of other observations are told by: the network, or else a table.
static psi_status find_known(clustering_run *run, const psi_trajectories *seen)
{
    psi_run *result = run->result;
    if (!result->representation && result->approximator != PSI_APPROXIMATOR_TABLE) return PSI_OK;
    return run_known_find(run->ctx, seen, result, &result->known);
}

// Stopped in good order: the time since the last checkpoint was spent, too.
static psi_status keep_time(clustering_run *run)
{
    run_phases_update(&run->state.phases);
    return run_checkpoint_save_phases(run->folder, &run->state.phases);
}

static void free_work(clustering_run *run)
{
    psi_ctx *ctx = run->ctx;
    cluster_forget_looks(run);
    refine_free(ctx, &run->state.refinement);
    learn_approximator_free(ctx, &run->approximator);
    psi_net_free(ctx, run->trunk);
    base_free(ctx, run->fits);
    problem_inputs_free(ctx, &run->inputs);
    problem_free(ctx, &run->problem);
    psi_run_free(ctx, run->result);
    psi_observations_free(ctx, run->stacked);
    psi_trajectories_free(ctx, run->whole);
}

// What is known of a run before the work begins. The data are hashed here, and nowhere else.
static psi_status new_run(psi_ctx *ctx, const psi_trajectories *data,
                          const psi_cluster_options *options, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    size_t n[] = {data->n_episodes, data->n_transitions, data->n_observations};
    TRY(base_sum_sizes(ctx, n, 3));
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    *run = (psi_run){.n_episodes = n[0],
                     .n_transitions = n[1],
                     .n_observations = n[2],
                     .n_actions = data->n_actions,
                     .observation_dtype = psi_observations_dtype(data->observations),
                     .observation_shape = *psi_observations_shape(data->observations),
                     .options = *options,
                     .threads = psi_threads(ctx),
                     .accuracy = (double)NAN,
                     .verdict = PSI_VERDICT_NOT_ASKED};
    run->options.watch = NULL;
    run->options.user = NULL;
    TRY(psi_fingerprint_of(ctx, data, &run->fingerprint));
    if (data->observation_key) {
        TRY(base_copy_text(ctx, data->observation_key, &run->observation_key));
    }
    *out = run;
    run = NULL;
done:
    psi_run_free(ctx, run);
    return status;
}

// The whole method, as the paper has it: latent states, how well they hold, and the network that
// tells them apart. folder may be NULL.
static psi_status cluster(psi_ctx *ctx, const psi_trajectories *data,
                          const psi_cluster_options *options, psi_run_folder *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    clustering_run run = {
        .ctx = ctx, .options = options, .folder = folder, .given = data, .began = base_seconds()};
    bool under_way = false; // what is kept of it was read
    run_phases_start(&run.state.phases, &run.inputs.passed);
    run.state.phases.spent = base_comm_spent(ctx);
    run.state.phases.seen = *run.state.phases.spent; // reading is no phase of its own
    TRY(run_options_check(ctx, options));
    if (options->budget > 0.0) TRY(base_alone(ctx, "a budget of time"));
    TRY(new_run(ctx, data, options, &run.result));
    if (folder) {
        TRY(run_start(folder, run.result));
        TRY(run_checkpoint_load_phases(folder, &run.state.phases));
        run.began = folder->started; // reading the data counts
        under_way = true;
    }
    TRY(look_at(&run, data));
    const bool evidence = options->method == PSI_METHOD_EVIDENCE && !options->paper;
    cluster_set_deadline(&run, CLUSTER_BEFORE_WRITING);
    status = evidence ? cluster_find_by_evidence(&run) : cluster_find_by_successor_features(&run);
    if (cluster_is_late(&run, status)) {
        status = FAIL(ctx, PSI_ECANCELLED,
                      "a budget of %g s ended before the first refinement was done: there is no "
                      "answer yet",
                      options->budget);
    }
    TRY(status);
    if (run.elsewhere) goto done;
    TRY(cluster_go_without(&run, verdict_certify(ctx, &run.problem, run.result)));
    TRY(cluster_go_without(&run, find_representation(&run)));
    TRY(keep_stages(&run));
    TRY(cluster_go_without(&run, find_known(&run, &run.seen)));
    TRY(bring_together(&run));
    if (run.elsewhere) goto done;
    TRY(cluster_go_without(&run, tell_phases(&run)));
    TRY(cluster_go_without(&run, run_check_found(ctx, run.result)));
    if (run.result->stopped || run.result->failure) {
        const psi_verdict verdict = run.result->verdict; // not certain of what was not finished
        if (verdict == PSI_VERDICT_CERTAIN || verdict == PSI_VERDICT_NOT_ASKED) {
            run.result->verdict = PSI_VERDICT_UNDETERMINED;
        }
        if (under_way && run.result->stopped) TRY(keep_time(&run));
    }
    run.result->finished = true;
    run.result->seconds = folder ? run_folder_seconds(folder) : base_seconds() - run.began;
    *out = run.result;
    run.result = NULL;
done:
    if (status == PSI_ECANCELLED && under_way) {
        const psi_status kept = keep_time(&run);
        if (kept != PSI_OK) status = kept;
    }
    base_set_deadline(ctx, 0.0);
    free_work(&run);
    return status;
}

psi_status psi_cluster(psi_ctx *ctx, const psi_trajectories *data,
                       const psi_cluster_options *options, psi_run **out)
{
    *out = NULL;
    if (FREED(ctx, data)) return PSI_EUSAGE;
    if (!base_options_fit(ctx, options, sizeof *options, "psi_cluster_defaults")) return PSI_EUSAGE;
    return cluster(ctx, data, options, NULL, out);
}

psi_status psi_cluster_into(psi_run_folder *folder, const char *const *data_paths,
                            size_t n_data_paths, const psi_trajectories *data,
                            const psi_cluster_options *options, psi_run **out)
{
    *out = NULL;
    if (FREED(NULL, folder)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    psi_ctx *ctx = folder->ctx;
    psi_run *run = NULL;
    bool found = false;
    if (FREED(ctx, data)) TRY(PSI_EUSAGE);
    if (!base_options_fit(ctx, options, sizeof *options, "psi_cluster_defaults")) TRY(PSI_EUSAGE);
    for (size_t i = 0; i < n_data_paths; i++) {
        if (base_is_utf8(data_paths[i])) continue;
        TRY(FAIL(ctx, PSI_EUSAGE, "the data's path is not UTF-8, and could not be written down"));
    }
    if (folder->finished) {
        TRY(psi_run_load(ctx, folder->path, &run));
        if (data) TRY(run_compare(folder, run, data, options));
        *out = run;
        run = NULL;
        goto done;
    }
    TRY(cluster(ctx, data, options, folder, &run));
    found = true;
    TRY(base_copy_text(ctx, folder->path, &run->folder));
    TRY(run_set_data_paths(ctx, run, data_paths, n_data_paths));
    TRY(run_save(folder, run));
    *out = run;
    run = NULL;
done:
    psi_run_free(ctx, run);
    // what may pass, or has nothing to do with the data, can be gone on from
    if (found || status == PSI_ECANCELLED || status == PSI_EIO || status == PSI_ENOMEM) {
        run_folder_suspend(folder);
    } else {
        psi_run_folder_close(folder);
    }
    return status;
}
