// Groups of nodes that share one law per family, and how well a node fits each.
#ifndef PSI_EVIDENCE_GROUPS_H
#define PSI_EVIDENCE_GROUPS_H

#include "evidence/rows.h"

typedef struct evidence_groups {
    const evidence_rows *rows;
    bool exact;                   // what a node is counts as it is: no node mixes several laws
    double impurity;              // 1/κ: a node's law is drawn from Dirichlet(κ · the group's)
    double *concentration;        // (n_families) α: a law is drawn from Dirichlet(α · base)
    size_t n, room;               // slots, some of which may be empty
    uint32_t *cells;              // (room) nodes of a group; 0: the slot is empty
    float *count;                 // (room, n_outcomes)
    double *total;                // (room, n_families)
    double *precision, *weighted; // (room, n_means)
    // Which groups have an outcome: lists that start at having[outcome] − 1. A group that has lost
    // it may still be listed, and one that has it again is listed twice.
    uint32_t *having; // (n_outcomes) 0: none
    struct evidence_has {
        uint32_t group, next;
    } * has;
    size_t n_has, room_has;
    double *fewest;       // (n_families) draws that every group has at least
    uint64_t *seen, mark; // (room) mark: a candidate for the node that was asked last
} evidence_groups;

psi_status evidence_groups_new(psi_ctx *ctx, const evidence_rows *rows, evidence_groups *out);
void evidence_groups_free(psi_ctx *ctx, evidence_groups *groups);
void evidence_groups_clear(evidence_groups *groups);           // all slots stay, empty
void evidence_groups_empty(evidence_groups *groups, size_t g); // one of them
size_t evidence_groups_live(const evidence_groups *groups);

// An empty slot. PSI_ELIMIT if the tables of counts would take more than 2 GB.
psi_status evidence_groups_slot(psi_ctx *ctx, evidence_groups *groups, size_t *g);
psi_status evidence_groups_reserve(psi_ctx *ctx, evidence_groups *groups, size_t n); // empty ones
psi_status evidence_groups_add(psi_ctx *ctx, evidence_groups *groups, size_t g, size_t node);
psi_status evidence_groups_join(psi_ctx *ctx, evidence_groups *groups, size_t g,
                                size_t h); // h becomes empty

// log P(what followed the node | the group's law), or −∞ once it is known to be below limit. own:
// the node is in the group, and is judged by the others in it.
double evidence_fit(const evidence_groups *groups, size_t g, size_t node, bool own, double limit);

// Marks the groups that have an outcome of the node in common with it in one of the families that
// tell most: those that few groups have. Returns what log P(what followed the node | the law of any
// other group) cannot exceed.
double evidence_candidates(evidence_groups *groups, size_t node);

// log P(what followed the node | a law of its own), each family of which is that of group g with
// probability ½. g = n: of no group.
double evidence_novel(const evidence_groups *groups, size_t g, size_t node, bool own);

// Nats by which single families, or means, of a node in group g speak for a law of their own, added
// up; those that speak for the group's law count nothing.
double evidence_against(const evidence_groups *groups, size_t g, size_t node);

// The outcomes that groups have, in order: what pairs of groups are compared by.
typedef struct evidence_index {
    size_t n, room;        // entries in use, allocated
    uint64_t *begin, *end; // (groups->n)
    uint32_t *outcome;
} evidence_index;
psi_status evidence_index_new(psi_ctx *ctx, const evidence_groups *groups, evidence_index *out);
psi_status evidence_index_join(psi_ctx *ctx, evidence_index *index, size_t g, size_t h);
void evidence_index_free(psi_ctx *ctx, evidence_index *index);

// log P(one state) − log P(two states) for all that followed two groups; a sum that is known to
// stay below limit is given up as −∞.
double evidence_pair(const evidence_groups *groups, const evidence_index *index, size_t g, size_t h,
                     double limit);

// log P(all that followed the group), with laws of its own.
double evidence_of_group(const evidence_groups *groups, size_t g);

// Sets every family's concentration to where the groups' evidence is largest (empirical Bayes), not
// below 1/(1 + Σ log(1 + draws)): with so many draws and no surprise, that much is still possible.
psi_status evidence_learn_concentration(psi_ctx *ctx, evidence_groups *groups);

#endif
