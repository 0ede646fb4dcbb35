#include "support/truth.h"

#include "base/context.h"
#include "learn/approximator.h"
#include "run/known.h"
#include "run/run.h"

#include <math.h>
#include <string.h>

static size_t count_states(const psi_trajectories *data)
{
    int32_t largest = 0;
    for (size_t i = 0; i < data->n_observations; i++) {
        if (data->latent_states[i] > largest) largest = data->latent_states[i];
    }
    return (size_t)largest + 1;
}

static psi_status gather(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, void *out)
{
    return psi_observations_gather(ctx, user, rows, n, out);
}

psi_status test_truth_net(psi_ctx *ctx, const psi_trajectories *data, psi_net_kind kind,
                          size_t steps, uint64_t seed, psi_net **out)
{
    enum { BATCH = 256 };
    psi_status status = PSI_OK;
    psi_net *net = NULL;
    psi_work *work = NULL;
    *out = NULL;
    const psi_shape shape = *psi_observations_shape(data->observations);
    psi_net_spec spec = psi_net_defaults(kind, &shape, psi_observations_dtype(data->observations),
                                         1, count_states(data));
    if (kind == PSI_NET_MLP) spec.hidden[0] = spec.hidden[1] = 128;
    TRY(psi_net_new(ctx, &spec, seed, &net));
    TRY(psi_work_new(ctx, net,
                     &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = BATCH},
                     &work));
    const psi_samples samples = {.source = {(void *)data->observations, gather},
                                 .n = data->n_observations,
                                 .targets = data->latent_states};
    const psi_train_options how = {.size = sizeof how,
                                   .batch = BATCH,
                                   .epochs = 1 + steps * BATCH / data->n_observations,
                                   .max_steps = steps,
                                   .schedule = {PSI_LINEAR, 2e-3, 20, 0.3},
                                   .seed = seed};
    TRY(psi_net_train(ctx, net, work, &samples, &how));
    *out = net;
    net = NULL;
done:
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    return status;
}

psi_status test_truth_accuracy(psi_ctx *ctx, const psi_trajectories *data, const psi_net *net,
                               double *accuracy)
{
    psi_status status = PSI_OK;
    int32_t *labels = NULL;
    psi_predictor *predictor = NULL;
    size_t right = 0;
    TRY(base_alloc(ctx, data->n_observations, sizeof *labels, &labels));
    // nothing was seen: no observation is unlike it
    const psi_run alone = {.representation = (psi_net *)net, .n_latent = psi_net_n_outputs(net)};
    TRY(psi_predictor_new(ctx, &alone, &predictor));
    TRY(psi_predict(ctx, predictor, data->observations, 0.0, labels, NULL));
    for (size_t i = 0; i < data->n_observations; i++) right += labels[i] == data->latent_states[i];
    *accuracy = (double)right / (double)data->n_observations;
done:
    psi_predictor_free(ctx, predictor);
    base_free(ctx, labels);
    return status;
}

static psi_status latent_model(psi_ctx *ctx, const psi_trajectories *data, psi_paths *paths,
                               psi_mdp **out)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    *paths = (psi_paths){.n_episodes = data->n_episodes,
                         .n_transitions = data->n_transitions,
                         .n_actions = data->n_actions,
                         .n_latent = count_states(data),
                         .has_terminal = true,
                         .labels = data->latent_states,
                         .actions = data->actions,
                         .rewards = data->rewards,
                         .episode_offsets = data->episode_offsets,
                         .terminated = data->terminated};
    TRY(psi_counts_new(ctx, paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1, out));
done:
    psi_counts_free(ctx, counts);
    return status;
}

// What clustering would have found.
static psi_status make_run(psi_ctx *ctx, const psi_trajectories *data, psi_net *net, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    psi_paths paths;
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    *run = (psi_run){.n_episodes = data->n_episodes,
                     .n_transitions = data->n_transitions,
                     .n_observations = data->n_observations,
                     .n_actions = data->n_actions,
                     .options = psi_cluster_defaults(),
                     .n_latent = count_states(data),
                     .has_terminal = true,
                     .representation = net,
                     .approximator = learn_kind_of(psi_net_spec_of(net)->kind),
                     .verdict = PSI_VERDICT_NOT_ASKED,
                     .gamma = 0.5,
                     .epsilon_reward = 0.5,
                     .epsilon_sf = 0.5,
                     .converged = true,
                     .has_trunk = true};
    net = NULL;
    TRY(psi_fingerprint_of(ctx, data, &run->fingerprint));
    TRY(test_truth_accuracy(ctx, data, run->representation, &run->accuracy));
    TRY(base_alloc(ctx, data->n_observations, sizeof *run->labels, &run->labels));
    memcpy(run->labels, data->latent_states, data->n_observations * sizeof *run->labels);
    TRY(latent_model(ctx, data, &paths, &run->model));
    TRY(psi_certify(ctx, run->model, 0.5, &paths, 0.5, 0.5, &run->certificate));
    TRY(run_known_find(ctx, data, run, &run->known));
    *out = run;
    run = NULL;
done:
    psi_net_free(ctx, net);
    psi_run_free(ctx, run);
    return status;
}

psi_status test_truth_run(psi_ctx *ctx, const psi_trajectories *data, psi_net *net,
                          const char *folder)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    psi_run_folder *to = NULL;
    char *trunk = NULL;
    TRY(make_run(ctx, data, net, &run));
    TRY(psi_run_folder_open(ctx, folder, PSI_FOLDER_REPLACE, &to));
    TRY(run_folder_begin(to));
    // a clustering keeps its trunk there while it works; here it is the network itself
    TRY(run_folder_result(to, "trunk.safetensors", &trunk));
    TRY(psi_net_save(ctx, run->representation, trunk));
    TRY(run_save(to, run));
done:
    base_free(ctx, trunk);
    run_folder_suspend(to);
    psi_run_free(ctx, run);
    return status;
}
