#include "report/exact.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ACTIONS_NAMED = 64, MOST_LEVELS = 40, LEVEL_LABELS = 1 << 26, MOST_BLOCKS = 20000 };

// ---- the quotient as an MDP of numbered actions -------------------------------------------------

// Are actions fit for columns: few, and at most one choice of each in a state?
static bool actions_are_distinct(const psi_model *model)
{
    if (model->chain || model->n_actions > ACTIONS_NAMED) return false;
    for (size_t s = 0; s < model->n_states; s++) {
        uint64_t seen = 0;
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            const uint64_t bit = UINT64_C(1) << model->action[c];
            if (seen & bit) return false;
            seen |= bit;
        }
    }
    return true;
}

// What a choice earns: the first reward there is, of its state and its own.
static double reward_of(const psi_model *model, size_t s, size_t c)
{
    if (model->n_rewards == 0) return 0.0;
    const psi_model_reward *reward = &model->rewards[0];
    return (reward->state ? reward->state[s] : 0.0) + (reward->choice ? reward->choice[c] : 0.0);
}

// An end: nothing can be chosen, or whatever is chosen stays and earns nothing.
static bool is_end(const psi_model *model, size_t s)
{
    for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
        if (reward_of(model, s, c) != 0.0) return false;
        for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
            if ((size_t)model->next[i] != s) return false;
        }
    }
    return true;
}

static psi_status make_mdp(psi_ctx *ctx, const psi_model *model, bool named, psi_run *run)
{
    psi_status status = PSI_OK;
    size_t widest = 1;
    for (size_t s = 0; s < model->n_states; s++) {
        widest = base_max(widest, model->choices[s + 1] - model->choices[s]);
    }
    run->n_actions = named ? base_max(1, model->n_actions) : widest;
    uint64_t *row = NULL;
    double *probability = NULL, *reward = NULL;
    int32_t *next = NULL;
    uint8_t *terminal = NULL;
    size_t n = 0;
    TRY(base_alloc(ctx, model->n_transitions, sizeof *row, &row));
    TRY(base_alloc(ctx, model->n_transitions, sizeof *next, &next));
    TRY(base_alloc(ctx, model->n_transitions, sizeof *probability, &probability));
    TRY(base_alloc_zero(ctx, model->n_states * run->n_actions, sizeof *reward, &reward));
    TRY(base_alloc_zero(ctx, model->n_states, sizeof *terminal, &terminal));
    for (size_t s = 0; s < model->n_states; s++) {
        terminal[s] = is_end(model, s);
        for (uint64_t c = model->choices[s]; !terminal[s] && c < model->choices[s + 1]; c++) {
            const size_t a = named ? (size_t)model->action[c] : c - model->choices[s];
            double sum = 0.0; // models are written with six digits
            reward[s * run->n_actions + a] = reward_of(model, s, c);
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
                sum += model->probability[i];
            }
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
                row[n] = s * run->n_actions + a;
                next[n] = model->next[i];
                probability[n++] = model->probability[i] / sum;
            }
        }
    }
    TRY(psi_mdp_from_entries(ctx, model->n_states, run->n_actions, n, row, next, probability,
                             reward, terminal, &run->model));
done:
    base_free(ctx, terminal);
    base_free(ctx, reward);
    base_free(ctx, probability);
    base_free(ctx, next);
    base_free(ctx, row);
    return status;
}

// ---- the way there ------------------------------------------------------------------------------

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

// A number in steps of 1e-9: sums in another order are the same.
static uint64_t step_of(double value)
{
    return (uint64_t)llround(fmax(-9e9, fmin(9e9, value)) * 1e9);
}

typedef struct looked {
    uint64_t key;
    size_t block;
} looked;

static int by_key(const void *a, const void *b)
{
    const looked *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

// What a block looks like, given the clusters of its successors (NULL: by its rewards alone). The
// weights of clusters are summed, so that the order of entries does not matter.
static uint64_t looks(const psi_mdp *model, size_t k, const int32_t *cluster, uint64_t start)
{
    uint64_t key = mix(start, model->terminal[k]);
    for (size_t a = 0; a < model->n_actions; a++) {
        const size_t row = k * model->n_actions + a;
        const bool seen = psi_mdp_seen(model, k, a);
        key = mix(mix(key, seen), seen ? step_of(model->reward[row]) : 0);
        uint64_t led = 0;
        for (size_t i = model->offsets[row]; cluster && i < model->offsets[row + 1]; i++) {
            const uint64_t name = mix(7, (uint64_t)cluster[model->next[i]]) | 1;
            led += name * step_of(model->probability[i]);
        }
        key = mix(key, led);
    }
    return key;
}

// Labels that differ tell blocks apart before anything else does.
static uint64_t labels_of(const psi_model *quotient, size_t k)
{
    uint64_t key = 1;
    for (size_t l = 0; l < quotient->n_labels; l++) {
        if (strcmp(quotient->labels[l].name, "init") == 0) continue;
        key = mix(key, quotient->labels[l].holds[k]);
    }
    return key;
}

// The clusters of blocks that refine those before them (NULL: none do yet).
static size_t refine(const psi_model *quotient, const psi_mdp *model, bool first, looked *sorted,
                     int32_t *cluster)
{
    const size_t k = model->n_states;
    for (size_t b = 0; b < k; b++) {
        const uint64_t start = mix(labels_of(quotient, b), first ? 0 : (uint64_t)cluster[b]);
        sorted[b] = (looked){looks(model, b, first ? NULL : cluster, start), b};
    }
    qsort(sorted, k, sizeof *sorted, by_key);
    int32_t found = -1;
    for (size_t i = 0; i < k; i++) {
        found += i == 0 || sorted[i].key != sorted[i - 1].key;
        cluster[sorted[i].block] = found;
    }
    return (size_t)found + 1;
}

// A level whose labels are those of the blocks that states are in; cluster NULL: all the same.
static psi_status add_level(psi_ctx *ctx, const psi_run *run, const int32_t *cluster,
                            size_t clusters, psi_levels *levels)
{
    int32_t *level = NULL;
    const psi_status status = base_alloc(ctx, run->n_observations, sizeof *level, &level);
    if (status != PSI_OK) return status;
    for (size_t s = 0; s < run->n_observations; s++) {
        level[s] = cluster ? cluster[run->labels[s]] : 0;
    }
    levels->labels[levels->n] = level;
    levels->clusters[levels->n++] = clusters;
    return PSI_OK;
}

// Algorithm 1 on the quotient: by rewards, then by where actions lead, until nothing changes. It is
// only told here; what was found is the quotient's.
static psi_status tell_levels(psi_ctx *ctx, const psi_model *quotient, psi_run *run,
                              psi_levels *levels)
{
    psi_status status = PSI_OK;
    const size_t k = run->n_latent;
    const size_t most = base_min(MOST_LEVELS, LEVEL_LABELS / base_max(1, run->n_observations));
    looked *sorted = NULL;
    int32_t *cluster = NULL;
    TRY(base_alloc(ctx, k, sizeof *sorted, &sorted));
    TRY(base_alloc(ctx, k, sizeof *cluster, &cluster));
    TRY(base_alloc_zero(ctx, MOST_LEVELS + 2, sizeof *levels->labels, &levels->labels));
    TRY(base_alloc_zero(ctx, MOST_LEVELS + 2, sizeof *levels->clusters, &levels->clusters));
    TRY(base_alloc_zero(ctx, MOST_LEVELS, sizeof *run->steps, &run->steps));
    TRY(add_level(ctx, run, NULL, 1, levels));
    for (size_t before = 0; run->n_steps < most;) {
        const size_t clusters = refine(quotient, run->model, before == 0, sorted, cluster);
        if (clusters == before) break;
        TRY(add_level(ctx, run, cluster, clusters, levels));
        run->steps[run->n_steps++] = (psi_cluster_step){.clusters = clusters,
                                                        .looked_at = run->n_observations,
                                                        .agreement = (double)NAN,
                                                        .epsilon = (double)NAN,
                                                        .seconds = (double)NAN};
        before = clusters;
    }
    for (size_t b = 0; b < k; b++) cluster[b] = (int32_t)b;
    TRY(add_level(ctx, run, cluster, k, levels));
done:
    base_free(ctx, cluster);
    base_free(ctx, sorted);
    return status;
}

static psi_status make_run(psi_ctx *ctx, const char *name, const psi_partition *blocks,
                           psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    *run = (psi_run){.finished = true,
                     .n_observations = blocks->n_states,
                     .n_latent = blocks->n_blocks,
                     .options = psi_cluster_defaults(),
                     .gamma = psi_cluster_defaults().gamma,
                     .accuracy = (double)NAN};
    TRY(base_copy_text(ctx, name, &run->folder));
    TRY(base_alloc(ctx, blocks->n_states, sizeof *run->labels, &run->labels));
    memcpy(run->labels, blocks->label, blocks->n_states * sizeof *run->labels);
    *out = run;
    run = NULL;
done:
    psi_run_free(ctx, run);
    return status;
}

psi_status report_exact_find(psi_ctx *ctx, const psi_model *model, const char *name,
                             report_exact *out)
{
    psi_status status = PSI_OK;
    const psi_quotient_options how = psi_quotient_defaults();
    *out = (report_exact){0};
    TRY(psi_quotient_find(ctx, model, &how, &out->quotient));
    const psi_model *quotient = out->quotient->model;
    if (quotient->n_states > MOST_BLOCKS) {
        TRY(FAIL(ctx, PSI_ELIMIT,
                 "%s folds into %zu states, and a page can show %d: psifold quotient writes it to "
                 "a file",
                 name, quotient->n_states, MOST_BLOCKS));
    }
    const bool named = actions_are_distinct(quotient);
    if (named) out->action_names = quotient->action_names;
    TRY(make_run(ctx, name, out->quotient->partition, &out->run));
    TRY(make_mdp(ctx, quotient, named, out->run));
    TRY(tell_levels(ctx, quotient, out->run, &out->levels));
done:
    if (status != PSI_OK) report_exact_free(ctx, out);
    return status;
}

void report_exact_free(psi_ctx *ctx, report_exact *exact)
{
    psi_levels_free(ctx, &exact->levels);
    psi_run_free(ctx, exact->run);
    psi_quotient_free(ctx, exact->quotient);
    *exact = (report_exact){0};
}
