// Anything as the metadata.json beside a good Minari file.
#include "fuzz_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void write_data_set(psi_ctx *ctx)
{
    char path[256];
    psi_writer *writer;
    const float observations[3][2] = {{0, 1}, {2, 3}, {4, 5}};
    const psi_episode episode = {2,    observations, (int32_t[]){0, 1}, (double[]){0, 1}, NULL,
                                 true, false};
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {2}},
                                   .observation_high = 9,
                                   .n_actions = 2};
    REQUIRE(psi_writer_open(ctx, fuzz_path(path, "set"), &spec, false, &writer) == PSI_OK);
    REQUIRE(psi_writer_add(writer, &episode) == PSI_OK);
    REQUIRE(psi_writer_commit(writer) == PSI_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[256];
    psi_ctx *ctx = fuzz_ctx();
    psi_trajectories *data;
    if (fuzz_first_time()) write_data_set(ctx);
    fuzz_put("set/data/metadata.json", bytes, size);
    const psi_status status = psi_trajectories_read(ctx, fuzz_path(path, "set"), NULL, &data);
    fuzz_judge(ctx, status);
    if (status == PSI_OK) {
        REQUIRE(data->n_actions >= 2 && data->n_actions <= PSI_MAX_ACTIONS);
        for (size_t t = 0; t < data->n_transitions; t++) {
            REQUIRE(data->actions[t] >= 0 && (size_t)data->actions[t] < data->n_actions);
        }
    }
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
    return 0;
}
