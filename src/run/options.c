// What can be chosen about a clustering: the defaults, the paper's own constants, and what makes
// sense.
#include "run/options.h"

#include "base/context.h"
#include "base/options.h"

#include <string.h>

const char *psi_approximator_name(psi_approximator approximator)
{
    static const char *const NAMES[] = {
#define X(name, text) text,
        PSI_APPROXIMATOR_TABLE(X)
#undef X
    };
    return NAMES[approximator];
}

#define FIELD(name) OPTION_FIELD(psi_cluster_options, name)

// The one place where an option of a clustering is described; a new one is a field and a row.
static const psi_option OPTIONS[] = {
    // what a run is about
    {"method", 0, PSI_OPTION_CHOICE, FIELD(method), "evidence|successor-features", "evidence", NULL,
     PSI_OPTION_MAIN, "how latent states are told apart"},
    {"approximator", 0, PSI_OPTION_CHOICE, FIELD(approximator),
     OPTION_WORDS(PSI_APPROXIMATOR_TABLE), "auto", NULL, PSI_OPTION_MAIN,
     "what predicts rewards and next latent states"},
    {"stack", 0, PSI_OPTION_SIZE, FIELD(stack), "N", "1", "[1,255]", PSI_OPTION_MAIN,
     "see the last N observations of an episode as one"},
    {"budget", 0, PSI_OPTION_SECONDS, FIELD(budget), "TIME", "0", "[0,",
     PSI_OPTION_MAIN | PSI_OPTION_MAY_CHANGE,
     "end by then (90s, 5m, 1h) with what was found; --resume goes on; 0: no bound"},
    {"paper", 0, PSI_OPTION_CHOICE, FIELD(paper), OPTION_WORDS(PSI_PAPER_TABLE), "none", NULL,
     PSI_OPTION_MORE,
     "the paper's schedule and constants for this task, where no others are given"},
    // refinement
    {"refine", 0, PSI_OPTION_CHOICE, FIELD(split), "recluster|split", "recluster", NULL,
     PSI_OPTION_MORE, "cluster all states anew each time, or only inside the old clusters"},
    {"smooth", 0, PSI_OPTION_FLAG, FIELD(smooth), NULL, "on", NULL, PSI_OPTION_MORE,
     "use what trajectories say about labels"},
    {"gamma", 0, PSI_OPTION_REAL, FIELD(gamma), "G", "0.5", "(0,1)", PSI_OPTION_MORE,
     "discount of the successor features"},
    {"epsilon-reward", 0, PSI_OPTION_REAL, FIELD(epsilon_reward), "E", "0", "[0,", PSI_OPTION_MORE,
     "radius of clusters of rewards; 0: half of the smallest difference"},
    {"epsilon-sf", 0, PSI_OPTION_REAL, FIELD(epsilon_sf), "E", "0", "[0,", PSI_OPTION_MORE,
     "radius of clusters of successor features; 0: from the gap"},
    {"norm", 0, PSI_OPTION_CHOICE, FIELD(norm), "l2|l1", "l2", NULL, PSI_OPTION_MORE,
     "norm of successor features"},
    {"filter", 0, PSI_OPTION_REAL, FIELD(filter), "F", "0.0025", "[0,1)", PSI_OPTION_MORE,
     "smaller shares of the states are spurious"},
    {"max-refinements", 0, PSI_OPTION_SIZE, FIELD(max_refinements), "N", "200", "[1,",
     PSI_OPTION_MORE, "give up beyond"},
    {"max-latent-states", 0, PSI_OPTION_SIZE, FIELD(max_latent_states), "N", "10000",
     "[1,1000000000]", PSI_OPTION_MORE, "give up beyond"}, // labels are int32_t, and two are added
    // networks
    {"hidden", 0, PSI_OPTION_SIZE, FIELD(hidden), "N", "0", NULL, PSI_OPTION_MORE,
     "units of the perceptron's two layers; 0: 512, and 128 where it only tells labels apart"},
    {"trunk-steps", 0, PSI_OPTION_SIZE, FIELD(trunk_steps), "N", "0", NULL, PSI_OPTION_MORE,
     "training steps of the features; 0: 1,000, and 2,000 for vectors by successor features"},
    {"head-steps", 0, PSI_OPTION_SIZE, FIELD(head_steps), "N", "500", "[1,", PSI_OPTION_MORE,
     "training steps of every fit"},
    {"representation-steps", 0, PSI_OPTION_SIZE, FIELD(representation_steps), "N", "0", NULL,
     PSI_OPTION_MORE,
     "training steps of the representation network; 0: three epochs, from 1,000 to 12,000; two "
     "epochs less 250 steps for resnet18"},
    {"learning-rate", 0, PSI_OPTION_REAL, FIELD(learning_rate), "R", "0.002", "(0,",
     PSI_OPTION_MORE, "of trunk and heads"},
    {"shift", 0, PSI_OPTION_SIZE, FIELD(shift), "N", "2", NULL, PSI_OPTION_MORE,
     "images are moved by up to N pixels while networks learn"},
    {"auxiliary", 0, PSI_OPTION_FLAG, FIELD(auxiliary), NULL, "on", NULL, PSI_OPTION_MORE,
     "features also learn to tell actions and what comes next"},
    {"dropout", 0, PSI_OPTION_FLAG, FIELD(dropout), NULL, "on", NULL, PSI_OPTION_MORE,
     "heads learn from a random half of the features at a time"},
    {"fine-tune", 0, PSI_OPTION_FLAG, FIELD(fine_tune), NULL, "on", NULL, PSI_OPTION_MORE,
     "at the end the whole network learns the latent states"},
    {"heads", 0, PSI_OPTION_FLAG, FIELD(heads), NULL, "on", NULL, PSI_OPTION_MORE,
     "keep heads of every refinement, to evaluate it on other data"},
    {"cache", 0, PSI_OPTION_CHOICE, FIELD(cache), "auto|full|half", "auto", NULL, PSI_OPTION_MORE,
     "precision of the features that are kept; auto: half where full takes over 1 GiB"},
    // of the paper's schedule alone
    {"batch", 0, PSI_OPTION_SIZE, FIELD(batch), "N", "0", NULL, PSI_OPTION_KEPT,
     "observations in a step of training"},
    {"reward-epochs", 0, PSI_OPTION_SIZE, FIELD(reward_epochs), "N", "0", NULL, PSI_OPTION_KEPT,
     "epochs of training for the reward refinement"},
    {"sf-epochs", 0, PSI_OPTION_SIZE, FIELD(sf_epochs), "N", "0", NULL, PSI_OPTION_KEPT,
     "epochs of training for every later refinement"},
    {"representation-epochs", 0, PSI_OPTION_SIZE, FIELD(representation_epochs), "N", "0", NULL,
     PSI_OPTION_KEPT, "epochs of training for the representation network"},
};

const psi_option_table *psi_cluster_option_table(void)
{
    static const psi_option_table TABLE = {OPTIONS, sizeof OPTIONS / sizeof OPTIONS[0]};
    return &TABLE;
}

psi_cluster_options psi_cluster_defaults(void)
{
    psi_cluster_options options = {.size = sizeof options};
    psi_options_reset(psi_cluster_option_table(), &options);
    return options;
}

psi_status psi_cluster_paper(psi_ctx *ctx, const char *task, psi_cluster_options *out)
{
    *out = psi_cluster_defaults();
    if (!task) task = "";
    out->split = true;
    out->smooth = false;
    out->hidden = 1000;
    if (strcmp(task, "column-world") == 0) {
        out->paper = PSI_PAPER_COLUMN_WORLD;
        out->approximator = PSI_APPROXIMATOR_MLP;
        out->batch = 32;
        out->reward_epochs = out->sf_epochs = out->representation_epochs = 5;
        out->learning_rate = 0.005;
        out->gamma = 0.7; // exactly, neighbouring columns are then 1.31 to 1.35 apart
        out->epsilon_reward = 0.5;
        out->epsilon_sf = 1.0;
        out->filter = 0.01;
    } else if (strcmp(task, "combination-lock") == 0) {
        out->paper = PSI_PAPER_COMBINATION_LOCK;
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

psi_status run_options_check(psi_ctx *ctx, const psi_cluster_options *options)
{
    const psi_status status = psi_options_check(ctx, psi_cluster_option_table(), options);
    if (status != PSI_OK) return status;
    if (options->paper &&
        (options->batch == 0 || options->reward_epochs == 0 || options->sf_epochs == 0 ||
         options->representation_epochs == 0 || options->approximator == PSI_APPROXIMATOR_TABLE ||
         options->approximator == PSI_APPROXIMATOR_AUTO)) {
        return FAIL(ctx, PSI_EUSAGE, "the paper's schedule needs a network, a batch and epochs");
    }
    return PSI_OK;
}
