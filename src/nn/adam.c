// Adam (Kingma and Ba), as PyTorch does it.
#include "nn/memory.h"
#include "nn/pass.h"

#include "base/checked.h"
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

// Some of the parameters: the threads' gradients are branches of the tree of slices; what they come
// to is left in the first one's slab.
static void add_up(const nn_pass *pass, size_t first, size_t n)
{
    const psi_work *work = pass->work;
    const nn_thread_work *thread = work->thread;
    for (int half = 1; half < pass->workers; half *= 2) {
        for (int t = 0; t < pass->workers; t += 2 * half) {
            work->kernels->add(thread[t + half].gradients + first, n, thread[t].gradients + first);
        }
    }
}

static nn_rows stretch_of(const psi_work *work, int thread)
{
    size_t begin, end;
    base_slice(work->arch.n_parameters / NN_BLOCK, thread, work->threads, &begin, &end);
    return (nn_rows){begin * NN_BLOCK, (end - begin) * NN_BLOCK};
}

void nn_gradient_sum(const nn_pass *pass, int thread)
{
    const nn_rows mine = stretch_of(pass->work, thread);
    add_up(pass, mine.first, mine.n);
}

void nn_adam_update(const psi_adam *adam, const nn_pass *pass, double learning_rate, int thread,
                    bool sum)
{
    const psi_work *work = pass->work;
    enum { IN_CACHE = 4096 };
    const double t = (double)adam->steps; // already counts this step
    const nn_adam_step step = {
        .beta1 = (real)adam->beta1,
        .beta2 = (real)adam->beta2,
        .step = (real)(learning_rate / (1 - pow(adam->beta1, t))),
        .root = (real)(1 / sqrt(1 - pow(adam->beta2, t))),
        .epsilon = (real)adam->epsilon,
    };
    const nn_rows mine = stretch_of(work, thread);
    for (size_t done = 0; done < mine.n; done += IN_CACHE) {
        const size_t at = mine.first + done, n = base_min(mine.n - done, IN_CACHE);
        if (sum) add_up(pass, at, n);
        work->kernels->adam(&step, work->thread[0].gradients + at, n, adam->m + at, adam->v + at,
                            pass->net->parameters + at);
    }
}
