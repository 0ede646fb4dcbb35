// Algorithm 1 by successor features, with a table behind it.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "refine/refine.h"

#include <string.h>

typedef struct fixture {
    psi_ctx *ctx;
    psi_trajectories *data;
    cluster_problem problem;
    learn_approximator table;
    size_t watched;
} fixture;

static fixture begin(void)
{
    fixture f = {.ctx = test_ctx(1)};
    f.data = test_collect(f.ctx, "column-world", 300, 5, NULL);
    assert_ok(f.ctx, problem_new(f.ctx, f.data, 0, &f.problem));
    assert_ok(f.ctx, learn_table_new(f.ctx, &f.problem, 1000, &f.table));
    return f;
}

static void end(fixture *f)
{
    learn_approximator_free(f->ctx, &f->table);
    problem_free(f->ctx, &f->problem);
    psi_trajectories_free(f->ctx, f->data);
    psi_ctx_free(f->ctx);
}

static psi_status count(void *user, const psi_cluster_step *step, size_t number, size_t n,
                        const int32_t *labels)
{
    fixture *f = user;
    assert_int_equal(number, ++f->watched);
    assert_int_equal(n, f->data->n_observations);
    assert_non_null(labels);
    assert_true(step->clusters >= 1);
    return PSI_OK;
}

static refine_options options_of(fixture *f)
{
    return (refine_options){.gamma = 0.5,
                            .epsilon_reward = 0.5,
                            .gap_share = 0.75,
                            .filter = 0.0025,
                            .max_refinements = 50,
                            .max_latent_states = 100,
                            .seed = 3,
                            .watch = count,
                            .user = f};
}

static void columns_are_found_one_refinement_after_the_other(void **state)
{
    (void)state;
    fixture f = begin();
    const refine_options how = options_of(&f);
    refinement found = {0};
    psi_purity purity;
    assert_ok(f.ctx, refine_by_successor_features(f.ctx, &f.problem, &f.table, &how, &found));
    assert_true(found.converged);
    assert_int_equal(found.n_latent, 4);
    assert_int_equal(found.n_steps, f.watched);
    // by rewards: the end, the column before it, the rest; then one column more at a time
    assert_int_equal(found.steps[0].clusters, 3);
    for (size_t i = 1; i < found.n_steps; i++) {
        assert_true(found.steps[i].clusters >= found.steps[i - 1].clusters);
    }
    assert_ok(f.ctx, psi_purity_of(f.ctx, f.data, found.labels, found.n_latent, &purity));
    assert_true(purity.off_diagonal == 0.0 && purity.accuracy == 1.0);
    refine_free(f.ctx, &found);
    end(&f);
}

// What was kept of a refinement (checkpoint.h) is all that the next one needs.
static void refinement_goes_on_where_it_stopped(void **state)
{
    (void)state;
    fixture f = begin();
    refine_options how = options_of(&f);
    refinement whole = {0}, pieces = {0};
    assert_ok(f.ctx, refine_by_successor_features(f.ctx, &f.problem, &f.table, &how, &whole));
    f.watched = 0;
    how.max_refinements = 1;
    assert_ok(f.ctx, refine_by_successor_features(f.ctx, &f.problem, &f.table, &how, &pieces));
    assert_false(pieces.converged);
    assert_true(pieces.n_steps < whole.n_steps);
    how.max_refinements = 50;
    assert_ok(f.ctx, refine_by_successor_features(f.ctx, &f.problem, &f.table, &how, &pieces));
    assert_int_equal(pieces.n_latent, whole.n_latent);
    assert_int_equal(pieces.n_steps, whole.n_steps);
    assert_memory_equal(pieces.labels, whole.labels, f.data->n_observations * sizeof *whole.labels);
    refine_free(f.ctx, &pieces);
    refine_free(f.ctx, &whole);
    end(&f);
}

// Strictly inside the old clusters, as the paper has it: no two that were apart are joined.
static void splitting_never_joins(void **state)
{
    (void)state;
    fixture f = begin();
    refine_options how = options_of(&f);
    const size_t n = f.data->n_observations;
    int32_t *before;
    refinement found = {0};
    how.split = true;
    how.max_refinements = 1;
    assert_ok(f.ctx, base_alloc(f.ctx, n, sizeof *before, &before));
    assert_ok(f.ctx, refine_by_successor_features(f.ctx, &f.problem, &f.table, &how, &found));
    memcpy(before, found.labels, n * sizeof *before);
    const size_t coarse = found.n_latent;
    how.max_refinements = 50;
    assert_ok(f.ctx, refine_by_successor_features(f.ctx, &f.problem, &f.table, &how, &found));
    assert_true(found.n_latent > coarse);
    int32_t parent[100];
    for (size_t k = 0; k < found.n_latent; k++) parent[k] = -1;
    for (size_t i = 0; i < n; i++) {
        const int32_t k = found.labels[i];
        if (k < 0) continue;
        if (parent[k] < 0) parent[k] = before[i];
        assert_int_equal(parent[k], before[i]);
    }
    base_free(f.ctx, before);
    refine_free(f.ctx, &found);
    end(&f);
}

static void too_many_latent_states_are_a_limit(void **state)
{
    (void)state;
    fixture f = begin();
    refine_options how = options_of(&f);
    refinement found = {0};
    how.max_latent_states = 2;
    how.watch = NULL;
    assert_status(f.ctx, refine_by_successor_features(f.ctx, &f.problem, &f.table, &how, &found),
                  PSI_ELIMIT);
    refine_free(f.ctx, &found);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_found_one_refinement_after_the_other),
        cmocka_unit_test(refinement_goes_on_where_it_stopped),
        cmocka_unit_test(splitting_never_joins),
        cmocka_unit_test(too_many_latent_states_are_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
