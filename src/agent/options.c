// The kinds of agents by name, and what each does unless told otherwise: table 2 of the paper where
// it says something.
#include <psifold/agent.h>

#include "base/context.h"
#include "base/options.h"

#include <string.h>

static const char *const KIND_NAMES[] = {
#define X(name, text, what) text,
    PSI_AGENT_TABLE(X)
#undef X
};
static const char *const VIEW_NAMES[] = {
#define X(name, text) text,
    PSI_VIEW_TABLE(X)
#undef X
};

const char *psi_agent_kind_name(psi_agent_kind kind)
{
    return KIND_NAMES[kind];
}
const char *psi_view_name(psi_view view)
{
    return VIEW_NAMES[view];
}

psi_status psi_agent_kind_from_name(psi_ctx *ctx, const char *name, psi_agent_kind *out)
{
    if (!name) name = "";
    for (int kind = 0; kind < PSI_AGENT_KINDS; kind++) {
        if (strcmp(name, KIND_NAMES[kind]) != 0) continue;
        *out = (psi_agent_kind)kind;
        return PSI_OK;
    }
    return FAIL(ctx, PSI_EUSAGE,
                "there is no agent '%s'; there are dqn, pretrained, reward-predictive, planner, "
                "tabular and random",
                name);
}

#define FIELD(name) OPTION_FIELD(psi_agent_options, name)

// The one place where an option of agents is described; a new one is a field and a row.
static const psi_option OPTIONS[] = {
    {"kind", 0, PSI_OPTION_CHOICE, FIELD(kind), OPTION_WORDS(PSI_AGENT_TABLE), "dqn", NULL,
     PSI_OPTION_MAIN, "which agent"},
    {"net", 0, PSI_OPTION_CHOICE, FIELD(net), OPTION_WORDS(PSI_NET_TABLE), "cnn", NULL,
     PSI_OPTION_MORE, "Q-network of dqn and pretrained"},
    {"hidden", 0, PSI_OPTION_SIZE, FIELD(hidden), "N", "1000", "[1,65536]", PSI_OPTION_MORE,
     "units of each of the mlp's two layers"}, // as in the paper
    {"view", 0, PSI_OPTION_CHOICE, FIELD(view), OPTION_WORDS(PSI_VIEW_TABLE), "auto", NULL,
     PSI_OPTION_MORE, "what the learning part sees"},
    {"gamma", 0, PSI_OPTION_REAL, FIELD(gamma), "G", "0.95", "[0,1)", PSI_OPTION_MORE, "discount"},
    {"learning-rate", 0, PSI_OPTION_REAL, FIELD(learning_rate), "R", "0.001", "(0,",
     PSI_OPTION_MORE, "of Adam"},
    {"batch", 0, PSI_OPTION_SIZE, FIELD(batch), "N", "200", "[1,1048576]", PSI_OPTION_MORE,
     "transitions of an update"},
    {"buffer", 0, PSI_OPTION_SIZE, FIELD(buffer), "N", "10000", "[2,1073741824]", PSI_OPTION_MORE,
     "observations the replay memory holds"},
    {"learning-starts", 0, PSI_OPTION_SIZE, FIELD(learning_starts), "N", "200", NULL,
     PSI_OPTION_MORE, "steps before the first update"},
    {"update-every", 0, PSI_OPTION_SIZE, FIELD(update_every), "N", "2", "[1,", PSI_OPTION_MORE,
     "steps between updates"},
    {"explore", 0, PSI_OPTION_SIZE, FIELD(exploration_episodes), "N", "10", NULL, PSI_OPTION_MORE,
     "episodes over which epsilon falls from 1; the planner's default is 0"},
    {"final-epsilon", 0, PSI_OPTION_REAL, FIELD(final_epsilon), "E", "0", "[0,1]", PSI_OPTION_MORE,
     "random actions after that"},
    {"tau", 0, PSI_OPTION_REAL, FIELD(tau), "T", "0.05", "(0,1]", PSI_OPTION_MORE,
     "how fast the target network follows"},
    {"target-period", 0, PSI_OPTION_SIZE, FIELD(target_period), "N", "0", NULL, PSI_OPTION_MORE,
     "copy the target every N updates instead; 0: follow"},
    {"loss", 0, PSI_OPTION_CHOICE, FIELD(loss), "squared|huber", "huber", NULL, PSI_OPTION_MORE,
     "of temporal differences"},
    {"freeze-norm", 0, PSI_OPTION_FLAG, FIELD(freeze_norm), NULL, "off", NULL, PSI_OPTION_MORE,
     "batch norm by running statistics in updates, too"},
    {"stop-forgotten", 0, PSI_OPTION_FLAG, FIELD(stop_forgotten), NULL, "off", NULL,
     PSI_OPTION_MORE, "stop a Q-network whose full replay memory holds no reward"},
    {"table-rate", 0, PSI_OPTION_REAL, FIELD(table_rate), "R", "0.5", "(0,1]", PSI_OPTION_MORE,
     "tabular: step size"},
    {"optimism", 0, PSI_OPTION_REAL, FIELD(optimism), "N", "0.1", "(0,", PSI_OPTION_MORE,
     "planner: imagined visits that found a reward, per latent state and action"},
    {"best-value", 0, PSI_OPTION_REAL, FIELD(best_value), "V", "1", NULL, PSI_OPTION_KEPT,
     "planner: what these visits found"},
    {"seed", 0, PSI_OPTION_SEED, FIELD(seed), "N", "0", NULL, PSI_OPTION_KEPT,
     "of everything that is left to chance"},
};

const psi_option_table *psi_agent_option_table(void)
{
    static const psi_option_table TABLE = {OPTIONS, sizeof OPTIONS / sizeof OPTIONS[0]};
    return &TABLE;
}

psi_agent_options psi_agent_defaults(psi_agent_kind kind)
{
    psi_agent_options options = {.size = sizeof options};
    psi_options_reset(psi_agent_option_table(), &options);
    options.kind = kind;
    if (kind == PSI_AGENT_PLANNER) options.exploration_episodes = 0; // it is curious by itself
    return options;
}
