// What all layouts share while they are read: the archive, where observations come from, the
// columns as they grow, and what the file left open.
#ifndef PSI_DATA_READING_H
#define PSI_DATA_READING_H

#include "data/source.h"
#include "data/trajectories.h"

typedef struct data_reading {
    psi_ctx *ctx;
    data_archive *archive;
    data_source *source;
    data_set *set;
    size_t neither;  // episodes of which nothing says how they ended
    size_t repeated; // terminated episodes without their last observation
    size_t dropped;  // last rows of episodes that were cut off
    size_t empty;    // episodes of which nothing is left then
} data_reading;

// Takes the archive over, also on failure.
psi_status data_reading_begin(psi_ctx *ctx, data_archive *archive, bool latent_states,
                              data_reading *reading);
void data_reading_free(data_reading *reading);

// PSI_EDATA, naming the field, unless it has as many rows as there are of something else.
psi_status data_reading_check_rows(const data_reading *reading, const char *field, size_t rows,
                                   size_t expected, const char *of_what);

// The next episode: its actions (less start; field is their name), rewards and end. One that
// neither terminated nor was cut off is taken for cut off.
psi_status data_reading_add(data_reading *reading, size_t length, const int64_t *actions,
                            int64_t start, const char *field, const double *rewards,
                            bool terminated, bool truncated);

// The last episode terminated, and the file does not have its last observation: a row of an array
// of the source stands in for it.
psi_status data_reading_repeat(data_reading *reading, size_t array, size_t row);

// Says what was left open, counts actions unless n_actions is known (not 0), and hands over the
// trajectories, checked.
psi_status data_reading_end(data_reading *reading, size_t n_actions, psi_trajectories **out);

#endif
