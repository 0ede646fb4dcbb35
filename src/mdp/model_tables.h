// A model as a table with a row for every pair (s, a).
#ifndef PSI_MDP_MODEL_TABLES_H
#define PSI_MDP_MODEL_TABLES_H

#include <psifold/mdp.h>

// As psi_mdp_from_model, with this reward (NULL: zeros), of a model that was checked. A complete
// table has a row for every pair of states that are not terminal: where the model lacks one, it
// gets an extra state, the last, terminal, to which the missing actions lead.
psi_status mdp_table_of(psi_ctx *ctx, const psi_model *model, const psi_model_reward *reward,
                        bool complete, psi_mdp **out);

#endif
