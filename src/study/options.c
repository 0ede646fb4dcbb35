// What can be chosen about a study.
#include "study/study.h"

#include "base/options.h"

#define FIELD(name) OPTION_FIELD(psi_study_options, name)

// Those that may change do not make another study of it: more seeds are played beside those that
// are there. Trials of another length are refused one by one.
enum { FREE = PSI_OPTION_MAY_CHANGE };

static const psi_option OPTIONS[] = {
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "FOLDER", "results", NULL,
     PSI_OPTION_MAIN | FREE, "where data, figures and pages go"},
    {"scale", 0, PSI_OPTION_CHOICE, FIELD(scale), OPTION_WORDS(PSI_SCALE_TABLE), "quick", NULL,
     PSI_OPTION_MAIN, "how much of it: minutes, an hour or more, or as much as the paper"},
    {"constants", 0, PSI_OPTION_CHOICE, FIELD(constants), "ours|table-1", "ours", NULL,
     PSI_OPTION_MAIN, "psifold's own, or the paper's schedule with table 1"},
    {"net", 0, PSI_OPTION_CHOICE, FIELD(net), "auto|cnn|resnet18", "auto", NULL, PSI_OPTION_MAIN,
     "of the lock and its agents; auto: cnn at quick scale, resnet18 beyond it"},
    {"episodes", 0, PSI_OPTION_SIZE, FIELD(episodes), "N", "0", NULL, PSI_OPTION_MAIN,
     "training trajectories; of transfer or sweep alone, --agent-episodes; 0: the scale's"},
    {"agent-episodes", 0, PSI_OPTION_SIZE, FIELD(agent_episodes), "N", "0", NULL,
     PSI_OPTION_MORE | FREE, "transfer, sweep: an agent's episodes in a task; 0: 100"},
    {"run", 0, PSI_OPTION_TEXT, FIELD(run), "RUN", NULL, NULL, PSI_OPTION_MAIN | FREE,
     "transfer: take the representation from this run folder, or from its .safetensors alone"},
    {"seeds", 0, PSI_OPTION_SIZE, FIELD(seeds), "N", "0", NULL, PSI_OPTION_MAIN | FREE,
     "transfer, sweep: seeds; 0: the scale's"},
    {"digits", 0, PSI_OPTION_CHOICE, FIELD(digits), "auto|mnist|drawn", "auto", NULL,
     PSI_OPTION_MORE, "images of the lock; auto: mnist if it was fetched"},
    {"digits-per-dial", 0, PSI_OPTION_SIZE, FIELD(digits_per_dial), "N", "10", "[2,10]",
     PSI_OPTION_MORE, "of the lock: fewer make it smaller"},
    {"seed", 0, PSI_OPTION_SEED, FIELD(seed), "N", "0", NULL, PSI_OPTION_KEPT,
     "of the data, of clustering, and the first one of agents"},
};

const psi_option_table *psi_study_option_table(void)
{
    static const psi_option_table TABLE = {OPTIONS, COUNT(OPTIONS)};
    return &TABLE;
}

psi_study_options psi_study_defaults(void)
{
    psi_study_options options = {.size = sizeof options};
    psi_options_reset(psi_study_option_table(), &options);
    return options;
}

const char *study_scale_name(const study *of)
{
    static const char *const NAMES[] = {
#define X(name, text) text,
        PSI_SCALE_TABLE(X)
#undef X
    };
    return NAMES[of->how->scale];
}
