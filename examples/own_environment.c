// An environment of one's own: it plays by itself and hands over whole episodes. A belt with four
// places moves on or stays; a part that goes over the end is a reward. The lamp above it blinks at
// random and means nothing, so that 4 × 3 observations are four latent states.
#include <psifold/psifold.h>

#include <stdio.h>

enum { PLACES = 4, COLOURS = 3, ACTIONS = 2, LENGTH = 30, EPISODES = 200 };

typedef struct belt {
    uint32_t dice;
    int place;
} belt;

static int roll(belt *env, int sides)
{
    env->dice = env->dice * 1664525u + 1013904223u; // a generator as good as any for an example
    return (int)((env->dice >> 16) % (uint32_t)sides);
}

// Action 1 moves the belt on.
static double step(belt *env, int action)
{
    const int at_end = env->place == PLACES - 1;
    if (action == 1) env->place = at_end ? 0 : env->place + 1;
    return action == 1 && at_end ? 1.0 : 0.0;
}

static psi_status play(belt *env, psi_collector *collector)
{
    int64_t observations[LENGTH + 1];
    int32_t actions[LENGTH];
    double rewards[LENGTH];
    env->place = roll(env, PLACES);
    for (int t = 0; t <= LENGTH; t++) {
        observations[t] = env->place * COLOURS + roll(env, COLOURS);
        if (t == LENGTH) break;
        actions[t] = roll(env, ACTIONS);
        rewards[t] = step(env, actions[t]);
    }
    const psi_episode episode = {.length = LENGTH,
                                 .observations = observations,
                                 .actions = actions,
                                 .rewards = rewards,
                                 .truncated = true};
    return psi_collector_add(collector, &episode);
}

int main(void)
{
    const psi_episode_spec spec = {.observation_dtype = PSI_INT64,
                                   .observation_high = PLACES * COLOURS - 1,
                                   .n_actions = ACTIONS};
    const psi_cluster_options options = psi_cluster_defaults();
    belt env = {.dice = 1};
    psi_ctx *ctx;
    psi_collector *collector = NULL;
    psi_trajectories *data = NULL;
    psi_run *run = NULL;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 1;
    psi_status status = psi_collector_new(ctx, &spec, &collector);
    for (int e = 0; e < EPISODES && status == PSI_OK; e++) status = play(&env, collector);
    if (status == PSI_OK) {
        status = psi_collector_finish(collector, &data);
        collector = NULL;
    }
    if (status == PSI_OK) status = psi_cluster(ctx, data, &options, &run);
    if (status == PSI_OK) {
        printf("%d kinds of observations are %zu latent states\n", PLACES * COLOURS, run->n_latent);
    } else {
        fprintf(stderr, "%s\n", psi_error(ctx)->message);
    }
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
    psi_collector_discard(collector);
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
