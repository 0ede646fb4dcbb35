// Adam (Kingma and Ba), as PyTorch does it.
#include "nn/memory.h"
#include "nn/pass.h"

#include "base/context.h"
#include "base/options.h"

#include <math.h>

psi_status psi_adam_new(psi_ctx *ctx, const psi_net *net, const psi_adam_options *options,
                        psi_adam **out)
{
    *out = NULL;
    if (FREED(ctx, net)) return PSI_EUSAGE;
    if (options &&
        !base_options_fit(ctx, options, sizeof *options, "{.size = sizeof(psi_adam_options)}"))
        return PSI_EUSAGE;
    psi_adam *adam = NULL;
    psi_status status = PSI_OK;
    psi_adam_options chosen = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    if (options && (options->beta1 != 0 || options->beta2 != 0 || options->epsilon != 0)) {
        chosen = *options;
    }
    if (!(chosen.beta1 >= 0 && chosen.beta1 < 1 && chosen.beta2 >= 0 && chosen.beta2 < 1 &&
          chosen.epsilon > 0)) {
        return FAIL(ctx, PSI_EUSAGE, "Adam needs 0 ≤ beta < 1 and epsilon > 0, not %g, %g and %g",
                    chosen.beta1, chosen.beta2, chosen.epsilon);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *adam, &adam));
    adam->beta1 = chosen.beta1;
    adam->beta2 = chosen.beta2;
    adam->epsilon = chosen.epsilon;
    adam->n = net->arch.n_parameters;
    TRY(nn_alloc_large(ctx, adam->n, sizeof(real), &adam->m));
    TRY(nn_alloc_large(ctx, adam->n, sizeof(real), &adam->v));
    *out = adam;
    adam = NULL;
done:
    psi_adam_free(ctx, adam);
    return status;
}

void psi_adam_free(psi_ctx *ctx, psi_adam *adam)
{
    if (!adam || FREED(ctx, adam)) return;
    base_free(ctx, adam->m);
    base_free(ctx, adam->v);
    base_retire(ctx, adam);
}

void nn_adam_update(const psi_adam *adam, psi_net *net, const psi_work *work, double learning_rate,
                    int thread)
{
    enum { MOST_THREADS = 1024 };
    real *gradients[MOST_THREADS];
    for (size_t t = 0; t < work->n_gradients; t++) gradients[t] = work->thread[t].gradients;
    const double t = (double)adam->steps; // already counts this step
    const nn_adam_step step = {
        .beta1 = (real)adam->beta1,
        .beta2 = (real)adam->beta2,
        .step = (real)(learning_rate / (1 - pow(adam->beta1, t))),
        .root = (real)(1 / sqrt(1 - pow(adam->beta2, t))),
        .epsilon = (real)adam->epsilon,
    };
    size_t first, end;
    base_slice(adam->n / NN_BLOCK, thread, work->threads, &first, &end);
    work->kernels->adam(&step, gradients, work->n_gradients, first * NN_BLOCK,
                        (end - first) * NN_BLOCK, adam->m, adam->v, net->parameters);
}
