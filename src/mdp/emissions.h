// What one row of a trajectory says about its latent state.
#ifndef PSI_MDP_EMISSIONS_H
#define PSI_MDP_EMISSIONS_H

#include <psifold/mdp.h>

// PSI_EUSAGE, PSI_ESHAPE or PSI_EDATA if the options or their columns do not fit the paths.
psi_status mdp_check_smoothing(psi_ctx *ctx, const psi_paths *paths,
                               const psi_smooth_options *options);

// p(row t of episode e | k) for all k into emission (K), divided by exp(returned value). The row
// says so by its label or by the network's log-likelihoods, and by the reward that follows it.
// Latent state 0 is certain at the end of a terminated episode and impossible elsewhere.
double mdp_emission(const psi_paths *paths, const psi_smooth_options *options,
                    const double *reward_likelihood, size_t e, size_t t, double *emission);

#endif
