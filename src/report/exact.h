// The exact quotient of a finite model in the place of a run: blocks are latent states, the model's
// states are what falls into them.
#ifndef PSI_REPORT_EXACT_H
#define PSI_REPORT_EXACT_H

#include <psifold/cluster.h>

typedef struct report_exact {
    psi_quotient_result *quotient;
    psi_run *run;              // finished, with name in the place of a folder
    psi_levels levels;         // the quotient refined once more, step by step, for the history
    char *const *action_names; // (n_actions) the quotient's; NULL: actions are numbers
} report_exact;

// PSI_ELIMIT for more blocks than a page can show. *out belongs to the caller.
psi_status report_exact_find(psi_ctx *ctx, const psi_model *model, const char *name,
                             report_exact *out);
void report_exact_free(psi_ctx *ctx, report_exact *exact);

#endif
