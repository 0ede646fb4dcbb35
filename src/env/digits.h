// Images of digits: read from MNIST's IDX files or drawn with strokes. Only the lock needs them.
#ifndef PSI_ENV_DIGITS_H
#define PSI_ENV_DIGITS_H

#include "base/random.h"

#include <psifold/env.h>

enum { ENV_DIGIT_BYTES = PSI_DIGIT_SIDE * PSI_DIGIT_SIDE };

typedef struct env_digits {
    uint32_t first[PSI_MAX_DIGITS + 1]; // images first[d] … first[d + 1] − 1 show digit d
    uint8_t *images;                    // (first[n], 28, 28)
} env_digits;

// One of the images of a digit, uniformly.
static inline const uint8_t *env_digits_pick(const env_digits *digits, unsigned digit,
                                             base_random *random)
{
    const uint32_t from = digits->first[digit], count = digits->first[digit + 1] - from;
    return digits->images + (size_t)(from + base_random_below(random, count)) * ENV_DIGIT_BYTES;
}

// The digits a checked task asks for. PSI_EMISSING if MNIST is not in the cache folder.
psi_status env_digits_new(psi_ctx *ctx, const psi_task *task, uint64_t seed, env_digits **out);
void env_digits_free(psi_ctx *ctx, env_digits *digits);

// An IDX file in memory; data points into it.
typedef struct env_idx {
    size_t rank;
    size_t dim[PSI_MAX_RANK];
    const uint8_t *data;
} env_idx;

// Reads the head of an IDX file of bytes. PSI_EFORMAT, naming the file, if it is anything else, or
// longer or shorter than its head says.
psi_status env_idx_parse(psi_ctx *ctx, const char *name, const uint8_t *bytes, size_t size,
                         env_idx *out);

// Sorts the images of an images and a labels file by digit. PSI_EFORMAT if the two do not belong
// together or do not show every digit.
psi_status env_digits_from_idx(psi_ctx *ctx, const char *name, const env_idx *images,
                               const env_idx *labels, env_digits **out);
psi_status env_digits_mnist(psi_ctx *ctx, bool test, env_digits **out);

// per_digit renderings of the first n_digits glyphs. Image k of a digit depends on seed, purpose,
// digit and k alone; drawn in parallel.
psi_status env_digits_drawn(psi_ctx *ctx, uint64_t seed, uint32_t purpose, size_t n_digits,
                            uint32_t per_digit, env_digits **out);

// Strokes of a glyph: curves through points, in a box of 100 × 100 with y downwards.
typedef struct env_stroke {
    uint8_t n; // points; 2 make a straight line
    int8_t point[14][2];
} env_stroke;

typedef struct env_glyph {
    uint8_t n;
    const env_stroke *strokes;
} env_glyph;

// The ways in which people write this digit (0 … 15); at least one.
const env_glyph *env_glyph_variants(unsigned digit, unsigned *n);

#endif
