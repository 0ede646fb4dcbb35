// Observations as a network takes them: vectors as they are, images with their channels first.
#ifndef PSI_PROBLEM_OBSERVE_H
#define PSI_PROBLEM_OBSERVE_H

#include <psifold/data.h>
#include <psifold/nn.h>

typedef struct problem_inputs {
    const psi_observations *observations;
    psi_dtype dtype;  // PSI_UINT8 or PSI_FLOAT32: what gather delivers
    psi_shape shape;  // {D} or {C, H, W}
    size_t row_bytes; // of one input
    bool is_image;
    bool channels_last;  // the observations are (H, W, C)
    size_t frames;       // … or several of these, (n, H, W, C) or (n, C, H, W)
    float *mean, *scale; // (D or C) so that (x − mean) · scale has mean 0 and variance 1; 0: not
                         // looked at yet
    bool separate_channels; // what one channel shows says nothing about the others: dials, not RGB
    size_t n_coarse;        // cells of an image's coarse outline; 0 for vectors
    size_t coarse_side;     // pixels that make a cell, along either side
    float *coarse_mean;     // (n_coarse) …
    float coarse_scale;     // … and 1 over the deviation from it
    unsigned char *raw;     // (raw_rows, observation's row_bytes) where a conversion is needed
    size_t raw_rows;
    uint64_t passed; // inputs gathered since it was made: each goes through a network once
} problem_inputs;

// as_vectors takes images for vectors, too. PSI_EUNSUPPORTED for shapes that are neither vectors
// nor images.
psi_status problem_inputs_new(psi_ctx *ctx, const psi_observations *observations, bool as_vectors,
                              problem_inputs *out);
// Looks at up to 4,096 observations of all processes for mean, scale and what is known of images:
// for those who learn. PSI_EDATA if one of them is not a finite number.
psi_status problem_inputs_look(psi_ctx *ctx, problem_inputs *inputs);
// At most so many inputs, evenly from those of all processes: every process gets them all, in a
// block of the caller's.
psi_status problem_inputs_some(psi_ctx *ctx, problem_inputs *inputs, size_t most,
                               unsigned char **out, size_t *n);
// PSI_ESHAPE unless a network of this specification takes them.
psi_status problem_inputs_match(psi_ctx *ctx, const problem_inputs *inputs,
                                const psi_net_spec *spec);
void problem_inputs_free(psi_ctx *ctx, problem_inputs *inputs);

// Copies the inputs of these rows to out; used by one thread at a time.
psi_status problem_inputs_gather(void *inputs, psi_ctx *ctx, const uint64_t *rows, size_t n,
                                 void *out);

#endif
