// Networks of several processes: rank 0 learns, and all have what it has learnt.
#ifndef PSI_LEARN_SHARE_H
#define PSI_LEARN_SHARE_H

#include <psifold/nn.h>

// Every process has made the same network; its numbers become those of rank 0.
psi_status learn_share_net(psi_ctx *ctx, psi_net *net);

#endif
