// Planning on a finite or latent model: value iteration in place.
#include <psifold/mdp.h>

#include "base/context.h"
#include "base/options.h"

#include <math.h>

psi_plan_options psi_plan_defaults(void)
{
    return (psi_plan_options){.size = sizeof(psi_plan_options),
                              .gamma = 0.95,
                              .tolerance = 1e-10,
                              .unseen = PSI_UNSEEN_EXCLUDED};
}

// Q(s,a) = w_a(s) + γ Σ M_a(s,s') V(s')
static double action_value(const psi_mdp *mdp, const psi_plan_options *options, const double *value,
                           size_t s, size_t a)
{
    const size_t row = s * mdp->n_actions + a;
    if (mdp->offsets[row] == mdp->offsets[row + 1]) {
        return options->unseen == PSI_UNSEEN_OPTIMISTIC ? options->optimistic_value : -HUGE_VAL;
    }
    double next = 0.0;
    for (uint64_t i = mdp->offsets[row]; i < mdp->offsets[row + 1]; i++)
        next += mdp->probability[i] * value[mdp->next[i]];
    return mdp->reward[row] + options->gamma * next;
}

// One sweep over all states; returns the largest change.
static double sweep(const psi_mdp *mdp, const psi_plan_options *options, psi_plan *plan)
{
    double change = 0.0;
    for (size_t s = 0; s < mdp->n_states; s++) {
        if (mdp->terminal[s]) continue;
        double best = -HUGE_VAL;
        for (size_t a = 0; a < mdp->n_actions; a++)
            best = fmax(best, action_value(mdp, options, plan->value, s, a));
        if (isinf(best)) continue; // nothing is known to do here: worth 0
        change = fmax(change, fabs(best - plan->value[s]));
        plan->value[s] = best;
    }
    return change;
}

static void read_policy(const psi_mdp *mdp, const psi_plan_options *options, psi_plan *plan)
{
    for (size_t s = 0; s < mdp->n_states; s++) {
        plan->policy[s] = -1;
        double best = -HUGE_VAL;
        for (size_t a = 0; a < mdp->n_actions; a++) {
            double *q = &plan->q[s * mdp->n_actions + a];
            *q = mdp->terminal[s] ? 0.0 : action_value(mdp, options, plan->value, s, a);
            if (mdp->terminal[s] || *q <= best) continue;
            best = *q;
            plan->policy[s] = (int32_t)a;
        }
    }
}

psi_status psi_value_iteration(psi_ctx *ctx, const psi_mdp *mdp, const psi_plan_options *options,
                               psi_plan **out)
{
    *out = NULL;
    if (FREED(ctx, mdp)) return PSI_EUSAGE;
    if (options && !base_options_fit(ctx, options, sizeof *options, "psi_plan_defaults"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const psi_plan_options chosen = options ? *options : psi_plan_defaults();
    const size_t limit = chosen.max_sweeps ? chosen.max_sweeps : 100000;
    psi_plan *plan = NULL;
    if (!(chosen.gamma >= 0.0 && chosen.gamma <= 1.0) || !(chosen.tolerance > 0.0) ||
        !isfinite(chosen.optimistic_value)) {
        return FAIL(ctx, PSI_EUSAGE,
                    "planning needs gamma in [0, 1], a positive tolerance and a "
                    "finite optimistic value; they are %g, %g and %g",
                    chosen.gamma, chosen.tolerance, chosen.optimistic_value);
    }
    TRY(psi_mdp_check(ctx, mdp, false));
    TRY(base_alloc_zero(ctx, 1, sizeof *plan, &plan));
    plan->n_states = mdp->n_states;
    plan->n_actions = mdp->n_actions;
    TRY(base_alloc_zero(ctx, mdp->n_states, sizeof *plan->value, &plan->value));
    TRY(base_alloc(ctx, mdp->n_states * mdp->n_actions, sizeof *plan->q, &plan->q));
    TRY(base_alloc(ctx, mdp->n_states, sizeof *plan->policy, &plan->policy));
    while (!plan->converged && plan->sweeps < limit) {
        TRY(base_cancelled(ctx));
        plan->converged = sweep(mdp, &chosen, plan) < chosen.tolerance;
        plan->sweeps++;
    }
    read_policy(mdp, &chosen, plan);
    *out = plan;
    plan = NULL;
done:
    psi_plan_free(ctx, plan);
    return status;
}

void psi_plan_free(psi_ctx *ctx, psi_plan *plan)
{
    if (!plan || FREED(ctx, plan)) return;
    base_free(ctx, plan->policy);
    base_free(ctx, plan->q);
    base_free(ctx, plan->value);
    base_retire(ctx, plan);
}
