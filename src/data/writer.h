// What a kind of writer does; psi_writer holds one of them.
#ifndef PSI_DATA_WRITER_H
#define PSI_DATA_WRITER_H

#include "base/file.h"

#include <psifold/data.h>

// A kind of file. What it keeps stands in writer->state; the output is opened, put in place and
// given up by psi_writer.
typedef struct data_writer_kind {
    base_output_kind output;
    size_t state_bytes;                                           // of zeros, before open
    psi_status (*check_replaced)(psi_ctx *ctx, const char *path); // may be NULL
    psi_status (*open)(psi_writer *writer);
    psi_status (*add)(psi_writer *writer, const psi_episode *episode);
    psi_status (*finish)(psi_writer *writer); // writes what is left
    void (*release)(psi_writer *writer);      // whatever state it is in
} data_writer_kind;

extern const data_writer_kind DATA_MINARI_WRITER, DATA_NPZ_WRITER;

struct psi_writer {
    psi_ctx *ctx;
    const data_writer_kind *kind;
    psi_episode_spec spec; // texts are copies
    char *path, *name, *task_options;
    size_t row_bytes;
    size_t n_episodes, n_transitions;
    psi_status failed; // after a failure nothing can be committed any more
    base_output *output;
    char *folder; // where the kind keeps its files while it writes
    void *state;
};

#endif
