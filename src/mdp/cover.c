// The epsilon-cover of exact features. A projection on one random direction never enlarges a
// distance, so states sorted by it come upon only the leaders they could possibly join.
#include "mdp/cover.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/random.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>

enum { COVER_SEED = 0x70736966, COVER_PURPOSE = 1 };

typedef struct placed_state {
    double projection;
    size_t state;
    int32_t group;
} placed_state;

static int by_projection(const void *a, const void *b)
{
    const placed_state *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->projection != y->projection) return x->projection < y->projection ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

void mdp_cover_direction(double *direction, size_t size)
{
    base_random random = base_random_stream(COVER_SEED, COVER_PURPOSE, size);
    for (size_t i = 0; i < size; i++) direction[i] = base_random_normal(&random);
    const double length = cblas_dnrm2((int)size, direction, 1);
    for (size_t i = 0; i < size; i++) direction[i] /= length;
}

psi_status mdp_cover_by(psi_ctx *ctx, size_t n, const double *projection, const int32_t *group,
                        double epsilon, mdp_distance *distance, void *user, psi_partition **out)
{
    psi_status status = PSI_OK;
    placed_state *order = NULL, *leader = NULL;
    int32_t *label = NULL;
    *out = NULL;
    TRY(base_alloc(ctx, n, sizeof *order, &order));
    TRY(base_alloc(ctx, n, sizeof *leader, &leader));
    TRY(base_alloc(ctx, n, sizeof *label, &label));
    double largest = 0.0;
    for (size_t s = 0; s < n; s++) {
        order[s] = (placed_state){projection[s], s, group[s]};
        largest = fmax(largest, fabs(projection[s]));
    }
    qsort(order, n, sizeof *order, by_projection);

    // rounding of the projections only makes the window wider
    const double window = epsilon + 1e-12 * (1.0 + largest);
    size_t n_leaders = 0;
    for (size_t i = 0; i < n; i++) {
        double nearest = HUGE_VAL;
        size_t best = n_leaders;
        for (size_t l = n_leaders; l-- > 0;) {
            if (leader[l].group != order[i].group) break;
            if (leader[l].projection < order[i].projection - window) break;
            const double d = distance(user, order[i].state, leader[l].state);
            if (d <= epsilon && d <= nearest) {
                nearest = d;
                best = l;
            }
        }
        if (best == n_leaders) leader[n_leaders++] = order[i];
        label[order[i].state] = (int32_t)best;
    }
    TRY(psi_partition_new(ctx, n, label, out));
    TRY(psi_partition_canonical(ctx, *out, NULL));
done:
    base_free(ctx, label);
    base_free(ctx, leader);
    base_free(ctx, order);
    if (status != PSI_OK) {
        psi_partition_free(ctx, *out);
        *out = NULL;
    }
    return status;
}

// ---- features as numbers ------------------------------------------------------------------------

typedef struct dense {
    const double *features; // (n, A, width)
    size_t n_actions, width;
    psi_norm norm;
} dense;

// Σ_a ‖x_a − y_a‖
static double dense_distance(void *user, size_t s, size_t t)
{
    const dense *of = user;
    const size_t size = of->n_actions * of->width;
    const double *x = of->features + s * size, *y = of->features + t * size;
    double total = 0.0;
    for (size_t a = 0; a < of->n_actions; a++, x += of->width, y += of->width) {
        double sum = 0.0;
        if (of->norm == PSI_L1) {
            for (size_t i = 0; i < of->width; i++) sum += fabs(x[i] - y[i]);
            total += sum;
        } else {
            for (size_t i = 0; i < of->width; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
            total += sqrt(sum);
        }
    }
    return total;
}

psi_status mdp_cover(psi_ctx *ctx, size_t n, size_t n_actions, size_t width, const double *features,
                     const int32_t *group, psi_norm norm, double epsilon, psi_partition **out)
{
    psi_status status = PSI_OK;
    const size_t size = n_actions * width;
    dense of = {features, n_actions, width, norm};
    double *direction = NULL, *projection = NULL;
    *out = NULL;
    if (size > INT32_MAX) return FAIL(ctx, PSI_ELIMIT, "%zu features are too many", size);
    TRY(base_alloc(ctx, size, sizeof *direction, &direction));
    TRY(base_alloc(ctx, n, sizeof *projection, &projection));
    if (size > 0) mdp_cover_direction(direction, size);
    for (size_t s = 0; s < n; s++) {
        projection[s] =
            size > 0 ? cblas_ddot((int)size, features + s * size, 1, direction, 1) : 0.0;
    }
    TRY(mdp_cover_by(ctx, n, projection, group, epsilon, dense_distance, &of, out));
done:
    base_free(ctx, projection);
    base_free(ctx, direction);
    return status;
}
