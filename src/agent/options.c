// The kinds of agents by name, and what each does unless told otherwise: table 2 of the paper where
// it says something.
#include <psifold/agent.h>

#include "base/context.h"

#include <string.h>

static const char *const KIND_NAMES[] = {
#define X(name, text, what) text,
    PSI_AGENT_TABLE(X)
#undef X
};
static const char *const KIND_TEXTS[] = {
#define X(name, text, what) what,
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
const char *psi_agent_kind_what(psi_agent_kind kind)
{
    return KIND_TEXTS[kind];
}
const char *psi_view_name(psi_view view)
{
    return VIEW_NAMES[view];
}

psi_status psi_agent_kind_from_name(psi_ctx *ctx, const char *name, psi_agent_kind *out)
{
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

psi_agent_options psi_agent_defaults(psi_agent_kind kind)
{
    psi_agent_options options = {.kind = kind,
                                 .net = PSI_NET_CNN,
                                 .hidden = 1000, // as in the paper
                                 .gamma = 0.95,
                                 .learning_rate = 1e-3,
                                 .batch = 200,
                                 .buffer = 10000,
                                 .learning_starts = 200,
                                 .update_every = 2,
                                 .exploration_episodes = 10,
                                 .tau = 0.05,
                                 .loss = PSI_TD_HUBER,
                                 .table_rate = 0.5,
                                 .optimism = 0.1,
                                 .best_value = 1.0};
    if (kind == PSI_AGENT_PLANNER) options.exploration_episodes = 0; // it is curious by itself
    return options;
}
