// The eye: what reaches the learning part of an agent. A frozen network looks at every observation
// once; the replay memory then holds what it saw, not the pixels.
#ifndef PSI_AGENT_EYE_H
#define PSI_AGENT_EYE_H

#include <psifold/agent.h>

typedef struct agent_eye {
    psi_view view;        // not auto
    psi_task_space space; // of the task
    bool numbered;        // a row is the number of a state (int32), a one-hot vector for networks
    size_t row_bytes;     // of what is remembered
    psi_shape shape;      // of what a network gets …
    psi_dtype dtype;      // … and its type
    size_t n_states;      // numbered: how many states there are

    const psi_net *net; // borrowed
    bool rounds;        // it takes the number of a state as a float
    psi_work *work;
    psi_real *seen;               // one row of the network's results
    int32_t *truth;               // latent state of every ground state; NULL: the task's own
    size_t n_features, n_outputs; // of the network
} agent_eye;

// options->view must not be auto.
psi_status agent_eye_new(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                         agent_eye **out);
void agent_eye_free(psi_ctx *ctx, agent_eye *eye);

// Looks at an observation; truth is what agent_eye_truth says of it, used by the view truth only.
psi_status agent_eye_look(psi_ctx *ctx, agent_eye *eye, const void *observation, int32_t truth,
                          void *row);
int32_t agent_eye_truth(const agent_eye *eye, const psi_env *env);

// n remembered rows as the inputs (n, shape) of a network.
void agent_eye_inputs(const agent_eye *eye, const void *rows, size_t n, void *inputs);
size_t agent_eye_input_bytes(const agent_eye *eye); // of one

#endif
