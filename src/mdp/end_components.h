// Maximal end components: sets of states in which a player can stay for ever.
#ifndef PSI_MDP_END_COMPONENTS_H
#define PSI_MDP_END_COMPONENTS_H

#include <psifold/mdp.h>

// component (S) gets the number of each state's component, −1 for none. Only states that are open
// (S) count. stays (C) gets 1 for the choices that remain inside. *n is how many there are. O(m)
// for each time that choices fall away.
psi_status mdp_end_components(psi_ctx *ctx, const psi_model *model, const uint8_t *open,
                              int32_t *component, uint8_t *stays, size_t *n);

#endif
