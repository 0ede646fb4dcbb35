// Checksums of a run's files: 128 bits (XXH3) of each stand in its manifest, so that a file that
// was damaged or exchanged since is noticed before anything is learnt from it. They guard against
// accidents, not against somebody who can write the manifest, too.
#ifndef PSI_RUN_CHECKSUMS_H
#define PSI_RUN_CHECKSUMS_H

#include "base/json.h"

// Adds a file's checksum to an object {name: hexadecimal digits}.
psi_status run_checksums_add(psi_ctx *ctx, json_t *sums, const char *name, const char *path);

// PSI_EFORMAT names the first file of the folder that is not what the manifest says, or is not
// there. *n is how many were compared: 0 for runs of older versions, which have no checksums.
psi_status run_checksums_check(psi_ctx *ctx, const char *folder, const json_t *manifest, size_t *n);

#endif
