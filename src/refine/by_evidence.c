#include "refine/by_evidence.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/disjoint.h"
#include "base/progress.h"
#include "refine/join.h"
#include "refine/refining.h"
#include "refine/successor.h"

#include <xxhash.h>

#include <math.h>
#include <string.h>

enum { MOST_IDLE = 12, MOST_UNCLEAR = 4 }; // refinements that find no more latent states
static const double STANDARD_ERRORS = 3.0; // by which their number rises, if it does

double refine_safe_nats(double n)
{
    return log(fmax(n, 1.0) / REFINE_ALLOWED);
}

// ---- what followed ------------------------------------------------------------------------------

// For what this process has seen. Alone, the same block serves all refinements.
static psi_status make_room(refining *run)
{
    psi_status status = PSI_OK;
    if (base_ranks(run->ctx) > 1 || !run->draws.node) {
        problem_draws_free(run->ctx, &run->draws);
        TRY(problem_draws_new(run->ctx, 2 * run->problem->data->n_transitions, &run->draws));
    }
    run->draws.n = 0;
done:
    return status;
}

// Two families for each action: the next latent state, as far as it is known, and the reward.
static psi_status draw(refining *run, psi_draws *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const outcome_rewards *rewards = run->rewards;
    const size_t actions = data->n_actions, k = run->found->n_latent;
    const size_t wide = base_max(k, rewards->n); // outcomes of a family, before they are numbered
    problem_draws *draws = &run->draws;
    size_t cells;
    if (!base_mul(2 * actions, wide, &cells) || cells > UINT32_MAX / 2) {
        return FAIL(run->ctx, PSI_ELIMIT, "%zu actions with %zu latent states are too many",
                    actions, k);
    }
    if (cells > run->room) {
        TRY(base_resize(run->ctx, cells, sizeof *run->number, &run->number));
        run->room = cells;
    }
    TRY(make_room(run));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t row = run->problem->row[t];
        const size_t family = 2 * (size_t)data->actions[t];
        const int32_t leaf = run->looks->leaf[row], next = run->known[row + 1];
        if (leaf < 0) continue;
        if (next >= 0) problem_draws_add(draws, (size_t)leaf, family * wide + (size_t)next);
        if (rewards->n > 1) {
            problem_draws_add(draws, (size_t)leaf, (family + 1) * wide + (size_t)rewards->of[t]);
        }
    }
    TRY(problem_draws_together(run->ctx, draws));
    problem_draws_number(draws, 2 * actions, wide, run->number, run->first);
    if (rewards->n == 0) {
        problem_outcome_rewards_free(run->ctx, &run->means);
        TRY(problem_mean_rewards(run->ctx, run->problem, run->looks, run->known, &run->means));
    }
    *out = (psi_draws){.n = draws->n,
                       .node = draws->node,
                       .outcome = draws->outcome,
                       .times = draws->times,
                       .n_families = 2 * actions,
                       .family = run->first,
                       .n_means = rewards->n == 0 ? actions : 0,
                       .precision = run->means.precision,
                       .weighted = run->means.weighted,
                       .mean_variance = run->means.variance,
                       .caution = run->caution,
                       .clear = run->clear,
                       .together = true};
done:
    return status;
}

// ---- one refinement -----------------------------------------------------------------------------

// What those that lead to an observation of a table may rely on, by leaf: groups that are clearly
// apart. An observation that fits two groups nearly as well is in neither; where it was seen often,
// leaving it out would make what leads to it look different from what leads to its like, and its
// two groups are not clearly apart either.
static psi_status find_known(refining *run, const psi_grouping *grouping, int32_t *known)
{
    psi_status status = PSI_OK;
    const size_t leaves = run->looks->forest.n_nodes;
    const double clear = fmax(REFINE_CLEAR, run->clear),
                 often = run->clear > 0.0 ? clear : HUGE_VAL;
    uint32_t *visits = NULL;
    int32_t *to = NULL;
    TRY(base_alloc_zero(run->ctx, leaves, sizeof *visits, &visits));
    TRY(base_alloc(run->ctx, grouping->n_groups, sizeof *to, &to));
    for (size_t i = 0; i < run->problem->n_states; i++) {
        const int32_t leaf = run->looks->leaf[run->problem->states[i]];
        if (leaf >= 0) visits[leaf]++; // those that are in no latent state have none in a join
    }
    TRY(base_sum_u32(run->ctx, visits, leaves));
    memcpy(to, grouping->linked, grouping->n_groups * sizeof *to);
    for (size_t v = 0; v < leaves; v++) {
        if (grouping->group[v] < 0 || grouping->next[v] < 0) continue;
        if ((double)grouping->margin[v] >= clear || (double)visits[v] < often) continue;
        base_unite(to, grouping->group[v], grouping->next[v]);
    }
    for (size_t v = 0; v < leaves; v++) {
        const bool left_out = (double)grouping->margin[v] < clear && (double)visits[v] < often;
        known[v] = grouping->group[v] < 0 || left_out ? -1 : base_root(to, grouping->group[v]);
    }
done:
    base_free(run->ctx, to);
    base_free(run->ctx, visits);
    return status;
}

// Of a cell: neither group where it fits two nearly as well, as a small one does in which the
// action that tells was not taken. A prototype that mixes latent states everywhere is worth so few
// draws that hardly any would be left.
static int32_t known_of_cell(const refining *run, const psi_grouping *grouping, int32_t leaf)
{
    const bool clear = (double)grouping->margin[leaf] >= REFINE_CLEAR;
    if (!clear && run->looks->forest.impurity == 0.0) return -1;
    return grouping->linked[grouping->group[leaf]];
}

// Labels from groups: that of the terminal state comes first.
static psi_status spread(refining *run, const psi_grouping *grouping)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const problem_looks *looks = run->looks;
    by_evidence *found = run->found;
    const int32_t first = problem->has_terminal ? 1 : 0;
    int32_t *known = NULL;
    TRY(base_alloc(run->ctx, looks->forest.n_nodes, sizeof *known, &known));
    if (!looks->forest.looks) TRY(find_known(run, grouping, known));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        const int32_t leaf = looks->leaf[row];
        const int32_t group = leaf < 0 ? -1 : grouping->group[leaf];
        const float margin = leaf < 0 ? 0.0f : grouping->margin[leaf];
        const int32_t as = group < 0             ? -1
                           : looks->forest.looks ? known_of_cell(run, grouping, leaf)
                                                 : known[leaf];
        found->labels[row] = group < 0 ? -1 : group + first;
        found->confidence[row] = group < 0 ? 0.0f : 1.0f / (1.0f + expf(-margin));
        run->known[row] = as < 0 ? -1 : as + first;
    }
    found->n_latent = grouping->n_groups + (size_t)first;
done:
    base_free(run->ctx, known);
    return status;
}

// The share of the labels that are the same in an earlier partition.
psi_status refine_compare_with(refining *run, const int32_t *before, size_t n_before,
                               double *agreement)
{
    psi_status status = PSI_OK;
    const by_evidence *found = run->found;
    int32_t *parent = NULL;
    TRY(base_alloc(run->ctx, found->n_latent + 2, sizeof *parent, &parent));
    TRY(refine_compare(run->ctx, run->problem->n_rows, before, n_before, found->labels,
                       found->n_latent, agreement, parent));
done:
    base_free(run->ctx, parent);
    return status;
}

static psi_status tell(refining *run, double started, const int32_t *before, size_t n_before)
{
    psi_status status = PSI_OK;
    by_evidence *found = run->found;
    psi_cluster_step step = {.clusters = found->n_latent,
                             .looked_at = run->problem->whole.n_states};
    size_t ignored = 0;
    for (size_t i = 0; i < run->problem->n_states; i++) {
        ignored += found->labels[run->problem->states[i]] < 0;
    }
    TRY(base_sum_sizes(run->ctx, &ignored, 1));
    step.ignored = (double)ignored / (double)run->problem->whole.n_states;
    TRY(refine_compare_with(run, before, n_before, &step.agreement));
    step.seconds = base_seconds() - started;
    TRY(base_resize(run->ctx, found->n_steps + 1, sizeof *found->steps, &found->steps));
    found->steps[found->n_steps++] = step;
    if (run->options->watch) {
        TRY(run->options->watch(run->options->user, &step, found->n_steps, run->problem->n_rows,
                                found->labels));
    }
done:
    return status;
}

// c_{i+1}: observations whose actions lead to the same latent states and rewards by c_i.
psi_status refine_once(refining *run)
{
    psi_status status = PSI_OK;
    const double started = base_seconds();
    by_evidence *found = run->found;
    psi_draws draws;
    psi_grouping *grouping = NULL;
    int32_t *before = NULL;
    const size_t n_before = found->n_latent;
    TRY(base_alloc(run->ctx, run->problem->n_rows, sizeof *before, &before));
    memcpy(before, found->labels, run->problem->n_rows * sizeof *before);
    TRY(draw(run, &draws));
    TRY(psi_group(run->ctx, &run->looks->forest, &draws, run->options->max_latent_states,
                  &grouping));
    if (grouping->n_groups == 0) {
        status = FAIL(run->ctx, PSI_EDATA, "nothing that follows what is seen tells it apart");
        goto done;
    }
    TRY(spread(run, grouping));
    psi_grouping_free(run->ctx, found->grouping);
    found->grouping = grouping;
    grouping = NULL;
    TRY(tell(run, started, before, n_before));
done:
    psi_grouping_free(run->ctx, grouping);
    base_free(run->ctx, before);
    return status;
}

// A digest of the partition: groups are named in order of first appearance.
static psi_status digest(refining *run, uint64_t *out)
{
    psi_status status = PSI_OK;
    const size_t n = run->problem->n_states, latent = run->found->n_latent;
    int32_t *name = NULL, *canonical = NULL, *next; // name (latent + 2): the last is the next name
    uint64_t own, *each = NULL;
    TRY(base_alloc(run->ctx, latent + 2, sizeof *name, &name));
    TRY(base_alloc(run->ctx, n, sizeof *canonical, &canonical));
    for (size_t k = 0; k <= latent; k++) name[k] = -1;
    next = &name[latent + 1];
    *next = 0;
    TRY(base_take_turn(run->ctx, name, (latent + 2) * sizeof *name));
    for (size_t i = 0; i < n; i++) {
        const int32_t label = run->known[run->problem->states[i]];
        if (label >= 0 && name[label] < 0) name[label] = (*next)++;
        canonical[i] = label < 0 ? -1 : name[label];
    }
    TRY(base_end_turn(run->ctx, name, (latent + 2) * sizeof *name));
    own = XXH3_64bits(canonical, n * sizeof *canonical);
    TRY(base_alloc(run->ctx, (size_t)base_ranks(run->ctx), sizeof *each, &each));
    TRY(base_gather(run->ctx, &own, sizeof own, each));
    *out = XXH3_64bits(each, (size_t)base_ranks(run->ctx) * sizeof *each);
done:
    base_free(run->ctx, each);
    base_free(run->ctx, canonical);
    base_free(run->ctx, name);
    return status;
}

// Cells that mix latent states come and go; where nothing else does, nothing changes.
static bool is_settled(const refining *run)
{
    const by_evidence *found = run->found;
    if (!run->looks->forest.looks || found->n_steps < 2) return false;
    const psi_cluster_step *now = &found->steps[found->n_steps - 1];
    return now->clusters == now[-1].clusters && now->agreement > 1.0 - REFINE_SETTLED;
}

// A number that moves to and fro is at its highest so far again and again: means are compared. A
// chain gains one latent state with every refinement, after a first leap that hides it in the
// means: six rises in a row come about once in 720 times where the order is chance.
bool refine_still_rises(const psi_cluster_step *steps, size_t n)
{
    enum { BOTH = MOST_IDLE, LATEST = BOTH / 2 };
    double mean[2] = {0.0}, variance = 0.0;
    if (n < BOTH) return true;
    steps += n - BOTH;
    size_t rises = 0;
    for (size_t i = LATEST; i < BOTH; i++) rises += steps[i].clusters > steps[i - 1].clusters;
    if (rises == LATEST) return true;
    for (size_t i = 0; i < BOTH; i++) mean[i / LATEST] += (double)steps[i].clusters / LATEST;
    for (size_t i = 0; i < BOTH; i++) {
        const double away = (double)steps[i].clusters - mean[i / LATEST];
        variance += away * away / (LATEST - 1); // of both halves, added up
    }
    return mean[1] - mean[0] > STANDARD_ERRORS * sqrt(variance / LATEST);
}

// Until c_{i+1} = c_i. Refinements that go in circles are stopped at the coarsest of them.
psi_status refine_until_nothing_changes(refining *run)
{
    psi_status status = PSI_OK;
    by_evidence *found = run->found;
    const size_t begin = found->n_steps;
    size_t least = SIZE_MAX; // latent states of the coarsest of a circle
    size_t most = 0,
           idle = 0; // latent states at most so far, and refinements since there were more
    found->converged = false;
    for (size_t i = 0; i < run->options->max_refinements; i++) {
        const size_t before = found->n_latent;
        TRY(refine_once(run));
        if (run->options->strict && found->n_latent < before) break;
        TRY(base_resize(run->ctx, i + 1, sizeof *run->seen, &run->seen));
        TRY(digest(run, &run->seen[i]));
        if (least < SIZE_MAX && found->n_latent <= least) break;
        idle = found->n_latent > most ? 0 : idle + 1;
        most = base_max(most, found->n_latent);
        // what changes are borders, to and fro; or what is not clear
        if (idle > (run->clear > 0.0 ? MOST_UNCLEAR : MOST_IDLE)) break;
        if (!refine_still_rises(found->steps + begin, found->n_steps - begin)) break;
        found->converged = is_settled(run);
        if (found->converged) break;
        for (size_t j = i; least == SIZE_MAX && j-- > 0;) {
            if (run->seen[j] != run->seen[i]) continue;
            found->converged = j + 1 == i;
            least = found->n_latent;
            for (; j < i; j++) least = base_min(least, found->steps[begin + j].clusters);
            break;
        }
        if (least < SIZE_MAX && found->n_latent <= least) break;
    }
done:
    return status;
}

// Cells, until their latent states are the fewest: those that are one are joined, and refined
// again. Prototypes that mix latent states everywhere are joined once their labels are clear.
static psi_status refine_to_the_fewest(refining *run)
{
    psi_status status = PSI_OK;
    by_evidence *found = run->found;
    const size_t n = run->problem->n_rows;
    size_t least = SIZE_MAX; // latent states so far
    int32_t *joint = NULL;
    TRY(base_alloc(run->ctx, n, sizeof *joint, &joint));
    for (;;) {
        size_t n_joint, joined;
        TRY(refine_until_nothing_changes(run));
        if (run->options->strict && !found->converged) break;
        if (run->options->smooth && found->n_latent > 1) TRY(refine_label_mixed_cells(run));
        if (run->looks->forest.impurity > 0.0) break;
        memcpy(joint, found->labels, n * sizeof *joint);
        n_joint = found->n_latent;
        TRY(refine_join(run->ctx, run->problem, run->options->max_latent_states, joint, &n_joint,
                        &joined));
        if (joined == 0) break;
        if (found->n_latent >= least) { // what was joined is found again
            found->converged = false;
            break;
        }
        least = found->n_latent;
        memcpy(found->labels, joint, n * sizeof *joint);
        memcpy(run->known, joint, n * sizeof *joint);
        found->n_latent = n_joint;
    }
done:
    base_free(run->ctx, joint);
    return status;
}

// c_0: terminal or not; or what is given.
static void begin_with(refining *run)
{
    const cluster_problem *problem = run->problem;
    by_evidence *found = run->found;
    const int32_t *start = run->options->start;
    found->n_latent = start ? run->options->n_start : problem->has_terminal ? 2 : 1;
    for (size_t i = 0; i < problem->n_rows; i++) {
        const int32_t rest = run->looks->leaf[i] >= 0 ? (int32_t)found->n_latent - 1 : -1;
        found->labels[i] = start ? start[i] : rest;
        found->confidence[i] = 1.0f;
    }
    for (size_t e = 0; e < problem->data->n_episodes; e++) {
        const uint64_t last = problem->data->episode_offsets[e + 1] + e;
        if (problem->data->terminated[e]) found->labels[last] = 0;
    }
}

psi_status refine_by_evidence(psi_ctx *ctx, const cluster_problem *problem,
                              const problem_looks *looks, const outcome_rewards *rewards,
                              const by_evidence_options *options, by_evidence *out)
{
    psi_status status = PSI_OK;
    const size_t n = problem->n_rows;
    refining run = {.ctx = ctx,
                    .problem = problem,
                    .looks = looks,
                    .rewards = rewards,
                    .options = options,
                    .found = out};
    *out = (by_evidence){0};
    TRY(base_alloc(ctx, n, sizeof *out->labels, &out->labels));
    TRY(base_alloc(ctx, n, sizeof *out->confidence, &out->confidence));
    TRY(base_alloc(ctx, n, sizeof *run.known, &run.known));
    TRY(base_alloc(ctx, 2 * problem->data->n_actions + 1, sizeof *run.first, &run.first));
    begin_with(&run);
    memcpy(run.known, out->labels, n * sizeof *run.known);
    status = looks->forest.looks ? refine_to_the_fewest(&run) : refine_with_caution(&run);
done:
    base_free(ctx, run.seen);
    base_free(ctx, run.number);
    base_free(ctx, run.first);
    problem_draws_free(ctx, &run.draws);
    base_free(ctx, run.known);
    problem_outcome_rewards_free(ctx, &run.means);
    if (status != PSI_OK) out->converged = false;
    if (status != PSI_OK && out->n_steps == 0) refine_by_evidence_free(ctx, out);
    return status;
}

void refine_by_evidence_free(psi_ctx *ctx, by_evidence *found)
{
    base_free(ctx, found->labels);
    base_free(ctx, found->confidence);
    base_free(ctx, found->steps);
    psi_grouping_free(ctx, found->grouping);
    *found = (by_evidence){0};
}
