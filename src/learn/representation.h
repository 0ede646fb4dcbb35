// The representation network: trunk and head, trained to tell the final latent states apart.
#ifndef PSI_LEARN_REPRESENTATION_H
#define PSI_LEARN_REPRESENTATION_H

#include "problem/observe.h"
#include "problem/problem.h"

// A network with the trunk of `from` and fresh heads. *out belongs to the caller.
psi_status learn_with_new_head(psi_ctx *ctx, const psi_net *from, size_t n_actions,
                               size_t n_classes, uint64_t seed, psi_net **out);

// Whether two networks are the same but for their weights and heads.
bool learn_same_trunk(const psi_net_spec *a, const psi_net_spec *b);

// Trains to the end. With a checkpoint (else NULL) the training is kept in that file every now and
// then and when it is cancelled, and goes on from there if the file exists; inputs, which the
// samples are gathered from, count what was passed before, too.
psi_status learn_train(psi_ctx *ctx, psi_net *net, psi_work *work, const psi_samples *samples,
                       const psi_train_options *options, const char *checkpoint,
                       problem_inputs *inputs);

typedef struct representation_options {
    size_t steps;         // 0: three epochs, 1,000 to 12,000 steps; resnet18: two, less 250 steps
    size_t epochs, batch; // instead of steps, at a constant learning rate; 0: steps
    double learning_rate;
    size_t shift; // images are moved by up to so many pixels
    uint64_t seed;
    const char *checkpoint; // a file that keeps the training, to go on from; or NULL
} representation_options;

// Starts from the trunk of `from`. *out belongs to the caller.
psi_status learn_representation(psi_ctx *ctx, const cluster_problem *problem,
                                problem_inputs *inputs, const psi_net *from, const int32_t *labels,
                                size_t n_latent, const representation_options *options,
                                psi_net **out);

// The share of the kept states of held-out episodes (of the training ones, if none are held out)
// that the network puts where they are.
psi_status learn_representation_judge(psi_ctx *ctx, const cluster_problem *problem,
                                      problem_inputs *inputs, const psi_net *net,
                                      const int32_t *labels, size_t n_latent, double *accuracy);

#endif
