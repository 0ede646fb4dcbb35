// The fewest latent states: a split that supports itself is not found again.
#include "support/collect.h"
#include "support/support.h"

#include "problem/looks.h"
#include "refine/by_evidence.h"
#include "refine/join.h"
#include "refine/refining.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    psi_ctx *ctx;
    psi_trajectories *data;
    cluster_problem problem;
    int32_t *labels; // (n_rows)
    float *vectors;  // (n_rows, 2)
} fixture;

static fixture begin(const char *task)
{
    fixture f = {.ctx = test_ctx(1)};
    f.data = test_collect(f.ctx, task, 300, 5, NULL);
    assert_ok(f.ctx, problem_new(f.ctx, f.data, 0, &f.problem));
    f.labels = malloc(f.problem.n_rows * sizeof *f.labels);
    f.vectors = malloc(f.problem.n_rows * 2 * sizeof *f.vectors);
    return f;
}

static void end(fixture *f)
{
    free(f->vectors);
    free(f->labels);
    problem_free(f->ctx, &f->problem);
    psi_trajectories_free(f->ctx, f->data);
    psi_ctx_free(f->ctx);
}

// Every label has one true latent state, and every true latent state one label.
static size_t count_misplaced(const fixture *f, const int32_t *labels, size_t n)
{
    size_t misplaced = 0;
    for (size_t a = 0; a < n; a++) {
        size_t count[8] = {0}, most = 0, all = 0;
        for (size_t i = 0; i < f->problem.n_states; i++) {
            const uint64_t row = f->problem.states[i];
            if (labels[row] != (int32_t)a) continue;
            assert_in_range(f->data->latent_states[row], 0, 7);
            count[f->data->latent_states[row]]++;
            all++;
        }
        for (size_t k = 0; k < 8; k++) most = count[k] > most ? count[k] : most;
        misplaced += all - most;
    }
    return misplaced;
}

// Each distinct observation in a latent state of its own: nothing could be more stable.
static void the_finest_partition_is_not_the_fewest(void **state)
{
    (void)state;
    fixture f = begin("column-world");
    problem_looks looks = {0};
    size_t joined, n_latent;
    assert_ok(f.ctx, problem_looks_distinct(f.ctx, &f.problem, 1000, &looks));
    n_latent = looks.n_leaves + 1;
    for (size_t i = 0; i < f.problem.n_rows; i++) f.labels[i] = looks.leaf[i] + 1;
    const size_t before = n_latent;
    assert_ok(f.ctx, refine_join(f.ctx, &f.problem, 1000, f.labels, &n_latent, &joined));
    assert_int_equal(n_latent, 4);
    assert_int_equal(joined, before - 4);
    assert_int_equal(count_misplaced(&f, f.labels, n_latent), 0);
    assert_ok(f.ctx, refine_join(f.ctx, &f.problem, 1000, f.labels, &n_latent, &joined));
    assert_int_equal(joined, 0);
    problem_looks_free(f.ctx, &looks);
    end(&f);
}

// Columns in halves: what leads to the upper one differs from what leads to the lower one.
static void halves_that_support_each_other_are_one(void **state)
{
    (void)state;
    fixture f = begin("point-column-world");
    problem_looks looks = {0};
    outcome_rewards rewards = {0};
    by_evidence found = {0};
    const size_t n = f.problem.n_rows;
    uint64_t *rows = malloc(n * sizeof *rows);
    for (size_t i = 0; i < n; i++) rows[i] = i;
    assert_ok(f.ctx, psi_observations_gather(f.ctx, f.data->observations, rows, n, f.vectors));
    assert_ok(f.ctx, problem_looks_standardise(f.ctx, &f.problem, 2, f.vectors, NULL));
    for (size_t i = 0; i < n; i++) {
        const int32_t k = f.data->latent_states[i];
        f.labels[i] = k <= 0 ? k : 2 * k - (f.vectors[2 * i + 1] > 0.0f);
    }
    assert_ok(f.ctx, problem_looks_tree(f.ctx, &f.problem, 2, f.vectors, &looks));
    assert_ok(f.ctx, problem_outcome_rewards(f.ctx, &f.problem, &looks, &rewards));
    const by_evidence_options how = {.max_refinements = 64,
                                     .max_latent_states = 100,
                                     .smooth = true,
                                     .start = f.labels,
                                     .n_start = 7};
    assert_ok(f.ctx, refine_by_evidence(f.ctx, &f.problem, &looks, &rewards, &how, &found));
    assert_true(found.steps[0].clusters > 4);
    assert_int_equal(found.n_latent, 4);
    assert_true(found.converged);
    assert_true(count_misplaced(&f, found.labels, 4) < f.problem.n_states / 100);
    refine_by_evidence_free(f.ctx, &found);
    problem_outcome_rewards_free(f.ctx, &rewards);
    problem_looks_free(f.ctx, &looks);
    free(rows);
    end(&f);
}

static bool rises(const size_t *clusters, size_t n)
{
    psi_cluster_step steps[32] = {0};
    for (size_t i = 0; i < n; i++) steps[i].clusters = clusters[i];
    return refine_still_rises(steps, n);
}

static void what_moves_to_and_fro_does_not_rise(void **state)
{
    (void)state;
    size_t chain[12], leap[12], slow[12], constant[12], noisy[24];
    for (size_t i = 0; i < 12; i++) {
        chain[i] = 2 + i;               // one more link with every refinement
        leap[i] = i == 0 ? 15 : 49 + i; // and many at once in the beginning
        slow[i] = 2 + i / 3;
        constant[i] = 7;
    }
    for (size_t i = 0; i < 24; i++) noisy[i] = 500 + 7 * i % 24 + i / 12; // a record late
    assert_true(rises(chain, 12));
    assert_true(rises(chain, 11));
    assert_true(rises(leap, 12));
    assert_true(rises(slow, 12));
    assert_false(rises(constant, 12));
    assert_false(rises(noisy, 24));
    assert_true(rises(constant, 11)); // too few to tell
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_finest_partition_is_not_the_fewest),
        cmocka_unit_test(halves_that_support_each_other_are_one),
        cmocka_unit_test(what_moves_to_and_fro_does_not_rise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
