// Function approximation as the algorithm sees it: fit these labels, predict for every state and
// action. Behind it stand a table of counts, and networks whose heads are fitted on cached
// features.
#ifndef PSI_LEARN_APPROXIMATOR_H
#define PSI_LEARN_APPROXIMATOR_H

#include "problem/problem.h"

#include <psifold/cluster.h>

// What is to be learnt: f(state, action) → distribution over classes. One sample per entry.
typedef struct learn_samples {
    size_t n;
    const uint64_t *rows;   // (n) the state, as a row of the observations
    const int32_t *actions; // (n) NULL: there is one action only
    const int32_t *targets; // (n) 0 … n_classes−1
    size_t n_actions, n_classes;
    const char *phase; // the name under which the fit tells its progress; NULL: it does not
} learn_samples;

// A fitted function: the counts of a table, or a network (linear heads on features, or the whole of
// it).
typedef struct learn_fit {
    size_t n_actions, n_classes;
    float *p;     // (distinct observations, n_actions, n_classes) of a table; else NULL
    psi_net *net; // → (n_actions, n_classes); NULL for a table …
    psi_work *work;
} learn_fit;
void learn_fit_free(psi_ctx *ctx, learn_fit *fit); // NULL is fine

typedef struct learn_approximator {
    psi_approximator kind; // auto: there is none
    void *self;

    // start (may be NULL) is an earlier fit to begin from; parent[k] is the class of it that class
    // k comes from, −1 if it comes from none. *out belongs to the caller.
    psi_status (*fit)(void *self, psi_ctx *ctx, const learn_samples *samples,
                      const learn_fit *start, const int32_t *parent, uint64_t seed,
                      learn_fit **out);
    // p (n, n_actions, n_classes): the probability of every class.
    psi_status (*predict)(void *self, psi_ctx *ctx, const learn_fit *fit, const uint64_t *rows,
                          size_t n, float *p);
    // A fit from the file that learn_fit_save wrote. PSI_EDATA unless it has these actions and
    // classes. NULL for a table, whose fits start from nothing.
    psi_status (*load)(void *self, psi_ctx *ctx, const char *path, size_t n_actions,
                       size_t n_classes, learn_fit **out);
    void (*free)(void *self, psi_ctx *ctx);

    const struct feature_cache *features; // that heads are fitted on: borrowed; NULL: no heads
    const psi_net *const *trained; // the whole network that was trained last, or NULL; itself NULL
                                   // where there are no whole networks
} learn_approximator;
void learn_approximator_free(psi_ctx *ctx, learn_approximator *approximator);

// The network of a fit, in a file; PSI_EUSAGE for a table's.
psi_status learn_fit_save(psi_ctx *ctx, const learn_fit *fit, const char *path);

// Whether it generalises: a network, not a table, nor none at all.
static inline bool learn_is_network(const learn_approximator *approximator)
{
    return approximator->kind != PSI_APPROXIMATOR_TABLE &&
           approximator->kind != PSI_APPROXIMATOR_AUTO;
}

// The approximator that a network of this kind is.
static inline psi_approximator learn_kind_of(psi_net_kind kind)
{
    return kind == PSI_NET_MLP   ? PSI_APPROXIMATOR_MLP
           : kind == PSI_NET_CNN ? PSI_APPROXIMATOR_CNN
                                 : PSI_APPROXIMATOR_RESNET18;
}

// Counts per distinct observation: exact where observations repeat. PSI_ELIMIT if there are more
// than max_distinct of them.
psi_status learn_table_new(psi_ctx *ctx, const cluster_problem *problem, size_t max_distinct,
                           learn_approximator *out);

#endif
