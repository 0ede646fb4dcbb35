// Grouping by evidence: one law or two, on draws whose laws are known.
#include "support/support.h"

#include "base/random.h"
#include "evidence/law.h"

#include <psifold/evidence.h>

#include <math.h>
#include <stdlib.h>

static void rising_factorials_are_those_of_the_gamma_function(void **state)
{
    (void)state;
    for (double x = 1e-4; x < 1e5; x *= 3.7) {
        for (double n = 0.0; n < 3e5; n = 2.0 * n + 1.0) {
            const double wanted = lgamma(x + n) - lgamma(x);
            assert_true(fabs(psi_log_rising(x, n) - wanted) <= 1e-9 * (1.0 + fabs(wanted)));
        }
    }
}

static void one_family_that_differs_makes_two_states(void **state)
{
    (void)state;
    double agree = 0.0;
    for (int f = 0; f < 20; f++) agree += evidence_same(40.0);
    assert_true(agree > 0.0 && agree <= 20.0 * M_LN2);
    assert_true(agree + evidence_same(-20.0) < 0.0);
    assert_true(fabs(evidence_same(0.0)) < 1e-12);
    assert_true(fabs(evidence_either(-3.0, -3.0) + 3.0) < 1e-12);
}

// Units of `kinds` laws, each seen `visits` times under each of two actions; action 0 has two
// outcomes with probability p[kind], action 1 says nothing.
typedef struct bench {
    size_t units, n;
    uint32_t *node, *outcome;
    int32_t *none;
} bench;

static bench bench_new(size_t kinds, const double *p, size_t units, size_t visits, uint64_t seed)
{
    bench b = {.units = kinds * units};
    b.node = malloc(2 * b.units * visits * sizeof *b.node);
    b.outcome = malloc(2 * b.units * visits * sizeof *b.outcome);
    b.none = malloc(b.units * sizeof *b.none);
    base_random random = base_random_stream(seed, 0x67726f75, 0);
    for (size_t u = 0; u < b.units; u++) {
        b.none[u] = -1;
        for (size_t i = 0; i < visits; i++) {
            b.node[b.n] = (uint32_t)u;
            b.outcome[b.n++] = base_random_uniform(&random) >= p[u % kinds];
            b.node[b.n] = (uint32_t)u;
            b.outcome[b.n++] = 2 + base_random_below(&random, 3);
        }
    }
    return b;
}

static psi_grouping *group(psi_ctx *ctx, const bench *b)
{
    static const uint32_t FAMILY[] = {0, 2, 5};
    const psi_forest forest = {b->units, b->none, b->none, false, 0.0};
    const psi_draws draws = {
        .n = b->n, .node = b->node, .outcome = b->outcome, .n_families = 2, .family = FAMILY};
    psi_grouping *found;
    assert_ok(ctx, psi_group(ctx, &forest, &draws, 1000, &found));
    return found;
}

static void bench_free(bench *b)
{
    free(b->node);
    free(b->outcome);
    free(b->none);
}

// With more and more draws the answer becomes the truth; before that it is not sure of itself.
static void the_answer_becomes_the_truth(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const double laws[3][3] = {{1.0, 0.0, 0.5}, {0.9, 0.5, 0.1}, {0.7, 0.5, 0.3}};
    for (size_t world = 0; world < 3; world++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            for (size_t visits = 3; visits <= 3000; visits *= 10) {
                bench b = bench_new(3, laws[world], 8, visits, seed);
                psi_grouping *found = group(ctx, &b);
                bool right = found->n_groups == 3;
                for (size_t u = 0; right && u < b.units; u++) {
                    right = found->group[u] == found->group[u % 3];
                }
                if (visits >= 3000) assert_true(right);
                if (!right) { // some unit or some pair of groups is not clear by a margin
                    float least = HUGE_VALF;
                    for (size_t u = 0; u < b.units; u++) least = fminf(least, found->margin[u]);
                    assert_true((double)least < 10.0 || found->weakest < 10.0 ||
                                found->n_groups == 1);
                }
                psi_grouping_free(ctx, found);
                bench_free(&b);
            }
        }
    }
    psi_ctx_free(ctx);
}

static void names_of_units_and_outcomes_do_not_matter(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const double p[] = {0.8, 0.2};
    bench b = bench_new(2, p, 6, 100, 7);
    psi_grouping *before = group(ctx, &b);
    for (size_t i = 0; i < b.n; i++) {
        b.node[i] = (uint32_t)b.units - 1 - b.node[i];
        if (b.outcome[i] < 2) b.outcome[i] = 1 - b.outcome[i];
    }
    psi_grouping *after = group(ctx, &b);
    assert_int_equal(before->n_groups, 2);
    assert_int_equal(after->n_groups, 2);
    for (size_t u = 0; u < b.units; u++) {
        for (size_t v = 0; v < b.units; v++) {
            assert_int_equal(before->group[u] == before->group[v],
                             after->group[b.units - 1 - u] == after->group[b.units - 1 - v]);
        }
    }
    psi_grouping_free(ctx, before);
    psi_grouping_free(ctx, after);
    bench_free(&b);
    psi_ctx_free(ctx);
}

// A tree over four cells: the first two are of one law, the third of another, and the last one
// mixes them. It is in no group, and is not one by itself.
static void a_mixture_is_no_state(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { VISITS = 200 };
    static const int32_t LEFT[] = {1, 3, 5, -1, -1, -1, -1}, RIGHT[] = {2, 4, 6, -1, -1, -1, -1};
    static const double P[] = {0, 0, 0, 1.0, 1.0, 0.0, 0.5};
    static const uint32_t FAMILY[] = {0, 2};
    uint32_t node[4 * VISITS], outcome[4 * VISITS];
    size_t n = 0;
    base_random random = base_random_stream(3, 0x67726f75, 1);
    for (uint32_t leaf = 3; leaf < 7; leaf++) {
        for (size_t i = 0; i < VISITS / (leaf == 6 ? 8 : 1); i++) {
            node[n] = leaf;
            outcome[n++] = base_random_uniform(&random) >= P[leaf];
        }
    }
    const psi_forest forest = {7, LEFT, RIGHT, true, 0.0};
    const psi_draws draws = {
        .n = n, .node = node, .outcome = outcome, .n_families = 1, .family = FAMILY};
    psi_grouping *found;
    assert_ok(ctx, psi_group(ctx, &forest, &draws, 100, &found));
    assert_int_equal(found->n_groups, 2);
    assert_int_equal(found->group[3], found->group[4]);
    assert_int_not_equal(found->group[3], found->group[5]);
    assert_int_equal(found->group[6], -1);
    psi_grouping_free(ctx, found);
    assert_status(ctx, psi_group(ctx, &forest, &draws, 1, &found), PSI_ELIMIT);
    assert_null(found);
    psi_ctx_free(ctx);
}

// Thirty laws, a cell each, most of which have much in common; and a large cell of the first with a
// few draws of two others, which have less in common with it than the rest.
static void traces_of_others_make_no_state(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { LAWS = 30, LEAVES = 32, NODES = 2 * LEAVES - 1, VISITS = 200, MANY = 2000, SECOND = 2 };
    static const uint32_t FAMILY[] = {0, SECOND, SECOND + LAWS};
    int32_t left[NODES], right[NODES];
    uint32_t *node = malloc(2 * LEAVES * MANY * sizeof *node),
             *outcome = malloc(2 * LEAVES * MANY * sizeof *outcome);
    size_t n = 0;
    base_random random = base_random_stream(5, 0x67726f75, 2);
    for (int32_t v = 0; v < NODES; v++) {
        left[v] = v < LEAVES - 1 ? 2 * v + 1 : -1;
        right[v] = v < LEAVES - 1 ? 2 * v + 2 : -1;
    }
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
        for (size_t i = 0; i < (leaf == LEAVES - 1 ? MANY : VISITS); i++) {
            const uint32_t trace = i < 20 ? 7 : i < 30 ? 9 : 0;
            const uint32_t law = leaf < LAWS ? leaf : leaf == LAWS ? 0 : trace;
            node[n] = node[n + 1] = LEAVES - 1 + leaf;
            outcome[n++] = base_random_uniform(&random) >= (law == 7 || law == 9 ? 0.3 : 0.95);
            outcome[n++] = SECOND + law;
        }
    }
    const psi_forest forest = {NODES, left, right, true, 0.0};
    const psi_draws draws = {
        .n = n, .node = node, .outcome = outcome, .n_families = 2, .family = FAMILY};
    psi_grouping *found;
    assert_ok(ctx, psi_group(ctx, &forest, &draws, 100, &found));
    assert_int_equal(found->n_groups, LAWS);
    assert_int_equal(found->group[NODES - 1], -1);
    psi_grouping_free(ctx, found);
    free(outcome);
    free(node);
    psi_ctx_free(ctx);
}

// Rows of two units over four outcomes among 400 that others have: the same four, with other
// shares.
static void other_shares_of_the_same_outcomes_are_two_laws(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { UNITS = 100, OUTCOMES = 400, DRAWS = 2000 };
    static const uint32_t FAMILY[] = {0, OUTCOMES}, SEEN[2][4] = {{22, 3, 2, 1}, {1, 2, 1, 18}};
    static uint32_t node[DRAWS], outcome[DRAWS];
    static int32_t none[UNITS];
    size_t n = 0;
    for (uint32_t u = 0; u < UNITS; u++) {
        none[u] = -1;
        for (uint32_t o = 0; u < 2 && o < 4; o++) {
            for (uint32_t i = 0; i < SEEN[u][o]; i++) node[n] = u, outcome[n++] = o;
        }
        for (uint32_t i = 0; u >= 2 && i < 18; i++) node[n] = u, outcome[n++] = 4 * u;
    }
    const psi_forest forest = {UNITS, none, none, false, 0.0};
    const psi_draws draws = {
        .n = n, .node = node, .outcome = outcome, .n_families = 1, .family = FAMILY};
    psi_grouping *found;
    assert_ok(ctx, psi_group(ctx, &forest, &draws, 1000, &found));
    assert_int_equal(found->n_groups, UNITS);
    psi_grouping_free(ctx, found);
    psi_ctx_free(ctx);
}

// Hundreds of units with a few random draws each are one state: chance makes the best of so many
// splits look good, and the odds against a new state among many alike outweigh it.
static void many_units_of_one_law_are_one_state(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const double p[] = {0.5};
    for (uint64_t seed = 0; seed < 20; seed++) {
        bench b = bench_new(1, p, 300, 12, seed);
        psi_grouping *found = group(ctx, &b);
        assert_int_equal(found->n_groups, 1);
        for (size_t u = 0; u < b.units; u++) assert_true((double)found->against[u] < 10.0);
        psi_grouping_free(ctx, found);
        bench_free(&b);
    }
    psi_ctx_free(ctx);
}

// Four units of which nothing is known but some numbers.
static void means_alone_tell_units_apart(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { UNITS = 4, EACH = 50 };
    static const uint32_t FAMILY[] = {0, 0};
    static const int32_t NONE[] = {-1, -1, -1, -1};
    double precision[UNITS], weighted[UNITS]; // of numbers with variance ¼ around 1, or −1
    for (size_t u = 0; u < UNITS; u++) {
        precision[u] = 4.0 * EACH;
        weighted[u] = u % 2 ? precision[u] : -precision[u];
    }
    const psi_forest forest = {UNITS, NONE, NONE, false, 0.0};
    const psi_draws draws = {.n_families = 1,
                             .family = FAMILY,
                             .n_means = 1,
                             .precision = precision,
                             .weighted = weighted,
                             .mean_variance = 1.0};
    psi_grouping *found;
    assert_ok(ctx, psi_group(ctx, &forest, &draws, 10, &found));
    assert_int_equal(found->n_groups, 2);
    for (size_t u = 0; u < UNITS; u++) {
        assert_int_equal(found->group[u], found->group[u % 2]);
        assert_true(found->same[u] > 0.0f && found->same[u] < HUGE_VALF);
    }
    psi_grouping_free(ctx, found);
    psi_ctx_free(ctx);
}

// One unit of another law in a group that somebody else has made.
static void what_does_not_fit_is_found(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const uint32_t FAMILY[] = {0, 2, 5};
    const double p[] = {0.9, 0.9, 0.9, 0.2};
    bench b = bench_new(4, p, 1, 60, 5);
    const int32_t together[] = {0, 0, 0, 0}, apart[] = {0, 0, 0, 1};
    float nats[4], same[4];
    const psi_forest forest = {b.units, b.none, b.none, false, 0.0};
    const psi_draws draws = {
        .n = b.n, .node = b.node, .outcome = b.outcome, .n_families = 2, .family = FAMILY};
    assert_ok(ctx, psi_misfit(ctx, &forest, &draws, 2, together, nats, same));
    assert_true(nats[3] > 10.0f);
    for (size_t u = 0; u < 3; u++) assert_true(nats[u] < nats[3] - 10.0f);
    for (size_t u = 0; u < 3; u++) assert_true(same[u] > same[3] + 10.0f);
    assert_ok(ctx, psi_misfit(ctx, &forest, &draws, 2, apart, nats, NULL));
    assert_true(nats[3] == -HUGE_VALF); // alone in its group
    for (size_t u = 0; u < 3; u++) assert_true(nats[u] < 0.0f);
    bench_free(&b);
    psi_ctx_free(ctx);
}

// Prototypes of two latent states, each of which has a share of the other's observations that
// varies from one to the next: without impurity they are many, with it they are two.
static void impure_prototypes_are_of_one_state(void **state)
{
    (void)state;
    enum { UNITS = 60, VISITS = 100 };
    static const uint32_t FAMILY[] = {0, 2, 5};
    psi_ctx *ctx = test_ctx(1);
    double p[UNITS];
    base_random random = base_random_stream(3, 0x696d7075, 0);
    for (size_t u = 0; u < UNITS; u++) {
        const double stray = 0.2 * base_random_uniform(&random);
        p[u] = u % 2 ? 0.95 - stray : 0.05 + stray;
    }
    bench b = bench_new(UNITS, p, 1, VISITS, 11);
    const psi_draws draws = {
        .n = b.n, .node = b.node, .outcome = b.outcome, .n_families = 2, .family = FAMILY};
    for (int impure = 0; impure < 2; impure++) {
        const psi_forest forest = {b.units, b.none, b.none, impure, impure ? 0.1 : 0.0};
        psi_grouping *found;
        assert_ok(ctx, psi_group(ctx, &forest, &draws, 1000, &found));
        if (impure) {
            assert_int_equal(found->n_groups, 2);
            for (size_t u = 2; u < UNITS; u++)
                assert_int_equal(found->group[u], found->group[u % 2]);
        } else {
            assert_true(found->n_groups > 2);
        }
        psi_grouping_free(ctx, found);
    }
    const psi_forest none = {b.units, b.none, b.none, true, -0.5};
    psi_grouping *found;
    assert_status(ctx, psi_group(ctx, &none, &draws, 1000, &found), PSI_ESHAPE);
    bench_free(&b);
    psi_ctx_free(ctx);
}

static psi_status group_some(psi_ctx *ctx, void *user)
{
    static const uint32_t FAMILY[] = {0, 2, 5};
    const bench *b = user;
    const psi_forest forest = {b->units, b->none, b->none, false, 0.0};
    const psi_draws draws = {
        .n = b->n, .node = b->node, .outcome = b->outcome, .n_families = 2, .family = FAMILY};
    psi_grouping *found;
    const psi_status status = psi_group(ctx, &forest, &draws, 1000, &found);
    psi_grouping_free(ctx, found);
    return status;
}

static void no_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    const double p[] = {0.9, 0.1};
    bench b = bench_new(2, p, 3, 20, 1);
    test_fault_sweep(group_some, &b);
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rising_factorials_are_those_of_the_gamma_function),
        cmocka_unit_test(one_family_that_differs_makes_two_states),
        cmocka_unit_test(the_answer_becomes_the_truth),
        cmocka_unit_test(names_of_units_and_outcomes_do_not_matter),
        cmocka_unit_test(a_mixture_is_no_state),
        cmocka_unit_test(traces_of_others_make_no_state),
        cmocka_unit_test(other_shares_of_the_same_outcomes_are_two_laws),
        cmocka_unit_test(many_units_of_one_law_are_one_state),
        cmocka_unit_test(means_alone_tell_units_apart),
        cmocka_unit_test(what_does_not_fit_is_found),
        cmocka_unit_test(impure_prototypes_are_of_one_state),
        cmocka_unit_test(no_memory_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
