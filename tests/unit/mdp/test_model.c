// Finite models: what check refuses, and their quotients.
#include "models.h"

typedef struct spoilt {
    const char *says;
    size_t n;
    uint64_t row[3];
    int32_t next[3];
    double p[3], reward[4];
    uint8_t terminal[2];
} spoilt;

static void test_check_refuses(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const spoilt cases[] = {
        {"sum to", 2, {0, 0}, {0, 1}, {0.5, 0.4}, {0}, {0}},
        {"not positive", 2, {0, 0}, {0, 1}, {1.5, -0.5}, {0}, {0}},
        {"not positive", 1, {0}, {0}, {(double)NAN}, {0}, {0}},
        {"leads from row 4", 1, {4}, {0}, {1}, {0}, {0}},
        {"to state 2", 1, {0}, {2}, {1}, {0}, {0}},
        {"to state -1", 1, {0}, {-1}, {1}, {0}, {0}},
        {"not finite", 1, {0}, {0}, {1}, {0, HUGE_VAL}, {0}},
        {"is terminal", 1, {0}, {1}, {1}, {0}, {1, 0}},
        {"is terminal", 1, {0}, {1}, {1}, {0, 0, 1}, {0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const spoilt *c = &cases[i];
        psi_mdp *mdp;
        assert_status(ctx,
                      psi_mdp_from_entries(ctx, 2, 2, c->n, c->row, c->next, c->p, c->reward,
                                           c->terminal, &mdp),
                      PSI_EDATA);
        assert_null(mdp);
        test_assert_error_says(ctx, c->says);
    }
    psi_mdp *mdp;
    assert_ok(ctx, psi_mdp_from_entries(ctx, 2, 2, 3, (uint64_t[]){1, 0, 1}, (int32_t[]){1, 0, 1},
                                        (double[]){0.5, 1.0, 0.5}, NULL, NULL, &mdp));
    assert_status(ctx, psi_mdp_check(ctx, mdp, true), PSI_EDATA); // state 1 was never seen
    assert_true(psi_mdp_seen(mdp, 0, 1));
    assert_false(psi_mdp_seen(mdp, 1, 0));
    assert_int_equal(mdp->offsets[4], 2); // equal entries became one
    double dense[4];
    psi_mdp_dense(mdp, 1, dense);
    assert_memory_equal(dense, ((double[]){0, 1, 0, 0}), sizeof dense);
    psi_mdp_free(ctx, mdp);
    psi_mdp_free(ctx, NULL);
    assert_status(
        ctx, psi_mdp_from_entries(ctx, (size_t)1 << 40, 2, 0, NULL, NULL, NULL, NULL, NULL, &mdp),
        PSI_ELIMIT);
    psi_ctx_free(ctx);
}

static void test_row_maximum(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *lock = combination_lock(ctx), *column = column_world(ctx);
    assert_true(psi_mdp_smallest_row_maximum(column) == 1.0);
    assert_true(psi_mdp_smallest_row_maximum(lock) == 0.1);
    psi_mdp_free(ctx, lock);
    psi_mdp_free(ctx, column);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_refuses),
        cmocka_unit_test(test_row_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
