// Trajectories for the tests of this room: random walks through a finite model.
#ifndef PSI_TESTS_MDP_PATHS_H
#define PSI_TESTS_MDP_PATHS_H

#include "models.h"

typedef struct walk {
    psi_paths paths;
    int32_t *labels, *truth, *actions; // labels may be spoilt; truth may not
    double *rewards;
    uint64_t *offsets;
    uint8_t *terminated;
} walk;

// Episodes of random actions that start in random states and end in terminal ones, or after `cap`
// steps. Latent states are the model's states.
static inline walk random_walk(const psi_mdp *mdp, size_t episodes, size_t cap, uint64_t seed)
{
    walk w = {0};
    const size_t most = episodes * cap;
    w.labels = malloc((most + episodes) * sizeof *w.labels);
    w.truth = malloc((most + episodes) * sizeof *w.truth);
    w.actions = malloc((most + 1) * sizeof *w.actions);
    w.rewards = malloc((most + 1) * sizeof *w.rewards);
    w.offsets = malloc((episodes + 1) * sizeof *w.offsets);
    w.terminated = malloc(episodes + 1);
    assert_true(w.labels && w.truth && w.actions && w.rewards && w.offsets && w.terminated);
    size_t n = 0;
    bool has_terminal = false;
    for (size_t s = 0; s < mdp->n_states; s++) has_terminal = has_terminal || mdp->terminal[s];
    for (size_t e = 0; e < episodes; e++) {
        base_random r = base_random_stream(seed, 5, e);
        size_t s;
        do {
            s = base_random_below(&r, (uint32_t)mdp->n_states);
        } while (mdp->terminal[s]);
        w.offsets[e] = n;
        for (size_t t = 0; t < cap && !mdp->terminal[s]; t++) {
            const size_t a = base_random_below(&r, (uint32_t)mdp->n_actions);
            const size_t row = s * mdp->n_actions + a;
            double u = base_random_uniform(&r);
            uint64_t i = mdp->offsets[row];
            while (i + 1 < mdp->offsets[row + 1] && u >= mdp->probability[i])
                u -= mdp->probability[i++];
            w.truth[n + e] = (int32_t)s;
            w.actions[n] = (int32_t)a;
            w.rewards[n++] = mdp->reward[row];
            s = (size_t)mdp->next[i];
        }
        w.truth[n + e] = (int32_t)s;
        w.terminated[e] = mdp->terminal[s];
    }
    w.offsets[episodes] = n;
    memcpy(w.labels, w.truth, (n + episodes) * sizeof *w.truth);
    w.paths = (psi_paths){.n_episodes = episodes,
                          .n_transitions = n,
                          .n_actions = mdp->n_actions,
                          .n_latent = mdp->n_states,
                          .has_terminal = has_terminal,
                          .labels = w.labels,
                          .actions = w.actions,
                          .rewards = w.rewards,
                          .episode_offsets = w.offsets,
                          .terminated = w.terminated};
    return w;
}

// Ignores and confuses labels that are not certain: every one with these probabilities.
static inline void spoil(walk *w, double ignore, double wrong, uint64_t seed)
{
    const uint32_t first = w->paths.has_terminal ? 1 : 0;
    for (size_t row = 0; row < w->paths.n_transitions + w->paths.n_episodes; row++) {
        base_random r = base_random_stream(seed, 6, row);
        w->labels[row] = w->truth[row];
        if (first && w->truth[row] == 0) continue;
        const double u = base_random_uniform(&r);
        if (u < ignore)
            w->labels[row] = -1;
        else if (u < ignore + wrong)
            w->labels[row] =
                (int32_t)(first + base_random_below(&r, (uint32_t)w->paths.n_latent - first));
    }
}

static inline size_t walk_rows(const walk *w)
{
    return w->paths.n_transitions + w->paths.n_episodes;
}

static inline void walk_free(walk *w)
{
    free(w->labels);
    free(w->truth);
    free(w->actions);
    free(w->rewards);
    free(w->offsets);
    free(w->terminated);
}

// The quotient of the lock: 100 latent states, the terminal one first.
static inline psi_mdp *lock_quotient(psi_ctx *ctx)
{
    psi_mdp *lock = combination_lock(ctx), *quotient;
    psi_partition *c;
    assert_ok(ctx, psi_bisimulation(ctx, lock, 0.0, &c));
    assert_ok(ctx, psi_quotient(ctx, lock, c, &quotient, NULL));
    psi_partition_free(ctx, c);
    psi_mdp_free(ctx, lock);
    return quotient;
}

#endif
