// Plans on the latent model that a clustering leaves: values and best actions of four latent states
// instead of sixteen cells.
#include <psifold/psifold.h>

#include <stdio.h>

static psi_status keep(void *collector, const psi_episode *episode)
{
    return psi_collector_add(collector, episode);
}

static psi_status collect(psi_ctx *ctx, psi_trajectories **out)
{
    psi_task task;
    psi_collector *collector = NULL;
    psi_status status = psi_task_defaults(ctx, "column-world", NULL, &task);
    if (status == PSI_OK) status = psi_task_check(ctx, &task);
    if (status != PSI_OK) return status;
    const psi_episode_spec spec = psi_collect_spec(&task);
    status = psi_collector_new(ctx, &spec, &collector);
    if (status != PSI_OK) return status;
    status = psi_collect(ctx, &task, 300, 1, keep, collector, NULL);
    if (status == PSI_OK) return psi_collector_finish(collector, out);
    psi_collector_discard(collector);
    return status;
}

int main(void)
{
    const psi_cluster_options options = psi_cluster_defaults();
    psi_plan_options planning = psi_plan_defaults();
    psi_ctx *ctx;
    psi_trajectories *data = NULL;
    psi_run *run = NULL;
    psi_plan *plan = NULL;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 1;
    planning.gamma = 0.5;
    psi_status status = collect(ctx, &data);
    if (status == PSI_OK) status = psi_cluster(ctx, data, &options, &run);
    if (status == PSI_OK) status = psi_value_iteration(ctx, run->model, &planning, &plan);
    if (status == PSI_OK) {
        double best = 0.0, sum = 0.0;
        int32_t action = -1;
        for (size_t k = 0; k < plan->n_states; k++) {
            sum += plan->value[k];
            if (plan->value[k] <= best) continue;
            best = plan->value[k];
            action = plan->policy[k];
        }
        printf("%zu latent states are worth %.2f together, the best of them %.2f\n", plan->n_states,
               sum, best); // 1 + 1/2 + 1/4, and nothing at the end
        printf("there the best action is to move right: %s\n",
               action == PSI_MOVE_RIGHT ? "yes" : "no");
    } else {
        fprintf(stderr, "%s\n", psi_error(ctx)->message);
    }
    psi_plan_free(ctx, plan);
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
