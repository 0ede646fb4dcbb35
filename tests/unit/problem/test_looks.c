// The tree of looks: every observation is in one cell, also where the tree has grown from some of
// them only, cells are small at borders of groups, and rows are voted for by their like.
#include "support/ranks.h"
#include "support/support.h"

#include "base/comm.h"
#include "base/context.h"
#include "base/random.h"
#include "problem/looks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 2, MANY = 300000, GROWN = 1 << 18 };

// A problem of n vectors, evenly in a square, of which nothing else is known.
typedef struct square {
    cluster_problem problem;
    float *vectors;
} square;

static square square_new(size_t n)
{
    square s = {.problem = {.n_rows = n, .n_states = n, .whole = {.n_rows = n, .n_states = n}}};
    base_random random = base_random_stream(1, 0x6c6f, 0);
    s.problem.states = malloc(n * sizeof *s.problem.states);
    s.vectors = malloc(n * WIDTH * sizeof *s.vectors);
    for (size_t i = 0; i < n; i++) {
        s.problem.states[i] = i;
        for (size_t w = 0; w < WIDTH; w++) {
            s.vectors[i * WIDTH + w] = (float)(2.0 * base_random_uniform(&random) - 1.0);
        }
    }
    return s;
}

static void square_free(square *s)
{
    free(s->problem.states);
    free(s->vectors);
}

// Every reference is in the part of its leaf, and every row on its side of all planes above it.
static void assert_in_place(const problem_looks *looks, size_t n)
{
    size_t leaves = 0, rows = 0, states = 0;
    for (size_t v = 0; v < looks->forest.n_nodes; v++) {
        if (looks->left[v] >= 0) {
            assert_true(looks->begin[v] == looks->begin[looks->left[v]]);
            assert_true(looks->end[looks->left[v]] == looks->begin[looks->right[v]]);
            assert_true(looks->end[v] == looks->end[looks->right[v]]);
            continue;
        }
        leaves++;
        assert_true(looks->end[v] > looks->begin[v]);
        rows += looks->end[v] - looks->begin[v];
        states += looks->size[v];
        for (uint64_t i = looks->begin[v]; i < looks->end[v]; i++) {
            assert_int_equal(looks->leaf[looks->row[i]], v);
        }
    }
    assert_int_equal(leaves, looks->n_leaves);
    assert_int_equal(rows, looks->n_references);
    assert_true(n > GROWN ? rows >= GROWN : rows == n);
    assert_int_equal(states, n);
    assert_int_equal(looks->size[0], n);
    for (size_t row = 0; row < n; row++) {
        for (int32_t v = looks->leaf[row]; looks->parent[v] >= 0; v = looks->parent[v]) {
            const int32_t up = looks->parent[v];
            const float *plane = looks->plane + up * (WIDTH + 1), *x = looks->vectors + row * WIDTH;
            float along = plane[WIDTH];
            for (size_t w = 0; w < WIDTH; w++) along += x[w] * plane[w];
            assert_int_equal(along > 0.0f, looks->right[up] == v);
        }
    }
}

static void every_observation_is_in_one_cell(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const size_t sizes[] = {1, 8, 9, 1000, GROWN, MANY};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        square s = square_new(sizes[i]);
        problem_looks looks;
        assert_ok(ctx, problem_looks_tree(ctx, &s.problem, WIDTH, s.vectors, &looks));
        assert_in_place(&looks, sizes[i]);
        assert_int_equal(problem_looks_are_sampled(&s.problem, &looks), sizes[i] > GROWN);
        problem_looks_free(ctx, &looks);
        square_free(&s);
    }
    psi_ctx_free(ctx);
}

// Two groups, left and right: cells that hold the border are divided, those far away are not.
static void cells_are_small_where_groups_meet(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    square s = square_new(MANY);
    problem_looks looks;
    assert_ok(ctx, problem_looks_tree(ctx, &s.problem, WIDTH, s.vectors, &looks));
    const size_t before = looks.forest.n_nodes;
    int32_t *group = malloc(before * sizeof *group);
    for (size_t v = 0; v < before; v++) { // of a cell that mixes them nothing is known
        group[v] = s.vectors[looks.row[looks.begin[v]] * WIDTH] > 0.0f;
        for (uint64_t i = looks.begin[v]; i < looks.end[v]; i++) {
            if ((s.vectors[looks.row[i] * WIDTH] > 0.0f) != group[v]) group[v] = -1;
        }
    }
    assert_ok(ctx, problem_looks_deepen(ctx, &s.problem, group, &looks));
    assert_in_place(&looks, MANY);
    assert_true(looks.forest.n_nodes > before && looks.forest.n_nodes < before + before / 10);
    for (size_t v = 0; v < looks.forest.n_nodes; v++) {
        if (looks.left[v] >= 0) continue;
        bool left = false, right = false;
        for (uint64_t i = looks.begin[v]; i < looks.end[v]; i++) {
            const float x = s.vectors[looks.row[i] * WIDTH];
            left |= x <= 0.0f;
            right |= x > 0.0f;
            if (v >= before) assert_true(x > -0.1f && x < 0.1f);
        }
        if (left && right) assert_true(looks.end[v] - looks.begin[v] <= 8);
    }
    free(group);
    problem_looks_free(ctx, &looks);
    square_free(&s);
    psi_ctx_free(ctx);
}

// Clumps of thirty like the seeds of a sunflower, between which no plane finds a way without
// cutting a few off. Whatever label such a row was given with those on its branch, its like vote
// for theirs.
static void a_row_is_voted_for_by_its_like(void **state)
{
    (void)state;
    enum { CLUMPS = 400, CLUMP = 20, N = CLUMPS * CLUMP };
    psi_ctx *ctx = test_ctx(1);
    square s = square_new(N);
    int32_t labels[N], *all, label[LOOKS_LABELS];
    float share[LOOKS_LABELS];
    uint64_t nearest[LOOKS_NEAREST];
    size_t cut_off = 0;
    problem_looks looks;
    for (size_t i = 0; i < N; i++) {
        labels[i] = (int32_t)(i % CLUMPS);
        const double away = sqrt((double)labels[i]), turn = 2.39996 * (double)labels[i];
        s.vectors[2 * i] = 0.3f * s.vectors[2 * i] + (float)(away * cos(turn));
        s.vectors[2 * i + 1] = 0.3f * s.vectors[2 * i + 1] + (float)(away * sin(turn));
    }
    assert_ok(ctx, problem_looks_tree(ctx, &s.problem, WIDTH, s.vectors, &looks));
    all = malloc(looks.forest.n_nodes * sizeof *all);
    for (size_t i = 0; i < N; i++) {
        const int32_t right = labels[i];
        assert_int_equal(problem_looks_nearest(&looks, i, nearest), LOOKS_NEAREST);
        if (labels[nearest[0]] == right) continue;
        cut_off++;
        labels[i] = labels[nearest[0]];
        assert_ok(ctx, problem_looks_agree(ctx, &s.problem, &looks, labels, all));
        const size_t n = problem_looks_vote(&looks, labels, all, i, false, label, share);
        size_t k = 0;
        while (k < n && label[k] != right) k++;
        assert_true(k < n && share[k] > 0.25f); // of ½ that the cell leaves
        labels[i] = right;
    }
    assert_true(cut_off > 0);
    free(all);
    problem_looks_free(ctx, &looks);
    square_free(&s);
    psi_ctx_free(ctx);
}

// What a process finds in its part of the data, beside what one finds in all of them.
typedef struct shared {
    square all;
    problem_looks looks;
    int32_t *group; // (nodes) of the tree before it is deepened
} shared;

static psi_status compare_part(psi_ctx *ctx, int rank, void *argument)
{
    psi_status status = PSI_OK;
    shared *of = argument;
    const size_t n = of->all.problem.n_rows, ranks = (size_t)base_ranks(ctx);
    const size_t first = n * (size_t)rank / ranks, end = n * ((size_t)rank + 1) / ranks;
    cluster_problem part = of->all.problem;
    problem_looks looks = {0};
    float *vectors = malloc((end - first) * WIDTH * sizeof *vectors);
    int32_t *labels = malloc((end - first) * sizeof *labels), *all_labels = NULL;
    part.n_rows = part.n_states = end - first;
    part.whole.first_state = first;
    memcpy(vectors, of->all.vectors + first * WIDTH, (end - first) * WIDTH * sizeof *vectors);
    TRY(problem_looks_tree(ctx, &part, WIDTH, vectors, &looks));
    TRY(problem_looks_deepen(ctx, &part, of->group, &looks));
    const size_t nodes = of->looks.forest.n_nodes;
    bool same = looks.forest.n_nodes == nodes && looks.n_references == of->looks.n_references &&
                memcmp(looks.plane, of->looks.plane, nodes * (WIDTH + 1) * sizeof(float)) == 0 &&
                memcmp(looks.size, of->looks.size, nodes * sizeof *looks.size) == 0 &&
                memcmp(looks.begin, of->looks.begin, nodes * sizeof *looks.begin) == 0;
    for (size_t i = 0; same && i < end - first; i++) {
        same = looks.leaf[i] == of->looks.leaf[first + i];
        labels[i] = (int32_t)(first + i);
    }
    // neighbours are the same rows, wherever they are
    if (same) TRY(problem_looks_labels(ctx, &looks, labels, &all_labels));
    for (size_t i = 0; same && i < end - first; i += 997) {
        uint64_t own[LOOKS_NEAREST], whole[LOOKS_NEAREST];
        const size_t found = problem_looks_nearest_of_all(&looks, i, own);
        same = found == problem_looks_nearest_of_all(&of->looks, first + i, whole);
        for (size_t k = 0; same && k < found; k++) {
            same = (uint64_t)all_labels[own[k]] == whole[k];
        }
    }
    if (!same) TRY(PSI_EINTERNAL);
done:
    base_free(ctx, all_labels);
    problem_looks_free(ctx, &looks);
    free(labels);
    free(vectors);
    return status;
}

// A tree that has grown from some observations is the same for several processes, none of which has
// the vectors of all.
static void several_processes_grow_one_tree(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    shared of = {.all = square_new(MANY)};
    assert_ok(ctx, problem_looks_tree(ctx, &of.all.problem, WIDTH, of.all.vectors, &of.looks));
    of.group = malloc(of.looks.forest.n_nodes * sizeof *of.group);
    for (size_t v = 0; v < of.looks.forest.n_nodes; v++) {
        of.group[v] = of.all.vectors[of.looks.row[of.looks.begin[v]] * WIDTH] > 0.0f;
    }
    assert_ok(ctx, problem_looks_deepen(ctx, &of.all.problem, of.group, &of.looks));
    assert_true(of.looks.n_references < MANY);
    test_as_ranks(3, compare_part, &of);
    free(of.group);
    problem_looks_free(ctx, &of.looks);
    square_free(&of.all);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_observation_is_in_one_cell),
        cmocka_unit_test(cells_are_small_where_groups_meet),
        cmocka_unit_test(a_row_is_voted_for_by_its_like),
        cmocka_unit_test(several_processes_grow_one_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
