// HDF5 files as archives of arrays, and what only HDF5 has: groups.
#ifndef PSI_DATA_HDF5_H
#define PSI_DATA_HDF5_H

#include "data/archive.h"

#include <hdf5.h>

// The library keeps everything in global variables and prints its errors: whoever calls it does so
// between these two, from any context and thread.
typedef struct data_hdf5_quiet {
    H5E_auto2_t function;
    void *data;
} data_hdf5_quiet;

data_hdf5_quiet data_hdf5_enter(void);
void data_hdf5_leave(data_hdf5_quiet quiet);

// PSI_ENOMEM unless there is room for what the library may allocate: where it is refused memory
// itself, libhdf5 1.10 crashes or goes round in circles. To be asked before it is entered.
psi_status data_hdf5_room(psi_ctx *ctx, const char *path);

typedef enum data_node { DATA_NO_NODE, DATA_ARRAY, DATA_GROUP } data_node;

data_node data_hdf5_node(data_archive *archive, const char *name);

// Calls visit for the names in a group, in their alphabetical order, until it returns false.
psi_status data_hdf5_list(data_archive *archive, const char *group,
                          bool (*visit)(void *user, const char *name), void *user);

#endif
