// Tar archives in memory: as much of POSIX ustar as UMB needs.
#ifndef PSI_MDP_TAR_H
#define PSI_MDP_TAR_H

#include "base/context.h"
#include "base/file.h"
#include "mdp/names.h"

typedef struct mdp_tar_entry {
    const char *data;
    size_t size;
} mdp_tar_entry;

typedef struct mdp_tar {
    const char *name; // of the archive
    const char *bytes;
    size_t size;
    mdp_names names; // of its files; of two with one name the first counts
    mdp_tar_entry *entry;
    size_t room;
} mdp_tar;

// Goes over the archive whose name, bytes and size are set, once. PSI_EFORMAT for one that is cut
// off or damaged.
psi_status mdp_tar_open(psi_ctx *ctx, mdp_tar *tar);
void mdp_tar_close(psi_ctx *ctx, mdp_tar *tar);

// The bytes of an entry; data is NULL if there is none of that name. Leading "./" and "/" do not
// count.
mdp_tar_entry mdp_tar_find(const mdp_tar *tar, const char *entry);

// One after the other; the same entries give the same bytes.
psi_status mdp_tar_begin(psi_ctx *ctx, base_output *output, const char *entry, uint64_t size);
psi_status mdp_tar_pad(psi_ctx *ctx, base_output *output, uint64_t size); // after its bytes
psi_status mdp_tar_end(psi_ctx *ctx, base_output *output);

// Unpacks gzip; *out belongs to the caller.
psi_status mdp_gunzip(psi_ctx *ctx, const char *name, const char *bytes, size_t size, char **out,
                      size_t *out_size);

#endif
