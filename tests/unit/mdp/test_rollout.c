// Roll-outs against products of dense matrices, and sequence errors of exact models.
#include "paths.h"

static void test_against_dense_products(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 100; seed++) {
        planted_model model = random_planted(ctx, seed);
        const psi_mdp *mdp = model.small;
        const size_t k = mdp->n_states;
        base_random r = base_random_stream(seed, 9, 0);
        double belief[10], next[10], sum = 0.0, m[100], soft[25], sharp[25];
        int32_t actions[25];
        for (size_t i = 0; i < k; i++) sum += belief[i] = base_random_uniform(&r);
        for (size_t i = 0; i < k; i++) belief[i] /= sum;
        for (size_t t = 0; t < 25; t++)
            actions[t] = (int32_t)base_random_below(&r, (uint32_t)mdp->n_actions);
        assert_ok(ctx, psi_rollout(ctx, mdp, belief, 25, actions, PSI_ROLLOUT_SOFT, soft));
        assert_ok(ctx, psi_rollout(ctx, mdp, belief, 25, actions, PSI_ROLLOUT_ARGMAX, sharp));
        size_t at = 0;
        for (size_t i = 1; i < k; i++)
            if (belief[i] > belief[at]) at = i;
        bool over = false;
        for (size_t t = 0; t < 25; t++) {
            const size_t a = (size_t)actions[t];
            double reward = 0.0;
            psi_mdp_dense(mdp, a, m);
            for (size_t j = 0; j < k; j++) {
                next[j] = 0.0;
                reward += belief[j] * mdp->reward[j * mdp->n_actions + a];
                for (size_t i = 0; i < k; i++) next[j] += belief[i] * m[i * k + j];
            }
            memcpy(belief, next, sizeof next);
            assert_true(fabs(soft[t] - reward) < 1e-12);
            assert_true(sharp[t] == (over ? 0.0 : mdp->reward[at * mdp->n_actions + a]));
            over = over || mdp->terminal[at];
            size_t best = 0;
            for (size_t j = 1; j < k; j++)
                if (m[at * k + j] > m[at * k + best]) best = j;
            at = best;
        }
        planted_free(ctx, &model);
    }
    psi_ctx_free(ctx);
}

// Crowded models take another way inside: both must say what single roll-outs say.
static void test_errors_against_single_rollouts(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    for (uint64_t seed = 0; seed < 60; seed++) {
        planted_model model = random_planted(ctx, seed);
        const psi_mdp *mdp = model.large;
        size_t others = 0;
        for (size_t s = 0; s < mdp->n_states; s++) others += !mdp->terminal[s];
        if (others == 0) {
            planted_free(ctx, &model);
            continue;
        }
        walk w = random_walk(mdp, 10, 15, seed);
        w.paths.has_terminal = false; // its terminal states are not number 0
        for (int kind = 0; kind < 2; kind++) {
            double errors[10], predicted[15];
            psi_sequence_error summary;
            assert_ok(ctx, psi_sequence_errors(ctx, mdp, &w.paths, NULL, (psi_rollout_kind)kind,
                                               errors, &summary));
            for (size_t e = 0; e < 10; e++) {
                const size_t begin = w.offsets[e], length = w.offsets[e + 1] - begin;
                double belief[64] = {0}, error = 0.0;
                belief[w.labels[begin + e]] = 1.0;
                assert_ok(ctx, psi_rollout(ctx, mdp, belief, length, w.actions + begin,
                                           (psi_rollout_kind)kind, predicted));
                for (size_t t = 0; t < length; t++)
                    error += fabs(w.rewards[begin + t] - predicted[t]) / (double)length;
                assert_true(fabs(error - errors[e]) < 1e-12);
            }
        }
        walk_free(&w);
        planted_free(ctx, &model);
    }
    psi_ctx_free(ctx);
}

static void test_exact_model_has_no_error(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_mdp *lock = lock_quotient(ctx);
    walk w = random_walk(lock, 300, 2000, 1);
    psi_counts *counts;
    psi_mdp *latent;
    psi_sequence_error soft, argmax;
    assert_ok(ctx, psi_counts_new(ctx, &w.paths, &counts));
    assert_ok(ctx, psi_counts_model(ctx, counts, 0.0, &latent));
    assert_ok(ctx, psi_sequence_errors(ctx, latent, &w.paths, NULL, PSI_ROLLOUT_SOFT, NULL, &soft));
    assert_ok(ctx,
              psi_sequence_errors(ctx, latent, &w.paths, NULL, PSI_ROLLOUT_ARGMAX, NULL, &argmax));
    assert_int_equal(soft.judged, 300);
    assert_true(soft.mean < 1e-14 && soft.median < 1e-14 && argmax.mean < 1e-14);
    assert_true(soft.unseen == 0.0);
    double zero = 0.0;
    for (size_t e = 0; e < 300; e++)
        if (w.terminated[e]) zero += 1.0 / (double)(w.offsets[e + 1] - w.offsets[e]) / 300.0;
    assert_true(fabs(soft.zero_baseline - zero) < 1e-14);

    // one cluster for all but the end: the error is large, and threads do not change a byte
    for (size_t row = 0; row < walk_rows(&w); row++) w.labels[row] = w.labels[row] != 0;
    w.labels[0] = -1;
    w.paths.n_latent = 2;
    psi_mdp_free(ctx, latent);
    psi_counts_free(ctx, counts);
    assert_ok(ctx, psi_counts_new(ctx, &w.paths, &counts));
    assert_ok(ctx, psi_counts_model(ctx, counts, 0.0, &latent));
    double first[300], other[300];
    psi_sequence_error summary[3];
    for (int threads = 1; threads <= 3; threads++) {
        psi_ctx *team = test_ctx(threads);
        assert_ok(team, psi_sequence_errors(team, latent, &w.paths, NULL, PSI_ROLLOUT_SOFT,
                                            threads == 1 ? first : other, &summary[threads - 1]));
        if (threads > 1) {
            assert_memory_equal(first + 1, other + 1, sizeof first - sizeof *first);
            assert_memory_equal(&summary[0], &summary[threads - 1], sizeof *summary);
        }
        psi_ctx_free(team);
    }
    assert_true(isnan(first[0]) && summary[0].judged == 299);
    assert_true(summary[0].mean > 0.005);
    // the unjudged episode can be judged if a belief is given
    double *beliefs = calloc(300 * 2, sizeof *beliefs);
    for (size_t e = 0; e < 300; e++) beliefs[2 * e + 1] = 1.0;
    assert_ok(ctx,
              psi_sequence_errors(ctx, latent, &w.paths, beliefs, PSI_ROLLOUT_SOFT, other, &soft));
    assert_int_equal(soft.judged, 300);
    assert_memory_equal(first + 1, other + 1, sizeof first - sizeof *first);
    beliefs[7] = (double)NAN;
    assert_status(
        ctx, psi_sequence_errors(ctx, latent, &w.paths, beliefs, PSI_ROLLOUT_SOFT, other, &soft),
        PSI_EDATA);
    free(beliefs);
    w.paths.n_latent = 3;
    assert_status(ctx,
                  psi_sequence_errors(ctx, latent, &w.paths, NULL, PSI_ROLLOUT_SOFT, NULL, &soft),
                  PSI_ESHAPE);
    w.paths.n_latent = 2;
    psi_cancel(ctx);
    assert_status(ctx,
                  psi_sequence_errors(ctx, latent, &w.paths, NULL, PSI_ROLLOUT_SOFT, NULL, &soft),
                  PSI_ECANCELLED);
    psi_counts_free(ctx, counts);
    psi_mdp_free(ctx, latent);
    walk_free(&w);
    psi_mdp_free(ctx, lock);
    psi_ctx_free(ctx);
}

static void test_unseen_mass(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp; // 0 → ½ 0, ½ 1 under action 0; 1 knows nothing
    assert_ok(ctx, psi_mdp_from_entries(ctx, 2, 1, 2, (uint64_t[]){0, 0}, (int32_t[]){0, 1},
                                        (double[]){0.5, 0.5}, (double[]){1, 0}, NULL, &mdp));
    const psi_paths paths = {1,
                             3,
                             1,
                             2,
                             false,
                             (int32_t[]){0, 0, 0, 0},
                             (int32_t[]){0, 0, 0},
                             (double[]){1, 0.5, 0.25},
                             (uint64_t[]){0, 3},
                             (uint8_t[]){0}};
    psi_sequence_error error;
    assert_ok(ctx, psi_sequence_errors(ctx, mdp, &paths, NULL, PSI_ROLLOUT_SOFT, NULL, &error));
    assert_true(error.mean == 0.0 && error.unseen == 0.75);
    double out[2];
    assert_status(
        ctx, psi_rollout(ctx, mdp, (double[]){1, -1}, 1, (int32_t[]){0}, PSI_ROLLOUT_SOFT, out),
        PSI_EDATA);
    assert_status(ctx,
                  psi_rollout(ctx, mdp, (double[]){1, 0}, 1, (int32_t[]){1}, PSI_ROLLOUT_SOFT, out),
                  PSI_EDATA);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

static psi_status sweep(psi_ctx *ctx, void *argument)
{
    const psi_mdp *mdp = argument;
    walk w = random_walk(mdp, 3, 10, 1);
    psi_sequence_error error;
    double out[2], belief[16] = {1};
    psi_status status = psi_rollout(ctx, mdp, belief, 2, w.actions, PSI_ROLLOUT_SOFT, out);
    if (!status)
        status = psi_sequence_errors(ctx, mdp, &w.paths, NULL, PSI_ROLLOUT_SOFT, NULL, &error);
    walk_free(&w);
    return status;
}

static void test_faults_in_rollout(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx);
    assert_true(test_fault_sweep(sweep, mdp) > 12);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_dense_products),
        cmocka_unit_test(test_errors_against_single_rollouts),
        cmocka_unit_test(test_exact_model_has_no_error),
        cmocka_unit_test(test_unseen_mass),
        cmocka_unit_test(test_faults_in_rollout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
