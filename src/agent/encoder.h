// The encoder: turns an observation into what the agent remembers and learns from. A frozen network
// passes over every observation once; the replay memory then holds its output, not the pixels.
#ifndef PSI_AGENT_ENCODER_H
#define PSI_AGENT_ENCODER_H

#include <psifold/agent.h>

typedef struct agent_encoder {
    psi_view view;        // not auto
    psi_task_space space; // of the task
    bool numbered;        // a row is the number of a state (int32), a one-hot vector for networks
    size_t row_bytes;     // of what is remembered
    psi_shape shape;      // of what a network gets …
    psi_dtype dtype;      // … and its type
    size_t n_states;      // numbered: how many states there are

    const psi_net *net;           // borrowed
    bool rounds;                  // it takes the number of a state as a float
    psi_work *work;               // made when first needed: agents in a batch share one
    size_t most;                  // observations that it can encode together
    psi_real *seen;               // (most) rows of the network's outputs
    float *rounded;               // (most)
    int32_t *truth;               // latent state of every ground state; NULL: the task's own
    size_t n_features, n_outputs; // of the network
} agent_encoder;

// For up to so many observations at a time. options->view must not be auto.
psi_status agent_encoder_new(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                             size_t most, agent_encoder **out);
void agent_encoder_free(psi_ctx *ctx, agent_encoder *encoder);

// Encodes n observations, each of which comes out as it would alone; truth is what
// agent_encoder_truth gives for them, used by the view truth only.
psi_status agent_encoder_encode(psi_ctx *ctx, agent_encoder *encoder, const void *observations,
                                const int32_t *truth, size_t n, void *rows);
int32_t agent_encoder_truth(const agent_encoder *encoder, const psi_env *env);

// n remembered rows as the inputs (n, shape) of a network.
void agent_encoder_inputs(const agent_encoder *encoder, const void *rows, size_t n, void *inputs);
size_t agent_encoder_input_bytes(const agent_encoder *encoder); // of one

#endif
