// Vectors are compared as they are, and by features that are learnt where that leaves something
// open.
#include "cluster/clustering.h"

#include "base/checked.h"
#include "base/context.h"
#include "verdict/growth.h"
#include "verdict/held_out.h"
#include "verdict/verdict.h"

enum { SMALL = 128, SMALL_STEPS = 1000 }; // units and training of a perceptron for vectors
enum { MOST_FEATURES = 1 << 28 };         // numbers, 1 GiB: features are held in memory

// Observations as they are, as vectors.
static psi_status copy_vectors(clustering_run *run, size_t *width)
{
    psi_status status = PSI_OK;
    enum { BLOCK = 4096 };
    const psi_observations *from = run->problem.data->observations;
    const psi_dtype dtype = psi_observations_dtype(from);
    const size_t row_bytes = psi_observations_row_bytes(from), n = run->problem.n_rows;
    unsigned char *block = NULL;
    uint64_t *rows = NULL;
    *width = row_bytes / psi_dtype_size(dtype);
    TRY(base_alloc(run->ctx, n, *width * sizeof *run->vectors, &run->vectors));
    TRY(base_alloc(run->ctx, BLOCK, row_bytes, &block));
    TRY(base_alloc(run->ctx, BLOCK, sizeof *rows, &rows));
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        float *out = run->vectors + begin * *width;
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_cancelled(run->ctx));
        TRY(psi_observations_gather(run->ctx, from, rows, count, block));
        for (size_t i = 0; i < count * *width; i++) {
            switch (dtype) {
            case PSI_FLOAT32: out[i] = ((const float *)(const void *)block)[i]; break;
            case PSI_FLOAT64: out[i] = (float)((const double *)(const void *)block)[i]; break;
            case PSI_UINT8: out[i] = (float)block[i]; break;
            case PSI_INT32: out[i] = (float)((const int32_t *)(const void *)block)[i]; break;
            case PSI_INT64: out[i] = (float)((const int64_t *)(const void *)block)[i]; break;
            default: out[i] = (float)block[i];
            }
        }
    }
done:
    base_free(run->ctx, rows);
    base_free(run->ctx, block);
    return status;
}

// Vectors as they are.
static psi_status compare_vectors(clustering_run *run, bool *apart)
{
    psi_status status = PSI_OK;
    float *deviation = NULL;
    size_t width;
    TRY(copy_vectors(run, &width));
    TRY(base_alloc(run->ctx, width, sizeof *deviation, &deviation));
    TRY(problem_looks_standardise(run->ctx, &run->problem, width, run->vectors, deviation));
    TRY(problem_looks_tree(run->ctx, &run->problem, width, run->vectors, &run->looks));
    TRY(cluster_group_vectors(run, width, deviation, apart));
done:
    base_free(run->ctx, deviation);
    return status;
}

// Sets vectors as they are aside, with what they say.
static void set_vectors_aside(clustering_run *run)
{
    run->raw = run->vectors;
    run->raw_looks = run->looks;
    run->raw_outcomes = run->outcomes;
    run->raw_answer = cluster_set_aside(run);
    run->vectors = NULL;
    run->looks = (problem_looks){0};
    run->outcomes = (outcome_rewards){0};
}

// What a network makes of them that has learnt to predict rewards, actions and what comes next.
static psi_status compare_features(clustering_run *run)
{
    psi_status status = PSI_OK;
    feature_cache features = {0};
    TRY(cluster_learn_trunk(run));
    run_phases_turn_to(&run->state.phases, PHASE_FEATURES);
    TRY(learn_features_new(run->ctx, &run->problem, &run->inputs, run->trunk, PSI_CACHE_FULL,
                           &features));
    run->vectors = features.full;
    features.full = NULL;
    TRY(problem_looks_standardise(run->ctx, &run->problem, features.d, run->vectors, NULL));
    TRY(problem_looks_tree(run->ctx, &run->problem, features.d, run->vectors, &run->looks));
    TRY(cluster_group_looks(run));
    TRY(verdict_ask_held_out(run->ctx, &run->problem, &run->looks, run->found.labels,
                             &run->found.mistaken));
    run->result->has_trunk = true;
done:
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    learn_features_free(run->ctx, &features);
    return status;
}

// What leaves less open is the answer, and where refinement came to an end before where it did not:
// only the former is a partition that Algorithm 1 returns. Features that cannot be learnt, or not
// in time, take nothing away.
static psi_status try_features(clustering_run *run)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    bool settled = false;
    base_note(run->ctx, "vectors as they are leave something open; features are learnt");
    set_vectors_aside(run);
    const double open = cluster_share_open(run->raw_answer.doubtful, run->raw_answer.past);
    status = compare_features(run);
    const bool late = cluster_is_late(run, status), learnt = status == PSI_OK;
    if (!learnt && !cluster_can_spare(run, status)) goto done;
    if (!late && !learnt) base_warn(run->ctx, "features: %s", psi_error(run->ctx)->message);
    const bool ended = run->found.converged && !run->raw_answer.found.converged;
    const bool less = learnt && (result->verdict == PSI_VERDICT_CERTAIN || ended ||
                                 cluster_share_open(result->doubtful, result->past) <= open);
    const bool doubted = learnt && result->verdict != PSI_VERDICT_CERTAIN;
    if (!less) {
        cluster_take_back(run, &run->raw_answer);
        // what vectors were certain of, features are not
        if (doubted && result->verdict == PSI_VERDICT_CERTAIN) {
            result->verdict = PSI_VERDICT_UNDETERMINED;
        }
    }
    if (late) {
        result->stopped = true;
        result->verdict = PSI_VERDICT_UNDETERMINED;
    }
    status = PSI_OK;
    if (learnt) TRY(cluster_settle_labels(run, &settled));
    if (less || settled) {
        result->labels = run->found.labels;
        status = verdict_judge_vectors(run->ctx, &run->problem, &run->raw_looks, &run->outcomes,
                                       &run->found, result);
        result->labels = NULL; // still in found
    }
done:
    return status;
}

// Whether latent states keep growing with the data. Asked where nothing else is certain and
// refinements did not come to an end, neither of vectors nor of features: states that are there
// have borders that stay where they are.
static psi_status ask_for_growth(clustering_run *run, size_t n_latent, bool means)
{
    psi_status status = PSI_OK;
    psi_run *result = run->result;
    const by_evidence_options how = cluster_how_to_refine(run);
    const float *vectors = run->raw ? run->raw : run->vectors;
    const size_t width = run->raw ? run->raw_looks.width : run->looks.width;
    run_phases_turn_to(&run->state.phases, PHASE_REFINEMENTS);
    TRY(verdict_growth(run->ctx, &run->problem, width, vectors, means, run->options->seed, &how,
                       result->growth));
    result->growth[2] = n_latent;
    if (!verdict_keeps_growing(result->growth)) goto done;
    TRY(verdict_judge_growing(run->ctx, result));
    if (run->raw_answer.found.labels) { // the cells that were counted, not those of features
        refine_by_evidence_free(run->ctx, &run->found);
        run->found = run->raw_answer.found;
        run->raw_answer.found = (by_evidence){0};
        result->n_latent = n_latent;
        result->margin = run->found.grouping->weakest;
    }
done:
    run_phases_turn_to(&run->state.phases, PHASE_REST);
    return status;
}

// Vectors are compared as they are, and by features where that leaves something open.
psi_status cluster_find_in_vectors(clustering_run *run)
{
    psi_status status = PSI_OK;
    cluster_set_network_options(run, PSI_NET_MLP);
    if (run->options->hidden == 0) run->network.hidden[0] = run->network.hidden[1] = SMALL;
    if (run->options->trunk_steps == 0) run->network.trunk.steps = SMALL_STEPS;
    TRY(compare_vectors(run, &run->atoms));
    if (run->atoms) goto done;
    const psi_verdict verdict = run->result->verdict;
    const size_t n_latent = run->found.n_latent;
    const bool ended = run->found.converged, means = run->outcomes.n == 0;
    // that nothing seen matters is asked of features, too
    const bool one = n_latent == (run->problem.has_terminal ? 2 : 1);
    const bool open =
        verdict != PSI_VERDICT_NOTHING_TO_PREDICT && (verdict != PSI_VERDICT_CERTAIN || one);
    const bool fit = run->problem.whole.n_rows <= MOST_FEATURES / run->network.hidden[1];
    if (open && !fit) base_note(run->ctx, "there are too many observations to hold features of");
    if (open && fit && run->problem.data->n_actions <= CLUSTER_MOST_ACTIONS) {
        TRY(try_features(run));
    }
    if (run->result->verdict == PSI_VERDICT_UNDETERMINED && !run->result->stopped && !ended &&
        !run->found.converged) {
        TRY(ask_for_growth(run, n_latent, means));
    }
done:
    return status;
}
