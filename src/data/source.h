// Observations that stay in their file: arrays of one type and shape, strung together in stretches
// of rows. One stretch may come twice, which is how a missing last observation repeats the one
// before it without being stored.
#ifndef PSI_DATA_SOURCE_H
#define PSI_DATA_SOURCE_H

#include "data/archive.h"

#include <psifold/data.h>

typedef struct data_source data_source;

// Takes the archive over, also on failure.
psi_status data_source_new(psi_ctx *ctx, data_archive *archive, data_source **out);
void data_source_free(psi_ctx *ctx, data_source *source);

// Describes an array of the archive and checks that its rows are like those of the first one. JPEG
// frames are told by their first bytes. *index names it from now on, *rows is its length.
psi_status data_source_add_array(psi_ctx *ctx, data_source *source, const char *name, size_t *index,
                                 size_t *rows);

// Appends rows first … first + n − 1 of an array.
psi_status data_source_add_rows(psi_ctx *ctx, data_source *source, size_t index, size_t first,
                                size_t n);

// The source becomes observations: in memory if they are not larger than the archive's limit, and
// then the file is closed. The source is gone afterwards, also on failure.
psi_status data_source_finish(psi_ctx *ctx, data_source *source, psi_observations **out);

// Rows exist (checked by psi_observations_gather).
psi_status data_source_gather(psi_ctx *ctx, const data_source *source, const uint64_t *rows,
                              size_t n, void *out);

#endif
