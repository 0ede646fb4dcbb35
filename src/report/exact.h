// The exact quotient of a finite model in the place of a run: blocks are latent states, the model's
// states are what falls into them.
#ifndef PSI_REPORT_EXACT_H
#define PSI_REPORT_EXACT_H

#include "report/run.h"

// Folds the model and refines the quotient once more, step by step, for the history. name must
// outlive *out, which is freed with report_run_free.
psi_status report_run_exact(psi_ctx *ctx, const psi_model *model, const char *name,
                            report_run **out);

#endif
