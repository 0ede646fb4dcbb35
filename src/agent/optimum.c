// The optimum of a task: value iteration on its exact model, and what the best policy then earns in
// an episode, by following the probabilities of all states step by step.
#include <psifold/agent.h>

#include "base/context.h"

#include <string.h>

psi_status psi_task_mdp(psi_ctx *ctx, const psi_task_exact *task, psi_mdp **out)
{
    psi_status status = PSI_OK;
    const size_t pairs = task->n_states * task->n_actions, n = task->offsets[pairs];
    uint64_t *rows = NULL;
    double *reward = NULL;
    *out = NULL;
    TRY(base_alloc(ctx, n, sizeof *rows, &rows));
    TRY(base_alloc_zero(ctx, pairs, sizeof *reward, &reward));
    for (size_t row = 0; row < pairs; row++) {
        for (size_t i = task->offsets[row]; i < task->offsets[row + 1]; i++) {
            rows[i] = row;
            reward[row] += task->probability[i] * task->reward[i];
        }
    }
    status = psi_mdp_from_entries(ctx, task->n_states, task->n_actions, n, rows, task->next,
                                  task->probability, reward, task->terminal, out);
done:
    base_free(ctx, rows);
    base_free(ctx, reward);
    return status;
}

// One step of all states at once: alive (S) is where an episode may be, and how probably.
static void follow(const psi_mdp *mdp, const int32_t *policy, const double *alive, double *next,
                   psi_optimum *out)
{
    memset(next, 0, mdp->n_states * sizeof *next);
    for (size_t s = 0; s < mdp->n_states; s++) {
        if (alive[s] == 0 || mdp->terminal[s]) continue;
        const size_t row = s * mdp->n_actions + (size_t)policy[s];
        out->steps += alive[s];
        out->reward += alive[s] * mdp->reward[row];
        for (uint64_t i = mdp->offsets[row]; i < mdp->offsets[row + 1]; i++) {
            if (!mdp->terminal[mdp->next[i]]) next[mdp->next[i]] += alive[s] * mdp->probability[i];
        }
    }
}

psi_status psi_task_optimum(psi_ctx *ctx, const psi_task *task, double gamma, psi_optimum *out)
{
    psi_status status = PSI_OK;
    psi_task_exact *exact = NULL;
    psi_mdp *mdp = NULL;
    psi_plan *plan = NULL;
    double *alive = NULL, *next = NULL;
    psi_plan_options how = psi_plan_defaults();
    how.gamma = gamma;
    *out = (psi_optimum){0};
    TRY(psi_task_model(ctx, task, &exact));
    TRY(psi_task_mdp(ctx, exact, &mdp));
    TRY(psi_value_iteration(ctx, mdp, &how, &plan));
    TRY(base_alloc(ctx, exact->n_states, sizeof *alive, &alive));
    TRY(base_alloc(ctx, exact->n_states, sizeof *next, &next));
    memcpy(alive, exact->start, exact->n_states * sizeof *alive);
    for (size_t s = 0; s < exact->n_states; s++) out->value += alive[s] * plan->value[s];
    for (uint32_t t = 0; t < task->max_steps; t++) {
        const double before = out->steps;
        follow(mdp, plan->policy, alive, next, out);
        if (out->steps - before < 1e-15) break;
        double *seen = alive;
        alive = next;
        next = seen;
    }
    out->reward_per_step = out->steps > 0 ? out->reward / out->steps : 0;
done:
    base_free(ctx, alive);
    base_free(ctx, next);
    psi_plan_free(ctx, plan);
    psi_mdp_free(ctx, mdp);
    psi_task_model_free(ctx, exact);
    return status;
}
