// The certificate: Definition 2 on trajectories that the model has not seen.
#include "verdict/certificate.h"

#include "base/context.h"

#include <math.h>
#include <string.h>

void psi_certificate_free(psi_ctx *ctx, psi_certificate *certificate)
{
    if (!certificate || FREED(ctx, certificate)) return;
    base_free(ctx, certificate->visits);
    base_free(ctx, certificate->reward_error);
    base_free(ctx, certificate->sf_error);
    base_free(ctx, certificate->reward_doubt);
    base_free(ctx, certificate->sf_doubt);
    base_retire(ctx, certificate);
}

static psi_status certificate_new(psi_ctx *ctx, size_t n_latent, size_t n_actions,
                                  psi_certificate **out)
{
    psi_status status = PSI_OK;
    psi_certificate *made = NULL;
    const size_t pairs = n_latent * n_actions;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *made, &made));
    made->n_latent = n_latent;
    made->n_actions = n_actions;
    TRY(base_alloc_zero(ctx, pairs, sizeof *made->visits, &made->visits));
    TRY(base_alloc_zero(ctx, pairs, sizeof(double), &made->reward_error));
    TRY(base_alloc_zero(ctx, pairs, sizeof(double), &made->sf_error));
    TRY(base_alloc_zero(ctx, pairs, sizeof(double), &made->reward_doubt));
    TRY(base_alloc_zero(ctx, pairs, sizeof(double), &made->sf_doubt));
    *out = made;
    made = NULL;
done:
    psi_certificate_free(ctx, made);
    return status;
}

// ‖x F‖₂ for a row vector x, most of which is zero; sum (K) is scratch.
static double through_f(const psi_lsfm *lsfm, const double *x, double *sum)
{
    const size_t k = lsfm->n_latent;
    double square = 0.0;
    memset(sum, 0, k * sizeof *sum);
    for (size_t row = 0; row < k; row++) {
        if (x[row] == 0.0) continue;
        for (size_t column = 0; column < k; column++)
            sum[column] += x[row] * lsfm->f[row * k + column];
    }
    for (size_t column = 0; column < k; column++) square += sum[column] * sum[column];
    return sqrt(square);
}

// The longest row of F: no probability moved from one latent state to another changes ψ by more
// than twice γ times that.
static double longest_row(const psi_lsfm *lsfm)
{
    double longest = 0.0;
    for (size_t row = 0; row < lsfm->n_latent; row++) {
        double square = 0.0;
        for (size_t i = 0; i < lsfm->n_latent; i++) {
            const double f = lsfm->f[row * lsfm->n_latent + i];
            square += f * f;
        }
        longest = fmax(longest, sqrt(square));
    }
    return longest;
}

// One pair (k, a): its errors, and two standard errors of each. difference (2, K) is scratch.
static void judge_pair(const psi_mdp *model, const psi_lsfm *lsfm, const psi_counts *seen,
                       size_t pair, double reach, double *difference, psi_certificate *out)
{
    const double n = seen->visits[pair], rewards = seen->rewards[pair];
    double spread = 0.0; // Σ p (1 − p)
    memset(difference, 0, lsfm->n_latent * sizeof *difference);
    for (uint64_t i = seen->offsets[pair]; i < seen->offsets[pair + 1]; i++) {
        const double p = seen->count[i] / n;
        difference[seen->next[i]] += p;
        spread += p * (1.0 - p);
    }
    for (uint64_t i = model->offsets[pair]; i < model->offsets[pair + 1]; i++) {
        difference[model->next[i]] -= model->probability[i];
    }
    out->visits[pair] = (uint64_t)n;
    out->sf_error[pair] = lsfm->gamma * through_f(lsfm, difference, difference + lsfm->n_latent);
    out->sf_doubt[pair] = 2.0 * lsfm->gamma * reach * sqrt(spread / n);
    out->reward_error[pair] = fabs(model->reward[pair] - seen->reward_sum[pair] / rewards);
    out->reward_doubt[pair] = 2.0 * sqrt(seen->reward_scatter[pair] / rewards / rewards);
}

// By what was seen on the trajectories.
static psi_status certify(psi_ctx *ctx, const psi_mdp *model, double gamma, const psi_counts *seen,
                          double epsilon_reward, double epsilon_sf, psi_certificate **out)
{
    psi_status status = PSI_OK;
    psi_certificate *made = NULL;
    psi_lsfm *lsfm = NULL;
    psi_partition *merged = NULL;
    double *difference = NULL;
    *out = NULL;
    TRY(certificate_new(ctx, model->n_states, model->n_actions, &made));
    TRY(psi_lsfm_new(ctx, model, gamma, &lsfm));
    TRY(base_alloc(ctx, 2 * model->n_states, sizeof *difference, &difference));
    made->epsilon_reward = epsilon_reward;
    made->epsilon_sf = epsilon_sf;
    const double reach = longest_row(lsfm);
    for (size_t pair = 0; pair < model->n_states * model->n_actions; pair++) {
        if (pair % 1024 == 0) TRY(base_cancelled(ctx));
        if (model->terminal[pair / model->n_actions]) continue;
        if (seen->visits[pair] == 0.0) {
            made->unseen++;
            continue;
        }
        judge_pair(model, lsfm, seen, pair, reach, difference, made);
        const double reward = made->reward_error[pair] - made->reward_doubt[pair];
        const double sf = made->sf_error[pair] - made->sf_doubt[pair];
        made->judged += made->visits[pair];
        if (reward > epsilon_reward || sf > epsilon_sf) made->violating += made->visits[pair];
        made->worst_reward = fmax(made->worst_reward, reward);
        made->worst_sf = fmax(made->worst_sf, sf);
    }
    psi_merge_options merging = psi_merge_defaults();
    merging.reward_tolerance = 0.2 * epsilon_reward;
    TRY(psi_merge(ctx, seen, &merging, &merged));
    made->mergeable = model->n_states - merged->n_blocks;
    *out = made;
    made = NULL;
done:
    base_free(ctx, difference);
    psi_partition_free(ctx, merged);
    psi_lsfm_free(ctx, lsfm);
    psi_certificate_free(ctx, made);
    return status;
}

psi_status psi_certify(psi_ctx *ctx, const psi_mdp *model, double gamma, const psi_paths *paths,
                       double epsilon_reward, double epsilon_sf, psi_certificate **out)
{
    psi_status status = PSI_OK;
    psi_counts *seen = NULL;
    *out = NULL;
    if (FREED(ctx, model)) return PSI_EUSAGE;
    if (model->n_states != paths->n_latent || model->n_actions != paths->n_actions) {
        return FAIL(ctx, PSI_ESHAPE,
                    "the model has %zu latent states and %zu actions, the trajectories %zu and %zu",
                    model->n_states, model->n_actions, paths->n_latent, paths->n_actions);
    }
    TRY(psi_counts_new(ctx, paths, &seen));
    TRY(certify(ctx, model, gamma, seen, epsilon_reward, epsilon_sf, out));
done:
    psi_counts_free(ctx, seen);
    return status;
}

// ---- of a clustering ----------------------------------------------------------------------------

// The labels of one part of the episodes: the held-out ones, or the others.
static void labels_of_part(const cluster_problem *problem, const int32_t *labels, bool held_out,
                           int32_t *out)
{
    const psi_trajectories *data = problem->data;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
        const bool wanted = begin < end && (problem->held_out[begin] != 0) == held_out;
        for (uint64_t row = begin + e; row <= end + e; row++) out[row] = wanted ? labels[row] : -1;
    }
}

psi_status verdict_certify(psi_ctx *ctx, const cluster_problem *problem, psi_run *result)
{
    psi_status status = PSI_OK;
    int32_t *part = NULL;
    psi_counts *counts = NULL, *held_out = NULL;
    psi_mdp *model = NULL;
    psi_partition *merged = NULL;
    const psi_paths all = problem_paths(problem, result->labels, result->n_latent);
    TRY(base_alloc(ctx, problem->n_rows, sizeof *part, &part));
    const psi_paths paths = problem_paths(problem, part, result->n_latent);
    labels_of_part(problem, result->labels, false, part);
    TRY(psi_counts_together(ctx, &paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, &model));
    if (problem->n_held_out > 0) {
        labels_of_part(problem, result->labels, true, part);
        TRY(psi_counts_together(ctx, &paths, &held_out));
    }
    TRY(certify(ctx, model, result->gamma, held_out ? held_out : counts, result->epsilon_reward,
                result->epsilon_sf, &result->certificate));
    // whether two latent states could be one is asked of all trajectories
    psi_counts_free(ctx, counts);
    counts = NULL;
    TRY(psi_counts_together(ctx, &all, &counts));
    psi_merge_options merging = psi_merge_defaults();
    merging.reward_tolerance = 0.1 * problem->rewards.spacing;
    TRY(psi_merge(ctx, counts, &merging, &merged));
    result->certificate->mergeable = result->n_latent - merged->n_blocks;
    if (result->confidence) result->certificate->mergeable = 0; // evidence has joined all it could
done:
    psi_partition_free(ctx, merged);
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, held_out);
    psi_counts_free(ctx, counts);
    base_free(ctx, part);
    return status;
}
