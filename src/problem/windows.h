// Batches of windows: stretches of consecutive observations, a quarter of them chosen so that each
// kind of reward is seen equally often. Several processes draw the same windows, each of which is
// of the episode of one of them; all get them all.
#ifndef PSI_PROBLEM_WINDOWS_H
#define PSI_PROBLEM_WINDOWS_H

#include "base/random.h"
#include "problem/observe.h"
#include "problem/problem.h"

typedef struct window_batch {
    size_t n_rows;    // observations in the batch
    uint64_t *rows;   // (max) …
    int32_t *actions; // (max) the action taken there
    int32_t *rewards; // (max) the class of the reward
    float *weights;   // (max) 0 where no transition starts
    size_t n_pairs;   // transitions whose two ends are both in the batch
    uint32_t *first;  // (max) the place of a pair's first observation; the second follows it
    int *owner;       // (windows) the process whose window it is
    uint32_t *length; // (windows) observations; of others: 0
} window_batch;

typedef struct window_sampler {
    const cluster_problem *problem;
    size_t windows, length;
    int rank, ranks;
    uint64_t *usable;    // transitions that are not held out, by reward class
    size_t *own_begin;   // (classes + 1) where each class begins in usable, …
    size_t *class_begin; // (classes + 1) … and in that of all processes
    size_t *before;      // (classes, ranks + 1) how many of a class are of earlier processes
    uint32_t *episode;   // (N) the episode of every transition
    float *log_priors;   // (A, classes) what the choice of windows adds to the reward's logits
} window_sampler;

psi_status problem_windows_new(psi_ctx *ctx, const cluster_problem *problem, size_t windows,
                               size_t length, uint64_t seed, window_sampler *out,
                               window_batch *batch);
void problem_windows_free(psi_ctx *ctx, window_sampler *sampler, window_batch *batch);

// Fills the batch anew with the windows that are of this process. The same random stream gives the
// same windows.
void problem_windows_draw(const window_sampler *sampler, base_random *random, window_batch *batch);

// What is seen in the windows: inputs (max, row_bytes). Several processes all get the batch of
// all of them.
psi_status problem_windows_bring(psi_ctx *ctx, const window_sampler *sampler,
                                 problem_inputs *inputs, window_batch *batch, void *seen);

#endif
