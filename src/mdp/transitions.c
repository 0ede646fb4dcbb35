// M_a with its uniform floor, one action after the other in memory, and its two products.
#include "mdp/transitions.h"

#include "base/context.h"

// Straight loops win once a sixth of the entries is there; 64 MB of them are the most we make.
enum { CROWDED = 6, MOST_DENSE = 1 << 22 };

void mdp_transitions_free(psi_ctx *ctx, mdp_transitions *transitions)
{
    base_free(ctx, transitions->transposed);
    base_free(ctx, transitions->dense);
    base_free(ctx, transitions->even);
    base_free(ctx, transitions->value);
    base_free(ctx, transitions->next);
    base_free(ctx, transitions->offsets);
    *transitions = (mdp_transitions){0};
}

static void fill_sparse(const psi_mdp *latent, double floor, mdp_transitions *out)
{
    const size_t n = latent->n_states, n_actions = latent->n_actions;
    uint64_t filled = 0;
    for (size_t a = 0; a < n_actions; a++) {
        uint64_t *offsets = out->offsets + a * (n + 1);
        for (size_t k = 0; k < n; k++) {
            const size_t row = k * n_actions + a;
            offsets[k] = filled;
            for (uint64_t i = latent->offsets[row]; i < latent->offsets[row + 1]; i++) {
                out->next[filled] = latent->next[i];
                out->value[filled++] = latent->probability[i] / (1.0 + floor);
            }
            const double all = psi_mdp_seen(latent, k, a) ? floor / (1.0 + floor) : 1.0;
            const bool empty = latent->terminal[k] || floor == 0.0;
            out->even[a * n + k] = empty ? 0.0 : all / (double)n;
        }
        offsets[n] = filled;
    }
}

static void fill_dense(mdp_transitions *out)
{
    const size_t n = out->n_latent;
    for (size_t a = 0; a < out->n_actions; a++) {
        double *dense = out->dense + a * n * n, *transposed = out->transposed + a * n * n;
        const uint64_t *offsets = out->offsets + a * (n + 1);
        for (size_t k = 0; k < n; k++) {
            for (size_t j = 0; j < n; j++) dense[k * n + j] = out->even[a * n + k];
            for (uint64_t i = offsets[k]; i < offsets[k + 1]; i++)
                dense[k * n + (size_t)out->next[i]] += out->value[i];
            for (size_t j = 0; j < n; j++) transposed[j * n + k] = dense[k * n + j];
        }
    }
}

psi_status mdp_transitions_new(psi_ctx *ctx, const psi_mdp *latent, double floor,
                               mdp_transitions *out)
{
    psi_status status = PSI_OK;
    const size_t n = latent->n_states, n_actions = latent->n_actions;
    const uint64_t nnz = latent->offsets[n * n_actions];
    *out = (mdp_transitions){.n_latent = n, .n_actions = n_actions};
    TRY(base_alloc(ctx, n_actions * (n + 1), sizeof *out->offsets, &out->offsets));
    TRY(base_alloc(ctx, nnz, sizeof *out->next, &out->next));
    TRY(base_alloc(ctx, nnz, sizeof *out->value, &out->value));
    TRY(base_alloc(ctx, n_actions * n, sizeof *out->even, &out->even));
    fill_sparse(latent, floor, out);
    if (n <= 2048 && n * n * n_actions <= MOST_DENSE && nnz * CROWDED > n * n * n_actions) {
        TRY(base_alloc(ctx, n * n * n_actions, sizeof *out->dense, &out->dense));
        TRY(base_alloc(ctx, n * n * n_actions, sizeof *out->transposed, &out->transposed));
        fill_dense(out);
    }
done:
    if (status != PSI_OK) mdp_transitions_free(ctx, out);
    return status;
}

// Wider registers where the processor has them. No fused multiply-adds: the bytes stay the same.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

// out = Σ_i x(i) · row i of m; four rows at a time, so that out is read and written less often
WIDE static void combine_rows(size_t n, const double *restrict m, const double *restrict x,
                              double *restrict out)
{
    size_t i = 0;
    for (size_t j = 0; j < n; j++) out[j] = 0.0;
    for (; i + 4 <= n; i += 4) {
        const double x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        const double *restrict m0 = m + i * n, *restrict m1 = m0 + n, *restrict m2 = m1 + n,
                               *restrict m3 = m2 + n;
        for (size_t j = 0; j < n; j++)
            out[j] += (x0 * m0[j] + x1 * m1[j]) + (x2 * m2[j] + x3 * m3[j]);
    }
    for (; i < n; i++) {
        for (size_t j = 0; j < n; j++) out[j] += x[i] * m[i * n + j];
    }
}

void mdp_forward(const mdp_transitions *transitions, size_t action, const double *alpha,
                 double *out)
{
    const size_t n = transitions->n_latent;
    if (transitions->dense) {
        combine_rows(n, transitions->dense + action * n * n, alpha, out);
        return;
    }
    const uint64_t *offsets = transitions->offsets + action * (n + 1);
    const double *even = transitions->even + action * n;
    double spread = 0.0;
    for (size_t k = 0; k < n; k++) spread += alpha[k] * even[k];
    for (size_t j = 0; j < n; j++) out[j] = spread;
    for (size_t k = 0; k < n; k++) {
        const double mass = alpha[k];
        for (uint64_t i = offsets[k]; i < offsets[k + 1]; i++)
            out[transitions->next[i]] += mass * transitions->value[i];
    }
}

void mdp_backward(const mdp_transitions *transitions, size_t action, const double *x, double *out)
{
    const size_t n = transitions->n_latent;
    if (transitions->dense) {
        combine_rows(n, transitions->transposed + action * n * n, x, out);
        return;
    }
    const uint64_t *offsets = transitions->offsets + action * (n + 1);
    const double *even = transitions->even + action * n;
    double total = 0.0;
    for (size_t j = 0; j < n; j++) total += x[j];
    for (size_t k = 0; k < n; k++) {
        double sum = even[k] * total;
        for (uint64_t i = offsets[k]; i < offsets[k + 1]; i++)
            sum += transitions->value[i] * x[transitions->next[i]];
        out[k] = sum;
    }
}
