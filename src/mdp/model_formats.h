// The formats that finite models come in. Every reader takes bytes that end with a '\0' which is
// not counted, and checks all of them; name is what a failure names.
#ifndef PSI_MDP_MODEL_FORMATS_H
#define PSI_MDP_MODEL_FORMATS_H

#include <psifold/mdp.h>

#include "base/file.h"

// Any of them but PRISM's tables, recognised from the content.
psi_status mdp_read_model(psi_ctx *ctx, const char *name, const char *bytes, size_t size,
                          psi_model **out);

// Storm's DRN: states, choices and transitions as indented lines.
psi_status mdp_read_drn(psi_ctx *ctx, const char *name, const char *text, size_t size,
                        psi_model **out);
psi_status mdp_write_drn(psi_ctx *ctx, const psi_model *model, base_output *output);

// Unified Markov Binary: a tar, maybe gzipped, of index.json and arrays.
psi_status mdp_read_umb(psi_ctx *ctx, const char *name, const char *bytes, size_t size,
                        psi_model **out);
psi_status mdp_write_umb(psi_ctx *ctx, const psi_model *model, base_output *output);

// The tables that PRISM exports. Texts that are not there are NULL.
typedef struct mdp_prism_texts {
    const char *tra, *lab, *srew, *trew;
    size_t tra_size, lab_size, srew_size, trew_size;
} mdp_prism_texts;
psi_status mdp_read_prism(psi_ctx *ctx, const char *name, const mdp_prism_texts *texts,
                          psi_model **out);
typedef enum mdp_prism_part { MDP_TRA, MDP_LAB, MDP_SREW, MDP_TREW } mdp_prism_part;
psi_status mdp_write_prism(psi_ctx *ctx, const psi_model *model, mdp_prism_part part,
                           base_output *output);

// Gymnasium's P[state][action] = [(probability, next state, reward, terminated), …] as JSON.
psi_status mdp_read_gymnasium(psi_ctx *ctx, const char *name, const char *text, size_t size,
                              psi_model **out);
psi_status mdp_write_gymnasium(psi_ctx *ctx, const psi_model *model, base_output *output);

#endif
