// Anything in the place of one file of a saved agent; the first byte says of whose and which. An
// agent that was loaded plays on.
#include "fuzz_files.h"

#include <psifold/agent.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { FILES = 12, LARGEST = 1 << 20 };
static const struct {
    psi_agent_kind kind;
    const char *name;
} FILE_OF[FILES] = {{PSI_AGENT_TABULAR, "state.json"},   {PSI_AGENT_TABULAR, "curve.csv"},
                    {PSI_AGENT_TABULAR, "table.npz"},    {PSI_AGENT_TABULAR, "replay.npz"},
                    {PSI_AGENT_PLANNER, "state.json"},   {PSI_AGENT_PLANNER, "curve.csv"},
                    {PSI_AGENT_PLANNER, "counts.npz"},   {PSI_AGENT_DQN, "state.json"},
                    {PSI_AGENT_DQN, "replay.npz"},       {PSI_AGENT_DQN, "online.safetensors"},
                    {PSI_AGENT_DQN, "adam.safetensors"}, {PSI_AGENT_DQN, "target.safetensors"}};

static psi_agent *make_agent(psi_ctx *ctx, psi_agent_kind kind)
{
    psi_task task;
    psi_agent *agent;
    psi_agent_options options = psi_agent_defaults(kind);
    options.view = kind == PSI_AGENT_DQN ? PSI_VIEW_AUTO : PSI_VIEW_TRUTH;
    options.net = PSI_NET_MLP;
    options.hidden = 4;
    options.batch = 4;
    options.buffer = 16;
    options.learning_starts = 8;
    REQUIRE(psi_task_defaults(ctx, "point-column-world", NULL, &task) == PSI_OK);
    REQUIRE(psi_task_set(ctx, &task, "max-steps", "10") == PSI_OK);
    REQUIRE(psi_agent_new(ctx, &task, &options, &agent) == PSI_OK);
    return agent;
}

static char *read_good(psi_ctx *ctx, size_t f, char name[128], size_t *size)
{
    char path[256], *good;
    snprintf(name, 128, "%s/%s", psi_agent_kind_name(FILE_OF[f].kind), FILE_OF[f].name);
    REQUIRE(base_read_file(ctx, fuzz_path(path, name), LARGEST, &good, size) == PSI_OK);
    return good;
}

static void save_agents(psi_ctx *ctx)
{
    char path[256], name[128];
    for (size_t f = 0; f < FILES; f++) {
        if (f > 0 && FILE_OF[f].kind == FILE_OF[f - 1].kind) continue;
        psi_agent *agent = make_agent(ctx, FILE_OF[f].kind);
        REQUIRE(psi_agent_play(ctx, agent, 4) == PSI_OK);
        fuzz_path(path, psi_agent_kind_name(FILE_OF[f].kind));
        REQUIRE(psi_agent_save(ctx, agent, path) == PSI_OK);
        psi_agent_free(ctx, agent);
    }
    for (size_t f = 0, size; f < FILES; f++) {
        char *good = read_good(ctx, f, name, &size);
        fuzz_seed(f, FILE_OF[f].name, good, size);
        base_free(ctx, good);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[256], name[128];
    size_t good_size;
    if (size == 0) return 0;
    psi_ctx *ctx = fuzz_ctx();
    if (fuzz_first_time()) save_agents(ctx);
    const psi_agent_kind kind = FILE_OF[bytes[0] % FILES].kind;
    char *good = read_good(ctx, bytes[0] % FILES, name, &good_size);
    fuzz_put(name, bytes + 1, size - 1);
    psi_agent *agent = make_agent(ctx, kind);
    const psi_status status =
        psi_agent_load(ctx, agent, fuzz_path(path, psi_agent_kind_name(kind)));
    fuzz_judge(ctx, status);
    if (status == PSI_OK) fuzz_judge(ctx, psi_agent_play(ctx, agent, 1));
    psi_agent_free(ctx, agent);
    fuzz_put(name, good, good_size);
    base_free(ctx, good);
    psi_ctx_free(ctx);
    return 0;
}
