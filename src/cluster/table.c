// The approximator for finite observations: every distinct observation is a row of counts.
#include "cluster/approximator.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"

#include <string.h>

static const size_t MOST_CELLS = (size_t)1 << 29; // 2 GB

typedef struct count_table {
    uint32_t *id; // (n_rows) the number of the distinct observation
    size_t n_distinct;
} count_table;

static uint64_t hash_bytes(const unsigned char *bytes, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

// Numbers the distinct observations in order of first appearance (open addressing on their bytes).
static psi_status number_observations(psi_ctx *ctx, const psi_observations *observations,
                                      size_t max_distinct, count_table *out)
{
    psi_status status = PSI_OK;
    enum { BLOCK = 4096 };
    const size_t n = psi_observations_count(observations);
    const size_t row_bytes = psi_observations_row_bytes(observations);
    const size_t slots = (size_t)1 << (64 - __builtin_clzll(2 * max_distinct + 1));
    unsigned char *known = NULL, *block = NULL;
    uint32_t *slot = NULL;
    uint64_t *rows = NULL;
    size_t room = 256;
    TRY(base_alloc_zero(ctx, slots, sizeof *slot, &slot)); // number + 1; 0 is free
    TRY(base_alloc(ctx, room, row_bytes, &known));
    TRY(base_alloc(ctx, BLOCK, row_bytes, &block));
    TRY(base_alloc(ctx, BLOCK, sizeof *rows, &rows));
    base_progress progress = base_progress_start(ctx, "telling observations apart", n);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_progress_at(&progress, begin));
        TRY(psi_observations_gather(ctx, observations, rows, count, block));
        for (size_t i = 0; i < count; i++) {
            const unsigned char *row = block + i * row_bytes;
            size_t at = hash_bytes(row, row_bytes) & (slots - 1);
            while (slot[at] && memcmp(known + (slot[at] - 1) * row_bytes, row, row_bytes) != 0) {
                at = (at + 1) & (slots - 1);
            }
            if (!slot[at]) {
                if (out->n_distinct == max_distinct) {
                    status = FAIL(ctx, PSI_ELIMIT, "there are more than %zu different observations",
                                  max_distinct);
                    goto done;
                }
                if (out->n_distinct == room) {
                    room *= 2;
                    TRY(base_resize(ctx, room, row_bytes, &known));
                }
                memcpy(known + out->n_distinct * row_bytes, row, row_bytes);
                slot[at] = (uint32_t)++out->n_distinct;
            }
            out->id[begin + i] = slot[at] - 1;
        }
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, rows);
    base_free(ctx, block);
    base_free(ctx, slot);
    base_free(ctx, known);
    return status;
}

// p(class | observation, action) by counting. Pairs that were never seen get what is usual for the
// action.
static psi_status fit_counts(void *self, psi_ctx *ctx, const cluster_samples *samples,
                             const cluster_fit *start, const int32_t *parent, uint64_t seed,
                             cluster_fit **out)
{
    (void)start, (void)parent, (void)seed;
    psi_status status = PSI_OK;
    const count_table *table = self;
    cluster_fit *made = NULL;
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
    cluster_fit_free(ctx, made);
    return status;
}

static psi_status predict(void *self, psi_ctx *ctx, const cluster_fit *fit, const uint64_t *rows,
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

psi_status cluster_table_new(psi_ctx *ctx, const cluster_problem *problem, size_t max_distinct,
                             cluster_approximator *out)
{
    psi_status status = PSI_OK;
    count_table *table = NULL;
    *out = (cluster_approximator){0};
    TRY(base_alloc_zero(ctx, 1, sizeof *table, &table));
    TRY(base_alloc(ctx, problem->n_rows, sizeof *table->id, &table->id));
    TRY(number_observations(ctx, problem->data->observations, max_distinct, table));
    *out = (cluster_approximator){.kind = PSI_APPROXIMATOR_TABLE,
                                  .self = table,
                                  .fit = fit_counts,
                                  .predict = predict,
                                  .free = table_free};
    table = NULL;
done:
    table_free(table, ctx);
    return status;
}
