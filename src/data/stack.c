// Frames are stacked when they are asked for: a stacked observation is its frames one after the
// other, so the rows of a batch become n times as many rows of what lies below.
#include "data/stack.h"

#include "base/checked.h"
#include "base/context.h"

#include <string.h>

// (n), (n · D), or (n, …)
static psi_status stacked_shape(psi_ctx *ctx, const psi_shape *frame, size_t n, psi_shape *out)
{
    *out = *frame;
    if (n == 1) return PSI_OK;
    if (frame->rank == 1) {
        if (base_mul(frame->dim[0], n, &out->dim[0])) return PSI_OK;
        return FAIL(ctx, PSI_ESHAPE, "%zu frames of %zu numbers are too many", n, frame->dim[0]);
    }
    if (frame->rank == PSI_MAX_RANK) {
        return FAIL(ctx, PSI_EUNSUPPORTED, "observations of %zu dimensions cannot be stacked",
                    frame->rank);
    }
    memmove(out->dim + 1, frame->dim, frame->rank * sizeof *frame->dim);
    out->dim[0] = n;
    out->rank = frame->rank + 1;
    return PSI_OK;
}

// How many observations of its episode come before each, as far as they are stacked.
static psi_status count_earlier(psi_ctx *ctx, size_t n_episodes, const uint64_t *episode_offsets,
                                psi_observations *stacked)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, stacked->count, 1, &stacked->earlier));
    for (size_t e = 0; e < n_episodes; e++) {
        const uint64_t begin = episode_offsets[e] + e, end = episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row <= end; row++) {
            stacked->earlier[row] = (uint8_t)base_min(row - begin, stacked->n_frames - 1);
        }
    }
done:
    return status;
}

psi_status psi_observations_stack(psi_ctx *ctx, const psi_observations *frames, size_t n,
                                  size_t n_episodes, const uint64_t *episode_offsets,
                                  psi_observations **out)
{
    psi_status status = PSI_OK;
    psi_observations *stacked = NULL;
    psi_shape shape;
    *out = NULL;
    if (FREED(ctx, frames)) return PSI_EUSAGE;
    const size_t rows = n_episodes == 0 ? 0 : (size_t)episode_offsets[n_episodes] + n_episodes;
    if (n == 0 || n > PSI_MAX_FRAMES || rows != frames->count) {
        return FAIL(ctx, PSI_ESHAPE, "%zu frames of %zu observations in episodes of %zu", n,
                    frames->count, rows);
    }
    TRY(stacked_shape(ctx, &frames->shape, n, &shape));
    TRY(data_observations_new(ctx, frames->dtype, &shape, frames->count, &stacked));
    stacked->frames = frames;
    stacked->n_frames = n;
    if (n == 1) stacked->data = frames->data;
    TRY(count_earlier(ctx, n_episodes, episode_offsets, stacked));
    *out = stacked;
    stacked = NULL;
done:
    psi_observations_free(ctx, stacked);
    return status;
}

// The frames of these observations, oldest first: (n, n_frames). The first of an episode stands for
// those that would be before it.
static void list_frames(const psi_observations *stacked, const uint64_t *rows, size_t n,
                        uint64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const size_t earlier = stacked->earlier[rows[i]];
        for (size_t age = stacked->n_frames; age-- > 0;) {
            *out++ = rows[i] - base_min(age, earlier);
        }
    }
}

psi_status data_stack_gather(psi_ctx *ctx, const psi_observations *stacked, const uint64_t *rows,
                             size_t n, void *out)
{
    enum { AT_ONCE = 4096 }; // a list of them is small beside what they hold
    psi_status status = PSI_OK;
    uint64_t *list = NULL;
    TRY(base_alloc(ctx, base_min(n, AT_ONCE), stacked->n_frames * sizeof *list, &list));
    for (size_t begin = 0; begin < n; begin += AT_ONCE) {
        const size_t count = base_min(AT_ONCE, n - begin);
        list_frames(stacked, rows + begin, count, list);
        TRY(psi_observations_gather(ctx, stacked->frames, list, count * stacked->n_frames,
                                    (char *)out + begin * stacked->row_bytes));
    }
done:
    base_free(ctx, list);
    return status;
}
