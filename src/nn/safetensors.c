#include "nn/safetensors.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's numbers are little-endian");

#define METADATA "__metadata__"

enum {
    LENGTH_BYTES = 8,         // the u64 in front of the header
    HEADER_LIMIT = 100000000, // the format's own limit
    ALIGNMENT = 8,            // of the first number in the file
};

size_t nn_tensor_dtype_size(nn_tensor_dtype dtype)
{
    switch (dtype) {
#define X(name, bytes)                                                                             \
    case NN_##name: return bytes;
        NN_TENSOR_DTYPE_TABLE(X) // NOLINT(bugprone-branch-clone): several have one size
#undef X
    }
    return 0;
}

// "F32"
static const char *dtype_name(nn_tensor_dtype dtype)
{
    switch (dtype) {
#define X(name, bytes)                                                                             \
    case NN_##name: return #name;
        NN_TENSOR_DTYPE_TABLE(X)
#undef X
    }
    return "?";
}

bool nn_named_tensor_bytes(const nn_named_tensor *tensor, size_t *bytes)
{
    *bytes = nn_tensor_dtype_size(tensor->dtype);
    if (*bytes == 0 || tensor->rank > NN_TENSOR_MAX_RANK) return false;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (!base_mul(*bytes, tensor->dim[i], bytes)) return false;
    }
    return true;
}

// Names end up in error sentences on somebody's terminal: no control characters.
static bool plain_text(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) return false;
    }
    return true;
}

// ---- writing ----

// Wide elements first, so that every tensor is aligned to its own element; then by name.
static int compare_for_file(const void *a, const void *b)
{
    const nn_named_tensor *const *left = a, *const *right = b;
    const size_t left_size = nn_tensor_dtype_size((*left)->dtype);
    const size_t right_size = nn_tensor_dtype_size((*right)->dtype);
    if (left_size != right_size) return left_size > right_size ? -1 : 1;
    return strcmp((*left)->name, (*right)->name);
}

// object[key] = value, taking the value over. Jansson says no for lack of memory and for text that
// is not UTF-8; what is told apart here is all a caller can act on.
static psi_status set(psi_ctx *ctx, json_t *object, const char *key, json_t *value)
{
    if (json_object_get(object, key)) {
        json_decref(value);
        return FAIL(ctx, PSI_EUSAGE, "the name \"%.100s\" occurs twice", key);
    }
    if (json_object_set_new(object, key, value) == 0) return PSI_OK;
    return FAIL(ctx, PSI_EUSAGE, "\"%.100s\" cannot be written: it or its text is not UTF-8", key);
}

static psi_status describe_tensor(psi_ctx *ctx, json_t *header, const nn_named_tensor *tensor,
                                  size_t *offset)
{
    size_t bytes, end;
    if (strcmp(tensor->name, METADATA) == 0 || !plain_text(tensor->name)) {
        return FAIL(ctx, PSI_EUSAGE, "\"%.100s\" cannot be the name of a tensor", tensor->name);
    }
    if (!nn_named_tensor_bytes(tensor, &bytes) || !base_add(*offset, bytes, &end) ||
        end > INT64_MAX) {
        return FAIL(ctx, PSI_ESHAPE, "%.100s: a tensor of this shape cannot be written",
                    tensor->name);
    }
    json_t *shape = json_array();
    for (size_t i = 0; i < tensor->rank; i++) {
        json_array_append_new(shape, json_integer((json_int_t)tensor->dim[i]));
    }
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(tensor->dtype), "shape",
                              shape, "data_offsets", (json_int_t)*offset, (json_int_t)end);
    const psi_status made = base_json_made(ctx, entry);
    if (made != PSI_OK) return made;
    *offset = end;
    return set(ctx, header, tensor->name, entry);
}

static psi_status describe_notes(psi_ctx *ctx, json_t *header, const nn_file_note *notes,
                                 size_t n_notes)
{
    if (n_notes == 0) return PSI_OK;
    json_t *metadata = json_object();
    psi_status status = set(ctx, header, METADATA, metadata);
    for (size_t i = 0; status == PSI_OK && i < n_notes; i++) {
        status = set(ctx, metadata, notes[i].key, json_string(notes[i].value));
    }
    return status;
}

static psi_status write_header(psi_ctx *ctx, base_output *output, const json_t *header)
{
    static const char spaces[ALIGNMENT] = "        ";
    char *text = json_dumps(header, JSON_COMPACT);
    if (!text) return FAIL(ctx, PSI_ENOMEM, "no memory for the header of a model file");
    psi_status status = PSI_OK;
    const size_t length = strlen(text), padded = base_round_up(length, ALIGNMENT);
    if (padded > HEADER_LIMIT) {
        status = FAIL(ctx, PSI_ELIMIT, "the header would be %zu bytes long, more than %d", padded,
                      HEADER_LIMIT);
        goto done;
    }
    const uint64_t in_file = padded;
    TRY(base_output_write(output, &in_file, LENGTH_BYTES));
    TRY(base_output_write(output, text, length));
    TRY(base_output_write(output, spaces, padded - length));
done:
    free(text);
    return status;
}

psi_status nn_safetensors_save(psi_ctx *ctx, const char *path, const nn_named_tensor *tensors,
                               size_t n_tensors, const nn_file_note *notes, size_t n_notes)
{
    psi_status status = PSI_OK;
    const nn_named_tensor **order = NULL;
    base_output *output = NULL;
    json_t *header = json_object();
    TRY(base_json_made(ctx, header));
    TRY(base_alloc(ctx, n_tensors, sizeof(nn_named_tensor *), &order));
    for (size_t i = 0; i < n_tensors; i++) order[i] = &tensors[i];
    qsort(order, n_tensors, sizeof *order, compare_for_file);

    TRY(describe_notes(ctx, header, notes, n_notes));
    size_t offset = 0;
    for (size_t i = 0; i < n_tensors; i++) TRY(describe_tensor(ctx, header, order[i], &offset));

    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    TRY(write_header(ctx, output, header));
    for (size_t i = 0; i < n_tensors; i++) {
        size_t bytes;
        (void)nn_named_tensor_bytes(order[i], &bytes); // known to fit: described above
        TRY(base_output_write(output, order[i]->data, bytes));
    }
    status = base_output_commit(output);
    output = NULL;
done:
    base_output_discard(output);
    base_free(ctx, order);
    json_decref(header);
    return status;
}

// ---- reading ----

struct nn_safetensors {
    psi_ctx *ctx;
    const char *path;
    base_arena arena;    // names, notes, tensors
    char *block;         // the numbers, if they are ours
    size_t header_bytes; // without the length in front
    size_t data_bytes;
    size_t n_tensors, n_notes;
    nn_named_tensor *tensors; // (n_tensors) by name
    nn_file_note *notes;      // (n_notes)
};

// Where the header says that a tensor's numbers are.
typedef struct tensor_place {
    nn_named_tensor *tensor;
    size_t begin, end;
} tensor_place;

static psi_status damaged(const nn_safetensors *file, const char *tensor, const char *what)
{
    return FAIL(file->ctx, PSI_EFORMAT, "%s: tensor \"%.100s\": %s", file->path, tensor, what);
}

static int compare_places(const void *a, const void *b)
{
    const tensor_place *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

static int compare_names(const void *a, const void *b)
{
    const nn_named_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

// A JSON integer that is a size: not negative, not a fraction, not a text.
static bool read_size(const json_t *value, size_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (size_t)json_integer_value(value);
    return true;
}

static psi_status read_dtype(nn_safetensors *file, const char *name, const json_t *value,
                             nn_tensor_dtype *out)
{
    const char *text = json_string_value(value);
    if (!text) return damaged(file, name, "its dtype is missing or not a text");
#define X(dtype, bytes)                                                                            \
    if (strcmp(text, #dtype) == 0) {                                                               \
        *out = NN_##dtype;                                                                         \
        return PSI_OK;                                                                             \
    }
    NN_TENSOR_DTYPE_TABLE(X)
#undef X
    if (!plain_text(text)) return damaged(file, name, "its dtype is not plain text");
    return FAIL(file->ctx, PSI_EUNSUPPORTED,
                "%s: tensor \"%.100s\": the dtype \"%.20s\" is not known", file->path, name, text);
}

static psi_status read_shape(nn_safetensors *file, const json_t *value, nn_named_tensor *tensor)
{
    if (!json_is_array(value)) {
        return damaged(file, tensor->name, "its shape is missing or not a list");
    }
    tensor->rank = json_array_size(value);
    if (tensor->rank > NN_TENSOR_MAX_RANK) {
        return FAIL(file->ctx, PSI_EUNSUPPORTED,
                    "%s: tensor \"%.100s\" has %zu dimensions, more than %d", file->path,
                    tensor->name, tensor->rank, NN_TENSOR_MAX_RANK);
    }
    for (size_t i = 0; i < tensor->rank; i++) {
        if (!read_size(json_array_get(value, i), &tensor->dim[i])) {
            return damaged(file, tensor->name, "its shape holds something that is not a size");
        }
    }
    return PSI_OK;
}

static psi_status read_place(nn_safetensors *file, const json_t *value, tensor_place *place)
{
    const char *name = place->tensor->name;
    size_t bytes;
    if (json_array_size(value) != 2 || !read_size(json_array_get(value, 0), &place->begin) ||
        !read_size(json_array_get(value, 1), &place->end)) {
        return damaged(file, name, "its data_offsets are missing or not two sizes");
    }
    if (place->begin > place->end) return damaged(file, name, "it ends before it begins");
    if (place->end > file->data_bytes) return damaged(file, name, "it ends behind the file's end");
    if (!nn_named_tensor_bytes(place->tensor, &bytes)) {
        return damaged(file, name, "its shape is more than can be addressed");
    }
    if (place->end - place->begin != bytes) {
        return damaged(file, name, "its shape and its data_offsets disagree");
    }
    return PSI_OK;
}

static psi_status read_tensor(nn_safetensors *file, const char *name, const json_t *entry,
                              tensor_place *place)
{
    psi_status status = PSI_OK;
    nn_named_tensor *tensor = place->tensor;
    if (!plain_text(name)) {
        return FAIL(file->ctx, PSI_EFORMAT, "%s: a tensor's name holds a control character",
                    file->path);
    }
    TRY(base_arena_text(&file->arena, name, &tensor->name));
    if (!json_is_object(entry)) return damaged(file, name, "its entry is not an object");
    TRY(read_dtype(file, name, json_object_get(entry, "dtype"), &tensor->dtype));
    TRY(read_shape(file, json_object_get(entry, "shape"), tensor));
    TRY(read_place(file, json_object_get(entry, "data_offsets"), place));
done:
    return status;
}

static psi_status read_notes(nn_safetensors *file, json_t *metadata)
{
    psi_status status = PSI_OK;
    if (!metadata) return PSI_OK;
    if (!json_is_object(metadata)) {
        return FAIL(file->ctx, PSI_EFORMAT, "%s: " METADATA " is not an object", file->path);
    }
    TRY(base_arena_take(&file->arena, json_object_size(metadata), sizeof *file->notes,
                        &file->notes));
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return FAIL(file->ctx, PSI_EFORMAT, "%s: " METADATA " maps something to a non-text",
                        file->path);
        }
        nn_file_note *note = &file->notes[file->n_notes++];
        TRY(base_arena_text(&file->arena, key, &note->key));
        TRY(base_arena_text(&file->arena, json_string_value(value), &note->value));
    }
done:
    return status;
}

// Laid end to end the tensors must fill the file exactly: no overlap, no hole, nothing behind.
static psi_status check_cover(nn_safetensors *file, const tensor_place *places)
{
    size_t reached = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const char *name = places[i].tensor->name;
        if (places[i].begin < reached) return damaged(file, name, "it overlaps another one");
        if (places[i].begin > reached) return damaged(file, name, "there is a hole before it");
        reached = places[i].end;
    }
    if (reached == file->data_bytes) return PSI_OK;
    return FAIL(file->ctx, PSI_EFORMAT, "%s: %zu bytes behind the last tensor belong to none",
                file->path, file->data_bytes - reached);
}

// Fills tensors and notes from the header's text, all but the pointers to the numbers, which may
// not have been read yet: where they will be is left in *places.
static psi_status read_header(nn_safetensors *file, const char *text, tensor_place **places)
{
    psi_status status = PSI_OK;
    json_t *header = NULL;
    if (text[0] != '{') {
        return FAIL(file->ctx, PSI_EFORMAT,
                    "%s is not a safetensors file: its header does not start with '{'", file->path);
    }
    TRY(base_json_parse(file->ctx, file->path, text, file->header_bytes, &header));
    json_t *metadata = json_object_get(header, METADATA);
    TRY(read_notes(file, metadata));
    const size_t n_tensors = json_object_size(header) - (metadata ? 1 : 0);
    TRY(base_arena_take(&file->arena, n_tensors, sizeof *file->tensors, &file->tensors));
    TRY(base_alloc(file->ctx, n_tensors, sizeof **places, places));
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry)
    {
        if (entry == metadata) continue;
        tensor_place *place = &(*places)[file->n_tensors];
        place->tensor = &file->tensors[file->n_tensors++];
        TRY(read_tensor(file, name, entry, place));
    }
    qsort(*places, file->n_tensors, sizeof **places, compare_places);
    TRY(check_cover(file, *places));
done:
    json_decref(header);
    return status;
}

// Points every tensor at its numbers and makes names findable.
static void place_tensors(nn_safetensors *file, const tensor_place *places, const char *data)
{
    for (size_t i = 0; i < file->n_tensors; i++) places[i].tensor->data = data + places[i].begin;
    qsort(file->tensors, file->n_tensors, sizeof *file->tensors, compare_names);
}

// Believes the length in front of the header only if header and file can hold it.
static psi_status read_lengths(nn_safetensors *file, const void *length, uint64_t file_bytes)
{
    uint64_t header_bytes;
    if (file_bytes < LENGTH_BYTES) {
        return FAIL(file->ctx, PSI_EFORMAT, "%s is not a safetensors file: it has %zu bytes",
                    file->path, (size_t)file_bytes);
    }
    memcpy(&header_bytes, length, LENGTH_BYTES);
    if (header_bytes < 2 || header_bytes > HEADER_LIMIT) {
        return FAIL(file->ctx, PSI_EFORMAT,
                    "%s is not a safetensors file: a header of %llu bytes is not allowed",
                    file->path, (unsigned long long)header_bytes);
    }
    if (header_bytes > file_bytes - LENGTH_BYTES) {
        return FAIL(file->ctx, PSI_EFORMAT, "%s is cut off inside its header", file->path);
    }
    file->header_bytes = (size_t)header_bytes;
    file->data_bytes = (size_t)(file_bytes - LENGTH_BYTES - header_bytes);
    return PSI_OK;
}

static psi_status new_file(psi_ctx *ctx, const char *path, nn_safetensors **out)
{
    psi_status status = PSI_OK;
    nn_safetensors *file = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *file, &file));
    file->ctx = ctx;
    file->arena.ctx = ctx;
    TRY(base_arena_text(&file->arena, path, &file->path));
    *out = file;
    file = NULL;
done:
    nn_safetensors_free(file);
    return status;
}

psi_status nn_safetensors_parse(psi_ctx *ctx, const char *name, const void *bytes, size_t size,
                                nn_safetensors **out)
{
    psi_status status = PSI_OK;
    nn_safetensors *file = NULL;
    tensor_place *places = NULL;
    *out = NULL;
    TRY(new_file(ctx, name, &file));
    TRY(read_lengths(file, bytes, size));
    const char *header = (const char *)bytes + LENGTH_BYTES;
    TRY(read_header(file, header, &places));
    place_tensors(file, places, header + file->header_bytes);
    *out = file;
    file = NULL;
done:
    base_free(ctx, places);
    nn_safetensors_free(file);
    return status;
}

// Exactly size bytes; a file that is shortened meanwhile is damaged, not waited for.
static psi_status read_bytes(nn_safetensors *file, int fd, void *out, size_t size)
{
    for (char *next = out; size > 0;) {
        const ssize_t got = read(fd, next, size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            return FAIL(file->ctx, PSI_EIO, "%s: cannot read: %s", file->path, strerror(errno));
        }
        if (got == 0) return FAIL(file->ctx, PSI_EFORMAT, "%s is cut off", file->path);
        next += got;
        size -= (size_t)got;
    }
    return PSI_OK;
}

psi_status nn_safetensors_open(psi_ctx *ctx, const char *path, nn_safetensors **out)
{
    psi_status status = PSI_OK;
    nn_safetensors *file = NULL;
    char *header = NULL;
    tensor_place *places = NULL;
    *out = NULL;
    int fd;
    uint64_t file_bytes, length = 0;
    TRY(base_open_file(ctx, path, &fd, &file_bytes));
    TRY(new_file(ctx, path, &file));
    TRY(read_bytes(file, fd, &length, file_bytes < LENGTH_BYTES ? 0 : LENGTH_BYTES));
    TRY(read_lengths(file, &length, file_bytes));

    // the header is found good before memory is taken for the numbers it describes
    TRY(base_alloc(ctx, file->header_bytes, 1, &header));
    TRY(read_bytes(file, fd, header, file->header_bytes));
    TRY(read_header(file, header, &places));
    TRY(base_alloc(ctx, file->data_bytes, 1, &file->block));
    TRY(read_bytes(file, fd, file->block, file->data_bytes));
    place_tensors(file, places, file->block);
    *out = file;
    file = NULL;
done:
    if (fd >= 0) close(fd);
    base_free(ctx, places);
    base_free(ctx, header);
    nn_safetensors_free(file);
    return status;
}

void nn_safetensors_free(nn_safetensors *file)
{
    if (!file) return;
    base_arena_free(&file->arena);
    base_free(file->ctx, file->block);
    base_free(file->ctx, file);
}

size_t nn_safetensors_count(const nn_safetensors *file)
{
    return file->n_tensors;
}

const nn_named_tensor *nn_safetensors_at(const nn_safetensors *file, size_t i)
{
    return &file->tensors[i];
}

const nn_named_tensor *nn_safetensors_find(const nn_safetensors *file, const char *name)
{
    const nn_named_tensor wanted = {.name = name};
    return bsearch(&wanted, file->tensors, file->n_tensors, sizeof wanted, compare_names);
}

const char *nn_safetensors_note(const nn_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->n_notes; i++) {
        if (strcmp(file->notes[i].key, key) == 0) return file->notes[i].value;
    }
    return NULL;
}

// "F32 [64, 3, 7, 7]"
static void print_shape(const nn_named_tensor *tensor, char *text, size_t size)
{
    int used = snprintf(text, size, "%s [", dtype_name(tensor->dtype));
    for (size_t i = 0; i < tensor->rank && used > 0 && (size_t)used < size; i++) {
        used += snprintf(text + used, size - (size_t)used, "%s%zu", i ? ", " : "", tensor->dim[i]);
    }
    if (used > 0 && (size_t)used < size) snprintf(text + used, size - (size_t)used, "]");
}

psi_status nn_safetensors_load(const nn_safetensors *file, const nn_named_tensor *expected,
                               void *out)
{
    const nn_named_tensor *found = nn_safetensors_find(file, expected->name);
    if (!found) {
        return FAIL(file->ctx, PSI_EMISSING, "%s has no tensor \"%s\"", file->path, expected->name);
    }
    bool same = found->dtype == expected->dtype && found->rank == expected->rank;
    for (size_t i = 0; same && i < found->rank; i++) same = found->dim[i] == expected->dim[i];
    if (!same) {
        char is[128], should[128];
        print_shape(found, is, sizeof is);
        print_shape(expected, should, sizeof should);
        return FAIL(file->ctx, PSI_ESHAPE, "%s: tensor \"%s\" is %s, expected %s", file->path,
                    expected->name, is, should);
    }
    size_t bytes;
    (void)nn_named_tensor_bytes(found, &bytes); // checked when the file was read
    memcpy(out, found->data, bytes);
    return PSI_OK;
}
