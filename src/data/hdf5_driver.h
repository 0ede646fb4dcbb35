// The file under an HDF5 file that is being written, for libhdf5: a driver of our own that keeps
// the first failure to itself. libhdf5 cannot close a file any more once a write has failed, and
// takes the process down at exit; so it is told that all went well, and we look at what really
// happened.
#ifndef PSI_DATA_HDF5_DRIVER_H
#define PSI_DATA_HDF5_DRIVER_H

#include <hdf5.h>

typedef struct data_hdf5_driver {
    H5FD_t public_part; // first: libhdf5 knows it by this
    hid_t id;           // as libhdf5 knows the kind of driver
    int fd;
    int error; // errno of the first failure; nothing is written after it
    haddr_t end_of_allocation, end_of_file;
} data_hdf5_driver;

// Creates a file at path through the driver, which must stay where it is until the file is closed.
// At most one file at a time has it. Not positive on failure. Called under the library's lock.
hid_t data_hdf5_driver_create(data_hdf5_driver *driver, const char *path, hid_t creation);

// After the file was closed, or could not be created. Called under the library's lock.
void data_hdf5_driver_end(data_hdf5_driver *driver);

#endif
