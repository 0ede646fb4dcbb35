// HDF5 files that are whole, whatever is in them: the input is a recipe by which libhdf5 writes a
// file, with groups and arrays as Minari, D4RL or d3rlpy have them but of any type, shape and
// layout, missing, or in each other's place. Random bytes in a file hardly get past libhdf5, and
// where they do, it is libhdf5 that falls (README.md).
#include "fuzz_data.h"
#include "fuzz_files.h"

#include <hdf5.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

typedef struct recipe {
    const uint8_t *bytes;
    size_t size, at;
} recipe;

static unsigned next(recipe *from, unsigned below)
{
    return from->at < from->size ? from->bytes[from->at++] % below : 0;
}

static hid_t some_type(unsigned which)
{
    const hid_t types[] = {H5T_STD_U8LE,   H5T_STD_I32LE, H5T_STD_I64LE,  H5T_IEEE_F32LE,
                           H5T_IEEE_F64LE, H5T_STD_I64BE, H5T_IEEE_F64BE, H5T_STD_U64LE,
                           H5T_STD_I8LE,   H5T_STD_U16LE};
    return types[which % (sizeof types / sizeof types[0])];
}

// An array of about the expected shape: `rows` first, and usually of the expected type.
static void put_array(recipe *from, hid_t where, const char *name, size_t rows, hid_t usual)
{
    enum { MOST = 4096 };
    static uint8_t values[MOST * 8];
    const unsigned how = next(from, 16);
    if (how == 0) return; // missing
    const hid_t type = how < 4 ? some_type(next(from, 256)) : usual;
    const int rank = how == 5 ? (int)next(from, 6) : name[0] == 'o' ? 2 : 1;
    hsize_t dim[6] = {rows, 2, 2, 2, 1, 1}, chunk[6], cells = 1;
    if (how == 6) dim[0] += next(from, 5);
    if (how == 7) dim[0] = next(from, 3);
    if (how == 8) dim[1] = next(from, 9);
    for (int d = 0; d < rank; d++) {
        cells *= dim[d];
        chunk[d] = dim[d] > 1 ? dim[d] / 2 : 1;
    }
    if (cells > MOST) return;
    const unsigned fill = next(from, 4);
    for (size_t i = 0; i < sizeof values; i++) {
        values[i] = fill == 0 || i >= cells * 8 ? 0 : (uint8_t)next(from, fill == 1 ? 2 : 256);
    }
    const hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dim, NULL);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const unsigned layout = rank > 0 && cells > 0 ? next(from, 4) : 0;
    if (layout == 1) H5Pset_layout(creation, H5D_COMPACT);
    if (layout >= 2) H5Pset_chunk(creation, rank, chunk);
    if (layout == 3) H5Pset_deflate(creation, 1);
    const hid_t array = H5Dcreate2(where, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (array >= 0 && how != 9) H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    if (array >= 0) H5Dclose(array);
    H5Pclose(creation);
    H5Sclose(space);
}

static void put_minari(recipe *from, hid_t file)
{
    const unsigned episodes = 1 + next(from, 3);
    for (unsigned e = 0; e < episodes; e++) {
        char name[32];
        const size_t length = next(from, 5);
        snprintf(name, sizeof name, "episode_%u", next(from, 16) == 1 ? e + 1 : e);
        const hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (group < 0) continue;
        put_array(from, group, "observations", length + 1, H5T_IEEE_F32LE);
        put_array(from, group, "actions", length, H5T_STD_I64LE);
        put_array(from, group, "rewards", length, H5T_IEEE_F64LE);
        put_array(from, group, "terminations", length, H5T_STD_U8LE);
        put_array(from, group, "truncations", length, H5T_STD_U8LE);
        H5Gclose(group);
    }
}

static void put_flat(recipe *from, hid_t file)
{
    const size_t rows = next(from, 12);
    put_array(from, file, "observations", rows, H5T_IEEE_F32LE);
    put_array(from, file, "actions", rows, H5T_STD_I64LE);
    put_array(from, file, "rewards", rows, H5T_IEEE_F64LE);
    put_array(from, file, "terminals", rows, H5T_STD_U8LE);
    put_array(from, file, "timeouts", rows, H5T_STD_U8LE);
    if (next(from, 2)) put_array(from, file, "next_observations", rows, H5T_IEEE_F32LE);
}

static void put_d3rlpy(recipe *from, hid_t file)
{
    static const char *const columns[] = {"observations", "actions", "rewards", "terminated"};
    const hid_t usual[] = {H5T_STD_U8LE, H5T_STD_I64LE, H5T_IEEE_F64LE, H5T_STD_U8LE};
    const unsigned episodes = 1 + next(from, 3);
    for (unsigned e = 0; e < episodes; e++) {
        const size_t length = next(from, 6);
        for (unsigned c = 0; c < 4; c++) {
            char name[32];
            snprintf(name, sizeof name, "%s_%u", columns[c], e);
            put_array(from, file, name, c == 3 ? 1 : length, usual[c]);
        }
    }
    put_array(from, file, "num_episodes", 1, H5T_STD_I64LE);
    put_array(from, file, "version", 1, H5T_STD_I64LE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[256], *made;
    size_t made_size;
    recipe from = {bytes, size, 0};
    (void)fuzz_first_time();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t file =
        H5Fcreate(fuzz_path(path, "made.hdf5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(file >= 0);
    switch (next(&from, 3)) {
    case 0: put_minari(&from, file); break;
    case 1: put_flat(&from, file); break;
    default: put_d3rlpy(&from, file);
    }
    H5Fclose(file);
    psi_ctx *ctx = fuzz_ctx();
    REQUIRE(base_read_file(ctx, path, 1 << 26, &made, &made_size) == PSI_OK);
    fuzz_data_set((const uint8_t *)made, made_size, NULL);
    base_free(ctx, made);
    psi_ctx_free(ctx);
    return 0;
}
