#include "agent/td.h"

#include <math.h>
#include <string.h>

double agent_td_targets(size_t n, size_t n_actions, const float *rewards, const uint8_t *terminated,
                        const psi_real *next_q, double gamma, psi_real *y)
{
    double largest = 0; // infinite if anything is not a number
    for (size_t i = 0; i < n; i++) {
        double target = (double)rewards[i];
        if (!terminated[i]) {
            const psi_real *q = next_q + i * n_actions;
            psi_real best = q[0];
            for (size_t a = 1; a < n_actions; a++) best = q[a] > best ? q[a] : best;
            target += gamma * (double)best;
        }
        y[i] = (psi_real)target;
        largest = isnan(target) ? HUGE_VAL : fmax(largest, fabs(target));
    }
    return largest;
}

double agent_td_loss(psi_td_loss kind, size_t n, size_t n_actions, const psi_real *q,
                     const int32_t *actions, const psi_real *y, psi_real *d_q)
{
    const double share = 1.0 / (double)n;
    double loss = 0;
    memset(d_q, 0, n * n_actions * sizeof *d_q);
    for (size_t i = 0; i < n; i++) {
        const size_t at = i * n_actions + (size_t)actions[i];
        const double delta = (double)q[at] - (double)y[i], size = fabs(delta);
        if (kind == PSI_TD_SQUARED) {
            loss += delta * delta;
            d_q[at] = (psi_real)(2 * delta * share);
        } else {
            loss += size <= 1 ? 0.5 * delta * delta : size - 0.5;
            d_q[at] = (psi_real)((size <= 1 ? delta : copysign(1, delta)) * share);
        }
    }
    return loss * share;
}
