// What can be chosen about a clustering: the defaults, the paper's own constants, and what makes
// sense.
#include "cluster/options.h"

#include "base/context.h"

#include <string.h>

const char *psi_verdict_name(psi_verdict verdict)
{
    static const char *const NAMES[] = {
#define X(name, text) text,
        PSI_VERDICT_TABLE(X)
#undef X
    };
    return NAMES[verdict];
}

const char *psi_approximator_name(psi_approximator approximator)
{
    static const char *const NAMES[] = {
#define X(name, text) text,
        PSI_APPROXIMATOR_TABLE(X)
#undef X
    };
    return NAMES[approximator];
}

psi_cluster_options psi_cluster_defaults(void)
{
    return (psi_cluster_options){.smooth = true,
                                 .auxiliary = true,
                                 .dropout = true,
                                 .heads = true,
                                 .fine_tune = true,
                                 .gamma = 0.5,
                                 .filter = 0.0025,
                                 .max_refinements = 200,
                                 .max_rounds = 4,
                                 .max_latent_states = 10000,
                                 .subset = 1 << 18,
                                 .head_steps = 500,
                                 .shift = 2,
                                 .learning_rate = 2e-3};
}

psi_status psi_cluster_paper(psi_ctx *ctx, const char *task, psi_cluster_options *out)
{
    *out = psi_cluster_defaults();
    out->paper = out->split = true;
    out->smooth = false;
    out->subset = 0;
    out->max_rounds = 1;
    out->hidden = 1000;
    if (strcmp(task, "column-world") == 0) {
        out->approximator = PSI_APPROXIMATOR_MLP;
        out->batch = 32;
        out->reward_epochs = out->sf_epochs = out->representation_epochs = 5;
        out->learning_rate = 0.005;
        out->gamma = 0.7; // exactly, neighbouring columns are then 1.31 to 1.35 apart
        out->epsilon_reward = 0.5;
        out->epsilon_sf = 1.0;
        out->filter = 0.01;
    } else if (strcmp(task, "combination-lock") == 0) {
        out->approximator = PSI_APPROXIMATOR_RESNET18;
        out->batch = 256;
        out->reward_epochs = 10;
        out->sf_epochs = out->representation_epochs = 20;
        out->learning_rate = 0.001;
        out->gamma = 0.6; // 1.17
        out->epsilon_reward = 0.4;
        out->epsilon_sf = 0.8;
        out->filter = 0.0025;
    } else {
        return FAIL(ctx, PSI_EUSAGE,
                    "the paper has constants for column-world and combination-lock, not for '%s'",
                    task);
    }
    return PSI_OK;
}

psi_status cluster_options_check(psi_ctx *ctx, const psi_cluster_options *options)
{
    const struct {
        const char *name;
        size_t value;
    } counts[] = {{"max-refinements", options->max_refinements},
                  {"max-rounds", options->max_rounds},
                  {"max-latent-states", options->max_latent_states},
                  {"head-steps", options->head_steps}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].value == 0) {
            return FAIL(ctx, PSI_EUSAGE, "--%s must be at least 1", counts[i].name);
        }
    }
    if (options->paper &&
        (options->batch == 0 || options->reward_epochs == 0 || options->sf_epochs == 0 ||
         options->representation_epochs == 0 || options->approximator == PSI_APPROXIMATOR_TABLE ||
         options->approximator == PSI_APPROXIMATOR_AUTO)) {
        return FAIL(ctx, PSI_EUSAGE, "the paper's schedule needs a network, a batch and epochs");
    }
    if (!(options->gamma > 0.0 && options->gamma < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "gamma %g is not between 0 and 1", options->gamma);
    }
    if (!(options->filter >= 0.0 && options->filter < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "a filter of %g is not a share of the states",
                    options->filter);
    }
    if (!(options->epsilon_reward >= 0.0 && options->epsilon_sf >= 0.0)) {
        return FAIL(ctx, PSI_EUSAGE, "epsilon cannot be negative");
    }
    if (!(options->learning_rate > 0.0)) {
        return FAIL(ctx, PSI_EUSAGE, "a learning rate of %g learns nothing",
                    options->learning_rate);
    }
    return PSI_OK;
}
