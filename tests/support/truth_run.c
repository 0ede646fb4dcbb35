// truth_run TASK FOLDER NET STEPS EPISODES [OPTION VALUE]…: the run folder of a perfect clustering,
// to try agents with.
#include "support/truth.h"

#include <stdio.h>
#include <stdlib.h>

static psi_status keep(void *user, const psi_episode *episode)
{
    return psi_collector_add(user, episode);
}

static psi_status collect(psi_ctx *ctx, const char *name, char **options, uint64_t episodes,
                          psi_trajectories **out)
{
    psi_task task;
    psi_collector *collector;
    psi_status status = psi_task_defaults(ctx, name, NULL, &task);
    for (; status == PSI_OK && options[0] && options[1]; options += 2) {
        status = psi_task_set(ctx, &task, options[0], options[1]);
    }
    if (status == PSI_OK) status = psi_task_check(ctx, &task);
    if (status != PSI_OK) return status;
    const psi_episode_spec spec = psi_collect_spec(&task);
    status = psi_collector_new(ctx, &spec, &collector);
    if (status != PSI_OK) return status;
    status = psi_collect(ctx, &task, episodes, 1, keep, collector, NULL);
    if (status == PSI_OK) return psi_collector_finish(collector, out);
    psi_collector_discard(collector);
    return status;
}

int main(int argc, char **argv)
{
    psi_ctx *ctx;
    psi_trajectories *data = NULL;
    psi_net_kind kind;
    psi_net *net;
    double accuracy;
    if (argc < 6 || psi_ctx_new(NULL, &ctx) != PSI_OK) {
        fputs("usage: truth_run TASK FOLDER NET STEPS EPISODES [OPTION VALUE]…\n", stderr);
        return 2;
    }
    psi_status status = psi_net_kind_from_name(ctx, argv[3], &kind);
    if (status == PSI_OK) {
        status = collect(ctx, argv[1], argv + 6, strtoull(argv[5], NULL, 10), &data);
    }
    if (status == PSI_OK) {
        status = test_truth_net(ctx, data, kind, strtoull(argv[4], NULL, 10), 1, &net);
    }
    if (status == PSI_OK) status = test_truth_accuracy(ctx, data, net, &accuracy);
    if (status == PSI_OK) {
        printf("right for %.2f %% of its own data\n", 100 * accuracy);
        status = test_truth_run(ctx, data, net, argv[2]);
    }
    if (status != PSI_OK) fprintf(stderr, "truth_run: %s\n", psi_error(ctx)->message);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
    return status == PSI_OK ? 0 : 1;
}
