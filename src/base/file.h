// Files and folders that appear whole or not at all: everything is written under another name
// beside the target, brought to disk, and renamed at the end.
#ifndef PSI_BASE_FILE_H
#define PSI_BASE_FILE_H

#include <psifold/base.h>

typedef struct base_output base_output;

typedef enum base_output_kind { BASE_FILE, BASE_FOLDER } base_output_kind;

// Makes the temporary file or folder. With replace false an existing target is PSI_EUSAGE. *out is
// freed by commit or discard.
psi_status base_output_open(psi_ctx *ctx, const char *path, base_output_kind kind, bool replace,
                            base_output **out);
const char *base_output_path(const base_output *output); // the temporary name, for other libraries
psi_status base_output_write(base_output *output, const void *bytes, size_t size);

// fsync, rename, fsync of the parent. The output is gone afterwards, also on failure, and then
// nothing is left under either name.
psi_status base_output_commit(base_output *output);
void base_output_discard(base_output *output); // NULL is fine

// Brings a file, or the names in a folder, to disk.
psi_status base_sync(psi_ctx *ctx, const char *path);

// The whole file, followed by a '\0' that is not counted. PSI_ELIMIT if it is longer than limit.
psi_status base_read_file(psi_ctx *ctx, const char *path, size_t limit, char **bytes, size_t *size);

// Makes a folder and those above it.
psi_status base_make_folders(psi_ctx *ctx, const char *path);

// Removes a file, or a folder with all that is in it; what does not exist is fine.
void base_remove(const char *path);

// "folder/name" in memory that belongs to the caller.
psi_status base_join(psi_ctx *ctx, const char *folder, const char *name, char **out);

#endif
