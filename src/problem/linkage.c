#include "problem/linkage.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

psi_status problem_linkage_points_new(psi_ctx *ctx, size_t n, size_t width, linkage_points *out)
{
    psi_status status = PSI_OK;
    *out = (linkage_points){.n = n, .width = width};
    TRY(base_alloc(ctx, n, width * sizeof *out->number, &out->number));
    TRY(base_alloc(ctx, n, sizeof *out->distance, &out->distance));
done:
    return status;
}

void problem_linkage_points_free(psi_ctx *ctx, linkage_points *points)
{
    base_free(ctx, points->number);
    base_free(ctx, points->distance);
    *points = (linkage_points){0};
}

void problem_linkage_compare(linkage_points *points, const float *x)
{
    float *distance = points->distance;
    memset(distance, 0, points->n * sizeof *distance);
    for (size_t w = 0; w < points->width; w++) {
        const float *number = points->number + w * points->n, at = x[w];
        for (size_t i = 0; i < points->n; i++) {
            distance[i] += (number[i] - at) * (number[i] - at);
        }
    }
}

static void compare_point(linkage_points *points, size_t i, float *x)
{
    for (size_t w = 0; w < points->width; w++) x[w] = points->number[w * points->n + i];
    problem_linkage_compare(points, x);
}

// Prim's algorithm.
psi_status problem_linkage_single(psi_ctx *ctx, linkage_points *points, linkage_step *step)
{
    psi_status status = PSI_OK;
    const size_t n = points->n;
    uint8_t *reached = NULL;
    float *x = NULL;
    TRY(base_alloc_zero(ctx, n, sizeof *reached, &reached));
    TRY(base_alloc(ctx, points->width, sizeof *x, &x));
    for (size_t i = 1; i < n; i++) step[i - 1] = (linkage_step){HUGE_VALF, 0, (int32_t)i};
    for (size_t turn = 1, last = 0; turn < n; turn++) {
        size_t next = 0;
        float nearest = HUGE_VALF;
        TRY(base_cancelled(ctx));
        reached[last] = 1;
        compare_point(points, last, x);
        for (size_t i = 1; i < n; i++) {
            if (reached[i]) continue;
            if (points->distance[i] < step[i - 1].height) {
                step[i - 1].height = points->distance[i];
                step[i - 1].a = (int32_t)last;
            }
            if (step[i - 1].height < nearest) nearest = step[i - 1].height, next = i;
        }
        last = next;
    }
done:
    base_free(ctx, x);
    base_free(ctx, reached);
    return status;
}

typedef struct averaging {
    size_t n;
    float *apart;   // (n, n) between the sets of two points
    uint32_t *size; // (n) of the set that a point stands for; 0: another one does
} averaging;

static size_t nearest_set(const averaging *sets, size_t i)
{
    const float *apart = sets->apart + i * sets->n;
    size_t best = sets->n;
    for (size_t j = 0; j < sets->n; j++) {
        if (j == i || sets->size[j] == 0) continue;
        if (best == sets->n || apart[j] < apart[best]) best = j;
    }
    return best;
}

// i stands for both from now on.
static void join(averaging *sets, size_t i, size_t j)
{
    const float a = (float)sets->size[i], b = (float)sets->size[j], both = a + b;
    float *to_i = sets->apart + i * sets->n, *to_j = sets->apart + j * sets->n;
    for (size_t k = 0; k < sets->n; k++) {
        to_i[k] = (a * to_i[k] + b * to_j[k]) / both;
        sets->apart[k * sets->n + i] = to_i[k];
    }
    sets->size[i] += sets->size[j];
    sets->size[j] = 0;
}

// Chains of nearest neighbours end in two sets that are each other's; joining these first makes the
// same tree as always joining the two nearest of all.
psi_status problem_linkage_average(psi_ctx *ctx, linkage_points *points, linkage_step *step)
{
    psi_status status = PSI_OK;
    const size_t n = points->n;
    averaging sets = {.n = n};
    uint32_t *chain = NULL;
    float *x = NULL;
    size_t length = 0, first = 0;
    TRY(base_alloc(ctx, n, n * sizeof *sets.apart, &sets.apart));
    TRY(base_alloc(ctx, n, sizeof *sets.size, &sets.size));
    TRY(base_alloc(ctx, n, sizeof *chain, &chain));
    TRY(base_alloc(ctx, points->width, sizeof *x, &x));
    for (size_t i = 0; i < n; i++) {
        TRY(base_cancelled(ctx));
        sets.size[i] = 1;
        compare_point(points, i, x);
        memcpy(sets.apart + i * n, points->distance, n * sizeof *sets.apart);
    }
    for (size_t made = 0; made + 1 < n;) {
        TRY(base_cancelled(ctx));
        if (length == 0) {
            while (sets.size[first] == 0) first++;
            chain[length++] = (uint32_t)first;
        }
        const size_t i = chain[length - 1], j = nearest_set(&sets, i);
        const float height = sets.apart[i * n + j];
        if (length > 1 && sets.apart[i * n + chain[length - 2]] <= height) {
            const size_t before = chain[length - 2];
            step[made++] = (linkage_step){height, (int32_t)i, (int32_t)before};
            join(&sets, base_min(i, before), base_max(i, before));
            length -= 2;
        } else {
            chain[length++] = (uint32_t)j;
        }
    }
done:
    base_free(ctx, x);
    base_free(ctx, chain);
    base_free(ctx, sets.size);
    base_free(ctx, sets.apart);
    return status;
}
