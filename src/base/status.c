// The names, meanings and exit codes of the status table, and of the element types.
#include <psifold/base.h>

#include "psi_commit.h"

const char *psi_status_name(psi_status status)
{
    switch (status) {
#define X(name, code, meaning)                                                                     \
    case PSI_##name: return "PSI_" #name;
        PSI_STATUS_TABLE(X)
#undef X
    }
    return "PSI_?";
}

const char *psi_status_meaning(psi_status status)
{
    switch (status) {
#define X(name, code, meaning)                                                                     \
    case PSI_##name: return meaning;
        PSI_STATUS_TABLE(X)
#undef X
    }
    return "an unknown status";
}

int psi_status_exit_code(psi_status status)
{
    switch (status) {
#define X(name, code, meaning)                                                                     \
    case PSI_##name: return code;
        PSI_STATUS_TABLE(X)
#undef X
    }
    return 70;
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *psi_version(void)
{
    return TEXT(PSI_VERSION_MAJOR) "." TEXT(PSI_VERSION_MINOR) "." TEXT(PSI_VERSION_PATCH);
}

const char *psi_commit(void)
{
    return PSI_COMMIT;
}

size_t psi_dtype_size(psi_dtype dtype)
{
    switch (dtype) {
#define X(name, bytes, text)                                                                       \
    case PSI_##name: return bytes;
        PSI_DTYPE_TABLE(X)
#undef X
    }
    return 0;
}

const char *psi_dtype_name(psi_dtype dtype)
{
    switch (dtype) {
#define X(name, bytes, text)                                                                       \
    case PSI_##name: return text;
        PSI_DTYPE_TABLE(X)
#undef X
    }
    return "?";
}

size_t psi_shape_size(const psi_shape *shape)
{
    size_t size = 1;
    for (size_t i = 0; i < shape->rank; i++) size *= shape->dim[i];
    return size;
}

bool psi_shape_equal(const psi_shape *a, const psi_shape *b)
{
    bool same = a->rank == b->rank;
    for (size_t i = 0; same && i < a->rank; i++) same = a->dim[i] == b->dim[i];
    return same;
}
