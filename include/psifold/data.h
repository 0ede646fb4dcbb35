// psifold/data.h: trajectories, the only thing psifold learns from, and the files they live in.
//
// An episode of L steps is s0 a0 r0 s1 a1 r1 … sL: L actions and rewards, L+1 observations. All
// episodes stand one after the other in columns, and the observation that follows a transition is
// simply the next row: nothing is stored twice.
#ifndef PSIFOLD_DATA_H
#define PSIFOLD_DATA_H

#include <psifold/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// Where observations come from: memory, or a contiguous, chunked or JPEG-compressed file that is
// read and decoded as rows are asked for. All rows have one type and shape.
typedef struct psi_observations psi_observations;

// Over count rows in the caller's memory, which must outlive it. *out belongs to the caller.
PSI_API psi_status psi_observations_over(psi_ctx *ctx, psi_dtype dtype, const psi_shape *shape,
                                         size_t count, const void *data, psi_observations **out);
PSI_API void psi_observations_free(psi_ctx *ctx, psi_observations *observations);

enum { PSI_MAX_FRAMES = 255 };

// Every observation with the n − 1 before it in its episode, oldest first, as one; the first of an
// episode repeats at its beginning. Single numbers become vectors (n), vectors longer ones (n · D),
// everything else gets another dimension in front, (n, …). Nothing is copied before it is gathered:
// frames must outlive it. Episode e has the rows offset[e] + e … offset[e + 1] + e, as in
// psi_trajectories. PSI_ESHAPE if the rows are not those of the episodes, PSI_EUNSUPPORTED if there
// is no dimension left. *out belongs to the caller.
PSI_API psi_status psi_observations_stack(psi_ctx *ctx, const psi_observations *frames, size_t n,
                                          size_t n_episodes, const uint64_t *episode_offsets,
                                          psi_observations **out);

// How many rows there are, of which type and shape, and the bytes of each. O(1).
PSI_API size_t psi_observations_count(const psi_observations *observations);
PSI_API psi_dtype psi_observations_dtype(const psi_observations *observations);
PSI_API const psi_shape *psi_observations_shape(const psi_observations *observations);
PSI_API size_t psi_observations_row_bytes(const psi_observations *observations);

// Copies rows[0 … n) one after the other to out (n · row_bytes), in parallel on the context's
// threads. Returns PSI_ESHAPE for a row that does not exist, PSI_EIO or PSI_EFORMAT if the file
// behind it cannot be read. Two threads may gather at once, each with a context of its own.
PSI_API psi_status psi_observations_gather(psi_ctx *ctx, const psi_observations *observations,
                                           const uint64_t *rows, size_t n, void *out);

// All rows one after the other, where they already are in memory; NULL where they have to be read.
PSI_API const void *psi_observations_data(const psi_observations *observations);

// More actions than this are a sign of damage, not a task. And since what is kept about every
// observation and action takes PSI_PAIR_BYTES at most, a few bytes could ask for any amount of
// memory by naming a large action: reading is PSI_ELIMIT if that comes to more than
// PSI_BYTES_PER_BYTE for every byte of observations, actions and rewards, which is a few thousand
// actions for the smallest observations.
enum { PSI_MAX_ACTIONS = 1 << 20, PSI_PAIR_BYTES = 16 };

// A data set: the observations of all episodes, each stored once, and what happened between them.
typedef struct psi_trajectories {
    size_t n_episodes;     // E
    size_t n_transitions;  // N, the sum of all lengths
    size_t n_observations; // N + E
    size_t n_actions;      // A: from the action space where the file has one

    psi_observations *observations;  // (N + E) rows; those of episode e start at offset[e] + e
    const int32_t *actions;          // (N) 0 … A−1
    const double *rewards;           // (N)
    const uint64_t *episode_offsets; // (E + 1) first transition of each episode; the last is N
    const uint8_t *terminated;       // (E) the episode ended in a terminal state …
    const uint8_t *truncated;        // (E) … or was cut off
    const uint8_t *final_missing; // (E) the file has no last observation: that row repeats the one
                                  // before it and must not be looked at
    const int32_t *latent_states; // (N + E) the true latent states, for evaluation only; or NULL
    const char *observation_key;  // the entry of a Dict observation that was asked for; or NULL
    size_t n_findings;
    const char *const *findings; // sentences: what a reader had to put right
} psi_trajectories;

// The row of the observation in which transition t of episode e starts; the next row follows it.
static inline size_t psi_row(size_t episode, size_t transition)
{
    return transition + episode;
}

// How a data set is read; all zero but for the size is fine.
typedef struct psi_read_options {
    size_t size;                 // sizeof(psi_read_options)
    const char *observation_key; // which entry of a Dict observation; NULL if there is only one
    size_t memory_limit;         // observations above this many bytes stay in the file; 0: half of
                                 // the memory the machine has available; 1: all stay there
} psi_read_options;

// Reads a data set: a Minari folder or file, D4RL or d3rlpy HDF5, or .npz, recognised from its
// content. Returns PSI_EFORMAT for a file that is none of them, PSI_EDATA, naming file, episode and
// field, for one that contradicts itself. *out belongs to the caller.
PSI_API psi_status psi_trajectories_read(psi_ctx *ctx, const char *path,
                                         const psi_read_options *options, psi_trajectories **out);
PSI_API void psi_trajectories_free(psi_ctx *ctx, psi_trajectories *trajectories);

// Several files and folders as one data set: the episodes of the first, then those of the second,
// and so on. PSI_EDATA if their observations or action spaces are not the same; a file that does
// not say how many actions there are has those of the others. PSI_EUSAGE for no file at all.
// Several processes (psi_ranks_join) share the data set: each has the episodes of its own stretch,
// numbered from 0, which may be none.
PSI_API psi_status psi_trajectories_read_all(psi_ctx *ctx, const char *const *paths, size_t n,
                                             const psi_read_options *options,
                                             psi_trajectories **out);

// What all processes have, one after the other, in the memory of rank 0; elsewhere *out is NULL.
// *out belongs to the caller. All processes make this call.
PSI_API psi_status psi_trajectories_collect(psi_ctx *ctx, const psi_trajectories *trajectories,
                                            psi_trajectories **out);

// Checks that trajectories do not contradict themselves: offsets, lengths, finite rewards, actions
// below A, and exactly how every episode ended. Returns PSI_EDATA with a sentence that names name
// (of the file), episode and field. Every reader and collector has done this already. O(N).
PSI_API psi_status psi_trajectories_check(psi_ctx *ctx, const psi_trajectories *trajectories,
                                          const char *name);

enum { PSI_SUMMARY_REWARDS = 64 };

// A reward, and how often it was given.
typedef struct psi_reward_count {
    double value;
    uint64_t count;
} psi_reward_count;

// What is in a data set, and what is wrong with it.
typedef struct psi_summary {
    size_t n_rewards; // distinct values, in ascending order; 0 if more than PSI_SUMMARY_REWARDS
    psi_reward_count rewards[PSI_SUMMARY_REWARDS];
    double reward_min, reward_max, reward_mean;
    size_t n_actions, n_actions_never_taken;
    const uint64_t *action_counts; // (n_actions)
    size_t length_min, length_max;
    double length_mean;
    size_t n_terminated, n_truncated, n_final_missing;
    size_t observation_bytes; // what all observations take in memory …
    bool in_memory;           // … and whether they are there
    size_t memory_bytes;      // what the data set needs in memory as it was read
    size_t n_problems;        // sentences, the weightiest first
    const char *const *problems;
} psi_summary;

// O(N), and reads every observation of floating-point type once. *out belongs to the caller.
PSI_API psi_status psi_trajectories_summary(psi_ctx *ctx, const psi_trajectories *trajectories,
                                            psi_summary **out);
PSI_API void psi_summary_free(psi_ctx *ctx, psi_summary *summary);

// What trajectories are made of, to be known before the first one is written.
typedef struct psi_episode_spec {
    psi_dtype observation_dtype;
    psi_shape observation_shape;
    double observation_low, observation_high; // bounds of the observation space
    size_t n_actions;
    bool latent_states;       // every episode brings its true latent states
    const char *name;         // "column-world-v0": the data set's id; may be NULL
    const char *task_options; // JSON text kept beside the data; may be NULL
} psi_episode_spec;

// One episode in the caller's memory; read during the call only.
typedef struct psi_episode {
    size_t length;                // L
    const void *observations;     // (L + 1) rows
    const int32_t *actions;       // (L)
    const double *rewards;        // (L)
    const int32_t *latent_states; // (L + 1) or NULL
    bool terminated, truncated;
} psi_episode;

// Takes episodes one by one and leaves a data set: a Minari folder, or an .npz if the name ends
// like that. The files appear whole when the writer is committed.
typedef struct psi_writer psi_writer;

// PSI_EUSAGE if the path is there and replace is not set. What is added is copied; PSI_EDATA for
// episodes that contradict the specification. *out belongs to the caller until it is committed or
// discarded.
PSI_API psi_status psi_writer_open(psi_ctx *ctx, const char *path, const psi_episode_spec *spec,
                                   bool replace, psi_writer **out);
PSI_API psi_status psi_writer_add(psi_writer *writer, const psi_episode *episode);
PSI_API psi_status psi_writer_commit(psi_writer *writer); // gone afterwards, also on failure
PSI_API void psi_writer_discard(psi_writer *writer);      // NULL is fine

// The same, into memory.
typedef struct psi_collector psi_collector;

// As a writer. The trajectories belong to the caller.
PSI_API psi_status psi_collector_new(psi_ctx *ctx, const psi_episode_spec *spec,
                                     psi_collector **out);
PSI_API psi_status psi_collector_add(psi_collector *collector, const psi_episode *episode);
PSI_API psi_status psi_collector_finish(psi_collector *collector,
                                        psi_trajectories **out); // gone afterwards
PSI_API void psi_collector_discard(psi_collector *collector);

// A named array in the caller's memory, the last index running fastest.
typedef struct psi_array {
    const char *name; // of 1 to 250 bytes; not looked at for an .npy
    psi_dtype dtype;
    psi_shape shape; // rank 0 is a single number
    const void *data;
} psi_array;

// One array as numpy's .npy, or any number as an .npz without compression, whichever path ends
// with. The file is there whole or, on failure, as it was before; the same arrays give the same
// bytes. PSI_EUSAGE for names that are missing or not unique.
PSI_API psi_status psi_arrays_save(psi_ctx *ctx, const char *path, const psi_array *arrays,
                                   size_t n);

// The array called name in an .npz, or the one in an .npy (name is NULL), recognised from the
// content. It may be stored as any type of number: integers arrive exactly or not at all, and
// floating-point numbers as integers if they are whole; only float64 is rounded to float32. Returns
// PSI_EFORMAT for a file that is neither or damaged, PSI_EDATA for an array that is missing or does
// not hold numbers that fit. *data belongs to the caller: psi_array_free.
PSI_API psi_status psi_array_load(psi_ctx *ctx, const char *path, const char *name,
                                  psi_dtype wanted, psi_shape *shape, void **data);
PSI_API void psi_array_free(psi_ctx *ctx, void *data); // NULL is fine

#ifdef __cplusplus
}
#endif
#endif
