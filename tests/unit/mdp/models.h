// Models the tests of this room share: Column World and the Combination Lock as exact tables, and
// random MDPs with a planted partition.
#ifndef PSI_TESTS_MDP_MODELS_H
#define PSI_TESTS_MDP_MODELS_H

#include "support/support.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Entries of a model under construction, in ordinary memory.
typedef struct model_builder {
    size_t n_states, n_actions, n, capacity;
    uint64_t *row;
    int32_t *next;
    double *probability, *reward;
    uint8_t *terminal;
} model_builder;

static inline model_builder builder_new(size_t n_states, size_t n_actions)
{
    model_builder b = {.n_states = n_states, .n_actions = n_actions};
    b.reward = calloc(n_states * n_actions + 1, sizeof *b.reward);
    b.terminal = calloc(n_states + 1, 1);
    assert_true(b.reward && b.terminal);
    return b;
}

static inline void builder_add(model_builder *b, size_t s, size_t a, size_t next, double p)
{
    if (b->n == b->capacity) {
        b->capacity = b->capacity ? 2 * b->capacity : 64;
        b->row = realloc(b->row, b->capacity * sizeof *b->row);
        b->next = realloc(b->next, b->capacity * sizeof *b->next);
        b->probability = realloc(b->probability, b->capacity * sizeof *b->probability);
        assert_true(b->row && b->next && b->probability);
    }
    b->row[b->n] = s * b->n_actions + a;
    b->next[b->n] = (int32_t)next;
    b->probability[b->n++] = p;
}

static inline void builder_free(model_builder *b)
{
    free(b->row);
    free(b->next);
    free(b->probability);
    free(b->reward);
    free(b->terminal);
}

static inline psi_mdp *builder_finish(psi_ctx *ctx, model_builder *b)
{
    psi_mdp *mdp;
    assert_ok(ctx, psi_mdp_from_entries(ctx, b->n_states, b->n_actions, b->n, b->row, b->next,
                                        b->probability, b->reward, b->terminal, &mdp));
    builder_free(b);
    return mdp;
}

// 4 × 4 cells, actions up, down, left, right; reward 1 for every step taken in the right column.
static inline psi_mdp *column_world(psi_ctx *ctx)
{
    model_builder b = builder_new(16, 4);
    for (size_t s = 0; s < 16; s++) {
        const size_t y = s / 4, x = s % 4;
        builder_add(&b, s, 0, (y > 0 ? y - 1 : y) * 4 + x, 1.0);
        builder_add(&b, s, 1, (y < 3 ? y + 1 : y) * 4 + x, 1.0);
        builder_add(&b, s, 2, y * 4 + (x > 0 ? x - 1 : x), 1.0);
        builder_add(&b, s, 3, y * 4 + (x < 3 ? x + 1 : x), 1.0);
        for (size_t a = 0; a < 4; a++) b.reward[s * 4 + a] = x == 3;
    }
    return builder_finish(ctx, &b);
}

// Three dials of ten digits. Actions 0 and 1 rotate the left and the middle one by +1, action 2
// spins the broken right one to a random digit. Reward 1 on entering (9, 9, *), which is terminal.
static inline psi_mdp *combination_lock(psi_ctx *ctx)
{
    model_builder b = builder_new(1000, 3);
    for (size_t s = 0; s < 1000; s++) {
        const size_t left = s / 100, middle = s / 10 % 10, right = s % 10;
        if (left == 9 && middle == 9) {
            b.terminal[s] = 1;
            continue;
        }
        const size_t turned[2] = {(left + 1) % 10 * 100 + middle * 10 + right,
                                  left * 100 + (middle + 1) % 10 * 10 + right};
        for (size_t a = 0; a < 2; a++) {
            builder_add(&b, s, a, turned[a], 1.0);
            b.reward[s * 3 + a] = turned[a] / 10 == 99;
        }
        for (size_t digit = 0; digit < 10; digit++)
            builder_add(&b, s, 2, left * 100 + middle * 10 + digit, 0.1);
    }
    return builder_finish(ctx, &b);
}

// A random MDP over a few latent states and, above it, one in which every latent state has several
// copies whose probabilities are spread at random over the copies of what follows.
typedef struct planted_model {
    psi_mdp *small, *large;
    psi_partition *planted; // of the large one's states, by latent state
} planted_model;

static inline planted_model random_planted(psi_ctx *ctx, uint64_t seed)
{
    base_random r = base_random_stream(seed, 77, 0);
    const size_t n_latent = 1 + base_random_below(&r, 9), n_actions = 1 + base_random_below(&r, 3);
    const bool stochastic = base_random_below(&r, 2), terminal = base_random_below(&r, 2);
    const uint32_t n_rewards = 1 + base_random_below(&r, 3), sixths = 6;
    const size_t most_copies = 1 + base_random_below(&r, 5);
    size_t first[11] = {0};
    for (size_t k = 0; k < n_latent; k++)
        first[k + 1] = first[k] + 1 + base_random_below(&r, (uint32_t)most_copies);
    const size_t n = first[n_latent];
    size_t latent_of[64], shuffled[64];
    uint32_t order[64];
    base_random_shuffle(&r, order, n);
    for (size_t k = 0; k < n_latent; k++)
        for (size_t i = first[k]; i < first[k + 1]; i++) {
            shuffled[i] = order[i];
            latent_of[order[i]] = k;
        }
    model_builder small = builder_new(n_latent, n_actions), large = builder_new(n, n_actions);
    if (terminal) small.terminal[0] = 1;
    for (size_t k = 0; k < n_latent; k++) {
        for (size_t a = 0; a < n_actions && !small.terminal[k]; a++) {
            double p[10] = {0};
            for (uint32_t i = 0; i < sixths; i++) {
                const size_t next = base_random_below(&r, (uint32_t)n_latent);
                p[next] += stochastic ? 1.0 / sixths : 0.0;
                if (!stochastic && i == 0) p[next] = 1.0;
            }
            const double reward =
                base_random_below(&r, 3) ? 0.0 : 0.7 * base_random_below(&r, n_rewards);
            small.reward[k * n_actions + a] = reward;
            for (size_t j = 0; j < n_latent; j++)
                if (p[j] > 0.0) builder_add(&small, k, a, j, p[j]);
            for (size_t i = first[k]; i < first[k + 1]; i++) {
                large.reward[shuffled[i] * n_actions + a] = reward;
                for (size_t j = 0; j < n_latent; j++) {
                    if (p[j] == 0.0) continue;
                    // a copy alone, or shares that add up to p[j] but for rounding
                    const size_t copies = first[j + 1] - first[j];
                    const size_t only = base_random_below(&r, (uint32_t)copies);
                    double share[8], sum = 0.0;
                    for (size_t c = 0; c < copies; c++) {
                        share[c] = stochastic ? base_random_uniform(&r) + 1e-3 : c == only;
                        sum += share[c];
                    }
                    for (size_t c = 0; c < copies; c++) {
                        if (share[c] > 0.0)
                            builder_add(&large, shuffled[i], a, shuffled[first[j] + c],
                                        p[j] * share[c] / sum);
                    }
                }
            }
        }
        for (size_t i = first[k]; i < first[k + 1]; i++)
            large.terminal[shuffled[i]] = small.terminal[k];
    }
    int32_t label[64];
    for (size_t s = 0; s < n; s++) label[s] = (int32_t)latent_of[s];
    planted_model model;
    model.small = builder_finish(ctx, &small);
    model.large = builder_finish(ctx, &large);
    assert_ok(ctx, psi_partition_new(ctx, n, label, &model.planted));
    return model;
}

static inline void planted_free(psi_ctx *ctx, planted_model *model)
{
    psi_mdp_free(ctx, model->small);
    psi_mdp_free(ctx, model->large);
    psi_partition_free(ctx, model->planted);
}

#endif
