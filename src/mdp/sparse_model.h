// Names that are part of a longer text.
#ifndef PSI_MDP_SPARSE_MODEL_H
#define PSI_MDP_SPARSE_MODEL_H

#include <psifold/mdp.h>

// psi_model_add_label and psi_model_add_reward for names that end somewhere in a text.
psi_status mdp_model_add_label(psi_ctx *ctx, psi_model *model, const char *name, size_t length,
                               uint8_t **holds);
psi_status mdp_model_add_reward(psi_ctx *ctx, psi_model *model, const char *name, size_t length,
                                bool state, bool choice, psi_model_reward **out);

// A copy of n bytes as a text.
psi_status mdp_copy_name(psi_ctx *ctx, const char *name, size_t length, char **out);

#endif
