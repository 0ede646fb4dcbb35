// Images: pixels are compared as they are. Where that leaves something open, prototypes of
// observations that look alike to a network are refined by evidence, then each observation is
// labelled by what it looks like and by its trajectory. Prototypes of images mix latent states
// everywhere, not only on borders, so that a prototype's law is drawn around its latent state's:
// from Dirichlet(κ · θ), worth κ draws.
#include "cluster/clustering.h"

#include "base/checked.h"
#include "base/context.h"
#include "learn/principal.h"
#include "refine/settle.h"
#include "verdict/verdict.h"

#include <string.h>

enum { PRINCIPAL = 32 };

// About so many prototypes, of no fewer observations than that: evidence joins what is too fine,
// but cannot part what one prototype mixes.
enum { PROTOTYPES = 4096, SMALLEST = 8 };

// κ: few draws at first, which is coarse, and more as long as a latent state turns out to be
// several. The coarsest partition that is consistent with itself is the answer.
static const double KAPPA[] = {10.0, 20.0, 40.0, 80.0};
enum { KAPPAS = sizeof KAPPA / sizeof KAPPA[0] };

// Algorithm 1 on prototypes, then labels for every observation: run->found.
static psi_status group_prototypes(clustering_run *run, const problem_looks *tree, double kappa)
{
    psi_status status = PSI_OK;
    by_evidence *found = &run->found;
    const psi_cluster_options *options = run->options;
    settle_summary summary;
    const by_evidence_options how = {.max_refinements = options->max_refinements,
                                     .max_latent_states = options->max_latent_states,
                                     .watch = cluster_after_grouping,
                                     .user = run};
    run_phases_turn_to(&run->state.phases, PHASE_REFINEMENTS);
    TRY(problem_looks_prototypes(run->ctx, &run->problem, tree,
                                 base_max(run->problem.whole.n_states / PROTOTYPES, SMALLEST),
                                 1.0 / kappa, &run->looks));
    TRY(problem_outcome_rewards(run->ctx, &run->problem, &run->looks, &run->outcomes));
    // labels of prototypes, as far as they get
    status = refine_by_evidence(run->ctx, &run->problem, &run->looks, &run->outcomes, &how, found);
    const psi_status added = cluster_add_steps(run);
    TRY(status);
    TRY(added);
    run_phases_turn_to(&run->state.phases, PHASE_LABELS);
    const settle_options settling = {.rewards = &run->outcomes,
                                     .max_turns = options->smooth ? CLUSTER_MOST_TURNS : 0,
                                     .max_latent_states = options->max_latent_states,
                                     .seed = cluster_seed_of(run, SEED_POLISH, 0)};
    TRY(refine_settle(run->ctx, &run->problem, &run->approximator, &settling, found->labels,
                      found->confidence, &found->n_latent, &summary));
    found->smoothed = (double)summary.changed / (double)run->problem.whole.n_states;
    found->turns = summary.turns;
    found->untold = summary.untold;
    found->mistaken = summary.mistaken;
    found->converged = summary.settled;
done:
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

// Whether a latent state is several by what its observations look like.
static bool is_too_coarse(const psi_run *result)
{
    for (size_t i = 0; i < result->n_doubts; i++) {
        if (result->doubts[i].kind == PSI_DOUBT_LOOKS && result->doubts[i].state >= 0) return true;
    }
    return false;
}

static psi_status judge(clustering_run *run, const problem_looks *tree)
{
    psi_run *result = run->result;
    base_free(run->ctx, result->doubts); // of an earlier κ
    result->doubts = NULL;
    result->n_doubts = 0;
    result->labels = run->found.labels;
    result->confidence = run->found.confidence;
    result->n_latent = run->found.n_latent;
    result->has_terminal = run->problem.has_terminal;
    result->converged = run->found.converged;
    run_phases_turn_to(&run->state.phases, PHASE_JUDGING);
    const psi_status status =
        verdict_judge_labels(run->ctx, &run->problem, tree, run->found.untold, result);
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    result->labels = NULL; // still in found
    result->confidence = NULL;
    return status;
}

// ---- pixels as they are -------------------------------------------------------------------------

// An observation of a mixed cell is told by those before and after it. Where these are both clear
// less often than not, trajectories tell nothing either: 1 − √½.
static const double MOST_MIXED = 0.29;

static psi_status group_pixels(clustering_run *run, bool tentative, bool *apart)
{
    psi_status status = PSI_OK;
    size_t width = PRINCIPAL;
    double mixed = 0.0;
    by_evidence features = run->found; // the answer, until there is another one
    run->found = (by_evidence){0};
    *apart = false;
    cluster_forget_looks(run);
    run->tentative = tentative;
    TRY(learn_principal_pixels(run->ctx, &run->problem, &run->inputs, &width, &run->vectors));
    TRY(problem_looks_tree(run->ctx, &run->problem, width, run->vectors, &run->looks));
    if (tentative) TRY(cluster_share_mixed(run, &mixed));
    if (mixed > MOST_MIXED) {
        run->result->verdict = PSI_VERDICT_UNDETERMINED;
        run->result->doubtful = 1.0;
        goto done;
    }
    TRY(cluster_group_vectors(run, width, NULL, apart));
done:
    if (!run->found.labels) {
        run->found = features;
    } else {
        refine_by_evidence_free(run->ctx, &features);
    }
    run->tentative = false;
    return status;
}

// Where latent states look different, no network has to learn it. *enough: pixels are the answer;
// *open: the share of observations that they leave open. The refinements are told only if they are
// those of the answer, and made again then.
static psi_status try_pixels(clustering_run *run, bool *enough, double *open)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    bool apart;
    *enough = false;
    *open = 1.0;
    if (psi_shape_size(&run->inputs.shape) > LEARN_MOST_PIXELS) return PSI_OK;
    cluster_set_deadline(run, CLUSTER_BEFORE_FEATURES);
    status = group_pixels(run, true, &apart);
    const bool spared = cluster_can_spare(run, status);
    if (spared && !cluster_is_late(run, status)) {
        base_note(run->ctx, "pixels as they are: %s", psi_error(run->ctx)->message);
    }
    cluster_set_deadline(run, CLUSTER_BEFORE_WRITING);
    if (!spared) TRY(status);
    status = PSI_OK;
    *enough = !spared && (apart || result->verdict == PSI_VERDICT_CERTAIN);
    if (!spared) *open = result->doubtful;
    base_free(run->ctx, result->doubts);
    result->doubts = NULL;
    result->n_doubts = 0;
done:
    return status;
}

// ---- features -----------------------------------------------------------------------------------

// Features of all observations. Where the time for it is up, those of a network that has not learnt
// all it was to learn are better than none; it is not kept.
static psi_status learn_features(clustering_run *run)
{
    psi_status status = PSI_OK;
    cluster_set_deadline(run, CLUSTER_BEFORE_FINDING);
    status = cluster_learn_trunk(run);
    const bool learnt = status == PSI_OK;
    if (cluster_is_late(run, status) && run->trunk) {
        run->result->stopped = true;
        status = PSI_OK;
    }
    cluster_set_deadline(run, CLUSTER_BEFORE_WRITING);
    TRY(status);
    run->result->has_trunk = learnt; // what heads of refinements stand on
    TRY(cluster_use_heads(run));
done:
    return status;
}

// κ after κ. Where the time is up, or one fails, run->found is the last that was settled, or as far
// as it got.
static psi_status find_consistent(clustering_run *run, const problem_looks *tree)
{
    psi_status status = PSI_OK;
    by_evidence coarser = {0};
    for (size_t i = 0; i < KAPPAS; i++) {
        coarser = run->found;
        run->found = (by_evidence){0};
        cluster_forget_looks(run);
        status = group_prototypes(run, tree, KAPPA[i]);
        // what pixels have found, tentatively, only where there is nothing else
        if (status != PSI_OK && coarser.labels && (i > 0 || !run->found.labels)) {
            refine_by_evidence_free(run->ctx, &run->found);
            run->found = coarser;
            coarser = (by_evidence){0};
        }
        refine_by_evidence_free(run->ctx, &coarser);
        TRY(status);
        TRY(judge(run, tree));
        if (!is_too_coarse(run->result)) break;
    }
done:
    return status;
}

static psi_status compare_features(clustering_run *run)
{
    psi_status status = PSI_OK;
    size_t width = PRINCIPAL;
    problem_looks tree = {0};
    float *vectors = NULL;
    TRY(learn_features(run));
    run_phases_turn_to(&run->state.phases, PHASE_REFINEMENTS);
    TRY(learn_principal_components(run->ctx, &run->problem, run->approximator.features, &width,
                                   &vectors));
    TRY(problem_looks_tree(run->ctx, &run->problem, width, vectors, &tree));
    TRY(find_consistent(run, &tree));
    // what features that were not learnt to the end leave open is not the data's fault
    if (run->result->stopped) run->result->verdict = PSI_VERDICT_UNDETERMINED;
done:
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    problem_looks_free(run->ctx, &tree);
    base_free(run->ctx, vectors);
    return status;
}

// Pixels as they are, and features where these leave something open: what leaves less open is the
// answer.
psi_status cluster_find_in_images(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    const psi_net_kind kind =
        run->options->approximator == PSI_APPROXIMATOR_RESNET18 ? PSI_NET_RESNET18 : PSI_NET_CNN;
    bool pixels;
    double open;
    cluster_set_network_options(run, kind);
    TRY(try_pixels(run, &pixels, &open));
    if (!pixels) {
        TRY(compare_features(run));
        pixels =
            result->verdict != PSI_VERDICT_CERTAIN && !result->stopped && open < result->doubtful;
    }
    if (pixels) {
        base_free(run->ctx, result->doubts);
        result->doubts = NULL;
        result->n_doubts = 0;
        TRY(group_pixels(run, false, &run->atoms));
    }
done:
    return status;
}
