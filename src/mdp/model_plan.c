// Planning with bounds on both sides: discounted rewards, and the probability of reaching a label.
#include "base/checked.h"
#include "base/context.h"
#include "base/options.h"
#include "mdp/end_components.h"

#include <math.h>
#include <string.h>

typedef struct planning {
    const psi_model *model;
    psi_model_plan_options how;
    psi_model_plan *plan;
    const double *state_reward, *choice_reward; // NULL: none
    uint8_t *fixed;                             // (S) the value is known
    int32_t *component; // (S) of end components; NULL: there are none to look after
    uint8_t *stays;     // (C)
    double *best_exit;  // (components)
    size_t n_components;
} planning;

psi_model_plan_options psi_model_plan_defaults(void)
{
    return (psi_model_plan_options){
        .size = sizeof(psi_model_plan_options), .gamma = 0.95, .precision = 1e-6};
}

// ---- one sweep ----------------------------------------------------------------------------------

static double expected(const planning *p, const double *value, size_t s, uint64_t c)
{
    const psi_model *model = p->model;
    double next = 0.0;
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
        next += model->probability[i] * value[model->next[i]];
    if (p->how.target) return next;
    return (p->state_reward ? p->state_reward[s] : 0.0) +
           (p->choice_reward ? p->choice_reward[c] : 0.0) + p->how.gamma * next;
}

// The best value of the state's choices, and the first that has it.
static double best(const planning *p, const double *value, size_t s, int32_t *choice)
{
    const psi_model *model = p->model;
    double found = p->how.minimise ? HUGE_VAL : -HUGE_VAL;
    for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
        const double q = expected(p, value, s, c);
        if (p->how.minimise ? q >= found : q <= found) continue;
        found = q;
        *choice = (int32_t)(c - model->choices[s]);
    }
    return found;
}

// Inside an end component nothing is gained by staying: the value is that of the best way out.
static void deflate(const planning *p)
{
    const psi_model *model = p->model;
    for (size_t k = 0; k < p->n_components; k++) p->best_exit[k] = 0.0;
    for (size_t s = 0; s < model->n_states; s++) {
        if (p->component[s] < 0) continue;
        double *exit = &p->best_exit[p->component[s]];
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++)
            if (!p->stays[c]) *exit = fmax(*exit, expected(p, p->plan->upper, s, c));
    }
    for (size_t s = 0; s < model->n_states; s++) {
        if (p->component[s] >= 0)
            p->plan->upper[s] = fmin(p->plan->upper[s], p->best_exit[p->component[s]]);
    }
}

// Returns the largest difference that is left. States go backwards: explorers number successors
// behind their states.
static double sweep(planning *p)
{
    psi_model_plan *plan = p->plan;
    double widest = 0.0;
    for (size_t s = p->model->n_states; s-- > 0;) {
        if (p->fixed[s]) continue;
        int32_t choice = -1, ignored;
        const double lower = best(p, plan->lower, s, &choice);
        // a choice is taken over only if it gains something: one that stays for ever never does
        if (lower > plan->lower[s]) {
            plan->lower[s] = lower;
            plan->choice[s] = choice;
        } else if (p->how.minimise || !p->how.target) {
            plan->choice[s] = choice;
        }
        plan->upper[s] = fmin(plan->upper[s], best(p, plan->upper, s, &ignored));
    }
    if (p->component) deflate(p);
    for (size_t s = 0; s < p->model->n_states; s++)
        widest = fmax(widest, plan->upper[s] - plan->lower[s]);
    return widest;
}

// ---- what is known beforehand -------------------------------------------------------------------

static psi_status find_label(psi_ctx *ctx, const psi_model *model, const char *name,
                             const uint8_t **holds)
{
    *holds = NULL;
    for (size_t l = 0; l < model->n_labels; l++)
        if (strcmp(model->labels[l].name, name) == 0) *holds = model->labels[l].holds;
    if (strcmp(name, "init") == 0) *holds = model->initial;
    return *holds ? PSI_OK : FAIL(ctx, PSI_EUSAGE, "the model has no label '%s'", name);
}

// reached[s]: the target is reached with a positive probability, by some choice (or, minimising,
// whatever is chosen). Rounds until nothing is added, backwards as in a sweep.
static void find_reaching(const planning *p, const uint8_t *target, uint8_t *reached)
{
    const psi_model *model = p->model;
    memcpy(reached, target, model->n_states);
    for (bool added = true; added;) {
        added = false;
        for (size_t s = model->n_states; s-- > 0;) {
            if (reached[s] || model->choices[s] == model->choices[s + 1]) continue;
            bool some = false, all = true;
            for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
                bool leads = false;
                for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1] && !leads; i++)
                    leads = reached[model->next[i]];
                some = some || leads;
                all = all && leads;
            }
            if (p->how.minimise ? all : some) reached[s] = added = true;
        }
    }
}

static psi_status prepare_target(psi_ctx *ctx, planning *p)
{
    psi_status status = PSI_OK;
    const psi_model *model = p->model;
    const uint8_t *target;
    uint8_t *reached = NULL;
    TRY(find_label(ctx, model, p->how.target, &target));
    TRY(base_alloc(ctx, model->n_states, 1, &reached));
    find_reaching(p, target, reached);
    for (size_t s = 0; s < model->n_states; s++) {
        p->fixed[s] = target[s] || !reached[s];
        p->plan->lower[s] = target[s] ? 1.0 : 0.0;
        p->plan->upper[s] = p->fixed[s] ? p->plan->lower[s] : 1.0;
    }
    if (p->how.minimise) goto done; // who could stay could avoid the target
    for (size_t s = 0; s < model->n_states; s++) reached[s] = !p->fixed[s];
    TRY(base_alloc(ctx, model->n_states, sizeof *p->component, &p->component));
    TRY(base_alloc(ctx, model->n_choices, 1, &p->stays));
    TRY(mdp_end_components(ctx, model, reached, p->component, p->stays, &p->n_components));
    TRY(base_alloc(ctx, p->n_components, sizeof *p->best_exit, &p->best_exit));
done:
    base_free(ctx, reached);
    return status;
}

// All values lie between the least and the largest reward for ever.
static psi_status prepare_rewards(psi_ctx *ctx, planning *p)
{
    const psi_model *model = p->model;
    const psi_model_reward *reward = model->n_rewards > 0 ? &model->rewards[0] : NULL;
    if (p->how.reward) reward = NULL;
    for (size_t r = 0; p->how.reward && r < model->n_rewards; r++)
        if (strcmp(model->rewards[r].name, p->how.reward) == 0) reward = &model->rewards[r];
    if (!reward) {
        return FAIL(ctx, PSI_EUSAGE, "the model has no reward%s%s%s", p->how.reward ? " '" : "",
                    p->how.reward ? p->how.reward : "", p->how.reward ? "'" : "");
    }
    p->state_reward = reward->state;
    p->choice_reward = reward->choice;
    double least = 0.0, most = 0.0;
    for (size_t s = 0; s < model->n_states; s++) {
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            const double r =
                (reward->state ? reward->state[s] : 0.0) + (reward->choice ? reward->choice[c] : 0);
            least = fmin(least, r);
            most = fmax(most, r);
        }
    }
    for (size_t s = 0; s < model->n_states; s++) {
        p->fixed[s] = model->choices[s] == model->choices[s + 1];
        p->plan->lower[s] = p->fixed[s] ? 0.0 : least / (1.0 - p->how.gamma);
        p->plan->upper[s] = p->fixed[s] ? 0.0 : most / (1.0 - p->how.gamma);
    }
    return PSI_OK;
}

static double scale_of(const planning *p)
{
    double largest = 0.0;
    if (p->how.target) return 1.0;
    for (size_t s = 0; s < p->model->n_states; s++)
        largest = fmax(largest, fmax(fabs(p->plan->lower[s]), fabs(p->plan->upper[s])));
    return fmax(largest, 1e-300);
}

psi_status psi_model_plan_find(psi_ctx *ctx, const psi_model *model,
                               const psi_model_plan_options *options, psi_model_plan **out)
{
    *out = NULL;
    if (FREED(ctx, model)) return PSI_EUSAGE;
    if (options && !base_options_fit(ctx, options, sizeof *options, "psi_model_plan_defaults"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    planning p = {.model = model, .how = options ? *options : psi_model_plan_defaults()};
    const size_t limit = p.how.max_sweeps ? p.how.max_sweeps : 1000000;
    if (!(p.how.gamma >= 0.0 && p.how.gamma < 1.0) || !(p.how.precision > 0.0)) {
        return FAIL(ctx, PSI_EUSAGE,
                    "planning needs gamma in [0, 1) and a positive precision; they are %g and %g",
                    p.how.gamma, p.how.precision);
    }
    TRY(psi_model_check(ctx, model));
    TRY(base_alloc_zero(ctx, 1, sizeof *p.plan, &p.plan));
    p.plan->n_states = model->n_states;
    TRY(base_alloc(ctx, model->n_states, sizeof(double), &p.plan->lower));
    TRY(base_alloc(ctx, model->n_states, sizeof(double), &p.plan->upper));
    TRY(base_alloc(ctx, model->n_states, sizeof(int32_t), &p.plan->choice));
    TRY(base_alloc(ctx, model->n_states, 1, &p.fixed));
    for (size_t s = 0; s < model->n_states; s++) p.plan->choice[s] = -1;
    TRY(p.how.target ? prepare_target(ctx, &p) : prepare_rewards(ctx, &p));
    while (!p.plan->converged && p.plan->sweeps < limit) {
        TRY(base_cancelled(ctx));
        p.plan->converged = sweep(&p) <= p.how.precision * scale_of(&p);
        p.plan->sweeps++;
    }
    *out = p.plan;
    p.plan = NULL;
done:
    base_free(ctx, p.best_exit);
    base_free(ctx, p.stays);
    base_free(ctx, p.component);
    base_free(ctx, p.fixed);
    psi_model_plan_free(ctx, p.plan);
    return status;
}

void psi_model_plan_free(psi_ctx *ctx, psi_model_plan *plan)
{
    if (!plan || FREED(ctx, plan)) return;
    base_free(ctx, plan->choice);
    base_free(ctx, plan->upper);
    base_free(ctx, plan->lower);
    base_retire(ctx, plan);
}
