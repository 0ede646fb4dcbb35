// The inside of an agent: a task, an encoder and a learner.
#ifndef PSI_AGENT_AGENT_H
#define PSI_AGENT_AGENT_H

#include "agent/learner.h"

// The episode that an agent is in.
typedef struct agent_now {
    base_random dice;
    bool teach; // the agent learns from it
    bool acted; // step is what it did last, and the observation what came of it
    bool over;
    agent_step step;
    psi_agent_episode result; // so far
} agent_now;

struct psi_agent {
    psi_agent_options options; // as completed
    psi_task task;
    psi_env *env;
    agent_encoder *encoder;
    agent_learner *learner; // NULL: acts at random
    void *observation;
    char *row, *next; // the observation before, and this one, as encoded
    psi_real *values; // (A)
    double started;   // when it was made, less the time it had played before being loaded
    agent_now now;
    psi_agent_episode *curve;
    size_t n_episodes, room;
    size_t not_played; // of these, since it had forgotten its task
};

#endif
