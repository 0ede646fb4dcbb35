// Softmax cross-entropy over the classes of the taken action's head.
#include "nn/pass.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

double nn_loss_weight(const psi_labels *labels, size_t n)
{
    if (!labels->weights) return (double)n;
    double total = 0;
    for (size_t i = 0; i < n; i++) total += (double)labels->weights[i];
    return total;
}

// w_i · −log softmax(z_i)_target / Σ w, where z_i are the logits of the taken action plus the log
// priors; z_i ← w_i · (softmax(z_i) − e_target) / Σ w.
double nn_loss_row(const nn_kernels *kernels, const psi_labels *labels, size_t i, size_t classes,
                   double total_weight, real *z)
{
    const size_t action = labels->actions ? (size_t)labels->actions[i] : 0;
    const size_t target = (size_t)labels->targets[i];
    const float *prior = labels->log_priors ? labels->log_priors + action * classes : NULL;
    const double weight = (labels->weights ? (double)labels->weights[i] : 1) / total_weight;
    for (size_t k = 0; prior && k < classes; k++) z[k] += (real)prior[k];
    const double at_target = (double)z[target];
    double largest, sum;
    kernels->exponentials(z, classes, &largest, &sum);
    const real factor = (real)(weight / sum);
    for (size_t k = 0; k < classes; k++) z[k] *= factor;
    z[target] -= (real)weight;
    return weight * (log(sum) + largest - at_target);
}

double nn_loss_rows(const psi_work *work, const psi_labels *labels, const real *outputs, size_t n,
                    double total_weight, real *d_outputs)
{
    const size_t classes = work->arch.n_classes, width = work->arch.n_actions * classes;
    real *z = work->thread[0].channels;
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t action = labels->actions ? (size_t)labels->actions[i] : 0;
        memcpy(z, outputs + i * width + action * classes, classes * sizeof *z);
        loss += nn_loss_row(work->kernels, labels, i, classes, total_weight, z);
        if (!d_outputs) continue;
        memset(d_outputs + i * width, 0, width * sizeof *z);
        memcpy(d_outputs + i * width + action * classes, z, classes * sizeof *z);
    }
    return loss;
}

psi_status nn_loss_check(psi_ctx *ctx, const nn_architecture *arch, const psi_labels *labels,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t action = labels->actions ? labels->actions[i] : 0;
        const int32_t target = labels->targets[i];
        if (action < 0 || (size_t)action >= arch->n_actions) {
            return FAIL(ctx, PSI_EDATA, "sample %zu has action %d, the network has %zu", i, action,
                        arch->n_actions);
        }
        if (target < 0 || (size_t)target >= arch->n_classes) {
            return FAIL(ctx, PSI_EDATA, "sample %zu has class %d, the network has %zu", i, target,
                        arch->n_classes);
        }
    }
    const double weight = nn_loss_weight(labels, n);
    if (!(weight > 0) || !isfinite(weight)) {
        return FAIL(ctx, PSI_EDATA, "the weights of a batch of %zu samples sum to %g", n, weight);
    }
    return PSI_OK;
}

psi_status psi_net_loss(psi_ctx *ctx, const psi_net *net, const psi_work *work,
                        const psi_labels *labels, psi_real *d_outputs, double *loss)
{
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    const size_t n = work->forward_rows;
    psi_status status = PSI_OK;
    if (work->forward_net != net) {
        return FAIL(ctx, PSI_EUSAGE, "a loss needs a forward pass of the same network");
    }
    TRY(nn_loss_check(ctx, &net->arch, labels, n));
    *loss = nn_loss_rows(work, labels, work->outputs, n, nn_loss_weight(labels, n), d_outputs);
done:
    return status;
}
