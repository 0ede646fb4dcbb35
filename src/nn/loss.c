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

#ifdef PSI_NN_DOUBLE
#define REAL_EXP exp
#else
#define REAL_EXP expf
#endif

// loss += Σ_i w_i · −log softmax(z_i)_target / Σ w,   d_z = w_i · (softmax(z_i) − e_target) / Σ w,
// where z_i are the logits of the taken action plus the log priors.
void nn_loss_rows(const nn_architecture *arch, const psi_labels *labels, const real *outputs,
                  size_t first, size_t n, double total_weight, real *d_outputs, double *loss)
{
    const size_t classes = arch->n_classes, width = arch->n_actions * classes;
    for (size_t i = first; i < first + n; i++) {
        const size_t action = labels->actions ? (size_t)labels->actions[i] : 0;
        const size_t target = (size_t)labels->targets[i];
        const real *z = outputs + i * width + action * classes;
        const float *prior = labels->log_priors ? labels->log_priors + action * classes : NULL;
        const double weight = (labels->weights ? (double)labels->weights[i] : 1) / total_weight;
        real *d = d_outputs ? d_outputs + i * width + action * classes : NULL;
        real largest = -(real)HUGE_VAL;
        double sum = 0;
        for (size_t k = 0; k < classes; k++) {
            const real logit = z[k] + (prior ? (real)prior[k] : 0);
            if (!(logit <= largest)) largest = logit; // also if it is not a number
        }
        if (d) memset(d_outputs + i * width, 0, width * sizeof *d);
        for (size_t k = 0; k < classes; k++) {
            const real share = REAL_EXP(z[k] + (prior ? (real)prior[k] : 0) - largest);
            if (d) d[k] = share;
            sum += (double)share;
        }
        const real at_target = z[target] + (prior ? (real)prior[target] : 0);
        *loss += weight * (log(sum) + (double)largest - (double)at_target);
        if (!d) continue;
        const real factor = (real)(weight / sum);
        for (size_t k = 0; k < classes; k++) d[k] *= factor;
        d[target] -= (real)weight;
    }
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
    const size_t n = work->forward_rows;
    psi_status status = PSI_OK;
    if (work->forward_net != net) {
        return FAIL(ctx, PSI_EUSAGE, "a loss needs a forward pass of the same network");
    }
    TRY(nn_loss_check(ctx, &net->arch, labels, n));
    *loss = 0;
    nn_loss_rows(&net->arch, labels, work->outputs, 0, n, nn_loss_weight(labels, n), d_outputs,
                 loss);
done:
    return status;
}
