// The layouts that data sets come in. Every reader takes the archive over, also on failure.
#ifndef PSI_DATA_FORMATS_H
#define PSI_DATA_FORMATS_H

#include "data/reading.h"

// The file of a folder; NULL if path is no folder.
psi_status data_find_file(psi_ctx *ctx, const char *path, char **out);

// Bytes of observations that may come into memory: by default half of what could be had without
// swapping.
size_t data_memory_limit(const psi_read_options *options);

// episode_0/observations, …, with metadata.json in the same folder (metadata may be NULL).
psi_status data_read_minari(psi_ctx *ctx, data_archive *archive, const char *metadata,
                            const char *observation_key, psi_trajectories **out);

// observations_0, actions_0, … of d3rlpy 2.1.
psi_status data_read_d3rlpy(psi_ctx *ctx, data_archive *archive, psi_trajectories **out);

// Flat columns with the ends of episodes marked: D4RL (terminals, timeouts) and d3rlpy 1
// (terminals, episode_terminals), in HDF5 or .npz.
psi_status data_read_flat(psi_ctx *ctx, data_archive *archive, psi_trajectories **out);

// Our own .npz: N + E observations, with episode_lengths.
psi_status data_read_columns(psi_ctx *ctx, data_archive *archive, psi_trajectories **out);

#endif
