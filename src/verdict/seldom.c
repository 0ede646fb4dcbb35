// What was seen a few times only, and not every time: an end that two of ten thousand steps came
// to. All of it may be owed to some of the observations that were put into one latent state, and
// the data could not show it.
#include "verdict/judging.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <math.h>
#include <stdlib.h>

// One time that it was seen, and after what.
typedef struct seldom {
    size_t what;    // a latent state, or, after these, a class of rewards
    size_t stratum; // the latent state and action that it followed
} seldom;

static int in_order(const void *a, const void *b)
{
    const seldom *x = a, *y = b;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    return (x->stratum > y->stratum) - (x->stratum < y->stratum);
}

// What followed transition t, or SIZE_MAX: that is not known.
static size_t what_followed(const judging *run, size_t t, bool reward)
{
    const int32_t next = run->result->labels[run->problem->row[t] + 1];
    if (reward) return run->result->n_latent + (size_t)run->rewards->of[t];
    return next < 0 ? SIZE_MAX : (size_t)next;
}

// n times, all of them in one half of the looks, has a probability of 2^−n by chance. That must be
// small for each of so many ways to halve them as there are leaves.
psi_status verdict_ask_seldom(judging *run, size_t n_leaves)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t kinds = run->result->n_latent + run->rewards->n;
    const size_t sides = run->rewards->n > 1 ? 2 : 1; // of a transition: where it led, what it paid
    const double enough = refine_safe_nats((double)n_leaves) / M_LN2;
    size_t *times = NULL; // (kinds)
    seldom *own = NULL, *seen = NULL;
    size_t n = 0, bytes;
    TRY(base_alloc_zero(run->ctx, kinds, sizeof *times, &times));
    for (size_t i = 0; i < sides * data->n_transitions; i++) {
        const size_t what = what_followed(run, i / sides, i % sides == 1);
        if (what < kinds) times[what]++;
    }
    TRY(base_sum_sizes(run->ctx, times, kinds));
    for (size_t k = 0; k < kinds; k++) n += (double)times[k] < enough ? times[k] : 0;
    TRY(base_alloc(run->ctx, n, sizeof *own, &own));
    n = 0;
    for (size_t i = 0; i < sides * data->n_transitions; i++) {
        const size_t t = i / sides, what = what_followed(run, t, i % sides == 1);
        const int32_t from = run->result->labels[run->problem->row[t]];
        if (from < 0 || what >= kinds || (double)times[what] >= enough) continue;
        own[n++] = (seldom){what, (size_t)from * data->n_actions + (size_t)data->actions[t]};
    }
    TRY(base_gather_parts(run->ctx, own, n * sizeof *own, &seen, &bytes));
    n = bytes / sizeof *seen;
    qsort(seen, n, sizeof *seen, in_order);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && in_order(&seen[i], &seen[end]) == 0;) end++;
        if (end - i == run->visits[seen[i].stratum]) continue; // it always follows
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_SELDOM,
                                           .state = (int32_t)(seen[i].stratum / data->n_actions),
                                           .other = (int32_t)(seen[i].stratum % data->n_actions),
                                           .visits = times[seen[i].what]}));
        while (end < n && seen[end].what == seen[i].what) end++; // once for each
    }
done:
    base_free(run->ctx, seen);
    base_free(run->ctx, own);
    base_free(run->ctx, times);
    return status;
}
