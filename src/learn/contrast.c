#include "learn/contrast.h"

#include <cblas.h>
#include <math.h>

enum { W = CONTRAST_WIDTH };

size_t learn_contrast_scratch(size_t n)
{
    return n * (n + 2 * (size_t)W + 2);
}

static void normalise(const float *x, size_t n, float *unit, float *length)
{
    for (size_t i = 0; i < n; i++) {
        double square = 1e-12;
        for (size_t w = 0; w < W; w++) square += (double)x[i * W + w] * (double)x[i * W + w];
        length[i] = (float)sqrt(square);
        for (size_t w = 0; w < W; w++) unit[i * W + w] = x[i * W + w] / length[i];
    }
}

// The gradient by x of a function of x/‖x‖ whose gradient by that is d: (d − (d·x̂) x̂) / ‖x‖.
static void through_norm(const float *unit, const float *length, size_t n, float *d)
{
    for (size_t i = 0; i < n; i++) {
        float along = 0.0f;
        for (size_t w = 0; w < W; w++) along += d[i * W + w] * unit[i * W + w];
        for (size_t w = 0; w < W; w++) {
            d[i * W + w] = (d[i * W + w] - along * unit[i * W + w]) / length[i];
        }
    }
}

double learn_contrast(const float *query, const float *key, size_t n, double temperature,
                      float *scratch, float *d_query, float *d_key)
{
    float *p = scratch, *q = p + n * n, *k = q + n * W, *q_length = k + n * W;
    float *k_length = q_length + n;
    normalise(query, n, q, q_length);
    normalise(key, n, k, k_length);
    const int rows = (int)n;
    const float sharpness = (float)(1.0 / temperature);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, rows, W, sharpness, q, W, k, W, 0.0f,
                p, rows);
    double loss = 0.0;
    for (size_t i = 0; i < n; i++) { // p becomes d loss / d logits = (softmax − identity) / n
        float *row = p + i * n, most = row[0];
        double sum = 1e-300; // never 0: the largest logit adds 1
        for (size_t j = 1; j < n; j++) most = row[j] > most ? row[j] : most;
        const double own = (double)(row[i] - most);
        for (size_t j = 0; j < n; j++) sum += (double)(row[j] = expf(row[j] - most));
        loss += log(sum) - own;
        const float scale = (float)(1.0 / (sum * (double)n));
        for (size_t j = 0; j < n; j++) row[j] *= scale;
        row[i] -= 1.0f / (float)n;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, W, rows, sharpness, p, rows, k, W,
                0.0f, d_query, W);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, W, rows, sharpness, p, rows, q, W,
                0.0f, d_key, W);
    through_norm(q, q_length, n, d_query);
    through_norm(k, k_length, n, d_key);
    return loss / (double)n;
}
