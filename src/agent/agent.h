// The inside of an agent: a task, an eye and a mind.
#ifndef PSI_AGENT_AGENT_H
#define PSI_AGENT_AGENT_H

#include "agent/mind.h"

struct psi_agent {
    psi_agent_options options; // as completed
    psi_task task;
    psi_env *env;
    agent_eye *eye;
    agent_mind *mind; // NULL: acts at random
    void *observation;
    char *row, *next;   // what the eye saw of this observation and the next
    psi_real *values;   // (A)
    double started;     // when it was made, less the time it had played before being loaded
    uint64_t evaluated; // episodes
    psi_agent_episode *curve;
    size_t n_episodes, room;
};

#endif
