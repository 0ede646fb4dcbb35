// Reward-sequence errors of a run, refinement by refinement, on the data it was made from.
#ifndef PSI_REPORT_ERRORS_H
#define PSI_REPORT_ERRORS_H

#include <psifold/cluster.h>

typedef struct report_errors {
    psi_ctx *ctx;
    size_t n_stages; // refinements with labels, then the final model: the last one
    size_t n_episodes;
    double *values;              // (n_stages, n_episodes) NaN: not judged
    psi_sequence_error *summary; // (n_stages)
} report_errors;

// Each stage with the model of its own labels. *out belongs to the caller.
psi_status report_errors_new(psi_ctx *ctx, const psi_run *run, const psi_levels *levels,
                             const psi_trajectories *data, report_errors **out);
void report_errors_free(report_errors *errors);

#endif
