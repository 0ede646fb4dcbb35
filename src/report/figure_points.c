// Figures made of points: observations in the plane, and the tree of refinements.
#include "report/plot.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = 4000, MAX_NODES = 4000 };

psi_status psi_figure_scatter(psi_ctx *ctx, const psi_figure *at, size_t n, const double *points,
                              const int32_t *labels)
{
    psi_status status = PSI_OK;
    report_plot plot;
    TRY(report_plot_new(ctx, at, 480, 440, &plot));
    if (n == 0) {
        status = FAIL(ctx, PSI_EUSAGE, "there are no points to draw");
        goto done;
    }
    const size_t shown = base_min(n, MAX_POINTS);
    report_put(&plot.data, "# x y label colour\n");
    for (size_t s = 0; s < shown; s++) {
        const size_t i = s * n / shown;
        report_putf(&plot.data, "%.6g %.6g %d %u\n", points[2 * i], points[2 * i + 1], labels[i],
                    labels[i] < 0 ? (unsigned)REPORT_GREY : report_colour((size_t)labels[i]));
    }
    report_putf(&plot.script,
                "    unset key\n    set size ratio -1\n"
                "    plot DATA using 1:2:4 with points pt 7 ps %g lc rgb variable\n",
                shown > 1000 ? 0.25 : 0.5);
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    return status;
}

// ---- the tree -----------------------------------------------------------------------------------

typedef struct node {
    size_t level, cluster, size;
    double wanted, place; // where its parent is; where it stands, 0 … 1
} node;

typedef struct tree {
    size_t n_levels, n_nodes;
    size_t *first; // (n_levels + 1) nodes of each level
    node *nodes;
    size_t *common; // (clusters of a level, clusters of the next)
} tree;

static int by_wanted(const void *a, const void *b)
{
    const node *x = a, *y = b;
    if (x->wanted != y->wanted) return x->wanted < y->wanted ? -1 : 1;
    return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

static int by_cluster(const void *a, const void *b)
{
    const node *x = a, *y = b;
    return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

// Nodes of a level stand in the order of their parents, evenly.
static void arrange(tree *t, size_t level)
{
    node *nodes = t->nodes + t->first[level];
    const size_t count = t->first[level + 1] - t->first[level];
    qsort(nodes, count, sizeof *nodes, by_wanted);
    for (size_t i = 0; i < count; i++) nodes[i].place = ((double)i + 0.5) / (double)count;
    qsort(nodes, count, sizeof *nodes, by_cluster);
}

static void count_common(tree *t, size_t level, size_t n, const int32_t *before,
                         const int32_t *labels)
{
    const size_t parents = t->first[level] - t->first[level - 1],
                 children = t->first[level + 1] - t->first[level];
    memset(t->common, 0, parents * children * sizeof *t->common);
    for (size_t i = 0; i < n; i++) {
        if (before[i] < 0 || labels[i] < 0) continue;
        t->common[(size_t)before[i] * children + (size_t)labels[i]]++;
    }
}

// The mean place of those a cluster came from, by what it shares with them.
static void place_children(tree *t, size_t level)
{
    const node *parent = t->nodes + t->first[level - 1];
    node *child = t->nodes + t->first[level];
    const size_t parents = t->first[level] - t->first[level - 1],
                 children = t->first[level + 1] - t->first[level];
    for (size_t c = 0; c < children; c++) {
        double sum = 0.0, weight = 0.0;
        for (size_t p = 0; p < parents; p++) {
            sum += parent[p].place * (double)t->common[p * children + c];
            weight += (double)t->common[p * children + c];
        }
        child[c].wanted = weight > 0.0 ? sum / weight : 1.0;
    }
    arrange(t, level);
}

static void put_edges(const tree *t, size_t first, size_t level, report_text *data)
{
    const node *parent = t->nodes + t->first[level - 1], *child = t->nodes + t->first[level];
    const size_t parents = t->first[level] - t->first[level - 1],
                 children = t->first[level + 1] - t->first[level];
    for (size_t p = 0; p < parents; p++) {
        for (size_t c = 0; c < children; c++) {
            const size_t common = t->common[p * children + c];
            const size_t smaller = base_min(parent[p].size, child[c].size);
            if (common == 0 || (double)common < 0.02 * (double)smaller) continue;
            report_putf(data, "%zu %.4f %zu %.4f %zu\n", first + level - 1, parent[p].place,
                        first + level, child[c].place, common);
        }
    }
}

static psi_status plant(psi_ctx *ctx, tree *t, size_t n, const int32_t *const *labels)
{
    psi_status status = PSI_OK;
    size_t widest = 1, nodes = 0;
    TRY(base_alloc_zero(ctx, t->n_levels + 1, sizeof *t->first, &t->first));
    for (size_t level = 0; level < t->n_levels; level++) {
        size_t clusters = 0;
        for (size_t i = 0; i < n; i++) {
            if (labels[level][i] >= 0) clusters = base_max(clusters, (size_t)labels[level][i] + 1);
        }
        widest = base_max(widest, clusters);
        nodes += clusters;
        if (nodes > MAX_NODES) {
            status =
                FAIL(ctx, PSI_EUSAGE, "a tree of more than %d clusters cannot be drawn", MAX_NODES);
            goto done;
        }
        t->first[level + 1] = nodes;
    }
    t->n_nodes = nodes;
    TRY(base_alloc_zero(ctx, nodes, sizeof *t->nodes, &t->nodes));
    TRY(base_alloc(ctx, widest * widest, sizeof *t->common, &t->common));
    for (size_t level = 0; level < t->n_levels; level++) {
        node *at = t->nodes + t->first[level];
        for (size_t c = 0; c < t->first[level + 1] - t->first[level]; c++) {
            at[c] = (node){.level = level, .cluster = c};
        }
        for (size_t i = 0; i < n; i++) {
            if (labels[level][i] >= 0) at[labels[level][i]].size++;
        }
    }
done:
    return status;
}

psi_status psi_figure_tree(psi_ctx *ctx, const psi_figure *at, size_t first, size_t n_levels,
                           size_t n, const int32_t *const *labels)
{
    psi_status status = PSI_OK;
    report_plot plot;
    tree t = {.n_levels = n_levels};
    TRY(report_plot_new(ctx, at, base_max(420, 60 * n_levels + 90), 420, &plot));
    if (n_levels == 0 || n == 0) {
        status = FAIL(ctx, PSI_EUSAGE, "there are no refinements to draw");
        goto done;
    }
    TRY(plant(ctx, &t, n, labels));
    report_put(&plot.data, "# refinement place refinement place observations\n");
    arrange(&t, 0);
    for (size_t level = 1; level < n_levels; level++) {
        count_common(&t, level, n, labels[level - 1], labels[level]);
        place_children(&t, level);
        put_edges(&t, first, level, &plot.data);
    }
    report_put(&plot.data, "\n\n# refinement place cluster observations share\n");
    size_t widest = 0;
    for (size_t i = 0; i < t.n_nodes; i++) {
        const node *one = &t.nodes[i];
        report_putf(&plot.data, "%zu %.4f %zu %zu %.6f\n", first + one->level, one->place,
                    one->cluster, one->size, (double)one->size / (double)n);
        widest = base_max(widest, t.first[one->level + 1] - t.first[one->level]);
    }
    report_putf(
        &plot.script,
        "    unset key\n    set border 1\n    unset ytics\n    set xtics 1\n"
        "    set xrange [%g:%g]\n    set yrange [1:0]\n"
        "    plot %sDATA index 1 using 1:2:(%g + %g * sqrt($5)) with points pt 7 ps variable "
        "lc rgb accent",
        (double)first - 0.4, (double)(first + n_levels) - 0.6,
        n_levels > 1 ? "DATA index 0 using 1:2:($3-$1):($4-$2) with vectors nohead lc rgb muted, "
                       "\\\n         "
                     : "",
        widest > 40   ? 0.2
        : widest > 12 ? 0.5
                      : 2.0,
        widest > 40   ? 1.2
        : widest > 12 ? 1.6
                      : 1.8);
    if (widest <= 12) {
        report_put(&plot.script, ", \\\n         '' index 1 using 1:2:3 with labels "
                                 "textcolor rgb paper font ',10'");
    }
    report_put(&plot.script, "\n");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    base_free(ctx, t.common);
    base_free(ctx, t.nodes);
    base_free(ctx, t.first);
    return status;
}
