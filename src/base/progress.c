#include "base/progress.h"

#include "base/context.h"

#include <time.h>

static const double REPORT_EVERY = 0.1; // seconds

double base_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

base_progress base_progress_start(psi_ctx *ctx, const char *phase, uint64_t total)
{
    return base_progress_resume(ctx, phase, 0, total);
}

base_progress base_progress_resume(psi_ctx *ctx, const char *phase, uint64_t first, uint64_t total)
{
    const double now = base_seconds();
    return (base_progress){ctx, phase, total, first, now, now};
}

static void report(base_progress *progress, uint64_t done, double now)
{
    if (!progress->phase) return;
    const double seconds = now - progress->started;
    double left = -1.0;
    if (done > progress->first && progress->total >= done && seconds > 0.5) {
        left = seconds * (double)(progress->total - done) / (double)(done - progress->first);
    }
    progress->reported = now;
    const psi_progress told = {progress->phase, done, progress->total, seconds, left};
    base_report(progress->ctx, &told);
}

psi_status base_progress_at(base_progress *progress, uint64_t done)
{
    const double now = base_seconds();
    if (now - progress->reported >= REPORT_EVERY) report(progress, done, now);
    return base_cancelled(progress->ctx);
}

void base_progress_end(base_progress *progress, uint64_t done)
{
    progress->total = done;
    report(progress, done, base_seconds());
}
