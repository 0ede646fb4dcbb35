// psifold/nn.h: the classifiers: an MLP, a small CNN and ResNet18, trained from random weights.
//
//     input → trunk → features (N, D) → linear heads → outputs (N, A, K)
//
// A network (psi_net) is architecture and parameters and does not change while it predicts. What a
// pass needs besides lives in a workspace (psi_work), made once for a largest batch: no step
// allocates. An optimiser (psi_adam) holds the moments. Outputs are logits of K classes for every
// action, or Q-values (K = 1): the loss is the caller's affair, with softmax cross-entropy built
// in.
#ifndef PSIFOLD_NN_H
#define PSIFOLD_NN_H

#include <psifold/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// The engine computes in float. The gradient checks compile the same sources in double.
#ifdef PSI_NN_DOUBLE
typedef double psi_real;
#else
typedef float psi_real;
#endif

// The kinds of networks.
#define PSI_NET_TABLE(X)                                                                           \
    X(MLP, "mlp")                                                                                  \
    X(CNN, "cnn")                                                                                  \
    X(RESNET18, "resnet18")

typedef enum psi_net_kind {
#define X(name, text) PSI_NET_##name,
    PSI_NET_TABLE(X)
#undef X
} psi_net_kind;

PSI_API const char *psi_net_kind_name(psi_net_kind kind); // "resnet18"
PSI_API psi_status psi_net_kind_from_name(psi_ctx *ctx, const char *name, psi_net_kind *out);

enum { PSI_MAX_HIDDEN = 8 };

// What a network is. Every input is normalised as it is read: x' = (x − mean[c]) · scale[c].
//
// mlp       vectors of any length; n_hidden layers of hidden[i] units with ReLU (n_hidden 0 is a
//           linear map: heads on cached features). Features are the last hidden layer's.
// cnn       C×H×W: 3×3 convolutions with stride 2, batch norm and ReLU, 32, 64, 128, 128 … channels
//           until both sides are at most 4 (two at least); then 256 units over all of the map, with
//           batch norm and ReLU as well.
// resnet18  C×H×W, exactly torchvision's; features are ReLU of its 1000 outputs.
// Images are from 8×8 to 128×128, of any number of channels.
typedef struct psi_net_spec {
    size_t size; // of this struct: psi_net_defaults sets it
    psi_net_kind kind;
    psi_shape input;                         // {D} or {C, H, W}
    psi_dtype input_dtype;                   // PSI_UINT8, PSI_FLOAT32 or PSI_FLOAT64
    const float *mean;                       // (C or D) NULL: 0
    const float *scale;                      // (C or D) NULL: 1/255 for uint8, else 1
    size_t n_hidden, hidden[PSI_MAX_HIDDEN]; // mlp only; psi_net_defaults gives 1000, 1000
    size_t n_actions, n_classes;             // A, K
} psi_net_spec;

// The usual network of a kind for this input: hidden layers as in the paper.
PSI_API psi_net_spec psi_net_defaults(psi_net_kind kind, const psi_shape *input, psi_dtype dtype,
                                      size_t n_actions, size_t n_classes);

// A network, its memory for passes, and its optimiser.
typedef struct psi_net psi_net;
typedef struct psi_work psi_work;
typedef struct psi_adam psi_adam;

// A network with random weights, in distribution those of PyTorch and torchvision. The same seed
// gives the same weights. Returns PSI_EUSAGE or PSI_ESHAPE for a specification that cannot be.
PSI_API psi_status psi_net_new(psi_ctx *ctx, const psi_net_spec *spec, uint64_t seed,
                               psi_net **out);
PSI_API psi_status psi_net_clone(psi_ctx *ctx, const psi_net *net, psi_net **out);
PSI_API void psi_net_free(psi_ctx *ctx, psi_net *net); // NULL is fine

// What the network is; borrowed.
PSI_API const psi_net_spec *psi_net_spec_of(const psi_net *net);
PSI_API size_t psi_net_n_features(const psi_net *net);   // D
PSI_API size_t psi_net_n_outputs(const psi_net *net);    // A · K
PSI_API size_t psi_net_n_parameters(const psi_net *net); // as PyTorch counts them
PSI_API double psi_net_flops(const psi_net *net);        // useful operations of one training image

// Parameters and buffers by name, in PyTorch's order and layout: "layer1.0.conv1.weight" is
// (C_out, C_in, K, K). The heads are "head.weight" (A·K, D) and "head.bias" (A·K).
typedef struct psi_tensor_info {
    char name[48];
    psi_shape shape;
    bool trained; // false for running statistics
} psi_tensor_info;

// The tensors of a network, one by one: how many, what each is, and its numbers out and in.
// PSI_EUSAGE for an index that there is not.
PSI_API size_t psi_net_tensor_count(const psi_net *net);
PSI_API psi_status psi_net_tensor_info(psi_ctx *ctx, const psi_net *net, size_t index,
                                       psi_tensor_info *out);
PSI_API psi_status psi_net_tensor_get(psi_ctx *ctx, const psi_net *net, size_t index,
                                      psi_real *out);
PSI_API psi_status psi_net_tensor_set(psi_ctx *ctx, psi_net *net, size_t index,
                                      const psi_real *values);

// target ← (1 − tau) · target + tau · source, all parameters and running statistics; tau 1 copies.
// Returns PSI_ESHAPE unless both are of one architecture.
PSI_API psi_status psi_net_blend(psi_ctx *ctx, psi_net *target, const psi_net *source, double tau);

// The heads alone, as a network of their own on cached features: kind mlp without hidden layers,
// input (D) float32, started from net's heads. psi_net_set_head puts trained heads back.
PSI_API psi_status psi_net_head(psi_ctx *ctx, const psi_net *net, size_t n_actions,
                                size_t n_classes, uint64_t seed, psi_net **out);
PSI_API psi_status psi_net_set_head(psi_ctx *ctx, psi_net *net, const psi_net *head);

// What a workspace has to be fit for.
typedef struct psi_work_options {
    size_t size;       // sizeof(psi_work_options)
    size_t max_batch;  // largest batch of one step
    bool predict_only; // no backward pass: less memory
    bool exact_conv;   // direct convolutions only: PyTorch's rounding, more multiplications
    bool shared; // several processes (psi_ranks_join) train together: they make the same calls with
                 // the same batches, of which each computes a part where that is worth it
    const char *kernels; // NULL: the best this machine has; "portable", "avx2", "avx512"
} psi_work_options;

// Memory for passes of a network on the context's threads. Returns PSI_EUNSUPPORTED for kernels
// that this machine does not have. A workspace serves all networks of one architecture.
PSI_API psi_status psi_work_new(psi_ctx *ctx, const psi_net *net, const psi_work_options *options,
                                psi_work **out);
PSI_API void psi_work_free(psi_ctx *ctx, psi_work *work);
PSI_API const char *psi_work_kernels(const psi_work *work); // "avx512"
PSI_API size_t psi_work_bytes(const psi_work *work);

// ---- Prediction: batch norm by running statistics, folded into the weights.

// features (n, D) and outputs (n, A·K); either may be NULL. n is not limited by max_batch.
PSI_API psi_status psi_net_predict(psi_ctx *ctx, const psi_net *net, psi_work *work,
                                   const void *inputs, size_t n, psi_real *features,
                                   psi_real *outputs);

// ---- Training, step by step: forward, a loss, backward, Adam.

// What batch norm does in a forward pass.
typedef enum psi_norm_mode {
    PSI_NORM_BATCH,  // statistics of the batch; running statistics follow it
    PSI_NORM_FROZEN, // running statistics, which stay as they are
} psi_norm_mode;

// Keeps what backward needs. The results stay valid until the next pass of this workspace.
PSI_API psi_status psi_net_forward(psi_ctx *ctx, psi_net *net, psi_work *work, const void *inputs,
                                   size_t n, psi_norm_mode mode);
PSI_API const psi_real *psi_work_features(const psi_work *work); // (n, D)
PSI_API const psi_real *psi_work_outputs(const psi_work *work);  // (n, A·K)

// Labels of a batch: cross-entropy of the taken action's logits against the target class,
//     loss = Σ_i w_i · −log softmax(z_i + log prior)_target / Σ_i w_i.
typedef struct psi_labels {
    const int32_t *actions;  // (n) NULL: always action 0
    const int32_t *targets;  // (n)
    const float *weights;    // (n) NULL: 1
    const float *log_priors; // (A, K) added to the logits while training; NULL: none
} psi_labels;

// The loss of the last forward pass and its gradient by the outputs. d_outputs (n, A·K) may be
// NULL.
PSI_API psi_status psi_net_loss(psi_ctx *ctx, const psi_net *net, const psi_work *work,
                                const psi_labels *labels, psi_real *d_outputs, double *loss);

// Gradients of all parameters from those of the outputs and of the features (either may be NULL;
// d_features adds to what comes through the heads). For mlp, d_inputs (n, D_in) takes the gradient
// by the normalised inputs; NULL otherwise. Follows a forward pass with the same n.
PSI_API psi_status psi_net_backward(psi_ctx *ctx, const psi_net *net, psi_work *work,
                                    const psi_real *d_outputs, const psi_real *d_features,
                                    psi_real *d_inputs);
PSI_API psi_status psi_work_gradient(psi_ctx *ctx, const psi_net *net, const psi_work *work,
                                     size_t tensor, psi_real *out); // like psi_net_tensor_get

// Adam's constants.
typedef struct psi_adam_options {
    size_t size;                  // sizeof(psi_adam_options)
    double beta1, beta2, epsilon; // all 0: PyTorch's 0.9, 0.999, 1e-8
} psi_adam_options;

// An optimiser for networks of this architecture; options may be NULL. *out belongs to the caller.
PSI_API psi_status psi_adam_new(psi_ctx *ctx, const psi_net *net, const psi_adam_options *options,
                                psi_adam **out);
PSI_API void psi_adam_free(psi_ctx *ctx, psi_adam *adam);

// The moments and the number of steps in a safetensors file, bit for bit, and back into an
// optimiser of the same architecture (else PSI_ESHAPE, and it is as it was).
PSI_API psi_status psi_adam_save(psi_ctx *ctx, const psi_adam *adam, const char *path);
PSI_API psi_status psi_adam_load(psi_ctx *ctx, psi_adam *adam, const char *path);

// One update from the workspace's gradients.
PSI_API psi_status psi_adam_step(psi_ctx *ctx, psi_adam *adam, psi_net *net, psi_work *work,
                                 double learning_rate);

// Forward, loss, backward and Adam at once: what the four calls above do, without waking the
// threads four times. Returns PSI_ENUMERIC, before touching any parameter, if the loss is not a
// finite number.
PSI_API psi_status psi_net_train_step(psi_ctx *ctx, psi_net *net, psi_work *work, psi_adam *adam,
                                      const void *inputs, const psi_labels *labels, size_t n,
                                      double learning_rate, double *loss);

// ---- Learning rates.

// What the learning rate does once it is at its highest.
typedef enum psi_schedule_kind { PSI_CONSTANT, PSI_LINEAR, PSI_COSINE } psi_schedule_kind;

// How the learning rate changes over the steps of a training.
typedef struct psi_schedule {
    psi_schedule_kind kind;
    double learning_rate;  // the highest
    uint64_t warmup_steps; // rising linearly from 0
    double decay_from;     // share of all steps after which linear and cosine fall, to 0 at the end
} psi_schedule;

// The learning rate of a step (from 0) of n_steps.
PSI_API double psi_schedule_at(const psi_schedule *schedule, uint64_t step, uint64_t n_steps);

// ---- Training over a data set.

// Where inputs come from: gather copies the inputs of these rows one after the other to out.
typedef struct psi_batch_source {
    void *user;
    psi_status (*gather)(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, void *out);
} psi_batch_source;

// n samples: the input is row rows[i] of the source (NULL: row i).
typedef struct psi_samples {
    psi_batch_source source;
    size_t n;
    const uint64_t *rows;
    const int32_t *actions;  // (n) or NULL
    const int32_t *targets;  // (n)
    const float *weights;    // (n) or NULL
    const float *log_priors; // (A, K) or NULL
} psi_samples;

// How far a training is, and how well it does.
typedef struct psi_epoch {
    uint64_t epoch, steps;                   // finished so far
    double training_loss;                    // mean of the epoch
    double held_out_loss, held_out_accuracy; // NaN without a held-out part
    double learning_rate, seconds;
} psi_epoch;

// How a network is trained over a data set.
typedef struct psi_train_options {
    size_t size; // sizeof(psi_train_options)
    size_t batch, epochs;
    uint64_t max_steps; // 0: as many as the epochs have
    psi_schedule schedule;
    double held_out;   // share of the samples kept for judging, 0 … 0.9
    uint64_t seed;     // of the shuffles and the held-out choice
    const char *phase; // the name under which progress is told; NULL: "train"
    // After every epoch; *stop = true ends the training early. May be NULL.
    psi_status (*after_epoch)(void *user, const psi_epoch *epoch, bool *stop);
    void *user;
} psi_train_options;

// A training that can be stopped anywhere and continued as if it had not been. The net, samples and
// options stay the caller's and must outlive it.
typedef struct psi_training psi_training;

// *out belongs to the caller.
PSI_API psi_status psi_training_new(psi_ctx *ctx, psi_net *net, psi_work *work,
                                    const psi_samples *samples, const psi_train_options *options,
                                    psi_training **out);
PSI_API void psi_training_free(psi_ctx *ctx, psi_training *training);

// Runs up to n_steps further steps (0: to the end). PSI_ENUMERIC names the step and the learning
// rate; PSI_ECANCELLED leaves a state from which to continue.
PSI_API psi_status psi_training_run(psi_ctx *ctx, psi_training *training, uint64_t n_steps);
PSI_API bool psi_training_finished(const psi_training *training);
// Samples that its steps have passed through the network, those before it was loaded included.
PSI_API uint64_t psi_training_seen(const psi_training *training);

// All that a training is (parameters, moments, place in the epoch) in one file, written whole or
// not at all. Loading needs a training made with the same options, samples and architecture.
PSI_API psi_status psi_training_save(psi_ctx *ctx, const psi_training *training, const char *path);
PSI_API psi_status psi_training_load(psi_ctx *ctx, psi_training *training, const char *path);

// new, run to the end, free.
PSI_API psi_status psi_net_train(psi_ctx *ctx, psi_net *net, psi_work *work,
                                 const psi_samples *samples, const psi_train_options *options);

// ---- A whole data set.

// Features (n, D) and outputs (n, A·K) of rows[0 … n) (NULL: 0 … n−1), read batch by batch; either
// result may be NULL. phase is the name under which progress is told; NULL: it is not.
PSI_API psi_status psi_net_predict_all(psi_ctx *ctx, const psi_net *net, psi_work *work,
                                       const psi_batch_source *source, const uint64_t *rows,
                                       size_t n, const char *phase, psi_real *features,
                                       psi_real *outputs);

// ---- Model files.

// safetensors: the trunk with PyTorch's names (a state_dict that torchvision's resnet18 loads) and
// the heads; architecture and normalisation in the notes. Written whole or not at all.
PSI_API psi_status psi_net_save(psi_ctx *ctx, const psi_net *net, const char *path);
PSI_API psi_status psi_net_load(psi_ctx *ctx, const char *path, psi_net **out);

// ONNX, opset 13: input "observations" (N, …) as raw numbers, normalisation included; outputs
// "features" (N, D) and "logits" (N, A·K).
PSI_API psi_status psi_net_save_onnx(psi_ctx *ctx, const psi_net *net, const char *path);

#ifdef __cplusplus
}
#endif
#endif
