#include "cluster/polish.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/vector.h"
#include "cluster/judge.h"
#include "cluster/samples.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOP = 8, BLOCK = 4096, MOVED = 10000 }; // one state in so many may still be moving
static const double KEEP = 0.9;         // a state whose label is less sure than this is ignored …
static const double KEEP_AT_LAST = 0.5; // … but in the end more likely than not will do
// What the network says of states that are in no cluster is wrong more often than it thinks: its
// chance of being wrong about one, and the evidence for classes that are not among its TOP.
static const double MISTAKEN = 1e-3;
static const float ABSENT = -6.0f;
static const double RECOGNISED = 0.5; // share of a cluster's states that the network must recognise

typedef struct polishing {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const cluster_approximator *approximator;
    const polish_options *options;
    int32_t *labels, *trial; // (n_rows)
    size_t n_latent;
    uint64_t fits;

    int32_t *top;      // (n_rows, TOP) the classes that the network finds likeliest …
    float *likelihood; // (n_rows, TOP) … and log p(class | observation) − log p(class)
    int32_t *said;     // (n_rows) the class it finds most probable; terminal states are known
    double *recall;    // (max K) share of each cluster's states that it recognises
    polish_summary *summary;
    char phase[48]; // the name of what is being done
} polishing;

static const char *part(polishing *run, const char *what)
{
    snprintf(run->phase, sizeof run->phase, "polishing %zu: %s", run->summary->rounds + 1, what);
    return run->phase;
}

static size_t count_ignored(const polishing *run, const int32_t *labels)
{
    size_t ignored = 0;
    for (size_t i = 0; i < run->problem->n_states; i++) {
        ignored += labels[run->problem->states[i]] < 0;
    }
    return ignored;
}

// ---- what the network says --------------------------------------------------------------------

static void keep_top(const float *p, const double *log_prior, size_t k, int32_t *top, float *score)
{
    size_t kept = 0;
    for (size_t c = 0; c < k; c++) {
        const float value = (float)(log((double)p[c] + MISTAKEN) - log_prior[c]);
        size_t at = kept < TOP ? kept++ : TOP;
        if (at == TOP) {
            if (value <= score[TOP - 1]) continue;
            at = TOP - 1;
        }
        for (; at > 0 && score[at - 1] < value; at--) {
            score[at] = score[at - 1];
            top[at] = top[at - 1];
        }
        score[at] = value;
        top[at] = (int32_t)c;
    }
    for (; kept < TOP; kept++) top[kept] = -1;
}

// Fits a classifier of the labels and asks it about every state.
static psi_status classify(polishing *run)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t k = run->n_latent;
    cluster_fit *classifier = NULL;
    float *p = NULL;
    double *log_prior = NULL, *size = NULL;
    TRY(base_alloc(run->ctx, BLOCK, k * sizeof *p, &p));
    TRY(base_alloc_zero(run->ctx, k, sizeof *size, &size));
    TRY(base_alloc(run->ctx, k, sizeof *log_prior, &log_prior));
    TRY(cluster_fit_states(run->ctx, problem, run->approximator, run->labels, k,
                           run->options->seed + run->fits++, part(run, "learning"), &classifier));
    for (size_t i = 0; i < problem->n_states; i++) {
        const int32_t label = run->labels[problem->states[i]];
        if (label >= 0) size[label] += 1.0;
    }
    for (size_t c = 0; c < k; c++) {
        log_prior[c] = log((size[c] + 1.0) / (double)(problem->n_states + k));
        run->recall[c] = 0.0;
    }
    base_progress progress =
        base_progress_start(run->ctx, part(run, "predicting"), problem->n_states);
    for (size_t begin = 0; begin < problem->n_states; begin += BLOCK) {
        const size_t n = base_min(BLOCK, problem->n_states - begin);
        const uint64_t *rows = problem->states + begin;
        TRY(run->approximator->predict(run->approximator->self, run->ctx, classifier, rows, n, p));
        for (size_t i = 0; i < n; i++) {
            const int32_t label = run->labels[rows[i]];
            const size_t best = base_largest(p + i * k, 0, k);
            if (label >= 0 && (size_t)label == best) run->recall[label] += 1.0 / size[label];
            run->said[rows[i]] = (int32_t)best;
            keep_top(p + i * k, log_prior, k, run->top + rows[i] * TOP,
                     run->likelihood + rows[i] * TOP);
        }
        TRY(base_progress_at(&progress, begin + n));
    }
    base_progress_end(&progress, problem->n_states);
done:
    cluster_fit_free(run->ctx, classifier);
    base_free(run->ctx, log_prior);
    base_free(run->ctx, size);
    base_free(run->ctx, p);
    return status;
}

// ---- smoothing and giving up clusters ---------------------------------------------------------

static psi_status smooth(polishing *run, const int32_t *labels, double keep, int32_t *out)
{
    const psi_paths paths = cluster_paths(run->problem, labels, run->n_latent);
    const psi_emissions emissions = {
        .per_row = TOP, .index = run->top, .log_likelihood = run->likelihood, .absent = ABSENT};
    psi_smooth_options options = psi_smooth_defaults();
    options.emissions = &emissions;
    options.keep = keep;
    options.learn_start = true;
    options.reward_class = run->problem->rewards.of;
    options.n_reward_classes = run->problem->rewards.n;
    options.phase = part(run, "smoothing");
    psi_smooth_summary told;
    const psi_status status = psi_smooth(run->ctx, &paths, &options, out, NULL, &told);
    if (status == PSI_OK) run->summary->smallest_row_maximum = told.smallest_row_maximum;
    return status;
}

// target[k] is the new name of cluster k, −1 to give it up; names must be 0 … n_latent−1.
static void rename_clusters(polishing *run, const int32_t *target, int32_t *labels)
{
    for (size_t i = 0; i < run->problem->n_rows; i++) {
        if (labels[i] >= 0) labels[i] = target[labels[i]];
    }
}

// Gives up clusters that hold too few states; returns how many.
static psi_status drop_small(polishing *run, size_t *dropped)
{
    psi_status status = PSI_OK;
    size_t *size = NULL;
    int32_t *target = NULL, kept = 0;
    const double fewest = run->options->filter * (double)run->problem->n_states;
    *dropped = 0;
    TRY(base_alloc_zero(run->ctx, run->n_latent, sizeof *size, &size));
    TRY(base_alloc(run->ctx, run->n_latent, sizeof *target, &target));
    for (size_t i = 0; i < run->problem->n_states; i++) {
        const int32_t label = run->labels[run->problem->states[i]];
        if (label >= 0) size[label]++;
    }
    for (size_t k = 0; k < run->n_latent; k++) {
        const bool terminal = run->problem->has_terminal && k == 0;
        const bool keep = terminal || ((double)size[k] >= fewest && size[k] > 0);
        target[k] = keep ? kept++ : -1;
        *dropped += !keep;
    }
    if (*dropped > 0) {
        rename_clusters(run, target, run->labels);
        run->n_latent = (size_t)kept;
        run->summary->dropped += *dropped;
    }
done:
    base_free(run->ctx, target);
    base_free(run->ctx, size);
    return status;
}

// Joins clusters whose rows in the latent model agree, unless that costs them too much.
static psi_status merge_equal(polishing *run, size_t *merged)
{
    psi_status status = PSI_OK;
    const psi_paths paths = cluster_paths(run->problem, run->labels, run->n_latent);
    psi_counts *counts = NULL;
    psi_partition *blocks = NULL;
    double *lost = NULL;
    int32_t *name = NULL;
    *merged = 0;
    psi_merge_options options = psi_merge_defaults();
    options.reward_tolerance = 0.1 * run->problem->rewards.spacing;
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_merge(run->ctx, counts, &options, &blocks));
    if (blocks->n_blocks == run->n_latent) goto done;
    TRY(psi_partition_canonical(run->ctx, blocks, NULL)); // cluster 0 stays 0
    memcpy(run->trial, run->labels, run->problem->n_rows * sizeof *run->trial);
    rename_clusters(run, blocks->label, run->trial);
    TRY(base_alloc(run->ctx, run->n_latent, sizeof *lost, &lost));
    TRY(base_alloc(run->ctx, run->n_latent, sizeof *name, &name));
    TRY(cluster_judge_loss(run->ctx, run->problem, run->labels, run->n_latent, run->trial,
                           blocks->n_blocks, lost));
    // a member that would lose too much keeps a name of its own
    int32_t next = 0;
    for (size_t k = 0; k < run->n_latent; k++) {
        name[k] = -1;
        for (size_t before = 0; before < k && lost[k] <= run->options->may_lose; before++) {
            if (blocks->label[before] == blocks->label[k] &&
                lost[before] <= run->options->may_lose) {
                name[k] = name[before];
                break;
            }
        }
        if (name[k] < 0) {
            name[k] = next++;
        } else {
            (*merged)++;
        }
    }
    rename_clusters(run, name, run->labels);
    run->n_latent = (size_t)next;
    run->summary->merged += *merged;
done:
    base_free(run->ctx, name);
    base_free(run->ctx, lost);
    psi_partition_free(run->ctx, blocks);
    psi_counts_free(run->ctx, counts);
    return status;
}

// Joins clusters i and j if each is the one that the other gains least from being told apart from,
// and neither gains anything. Returns how many are left.
static size_t join_pairs(const double *gain, size_t k, size_t first, int32_t *best, int32_t *name)
{
    int32_t next = 0;
    for (size_t i = 0; i < k; i++) {
        best[i] = -1;
        for (size_t j = first; j < k && i >= first; j++) {
            const double apart = gain[i * k + j];
            if (apart > 0.0) continue;
            if (best[i] < 0 || apart < gain[i * k + (size_t)best[i]]) best[i] = (int32_t)j;
        }
    }
    for (size_t i = 0; i < k; i++) {
        const int32_t other = best[i];
        const bool joins = other >= 0 && other < (int32_t)i && best[other] == (int32_t)i;
        name[i] = joins ? name[other] : next++;
    }
    return (size_t)next;
}

// Joins clusters that held-out transitions do not tell apart. A network that has learnt by heart
// what happened puts states together by it; all that follows from such labels confirms them, but
// for states that it has not seen.
static psi_status merge_learnt_by_heart(polishing *run, size_t *merged)
{
    psi_status status = PSI_OK;
    double *gain = NULL;
    int32_t *name = NULL, *best = NULL;
    *merged = 0;
    if (run->problem->n_held_out == 0) return PSI_OK;
    TRY(base_alloc(run->ctx, run->n_latent * run->n_latent, sizeof *gain, &gain));
    TRY(base_alloc(run->ctx, run->n_latent, sizeof *name, &name));
    TRY(base_alloc(run->ctx, run->n_latent, sizeof *best, &best));
    for (size_t joined = 1; joined > 0; *merged += joined) {
        TRY(cluster_judge_apart(run->ctx, run->problem, run->said, run->n_latent, gain));
        const size_t left = join_pairs(gain, run->n_latent, run->problem->has_terminal, best, name);
        joined = run->n_latent - left;
        rename_clusters(run, name, run->labels);
        rename_clusters(run, name, run->said);
        run->n_latent = left;
    }
    run->summary->merged += *merged;
done:
    base_free(run->ctx, best);
    base_free(run->ctx, name);
    base_free(run->ctx, gain);
    return status;
}

// Takes cluster k away, lets the trajectories say where its states belong, and stays with that if
// they lose little by it.
static psi_status try_without(polishing *run, size_t k, bool *gone)
{
    psi_status status = PSI_OK;
    const size_t n_top = run->problem->n_rows * TOP;
    int32_t *without = NULL, *top = NULL;
    double *lost = NULL;
    *gone = false;
    TRY(base_alloc(run->ctx, run->problem->n_rows, sizeof *without, &without));
    TRY(base_alloc(run->ctx, n_top, sizeof *top, &top));
    TRY(base_alloc(run->ctx, run->n_latent, sizeof *lost, &lost));
    for (size_t i = 0; i < run->problem->n_rows; i++) {
        const int32_t label = run->labels[i];
        without[i] = label == (int32_t)k ? -1 : label > (int32_t)k ? label - 1 : label;
    }
    memcpy(top, run->top, n_top * sizeof *top);
    for (size_t i = 0; i < n_top; i++) { // nobody says k any more
        if (run->top[i] == (int32_t)k) run->top[i] = -1;
        if (run->top[i] > (int32_t)k) run->top[i]--;
    }
    run->n_latent--;
    TRY(smooth(run, without, KEEP, run->trial));
    TRY(cluster_judge_loss(run->ctx, run->problem, run->labels, run->n_latent + 1, run->trial,
                           run->n_latent, lost));
    size_t homeless = 0, members = 0;
    for (size_t i = 0; i < run->problem->n_states; i++) {
        const uint64_t row = run->problem->states[i];
        if (run->labels[row] != (int32_t)k) continue;
        members++;
        homeless += run->trial[row] < 0;
    }
    *gone = lost[k] <= run->options->may_lose && 2 * homeless <= members;
    if (*gone) {
        memcpy(run->labels, run->trial, run->problem->n_rows * sizeof *run->labels);
        run->summary->dropped++;
    } else {
        run->n_latent++;
        memcpy(run->top, top, n_top * sizeof *top);
    }
done:
    base_free(run->ctx, lost);
    base_free(run->ctx, top);
    base_free(run->ctx, without);
    return status;
}

// Clusters that the network cannot recognise are blends of others more often than not.
static psi_status drop_unrecognised(polishing *run, size_t *dropped)
{
    *dropped = 0;
    for (size_t k = run->problem->has_terminal; k < run->n_latent && run->n_latent > 2; k++) {
        if (run->recall[k] >= RECOGNISED) continue;
        bool gone;
        const psi_status status = try_without(run, k, &gone);
        if (status != PSI_OK) return status;
        if (!gone) continue;
        *dropped = 1; // the names have moved: once a round is enough
        return PSI_OK;
    }
    return PSI_OK;
}

// States that are still ignored get the label that trajectory and network together find likelier
// than all others; so do states that the network calls by another name than their label.
static psi_status give_homes(polishing *run)
{
    psi_status status = PSI_OK;
    int32_t *agreed = NULL;
    TRY(base_alloc(run->ctx, run->problem->n_rows, sizeof *agreed, &agreed));
    TRY(classify(run));
    memcpy(agreed, run->labels, run->problem->n_rows * sizeof *agreed);
    for (size_t i = 0; i < run->problem->n_states; i++) {
        const uint64_t row = run->problem->states[i];
        if (agreed[row] != run->said[row]) agreed[row] = -1;
    }
    TRY(smooth(run, agreed, KEEP_AT_LAST, run->trial));
    for (size_t i = 0; i < run->problem->n_states; i++) {
        const uint64_t row = run->problem->states[i];
        if (agreed[row] < 0 && run->trial[row] >= 0) run->labels[row] = run->trial[row];
    }
done:
    base_free(run->ctx, agreed);
    return status;
}

psi_status cluster_polish(psi_ctx *ctx, const cluster_problem *problem,
                          const cluster_approximator *approximator, const polish_options *options,
                          int32_t *labels, size_t *n_latent, polish_summary *summary)
{
    psi_status status = PSI_OK;
    polishing run = {.ctx = ctx,
                     .problem = problem,
                     .approximator = approximator,
                     .options = options,
                     .labels = labels,
                     .n_latent = *n_latent,
                     .summary = summary};
    int32_t *before = NULL;
    *summary = (polish_summary){0};
    TRY(base_alloc(ctx, problem->n_rows, sizeof *before, &before));
    TRY(base_alloc(ctx, problem->n_rows, sizeof *run.trial, &run.trial));
    TRY(base_alloc(ctx, problem->n_rows, TOP * sizeof *run.top, &run.top));
    TRY(base_alloc_zero(ctx, problem->n_rows, TOP * sizeof *run.likelihood, &run.likelihood));
    TRY(base_alloc(ctx, problem->n_rows, sizeof *run.said, &run.said));
    TRY(base_alloc(ctx, *n_latent, sizeof *run.recall, &run.recall));
    for (size_t i = 0; i < problem->n_rows; i++) run.said[i] = -1;
    for (size_t e = 0; e < problem->data->n_episodes; e++) {
        if (problem->data->terminated[e]) run.said[problem->data->episode_offsets[e + 1] + e] = 0;
    }
    for (size_t i = 0; i < problem->n_rows * TOP; i++) run.top[i] = -1;
    memcpy(before, labels, problem->n_rows * sizeof *before);
    summary->ignored_before = (double)count_ignored(&run, labels) / (double)problem->n_states;
    size_t moving = SIZE_MAX; // states that moved in the round before
    for (bool changed = true; changed && summary->rounds < options->max_rounds; summary->rounds++) {
        size_t dropped, merged = 0, unrecognised = 0, moved = 0;
        TRY(base_cancelled(ctx));
        TRY(classify(&run));
        TRY(smooth(&run, labels, KEEP, run.trial));
        for (size_t i = 0; i < problem->n_rows; i++) moved += labels[i] != run.trial[i];
        memcpy(labels, run.trial, problem->n_rows * sizeof *labels);
        TRY(drop_small(&run, &dropped));
        if (dropped == 0) TRY(merge_equal(&run, &merged));
        if (dropped + merged == 0) TRY(merge_learnt_by_heart(&run, &merged));
        if (dropped + merged == 0) TRY(drop_unrecognised(&run, &unrecognised));
        const bool fewer = dropped + merged + unrecognised > 0;
        // a few that move to and fro never come to rest
        changed = fewer || (moved * MOVED > problem->n_states && moved < moving);
        moving = fewer ? SIZE_MAX : moved;
    }
    TRY(give_homes(&run));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        summary->changed += before[row] >= 0 && labels[row] >= 0 && before[row] != labels[row];
    }
    summary->ignored_after = (double)count_ignored(&run, labels) / (double)problem->n_states;
    *n_latent = run.n_latent;
done:
    base_free(ctx, run.recall);
    base_free(ctx, run.said);
    base_free(ctx, run.likelihood);
    base_free(ctx, run.top);
    base_free(ctx, run.trial);
    base_free(ctx, before);
    return status;
}
