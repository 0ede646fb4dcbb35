// Words and the numbers they get, in order of first appearance.
#ifndef PSI_MDP_NAMES_H
#define PSI_MDP_NAMES_H

#include <psifold/mdp.h>

typedef struct mdp_name {
    const char *text; // borrowed
    size_t length;
    uint64_t hash;
} mdp_name;

typedef struct mdp_names {
    mdp_name *name;
    size_t n, room;
    uint32_t *slots; // number + 1; 0: free
    size_t mask;
} mdp_names;

// *number of the word, which must stay where it is as long as the names.
psi_status mdp_names_get(psi_ctx *ctx, mdp_names *names, const char *text, size_t length,
                         size_t *number);
// The number of a word that was got before; SIZE_MAX if it was not.
size_t mdp_names_find(const mdp_names *names, const char *text, size_t length);
void mdp_names_free(psi_ctx *ctx, mdp_names *names);

// The model's actions from names by number: as numbers if all of them are that, else by name.
psi_status mdp_names_actions(psi_ctx *ctx, const mdp_names *names, psi_model *model);

#endif
