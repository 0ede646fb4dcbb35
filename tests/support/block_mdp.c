#include "support/block_mdp.h"

#include "base/context.h"
#include "base/random.h"

#include <math.h>

typedef struct block_mdp {
    const block_options *options;
    int32_t *successor; // (K, A, 2)
    double *first;      // (K, A) probability of the first of the two
    double *reward;     // (K, A)
    double *place;      // (K · looks, dimensions) the middle of what a ground state looks like
    double noise;
} block_mdp;

static void block_free(psi_ctx *ctx, block_mdp *block)
{
    base_free(ctx, block->successor);
    base_free(ctx, block->first);
    base_free(ctx, block->reward);
    base_free(ctx, block->place);
}

// Action 0 walks a cycle through all latent states; the others jump anywhere.
static void draw_tables(block_mdp *block, const uint32_t *cycle, base_random *random)
{
    const block_options *options = block->options;
    const size_t k = options->latent_states, actions = options->actions;
    for (size_t i = 0; i < k; i++) {
        for (size_t a = 0; a < actions; a++) {
            const size_t row = cycle[i] * actions + a;
            for (size_t which = 0; which < 2; which++) {
                const bool forward = a == 0 && which == 0;
                const uint32_t anywhere = base_random_below(random, (uint32_t)k);
                int32_t *next = &block->successor[2 * row + which];
                *next = (int32_t)(forward ? cycle[(i + 1) % k] : anywhere);
                if (options->rare && !forward && *next == (int32_t)cycle[0]) {
                    *next = (int32_t)cycle[1 + base_random_below(random, (uint32_t)k - 1)];
                }
            }
            block->first[row] = options->stochastic ? 0.6 + 0.3 * base_random_uniform(random) : 1.0;
            const uint32_t die = base_random_below(random, 8);
            block->reward[row] = die == 0   ? 1.0
                                 : die == 1 ? 1.0 + base_random_below(random, 2)
                                            : 0.0;
        }
    }
}

// Is every latent state needed?
static psi_status is_minimal(psi_ctx *ctx, const block_mdp *block, bool *minimal)
{
    psi_status status = PSI_OK;
    const size_t k = block->options->latent_states, actions = block->options->actions;
    uint64_t *row = NULL;
    double *probability = NULL;
    psi_mdp *mdp = NULL;
    psi_partition *coarsest = NULL;
    size_t n = 0;
    int32_t *next = NULL;
    TRY(base_alloc(ctx, 2 * k * actions, sizeof *row, &row));
    TRY(base_alloc(ctx, 2 * k * actions, sizeof *next, &next));
    TRY(base_alloc(ctx, 2 * k * actions, sizeof *probability, &probability));
    for (size_t i = 0; i < 2 * k * actions; i++) {
        const double p = i % 2 == 0 ? block->first[i / 2] : 1.0 - block->first[i / 2];
        if (p == 0.0) continue;
        row[n] = i / 2;
        next[n] = block->successor[i];
        probability[n++] = p;
    }
    TRY(psi_mdp_from_entries(ctx, k, actions, n, row, next, probability, block->reward, NULL,
                             &mdp));
    TRY(psi_bisimulation(ctx, mdp, 0.0, &coarsest));
    *minimal = coarsest->n_blocks == k;
done:
    psi_partition_free(ctx, coarsest);
    psi_mdp_free(ctx, mdp);
    base_free(ctx, probability);
    base_free(ctx, next);
    base_free(ctx, row);
    return status;
}

// Places in the unit cube, as far from one another as random places easily get.
static void draw_places(block_mdp *block, base_random *random)
{
    const size_t n = block->options->latent_states * block->options->looks;
    const size_t d = block->options->dimensions;
    double distance = fmin(0.6, 0.6 / pow((double)n, 1.0 / (double)d));
    for (size_t g = 0; g < n;) {
        double nearest = HUGE_VAL;
        for (size_t w = 0; w < d; w++) block->place[g * d + w] = base_random_uniform(random);
        for (size_t h = 0; h < g; h++) {
            double square = 0.0;
            for (size_t w = 0; w < d; w++) {
                const double step = block->place[g * d + w] - block->place[h * d + w];
                square += step * step;
            }
            nearest = fmin(nearest, sqrt(square));
        }
        if (nearest >= distance) {
            g++;
        } else {
            distance *= 0.999;
        }
    }
    block->noise = 0.12 * distance;
}

static psi_status block_new(psi_ctx *ctx, const block_options *options, block_mdp *out)
{
    psi_status status = PSI_OK;
    const size_t k = options->latent_states, pairs = k * options->actions;
    uint32_t *cycle = NULL;
    *out = (block_mdp){.options = options};
    TRY(base_alloc(ctx, 2 * pairs, sizeof *out->successor, &out->successor));
    TRY(base_alloc(ctx, pairs, sizeof *out->first, &out->first));
    TRY(base_alloc(ctx, pairs, sizeof *out->reward, &out->reward));
    TRY(base_alloc(ctx, k * options->looks * options->dimensions, sizeof *out->place, &out->place));
    TRY(base_alloc(ctx, k, sizeof *cycle, &cycle));
    base_random random = base_random_stream(options->seed, 0x626c6f63, 0);
    for (bool minimal = false; !minimal;) {
        base_random_shuffle(&random, cycle, k);
        draw_tables(out, cycle, &random);
        TRY(is_minimal(ctx, out, &minimal));
    }
    draw_places(out, &random);
done:
    base_free(ctx, cycle);
    return status;
}

static size_t draw_action(const block_options *options, base_random *random)
{
    if (!options->uneven) return base_random_below(random, (uint32_t)options->actions);
    if (base_random_uniform(random) < 0.7) return 0;
    return 1 + base_random_below(random, (uint32_t)options->actions - 1);
}

typedef struct episode_buffers {
    float *observations;
    int32_t *actions, *latent;
    double *rewards;
} episode_buffers;

static void walk(const block_mdp *block, uint64_t number, episode_buffers *to)
{
    const block_options *options = block->options;
    const size_t d = options->dimensions;
    base_random random = base_random_stream(options->seed, 0x77616c6b, number);
    size_t z = base_random_below(&random, (uint32_t)options->latent_states);
    for (size_t t = 0;; t++) {
        const size_t look = base_random_below(&random, (uint32_t)options->looks);
        const double *place = block->place + (z * options->looks + look) * d;
        to->latent[t] = (int32_t)z;
        for (size_t w = 0; w < d; w++) {
            to->observations[t * d + w] =
                (float)(place[w] + block->noise * base_random_normal(&random));
        }
        if (t == options->length) return;
        const size_t a = draw_action(options, &random), row = z * options->actions + a;
        const double blur = options->noisy_rewards ? 0.1 * base_random_normal(&random) : 0.0;
        to->actions[t] = (int32_t)a;
        to->rewards[t] = block->reward[row] + blur;
        const bool second = base_random_uniform(&random) >= block->first[row];
        z = (size_t)block->successor[2 * row + second];
    }
}

psi_status block_mdp_collect(psi_ctx *ctx, const block_options *options, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    block_mdp block = {0};
    episode_buffers to = {0};
    psi_collector *collector = NULL;
    const size_t rows = options->length + 1;
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {1, {options->dimensions}},
                                   .observation_low = -10.0,
                                   .observation_high = 10.0,
                                   .n_actions = options->actions,
                                   .latent_states = true};
    *out = NULL;
    TRY(block_new(ctx, options, &block));
    TRY(base_alloc(ctx, rows * options->dimensions, sizeof(float), &to.observations));
    TRY(base_alloc(ctx, rows, sizeof *to.actions, &to.actions));
    TRY(base_alloc(ctx, rows, sizeof *to.latent, &to.latent));
    TRY(base_alloc(ctx, rows, sizeof *to.rewards, &to.rewards));
    TRY(psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < options->episodes; e++) {
        walk(&block, e, &to);
        const psi_episode episode = {.length = options->length,
                                     .observations = to.observations,
                                     .actions = to.actions,
                                     .rewards = to.rewards,
                                     .latent_states = to.latent,
                                     .truncated = true};
        TRY(psi_collector_add(collector, &episode));
    }
    psi_collector *full = collector;
    collector = NULL;
    TRY(psi_collector_finish(full, out));
done:
    psi_collector_discard(collector);
    base_free(ctx, to.rewards);
    base_free(ctx, to.latent);
    base_free(ctx, to.actions);
    base_free(ctx, to.observations);
    block_free(ctx, &block);
    return status;
}
