// Strongly connected components against reachability, on random graphs.
#include "support/support.h"

#include "base/random.h"
#include "mdp/components.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 24, MOST_NEXT = 3 };

typedef struct random_graph {
    uint64_t begin[MOST + 1];
    int32_t next[MOST * MOST_NEXT];
    bool reaches[MOST][MOST]; // in any number of steps, also none
} random_graph;

static size_t fill_random(uint64_t seed, random_graph *g)
{
    base_random r = base_random_stream(seed, 920, 0);
    const size_t n = 1 + base_random_below(&r, MOST);
    uint64_t m = 0;
    memset(g, 0, sizeof *g);
    for (size_t s = 0; s < n; s++) {
        const uint32_t n_next = base_random_below(&r, MOST_NEXT + 1);
        g->begin[s] = m;
        g->reaches[s][s] = true;
        for (uint32_t i = 0; i < n_next; i++) {
            g->next[m] = (int32_t)base_random_below(&r, (uint32_t)n);
            g->reaches[s][g->next[m++]] = true;
        }
    }
    g->begin[n] = m;
    for (size_t via = 0; via < n; via++)
        for (size_t s = 0; s < n; s++)
            for (size_t t = 0; t < n; t++)
                g->reaches[s][t] |= g->reaches[s][via] && g->reaches[via][t];
    return n;
}

static void test_reachability(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    size_t joined = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        random_graph g;
        const size_t n = fill_random(seed, &g);
        const mdp_graph graph = {n, g.begin, g.next};
        mdp_components found;
        size_t number[MOST], n_components = 0, n_cyclic = 0;
        memset(number, 0xFF, sizeof number);
        assert_ok(ctx, mdp_components_find(ctx, &graph, n, &found));
        assert_true(found.complete);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(number[found.state[i]], SIZE_MAX); // nobody twice
            number[found.state[i]] = n_components;
            n_components += found.last[i];
        }
        assert_int_equal(found.last[n - 1], 1);
        for (size_t s = 0; s < n; s++) {
            bool shared = false;
            for (size_t t = 0; t < n; t++) {
                const bool both = g.reaches[s][t] && g.reaches[t][s];
                assert_int_equal(number[s] == number[t], both);
                assert_true(!g.reaches[s][t] || number[t] <= number[s]);
                shared = shared || (both && s != t);
            }
            n_cyclic += shared;
        }
        joined += n_components < n;
        mdp_components_free(ctx, &found);
        assert_ok(ctx, mdp_components_find(ctx, &graph, 0, &found));
        assert_int_equal(found.complete, n_cyclic == 0);
        mdp_components_free(ctx, &found);
    }
    assert_true(joined > 1000);
    psi_ctx_free(ctx);
}

// A path of a million states: the search keeps no frame per state on the machine's stack.
static void test_long_path(void **state)
{
    (void)state;
    enum { LENGTH = 1000000 };
    psi_ctx *ctx = test_ctx(1);
    uint64_t *begin = malloc((LENGTH + 1) * sizeof *begin);
    int32_t *next = malloc(LENGTH * sizeof *next);
    mdp_components found;
    assert_true(begin && next);
    for (int round = 0; round < 2; round++) { // downwards to 0; then 0 leads to the last: a ring
        for (size_t s = 0; s <= LENGTH; s++) begin[s] = s;
        for (size_t s = 0; s < LENGTH; s++) next[s] = (int32_t)(s > 0 ? s - 1 : 0);
        if (round == 1) next[0] = LENGTH - 1;
        const mdp_graph graph = {LENGTH, begin, next};
        assert_ok(ctx, mdp_components_find(ctx, &graph, LENGTH, &found));
        size_t n = 0;
        for (size_t i = 0; i < LENGTH; i++) n += found.last[i];
        assert_int_equal(n, round == 0 ? LENGTH : 1);
        mdp_components_free(ctx, &found);
    }
    free(next);
    free(begin);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reachability),
        cmocka_unit_test(test_long_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
