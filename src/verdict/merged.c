// Observations that were put together: would the data have shown it, if they differed? A latent
// state of one observation is what it is, however rarely it was seen. One of several claims that
// these are the same, and that nothing speaks against it says little where little was seen.
#include "verdict/units.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <math.h>

// Standard errors that a difference may seem smaller than it is, in one of a hundred cases.
static const double BAD_LUCK = 2.3263478740408408;

// Standard errors of n draws by which a law has to be apart to be noticed: odds of nine to one for
// two laws, each of which was as probable before, with the usual penalty for another probability,
// ½ log n; and with bad luck.
static double standard_errors(double n)
{
    return sqrt(2.0 * (log(9.0) + M_LN2 + 0.5 * log(fmax(n, 1.0)))) + BAD_LUCK;
}

bool verdict_is_noticed(double difference, double n, double m)
{
    return n > 0.0 && m > 0.0 && difference > standard_errors(n) * sqrt(1.0 / n + 1.0 / m);
}

// What one latent state and action leaves to chance.
typedef struct chance {
    double law[2];  // the largest variance of what may follow, were it that much more or less
                    // probable: the next latent state, the class of the reward; 0: the action
                    // leaves nothing to chance, in any latent state
    double rewards; // variance of rewards that are numbers
} chance;

double verdict_variance_near(double p)
{
    const double near =
        p < 0.5 ? fmin(p + VERDICT_DIFFERENCE, 0.5) : fmax(p - VERDICT_DIFFERENCE, 0.5);
    return near * (1.0 - near);
}

static double largest_variance(const double *counts, uint32_t begin, uint32_t end)
{
    double total = 0.0, most = verdict_variance_near(0.0); // of what was never seen
    for (uint32_t o = begin; o < end; o++) total += counts[o];
    for (uint32_t o = begin; total > 0.0 && o < end; o++) {
        most = fmax(most, verdict_variance_near(counts[o] / total));
    }
    return most;
}

static psi_status find_chances(judging *run, chance *out)
{
    psi_status status = PSI_OK;
    const psi_grouping *groups = run->found->grouping;
    const psi_trajectories *data = run->problem->data;
    const size_t actions = data->n_actions, n = groups->n_groups * actions;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    double *sum = NULL, *square = NULL, *visits = NULL;
    TRY(base_alloc_zero(run->ctx, n, sizeof *sum, &sum));
    TRY(base_alloc_zero(run->ctx, n, sizeof *square, &square));
    TRY(base_alloc_zero(run->ctx, n, sizeof *visits, &visits));
    for (size_t f = 0; f < 2 * actions; f++) {
        bool any = false;
        for (size_t g = 0; g < groups->n_groups; g++) {
            const double *counts = groups->counts + g * groups->n_outcomes;
            size_t kinds = 0;
            for (uint32_t o = groups->family[f]; o < groups->family[f + 1]; o++) {
                kinds += counts[o] > 0.0;
            }
            any |= kinds > 1;
        }
        for (size_t g = 0; any && g < groups->n_groups; g++) {
            out[g * actions + f / 2].law[f % 2] = largest_variance(
                groups->counts + g * groups->n_outcomes, groups->family[f], groups->family[f + 1]);
        }
    }
    const size_t bytes = n * sizeof *sum;
    const base_block turn[] = {{visits, bytes}, {sum, bytes}, {square, bytes}};
    TRY(base_take_turn_with(run->ctx, turn, 3));
    for (size_t t = 0; run->rewards->n == 0 && t < data->n_transitions; t++) {
        const int32_t label = run->result->labels[run->problem->row[t]];
        if (label < first) continue;
        const size_t at = (size_t)(label - first) * actions + (size_t)data->actions[t];
        const double away = data->rewards[t] - run->rewards->mean;
        visits[at]++;
        sum[at] += away;
        square[at] += away * away;
    }
    TRY(base_end_turn_with(run->ctx, turn, 3));
    for (size_t at = 0; at < n; at++) {
        if (visits[at] < 2.0) continue;
        const double scatter = square[at] - sum[at] * sum[at] / visits[at];
        out[at].rewards = fmax(scatter, 0.0) / (visits[at] - 1.0);
    }
done:
    base_free(run->ctx, visits);
    base_free(run->ctx, square);
    base_free(run->ctx, sum);
    return status;
}

static bool shows(const chance *of, double all_rewards, double n, double m)
{
    for (size_t i = 0; i < 2; i++) {
        if (of->law[i] > 0.0 && !verdict_is_noticed(VERDICT_DIFFERENCE / sqrt(of->law[i]), n, m))
            return false;
    }
    if (of->rewards <= 0.0) return n > 0.0;
    return verdict_is_noticed(VERDICT_DIFFERENCE * sqrt(all_rewards / of->rewards), n, m);
}

// How many draws would have shown it, beside m others or as many as these. 0: no number would.
static uint64_t enough_draws(const chance *of, double all_rewards, double m)
{
    enum { MOST_DOUBLINGS = 40 };
    double low = 0.0, high = 1.0;
    for (int i = 0; !shows(of, all_rewards, high, fmax(m, high)); i++) {
        if (i == MOST_DOUBLINGS) return 0;
        low = high;
        high *= 2.0;
    }
    while (high - low > 1.0) {
        const double middle = floor(0.5 * (low + high));
        *(shows(of, all_rewards, middle, fmax(m, middle)) ? &high : &low) = middle;
    }
    return (uint64_t)high;
}

// Whether every action was taken often enough in a unit to show that it is not one of the others of
// its latent state; if not, what is missing. Where the largest took an action more often than all
// others, it is the one that these are compared with.
static psi_status ask_unit(judging *run, const units *all, size_t u, const chance *chances,
                           const double *total, bool is_largest, bool *shown)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions, g = (size_t)all->group[u];
    const int32_t first = run->result->has_terminal ? 1 : 0;
    *shown = true;
    for (size_t a = 0; a < actions; a++) {
        const double n = (double)all->visits[u * actions + a], whole = total[g * actions + a];
        if (is_largest && 2.0 * n >= whole) continue;
        if (shows(&chances[g * actions + a], run->rewards->variance, n, whole - n)) continue;
        *shown = false;
        if (whole == 0.0) continue; // reported already
        const chance *of = &chances[g * actions + a];
        TRY(verdict_doubt(
            run, (psi_doubt){.kind = PSI_DOUBT_RARE,
                             .state = (int32_t)g + first,
                             .other = (int32_t)a,
                             .visits = all->visits[u * actions + a],
                             .enough = enough_draws(of, run->rewards->variance, whole - n)}));
    }
done:
    return status;
}

psi_status verdict_ask_merged(judging *run, const units *all, uint8_t *several, size_t *doubtful)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    const size_t groups = run->found->grouping->n_groups;
    size_t *largest = NULL; // (groups) the unit that the others are compared with, one more
    double *total = NULL;   // (groups, A) draws
    chance *chances = NULL;
    bool shown;
    TRY(base_alloc_zero(run->ctx, groups, sizeof *largest, &largest));
    TRY(base_alloc_zero(run->ctx, groups * actions, sizeof *total, &total));
    TRY(base_alloc_zero(run->ctx, groups * actions, sizeof *chances, &chances));
    TRY(find_chances(run, chances));
    *doubtful = 0;
    for (size_t g = 0; g < groups; g++) several[g] = 0;
    for (size_t u = 0; u < all->n; u++) {
        if (all->group[u] < 0) continue;
        const size_t g = (size_t)all->group[u];
        for (size_t a = 0; a < actions; a++) {
            total[g * actions + a] += (double)all->visits[u * actions + a];
        }
        several[g] = largest[g] > 0;
        if (largest[g] == 0 || all->rows[u] > all->rows[largest[g] - 1]) largest[g] = u + 1;
    }
    for (size_t u = 0; u < all->n; u++) {
        if (all->group[u] < 0) continue;
        if (!several[all->group[u]]) continue;
        TRY(ask_unit(run, all, u, chances, total, largest[all->group[u]] == u + 1, &shown));
        if (!shown) *doubtful += all->rows[u];
    }
done:
    base_free(run->ctx, chances);
    base_free(run->ctx, total);
    base_free(run->ctx, largest);
    return status;
}
