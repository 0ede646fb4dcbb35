// Algorithm 1 on tables: reward refinement, then successor-feature refinement until nothing
// changes. The functions f_r and f_i of the paper are the MDP's own numbers here.
#include <psifold/mdp.h>

#include "base/context.h"
#include "base/options.h"
#include "mdp/cover.h"
#include "mdp/csr.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

psi_refine_options psi_refine_defaults(void)
{
    return (psi_refine_options){
        .size = sizeof(psi_refine_options), .gamma = 0.4, .epsilon_sf = 1e-7, .norm = PSI_L2};
}

static psi_status check_options(psi_ctx *ctx, const psi_mdp *mdp, const psi_refine_options *options)
{
    if (!(options->gamma > 0.0 && options->gamma < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "gamma is %g; refinement needs one between 0 and 1",
                    options->gamma);
    }
    if (!(options->epsilon_sf > 0.0) || !(options->epsilon_reward >= 0.0)) {
        return FAIL(ctx, PSI_EUSAGE,
                    "epsilons of %g (rewards) and %g (successor features) cannot "
                    "be used",
                    options->epsilon_reward, options->epsilon_sf);
    }
    return options->start ? mdp_check_complete(ctx, options->start, mdp->n_states) : PSI_OK;
}

// c_1(s) = c_1(s̃) ⟹ Σ_a |r(s,a) − r(s̃,a)| ≤ ε_r (equation 5), inside c_0 = {terminal, rest}.
static psi_status reward_refinement(psi_ctx *ctx, const psi_mdp *mdp, const int32_t *c_0,
                                    double epsilon, psi_partition **out)
{
    if (epsilon == 0.0) {
        double largest = 0.0;
        for (size_t i = 0; i < mdp->n_states * mdp->n_actions; i++)
            largest = fmax(largest, fabs(mdp->reward[i]));
        epsilon = 1e-9 * largest;
    }
    return mdp_cover(ctx, mdp->n_states, mdp->n_actions, 1, mdp->reward, c_0, PSI_L1, epsilon, out);
}

// ψ(s,a) = e_c(s) + γ Fᵀ p(·|s,a), never written down: p is sparse, and a distance needs only the
// rows of F for the blocks that two states enter with different probabilities.
typedef struct sparse_features {
    const psi_partition *c;
    const psi_lsfm *lsfm;
    mdp_csr rows; // p(j|s,a) over blocks
    size_t n_actions;
    double gamma;
    psi_norm norm;
    double *difference; // (K)
} sparse_features;

// difference += γ weight · row block of F
static void add_row(sparse_features *f, int32_t block, double weight)
{
    const size_t n = f->c->n_blocks;
    cblas_daxpy((int)n, f->gamma * weight, f->lsfm->f + (size_t)block * n, 1, f->difference, 1);
}

// ‖ψ(s,a) − ψ(t,a)‖
static double action_distance(sparse_features *f, size_t s, size_t t, size_t a)
{
    const size_t row_s = s * f->n_actions + a, row_t = t * f->n_actions + a;
    uint64_t i = f->rows.offsets[row_s], j = f->rows.offsets[row_t];
    const uint64_t end_i = f->rows.offsets[row_s + 1], end_j = f->rows.offsets[row_t + 1];
    const int32_t from = f->c->label[s], other = f->c->label[t];
    bool differs = from != other;
    if (differs) {
        f->difference[from] += 1.0;
        f->difference[other] -= 1.0;
    }
    while (i < end_i || j < end_j) {
        const int32_t block_i = i < end_i ? f->rows.column[i] : INT32_MAX;
        const int32_t block_j = j < end_j ? f->rows.column[j] : INT32_MAX;
        double weight = 0.0;
        if (block_i <= block_j) weight += f->rows.value[i++];
        if (block_j <= block_i) weight -= f->rows.value[j++];
        if (weight == 0.0) continue;
        add_row(f, block_i < block_j ? block_i : block_j, weight);
        differs = true;
    }
    if (!differs) return 0.0;
    const int n = (int)f->c->n_blocks;
    const double norm =
        f->norm == PSI_L1 ? cblas_dasum(n, f->difference, 1) : cblas_dnrm2(n, f->difference, 1);
    memset(f->difference, 0, f->c->n_blocks * sizeof *f->difference);
    return norm;
}

static double feature_distance(void *user, size_t s, size_t t)
{
    sparse_features *f = user;
    double total = 0.0;
    for (size_t a = 0; a < f->n_actions; a++) total += action_distance(f, s, t, a);
    return total;
}

// Σ_a ⟨ψ(s,a), d_a⟩ = Σ_a d_a(c(s)) + γ p(·|s,a)·(F d_a) for a direction of length 1.
static psi_status project(psi_ctx *ctx, const sparse_features *f, size_t n_states,
                          double *projection)
{
    psi_status status = PSI_OK;
    const size_t n = f->c->n_blocks, size = f->n_actions * n;
    double *direction = NULL, *through = NULL;
    if (size > INT32_MAX) return FAIL(ctx, PSI_ELIMIT, "%zu features are too many", size);
    TRY(base_alloc(ctx, size, sizeof *direction, &direction));
    TRY(base_alloc(ctx, size, sizeof *through, &through));
    if (size > 0) mdp_cover_direction(direction, size);
    for (size_t a = 0; a < f->n_actions && n > 0; a++) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)n, f->gamma, f->lsfm->f, (int)n,
                    direction + a * n, 1, 0.0, through + a * n, 1);
    }
    for (size_t s = 0; s < n_states; s++) {
        projection[s] = 0.0;
        for (size_t a = 0; a < f->n_actions; a++) {
            const size_t row = s * f->n_actions + a;
            projection[s] += direction[a * n + (size_t)f->c->label[s]];
            for (uint64_t i = f->rows.offsets[row]; i < f->rows.offsets[row + 1]; i++)
                projection[s] += f->rows.value[i] * through[a * n + (size_t)f->rows.column[i]];
        }
    }
done:
    base_free(ctx, through);
    base_free(ctx, direction);
    return status;
}

// c_{i+1}(s) = c_{i+1}(s̃) ⟹ Σ_a ‖ψ_i(s,a) − ψ_i(s̃,a)‖ ≤ ε_ψ (equation 9).
static psi_status successor_feature_refinement(psi_ctx *ctx, const psi_mdp *mdp,
                                               const psi_partition *c, const int32_t *c_0,
                                               const psi_refine_options *options,
                                               psi_partition **out)
{
    psi_status status = PSI_OK;
    psi_mdp *latent = NULL;
    psi_lsfm *lsfm = NULL;
    double *projection = NULL;
    sparse_features f = {
        .c = c, .n_actions = mdp->n_actions, .gamma = options->gamma, .norm = options->norm};
    *out = NULL;
    TRY(psi_quotient(ctx, mdp, c, &latent, NULL));
    TRY(psi_lsfm_new(ctx, latent, options->gamma, &lsfm));
    TRY(mdp_block_rows(ctx, mdp, c, &f.rows));
    f.lsfm = lsfm;
    TRY(base_alloc_zero(ctx, c->n_blocks, sizeof *f.difference, &f.difference));
    TRY(base_alloc(ctx, mdp->n_states, sizeof *projection, &projection));
    TRY(project(ctx, &f, mdp->n_states, projection));
    TRY(mdp_cover_by(ctx, mdp->n_states, projection, options->recluster ? c_0 : c->label,
                     options->epsilon_sf, feature_distance, &f, out));
done:
    base_free(ctx, projection);
    base_free(ctx, f.difference);
    mdp_csr_free(ctx, &f.rows);
    psi_lsfm_free(ctx, lsfm);
    psi_mdp_free(ctx, latent);
    return status;
}

static psi_status record(psi_ctx *ctx, psi_refinement *refinement, size_t clusters)
{
    const psi_status status = base_resize(ctx, refinement->n_refinements + 1,
                                          sizeof *refinement->clusters, &refinement->clusters);
    if (status == PSI_OK) refinement->clusters[refinement->n_refinements++] = clusters;
    return status;
}

psi_status psi_refine(psi_ctx *ctx, const psi_mdp *mdp, const psi_refine_options *options,
                      psi_refinement **out)
{
    *out = NULL;
    if (FREED(ctx, mdp)) return PSI_EUSAGE;
    if (options && !base_options_fit(ctx, options, sizeof *options, "psi_refine_defaults"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const psi_refine_options chosen = options ? *options : psi_refine_defaults();
    const size_t limit = chosen.max_refinements ? chosen.max_refinements : mdp->n_states + 2;
    psi_refinement *refinement = NULL;
    psi_partition *next = NULL;
    int32_t *c_0 = NULL;
    TRY(check_options(ctx, mdp, &chosen));
    TRY(psi_mdp_check(ctx, mdp, true));
    TRY(base_alloc_zero(ctx, 1, sizeof *refinement, &refinement));
    TRY(base_alloc(ctx, mdp->n_states, sizeof *c_0, &c_0));
    for (size_t s = 0; s < mdp->n_states; s++)
        c_0[s] = 2 * (chosen.start ? chosen.start->label[s] : 0) + (mdp->terminal[s] != 0);

    TRY(reward_refinement(ctx, mdp, c_0, chosen.epsilon_reward, &refinement->partition));
    TRY(record(ctx, refinement, refinement->partition->n_blocks));
    while (!refinement->converged && refinement->n_refinements < limit) {
        TRY(base_cancelled(ctx));
        TRY(successor_feature_refinement(ctx, mdp, refinement->partition, c_0, &chosen, &next));
        TRY(record(ctx, refinement, next->n_blocks));
        TRY(psi_partition_equal(ctx, refinement->partition, next, &refinement->converged));
        psi_partition_free(ctx, refinement->partition);
        refinement->partition = next;
        next = NULL;
    }
    // a start may keep terminal states apart
    TRY(psi_partition_canonical(ctx, refinement->partition, chosen.start ? NULL : mdp->terminal));
    *out = refinement;
    refinement = NULL;
done:
    base_free(ctx, c_0);
    psi_partition_free(ctx, next);
    psi_refinement_free(ctx, refinement);
    return status;
}

void psi_refinement_free(psi_ctx *ctx, psi_refinement *refinement)
{
    if (!refinement || FREED(ctx, refinement)) return;
    psi_partition_free(ctx, refinement->partition);
    base_free(ctx, refinement->clusters);
    base_retire(ctx, refinement);
}
