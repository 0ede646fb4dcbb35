// What may be done to images before a network learns from them, found out by looking at some: they
// may be moved by a few pixels, and they may be seen in coarse outline.
#ifndef PSI_PROBLEM_IMAGES_H
#define PSI_PROBLEM_IMAGES_H

#include "base/random.h"
#include "problem/observe.h"

// Looks at up to 256 images: fills in separate_channels and the outline's statistics.
psi_status problem_images_look(psi_ctx *ctx, problem_inputs *inputs);

// Moves each of n images by up to `most` pixels either way, edges repeated: what it shows stays the
// same, its pixels do not. Separate channels move separately. Vectors stay as they are.
void problem_images_shift(const problem_inputs *inputs, base_random *random, size_t most, size_t n,
                          void *images);

// The coarse outlines (n, n_coarse) of n images: means over squares of pixels, standardised.
void problem_images_outline(const problem_inputs *inputs, size_t n, const void *images, float *out);

#endif
