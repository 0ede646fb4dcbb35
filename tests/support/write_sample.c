// Writes a small data set to argv[1]. Exit code 0: it is there, and reads back whole. 1: a status
// was returned. 3: success was claimed, but the file is not what was written.
#include <psifold/psifold.h>

#include <stdio.h>
#include <string.h>

enum { EPISODES = 3, LENGTH = 5, ELEMENTS = 30000 };

static psi_status write_sample(psi_ctx *ctx, const char *path)
{
    static uint8_t images[(LENGTH + 1) * ELEMENTS];
    const psi_episode_spec spec = {.observation_dtype = PSI_UINT8,
                                   .observation_shape = {.rank = 1, .dim = {ELEMENTS}},
                                   .observation_high = 255,
                                   .n_actions = 2,
                                   .latent_states = true};
    psi_writer *writer;
    psi_status status = psi_writer_open(ctx, path, &spec, true, &writer);
    if (status != PSI_OK) return status;
    for (int e = 0; e < EPISODES; e++) {
        const int32_t actions[LENGTH] = {0, 1, 0, 1, e % 2},
                      states[LENGTH + 1] = {e, 1, 2, 3, 4, 5};
        const double rewards[LENGTH] = {0.1, 0, 1, 0, e};
        memset(images, 17 * e, sizeof images);
        const psi_episode episode = {LENGTH, images, actions, rewards, states, true, false};
        status = psi_writer_add(writer, &episode);
        if (status != PSI_OK) {
            psi_writer_discard(writer);
            return status;
        }
    }
    return psi_writer_commit(writer);
}

static bool reads_back(psi_ctx *ctx, const char *path)
{
    psi_trajectories *data;
    if (psi_trajectories_read(ctx, path, NULL, &data) != PSI_OK) return false;
    const uint8_t *images = psi_observations_data(data->observations);
    bool good = data->n_episodes == EPISODES && data->n_transitions == EPISODES * LENGTH;
    for (size_t i = 0; good && i < data->n_observations * ELEMENTS; i++) {
        good = images[i] == 17 * (i / ((LENGTH + 1) * ELEMENTS));
    }
    for (size_t e = 0; good && e < EPISODES; e++) {
        good = data->rewards[e * LENGTH] == 0.1 && data->rewards[e * LENGTH + 4] == (double)e &&
               data->latent_states[psi_row(e, e * LENGTH)] == (int32_t)e;
    }
    psi_trajectories_free(ctx, data);
    return good;
}

int main(int n, char **argument)
{
    psi_ctx *ctx;
    if (n < 2 ||
        psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &ctx) != PSI_OK)
        return 2;
    int code = 0;
    if (n > 2 && strcmp(argument[2], "check") == 0) {
        code = reads_back(ctx, argument[1]) ? 0 : 3;
    } else if (write_sample(ctx, argument[1]) != PSI_OK) {
        fprintf(stderr, "%s: %s\n", psi_status_name(psi_error(ctx)->status),
                psi_error(ctx)->message);
        code = 1;
    } else if (!reads_back(ctx, argument[1])) {
        code = 3;
    }
    psi_ctx_free(ctx);
    return code;
}
