#include "data/hdf5_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t largest)
{
    (void)flags, (void)largest;
    data_hdf5_driver *const *info = H5Pget_driver_info(access);
    if (!info) return NULL;
    data_hdf5_driver *driver = *info;
    driver->fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (driver->fd < 0) {
        driver->error = errno;
        return NULL;
    }
    return &driver->public_part;
}

static herr_t driver_close(H5FD_t *file)
{
    data_hdf5_driver *driver = (data_hdf5_driver *)file;
    if (close(driver->fd) != 0 && !driver->error) driver->error = errno;
    driver->fd = -1;
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const data_hdf5_driver *)file)->end_of_allocation;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address)
{
    (void)type;
    ((data_hdf5_driver *)file)->end_of_allocation = address;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const data_hdf5_driver *)file)->end_of_file;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address,
                          size_t size, void *out)
{
    (void)type, (void)transfer;
    const data_hdf5_driver *driver = (const data_hdf5_driver *)file;
    char *next = out;
    while (size > 0) {
        const ssize_t got = pread(driver->fd, next, size, (off_t)address);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) { // past the end there are zeros
            memset(next, 0, size);
            return 0;
        }
        next += got;
        address += (haddr_t)got;
        size -= (size_t)got;
    }
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address,
                           size_t size, const void *bytes)
{
    (void)type, (void)transfer;
    data_hdf5_driver *driver = (data_hdf5_driver *)file;
    const char *next = bytes;
    if (address + size > driver->end_of_file) driver->end_of_file = address + size;
    while (size > 0 && !driver->error) {
        const ssize_t written = pwrite(driver->fd, next, size, (off_t)address);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            driver->error = errno;
            break;
        }
        next += written;
        address += (haddr_t)written;
        size -= (size_t)written;
    }
    return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    (void)transfer, (void)closing;
    data_hdf5_driver *driver = (data_hdf5_driver *)file;
    if (driver->end_of_file == driver->end_of_allocation) return 0;
    if (!driver->error && ftruncate(driver->fd, (off_t)driver->end_of_allocation) != 0) {
        driver->error = errno;
    }
    driver->end_of_file = driver->end_of_allocation;
    return 0;
}

hid_t data_hdf5_driver_create(data_hdf5_driver *driver, const char *path, hid_t creation)
{
    static const H5FD_class_t class = {
#if H5_VERSION_GE(1, 13, 0)
        .version = H5FD_CLASS_VERSION,
        .value = (H5FD_class_value_t)613,
#endif
        .name = "psifold",
        .maxaddr = (haddr_t)INT64_MAX,
        .fc_degree = H5F_CLOSE_STRONG,
        .fapl_size = sizeof(data_hdf5_driver *),
        .open = driver_open,
        .close = driver_close,
        .query = driver_query,
        .get_eoa = driver_get_eoa,
        .set_eoa = driver_set_eoa,
        .get_eof = driver_get_eof,
        .read = driver_read,
        .write = driver_write,
        .truncate = driver_truncate,
        .fl_map = H5FD_FLMAP_DICHOTOMY,
    };
    *driver = (data_hdf5_driver){.id = H5FDregister(&class), .fd = -1};
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = -1;
    if (access > 0 && driver->id > 0 && H5Pset_driver(access, driver->id, &driver) >= 0) {
        file = H5Fcreate(path, H5F_ACC_EXCL, creation, access);
    }
    if (access > 0) H5Pclose(access);
    return file;
}

void data_hdf5_driver_end(data_hdf5_driver *driver)
{
    if (driver->id > 0) H5FDunregister(driver->id);
    driver->id = 0;
}
