// The inside of an agent: a task, an eye and a mind.
#ifndef PSI_AGENT_AGENT_H
#define PSI_AGENT_AGENT_H

#include "agent/mind.h"

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
    agent_eye *eye;
    agent_mind *mind; // NULL: acts at random
    void *observation;
    char *row, *next; // what the eye saw of the observation before, and of this one
    psi_real *values; // (A)
    double started;   // when it was made, less the time it had played before being loaded
    agent_now now;
    psi_agent_episode *curve;
    size_t n_episodes, room;
};

#endif
