// The certificate of a clustering, from the episodes that were held out.
#ifndef PSI_VERDICT_CERTIFICATE_H
#define PSI_VERDICT_CERTIFICATE_H

#include "problem/problem.h"

#include <psifold/cluster.h>

// Judges a model of the training episodes by the held-out ones (by itself, if there are none), and
// asks of all of them which latent states could be one. Fills result->certificate.
psi_status verdict_certify(psi_ctx *ctx, const cluster_problem *problem, psi_run *result);

#endif
