// A few observations of every latent state, and how they are shown: images as images, few numbers
// as coordinates, long vectors as lines.
#ifndef PSI_REPORT_SAMPLES_H
#define PSI_REPORT_SAMPLES_H

#include "report/text.h"
#include <psifold/cluster.h>

typedef enum report_look {
    REPORT_LOOK_IMAGE,   // bytes of (H, W), stacked (C, H, W) or coloured (H, W, 3)
    REPORT_LOOK_POINT,   // two numbers
    REPORT_LOOK_NUMBERS, // one, three or four
    REPORT_LOOK_VECTOR   // more: a line
} report_look;

typedef struct report_samples {
    psi_ctx *ctx;
    const psi_trajectories *data;
    report_look look;
    size_t planes, height, width, channels; // of an image; planes stand side by side
    size_t dimensions;                      // numbers of an observation
    size_t n_latent, per_state;
    uint64_t *rows;     // (n_latent, per_state)
    size_t *found;      // (n_latent) rows there are, ≤ per_state
    double *low, *high; // (dimensions) over all samples
    double *values;     // (n_latent, per_state, dimensions) unless images
} report_samples;

// Chooses at random, by seed: labels (of data's observations) are −1 … n_latent−1. Rows that the
// file does not really have are passed over.
psi_status report_samples_new(psi_ctx *ctx, const psi_trajectories *data, const int32_t *labels,
                              size_t n_latent, uint64_t seed, report_samples **out);
void report_samples_free(report_samples *samples);

// Room for other rows of the same data, shown in the same way: none are chosen yet.
psi_status report_samples_like(const report_samples *like, size_t per_state, report_samples **out);

// Fills rows at random, by seed and stream.
psi_status report_samples_choose(report_samples *samples, const int32_t *labels, uint64_t seed,
                                 uint32_t stream);

// Reads what is shown of rows that were chosen: nothing for images, which are read when drawn.
psi_status report_samples_load(report_samples *samples);

// Number i of an observation, whatever its type.
double report_number(psi_dtype dtype, const void *row, size_t i);

// One observation in words: "3 x 28 x 28 bytes, shown as images".
void report_samples_describe(const report_samples *samples, report_text *text);

// One image on a sheet: its planes side by side, every shrink × shrink pixels averaged.
typedef struct report_frame {
    size_t width, height;
} report_frame;
report_frame report_samples_frame(const report_samples *samples, size_t shrink);
void report_samples_paint(const report_samples *samples, const uint8_t *image, size_t shrink,
                          size_t sheet_width, uint8_t *to);

// How the samples of all latent states are drawn, chosen so that they stay below a number of bytes.
typedef struct report_drawing {
    size_t shown;  // samples of a state
    size_t shrink; // pixels of an image that become one
    size_t first;  // latent states beyond the first so many (by size) get no picture
} report_drawing;

// order (n_latent): the latent states, largest first. Draws all of them into pictures (n_latent
// texts, each with its ctx set).
psi_status report_samples_draw(const report_samples *samples, const size_t *order, size_t budget,
                               report_text *pictures, report_drawing *drawing);

#endif
