#include "evidence/law.h"

#include <math.h>

// Stirling's series; what is left out is below 1e-10 for x ≥ 10.
static double log_gamma(double x)
{
    const double z = 1.0 / x, z2 = z * z;
    return (x - 0.5) * log(x) - x + 0.91893853320467274178 +
           z * (1.0 / 12.0 - z2 * (1.0 / 360.0 - z2 / 1260.0));
}

double psi_log_rising(double x, double n)
{
    double product = 1.0;
    if (n <= 16.0) {
        for (int draws = n > 0.0 ? (int)n : 0; draws > 0; draws--, x += 1.0) product *= x;
        return log(product);
    }
    while (x < 10.0) {
        product *= x;
        x += 1.0;
        n -= 1.0;
    }
    return log(product) + log_gamma(x + n) - log_gamma(x);
}

double evidence_of_mean(double p, double q, double v)
{
    return 0.5 * (v * q * q / (1.0 + v * p) - log1p(v * p));
}

double evidence_same(double bayes_factor)
{
    if (bayes_factor < -30.0) return bayes_factor + M_LN2;
    return M_LN2 - log1p(exp(-bayes_factor));
}

double evidence_either(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return high - M_LN2 + (low - high > -30.0 ? log1p(exp(low - high)) : 0.0);
}

void evidence_support_add(evidence_support *support, double first, double second)
{
    support->sum += psi_log_rising(first + 0.5, second) - psi_log_rising(0.5, second);
}

double evidence_support_factor(const evidence_support *support, double n, double m)
{
    const double prior = 0.5 * support->kinds;
    if (support->kinds < 2.0) return HUGE_VAL; // one outcome has no shares
    return support->sum - psi_log_rising(n + prior, m) + psi_log_rising(prior, m);
}

double evidence_two(double one, double two, double factor)
{
    return factor == HUGE_VAL ? two : evidence_either(two, one - factor);
}

double evidence_one_group(double n, double m)
{
    return psi_log_rising(n, m) - psi_log_rising(1.0, m - 1.0);
}
