#include "base/random.h"
#include "files.h"
#include "fixture.h"

#include <turbojpeg.h>

static void test_rows_in_memory(void **state)
{
    (void)state;
    enum { COUNT = 3000, WIDTH = 57 };
    static float values[COUNT][WIDTH], got[COUNT][WIDTH];
    static uint64_t rows[COUNT];
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < WIDTH; k++) values[i][k] = (float)(i * WIDTH + k);
    }
    psi_observations *all;
    const psi_shape shape = {.rank = 2, .dim = {3, 19}};
    assert_ok(ctx, psi_observations_over(ctx, PSI_FLOAT32, &shape, COUNT, values, &all));
    assert_int_equal(psi_observations_count(all), COUNT);
    assert_int_equal(psi_observations_dtype(all), PSI_FLOAT32);
    assert_int_equal(psi_observations_row_bytes(all), WIDTH * sizeof(float));
    assert_ptr_equal(psi_observations_data(all), values);
    base_random random = base_random_stream(1, 0, 0);
    for (size_t n = 0; n <= COUNT; n = n * 3 + 1) {
        for (size_t i = 0; i < n; i++) rows[i] = base_random_below(&random, COUNT);
        assert_ok(ctx, psi_observations_gather(ctx, all, rows, n, got));
        for (size_t i = 0; i < n; i++) {
            assert_memory_equal(got[i], values[rows[i]], sizeof got[i]);
        }
    }
    rows[7] = COUNT;
    assert_status(ctx, psi_observations_gather(ctx, all, rows, 8, got), PSI_ESHAPE);
    test_assert_error_says(ctx, "3000");
    psi_observations_free(ctx, all);
    psi_observations_free(ctx, NULL);
}

static void test_shapes_that_cannot_be(void **state)
{
    (void)state;
    psi_observations *all;
    const psi_shape deep = {.rank = 5}, empty = {.rank = 1}, small = {0};
    const psi_shape huge = {.rank = 2, .dim = {SIZE_MAX / 2, 3}};
    assert_status(ctx, psi_observations_over(ctx, PSI_UINT8, &deep, 1, "", &all), PSI_ESHAPE);
    assert_status(ctx, psi_observations_over(ctx, PSI_UINT8, &empty, 1, "", &all), PSI_ESHAPE);
    assert_status(ctx, psi_observations_over(ctx, PSI_UINT8, &huge, 1, "", &all), PSI_ESHAPE);
    assert_status(ctx, psi_observations_over(ctx, PSI_INT64, &small, SIZE_MAX, "", &all),
                  PSI_ESHAPE);
    assert_status(ctx, psi_observations_over(ctx, (psi_dtype)77, &small, 1, "", &all), PSI_ESHAPE);
    assert_null(all);
}

// Random shapes, chunk shapes and filters against the same rows read by libhdf5.
static void test_chunks_of_any_shape(void **state)
{
    (void)state;
    base_random random = base_random_stream(2, 0, 0);
    for (int round = 0; round < 60; round++) {
        const int rank = 1 + (int)base_random_below(&random, 5);
        hsize_t dims[5], chunk[5];
        size_t row = 1;
        dims[0] = 2 + base_random_below(&random, 20);
        for (int d = 0; d < rank; d++) {
            if (d > 0) {
                dims[d] = 1 + base_random_below(&random, 7);
                row *= dims[d];
            }
            chunk[d] = 1 + base_random_below(&random, (uint32_t)dims[d]);
        }
        const size_t count = dims[0] * row;
        int32_t *values = malloc(count * sizeof *values), *got = malloc(count * sizeof *got);
        for (size_t i = 0; i < count; i++) values[i] = (int32_t)base_random_u32(&random);
        const char *path = test_path(folder, "chunks");
        const hid_t file = test_h5_create(path);
        const test_layout layout = {base_random_below(&random, 5) ? chunk : NULL, round % 3 == 2};
        // big-endian every other time: converted by us, not by libhdf5
        const hid_t type = round % 2 ? H5T_STD_I32BE : H5T_STD_I32LE;
        const hid_t how = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, dims, NULL);
        if (layout.chunk) H5Pset_chunk(how, rank, chunk);
        if (layout.chunk && layout.deflate) H5Pset_deflate(how, 1);
        const hid_t set =
            H5Dcreate2(file, "observations", type, space, H5P_DEFAULT, how, H5P_DEFAULT);
        H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Dclose(set);
        H5Sclose(space);
        H5Pclose(how);
        const hsize_t n[1] = {dims[0]};
        double *zeros = calloc(dims[0], sizeof *zeros);
        test_h5_put(file, "rewards", H5T_NATIVE_DOUBLE, 1, n, zeros, (test_layout){0});
        test_h5_put(file, "actions", H5T_NATIVE_DOUBLE, 1, n, zeros, (test_layout){0});
        test_h5_put(file, "terminals", H5T_NATIVE_DOUBLE, 1, n, zeros, (test_layout){0});
        free(zeros);
        H5Fclose(file);
        for (size_t limit = 0; limit < 2; limit++) {
            psi_trajectories *data;
            const psi_read_options options = {.size = sizeof options, .memory_limit = limit};
            assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
            assert_int_equal(data->n_observations, dims[0]);
            uint64_t rows[32];
            for (size_t i = 0; i < dims[0]; i++) rows[i] = i;
            assert_ok(ctx, psi_observations_gather(ctx, data->observations, rows, dims[0], got));
            assert_memory_equal(got, values, count * sizeof *got);
            for (int k = 0; k < 4; k++) {
                for (size_t i = 0; i < dims[0]; i++) {
                    rows[i] = base_random_below(&random, (uint32_t)dims[0]);
                }
                assert_ok(ctx,
                          psi_observations_gather(ctx, data->observations, rows, dims[0], got));
                for (size_t i = 0; i < dims[0]; i++) {
                    assert_memory_equal(got + i * row, values + rows[i] * row, row * sizeof *got);
                }
            }
            psi_trajectories_free(ctx, data);
        }
        free(values);
        free(got);
    }
}

// Frames that are compressed and unpacked again by libturbojpeg alone, for comparison.
typedef struct frames {
    int height, width, colours;
    size_t n, size[8], longest;
    unsigned char *bytes[8];
    uint8_t pixels[8][16 * 24 * 3];
} frames;

static frames make_frames(int colours, bool alike)
{
    frames made = {.height = 16, .width = 24, .colours = colours, .n = 8};
    tjhandle in = tjInitCompress(), out = tjInitDecompress();
    for (size_t f = 0; f < made.n; f++) {
        uint8_t raw[16 * 24 * 3];
        for (int i = 0; i < made.height * made.width * colours; i++) {
            raw[i] = (uint8_t)(alike ? 90 : i * (int)f / 3 + i % 7 * 20);
        }
        unsigned long size = 0;
        const int format = colours == 1 ? TJPF_GRAY : TJPF_RGB;
        assert_int_equal(tjCompress2(in, raw, made.width, 0, made.height, format, &made.bytes[f],
                                     &size, colours == 1 ? TJSAMP_GRAY : TJSAMP_420, 80, 0),
                         0);
        made.size[f] = size;
        if (size > made.longest) made.longest = size;
        assert_int_equal(tjDecompress2(out, made.bytes[f], size, made.pixels[f], made.width, 0,
                                       made.height, format, TJFLAG_ACCURATEDCT),
                         0);
    }
    tjDestroy(in);
    tjDestroy(out);
    return made;
}

static const char *write_frames(const frames *made, bool strings)
{
    const char *path = test_path(folder, "frames.h5");
    const hid_t file = test_h5_create(path), truth = test_h5_truth();
    if (strings) {
        hvl_t values[8];
        for (size_t f = 0; f < made->n; f++) values[f] = (hvl_t){made->size[f], made->bytes[f]};
        const hid_t type = H5Tvlen_create(H5T_NATIVE_UINT8);
        test_h5_put(file, "episode_0/observations", type, 1, (hsize_t[]){made->n}, values,
                    (test_layout){.chunk = (hsize_t[]){3}});
        H5Tclose(type);
    } else {
        uint8_t *values = calloc(made->n, made->longest);
        for (size_t f = 0; f < made->n; f++) {
            memcpy(values + f * made->longest, made->bytes[f], made->size[f]);
        }
        test_h5_put(file, "episode_0/observations", H5T_NATIVE_UINT8, 2,
                    (hsize_t[]){made->n, made->longest}, values,
                    (test_layout){.chunk = (hsize_t[]){3, 60}});
        free(values);
    }
    const hsize_t steps[1] = {7};
    test_h5_put(file, "episode_0/actions", H5T_NATIVE_INT64, 1, steps,
                (int64_t[]){0, 1, 0, 1, 0, 1, 0}, (test_layout){0});
    test_h5_put(file, "episode_0/rewards", H5T_NATIVE_DOUBLE, 1, steps,
                (double[]){0, 0, 0, 0, 0, 0, 1}, (test_layout){0});
    test_h5_put(file, "episode_0/terminations", truth, 1, steps, (uint8_t[]){0, 0, 0, 0, 0, 0, 1},
                (test_layout){0});
    test_h5_put(file, "episode_0/truncations", truth, 1, steps, (uint8_t[]){0, 0, 0, 0, 0, 0, 0},
                (test_layout){0});
    H5Tclose(truth);
    H5Fclose(file);
    return path;
}

static void test_jpeg_frames(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        frames made = make_frames(i & 1 ? 3 : 1, i & 4);
        const char *path = write_frames(&made, i & 2);
        const size_t bytes = (size_t)(made.height * made.width * made.colours);
        for (size_t limit = 0; limit < 2; limit++) {
            psi_trajectories *data;
            const psi_read_options options = {.size = sizeof options, .memory_limit = limit};
            assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
            const psi_shape *shape = psi_observations_shape(data->observations);
            assert_int_equal(shape->rank, made.colours == 1 ? 2 : 3);
            assert_int_equal(shape->dim[0], made.height);
            assert_int_equal(shape->dim[1], made.width);
            uint8_t got[8][16 * 24 * 3];
            uint64_t rows[8] = {7, 6, 5, 4, 3, 2, 1, 0};
            uint8_t *flat = malloc(8 * bytes);
            assert_ok(ctx, psi_observations_gather(ctx, data->observations, rows, 8, flat));
            for (size_t f = 0; f < 8; f++) {
                memcpy(got[f], flat + f * bytes, bytes);
                assert_memory_equal(got[f], made.pixels[7 - f], bytes);
            }
            free(flat);
            psi_trajectories_free(ctx, data);
        }
        if (i < 4) test_read_sweep(path, NULL);
        for (size_t f = 0; f < made.n; f++) tjFree(made.bytes[f]);
    }
}

static void test_damaged_jpeg_frames(void **state)
{
    (void)state;
    for (int strings = 0; strings < 2; strings++) {
        frames made = make_frames(1, false);
        memset(made.bytes[4], 0, 40);
        test_reading reading = {write_frames(&made, strings), NULL, 1};
        assert_status(ctx, test_read_work(ctx, &reading), PSI_EFORMAT);
        test_assert_error_says(ctx, "frames.h5");
        reading.memory_limit = 0;
        assert_status(ctx, test_read_work(ctx, &reading), PSI_EFORMAT);
        for (size_t f = 0; f < made.n; f++) tjFree(made.bytes[f]);
    }
}

// A plain vector that happens to begin with FF D8 FF is no image.
static void test_vectors_that_only_begin_like_jpeg(void **state)
{
    (void)state;
    frames made = make_frames(1, true);
    unsigned char plain[64] = {0xff, 0xd8, 0xff, 0xe0};
    for (size_t f = 0; f < made.n; f++) {
        tjFree(made.bytes[f]);
        made.bytes[f] = plain;
        made.size[f] = sizeof plain;
    }
    made.longest = sizeof plain;
    psi_trajectories *data;
    assert_ok(ctx, psi_trajectories_read(ctx, write_frames(&made, false), NULL, &data));
    assert_int_equal(psi_observations_row_bytes(data->observations), sizeof plain);
    psi_trajectories_free(ctx, data);
}

// Unsigned integers of 64 bits that do not fit are found when they are read.
static void test_integers_that_do_not_fit(void **state)
{
    (void)state;
    const char *path = test_path(folder, "big.h5");
    const hid_t file = test_h5_create(path);
    const uint64_t values[3] = {1, (uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1};
    const double zeros[3] = {0, 0, 0};
    const hsize_t n[1] = {3};
    test_h5_put(file, "observations", H5T_NATIVE_UINT64, 1, n, values, (test_layout){0});
    test_h5_put(file, "rewards", H5T_NATIVE_DOUBLE, 1, n, zeros, (test_layout){0});
    test_h5_put(file, "actions", H5T_NATIVE_DOUBLE, 1, n, zeros, (test_layout){0});
    test_h5_put(file, "terminals", H5T_NATIVE_DOUBLE, 1, n, zeros, (test_layout){0});
    H5Fclose(file);
    psi_trajectories *data;
    const psi_read_options options = {.size = sizeof options, .memory_limit = 1};
    assert_status(ctx, psi_trajectories_read(ctx, path, NULL, &data), PSI_EDATA);
    assert_ok(ctx, psi_trajectories_read(ctx, path, &options, &data));
    int64_t got[2];
    const uint64_t rows[3] = {0, 1, 2};
    assert_ok(ctx, psi_observations_gather(ctx, data->observations, rows, 2, got));
    assert_int_equal(got[1], INT64_MAX);
    assert_status(ctx, psi_observations_gather(ctx, data->observations, rows + 2, 1, got),
                  PSI_EDATA);
    test_assert_error_says(ctx, "does not fit");
    psi_trajectories_free(ctx, data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_in_memory),           TEST(shapes_that_cannot_be),
        TEST(chunks_of_any_shape),      TEST(jpeg_frames),
        TEST(damaged_jpeg_frames),      TEST(vectors_that_only_begin_like_jpeg),
        TEST(integers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
