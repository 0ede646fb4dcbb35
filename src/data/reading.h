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

// Rewards and actions of as many steps, by the names of their arrays.
typedef struct data_steps {
    size_t n;
    double *rewards;
    int64_t *actions;
} data_steps;
psi_status data_reading_steps(const data_reading *reading, const char *rewards, const char *actions,
                              data_steps *out);
void data_steps_free(psi_ctx *ctx, data_steps *steps);

// Flags, as many as there are of something else.
psi_status data_reading_flags(const data_reading *reading, const char *field, size_t expected,
                              const char *of_what, uint8_t **out);

// The next episode: its actions (less start; field is their name), rewards and end. One that
// neither terminated nor was cut off is taken for cut off.
psi_status data_reading_add(data_reading *reading, size_t length, const int64_t *actions,
                            int64_t start, const char *field, const double *rewards,
                            bool terminated, bool truncated);

// The next episode of a file that has as many observations as steps, `rows` from begin on in an
// array of the source: the last observation is missing. A terminated episode keeps its last
// transition all the same, with its last row in the place of the terminal state, which has no
// future that anybody would look at. The last row of one that was cut off can only serve as the
// observation that its transitions lead to. field is the name of the actions.
psi_status data_reading_add_without_last(data_reading *reading, const data_steps *steps,
                                         size_t begin, size_t rows, const char *field, size_t array,
                                         bool terminated);

// Says what was left open, counts actions unless n_actions is known (not 0), and hands over the
// trajectories, checked.
psi_status data_reading_end(data_reading *reading, size_t n_actions, psi_trajectories **out);

#endif
