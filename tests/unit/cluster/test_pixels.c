// Images whose pixels tell latent states apart need no features.
#include "support/collect.h"
#include "support/support.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 3, CELL = 3, PIXELS = SIDE * CELL, IMAGE = PIXELS * PIXELS, LONGEST = 30 };

// A bright square on a noisy ground; or noise alone, so that nothing shows where it is.
static void draw(base_random *random, int cell, bool visible, uint8_t *image)
{
    for (int i = 0; i < IMAGE; i++) {
        const int row = i / PIXELS / CELL, column = i % PIXELS / CELL;
        const bool here = visible && row * SIDE + column == cell;
        image[i] = (uint8_t)((here ? 150 : 0) + (int)base_random_below(random, 100));
    }
}

// Four actions move through a grid; the last cell pays 1 and is the end.
static psi_trajectories *walk(psi_ctx *ctx, bool visible)
{
    const psi_episode_spec spec = {.observation_dtype = PSI_UINT8,
                                   .observation_shape = {3, {PIXELS, PIXELS, 1}},
                                   .observation_high = 255.0,
                                   .n_actions = 4,
                                   .latent_states = true};
    psi_collector *collector;
    psi_trajectories *data;
    uint8_t *images = malloc((size_t)(LONGEST + 1) * IMAGE);
    base_random random = base_random_stream(7, 0x70697865, 0);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < 300; e++) {
        int32_t actions[LONGEST], latent[LONGEST + 1];
        double rewards[LONGEST];
        int cell = (int)base_random_below(&random, SIDE * SIDE - 1);
        size_t n = 0;
        draw(&random, cell, visible, images);
        latent[0] = cell + 1;
        for (bool end = false; n < LONGEST && !end; n++) {
            const int row = cell / SIDE, column = cell % SIDE;
            actions[n] = (int32_t)base_random_below(&random, 4);
            if (actions[n] == 0 && row > 0) cell -= SIDE;
            if (actions[n] == 1 && row < SIDE - 1) cell += SIDE;
            if (actions[n] == 2 && column > 0) cell--;
            if (actions[n] == 3 && column < SIDE - 1) cell++;
            end = cell == SIDE * SIDE - 1;
            rewards[n] = end;
            latent[n + 1] = end ? 0 : cell + 1;
            draw(&random, cell, visible, images + (n + 1) * IMAGE);
        }
        const psi_episode episode = {.length = n,
                                     .observations = images,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .latent_states = latent,
                                     .terminated = latent[n] == 0,
                                     .truncated = latent[n] != 0};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    free(images);
    return data;
}

static psi_run *cluster(psi_ctx *ctx, const psi_trajectories *data)
{
    psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    options.trunk_steps = options.head_steps = options.representation_steps = 20;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    return found;
}

static void what_pixels_tell_apart_needs_no_features(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = walk(ctx, true);
    psi_run *found = cluster(ctx, data);
    test_assert_exact(ctx, data, found);
    assert_int_equal(found->n_latent, SIDE * SIDE);
    assert_false(found->has_trunk);
    assert_int_equal(found->approximator, PSI_APPROXIMATOR_CNN);
    assert_non_null(found->representation);
    assert_true(found->n_steps > 1 && found->n_steps < 30); // told once
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static void what_they_do_not_show_is_not_certain(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = walk(ctx, false);
    psi_run *found = cluster(ctx, data);
    assert_int_not_equal(found->verdict, PSI_VERDICT_CERTAIN);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_pixels_tell_apart_needs_no_features),
        cmocka_unit_test(what_they_do_not_show_is_not_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
