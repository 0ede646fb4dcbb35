// The learner: gets the rows that the encoder made, gives the value of every action there, and
// learns from what followed the one that was chosen.
#ifndef PSI_AGENT_LEARNER_H
#define PSI_AGENT_LEARNER_H

#include "agent/encoder.h"
#include "agent/replay.h"
#include "agent/streams.h"

// One step: action a in the state encoded as row earned this reward and led to next.
typedef struct agent_step {
    const void *row;
    int32_t action;
    double reward;
    bool terminated;
    const void *next; // undefined if terminated
} agent_step;

typedef struct agent_learner agent_learner;

typedef struct agent_learner_rules {
    psi_status (*begin)(psi_ctx *ctx, agent_learner *learner, const void *row); // of an episode
    psi_status (*values)(psi_ctx *ctx, agent_learner *learner, const void *row, psi_real *q);
    psi_status (*learn)(psi_ctx *ctx, agent_learner *learner, const agent_step *step);
    psi_status (*save)(psi_ctx *ctx, const agent_learner *learner, const char *folder);
    psi_status (*load)(psi_ctx *ctx, agent_learner *learner, const char *folder);
    void (*free)(psi_ctx *ctx, agent_learner *learner);
} agent_learner_rules;

// What all learners begin with.
struct agent_learner {
    const agent_learner_rules *rules;
    psi_agent_options options;
    const agent_encoder *encoder;
    size_t n_actions;
    uint64_t steps, updates;
    bool exploit;    // values as estimated: no bonus for exploration
    double loss_sum; // of the updates of this episode …
    uint64_t losses; // … and how many
};

psi_status agent_network_new(psi_ctx *ctx, const agent_encoder *encoder,
                             const psi_agent_options *options, agent_learner **out);
psi_status agent_table_new(psi_ctx *ctx, const agent_encoder *encoder,
                           const psi_agent_options *options, agent_learner **out);
psi_status agent_planner_new(psi_ctx *ctx, const agent_encoder *encoder,
                             const psi_agent_options *options, agent_learner **out);

// Of a learner made by agent_network_new: its Q-network, and whether it has forgotten its task.
const psi_net *agent_network_of(const agent_learner *learner);
bool agent_network_forgot(const agent_learner *learner);

// Is it time for an update?
static inline bool agent_update_due(const agent_learner *learner, const agent_replay *replay)
{
    return learner->steps >= learner->options.learning_starts && replay->kept > 0 &&
           learner->steps % learner->options.update_every == 0;
}

// Values beyond all that rewards can add up to have diverged.
psi_status agent_check_values(psi_ctx *ctx, const agent_learner *learner, double largest_value,
                              double largest_reward);

#endif
