#include "files.h"
#include "fixture.h"

#include <float.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

static const psi_dtype ALL[] = {PSI_UINT8, PSI_INT32, PSI_INT64, PSI_FLOAT32, PSI_FLOAT64};
enum { TYPES = sizeof ALL / sizeof ALL[0], RANKS = PSI_MAX_RANK + 1, ELEMENTS = 5 * 3 * 4 * 2 };

// Any bit pattern must survive, that of a NaN included.
static const unsigned char *noise(void)
{
    static unsigned char bytes[ELEMENTS * 8];
    uint32_t word = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        word = word * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(word >> 24);
    }
    memset(bytes, 0xff, 8);
    return bytes;
}

static psi_array sample(size_t type, size_t rank)
{
    static char names[TYPES][RANKS][32];
    snprintf(names[type][rank], sizeof names[type][rank], "%s of rank %zu",
             psi_dtype_name(ALL[type]), rank);
    return (psi_array){names[type][rank], ALL[type], {rank, {5, 3, 4, 2}}, noise()};
}

static void check_loaded(const char *path, const char *name, const psi_array *expected)
{
    psi_shape shape;
    void *data;
    assert_ok(ctx, psi_array_load(ctx, path, name, expected->dtype, &shape, &data));
    assert_int_equal(shape.rank, expected->shape.rank);
    for (size_t d = 0; d < shape.rank; d++) {
        assert_int_equal(shape.dim[d], expected->shape.dim[d]);
    }
    assert_memory_equal(data, expected->data,
                        psi_shape_size(&shape) * psi_dtype_size(expected->dtype));
    psi_array_free(ctx, data);
}

static void test_round_trips(void **state)
{
    (void)state;
    psi_array all[TYPES * RANKS];
    for (size_t i = 0; i < TYPES * RANKS; i++) {
        const char *path = test_path(folder, "one.npy");
        all[i] = sample(i / RANKS, i % RANKS);
        assert_ok(ctx, psi_arrays_save(ctx, path, &all[i], 1));
        check_loaded(path, NULL, &all[i]);
    }
    const char *path = test_path(folder, "all.npz");
    assert_ok(ctx, psi_arrays_save(ctx, path, all, TYPES * RANKS));
    for (size_t i = 0; i < TYPES * RANKS; i++) check_loaded(path, all[i].name, &all[i]);
}

static void test_nothing_and_long_names(void **state)
{
    (void)state;
    char name[252];
    memset(name, 'n', sizeof name);
    name[250] = '\0';
    const psi_array arrays[] = {{name, PSI_INT32, {1, {0}}, NULL},
                                {"ψ", PSI_FLOAT64, {3, {4, 0, 2}}, NULL}};
    const char *path = test_path(folder, "empty.npz"), *one = test_path(folder, "empty.npy");
    assert_ok(ctx, psi_arrays_save(ctx, path, arrays, 2));
    assert_ok(ctx, psi_arrays_save(ctx, one, arrays, 1));
    for (int i = 0; i < 3; i++) {
        psi_shape shape;
        void *data;
        assert_ok(ctx, psi_array_load(ctx, i < 2 ? path : one, i < 2 ? arrays[i].name : NULL,
                                      PSI_FLOAT32, &shape, &data));
        assert_non_null(data);
        assert_int_equal(shape.rank, arrays[i % 2].shape.rank);
        assert_int_equal(psi_shape_size(&shape), 0);
        psi_array_free(ctx, data);
    }
}

static char *contents(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 16);
    *size = fread(bytes, 1, 1 << 16, file);
    assert_true(*size > 0 && *size < 1 << 16);
    fclose(file);
    return bytes;
}

static void test_same_arrays_same_bytes(void **state)
{
    (void)state;
    const psi_array arrays[] = {sample(3, 2), sample(1, 1), sample(0, 4)};
    for (int npy = 0; npy < 2; npy++) {
        const char *first = test_path(folder, npy ? "a.npy" : "a.npz");
        const char *second = test_path(folder, npy ? "b.npy" : "b.npz");
        size_t sizes[2];
        const psi_array other = sample(0, 1);
        assert_ok(ctx, psi_arrays_save(ctx, second, &other, 1)); // is replaced
        assert_ok(ctx, psi_arrays_save(ctx, first, arrays, npy ? 1 : 3));
        char *before = contents(first, &sizes[0]);
        // the dates in a zip have a resolution of two seconds
        struct timespec pause = {.tv_sec = 2, .tv_nsec = 100000000};
        if (!npy) nanosleep(&pause, NULL);
        assert_ok(ctx, psi_arrays_save(ctx, second, arrays, npy ? 1 : 3));
        char *after = contents(second, &sizes[1]);
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(before, after, sizes[0]);
        free(before);
        free(after);
    }
}

static void test_refused_to_save(void **state)
{
    (void)state;
    const psi_array good = sample(1, 1);
    psi_array bad[8];
    const char *words[8] = {"name of 1", "name of 1", "name of 1", "two arrays are named",
                            "no type",   "no type",   "no type",   "no type"};
    char name[252];
    memset(name, 'n', 251);
    name[251] = '\0';
    for (int i = 0; i < 8; i++) {
        bad[i] = good;
        bad[i].name = "other";
    }
    bad[0].name = NULL;
    bad[1].name = "";
    bad[2].name = name;
    bad[3].name = good.name;
    bad[4].dtype = (psi_dtype)77;
    bad[5].shape.rank = 5;
    bad[6].shape = (psi_shape){3, {SIZE_MAX / 2, 3, 1}};
    bad[7].data = NULL;
    const char *path = test_path(folder, "kept.npz"), *one = test_path(folder, "no.npy");
    assert_ok(ctx, psi_arrays_save(ctx, path, &good, 1));
    for (int i = 0; i < 8; i++) {
        const psi_array both[] = {good, bad[i]};
        assert_status(ctx, psi_arrays_save(ctx, path, both, 2), PSI_EUSAGE);
        test_assert_error_says(ctx, words[i]);
        test_assert_error_says(ctx, "kept.npz");
        if (i < 4) continue;
        assert_status(ctx, psi_arrays_save(ctx, one, &bad[i], 1), PSI_EUSAGE);
        assert_true(access(one, F_OK) != 0);
    }
    const psi_array twice[] = {good, sample(2, 2)}, latin = {"caf\xe9", PSI_UINT8, {0}, "x"};
    assert_status(ctx, psi_arrays_save(ctx, one, twice, 2), PSI_EUSAGE);
    assert_status(ctx, psi_arrays_save(ctx, path, twice, 0), PSI_EUSAGE);
    assert_status(ctx, psi_arrays_save(ctx, test_path(folder, "a.txt"), twice, 2), PSI_EUSAGE);
    assert_status(ctx, psi_arrays_save(ctx, path, &latin, 1), PSI_EUSAGE);
    test_assert_error_says(ctx, "UTF-8");
    check_loaded(path, good.name, &good);
    for (int i = 0; i < 2; i++) {
        const char *nowhere = test_path(folder, i ? "no/folder.npz" : "no/folder.npy");
        assert_status(ctx, psi_arrays_save(ctx, nowhere, &good, 1), PSI_EIO);
    }
}

static void assert_refused(const char *path, const char *name, psi_dtype wanted, psi_status status,
                           const char *words)
{
    psi_shape shape;
    void *data = &shape;
    assert_status(ctx, psi_array_load(ctx, path, name, wanted, &shape, &data), status);
    assert_null(data);
    test_assert_error_says(ctx, words);
    test_assert_error_says(ctx, strrchr(path, '/') + 1);
}

static void test_missing(void **state)
{
    (void)state;
    const psi_array array = {"labels", PSI_INT32, {0}, &(int32_t){7}};
    const char *npz = test_path(folder, "a.npz"), *npy = test_path(folder, "a.npy");
    assert_ok(ctx, psi_arrays_save(ctx, npz, &array, 1));
    assert_ok(ctx, psi_arrays_save(ctx, npy, &array, 1));
    char name[300];
    memset(name, 'n', sizeof name);
    name[299] = '\0';
    assert_refused(npz, "label", PSI_INT32, PSI_EDATA, "label is missing");
    assert_refused(npz, name, PSI_INT32, PSI_EDATA, "is missing");
    assert_refused(npz, NULL, PSI_INT32, PSI_EFORMAT, "not a single array");
    assert_refused(npy, "labels", PSI_INT32, PSI_EFORMAT, "without a name");
    assert_refused(npy, NULL, (psi_dtype)77, PSI_EUSAGE, "no type");
    assert_refused(test_path(folder, "b.npy"), NULL, PSI_INT32, PSI_EIO, "cannot open");
    assert_refused(folder, NULL, PSI_INT32, PSI_EIO, "not a file");
}

// Every element of an array that was stored as descr, wanted as another type.
static void put_values(const char *path, const char *descr, const char *shape, const void *values,
                       size_t size, bool fortran)
{
    zip_t *zip = test_npz_create(path);
    test_npz_put(zip, "x", descr, shape, values, size, fortran, 1);
    test_npz_finish(zip, false);
}

#define NO       ((double)NAN)
#define INFINITE ((double)INFINITY)

static void test_conversions(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        union {
            int64_t whole;
            uint64_t natural;
            double real;
            float single;
            char bytes[8];
        } stored;
        size_t size;
        double expected[TYPES]; // NO: refused
    } cases[] = {
        {"<i8", {.whole = 255}, 8, {255, 255, 255, 255, 255}},
        {"<i8", {.whole = 256}, 8, {NO, 256, 256, 256, 256}},
        {"<i8", {.whole = -1}, 8, {NO, -1, -1, -1, -1}},
        {"<i8", {.whole = INT32_MAX}, 8, {NO, INT32_MAX, INT32_MAX, NO, INT32_MAX}},
        {"<i8", {.whole = 0x80000000}, 8, {NO, NO, 0x1p31, 0x1p31, 0x1p31}},
        {"<i8", {.whole = INT32_MIN - 1LL}, 8, {NO, NO, -0x1p31 - 1, NO, -0x1p31 - 1}},
        {"<i8", {.whole = (1 << 24) + 1}, 8, {NO, 0x1p24 + 1, 0x1p24 + 1, NO, 0x1p24 + 1}},
        {"<i8", {.whole = INT64_MIN}, 8, {NO, NO, -0x1p63, -0x1p63, -0x1p63}},
        {"<u8", {.natural = 1ULL << 63}, 8, {NO, NO, NO, NO, NO}},
        {"<u8", {.natural = UINT64_MAX}, 8, {NO, NO, NO, NO, NO}},
        {"|i1", {.bytes = "\xff"}, 1, {NO, -1, -1, -1, -1}},
        {"|u1", {.bytes = "\xff"}, 1, {255, 255, 255, 255, 255}},
        {"|b1", {.bytes = "\x01"}, 1, {1, 1, 1, 1, 1}},
        {">i4", {.bytes = {0, 0, 1, 2}}, 4, {NO, 258, 258, 258, 258}},
        {"<u2", {.bytes = "\xff\xff"}, 2, {NO, 65535, 65535, 65535, 65535}},
        {"<f2", {.bytes = {0, 0x3e}}, 2, {NO, NO, NO, 1.5, 1.5}},
        {"<f4", {.single = 3}, 4, {3, 3, 3, 3, 3}},
        {"<f8", {.real = 0.1}, 8, {NO, NO, NO, (double)0.1f, 0.1}},
        {"<f8", {.real = 1e300}, 8, {NO, NO, NO, NO, 1e300}},
        {"<f8", {.real = -INFINITE}, 8, {NO, NO, NO, -INFINITE, -INFINITE}},
        {"<f8", {.real = (double)FLT_MAX}, 8, {NO, NO, NO, (double)FLT_MAX, (double)FLT_MAX}},
    };
    const char *path = test_path(folder, "a.npz");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_values(path, cases[i].descr, "(1,)", &cases[i].stored, cases[i].size, false);
        for (size_t t = 0; t < TYPES; t++) {
            if (isnan(cases[i].expected[t])) {
                assert_refused(path, "x", ALL[t], PSI_EDATA, psi_dtype_name(ALL[t]));
                continue;
            }
            psi_shape shape;
            void *data;
            assert_ok(ctx, psi_array_load(ctx, path, "x", ALL[t], &shape, &data));
            const double got = ALL[t] == PSI_UINT8     ? *(uint8_t *)data
                               : ALL[t] == PSI_INT32   ? *(int32_t *)data
                               : ALL[t] == PSI_INT64   ? (double)*(int64_t *)data
                               : ALL[t] == PSI_FLOAT32 ? (double)*(float *)data
                                                       : *(double *)data;
            if (got != cases[i].expected[t]) {
                fail_msg("case %zu as %s: %.17g", i, psi_dtype_name(ALL[t]), got);
            }
            psi_array_free(ctx, data);
        }
    }
    const int64_t max = INT64_MAX; // the nearest double is another number
    put_values(path, "<i8", "()", &max, 8, false);
    assert_refused(path, "x", PSI_FLOAT64, PSI_EDATA, "float64");
    check_loaded(path, "x", &(psi_array){"x", PSI_INT64, {0}, &max});
}

static void test_kinds_and_orders(void **state)
{
    (void)state;
    const char *path = test_path(folder, "a.npz");
    static const char *const others[] = {"<U1", "|S4", "<c8", "|V4", "<M8", "<f16", "<i3"};
    static const size_t sizes[] = {4, 4, 8, 4, 8, 16, 3};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_values(path, others[i], "(1,)", noise(), sizes[i], false);
        assert_refused(path, "x", PSI_FLOAT32, PSI_EDATA, "not numbers psifold knows");
    }
    put_values(path, "|u1", "(1, 1, 1, 1, 2)", noise(), 2, false);
    assert_refused(path, "x", PSI_UINT8, PSI_EDATA, "5 dimensions");
    const int32_t columns[6] = {0, 3, 1, 4, 2, 5}, rows[6] = {0, 1, 2, 3, 4, 5};
    put_values(path, "<i4", "(2, 3)", columns, sizeof columns, true);
    const psi_array expected = {"x", PSI_INT32, {2, {2, 3}}, rows};
    check_loaded(path, "x", &expected);
    // the same in a file of its own: what is in the zip is one
    zip_t *zip = zip_open(path, ZIP_RDONLY, NULL);
    char bytes[512];
    zip_file_t *entry = zip_fopen(zip, "x.npy", 0);
    const zip_int64_t size = zip_fread(entry, bytes, sizeof bytes);
    assert_true(size > 24);
    zip_fclose(entry);
    zip_discard(zip);
    const char *one = test_path(folder, "a.npy");
    test_put(one, bytes, (size_t)size);
    check_loaded(one, NULL, &expected);
}

// Headers that lie about what follows them.
static void test_hostile_headers(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *words;
    } cases[] = {
        {"(3,)", "more"},
        {"(1,)", "fewer"},
        {"()", "fewer"},
        {"(0,)", "fewer"},
        {"(4611686018427387904, 4)", "more"}, // 2^62 · 4 · 4 = 0 in 64 bits
        {"(4, 4611686018427387904)", "more"},
        {"(0, 9223372036854775807, 9223372036854775807)", "more"},
        {"(99999999999999999999,)", "not an array"},
        {"(-2,)", "not an array"},
        {"(2", "not an array"},
        {"(1, 1, 1, 1, 1, 2)", "not an array"},
    };
    const char *path = test_path(folder, "a.npy");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bytes[136];
        memset(bytes, ' ', sizeof bytes);
        memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
        const int length = snprintf(bytes + 10, 110,
                                    "{'descr': '<i4', 'fortran_order': %s, "
                                    "'shape': %s}",
                                    i % 2 ? "True" : "False", cases[i].shape);
        bytes[10 + length] = '\n';
        test_put(path, bytes, sizeof bytes);
        assert_refused(path, NULL, PSI_INT32, PSI_EFORMAT, cases[i].words);
    }
}

// Whatever is cut off or changed: a status, and never another array of the .npz without one.
static void test_damage(void **state)
{
    (void)state;
    const psi_array arrays[] = {sample(1, 2), sample(4, 1)};
    for (int npy = 0; npy < 2; npy++) {
        const char *path = test_path(folder, npy ? "a.npy" : "a.npz");
        const char *name = npy ? NULL : arrays[0].name;
        assert_ok(ctx, psi_arrays_save(ctx, path, arrays, npy ? 1 : 2));
        size_t size;
        char *bytes = contents(path, &size);
        psi_shape shape;
        void *data;
        for (size_t n = 0; n < size; n++) {
            test_put(path, bytes, n);
            assert_refused(path, name, PSI_INT32, PSI_EFORMAT, "");
        }
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (char)(bytes[i] ^ 0x41);
            test_put(path, bytes, size);
            const psi_status status = psi_array_load(ctx, path, name, PSI_INT32, &shape, &data);
            if (status == PSI_OK && !npy) {
                assert_memory_equal(data, arrays[0].data, 60);
            }
            assert_true(status == PSI_OK || status == PSI_EFORMAT || status == PSI_EDATA ||
                        status == PSI_EUNSUPPORTED);
            assert_int_equal(status == PSI_OK, data != NULL);
            psi_array_free(ctx, data);
            bytes[i] = (char)(bytes[i] ^ 0x41);
        }
        free(bytes);
    }
}

static psi_status save_and_load(psi_ctx *faulty, void *argument)
{
    const psi_array arrays[] = {sample(1, 2), sample(3, 4)};
    const char *path = argument;
    const bool npz = path[strlen(path) - 1] == 'z';
    const psi_status saved = psi_arrays_save(faulty, path, arrays, npz ? 2 : 1);
    if (saved != PSI_OK) return saved;
    for (int i = 0; i < 2; i++) {
        psi_shape shape;
        void *data;
        const psi_status status = psi_array_load(faulty, path, npz ? arrays[0].name : NULL,
                                                 i ? PSI_INT64 : PSI_INT32, &shape, &data);
        assert_int_equal(status == PSI_OK, data != NULL);
        psi_array_free(faulty, data);
        if (status != PSI_OK) return status;
    }
    return PSI_OK;
}

static psi_status load_turned(psi_ctx *faulty, void *argument)
{
    psi_shape shape;
    void *data;
    const psi_status status = psi_array_load(faulty, argument, NULL, PSI_FLOAT64, &shape, &data);
    assert_int_equal(status == PSI_OK, data != NULL);
    psi_array_free(faulty, data);
    return status;
}

static void test_allocation_faults(void **state)
{
    (void)state;
    char path[512];
    for (int npz = 0; npz < 2; npz++) {
        snprintf(path, sizeof path, "%s", test_path(folder, npz ? "a.npz" : "a.npy"));
        assert_true(test_fault_sweep(save_and_load, path) > 8);
    }
    char bytes[152] = "\x93NUMPY\x01\x00\x76\x00"
                      "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3)}";
    memset(bytes + 66, ' ', 62);
    test_put(test_path(folder, "f.npy"), bytes, sizeof bytes);
    snprintf(path, sizeof path, "%s", test_path(folder, "f.npy"));
    assert_true(test_fault_sweep(load_turned, path) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(round_trips),
        TEST(nothing_and_long_names),
        TEST(same_arrays_same_bytes),
        TEST(refused_to_save),
        TEST(missing),
        TEST(conversions),
        TEST(kinds_and_orders),
        TEST(hostile_headers),
        TEST(damage),
        TEST(allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
