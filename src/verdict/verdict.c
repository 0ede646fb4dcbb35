// The verdict. Certain is what survives every question: are all latent states apart by a margin, is
// every observation clearly in one of them, was every action taken often enough to show another
// law, and does the past tell nothing that the latent state does not?
#include "verdict/verdict.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "verdict/contexts.h"
#include "verdict/judging.h"
#include "verdict/past.h"
#include "verdict/sight.h"

#include <math.h>

enum { MOST_DOUBTS = 64 };

// Of held-out observations, those that do not look like their latent state's: odds of nine to one
// that an observation tells it.
static const double MOST_MISTAKEN = 0.1;

psi_status verdict_doubt(judging *run, psi_doubt what)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    if (result->n_doubts == MOST_DOUBTS) return PSI_OK;
    for (size_t i = 0; i < result->n_doubts; i++) { // one event is an end and a reward at once
        psi_doubt *other = &result->doubts[i];
        if (what.kind == PSI_DOUBT_RARE && other->kind == what.kind && other->state == what.state &&
            other->other == what.other) { // in several observations: the one that was seen least
            other->visits = what.visits < other->visits ? what.visits : other->visits;
            other->enough = what.enough > other->enough ? what.enough : other->enough;
            return PSI_OK;
        }
        if (other->kind == what.kind && other->state == what.state && other->other == what.other &&
            other->visits == what.visits) {
            return PSI_OK;
        }
    }
    TRY(base_resize(run->ctx, result->n_doubts + 1, sizeof *result->doubts, &result->doubts));
    result->doubts[result->n_doubts++] = what;
done:
    return status;
}

// ---- was everything tried? ----------------------------------------------------------------------

static psi_status count_visits(judging *run)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t actions = data->n_actions;
    TRY(base_alloc_zero(run->ctx, run->result->n_latent * actions, sizeof *run->visits,
                        &run->visits));
    TRY(base_alloc_zero(run->ctx, actions, sizeof *run->taken, &run->taken));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t k = run->result->labels[run->problem->row[t]];
        run->taken[data->actions[t]] = 1;
        if (k >= 0) run->visits[(size_t)k * actions + (size_t)data->actions[t]]++;
    }
    TRY(base_sum_sizes(run->ctx, run->visits, run->result->n_latent * actions));
    TRY(base_any(run->ctx, run->taken, actions));
done:
    return status;
}

// A latent state in which an action was never taken may be several.
psi_status verdict_ask_for_actions(judging *run, const uint8_t *several)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    const size_t first = run->result->has_terminal ? 1 : 0;
    bool any = !several;
    for (size_t k = first; k < run->result->n_latent; k++) {
        any |= several && several[k - first];
        for (size_t a = 0; a < actions; a++) {
            if (!run->taken[a] || run->visits[k * actions + a] > 0) continue;
            TRY(verdict_doubt(
                run,
                (psi_doubt){.kind = PSI_DOUBT_UNTRIED, .state = (int32_t)k, .other = (int32_t)a}));
        }
    }
    for (size_t a = 0; any && a < actions; a++) {
        if (run->taken[a]) continue;
        TRY(verdict_doubt(
            run, (psi_doubt){.kind = PSI_DOUBT_UNTRIED, .state = -1, .other = (int32_t)a}));
    }
done:
    return status;
}

// ---- does the past tell more? -------------------------------------------------------------------

// What was seen, row by row: the part of the looks.
static psi_status name_looks(judging *run, int32_t **look, size_t *n)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    int32_t *part = NULL;
    if (!run->looks) return PSI_OK; // of labels alone
    TRY(verdict_find_memorable_parts(run->ctx, run->looks, &part, n));
    TRY(base_alloc(run->ctx, problem->n_rows, sizeof **look, look));
    for (size_t i = 0; i < problem->n_rows; i++) {
        const int32_t leaf = run->looks->leaf[i];
        (*look)[i] = leaf < 0 ? -1 : part[leaf];
    }
done:
    base_free(run->ctx, part);
    return status;
}

static psi_status ask_the_past(judging *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    const bool pure = run->looks && !run->looks->forest.looks; // no label can be misplaced
    int32_t *look = NULL;
    size_t n_looks = 0;
    verdict_past past;
    TRY(name_looks(run, &look, &n_looks));
    TRY(verdict_ask_the_past(run->ctx, run->problem, run->rewards, result->labels, result->n_latent,
                             look, n_looks, REFINE_ALLOWED,
                             pure ? 0.0 : fmax(VERDICT_DOUBTFUL, result->doubtful), &past));
    result->past = past.share;
    if (past.suspect) {
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_PAST,
                                           .state = past.worst,
                                           .other = (int32_t)result->options.stack + 1}));
    }
    if (past.exceptions > 0) {
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_SELDOM,
                                           .state = past.state,
                                           .other = past.action,
                                           .visits = past.exceptions}));
    }
done:
    base_free(run->ctx, look);
    return status;
}

// Whether the numbers that are seen tell more than the latent state.
static psi_status ask_sight(judging *run, const problem_looks *looks)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    bool told;
    if (!looks || looks->width == 0) return PSI_OK;
    TRY(verdict_ask_sight(run->ctx, run->problem, looks, result->labels, result->n_latent,
                          result->labels, VERDICT_SUSPECT, fmax(VERDICT_DOUBTFUL, result->doubtful),
                          &told));
    if (told) {
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_LOOKS, .state = -1, .other = -1}));
    }
done:
    return status;
}

// Observations that are not clearly in one latent state, as a share of all.
static psi_status share_unclear(psi_ctx *ctx, const cluster_problem *problem, const int32_t *labels,
                                const float *confidence, double *share)
{
    psi_status status = PSI_OK;
    size_t unclear = 0;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        unclear += labels[row] < 0 || (double)confidence[row] < 1.0 - REFINE_ALLOWED;
    }
    TRY(base_sum_sizes(ctx, &unclear, 1));
    *share = (double)unclear / (double)problem->whole.n_states;
done:
    return status;
}

// Whether the past tells more of more observations than lie in cells of several labels. Those may
// be misplaced, and what the past tells of them is their label.
static psi_status tells_more_than_labels(const judging *run, bool *more)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const problem_looks *looks = run->looks;
    int32_t *all = NULL; // (nodes)
    size_t mixed = 0;
    *more = run->result->past > 0.0;
    if (!*more || !looks || !looks->forest.looks) goto done;
    TRY(base_alloc(run->ctx, looks->forest.n_nodes, sizeof *all, &all));
    TRY(problem_looks_agree(run->ctx, problem, looks, run->result->labels, all));
    for (size_t i = 0; i < problem->n_states; i++) {
        const int32_t leaf = looks->leaf[problem->states[i]];
        mixed += leaf >= 0 && all[leaf] < 0;
    }
    TRY(base_sum_sizes(run->ctx, &mixed, 1));
    *more = run->result->past * (double)problem->whole.n_states > (double)mixed;
done:
    base_free(run->ctx, all);
    return status;
}

// ---- the verdict --------------------------------------------------------------------------------

psi_status verdict_judge(psi_ctx *ctx, const cluster_problem *problem, const problem_looks *looks,
                         const outcome_rewards *rewards, const by_evidence *found, psi_run *result)
{
    psi_status status = PSI_OK;
    judging run = {.ctx = ctx,
                   .problem = problem,
                   .looks = looks,
                   .rewards = rewards,
                   .found = found,
                   .result = result};
    const double k = (double)result->n_latent, states = (double)problem->whole.n_states;
    const double apart = refine_safe_nats(0.5 * k * (k - 1.0));
    double unclear, open = 0.0;
    size_t rare = 0;
    bool more, clock;
    result->verdict = PSI_VERDICT_NOTHING_TO_PREDICT;
    result->margin = found->grouping->weakest;
    if (rewards->n == 1 && !problem->has_terminal) goto done;
    TRY(count_visits(&run));
    TRY(verdict_ask_the_clock(&run, REFINE_ALLOWED, &clock));
    if (result->margin < apart) {
        const int32_t first = problem->has_terminal ? 1 : 0;
        TRY(verdict_doubt(&run,
                          (psi_doubt){.kind = PSI_DOUBT_PAIR,
                                      .state = (int32_t)found->grouping->weakest_pair[0] + first,
                                      .other = (int32_t)found->grouping->weakest_pair[1] + first,
                                      .nats = result->margin}));
    }
    if (found->unclear && result->margin >= apart) {
        TRY(verdict_doubt(&run, (psi_doubt){.kind = PSI_DOUBT_PAIR,
                                            .state = found->unclear_pair[0],
                                            .other = found->unclear_pair[1]}));
    }
    if (looks->forest.looks) TRY(problem_looks_labels(ctx, looks, result->labels, &run.labels));
    TRY(verdict_ask_for_visits(&run, &rare));
    if (looks->forest.looks) TRY(verdict_ask_seldom(&run, looks->n_leaves));
    TRY(verdict_ask_tails(&run));
    TRY(share_unclear(ctx, problem, result->labels, found->confidence, &unclear));
    if (looks->forest.looks) TRY(verdict_ask_borders(&run, &open));
    result->doubtful = fmax(fmax((double)rare / states, unclear), open);
    TRY(ask_the_past(&run));
    TRY(ask_sight(&run, looks));
    result->verdict =
        result->n_doubts > 0 || !found->converged || result->doubtful > VERDICT_DOUBTFUL
            ? PSI_VERDICT_UNDETERMINED
            : PSI_VERDICT_CERTAIN;
    TRY(tells_more_than_labels(&run, &more));
    // observations of a table that were put together look one way each, and tell no more than that;
    // cells may be mixed by more than the past tells
    more &= rare == 0 || !looks->forest.looks;
    if (more || (clock && rare == 0)) result->verdict = PSI_VERDICT_NOT_MARKOV;
done:
    base_free(ctx, run.labels);
    base_free(ctx, run.taken);
    base_free(ctx, run.visits);
    return status;
}

psi_status verdict_judge_resolution(psi_ctx *ctx, const cluster_problem *problem,
                                    const outcome_rewards *rewards, bool atoms, double mistaken,
                                    psi_run *result)
{
    psi_status status = PSI_OK;
    judging run = {.ctx = ctx, .problem = problem, .rewards = rewards, .result = result};
    TRY(count_visits(&run));
    if (!atoms) TRY(verdict_ask_halves(&run));
    TRY(verdict_ask_for_chance(&run));
    if (mistaken > MOST_MISTAKEN) {
        TRY(verdict_doubt(&run, (psi_doubt){.kind = PSI_DOUBT_UNTOLD,
                                            .state = -1,
                                            .other = -1,
                                            .visits = (uint64_t)(100.0 * mistaken + 0.5)}));
    }
    if (result->n_doubts > 0) result->verdict = PSI_VERDICT_UNDETERMINED;
done:
    base_free(ctx, run.taken);
    base_free(ctx, run.visits);
    return status;
}

psi_status verdict_judge_unfinished(psi_ctx *ctx, const cluster_problem *problem,
                                    const by_evidence *found, psi_run *result)
{
    base_free(ctx, result->doubts);
    result->doubts = NULL;
    result->n_doubts = 0;
    result->verdict = PSI_VERDICT_UNDETERMINED;
    result->margin = found->grouping->weakest;
    result->past = 0.0;
    return share_unclear(ctx, problem, found->labels, found->confidence, &result->doubtful);
}

psi_status verdict_judge_growing(psi_ctx *ctx, psi_run *result)
{
    judging run = {.ctx = ctx, .result = result};
    base_free(ctx, result->doubts);
    result->doubts = NULL;
    result->n_doubts = 0;
    result->verdict = PSI_VERDICT_NO_SMALL_ANSWER;
    return verdict_doubt(&run, (psi_doubt){.kind = PSI_DOUBT_GROWTH, .state = -1, .other = -1});
}

psi_status verdict_judge_vectors(psi_ctx *ctx, const cluster_problem *problem,
                                 const problem_looks *vectors, const outcome_rewards *rewards,
                                 const by_evidence *found, psi_run *result)
{
    psi_status status = PSI_OK;
    judging run = {
        .ctx = ctx, .problem = problem, .rewards = rewards, .found = found, .result = result};
    const double past = result->past;
    size_t rare;
    bool more;
    TRY(count_visits(&run));
    TRY(problem_looks_labels(ctx, vectors, result->labels, &run.labels));
    TRY(verdict_ask_vectors(&run, vectors, &rare));
    result->doubtful = fmax(result->doubtful, (double)rare / (double)problem->whole.n_states);
    run.looks = vectors; // features need not have kept what there is to be remembered
    TRY(ask_the_past(&run));
    TRY(ask_sight(&run, vectors));
    result->past = fmax(past, result->past);
    TRY(tells_more_than_labels(&run, &more));
    const bool open = result->n_doubts > 0 || result->doubtful > VERDICT_DOUBTFUL;
    if (result->verdict == PSI_VERDICT_CERTAIN && open) {
        result->verdict = more && rare == 0 ? PSI_VERDICT_NOT_MARKOV : PSI_VERDICT_UNDETERMINED;
    }
done:
    base_free(ctx, run.labels);
    base_free(ctx, run.taken);
    base_free(ctx, run.visits);
    return status;
}

psi_status verdict_judge_labels(psi_ctx *ctx, const cluster_problem *problem,
                                const problem_looks *looks, double untold, psi_run *result)
{
    psi_status status = PSI_OK;
    const outcome_rewards rewards = {.n = problem->rewards.n, .of = problem->rewards.of};
    judging run = {.ctx = ctx, .problem = problem, .rewards = &rewards, .result = result};
    const double k = (double)result->n_latent;
    int32_t pair[2], worst;
    double mixed;
    bool clock;
    result->doubtful = result->ignored;
    if (result->confidence) {
        TRY(share_unclear(ctx, problem, result->labels, result->confidence, &result->doubtful));
    }
    result->doubtful = fmax(result->doubtful, untold);
    TRY(count_visits(&run));
    TRY(verdict_ask_the_clock(&run, REFINE_ALLOWED, &clock));
    TRY(verdict_ask_for_actions(&run, NULL));
    TRY(verdict_ask_pairs(ctx, problem, &rewards, result->labels, result->n_latent, &result->margin,
                          pair));
    if (result->margin < refine_safe_nats(0.5 * k * (k - 1.0))) {
        TRY(verdict_doubt(&run, (psi_doubt){.kind = PSI_DOUBT_PAIR,
                                            .state = pair[0],
                                            .other = pair[1],
                                            .nats = result->margin}));
    }
    if (looks->forest.n_nodes > 0) {
        TRY(verdict_ask_looks(ctx, problem, &rewards, looks, result->labels, result->n_latent,
                              result->labels, result->n_latent, REFINE_ALLOWED, &mixed, &worst));
        result->doubtful = fmax(result->doubtful, mixed);
        if (mixed > VERDICT_DOUBTFUL) {
            TRY(verdict_doubt(&run,
                              (psi_doubt){.kind = PSI_DOUBT_LOOKS, .state = worst, .other = -1}));
        }
    }
    if (looks->forest.n_nodes > 0) TRY(verdict_ask_seldom(&run, looks->n_leaves));
    TRY(ask_the_past(&run));
    TRY(ask_sight(&run, looks));
    result->verdict =
        (clock || result->past > 0.0) && result->converged ? PSI_VERDICT_NOT_MARKOV
        : result->n_doubts > 0 || !result->converged || result->doubtful > VERDICT_DOUBTFUL
            ? PSI_VERDICT_UNDETERMINED
            : PSI_VERDICT_CERTAIN;
done:
    base_free(ctx, run.labels);
    base_free(ctx, run.taken);
    base_free(ctx, run.visits);
    return status;
}
