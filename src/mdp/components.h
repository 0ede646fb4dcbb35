// Strongly connected components.
#ifndef PSI_MDP_COMPONENTS_H
#define PSI_MDP_COMPONENTS_H

#include <psifold/mdp.h>

typedef struct mdp_graph {
    size_t n;              // at most 2^31 − 1
    const uint64_t *begin; // (n + 1) successors of s: next[begin[s]] …
    const int32_t *next;
} mdp_graph;

typedef struct mdp_components {
    uint32_t *state; // (n) component by component: each behind those that it leads to
    uint8_t *last;   // (n) 1 at the last state of a component
    bool complete;   // the limit was kept
    size_t bytes;    // that were needed to find them
} mdp_components;

// Gives up when more than limit states are found to share a component with others (all of it, but
// for its first). O(n + m).
psi_status mdp_components_find(psi_ctx *ctx, const mdp_graph *graph, size_t limit,
                               mdp_components *out);
void mdp_components_free(psi_ctx *ctx, mdp_components *components);

#endif
