#include <psifold/cluster.h>

#include "base/blas.h"
#include "base/checked.h"
#include "base/context.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/threads.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum {
    SLICE = 64,        // points that a thread measures at a time: one word of neighbour bits
    CENTRES = 256,     // centres that it measures them against at a time
    BLOCK = 4096,      // points that are filled in at a time
    SAMPLE = 8192,     // points in which centres are looked for at a time
    CANDIDATES = 2048, // of them, those that may become one
    ROUNDS = 4,        // samples taken; the later ones only of points that no centre covers yet
    MEAN_STEPS = 3,    // how often a new centre moves to the mean of what it covers
};

typedef struct covering {
    psi_ctx *ctx;
    const psi_cover_points *points;
    const psi_cover_options *options;
    size_t dim; // groups · width

    float *centres; // (room, dim)
    size_t n_centres, room;

    float *sample;  // (SAMPLE, dim); also the block of a pass over all points
    uint64_t *rows; // (SAMPLE) which points these are
    size_t n_sample;
    uint64_t *near;  // (CANDIDATES, SAMPLE / 64) bit s of row c: sample point s is near candidate c
    uint64_t *alive; // (SAMPLE / 64) sample points that are not covered yet
    float *scratch;  // (threads, 2, SLICE, CENTRES)

    int32_t *nearest; // (n) the nearest centre of every point …
    float *reach;     // (n) … and how far it is
} covering;

// ---- measuring: points against centres, in parallel -------------------------------------------

// Called for every slice of points and every block of centres with their distances (n, k).
typedef void measured(void *user, size_t first_point, size_t n, size_t first_centre, size_t k,
                      const float *distance);

typedef struct measuring {
    const covering *cover;
    const float *points, *centres;
    size_t n, n_centres;
    measured *visit;
    void *user;
} measuring;

static float squared_length(const float *a, size_t width)
{
    float sum = 0.0f;
    for (size_t i = 0; i < width; i++) sum += a[i] * a[i];
    return sum;
}

static void add_l1(const float *x, const float *c, size_t n, size_t k, size_t width, size_t dim,
                   float *distance)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < k; j++) {
            float sum = 0.0f;
            for (size_t w = 0; w < width; w++) sum += fabsf(x[i * dim + w] - c[j * dim + w]);
            distance[i * k + j] += sum;
        }
    }
}

// ||x − c||² = ||x||² − 2 x·c + ||c||², so that the work is a matrix product.
static void add_l2(const float *x, const float *c, size_t n, size_t k, size_t width, size_t dim,
                   float *product, float *distance)
{
    float centre_length[CENTRES] = {0};
    for (size_t j = 0; j < k; j++) centre_length[j] = squared_length(c + j * dim, width);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)k, (int)width, -2.0f, x,
                (int)dim, c, (int)dim, 0.0f, product, (int)k);
    for (size_t i = 0; i < n; i++) {
        const float point_length = squared_length(x + i * dim, width);
        for (size_t j = 0; j < k; j++) {
            const float square = product[i * k + j] + point_length + centre_length[j];
            distance[i * k + j] += sqrtf(square > 0.0f ? square : 0.0f);
        }
    }
}

static void measure_slices(void *argument, int thread, int threads)
{
    const measuring *job = argument;
    const covering *cover = job->cover;
    const size_t dim = cover->dim, width = cover->points->width;
    float *distance = cover->scratch + (size_t)thread * 2 * SLICE * CENTRES;
    float *product = distance + (size_t)SLICE * CENTRES;
    for (size_t begin = (size_t)thread * SLICE; begin < job->n; begin += (size_t)threads * SLICE) {
        const size_t n = base_min(SLICE, job->n - begin);
        for (size_t first = 0; first < job->n_centres; first += CENTRES) {
            const size_t k = base_min(CENTRES, job->n_centres - first);
            memset(distance, 0, n * k * sizeof *distance);
            for (size_t g = 0; g < cover->points->groups; g++) {
                const float *x = job->points + begin * dim + g * width;
                const float *c = job->centres + first * dim + g * width;
                if (cover->options->norm == PSI_L1) {
                    add_l1(x, c, n, k, width, dim, distance);
                } else {
                    add_l2(x, c, n, k, width, dim, product, distance);
                }
            }
            job->visit(job->user, begin, n, first, k, distance);
        }
    }
}

static void measure(covering *cover, const float *points, size_t n, const float *centres,
                    size_t n_centres, measured *visit, void *user)
{
    measuring job = {cover, points, centres, n, n_centres, visit, user};
    base_team_run(base_ctx_team(cover->ctx), measure_slices, &job);
}

typedef struct nearest_of {
    int32_t *nearest;
    float *reach;
} nearest_of;

static void keep_nearest(void *user, size_t first_point, size_t n, size_t first_centre, size_t k,
                         const float *distance)
{
    const nearest_of *of = user;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < k; j++) {
            if (distance[i * k + j] >= of->reach[first_point + i]) continue;
            of->reach[first_point + i] = distance[i * k + j];
            of->nearest[first_point + i] = (int32_t)(first_centre + j);
        }
    }
}

// One pass over all points: nearest centre and distance of each.
static psi_status assign_all(covering *cover)
{
    const size_t n = cover->points->n;
    base_progress progress = base_progress_start(cover->ctx, cover->options->phase, n);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) {
            cover->rows[i] = begin + i;
            cover->nearest[begin + i] = -1;
            cover->reach[begin + i] = INFINITY;
        }
        psi_status status =
            cover->points->fill(cover->points->user, cover->ctx, cover->rows, count, cover->sample);
        if (status == PSI_OK) status = base_progress_at(&progress, begin);
        if (status != PSI_OK) return status;
        nearest_of of = {cover->nearest + begin, cover->reach + begin};
        measure(cover, cover->sample, count, cover->centres, cover->n_centres, keep_nearest, &of);
    }
    base_progress_end(&progress, n);
    return PSI_OK;
}

// ---- choosing centres in a sample -------------------------------------------------------------

static bool is_covered(const covering *cover, size_t i)
{
    return (double)cover->reach[i] <= cover->options->epsilon;
}

// Fills the sample with points that no centre covers: all of them, or one from each of SAMPLE
// stretches, at a random place in it.
static psi_status take_sample(covering *cover, size_t uncovered, uint64_t round)
{
    base_random random = base_random_stream(cover->options->seed, 0x636f7672, round);
    cover->n_sample = base_min(uncovered, SAMPLE);
    size_t chosen = 0, seen = 0;
    size_t wanted = 0; // the place, among the uncovered points, of the next one to take
    for (size_t i = 0; i < cover->points->n && chosen < cover->n_sample; i++) {
        if (is_covered(cover, i)) continue;
        if (seen == wanted) {
            cover->rows[chosen++] = i;
            const size_t begin = chosen * uncovered / cover->n_sample;
            const size_t end = (chosen + 1) * uncovered / cover->n_sample;
            wanted = begin + base_random_below(&random, (uint32_t)base_max(end - begin, 1));
        }
        seen++;
    }
    cover->n_sample = chosen;
    return cover->points->fill(cover->points->user, cover->ctx, cover->rows, chosen, cover->sample);
}

typedef struct neighbours {
    uint64_t *near;
    size_t words;
    float epsilon;
} neighbours;

static void mark_near(void *user, size_t first_point, size_t n, size_t first_centre, size_t k,
                      const float *distance)
{
    const neighbours *to = user;
    for (size_t j = 0; j < k; j++) {
        uint64_t bits = 0;
        for (size_t i = 0; i < n; i++) bits |= (uint64_t)(distance[i * k + j] <= to->epsilon) << i;
        to->near[(first_centre + j) * to->words + first_point / SLICE] = bits;
    }
}

// The candidate with the most uncovered points around it; *count is how many these are.
static size_t densest(const covering *cover, size_t candidates, size_t words, size_t *count)
{
    size_t best = 0;
    *count = 0;
    for (size_t c = 0; c < candidates; c++) {
        if (!(cover->alive[c / 64] >> c % 64 & 1)) continue;
        size_t around = 0;
        for (size_t w = 0; w < words; w++) {
            around += (size_t)__builtin_popcountll(cover->near[c * words + w] & cover->alive[w]);
        }
        if (around > *count) {
            *count = around;
            best = c;
        }
    }
    return best;
}

// centre = mean of the uncovered sample points in the mask.
static void mean_of(const covering *cover, const uint64_t *mask, size_t words, float *centre)
{
    double count = 0.0;
    memset(centre, 0, cover->dim * sizeof *centre);
    for (size_t w = 0; w < words; w++) {
        for (uint64_t bits = mask[w] & cover->alive[w]; bits; bits &= bits - 1) {
            const size_t i = w * 64 + (size_t)__builtin_ctzll(bits);
            count += 1.0;
            const float weight = (float)(1.0 / count); // running mean: no overflow, no large sums
            for (size_t d = 0; d < cover->dim; d++) {
                centre[d] += weight * (cover->sample[i * cover->dim + d] - centre[d]);
            }
        }
    }
}

static psi_status add_centre(covering *cover, float **out)
{
    if (cover->n_centres == cover->options->max_clusters) {
        return FAIL(cover->ctx, PSI_ELIMIT,
                    "more than %zu clusters: epsilon %g is small against the spread of the "
                    "predictions; raise it, or --max-latent-states",
                    cover->options->max_clusters, cover->options->epsilon);
    }
    if (cover->n_centres == cover->room) {
        const size_t room = base_max(2 * cover->room, 64);
        const psi_status status =
            base_resize(cover->ctx, room, cover->dim * sizeof(float), &cover->centres);
        if (status != PSI_OK) return status;
        cover->room = room;
    }
    *out = cover->centres + cover->n_centres++ * cover->dim;
    return PSI_OK;
}

// Which sample points are near each candidate, some candidates at a time: with hundreds of clusters
// all of them take longer than who wants to stop should wait.
static psi_status find_neighbours(covering *cover, size_t candidates, size_t words, float epsilon)
{
    for (size_t first = 0; first < candidates; first += CENTRES) {
        const psi_status status = base_cancelled(cover->ctx);
        if (status != PSI_OK) return status;
        neighbours of = {cover->near + first * words, words, epsilon};
        measure(cover, cover->sample, cover->n_sample, cover->sample + first * cover->dim,
                base_min(CENTRES, candidates - first), mark_near, &of);
    }
    return PSI_OK;
}

// Greedy: the densest candidate becomes a centre, moves to the mean of what it covers, and what it
// covers then is done with; until no ball holds `fewest` sample points.
static psi_status cover_sample(covering *cover, size_t fewest)
{
    if (cover->n_sample == 0) return PSI_OK;
    const size_t n = cover->n_sample, words = (n + 63) / 64, candidates = base_min(n, CANDIDATES);
    const float epsilon = (float)cover->options->epsilon;
    uint64_t around[SAMPLE / 64];
    for (size_t w = 0; w < words; w++) {
        const size_t rest = n - 64 * w;
        cover->alive[w] = rest >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << rest) - 1;
    }
    // the candidates are the sample's first points; shuffled by stretches they would all lie in the
    // first trajectories, so every stride-th point is swapped to the front
    const size_t stride = n / candidates;
    for (size_t c = 0; c < candidates && stride > 1; c++) {
        for (size_t d = 0; d < cover->dim; d++) {
            float *a = &cover->sample[c * cover->dim + d];
            float *b = &cover->sample[c * stride * cover->dim + d];
            const float swap = *a;
            *a = *b;
            *b = swap;
        }
    }
    psi_status status = find_neighbours(cover, candidates, words, epsilon);
    while (status == PSI_OK) {
        size_t count;
        const size_t best = densest(cover, candidates, words, &count);
        status = base_cancelled(cover->ctx);
        if (status != PSI_OK || count < fewest) break;
        float *centre = NULL;
        status = add_centre(cover, &centre);
        if (status != PSI_OK) break;
        memcpy(around, cover->near + best * words, words * sizeof *around);
        for (int step = 0; step < MEAN_STEPS; step++) {
            mean_of(cover, around, words, centre);
            neighbours of_centre = {around, words, epsilon};
            measure(cover, cover->sample, n, centre, 1, mark_near, &of_centre);
        }
        // the candidate itself is done with even if the mean has moved away from it: no endless
        // loop
        around[best / 64] |= (uint64_t)1 << best % 64;
        for (size_t w = 0; w < words; w++) cover->alive[w] &= ~around[w];
    }
    return status;
}

// ---- the whole --------------------------------------------------------------------------------

static size_t count_uncovered(const covering *cover)
{
    size_t uncovered = 0;
    for (size_t i = 0; i < cover->points->n; i++) uncovered += !is_covered(cover, i);
    return uncovered;
}

static void count_sizes(const covering *cover, size_t *sizes)
{
    memset(sizes, 0, cover->n_centres * sizeof *sizes);
    for (size_t i = 0; i < cover->points->n; i++) {
        if (is_covered(cover, i)) sizes[cover->nearest[i]]++;
    }
}

// Drops the centres of spurious clusters. Returns how many were dropped.
static size_t drop_spurious(covering *cover, const size_t *sizes)
{
    const double fewest = cover->options->filter * (double)cover->points->n;
    size_t kept = 0;
    for (size_t c = 0; c < cover->n_centres; c++) {
        if ((double)sizes[c] < fewest || sizes[c] == 0) continue;
        memmove(cover->centres + kept * cover->dim, cover->centres + c * cover->dim,
                cover->dim * sizeof *cover->centres);
        kept++;
    }
    const size_t dropped = cover->n_centres - kept;
    cover->n_centres = kept;
    return dropped;
}

// Gives the clusters their numbers, the largest first, and hands everything over.
static psi_status hand_over(covering *cover, const size_t *sizes, psi_cover_result *out)
{
    psi_status status = PSI_OK;
    const size_t k = cover->n_centres, n = cover->points->n;
    int32_t *rank = NULL;
    TRY(base_alloc(cover->ctx, k, sizeof *rank, &rank));
    TRY(base_alloc(cover->ctx, k, sizeof *out->sizes, &out->sizes));
    TRY(base_alloc(cover->ctx, k, cover->dim * sizeof(float), &out->centres));
    for (size_t c = 0; c < k; c++) {
        size_t before = 0;
        for (size_t other = 0; other < k; other++) {
            before += sizes[other] > sizes[c] || (other < c && sizes[other] == sizes[c]);
        }
        rank[c] = (int32_t)before;
        out->sizes[before] = sizes[c];
        memcpy(out->centres + before * cover->dim, cover->centres + c * cover->dim,
               cover->dim * sizeof(float));
    }
    double sum = 0.0;
    out->n_clusters = k;
    out->ignored = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_covered(cover, i)) {
            cover->nearest[i] = rank[cover->nearest[i]];
            sum += (double)cover->reach[i];
        } else {
            cover->nearest[i] = -1;
            out->ignored++;
        }
    }
    out->mean_distance = n > out->ignored ? sum / (double)(n - out->ignored) : 0.0;
    out->labels = cover->nearest;
    cover->nearest = NULL;
done:
    base_free(cover->ctx, rank);
    return status;
}

psi_status psi_cover(psi_ctx *ctx, const psi_cover_points *points, const psi_cover_options *options,
                     psi_cover_result *out)
{
    *out = (psi_cover_result){0};
    if (!base_options_fit(ctx, options, sizeof *options, "{.size = sizeof(psi_cover_options)}"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    covering cover = {.ctx = ctx, .points = points, .options = options};
    size_t *sizes = NULL;
    const size_t threads = (size_t)base_team_size(base_ctx_team(ctx));
    cover.dim = points->groups * points->width;
    const size_t sample = base_min(base_max(points->n, 1), SAMPLE);
    const size_t words = (sample + 63) / 64;
    TRY(base_blas_ready(ctx));
    TRY(base_alloc(ctx, sample, cover.dim * sizeof(float), &cover.sample));
    TRY(base_alloc(ctx, sample, sizeof *cover.rows, &cover.rows));
    TRY(base_alloc(ctx, base_min(sample, CANDIDATES) * words, sizeof *cover.near, &cover.near));
    TRY(base_alloc(ctx, words, sizeof *cover.alive, &cover.alive));
    TRY(base_alloc(ctx, threads * 2 * SLICE, CENTRES * sizeof(float), &cover.scratch));
    TRY(base_alloc(ctx, points->n, sizeof *cover.nearest, &cover.nearest));
    TRY(base_alloc(ctx, points->n, sizeof *cover.reach, &cover.reach));
    for (size_t i = 0; i < points->n; i++) cover.reach[i] = INFINITY;

    const double fewest = options->filter * (double)points->n; // points of a cluster that counts
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const size_t uncovered = count_uncovered(&cover);
        if (uncovered == 0 || (double)uncovered < fewest) break;
        TRY(take_sample(&cover, uncovered, round));
        // half of what a cluster of the smallest size that counts would show in this sample
        const double share = 0.5 * fewest / (double)uncovered;
        const size_t before = cover.n_centres;
        TRY(cover_sample(&cover, base_max((size_t)(share * (double)cover.n_sample), 1)));
        if (cover.n_centres == before) break;
        TRY(assign_all(&cover));
    }
    TRY(base_alloc(ctx, cover.n_centres, sizeof *sizes, &sizes));
    count_sizes(&cover, sizes);
    // points of a dropped cluster may belong to the next one: measure again
    while (drop_spurious(&cover, sizes) > 0) {
        TRY(assign_all(&cover));
        count_sizes(&cover, sizes);
    }
    TRY(hand_over(&cover, sizes, out));
done:
    base_free(ctx, sizes);
    base_free(ctx, cover.reach);
    base_free(ctx, cover.nearest);
    base_free(ctx, cover.scratch);
    base_free(ctx, cover.alive);
    base_free(ctx, cover.near);
    base_free(ctx, cover.rows);
    base_free(ctx, cover.sample);
    base_free(ctx, cover.centres);
    if (status != PSI_OK) psi_cover_free(ctx, out);
    return status;
}

void psi_cover_free(psi_ctx *ctx, psi_cover_result *result)
{
    if (!result) return;
    base_free(ctx, result->centres);
    base_free(ctx, result->labels);
    base_free(ctx, result->sizes);
    *result = (psi_cover_result){0};
}
