// psifold/base.h: what every other header builds on: statuses, the context, and how errors travel.
//
// Every function that can fail takes a context, returns a status and writes its result through its
// last argument. On failure that result is NULL (or untouched), the inputs are as they were, and
// psi_error(ctx) holds one sentence that says what was wrong and where.
#ifndef PSIFOLD_BASE_H
#define PSIFOLD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version. The binary interface is the same as long as these two are.
#define PSI_VERSION_MAJOR 0
// See PSI_VERSION_MAJOR.
#define PSI_VERSION_MINOR 1
// What changes with every release.
#define PSI_VERSION_PATCH 0

#if defined(__GNUC__)
// What is public, and visible outside of the library.
#define PSI_API __attribute__((visibility("default")))
#else
#define PSI_API
#endif

// The one table of statuses: X(name, exit code of the command, what it means).
#define PSI_STATUS_TABLE(X)                                                                        \
    X(OK, 0, "everything went well")                                                               \
    X(EUSAGE, 2, "an option or argument is not understood")                                        \
    X(ESHAPE, 3, "shapes or sizes disagree")                                                       \
    X(EIO, 4, "a file could not be read or written")                                               \
    X(EFORMAT, 5, "a file is not in a format psifold knows, or is damaged")                        \
    X(EDATA, 6, "the data set contradicts itself or cannot be learnt from")                        \
    X(ENOMEM, 7, "memory ran out")                                                                 \
    X(ELIMIT, 8, "a limit was exceeded")                                                           \
    X(ENUMERIC, 9, "a number became infinite or not a number")                                     \
    X(EMISSING, 10, "something that is needed is not there")                                       \
    X(EUNSUPPORTED, 11, "this build or this file does not support that")                           \
    X(EINTERNAL, 70, "a defect in psifold")                                                        \
    X(ECANCELLED, 130, "stopped on request")

typedef enum psi_status {
#define X(name, code, meaning) PSI_##name,
    PSI_STATUS_TABLE(X)
#undef X
} psi_status;

PSI_API const char *psi_status_name(psi_status status);    // "PSI_ESHAPE"
PSI_API const char *psi_status_meaning(psi_status status); // "shapes or sizes disagree"
PSI_API int psi_status_exit_code(psi_status status);       // what the command returns to the shell
PSI_API const char *psi_version(void);                     // "0.1.0"
PSI_API const char *psi_commit(void); // what it was built from: "b6fabbc", "unknown"

// Where all memory comes from. resize works like realloc (ptr may be NULL), release like free; both
// may be called from several threads at once.
typedef struct psi_allocator {
    void *(*resize)(void *user, void *ptr, size_t size);
    void (*release)(void *user, void *ptr);
    void *user;
} psi_allocator;

// How weighty a sentence is: something to know, or something to look after.
typedef enum psi_log_level { PSI_LOG_NOTE, PSI_LOG_WARNING } psi_log_level;

// Work that takes time reports itself: done of total units (total 0: not known) of a named phase.
// seconds_left is negative while there is no estimate.
typedef struct psi_progress {
    const char *phase;
    uint64_t done, total;
    double seconds, seconds_left;
} psi_progress;

// What a context is made with; all zero but for the size is fine. Every struct of options begins
// with its size, which the function that gives the defaults sets, or who fills it where there is
// none; functions refuse another one with PSI_EUSAGE.
typedef struct psi_options {
    size_t size;             // sizeof(psi_options)
    psi_allocator allocator; // all zero: malloc and free
    void (*log)(void *user, psi_log_level level, const char *sentence);
    void (*progress)(void *user, const psi_progress *progress);
    void *user;  // handed to log and progress
    int threads; // 0: as many as there are processors
    // The most that may be allocated at a time, in bytes, for the contexts of a team of threads
    // together; what would exceed it is PSI_ENOMEM. Other libraries' own memory does not count. 0:
    // no bound.
    size_t max_memory;
} psi_options;

// What went wrong last. The sentence is kept in the record itself: reporting never allocates.
typedef struct psi_error_record {
    psi_status status;
    char message[512];
    char where[64]; // file:line in the library
} psi_error_record;

// A context: see psi_ctx_new.
typedef struct psi_ctx psi_ctx;

// A context carries allocator, callbacks, threads and the last error. It is used by one thread at a
// time, except psi_cancel, which may come from anywhere, a signal handler included. options may be
// NULL. Returns PSI_ENOMEM, or PSI_EUSAGE for a thread count outside 0 … 1024 or another size. Work
// is shared among the context's own threads, so OpenBLAS is told, for the whole process, to use
// one.
PSI_API psi_status psi_ctx_new(const psi_options *options, psi_ctx **out);
PSI_API void psi_ctx_free(psi_ctx *ctx);

// What went wrong last; borrowed, until the next call that fails.
PSI_API const psi_error_record *psi_error(const psi_ctx *ctx);
PSI_API int psi_threads(const psi_ctx *ctx); // how many threads it works with
PSI_API void psi_cancel(psi_ctx *ctx);       // running work returns PSI_ECANCELLED at its next step

// ---- several processes --------------------------------------------------------------------------

// Makes this process one of those that mpirun, mpiexec or srun has started together, as far as
// their environment says so, or wanted does. MPI is loaded for that, and only then (the component
// libpsifold-mpi.so): PSI_EUNSUPPORTED if it is not there. A process alone is rank 0 of 1. The
// context must be the only one of its process that does this; psi_ctx_free waits for the others.
PSI_API psi_status psi_ranks_join(psi_ctx *ctx, bool wanted);
PSI_API int psi_rank(const psi_ctx *ctx);  // which process this is, from 0 on
PSI_API int psi_ranks(const psi_ctx *ctx); // how many there are

// What talking to the others has taken this process so far.
typedef struct psi_ranks_cost {
    uint64_t calls, bytes, received; // bytes that were sent, and received
    double seconds;                  // waiting included
} psi_ranks_cost;
PSI_API psi_ranks_cost psi_ranks_spent(const psi_ctx *ctx);

// Ends all processes of the job with this code, since one of them cannot go on. Does not return
// where there are others.
PSI_API void psi_ranks_abandon(psi_ctx *ctx, int code);

// Element types of arrays, in memory and in files.
#define PSI_DTYPE_TABLE(X)                                                                         \
    X(UINT8, 1, "uint8")                                                                           \
    X(INT32, 4, "int32")                                                                           \
    X(INT64, 8, "int64")                                                                           \
    X(FLOAT32, 4, "float32")                                                                       \
    X(FLOAT64, 8, "float64")

typedef enum psi_dtype {
#define X(name, bytes, text) PSI_##name,
    PSI_DTYPE_TABLE(X)
#undef X
} psi_dtype;

// Bytes of an element, and its name in numpy.
PSI_API size_t psi_dtype_size(psi_dtype dtype);
PSI_API const char *psi_dtype_name(psi_dtype dtype);

// Memory that reading may ask for, at most, for every byte that is read: PSI_ELIMIT beyond.
enum { PSI_BYTES_PER_BYTE = 4096 };

// The most dimensions that an observation has.
#define PSI_MAX_RANK 4

// The shape of one observation: rank 0 is a single number, {3, 28, 28} three stacked images.
typedef struct psi_shape {
    size_t rank;
    size_t dim[PSI_MAX_RANK];
} psi_shape;

PSI_API size_t psi_shape_size(const psi_shape *shape); // product of the dimensions; 1 for rank 0
PSI_API bool psi_shape_equal(const psi_shape *a, const psi_shape *b);

// ---- options ------------------------------------------------------------------------------------

// What can be chosen is described once, in a table of the fields of a struct. The command line, its
// help, the man page and completion, the manifest of a run, the check when it is resumed, the keys
// of results that are kept and the keyword arguments of other languages all come from there.

typedef enum psi_option_kind {
    PSI_OPTION_FLAG,    // bool: given as "on" or "off"
    PSI_OPTION_SIZE,    // size_t
    PSI_OPTION_SEED,    // uint64_t
    PSI_OPTION_REAL,    // double
    PSI_OPTION_SECONDS, // double: "90", "90s", "1.5m", "2h"
    PSI_OPTION_TEXT,    // const char *, borrowed
    PSI_OPTION_CHOICE,  // one of the words in value: an enum or a bool, counted from 0, or the word
} psi_option_kind;

// Who shows an option.
typedef enum psi_option_group {
    PSI_OPTION_MAIN,           // --help
    PSI_OPTION_MORE,           // --help-all, the man page
    PSI_OPTION_KEPT,           // no command: it is only written down
    PSI_OPTION_MAY_CHANGE = 4, // added to one of these: a run may be resumed with another value
} psi_option_group;

// One option: a field of a struct, and all there is to say about it.
typedef struct psi_option {
    const char *name; // "epsilon-sf" on the command line, "epsilon_sf" in files and other languages
    char letter;      // 'o' for -o; 0: none
    psi_option_kind kind;
    size_t offset, size;  // of the field, in bytes
    const char *value;    // what help calls the value, "N"; the words of a choice, "auto|full|half"
    const char *standard; // the default, as it would be given; NULL: what the struct holds
    const char *range;    // "[1,", "(0,1)": a round bracket where the bound is excluded; NULL: any
    unsigned group;       // psi_option_group
    const char *help;
} psi_option;

// At most 64 options: bit i of a set that says which were given stands for rows[i].
typedef struct psi_option_table {
    const psi_option *rows;
    size_t n;
} psi_option_table;

// The option of this name, in either spelling; NULL if there is none.
PSI_API const psi_option *psi_option_find(const psi_option_table *table, const char *name);

// Every field that has a default gets it.
PSI_API void psi_options_reset(const psi_option_table *table, void *options);

// One option, as on the command line. Adds it to *given (may be NULL). PSI_EUSAGE, with a sentence
// that says what it takes, for a name that is not in the table or a value that makes no sense; the
// struct is as it was then.
PSI_API psi_status psi_option_set(psi_ctx *ctx, const psi_option_table *table, void *options,
                                  const char *name, const char *text, uint64_t *given);

// The options that were given, from one struct to another: on top of other defaults, for example.
PSI_API void psi_options_copy(const psi_option_table *table, uint64_t given, const void *from,
                              void *into);

// PSI_EUSAGE, naming it, if a field is outside its range.
PSI_API psi_status psi_options_check(psi_ctx *ctx, const psi_option_table *table,
                                     const void *options);

enum { PSI_OPTION_TEXT_SIZE = 64 };

// The value of a field, as it would be given; "" for a text that is NULL. Returns the buffer.
PSI_API const char *psi_option_text(const psi_option *option, const void *options,
                                    char text[PSI_OPTION_TEXT_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
