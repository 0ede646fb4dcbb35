// Model files: what is written is read back, other people's files are read, and every kind of
// damage is found and named.
#include "nn/safetensors.h"

#include "base/random.h"
#include "support/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixture {
    psi_ctx *ctx;
    char *folder;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->ctx = test_ctx(1);
    f->folder = test_folder();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    psi_ctx_free(f->ctx);
    test_folder_free(f->folder);
    free(f);
    return 0;
}

static const float WEIGHT[2][3] = {{1, 2, 3}, {4, 5, -6.5F}};
static const double PRECISE[2] = {1e-300, 3};
static const int64_t TRACKED = 1234567890123;
static const uint8_t BYTES[5] = {0, 1, 2, 254, 255};

static const nn_named_tensor SOME[] = {
    {"fc.weight", NN_F32, 2, {2, 3}, WEIGHT},
    {"bytes", NN_U8, 1, {5}, BYTES},
    {"bn.num_batches_tracked", NN_I64, 0, {0}, &TRACKED},
    {"precise", NN_F64, 1, {2}, PRECISE},
    {"empty", NN_F32, 3, {4, 0, 2}, NULL},
};
enum { N_SOME = sizeof SOME / sizeof SOME[0] };

static const nn_file_note NOTES[] = {{"format", "pt"}, {"note", "two\nlines, \"quoted\""}};

static char *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct stat info;
    assert_int_equal(fstat(fileno(file), &info), 0);
    *size = (size_t)info.st_size;
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void assert_same(const nn_named_tensor *got, const nn_named_tensor *want)
{
    size_t bytes;
    assert_string_equal(got->name, want->name);
    assert_int_equal(got->dtype, want->dtype);
    assert_int_equal(got->rank, want->rank);
    for (size_t i = 0; i < want->rank; i++) assert_int_equal(got->dim[i], want->dim[i]);
    assert_true(nn_named_tensor_bytes(want, &bytes));
    if (bytes > 0) assert_memory_equal(got->data, want->data, bytes);
}

static void what_is_written_is_read_back(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "some.safetensors");
    assert_ok(f->ctx, nn_safetensors_save(f->ctx, path, SOME, N_SOME, NOTES, 2));
    nn_safetensors *file;
    assert_ok(f->ctx, nn_safetensors_open(f->ctx, path, &file));
    assert_int_equal(nn_safetensors_count(file), N_SOME);
    for (size_t i = 0; i < N_SOME; i++) {
        const nn_named_tensor *found = nn_safetensors_find(file, SOME[i].name);
        assert_non_null(found);
        assert_same(found, &SOME[i]);
        if (i > 0) {
            assert_true(
                strcmp(nn_safetensors_at(file, i - 1)->name, nn_safetensors_at(file, i)->name) < 0);
        }
    }
    assert_null(nn_safetensors_find(file, "fc.bias"));
    assert_string_equal(nn_safetensors_note(file, "format"), "pt");
    assert_string_equal(nn_safetensors_note(file, "note"), NOTES[1].value);
    assert_null(nn_safetensors_note(file, "other"));
    nn_safetensors_free(file);
}

static void the_layout_is_the_formats(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "some.safetensors");
    assert_ok(f->ctx, nn_safetensors_save(f->ctx, path, SOME, N_SOME, NOTES, 1));
    size_t size;
    char *bytes = read_whole(path, &size);
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"precise\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[8,24]},"
        "\"empty\":{\"dtype\":\"F32\",\"shape\":[4,0,2],\"data_offsets\":[24,24]},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,48]},"
        "\"bytes\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[48,53]}}";
    uint64_t length;
    memcpy(&length, bytes, 8);
    assert_int_equal(length % 8, 0);
    assert_in_range(length, strlen(header), strlen(header) + 7);
    assert_memory_equal(bytes + 8, header, strlen(header));
    for (size_t i = strlen(header); i < length; i++) assert_int_equal(bytes[8 + i], ' ');
    assert_int_equal(size, 8 + length + 53);
    assert_memory_equal(bytes + 8 + length, &TRACKED, 8);
    assert_memory_equal(bytes + 8 + length + 24, WEIGHT, sizeof WEIGHT);
    assert_memory_equal(bytes + 8 + length + 48, BYTES, sizeof BYTES);
    free(bytes);
}

static void an_empty_file_holds_no_tensors(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "none.safetensors");
    assert_ok(f->ctx, nn_safetensors_save(f->ctx, path, NULL, 0, NULL, 0));
    nn_safetensors *file;
    assert_ok(f->ctx, nn_safetensors_open(f->ctx, path, &file));
    assert_int_equal(nn_safetensors_count(file), 0);
    assert_null(nn_safetensors_find(file, "x"));
    nn_safetensors_free(file);
}

// Any list of tensors, in any order, makes the same file, and every tensor is aligned in it.
static void random_lists_round_trip(void **state)
{
    fixture *f = *state;
    enum { MOST = 20, ROOM = 4096 };
    uint8_t *numbers = malloc(ROOM);
    assert_non_null(numbers);
    for (uint64_t trial = 0; trial < 200; trial++) {
        base_random random = base_random_stream(7, 1, trial);
        for (size_t i = 0; i < ROOM; i++) numbers[i] = (uint8_t)base_random_u32(&random);
        nn_named_tensor list[MOST], shuffled[MOST];
        char names[MOST][32];
        const uint32_t n = base_random_below(&random, MOST + 1);
        for (uint32_t i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "layer.%u.\xc3\xa4/%u",
                     base_random_below(&random, 4), i);
            list[i] = (nn_named_tensor){.name = names[i],
                                        .dtype = (nn_tensor_dtype)base_random_below(&random, 15),
                                        .rank = base_random_below(&random, 5),
                                        .data = numbers + base_random_below(&random, 1000)};
            for (size_t d = 0; d < list[i].rank; d++) {
                list[i].dim[d] = base_random_below(&random, 5);
            }
        }
        uint32_t order[MOST];
        for (uint32_t i = 0; i < n; i++) order[i] = i;
        base_random_shuffle(&random, order, n);
        for (uint32_t i = 0; i < n; i++) shuffled[i] = list[order[i]];

        const char *path = test_path(f->folder, "a"), *again = test_path(f->folder, "b");
        assert_ok(f->ctx, nn_safetensors_save(f->ctx, path, list, n, NULL, 0));
        assert_ok(f->ctx, nn_safetensors_save(f->ctx, again, shuffled, n, NULL, 0));
        size_t size, size_again;
        char *bytes = read_whole(path, &size), *bytes_again = read_whole(again, &size_again);
        assert_int_equal(size, size_again);
        assert_memory_equal(bytes, bytes_again, size);

        nn_safetensors *file;
        assert_ok(f->ctx, nn_safetensors_open(f->ctx, path, &file));
        assert_int_equal(nn_safetensors_count(file), n);
        for (uint32_t i = 0; i < n; i++) {
            const nn_named_tensor *found = nn_safetensors_find(file, list[i].name);
            assert_non_null(found);
            assert_same(found, &list[i]);
            assert_int_equal((uintptr_t)found->data % nn_tensor_dtype_size(found->dtype), 0);
        }
        nn_safetensors_free(file);
        free(bytes);
        free(bytes_again);
    }
    free(numbers);
}

static void load_checks_type_and_shape(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "some.safetensors");
    assert_ok(f->ctx, nn_safetensors_save(f->ctx, path, SOME, N_SOME, NULL, 0));
    nn_safetensors *file;
    assert_ok(f->ctx, nn_safetensors_open(f->ctx, path, &file));
    float out[6] = {0};
    nn_named_tensor expected = {"fc.weight", NN_F32, 2, {2, 3}, NULL};
    assert_ok(f->ctx, nn_safetensors_load(file, &expected, out));
    assert_memory_equal(out, WEIGHT, sizeof WEIGHT);
    expected.dim[1] = 4;
    assert_status(f->ctx, nn_safetensors_load(file, &expected, out), PSI_ESHAPE);
    test_assert_error_says(f->ctx, "is F32 [2, 3], expected F32 [2, 4]");
    expected.dim[1] = 3;
    expected.dtype = NN_I32;
    assert_status(f->ctx, nn_safetensors_load(file, &expected, out), PSI_ESHAPE);
    expected.dtype = NN_F32;
    expected.rank = 1;
    assert_status(f->ctx, nn_safetensors_load(file, &expected, out), PSI_ESHAPE);
    expected.name = "fc.bias";
    assert_status(f->ctx, nn_safetensors_load(file, &expected, out), PSI_EMISSING);
    test_assert_error_says(f->ctx, "no tensor \"fc.bias\"");
    nn_safetensors_free(file);
}

static void the_writer_refuses_what_nobody_could_read(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "bad.safetensors");
    const nn_named_tensor good = {"a", NN_F32, 2, {2, 3}, WEIGHT};
    nn_named_tensor pair[2] = {good, good};
    pair[1].dtype = NN_U8; // far from its namesake in the file's order
    assert_status(f->ctx, nn_safetensors_save(f->ctx, path, pair, 2, NULL, 0), PSI_EUSAGE);
    test_assert_error_says(f->ctx, "twice");
    static const char *const names[] = {"__metadata__", "line\nbreak", "\xff\xfe"};
    for (size_t i = 0; i < 3; i++) {
        nn_named_tensor bad = good;
        bad.name = names[i];
        assert_status(f->ctx, nn_safetensors_save(f->ctx, path, &bad, 1, NULL, 0), PSI_EUSAGE);
    }
    nn_named_tensor bad = good;
    bad.dim[0] = SIZE_MAX / 4;
    assert_status(f->ctx, nn_safetensors_save(f->ctx, path, &bad, 1, NULL, 0), PSI_ESHAPE);
    bad.rank = NN_TENSOR_MAX_RANK + 1;
    assert_status(f->ctx, nn_safetensors_save(f->ctx, path, &bad, 1, NULL, 0), PSI_ESHAPE);
    bad = good;
    bad.dtype = (nn_tensor_dtype)99;
    assert_status(f->ctx, nn_safetensors_save(f->ctx, path, &bad, 1, NULL, 0), PSI_ESHAPE);
    const nn_file_note twice[] = {{"k", "1"}, {"k", "2"}}, broken = {"k", "\xff"};
    assert_status(f->ctx, nn_safetensors_save(f->ctx, path, &good, 1, twice, 2), PSI_EUSAGE);
    assert_status(f->ctx, nn_safetensors_save(f->ctx, path, &good, 1, &broken, 1), PSI_EUSAGE);
    assert_int_not_equal(access(path, F_OK), 0);
    const char *nowhere = test_path(f->folder, "no/such/folder");
    assert_status(f->ctx, nn_safetensors_save(f->ctx, nowhere, &good, 1, NULL, 0), PSI_EIO);
}

// A disk that is full leaves the file that was there before, and nothing beside it.
static void a_failed_write_leaves_the_old_file(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "some.safetensors");
    assert_ok(f->ctx, nn_safetensors_save(f->ctx, path, SOME, N_SOME, NULL, 0));
    size_t size, size_after;
    char *before = read_whole(path, &size);
    float *many = calloc(1 << 16, sizeof *many);
    assert_non_null(many);
    const nn_named_tensor large = {"large", NN_F32, 1, {1 << 16}, many};

    struct rlimit usual, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    tight = usual;
    tight.rlim_cur = 1 << 16;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const psi_status status = nn_safetensors_save(f->ctx, path, &large, 1, NULL, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, PSI_EIO);

    char *after = read_whole(path, &size_after);
    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(f->folder), 0); // nothing else was left in it
    assert_int_equal(mkdir(f->folder, 0777), 0);
    free(many);
    free(before);
    free(after);
}

// ---- hostile files ----

// One header and the bytes behind it, and what must come of them.
typedef struct damage {
    const char *header;
    size_t data_bytes;
    psi_status status;
    const char *says;
} damage;

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{\"a\":" T(dtype, shape, offsets) "}"

static const damage DAMAGES[] = {
    // as it should be, for comparison
    {ONE("\"F32\"", "[2]", "[0,8]"), 8, PSI_OK, ""},
    {"{}", 0, PSI_OK, ""},
    {"{\"a\":{\"extra\":[1],\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, PSI_OK,
     ""},
    {"{\"__metadata__\":{\"k\":\"v\"}}  ", 0, PSI_OK, ""},
    // not JSON, or not the kind that is meant
    {" {}", 0, PSI_EFORMAT, "does not start with '{'"},
    {"[]", 0, PSI_EFORMAT, "does not start with '{'"},
    {"{\"a\":", 0, PSI_EFORMAT, "line 1"},
    {"{}x", 0, PSI_EFORMAT, "line 1"},
    {"{\"\xff\":1}", 0, PSI_EFORMAT, "line 1"},
    {"{\"a\\u0000b\":1}", 0, PSI_EFORMAT, "line 1"},
    {"{\"\\u001b[2J\":1}", 0, PSI_EFORMAT, "control character"},
    {"{\"a\":1}", 0, PSI_EFORMAT, "not an object"},
    {"{\"a\":{}}", 0, PSI_EFORMAT, "dtype is missing"},
    {"{\"__metadata__\":[]}", 0, PSI_EFORMAT, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, PSI_EFORMAT, "non-text"},
    // one name twice
    {"{\"a\":" T("\"U8\"", "[1]", "[0,1]") ",\"a\":" T("\"U8\"", "[1]", "[1,2]") "}", 2,
     PSI_EFORMAT, "duplicate"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
     PSI_EFORMAT, "duplicate"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, PSI_EFORMAT, "duplicate"},
    // dtype
    {ONE("5", "[2]", "[0,8]"), 8, PSI_EFORMAT, "dtype is missing or not a text"},
    {ONE("\"F33\"", "[2]", "[0,8]"), 8, PSI_EUNSUPPORTED, "dtype \"F33\" is not known"},
    {ONE("\"\\u0007\"", "[2]", "[0,8]"), 8, PSI_EFORMAT, "dtype"},
    // shape
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, PSI_EFORMAT, "shape is missing"},
    {ONE("\"F32\"", "2", "[0,8]"), 8, PSI_EFORMAT, "shape is missing or not a list"},
    {ONE("\"F32\"", "[-2]", "[0,8]"), 8, PSI_EFORMAT, "not a size"},
    {ONE("\"F32\"", "[2.0]", "[0,8]"), 8, PSI_EFORMAT, "not a size"},
    {ONE("\"F32\"", "[\"2\"]", "[0,8]"), 8, PSI_EFORMAT, "not a size"},
    {ONE("\"F32\"", "[99999999999999999999]", "[0,8]"), 8, PSI_EFORMAT, "line 1"},
    {ONE("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, PSI_EUNSUPPORTED, "9 dimensions"},
    {ONE("\"F32\"", "[3]", "[0,8]"), 8, PSI_EFORMAT, "disagree"},
    {ONE("\"F32\"", "[4611686018427387904]", "[0,0]"), 0, PSI_EFORMAT, "can be addressed"},
    {ONE("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, PSI_EFORMAT, "can be addressed"},
    {ONE("\"U8\"", "[4294967296,4294967296,0]", "[0,0]"), 0, PSI_EFORMAT, "can be addressed"},
    // offsets
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, PSI_EFORMAT, "data_offsets are missing"},
    {ONE("\"F32\"", "[2]", "[0]"), 8, PSI_EFORMAT, "data_offsets"},
    {ONE("\"F32\"", "[2]", "[0,8,9]"), 8, PSI_EFORMAT, "data_offsets"},
    {ONE("\"F32\"", "[2]", "[-8,0]"), 8, PSI_EFORMAT, "data_offsets"},
    {ONE("\"F32\"", "[2]", "[0.0,8.0]"), 8, PSI_EFORMAT, "data_offsets"},
    {ONE("\"F32\"", "[2]", "{\"0\":0,\"1\":8}"), 8, PSI_EFORMAT, "data_offsets"},
    {ONE("\"F32\"", "[2]", "[8,0]"), 8, PSI_EFORMAT, "ends before it begins"},
    {ONE("\"F32\"", "[2]", "[0,8]"), 7, PSI_EFORMAT, "behind the file's end"},
    {ONE("\"U8\"", "[1]", "[9223372036854775806,9223372036854775807]"), 1, PSI_EFORMAT,
     "behind the file's end"},
    // holes and overlaps
    {ONE("\"F32\"", "[2]", "[0,8]"), 9, PSI_EFORMAT, "1 bytes behind the last tensor"},
    {"{}", 1, PSI_EFORMAT, "behind the last tensor"},
    {ONE("\"F32\"", "[2]", "[1,9]"), 9, PSI_EFORMAT, "hole"},
    {"{\"a\":" T("\"U8\"", "[2]", "[0,2]") ",\"b\":" T("\"U8\"", "[2]", "[3,5]") "}", 5,
     PSI_EFORMAT, "hole"},
    {"{\"a\":" T("\"U8\"", "[2]", "[0,2]") ",\"b\":" T("\"U8\"", "[2]", "[1,3]") "}", 3,
     PSI_EFORMAT, "overlaps"},
    {"{\"a\":" T("\"U8\"", "[2]", "[0,2]") ",\"b\":" T("\"U8\"", "[2]", "[0,2]") "}", 2,
     PSI_EFORMAT, "overlaps"},
    {"{\"a\":" T("\"U8\"", "[3]", "[0,3]") ",\"b\":" T("\"U8\"", "[0]", "[1,1]") "}", 3,
     PSI_EFORMAT, "overlaps"},
};

// A file of its own size exactly, so that a sanitizer sees any byte too far.
static char *assemble(uint64_t length, const char *header, size_t header_bytes, size_t data_bytes,
                      size_t *size)
{
    *size = 8 + header_bytes + data_bytes;
    char *bytes = calloc(1, *size);
    assert_non_null(bytes);
    memcpy(bytes, &length, 8);
    if (header_bytes) memcpy(bytes + 8, header, header_bytes);
    return bytes;
}

static void every_kind_of_damage_is_named(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof DAMAGES / sizeof DAMAGES[0]; i++) {
        const damage *d = &DAMAGES[i];
        size_t size;
        char *bytes =
            assemble(strlen(d->header), d->header, strlen(d->header), d->data_bytes, &size);
        const char *path = test_path(f->folder, "hostile");
        test_put(path, bytes, size);
        for (int from_memory = 0; from_memory < 2; from_memory++) {
            nn_safetensors *file;
            const psi_status status = from_memory
                                          ? nn_safetensors_parse(f->ctx, path, bytes, size, &file)
                                          : nn_safetensors_open(f->ctx, path, &file);
            if (status != d->status) {
                fail_msg("%s gives %s: %s", d->header, psi_status_name(status),
                         psi_error(f->ctx)->message);
            }
            if (status != PSI_OK) {
                assert_null(file);
                test_assert_error_says(f->ctx, d->says);
                test_assert_error_says(f->ctx, path);
            }
            nn_safetensors_free(file);
        }
        free(bytes);
    }
}

static void lengths_that_lie_are_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        uint64_t length;
        const char *says;
    } lies[] = {{0, "not allowed"},
                {1, "not allowed"},
                {3, "cut off inside"},
                {100000000, "cut off inside"},
                {100000001, "not allowed"},
                {UINT64_MAX, "not allowed"},
                {UINT64_MAX - 7, "not allowed"}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        size_t size;
        char *bytes = assemble(lies[i].length, "{}", 2, 0, &size);
        nn_safetensors *file;
        const psi_status status = nn_safetensors_parse(f->ctx, "lie", bytes, size, &file);
        assert_status(f->ctx, status, PSI_EFORMAT);
        test_assert_error_says(f->ctx, lies[i].says);
        free(bytes);
    }
}

// Whatever is cut off the end or flipped in the header, the reader says no or yields tensors that
// lie inside the file.
static void cut_and_flipped_files_are_survived(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "some.safetensors");
    assert_ok(f->ctx, nn_safetensors_save(f->ctx, path, SOME, N_SOME, NOTES, 2));
    size_t size;
    char *good = read_whole(path, &size);
    nn_safetensors *file;
    for (size_t cut = 0; cut < size; cut++) {
        char *bytes = malloc(cut ? cut : 1);
        assert_non_null(bytes);
        memcpy(bytes, good, cut);
        assert_status(f->ctx, nn_safetensors_parse(f->ctx, "cut", bytes, cut, &file), PSI_EFORMAT);
        free(bytes);
    }
    for (size_t bit = 0; bit < 8 * (size - 53); bit++) {
        char *bytes = malloc(size);
        assert_non_null(bytes);
        memcpy(bytes, good, size);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        if (nn_safetensors_parse(f->ctx, "flipped", bytes, size, &file) == PSI_OK) {
            for (size_t i = 0; i < nn_safetensors_count(file); i++) {
                const nn_named_tensor *tensor = nn_safetensors_at(file, i);
                size_t n;
                assert_true(nn_named_tensor_bytes(tensor, &n));
                assert_true((const char *)tensor->data >= bytes);
                assert_true((const char *)tensor->data + n <= bytes + size);
            }
        }
        nn_safetensors_free(file);
        free(bytes);
    }
    free(good);
}

// Nesting is bounded, however deep the file claims to go.
static void deep_nesting_is_refused(void **state)
{
    fixture *f = *state;
    enum { DEPTH = 100000 };
    char *header = malloc(DEPTH + 5);
    assert_non_null(header);
    memcpy(header, "{\"a\":", 5);
    memset(header + 5, '[', DEPTH);
    size_t size;
    char *bytes = assemble(DEPTH + 5, header, DEPTH + 5, 0, &size);
    nn_safetensors *file;
    assert_status(f->ctx, nn_safetensors_parse(f->ctx, "deep", bytes, size, &file), PSI_EFORMAT);
    free(bytes);
    free(header);
}

// Other writers neither pad nor align: a float may start at any byte.
static void loosely_aligned_files_are_read(void **state)
{
    fixture *f = *state;
    static const char header[] =
        "{\"b\":" T("\"U8\"", "[1]", "[0,1]") ",\"w\":" T("\"F32\"", "[2]", "[1,9]") "}";
    size_t size;
    char *bytes = assemble(strlen(header), header, strlen(header), 9, &size);
    const float numbers[2] = {1.5F, -2};
    memcpy(bytes + size - 8, numbers, 8);
    nn_safetensors *file;
    assert_ok(f->ctx, nn_safetensors_parse(f->ctx, "loose", bytes, size, &file));
    float out[2];
    const nn_named_tensor expected = {"w", NN_F32, 1, {2}, NULL};
    assert_ok(f->ctx, nn_safetensors_load(file, &expected, out));
    assert_memory_equal(out, numbers, 8);
    nn_safetensors_free(file);
    free(bytes);
}

static void what_is_not_a_file_is_refused(void **state)
{
    fixture *f = *state;
    nn_safetensors *file;
    assert_status(f->ctx, nn_safetensors_open(f->ctx, f->folder, &file), PSI_EIO);
    const char *missing = test_path(f->folder, "missing");
    assert_status(f->ctx, nn_safetensors_open(f->ctx, missing, &file), PSI_EIO);
    assert_null(file);
    const char *pipe = test_path(f->folder, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_status(f->ctx, nn_safetensors_open(f->ctx, pipe, &file), PSI_EIO);
    test_assert_error_says(f->ctx, "is not a file");
}

// A sparse terabyte behind a small header is turned away before anything is read into memory.
static void a_huge_file_costs_nothing_to_refuse(void **state)
{
    fixture *f = *state;
    const char *path = test_path(f->folder, "huge");
    size_t size;
    char *bytes = assemble(2, "{}", 2, 0, &size);
    test_put(path, bytes, size);
    free(bytes);
    if (truncate(path, (off_t)1 << 40) != 0) skip();
    nn_safetensors *file;
    assert_status(f->ctx, nn_safetensors_open(f->ctx, path, &file), PSI_EFORMAT);
    test_assert_error_says(f->ctx, "behind the last tensor");
}

// ---- faults ----

static psi_status save_and_open(psi_ctx *ctx, void *argument)
{
    const char *path = argument;
    nn_safetensors *file = NULL;
    psi_status status = nn_safetensors_save(ctx, path, SOME, N_SOME, NOTES, 2);
    if (status == PSI_OK) status = nn_safetensors_open(ctx, path, &file);
    nn_safetensors_free(file);
    return status;
}

static void failing_allocations_leak_nothing(void **state)
{
    fixture *f = *state;
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path(f->folder, "swept.safetensors"));
    assert_in_range(test_fault_sweep(save_and_open, path), 8, 50);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(f->folder), 0);
    assert_int_equal(mkdir(f->folder, 0777), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(the_layout_is_the_formats),
        TEST(an_empty_file_holds_no_tensors),
        TEST(random_lists_round_trip),
        TEST(load_checks_type_and_shape),
        TEST(the_writer_refuses_what_nobody_could_read),
        TEST(a_failed_write_leaves_the_old_file),
        TEST(every_kind_of_damage_is_named),
        TEST(lengths_that_lie_are_refused),
        TEST(cut_and_flipped_files_are_survived),
        TEST(deep_nesting_is_refused),
        TEST(loosely_aligned_files_are_read),
        TEST(what_is_not_a_file_is_refused),
        TEST(a_huge_file_costs_nothing_to_refuse),
        TEST(failing_allocations_leak_nothing),
    };
    return cmocka_run_group_tests_name("nn/safetensors", tests, NULL, NULL);
}
