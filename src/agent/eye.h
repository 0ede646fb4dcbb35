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

    const psi_net *net;           // borrowed
    bool rounds;                  // it takes the number of a state as a float
    psi_work *work;               // since the first look: who plays in company needs none
    size_t most;                  // observations that it can look at together
    psi_real *seen;               // (most) rows of the network's results
    float *rounded;               // (most)
    int32_t *truth;               // latent state of every ground state; NULL: the task's own
    size_t n_features, n_outputs; // of the network
} agent_eye;

// For up to so many observations at a time. options->view must not be auto.
psi_status agent_eye_new(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                         size_t most, agent_eye **out);
void agent_eye_free(psi_ctx *ctx, agent_eye *eye);

// Looks at n observations, each of which comes out as it would alone; truth is what agent_eye_truth
// says of them, used by the view truth only.
psi_status agent_eye_look(psi_ctx *ctx, agent_eye *eye, const void *observations,
                          const int32_t *truth, size_t n, void *rows);
int32_t agent_eye_truth(const agent_eye *eye, const psi_env *env);

// n remembered rows as the inputs (n, shape) of a network.
void agent_eye_inputs(const agent_eye *eye, const void *rows, size_t n, void *inputs);
size_t agent_eye_input_bytes(const agent_eye *eye); // of one

#endif
