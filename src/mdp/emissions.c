// Emissions: labels with noise, log-likelihoods of a network, rewards, and the known terminal.
#include "mdp/emissions.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>

static psi_status check_log_likelihoods(psi_ctx *ctx, const psi_paths *paths,
                                        const psi_emissions *emissions)
{
    const size_t rows = paths->n_transitions + paths->n_episodes;
    size_t entries;
    if (emissions->per_row == 0 || !base_mul(rows, emissions->per_row, &entries) ||
        (!emissions->index && emissions->per_row != paths->n_latent)) {
        return FAIL(ctx, PSI_ESHAPE, "%zu log-likelihoods per row for %zu latent states",
                    emissions->per_row, paths->n_latent);
    }
    if (isnan(emissions->absent) || emissions->absent == (float)HUGE_VAL)
        return FAIL(ctx, PSI_EUSAGE, "the log-likelihood of absent latent states is not a number");
    for (size_t i = 0; i < entries; i++) {
        const float value = emissions->log_likelihood[i];
        if (isnan(value) || value == (float)HUGE_VAL) {
            return FAIL(ctx, PSI_ENUMERIC,
                        "a log-likelihood of row %zu is infinite or not a "
                        "number",
                        i / emissions->per_row);
        }
        if (!emissions->index) continue;
        const int32_t k = emissions->index[i];
        if (k < -1 || (k >= 0 && (size_t)k >= paths->n_latent)) {
            return FAIL(ctx, PSI_EDATA, "row %zu names latent state %d of %zu",
                        i / emissions->per_row, k, paths->n_latent);
        }
    }
    return PSI_OK;
}

psi_status mdp_check_smoothing(psi_ctx *ctx, const psi_paths *paths,
                               const psi_smooth_options *options)
{
    if (!(options->noise >= 0.0 && options->noise < 1.0) ||
        !(options->floor > 0.0 && options->floor <= 1.0) || !(options->keep <= 1.0)) {
        return FAIL(ctx, PSI_EUSAGE,
                    "smoothing with noise %g, floor %g and keep %g: they are "
                    "probabilities, and the floor is above 0",
                    options->noise, options->floor, options->keep);
    }
    if (paths->n_latent < (paths->has_terminal ? 2u : 1u) && paths->n_transitions > 0)
        return FAIL(ctx, PSI_EDATA, "there is no latent state to be in before the end");
    if (options->emissions) {
        const psi_status status = check_log_likelihoods(ctx, paths, options->emissions);
        if (status != PSI_OK) return status;
    }
    if (!options->reward_class) return PSI_OK;
    if (options->n_reward_classes == 0 || !(options->reward_floor > 0.0))
        return FAIL(ctx, PSI_EUSAGE, "reward classes need a number of them and a floor above 0");
    for (size_t t = 0; t < paths->n_transitions; t++) {
        const int32_t class = options->reward_class[t];
        if (class < 0 || (size_t) class >= options->n_reward_classes) {
            return FAIL(ctx, PSI_EDATA, "transition %zu has reward class %d of %zu", t, class,
                        options->n_reward_classes);
        }
    }
    return PSI_OK;
}

static void fill(double *emission, size_t n, double value)
{
    for (size_t k = 0; k < n; k++) emission[k] = value;
}

// exp(log-likelihood − the largest of the latent states first … K−1), which is returned.
static double network_emission(const psi_emissions *from, size_t row, size_t first, size_t n,
                               double *emission)
{
    const float *value = from->log_likelihood + row * from->per_row;
    const int32_t *index = from->index ? from->index + row * from->per_row : NULL;
    double largest = -HUGE_VAL;
    if (!index) {
        for (size_t k = first; k < n; k++) largest = fmax(largest, (double)value[k]);
        if (isinf(largest)) {
            fill(emission, n, 1.0);
            return 0.0;
        }
        for (size_t k = 0; k < n; k++) emission[k] = exp((double)value[k] - largest);
        return largest;
    }
    size_t listed = 0;
    for (size_t i = 0; i < from->per_row; i++) {
        if (index[i] < (int32_t)first) continue;
        largest = fmax(largest, (double)value[i]);
        listed++;
    }
    if (listed < n - first) largest = fmax(largest, (double)from->absent);
    if (isinf(largest)) {
        fill(emission, n, 1.0);
        return 0.0;
    }
    fill(emission, n, exp((double)from->absent - largest));
    for (size_t i = 0; i < from->per_row; i++) {
        if (index[i] >= 0) emission[index[i]] = exp((double)value[i] - largest);
    }
    return largest;
}

double mdp_emission(const psi_paths *paths, const psi_smooth_options *options,
                    const double *reward_likelihood, size_t e, size_t t, double *emission)
{
    const size_t n = paths->n_latent, first = paths->has_terminal ? 1 : 0, candidates = n - first;
    const uint64_t transition = paths->episode_offsets[e] + t, row = transition + e;
    const bool last = transition == paths->episode_offsets[e + 1];
    if (paths->has_terminal && last && paths->terminated[e]) {
        fill(emission, n, 0.0);
        emission[0] = 1.0;
        return 0.0;
    }
    const psi_emissions *network = options->emissions;
    const int32_t label = paths->labels[row];
    double scale = 0.0;
    if (network && (network->every_row || label < 0)) {
        scale = network_emission(network, row, first, n, emission);
    } else if (label < 0 || candidates == 1) {
        fill(emission, n, 1.0);
    } else {
        fill(emission, n, options->noise / (double)(candidates - 1));
        emission[label] = 1.0 - options->noise;
    }
    if (paths->has_terminal) emission[0] = 0.0;
    if (!reward_likelihood || last) return scale;
    const size_t a = (size_t)paths->actions[transition];
    const size_t class = (size_t)options->reward_class[transition];
    const double *likelihood = reward_likelihood + (a * options->n_reward_classes + class) * n;
    for (size_t k = 0; k < n; k++) emission[k] *= likelihood[k];
    return scale;
}
