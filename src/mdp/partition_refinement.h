// The coarsest stable partition of a prepared model.
#ifndef PSI_MDP_PARTITION_REFINEMENT_H
#define PSI_MDP_PARTITION_REFINEMENT_H

#include "mdp/signature.h"

typedef struct mdp_stable {
    uint32_t *block; // (S) 0 … n_blocks−1, in no particular order
    size_t n_blocks;
    size_t n_settled; // states that were looked up
    size_t n_passes, n_rounds, n_verified;
    size_t bytes; // the most that was allocated
} mdp_stable;

// *out->block belongs to the caller.
psi_status mdp_refine_partition(psi_ctx *ctx, mdp_signing *signing, mdp_stable *out);

// The same, with all states refined from the classes on, whether they lie on cycles or not.
psi_status mdp_refine_jointly(psi_ctx *ctx, mdp_signing *signing, mdp_stable *out);

// *stable: every state's signature is that of its block's first, compared in full. By all threads.
psi_status mdp_partition_compare(psi_ctx *ctx, const mdp_signing *signing, const uint32_t *block,
                                 size_t n_blocks, bool *stable);

// By successor features within options->epsilon_sf. The classes of signing are those of labels.
psi_status mdp_refine_features(psi_ctx *ctx, const mdp_signing *signing,
                               const psi_quotient_options *options, mdp_stable *out);

#endif
