// What a kind of writer does; psi_writer holds one of them.
#ifndef PSI_DATA_WRITER_H
#define PSI_DATA_WRITER_H

#include <psifold/data.h>

typedef struct data_writer_ops {
    psi_status (*add)(psi_writer *writer, const psi_episode *episode);
    psi_status (*commit)(psi_writer *writer); // files in place; nothing is freed
    void (*release)(psi_writer *writer);      // whatever state it is in
} data_writer_ops;

struct psi_writer {
    psi_ctx *ctx;
    const data_writer_ops *ops;
    psi_episode_spec spec; // texts are copies
    char *path, *name, *task_options;
    size_t row_bytes;
    size_t n_episodes, n_transitions;
    psi_status failed; // after a failure nothing can be committed any more
    void *state;
};

psi_status data_minari_writer(psi_writer *writer, bool replace);
psi_status data_npz_writer(psi_writer *writer, bool replace);

#endif
