// Files and folders that appear whole or not at all: everything is written under another name
// beside the target, brought to disk, and renamed at the end.
//
//   TARGET.tmp-0123456789abcdef/NAME   what is being written; the digits are random, and the folder
//                                      is locked as long as its process lives
//
// Whoever writes the same target next removes the folders of those who died. A lock, and not a
// process's number, says who lives: containers that share a disk share no numbers.
#ifndef PSI_BASE_FILE_H
#define PSI_BASE_FILE_H

#include <psifold/base.h>

typedef struct base_output base_output;

typedef enum base_output_kind { BASE_FILE, BASE_FOLDER } base_output_kind;

// Makes the temporary file or folder. With replace false an existing target is PSI_EUSAGE, also one
// that appears before the commit. With replace true files, folders and links may be in its place,
// a link being replaced itself; devices, pipes and sockets are PSI_EUSAGE, and so is a folder where
// a file is to be. *out is freed by commit or discard.
psi_status base_output_open(psi_ctx *ctx, const char *path, base_output_kind kind, bool replace,
                            base_output **out);
const char *base_output_path(const base_output *output); // the temporary name, for other libraries
psi_status base_output_write(base_output *output, const void *bytes, size_t size);

// A path beside the temporary one, for whatever must not be part of the output. It belongs to the
// caller; what is made there is removed with the output.
psi_status base_output_beside(const base_output *output, const char *name, char **out);

// fsync, rename, fsync of the parent. The output is gone afterwards, also on failure, and then
// nothing is left under either name.
psi_status base_output_commit(base_output *output);
void base_output_discard(base_output *output); // NULL is fine

// Opens a plain file to be read. Anything else (a pipe, which would block; a device, a socket, a
// folder) is PSI_EIO at once. *fd is −1 on failure.
psi_status base_open_file(psi_ctx *ctx, const char *path, int *fd, uint64_t *size);

// Whether anything has this name, be it a link that leads nowhere: what is there and cannot be read
// is not the same as what is not there.
bool base_is_there(const char *path);

// Moves a file to a name that nobody has, on the same file system. −1 with errno EEXIST if it is
// taken.
int base_rename_new(const char *from, const char *to);

// Brings a file, or the names in a folder, to disk; likewise the folder above, in which the path is
// a name; likewise a folder and all that is in it (−1 with errno).
psi_status base_sync(psi_ctx *ctx, const char *path);
psi_status base_sync_above(psi_ctx *ctx, const char *path);
int base_sync_tree(const char *path);

// The whole file, followed by a '\0' that is not counted. PSI_ELIMIT if it is longer than limit.
psi_status base_read_file(psi_ctx *ctx, const char *path, size_t limit, char **bytes, size_t *size);

// Makes a folder and those above it.
psi_status base_make_folders(psi_ctx *ctx, const char *path);

// Removes a file, or a folder with all that is in it; what does not exist is fine.
void base_remove(const char *path);

// Likewise, but in one step as far as others can see: under a temporary name, from which the next
// such call for the same path removes what a process that was killed has left.
psi_status base_remove_whole(psi_ctx *ctx, const char *path);

// Removes what processes that died while they wrote or removed this path have left.
psi_status base_remove_abandoned(psi_ctx *ctx, const char *path);

// "folder/name" in memory that belongs to the caller.
psi_status base_join(psi_ctx *ctx, const char *folder, const char *name, char **out);

#endif
