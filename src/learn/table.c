// The approximator for finite observations: every distinct observation is a row of counts.
#include "learn/approximator.h"

#include "base/checked.h"
#include "base/context.h"
#include "problem/distinct.h"

#include <string.h>

static const size_t MOST_CELLS = (size_t)1 << 29; // 2 GB

typedef struct count_table {
    uint32_t *id; // (n_rows) the number of the distinct observation
    size_t n_distinct;
} count_table;

// p(class | observation, action) by counting. Pairs that were never seen get what is usual for the
// action.
static psi_status fit_counts(void *self, psi_ctx *ctx, const learn_samples *samples,
                             const learn_fit *start, const int32_t *parent, uint64_t seed,
                             learn_fit **out)
{
    (void)start, (void)parent, (void)seed;
    psi_status status = PSI_OK;
    const count_table *table = self;
    learn_fit *made = NULL;
    float *usual = NULL;
    const size_t actions = samples->n_actions, classes = samples->n_classes;
    const size_t width = actions * classes;
    size_t cells;
    *out = NULL;
    if (!base_mul(table->n_distinct, width, &cells) || cells > MOST_CELLS) {
        return FAIL(ctx, PSI_ELIMIT,
                    "a table of %zu observations, %zu actions and %zu classes is too large",
                    table->n_distinct, actions, classes);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *made, &made));
    made->n_actions = actions;
    made->n_classes = classes;
    TRY(base_alloc_zero(ctx, table->n_distinct, width * sizeof *made->p, &made->p));
    TRY(base_alloc_zero(ctx, width, sizeof *usual, &usual));
    for (size_t i = 0; i < samples->n; i++) {
        const size_t action = samples->actions ? (size_t)samples->actions[i] : 0;
        const size_t cell = action * classes + (size_t)samples->targets[i];
        made->p[table->id[samples->rows[i]] * width + cell] += 1.0f;
        usual[cell] += 1.0f;
    }
    for (size_t row = 0; row < table->n_distinct; row++) {
        for (size_t a = 0; a < actions; a++) {
            float *p = made->p + row * width + a * classes, *q = usual + a * classes;
            double total = 0.0, total_usual = 0.0;
            for (size_t k = 0; k < classes; k++) {
                total += (double)p[k];
                total_usual += (double)q[k];
            }
            for (size_t k = 0; k < classes; k++) {
                p[k] = (float)(total > 0.0         ? (double)p[k] / total
                               : total_usual > 0.0 ? (double)q[k] / total_usual
                                                   : 1.0 / (double)classes);
            }
        }
    }
    *out = made;
    made = NULL;
done:
    base_free(ctx, usual);
    learn_fit_free(ctx, made);
    return status;
}

static psi_status predict(void *self, psi_ctx *ctx, const learn_fit *fit, const uint64_t *rows,
                          size_t n, float *p)
{
    (void)ctx;
    const count_table *table = self;
    const size_t width = fit->n_actions * fit->n_classes;
    for (size_t i = 0; i < n; i++) {
        memcpy(p + i * width, fit->p + table->id[rows[i]] * width, width * sizeof *p);
    }
    return PSI_OK;
}

static void table_free(void *self, psi_ctx *ctx)
{
    count_table *table = self;
    if (!table) return;
    base_free(ctx, table->id);
    base_free(ctx, table);
}

psi_status learn_table_new(psi_ctx *ctx, const cluster_problem *problem, size_t max_distinct,
                           learn_approximator *out)
{
    psi_status status = PSI_OK;
    const psi_observations *observations = problem->data->observations;
    count_table *table = NULL;
    problem_distinct distinct = {0};
    *out = (learn_approximator){0};
    TRY(base_alloc_zero(ctx, 1, sizeof *table, &table));
    TRY(base_alloc(ctx, problem->n_rows, sizeof *table->id, &table->id));
    TRY(problem_distinct_new(ctx, psi_observations_row_bytes(observations), &distinct));
    TRY(problem_distinct_observations(ctx, &distinct, observations, NULL, problem->n_rows,
                                      max_distinct, table->id));
    table->n_distinct = distinct.n;
    *out = (learn_approximator){.kind = PSI_APPROXIMATOR_TABLE,
                                .self = table,
                                .fit = fit_counts,
                                .predict = predict,
                                .free = table_free};
    table = NULL;
done:
    problem_distinct_free(ctx, &distinct);
    table_free(table, ctx);
    return status;
}
