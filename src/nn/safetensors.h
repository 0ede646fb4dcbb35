// Named tensors in a file: the safetensors format, which PyTorch, JAX and others read. A u64
// length, that many bytes of JSON (name → dtype, shape, place), then the numbers, without holes.
// Nothing here knows what a network is.
#ifndef PSI_NN_SAFETENSORS_H
#define PSI_NN_SAFETENSORS_H

#include <psifold/base.h>

// X(name in the file, bytes of an element). Half-precision and 8-bit floats are only carried.
#define NN_TENSOR_DTYPE_TABLE(X)                                                                   \
    X(F64, 8)                                                                                      \
    X(I64, 8)                                                                                      \
    X(U64, 8)                                                                                      \
    X(F32, 4)                                                                                      \
    X(I32, 4)                                                                                      \
    X(U32, 4)                                                                                      \
    X(F16, 2)                                                                                      \
    X(BF16, 2)                                                                                     \
    X(I16, 2)                                                                                      \
    X(U16, 2)                                                                                      \
    X(F8_E5M2, 1)                                                                                  \
    X(F8_E4M3, 1)                                                                                  \
    X(I8, 1)                                                                                       \
    X(U8, 1)                                                                                       \
    X(BOOL, 1)

typedef enum nn_tensor_dtype {
#define X(name, bytes) NN_##name,
    NN_TENSOR_DTYPE_TABLE(X)
#undef X
} nn_tensor_dtype;

size_t nn_tensor_dtype_size(nn_tensor_dtype dtype);

#define NN_TENSOR_MAX_RANK 8

// Numbers in C order, with a name. Rank 0 is a single number.
typedef struct nn_named_tensor {
    const char *name;
    nn_tensor_dtype dtype;
    size_t rank;
    size_t dim[NN_TENSOR_MAX_RANK];
    const void *data;
} nn_named_tensor;

// Bytes of the numbers; false if shape and dtype describe more than can be addressed.
bool nn_named_tensor_bytes(const nn_named_tensor *tensor, size_t *bytes);

// A pair of texts for the header's "__metadata__".
typedef struct nn_file_note {
    const char *key, *value;
} nn_file_note;

// Writes a file that appears whole or not at all; one of that name is replaced. The bytes depend on
// the tensors and the order of the notes only. Returns PSI_EUSAGE for a name that occurs twice,
// that is the format's own "__metadata__", or that is not plain UTF-8 text; PSI_ESHAPE for a shape
// that cannot be; PSI_ELIMIT for a header that no reader would accept; PSI_EIO.
psi_status nn_safetensors_save(psi_ctx *ctx, const char *path, const nn_named_tensor *tensors,
                               size_t n_tensors, const nn_file_note *notes, size_t n_notes);

typedef struct nn_safetensors nn_safetensors;

// Reads a file into memory. Every number of the header is checked before it is believed: returns
// PSI_EFORMAT with what is wrong, PSI_EUNSUPPORTED for more than NN_TENSOR_MAX_RANK dimensions or
// an element type not in the table above, PSI_EIO. *out belongs to the caller.
psi_status nn_safetensors_open(psi_ctx *ctx, const char *path, nn_safetensors **out);

// The same for bytes in memory, which are borrowed until the file is freed; name is for the errors.
psi_status nn_safetensors_parse(psi_ctx *ctx, const char *name, const void *bytes, size_t size,
                                nn_safetensors **out);
void nn_safetensors_free(nn_safetensors *file); // NULL is fine

// All tensors, in the order of their names (by bytes). Other writers align loosely: data may start
// at any byte, so numbers are to be copied, not pointed at.
size_t nn_safetensors_count(const nn_safetensors *file);
const nn_named_tensor *nn_safetensors_at(const nn_safetensors *file, size_t i);
const nn_named_tensor *nn_safetensors_find(const nn_safetensors *file, const char *name); // or NULL
const char *nn_safetensors_note(const nn_safetensors *file, const char *key);             // or NULL

// Copies the numbers of the tensor with expected's name to out, if its dtype and shape are
// those of expected (whose data is not looked at). Returns PSI_EMISSING if there is no such name,
// PSI_ESHAPE if type or shape differ, and says so.
psi_status nn_safetensors_load(const nn_safetensors *file, const nn_named_tensor *expected,
                               void *out);

#endif
