// What may be remembered of an episode before a transition: numbers and contexts that might
// foretell what follows it.
#ifndef PSI_VERDICT_MEMORY_H
#define PSI_VERDICT_MEMORY_H

#include "refine/by_evidence.h"

typedef struct memory {
    const psi_trajectories *data;
    const uint64_t *row;
    const int32_t *labels;
    const int32_t *look;                 // (n_rows) what was seen, finer than labels: −1: nothing
    const int32_t *class_of;             // (transitions) of rewards; NULL: numbers
    size_t n_latent, n_looks, n_classes; // n_classes: 0 for numbers
    uint32_t *stratum;                   // (transitions) latent state and action
    uint32_t *episode;                   // (transitions) 1, 2, …, of those of all processes
    uint8_t *surprise; // (transitions) did not lead where its stratum usually leads
    uint8_t *unusual;  // (transitions) not the usual reward of its stratum
    float *moved_away,
        *paid_away;         // (transitions) surprise and reward, less the mean of earlier visits
    uint32_t *last, *count; // (strata) for one who remembers something of every stratum
    size_t n_numbers, n_contexts;                // that there are
    size_t actions, classes, pairs, places, odd; // numbers of some kinds of them
    uint32_t *place; // looks, then strata, then latent states, that are asked for one by one
} memory;

// labels (n_rows) below n_latent, −1: unknown, which is remembered as latent state 0; look (n_rows)
// below n_looks. most: places that are asked for one by one.
psi_status verdict_memory_new(psi_ctx *ctx, const cluster_problem *problem,
                              const outcome_rewards *rewards, const int32_t *labels,
                              size_t n_latent, const int32_t *look, size_t n_looks, size_t most,
                              memory *out);
void verdict_memory_free(psi_ctx *ctx, memory *past);

// known (transitions): number `which` of n_numbers; NaN: nothing.
void verdict_memory_number(const memory *past, size_t which, float *known);
// known (transitions): context `which` of n_contexts; FORETELL_NONE: nothing. Several processes ask
// for the same one.
psi_status verdict_memory_context(psi_ctx *ctx, memory *past, size_t which, uint32_t *known);

#endif
