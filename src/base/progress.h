// Progress of one phase of work: told often, passed on to the context's callback a few times a
// second, with an estimate of the time left.
#ifndef PSI_BASE_PROGRESS_H
#define PSI_BASE_PROGRESS_H

#include <psifold/base.h>

typedef struct base_progress {
    psi_ctx *ctx;
    const char *phase;
    uint64_t total; // 0: not known
    uint64_t first; // what was done before the clock was started
    double started, reported;
} base_progress;

double base_seconds(void); // a clock that only runs forward

// A phase without a name (NULL) is told to nobody: part of one that is told already.

base_progress base_progress_start(psi_ctx *ctx, const char *phase, uint64_t total);
base_progress base_progress_resume(psi_ctx *ctx, const char *phase, uint64_t first, uint64_t total);

// Also the place where a long loop notices psi_cancel: returns PSI_ECANCELLED then.
psi_status base_progress_at(base_progress *progress, uint64_t done);
void base_progress_end(base_progress *progress, uint64_t done);

#endif
