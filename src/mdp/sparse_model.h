// Building models: memory for known numbers of states, choices and transitions.
#ifndef PSI_MDP_SPARSE_MODEL_H
#define PSI_MDP_SPARSE_MODEL_H

#include <psifold/mdp.h>

// Arrays for so many, not filled in; no labels, no rewards, no initial state. PSI_ELIMIT for more
// than 2^31 − 1 states.
psi_status mdp_model_new(psi_ctx *ctx, size_t n_states, size_t n_choices, size_t n_transitions,
                         psi_model **out);

// Adds a label or a reward (zeros); name is copied. *out is borrowed until the next is added.
psi_status mdp_model_add_label(psi_ctx *ctx, psi_model *model, const char *name, size_t length,
                               uint8_t **holds);
psi_status mdp_model_add_reward(psi_ctx *ctx, psi_model *model, const char *name, size_t length,
                                bool state, bool choice, psi_model_reward **out);

// A copy of n bytes as a text.
psi_status mdp_copy_name(psi_ctx *ctx, const char *name, size_t length, char **out);

#endif
