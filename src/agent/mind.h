// The mind: the part of an agent that learns. It gets the rows that the eye saw, tells the value of
// every action there, and is told what came of the one that was chosen.
#ifndef PSI_AGENT_MIND_H
#define PSI_AGENT_MIND_H

#include "agent/eye.h"
#include "agent/replay.h"
#include "agent/streams.h"

// One step: action a in the state seen as row brought this reward and led to what is seen as next.
typedef struct agent_step {
    const void *row;
    int32_t action;
    double reward;
    bool terminated;
    const void *next; // not to be looked at if terminated
} agent_step;

typedef struct agent_mind agent_mind;

typedef struct agent_mind_rules {
    psi_status (*begin)(psi_ctx *ctx, agent_mind *mind, const void *row); // of an episode
    psi_status (*values)(psi_ctx *ctx, agent_mind *mind, const void *row, psi_real *q);
    psi_status (*learn)(psi_ctx *ctx, agent_mind *mind, const agent_step *step);
    psi_status (*save)(psi_ctx *ctx, const agent_mind *mind, const char *folder);
    psi_status (*load)(psi_ctx *ctx, agent_mind *mind, const char *folder);
    void (*free)(psi_ctx *ctx, agent_mind *mind);
} agent_mind_rules;

// What all minds begin with.
struct agent_mind {
    const agent_mind_rules *rules;
    psi_agent_options options;
    const agent_eye *eye;
    size_t n_actions;
    uint64_t steps, updates;
    bool exploit;    // values as they are known to be: no curiosity
    double loss_sum; // of the updates of this episode …
    uint64_t losses; // … and how many
};

psi_status agent_network_new(psi_ctx *ctx, const agent_eye *eye, const psi_agent_options *options,
                             agent_mind **out);
psi_status agent_table_new(psi_ctx *ctx, const agent_eye *eye, const psi_agent_options *options,
                           agent_mind **out);
psi_status agent_planner_new(psi_ctx *ctx, const agent_eye *eye, const psi_agent_options *options,
                             agent_mind **out);

const psi_net *agent_network_of(const agent_mind *mind); // of a mind made by agent_network_new

// Is it time for an update?
static inline bool agent_update_due(const agent_mind *mind, const agent_replay *replay)
{
    return mind->steps >= mind->options.learning_starts && replay->kept > 0 &&
           mind->steps % mind->options.update_every == 0;
}

// Values beyond all that rewards can add up to have diverged.
psi_status agent_check_values(psi_ctx *ctx, const agent_mind *mind, double largest_value,
                              double largest_reward);

#endif
