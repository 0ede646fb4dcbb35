// Temporal differences: what a Q-value should have been, and the loss of the difference.
#ifndef PSI_AGENT_TD_H
#define PSI_AGENT_TD_H

#include <psifold/agent.h>

// y_i = r_i + γ max_a Q'(s'_i, a), or r_i where the episode terminated. next_q is (n, A). Returns
// the largest |y|.
double agent_td_targets(size_t n, size_t n_actions, const float *rewards, const uint8_t *terminated,
                        const psi_real *next_q, double gamma, psi_real *y);

// Mean loss of Q(s_i, a_i) − y_i and its gradient by all outputs, d_q (n, A).
double agent_td_loss(psi_td_loss kind, size_t n, size_t n_actions, const psi_real *q,
                     const int32_t *actions, const psi_real *y, psi_real *d_q);

#endif
