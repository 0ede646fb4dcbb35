// Which latent states are the most alike, and what keeps them apart: by how much their laws differ
// where they differ most, and how many nats of evidence the data have for that.
#ifndef PSI_REPORT_CLOSEST_H
#define PSI_REPORT_CLOSEST_H

#include <psifold/cluster.h>

enum { REPORT_CLOSEST = 2 };

typedef struct report_neighbour {
    int32_t state;  // −1: there is none
    int32_t action; // where the two differ most; −1: nowhere
    bool by_reward; // … in what it earns; false: in where it leads
    double apart;   // 0 … 1: total variation of where it leads, or share of the range of rewards
    double total;   // the same, summed over the actions: the closest has the least
    double nats;    // log P(two laws) − log P(one law); NaN: without the data nothing tells
} report_neighbour;

// *out (n_latent, REPORT_CLOSEST), the closest first, belongs to the caller (base_free). A latent
// state is compared only with those that end an episode as it does. data may be NULL. O(K²·A) rows
// at worst; few pairs are looked at in full.
// exact: an action that only one of two states has tells them apart, too.
psi_status report_closest(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                          bool exact, report_neighbour **out);

#endif
