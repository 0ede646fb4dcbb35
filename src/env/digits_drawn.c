// Digits drawn with a pen: a glyph is distorted smoothly, slanted, tilted, scaled and shifted, its
// curves are cut into short segments, and a pixel is as white as the pen covers it. Only additions,
// products, quotients and square roots are used, which IEEE 754 rounds the same everywhere: a seed
// gives the same bytes on every machine.
#include "env/digits.h"

#include "base/context.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { WARP = 4, PIECES = 6 }; // distortion grid; segments between two points of a curve
enum { MOST_SEGMENTS = 4 * 13 * PIECES };
static const float BOX = 20.0F; // pixels: a glyph is at most this wide and high, as in MNIST

// How one rendering differs from the plain glyph.
typedef struct env_pen {
    float warp[WARP][WARP][2]; // displacement at the grid points, in units of the box
    float slant, tilt;         // shear of x by y, and of y by x
    float width, height;       // pixels
    float shift[2];            // of the middle, pixels
    float radius;              // of the stroke, pixels
    float softness;            // how many pixels the edge takes
} env_pen;

typedef struct point {
    float x, y;
} point;

// Where the pen goes: segments, one after the other.
typedef struct env_path {
    int n;
    point from[MOST_SEGMENTS], to[MOST_SEGMENTS];
} env_path;

static float between(base_random *random, float low, float high)
{
    return low + (high - low) * (float)base_random_uniform(random);
}

// Bell-shaped on (−1, 1): the mean of three uniform numbers.
static float around_zero(base_random *random)
{
    float sum = 0.0F;
    for (int i = 0; i < 3; i++) sum += between(random, -1.0F, 1.0F);
    return sum / 3.0F;
}

static env_pen draw_pen(base_random *random)
{
    env_pen pen;
    for (int i = 0; i < WARP; i++) {
        for (int j = 0; j < WARP; j++) {
            for (int k = 0; k < 2; k++) pen.warp[i][j][k] = 0.16F * around_zero(random);
        }
    }
    pen.slant = 0.12F + 0.45F * around_zero(random);
    pen.tilt = 0.18F * around_zero(random);
    pen.height = between(random, 17.0F, 20.5F);
    pen.width = pen.height * between(random, 0.55F, 0.85F);
    for (int k = 0; k < 2; k++) pen.shift[k] = 1.2F * around_zero(random);
    pen.radius = between(random, 0.75F, 1.75F);
    pen.softness = between(random, 0.9F, 1.5F);
    return pen;
}

// A point of the glyph's box, in pixels from the middle.
static point place(const env_pen *pen, float x, float y)
{
    const float last = (float)(WARP - 1);
    const float gx = fminf(fmaxf(x, 0.0F), 1.0F) * last, gy = fminf(fmaxf(y, 0.0F), 1.0F) * last;
    const int i = gy < last - 1.0F ? (int)gy : WARP - 2, j = gx < last - 1.0F ? (int)gx : WARP - 2;
    const float v = gy - (float)i, u = gx - (float)j;
    float moved[2] = {x - 0.5F, y - 0.5F};
    for (int k = 0; k < 2; k++) {
        const float top = pen->warp[i][j][k] * (1.0F - u) + pen->warp[i][j + 1][k] * u;
        const float low = pen->warp[i + 1][j][k] * (1.0F - u) + pen->warp[i + 1][j + 1][k] * u;
        moved[k] += top * (1.0F - v) + low * v;
    }
    const float wide = moved[0] * pen->width, high = moved[1] * pen->height;
    return (point){wide - pen->slant * high, high + pen->tilt * wide};
}

// Whitens the pixels near the segment from a to b.
static void draw_segment(const env_pen *pen, point a, point b, float white[ENV_DIGIT_BYTES])
{
    const float reach = pen->radius + pen->softness;
    const float dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    const int left = (int)fmaxf(0.0F, fminf(a.x, b.x) - reach);
    const int top = (int)fmaxf(0.0F, fminf(a.y, b.y) - reach);
    const float side = (float)(PSI_DIGIT_SIDE - 1);
    const int right = (int)fminf(side, fmaxf(a.x, b.x) + reach);
    const int bottom = (int)fminf(side, fmaxf(a.y, b.y) + reach);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            const float px = (float)x + 0.5F - a.x, py = (float)y + 0.5F - a.y;
            float along = square > 0.0F ? (px * dx + py * dy) / square : 0.0F;
            along = fminf(fmaxf(along, 0.0F), 1.0F);
            const float ex = px - along * dx, ey = py - along * dy;
            const float distance = sqrtf(ex * ex + ey * ey);
            const float cover = 0.5F + (pen->radius - distance) / pen->softness;
            float *pixel = &white[y * PSI_DIGIT_SIDE + x];
            *pixel = fmaxf(*pixel, fminf(cover, 1.0F));
        }
    }
}

// A Catmull–Rom curve through the points; at its ends it leaves straight.
static float curve(float before, float from, float to, float after, float t)
{
    const float a = 2.0F * from, b = to - before;
    const float c = 2.0F * before - 5.0F * from + 4.0F * to - after;
    const float d = 3.0F * (from - to) + after - before;
    return 0.5F * (a + t * (b + t * (c + t * d)));
}

static void follow_stroke(const env_pen *pen, const env_stroke *stroke, env_path *path)
{
    const int8_t(*p)[2] = stroke->point;
    point last = place(pen, (float)p[0][0] * 0.01F, (float)p[0][1] * 0.01F);
    for (int i = 0; i + 1 < stroke->n; i++) {
        const int8_t *before = p[i > 0 ? i - 1 : i], *after = p[i + 2 < stroke->n ? i + 2 : i + 1];
        for (int s = 1; s <= PIECES; s++) {
            const float t = (float)s / (float)PIECES;
            float at[2];
            for (int k = 0; k < 2; k++) {
                at[k] =
                    curve((float)before[k], (float)p[i][k], (float)p[i + 1][k], (float)after[k], t);
            }
            const point next = place(pen, at[0] * 0.01F, at[1] * 0.01F);
            path->from[path->n] = last;
            path->to[path->n++] = next;
            last = next;
        }
    }
}

// Puts the path into the middle of the image, shrunk if it is too large, and shifted a little.
static void centre_path(const env_pen *pen, env_path *path)
{
    point low = path->from[0], high = low;
    for (int i = 0; i < path->n; i++) {
        const point ends[] = {path->from[i], path->to[i]};
        for (int k = 0; k < 2; k++) {
            low = (point){fminf(low.x, ends[k].x), fminf(low.y, ends[k].y)};
            high = (point){fmaxf(high.x, ends[k].x), fmaxf(high.y, ends[k].y)};
        }
    }
    const float largest = fmaxf(high.x - low.x, high.y - low.y);
    const float scale = largest > BOX ? BOX / largest : 1.0F, centre = 0.5F * PSI_DIGIT_SIDE;
    const point middle = {0.5F * (low.x + high.x), 0.5F * (low.y + high.y)};
    for (int i = 0; i < path->n; i++) {
        point *ends[] = {&path->from[i], &path->to[i]};
        for (int k = 0; k < 2; k++) {
            ends[k]->x = centre + pen->shift[0] + (ends[k]->x - middle.x) * scale;
            ends[k]->y = centre + pen->shift[1] + (ends[k]->y - middle.y) * scale;
        }
    }
}

static void draw_digit(unsigned digit, base_random *random, uint8_t image[ENV_DIGIT_BYTES])
{
    unsigned variants;
    const env_glyph *variant = env_glyph_variants(digit, &variants);
    const env_glyph *glyph = &variant[base_random_below(random, variants)];
    const env_pen pen = draw_pen(random);
    float white[ENV_DIGIT_BYTES] = {0};
    env_path path = {.n = 0};
    for (int i = 0; i < glyph->n; i++) follow_stroke(&pen, &glyph->strokes[i], &path);
    centre_path(&pen, &path);
    for (int i = 0; i < path.n; i++) draw_segment(&pen, path.from[i], path.to[i], white);
    for (int i = 0; i < ENV_DIGIT_BYTES; i++) image[i] = (uint8_t)(255.0F * white[i] + 0.5F);
}

typedef struct env_drawing {
    env_digits *digits;
    uint64_t seed;
    uint32_t purpose, per_digit;
    size_t n;
} env_drawing;

static void draw_share(void *argument, int thread, int threads)
{
    const env_drawing *drawing = argument;
    size_t begin, end;
    base_slice(drawing->n, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const unsigned digit = (unsigned)(i / drawing->per_digit);
        const uint64_t index = (uint64_t)digit << 32 | i % drawing->per_digit;
        base_random random = base_random_stream(drawing->seed, drawing->purpose, index);
        draw_digit(digit, &random, drawing->digits->images + i * ENV_DIGIT_BYTES);
    }
}

psi_status env_digits_drawn(psi_ctx *ctx, uint64_t seed, uint32_t purpose, size_t n_digits,
                            uint32_t per_digit, env_digits **out)
{
    psi_status status = PSI_OK;
    env_digits *digits = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *digits, &digits));
    const size_t n = n_digits * per_digit;
    TRY(base_alloc(ctx, n, ENV_DIGIT_BYTES, &digits->images));
    for (size_t d = 0; d <= n_digits; d++) digits->first[d] = (uint32_t)d * per_digit;
    env_drawing drawing = {digits, seed, purpose, per_digit, n};
    base_team_run(base_ctx_team(ctx), draw_share, &drawing);
    *out = digits;
    digits = NULL;
done:
    env_digits_free(ctx, digits);
    return status;
}
