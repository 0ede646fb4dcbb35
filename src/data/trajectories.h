// Trajectories as they are built: columns that grow episode by episode.
#ifndef PSI_DATA_TRAJECTORIES_H
#define PSI_DATA_TRAJECTORIES_H

#include "base/context.h"

#include <psifold/data.h>

enum { DATA_FINDINGS = 16, DATA_FINDING_BYTES = 320 };

// What a psi_trajectories really is: the public view comes first.
typedef struct data_set {
    psi_trajectories view;
    char *name; // of the file; "memory" for collected ones
    bool has_latent_states;
    bool actions_counted; // the file does not say how many there are
    int32_t *actions;     // (N), and so on as in the view
    double *rewards;
    uint64_t *episode_offsets;
    uint8_t *terminated, *truncated, *final_missing;
    int32_t *latent_states;
    char *observation_key;
    size_t step_room, episode_room, latent_room;
    char finding[DATA_FINDINGS][DATA_FINDING_BYTES];
    const char *findings[DATA_FINDINGS]; // each of them
} data_set;

psi_status data_set_new(psi_ctx *ctx, const char *name, bool latent_states, data_set **out);
void data_set_free(psi_ctx *ctx, data_set *set);

// Appends an episode of length steps whose columns the caller then fills: transitions from
// episode_offsets[e] on, e being the last episode. It is neither terminated nor truncated yet.
psi_status data_set_append(psi_ctx *ctx, data_set *set, size_t length);

// Something the user should know, kept for psi_trajectories_summary and logged as a warning.
void data_finding(psi_ctx *ctx, data_set *set, const char *format, ...) PRINTF_LIKE(3, 4);

// Copies integers to the actions or latent states from step first on, less start. Returns PSI_EDATA
// naming the field if one is negative or too large for the type.
psi_status data_set_actions(psi_ctx *ctx, data_set *set, size_t first, const int64_t *values,
                            size_t n, int64_t start, const char *field);
psi_status data_set_latent(psi_ctx *ctx, data_set *set, size_t first, const int64_t *values,
                           size_t n, const char *field);

// The number of actions when the file has no action space: the largest seen, plus one.
void data_set_count_actions(psi_ctx *ctx, data_set *set);

// Takes the observations over (also on failure), fills in the view and checks everything. The set
// is gone on failure.
psi_status data_set_finish(psi_ctx *ctx, data_set *set, psi_observations *observations,
                           psi_trajectories **out);

// What a writer and a collector ask of the spec and of every episode.
psi_status data_check_spec(psi_ctx *ctx, const psi_episode_spec *spec);
psi_status data_check_episode(psi_ctx *ctx, const psi_episode_spec *spec,
                              const psi_episode *episode, const char *name, size_t number);

// What several layouts leave open, in the same words: episodes of which nothing says how they
// ended; terminated ones without their last observation, and last rows of those that were cut off.
void data_tell_no_ends(psi_ctx *ctx, data_set *set, size_t episodes);
void data_tell_missing_ends(psi_ctx *ctx, data_set *set, size_t repeated, size_t dropped);

// PSI_ELIMIT if a file names more actions than its size warrants (PSI_BYTES_PER_BYTE).
psi_status data_check_appetite(psi_ctx *ctx, const psi_trajectories *all, const char *name);

#endif
