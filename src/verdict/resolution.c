// Certain has a resolution. Would it have shown, if half of what was seen followed another law? Of
// a latent state in whose numbers nothing is said to matter, and of all that is left to chance, of
// which nothing before it is said to tell more.
#include "verdict/chance.h"

#include "base/context.h"

#include <math.h>

// Where vectors lie in one cloud, nothing else was there to say that its parts are alike: were half
// of a latent state another one, whichever half, every action would have to show it.
psi_status verdict_ask_halves(judging *run)
{
    psi_status status = PSI_OK;
    const psi_run *result = run->result;
    const size_t actions = run->problem->data->n_actions;
    chance *chances = NULL; // (K, A)
    TRY(verdict_chances_new(run, 2.0 * VERDICT_DOUBTFUL, &chances));
    for (size_t k = result->has_terminal ? 1 : 0; k < result->n_latent; k++) {
        for (size_t a = 0; a < actions; a++) {
            const chance *of = &chances[k * actions + a];
            const double n = (double)run->visits[k * actions + a];
            if (n == 0.0 || verdict_shows(of, 0.5 * n, 0.5 * n)) continue;
            TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_RARE,
                                               .state = (int32_t)k,
                                               .other = (int32_t)a,
                                               .visits = (uint64_t)n,
                                               .enough = 2 * verdict_draws_that_show(of, 0.0)}));
        }
    }
done:
    base_free(run->ctx, chances);
    return status;
}

// What would be seen of so much that is left to chance (draws over their variance), were half of it
// of one kind and half of another, each 5 % off what both say together.
static bool shows_kinds(double information)
{
    return verdict_is_noticed(2.0 * VERDICT_DIFFERENCE, 0.5 * information, 0.5 * information);
}

// Episodes may be of two kinds, or the task may change, and what depends on it be seen too rarely
// anywhere to show: over all latent states and actions together it would have to. Where less than
// 5 % is left to chance, nothing else could change more of what follows.
psi_status verdict_ask_for_chance(judging *run)
{
    psi_status status = PSI_OK;
    const size_t n = run->result->n_latent * run->problem->data->n_actions;
    const double all = (double)run->problem->whole.n_transitions;
    chance *chances = NULL; // (K, A)
    TRY(verdict_chances_new(run, 0.0, &chances));
    for (int i = 0; i < CHANCES; i++) {
        double information = 0.0, unusual = 0.0, more = 1.0;
        for (size_t at = 0; at < n; at++) {
            const chance *of = &chances[at];
            unusual += of->unusual[i];
            if (of->unusual[i] > 0.0) information += (double)run->visits[at] / of->variance[i];
        }
        if (unusual <= VERDICT_DIFFERENCE * all || shows_kinds(information)) continue;
        while (!shows_kinds(information * more)) more *= 1.01;
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_CHANCE,
                                           .state = -1,
                                           .other = -1,
                                           .visits = (uint64_t)all,
                                           .enough = verdict_enough(all * more)}));
        break;
    }
done:
    base_free(run->ctx, chances);
    return status;
}
