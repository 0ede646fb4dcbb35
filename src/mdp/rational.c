// What fraction is a double? Continued fractions and decimals, then its bits.
#include "mdp/rational.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LARGEST_DENOMINATOR = 1 << 20, MOST_TERMS = 24, MOST_DIGITS = 15, ROUNDED = 100000 };

typedef struct fraction {
    double p, q; // whole numbers below 2^53
} fraction;

// The first convergent of x > 0 that is close enough, with a denominator below the limit.
static bool as_simple_fraction(double x, double close, double limit, fraction *out)
{
    double p1 = 1.0, p2 = 0.0, q1 = 0.0, q2 = 1.0, rest = x;
    for (int i = 0; i < MOST_TERMS; i++) {
        const double whole = floor(rest), p = whole * p1 + p2, q = whole * q1 + q2;
        if (q > limit || p >= 0x1p53) return false;
        if (p > 0.0 && fabs(p / q - x) <= close) {
            *out = (fraction){p, q};
            return true;
        }
        if (rest == whole) return false;
        rest = 1.0 / (rest - whole);
        p2 = p1, p1 = p, q2 = q1, q1 = q;
    }
    return false;
}

static bool as_decimal(double x, fraction *out)
{
    double scale = 1.0;
    for (int digits = 1; digits <= MOST_DIGITS; digits++) {
        scale *= 10.0;
        const double p = nearbyint(x * scale);
        if (p >= 0x1p53) return false;
        if (p > 0.0 && p / scale == x) {
            *out = (fraction){p, scale};
            return true;
        }
    }
    return false;
}

// Decimals of six digits and more that are a simple fraction, rounded, stand for it: 0.142857 is
// 1/7. Of all decimals of d digits about one in a thousand is that by chance, since a denominator
// may be sqrt(10^d)/22 at most; taking it for the fraction then changes it by half a digit.
static bool as_fraction(double x, fraction *out)
{
    fraction decimal = {0.0, 1.0};
    const bool is_decimal = as_decimal(x, &decimal);
    if (is_decimal && decimal.p >= ROUNDED) {
        const double limit = fmin(sqrt(0.002 * decimal.q), LARGEST_DENOMINATOR);
        if (as_simple_fraction(x, 0.5 / decimal.q, limit, out)) return true;
    }
    if (as_simple_fraction(x, x * 0x1p-51, LARGEST_DENOMINATOR, out)) return true;
    *out = decimal;
    return is_decimal;
}

uint64_t mdp_inverse(uint64_t a)
{
    uint64_t power = MDP_PRIME - 2, result = 1;
    for (; power; power >>= 1, a = mdp_times(a, a))
        if (power & 1) result = mdp_times(result, a);
    return result;
}

uint64_t mdp_residue(double x)
{
    fraction f;
    if (x == 0.0) return 0;
    if (x < 0.0) return MDP_PRIME - mdp_residue(-x);
    if (as_fraction(x, &f)) {
        const uint64_t p = (uint64_t)f.p % MDP_PRIME, q = (uint64_t)f.q % MDP_PRIME;
        return q == 1 ? p : mdp_times(p, mdp_inverse(q));
    }
    // x = m · 2^e, and 2^61 = 1 here
    int e;
    const uint64_t m = (uint64_t)(frexp(x, &e) * 0x1p53);
    const int turn = ((e - 53) % 61 + 61) % 61;
    return mdp_times(m % MDP_PRIME, UINT64_C(1) << turn);
}

double mdp_snap(double x)
{
    fraction f;
    if (x == 0.0) return 0.0;
    if (!as_fraction(fabs(x), &f)) return x;
    return copysign(f.p / f.q, x);
}

uint64_t mdp_residue_of(mdp_residues *known, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const size_t at = (size_t)((bits * UINT64_C(0x9E3779B97F4A7C15)) >> 54);
    if (known->bits[at] != bits) {
        known->residue[at] = mdp_residue(x);
        known->bits[at] = bits;
    }
    return known->residue[at];
}
