// The table of subcommands: X(name, function, summary). One file per command.
#ifndef PSI_CLI_COMMANDS_H
#define PSI_CLI_COMMANDS_H

#include "cli/cli.h"

#define CLI_COMMAND_TABLE(X)                                                                       \
    X("tasks", "what can be generated", cli_tasks)                                                 \
    X("generate", "trajectories of a built-in task", cli_generate)                                 \
    X("fetch", "the MNIST digits, into the cache folder", cli_fetch)                               \
    X("inspect", "what is in a data set, and what is wrong with it", cli_inspect)                  \
    X("cluster", "the main job: how many states, and which observations are which", cli_cluster)   \
    X("evaluate", "how well a run predicts rewards, and how pure its clusters are", cli_evaluate)  \
    X("verify", "what a run guarantees, checked on other data", cli_verify)                        \
    X("assign", "latent states for other observations", cli_assign)                                \
    X("export", "the network as ONNX or safetensors, the latent MDP as DRN or UMB", cli_export)    \
    X("plan", "values and the best actions of a run or a model", cli_plan)                         \
    X("quotient", "the fewest states of a finite model, exactly", cli_quotient)                    \
    X("agent", "agents that learn a task, with or without a run's representation", cli_agent)      \
    X("report", "a page to look at: what was found, and what is inside each latent state",         \
      cli_report)                                                                                  \
    X("reproduce", "the paper's figures and claims, beside what comes out here", cli_reproduce)    \
    X("bench", "the measured figures, on this machine", cli_bench)

#define X(name, summary, function) cli_run function;
CLI_COMMAND_TABLE(X)
#undef X

#endif
