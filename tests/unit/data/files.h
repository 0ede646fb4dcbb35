// Data set files for the tests, made with the same libraries as everybody's, but not by our
// writers.
#ifndef PSI_TESTS_DATA_FILES_H
#define PSI_TESTS_DATA_FILES_H

#include "support/support.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

typedef struct test_layout {
    const hsize_t *chunk; // NULL: contiguous
    int deflate;          // level; 0: none
} test_layout;

static inline hid_t test_h5_create(const char *path)
{
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file > 0);
    return file;
}

// Writes values of type (in memory and file) under name, with the groups above it.
static inline void test_h5_put(hid_t file, const char *name, hid_t type, int rank,
                               const hsize_t *dims, const void *values, test_layout layout)
{
    const hid_t links = H5Pcreate(H5P_LINK_CREATE), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    if (layout.chunk) H5Pset_chunk(how, rank, layout.chunk);
    if (layout.deflate) H5Pset_deflate(how, (unsigned)layout.deflate);
    const hid_t space = H5Screate_simple(rank, dims, NULL);
    const hid_t dataset = H5Dcreate2(file, name, type, space, links, how, H5P_DEFAULT);
    assert_true(dataset > 0);
    assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(how);
    H5Pclose(links);
}

static inline hid_t test_h5_truth(void)
{
    const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(type, "FALSE", &(int8_t){0});
    H5Tenum_insert(type, "TRUE", &(int8_t){1});
    return type;
}

// A Minari file of three episodes of 2, 3 and 4 steps. Row i of all observations is the bytes
// i, i+1, … (2 × 3 of them); action t of all is t mod 3 + start; reward t is t / 10.
enum { TEST_EPISODES = 3, TEST_STEPS = 9, TEST_STATES = 12, TEST_ROW = 6 };

typedef struct test_minari {
    int64_t start;            // of the action space
    test_layout layout;       // of the observations
    int episode;              // the one with the faults below
    int observations_less;    // that many rows are missing
    int actions_less;         //
    int rewards_less;         //
    double reward;            // instead of the first one, if not 0
    double action;            // instead of the first one, stored as double, if not 0
    bool no_end;              // neither terminated nor truncated
    bool both_ends;           //
    bool early_end;           // terminated at its first step, too
    bool latent;              // infos/latent_state is there: row mod 4
    const char *observations; // their name; NULL: "observations"
} test_minari;

static inline size_t test_length(size_t e)
{
    return 2 + e;
}

static inline void test_minari_write(const char *path, const test_minari *how)
{
    const hid_t file = test_h5_create(path), truth = test_h5_truth();
    for (size_t e = 0, row = 0, step = 0; e < TEST_EPISODES; e++) {
        const size_t length = test_length(e);
        const bool here = (int)e == how->episode;
        uint8_t images[8][TEST_ROW], terminated[8] = {0}, truncated[8] = {0};
        int64_t actions[8];
        double rewards[8], reals[8];
        int32_t states[8];
        for (size_t t = 0; t <= length; t++, row++) {
            for (size_t i = 0; i < TEST_ROW; i++) images[t][i] = (uint8_t)(row + i);
            states[t] = (int32_t)(row % 4);
        }
        for (size_t t = 0; t < length; t++, step++) {
            actions[t] = (int64_t)(step % 3) + how->start;
            rewards[t] = (double)step / 10;
        }
        if (here && how->reward != 0) rewards[0] = how->reward;
        terminated[length - 1] = e != 1;
        truncated[length - 1] = e == 1;
        if (here && how->no_end) terminated[length - 1] = truncated[length - 1] = 0;
        if (here && how->both_ends) terminated[length - 1] = truncated[length - 1] = 1;
        if (here && how->early_end) terminated[0] = 1;
        char name[96];
        const hsize_t rows[3] = {length + 1 - (hsize_t)(here ? how->observations_less : 0), 2, 3};
        const hsize_t n[1] = {length}, less[1] = {length - (hsize_t)(here ? how->actions_less : 0)};
        const hsize_t fewer[1] = {length - (hsize_t)(here ? how->rewards_less : 0)};
        snprintf(name, sizeof name, "episode_%zu/%s", e,
                 how->observations ? how->observations : "observations");
        test_h5_put(file, name, H5T_NATIVE_UINT8, 3, rows, images, how->layout);
        snprintf(name, sizeof name, "episode_%zu/actions", e);
        if (here && how->action != 0) {
            for (size_t t = 0; t < length; t++) reals[t] = (double)actions[t];
            reals[0] = how->action;
            test_h5_put(file, name, H5T_NATIVE_DOUBLE, 1, less, reals, (test_layout){0});
        } else {
            test_h5_put(file, name, H5T_NATIVE_INT64, 1, less, actions, (test_layout){0});
        }
        snprintf(name, sizeof name, "episode_%zu/rewards", e);
        test_h5_put(file, name, H5T_NATIVE_DOUBLE, 1, fewer, rewards, (test_layout){0});
        snprintf(name, sizeof name, "episode_%zu/terminations", e);
        test_h5_put(file, name, truth, 1, n, terminated, (test_layout){0});
        snprintf(name, sizeof name, "episode_%zu/truncations", e);
        test_h5_put(file, name, truth, 1, n, truncated, (test_layout){0});
        if (how->latent) {
            const hsize_t all[1] = {length + 1};
            snprintf(name, sizeof name, "episode_%zu/infos/latent_state", e);
            test_h5_put(file, name, H5T_NATIVE_INT32, 1, all, states, (test_layout){0});
        }
    }
    H5Tclose(truth);
    H5Fclose(file);
}

// Are these the trajectories that test_minari_write describes?
static inline void test_minari_check(psi_ctx *ctx, const psi_trajectories *data)
{
    assert_int_equal(data->n_episodes, TEST_EPISODES);
    assert_int_equal(data->n_transitions, TEST_STEPS);
    assert_int_equal(data->n_observations, TEST_STATES);
    assert_int_equal(psi_observations_dtype(data->observations), PSI_UINT8);
    assert_int_equal(psi_observations_shape(data->observations)->rank, 2);
    for (size_t e = 0, t = 0; e < TEST_EPISODES; e++) {
        assert_int_equal(data->episode_offsets[e], t);
        assert_int_equal(data->terminated[e], e != 1);
        assert_int_equal(data->truncated[e], e == 1);
        assert_int_equal(data->final_missing[e], 0);
        t += test_length(e);
    }
    for (size_t t = 0; t < TEST_STEPS; t++) {
        assert_int_equal(data->actions[t], t % 3);
        assert_true(data->rewards[t] == (double)t / 10);
    }
    // every row alone, all in order, and all backwards
    uint8_t images[TEST_STATES][TEST_ROW];
    uint64_t forward[TEST_STATES], backward[TEST_STATES];
    for (uint64_t i = 0; i < TEST_STATES; i++) {
        forward[i] = i;
        backward[i] = TEST_STATES - 1 - i;
        assert_ok(ctx, psi_observations_gather(ctx, data->observations, &i, 1, images[i]));
        for (size_t k = 0; k < TEST_ROW; k++) assert_int_equal(images[i][k], i + k);
    }
    assert_ok(ctx, psi_observations_gather(ctx, data->observations, forward, TEST_STATES, images));
    for (size_t i = 0; i < TEST_STATES; i++) {
        for (size_t k = 0; k < TEST_ROW; k++) assert_int_equal(images[i][k], i + k);
    }
    assert_ok(ctx, psi_observations_gather(ctx, data->observations, backward, TEST_STATES, images));
    for (size_t i = 0; i < TEST_STATES; i++) {
        for (size_t k = 0; k < TEST_ROW; k++) {
            assert_int_equal(images[i][k], TEST_STATES - 1 - i + k);
        }
    }
}

// An array in an .npz that is being made. descr is like "<f8", shape like "(3, 2)".
static inline void test_npz_put(zip_t *zip, const char *name, const char *descr, const char *shape,
                                const void *values, size_t size, bool fortran, int version)
{
    char entry[64], text[256];
    char *file = malloc(size + 256);
    assert_non_null(file);
    snprintf(entry, sizeof entry, "%s.npy", name);
    const size_t start = version == 1 ? 10 : 12;
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
                          descr, fortran ? "True" : "False", shape);
    const size_t total = (start + (size_t)length + 1 + 63) / 64 * 64;
    memset(file, ' ', total);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)version;
    file[7] = 0;
    file[8] = (char)(total - start);
    file[9] = 0;
    if (version > 1) file[10] = file[11] = 0;
    memcpy(file + start, text, (size_t)length);
    file[total - 1] = '\n';
    if (size) memcpy(file + total, values, size);
    zip_source_t *source = zip_source_buffer(zip, file, total + size, 1);
    assert_non_null(source);
    assert_true(zip_file_add(zip, entry, source, 0) >= 0);
}

static inline zip_t *test_npz_create(const char *path)
{
    int code;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(zip);
    return zip;
}

static inline void test_npz_finish(zip_t *zip, bool stored)
{
    for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); i++) {
        zip_set_file_compression(zip, (zip_uint64_t)i, stored ? ZIP_CM_STORE : ZIP_CM_DEFLATE, 0);
    }
    assert_int_equal(zip_close(zip), 0);
}

// Reading must fail with this status, and the sentence must say all of these words.
static inline void test_refused(psi_ctx *ctx, const char *path, const char *key, psi_status status,
                                const char *first, const char *second)
{
    for (size_t limit = 0; limit < 2; limit++) {
        const psi_read_options options = {
            .size = sizeof options, .observation_key = key, .memory_limit = limit};
        psi_trajectories *data;
        const psi_status got = psi_trajectories_read(ctx, path, &options, &data);
        assert_status(ctx, got, status);
        assert_null(data);
        test_assert_error_says(ctx, first);
        test_assert_error_says(ctx, second);
        test_assert_error_says(ctx, strrchr(path, '/') + 1);
    }
}

typedef struct test_reading {
    const char *path, *key;
    size_t memory_limit;
} test_reading;

// For test_fault_sweep: read, look at every row and the summary, free.
static inline psi_status test_read_work(psi_ctx *ctx, void *argument)
{
    const test_reading *reading = argument;
    const psi_read_options options = {.size = sizeof options,
                                      .observation_key = reading->key,
                                      .memory_limit = reading->memory_limit};
    psi_trajectories *data = NULL;
    psi_summary *summary = NULL;
    psi_status status = psi_trajectories_read(ctx, reading->path, &options, &data);
    if (status != PSI_OK) {
        assert_null(data);
        return status;
    }
    char *row = malloc(psi_observations_row_bytes(data->observations));
    for (uint64_t i = 0; status == PSI_OK && i < data->n_observations; i++) {
        status = psi_observations_gather(ctx, data->observations, &i, 1, row);
    }
    free(row);
    if (status == PSI_OK) status = psi_trajectories_summary(ctx, data, &summary);
    psi_summary_free(ctx, summary);
    psi_trajectories_free(ctx, data);
    return status;
}

// Sweeps reading from memory and from the file.
static inline void test_read_sweep(const char *path, const char *key)
{
    for (size_t limit = 0; limit < 2; limit++) {
        test_reading reading = {path, key, limit};
        assert_true(test_fault_sweep(test_read_work, &reading) > 5);
    }
}

#endif
