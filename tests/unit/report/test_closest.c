// Which latent states are the most alike, and which observations are worth a second look.
#include "report/closest.h"
#include "report/extremes.h"

#include "support/runs.h"
#include "support/support.h"

#include "base/context.h"

#include <math.h>
#include <string.h>

enum { K = 4, A = 2 };

// 1 and 2 differ in a little of one action, 3 earns something else, 0 is the end.
static psi_mdp *model_of_four(psi_ctx *ctx)
{
    const uint64_t row[] = {2, 3, 3, 4, 5, 5, 6, 7};
    const int32_t next[] = {1, 2, 0, 1, 2, 0, 1, 2};
    const double p[] = {1.0, 0.5, 0.5, 1.0, 0.4, 0.6, 1.0, 1.0};
    const double reward[K * A] = {0, 0, 0, 0, 0, 0, 2.0, 0};
    const uint8_t terminal[K] = {1, 0, 0, 0};
    psi_mdp *model;
    assert_ok(ctx, psi_mdp_from_entries(ctx, K, A, 8, row, next, p, reward, terminal, &model));
    return model;
}

static void the_most_alike_come_first_and_say_why(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *model = model_of_four(ctx);
    const psi_run run = {.n_latent = K, .n_actions = A, .model = model};
    report_neighbour *found;
    assert_ok(ctx, report_closest(ctx, &run, NULL, false, &found));
    assert_int_equal(found[0].state, -1); // there is no other end
    const report_neighbour *one = &found[1 * REPORT_CLOSEST];
    assert_int_equal(one->state, 2);
    assert_int_equal(one->action, 1);
    assert_false(one->by_reward);
    assert_true(fabs(one->apart - 0.1) < 1e-12);
    assert_true(isnan(one->nats)); // without the data nothing tells
    assert_int_equal(one[1].state, 3);
    assert_int_equal(one[1].action, 0);
    assert_true(one[1].by_reward && one[1].apart == 1.0);
    base_free(ctx, found);
    psi_mdp_free(ctx, model);
    psi_ctx_free(ctx);
}

// The nats between the two latent states of a made-up task in which action a of state k earns k.
static double nats_after(psi_ctx *ctx, size_t episodes)
{
    char *folder = test_folder();
    const test_run_spec spec = {.n_latent = 3,
                                .n_actions = 2,
                                .episodes = episodes,
                                .length = 8,
                                .dtype = PSI_INT64,
                                .shape = {0, {0}},
                                .refinements = 1};
    psi_run *run;
    psi_trajectories *data;
    report_neighbour *found;
    test_made_up_run(ctx, folder, &spec);
    assert_ok(ctx, psi_run_load(ctx, test_path(folder, "run"), &run));
    assert_ok(ctx, psi_trajectories_read(ctx, test_path(folder, "data.npz"), NULL, &data));
    assert_ok(ctx, report_closest(ctx, run, data, false, &found));
    const double nats = found[0].nats;
    base_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_run_free(ctx, run);
    test_folder_free(folder);
    return nats;
}

static void evidence_grows_with_the_data(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const double few = nats_after(ctx, 3), many = nats_after(ctx, 30);
    assert_true(few > 0.0);
    assert_true(many > 5.0 * few); // laws that differ for certain: linear in the visits
    psi_ctx_free(ctx);
}

static void outliers_and_doubtful_labels_are_found(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    enum { EPISODES = 10, LENGTH = 3, N = EPISODES * (LENGTH + 1) };
    psi_writer *writer;
    psi_trajectories *data;
    const psi_episode_spec about = {.observation_dtype = PSI_FLOAT32,
                                    .observation_shape = {1, {3}},
                                    .observation_low = -1e6,
                                    .observation_high = 1e6,
                                    .n_actions = 1};
    assert_ok(ctx, psi_writer_open(ctx, test_path(folder, "d.npz"), &about, false, &writer));
    for (size_t e = 0; e < EPISODES; e++) {
        float seen[LENGTH + 1][3];
        const int32_t actions[LENGTH] = {0};
        const double rewards[LENGTH] = {0};
        for (size_t t = 0; t <= LENGTH; t++) {
            const float noise = (float)((e * 7 + t * 3) % 5) * 0.1f;
            // observation 17 (episode 4, step 1) is far from the others in one number
            seen[t][0] = e == 4 && t == 1 ? 90.0f : noise;
            seen[t][1] = 1000.0f + noise;
            seen[t][2] = 5.0f;
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = seen,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_writer_add(writer, &episode));
    }
    assert_ok(ctx, psi_writer_commit(writer));
    assert_ok(ctx, psi_trajectories_read(ctx, test_path(folder, "d.npz"), NULL, &data));
    int32_t labels[N] = {0};
    float confidence[N];
    for (size_t i = 0; i < N; i++) confidence[i] = 1.0f;
    confidence[23] = 0.4f;
    confidence[5] = 0.9f;
    report_samples *like, *found;
    assert_ok(ctx, report_samples_new(ctx, data, labels, 1, 3, &like));
    assert_ok(ctx, report_least_typical(like, labels, 3, &found));
    assert_int_equal(found->found[0], REPORT_EXTREMES);
    assert_int_equal(found->rows[0], 17);
    report_samples_free(found);
    assert_ok(ctx, report_least_sure(like, labels, confidence, &found));
    assert_int_equal(found->found[0], 2); // the others are certain
    assert_int_equal(found->rows[0], 23);
    assert_int_equal(found->rows[1], 5);
    report_samples_free(found);
    report_samples_free(like);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_alike_come_first_and_say_why),
        cmocka_unit_test(evidence_grows_with_the_data),
        cmocka_unit_test(outliers_and_doubtful_labels_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
