// A run on its way into a folder and back: manifest.json, start.json and the files beside them.
#ifndef PSI_RUN_RUN_H
#define PSI_RUN_RUN_H

#include "run/folder.h"

// start.json: writes, or compares, what the run is started with: version, threads, seed, options
// and the data's fingerprint.
psi_status run_start(psi_run_folder *folder, const psi_run *run);

// The same of a run that is finished: PSI_EUSAGE unless it is of these data and options. Who
// clustered it, and with how many threads, makes no difference any more.
psi_status run_compare(const psi_run_folder *folder, const psi_run *run,
                       const psi_trajectories *data, const psi_cluster_options *options);

// Writes everything that is not there yet and puts the run in its place, where it is finished.
psi_status run_save(psi_run_folder *folder, psi_run *run);

// PSI_EINTERNAL unless every label is of a latent state that there is, and each of those was seen.
psi_status run_check_found(psi_ctx *ctx, const psi_run *run);

// Copies where the data are into a run that does not say so yet.
psi_status run_set_data_paths(psi_ctx *ctx, psi_run *run, const char *const *paths, size_t n);

// manifest.json out; files is an array of names.
psi_status run_manifest_save(psi_ctx *ctx, const char *path, const psi_run *run, json_t *files);

// … and in: everything of the run but what has a file of its own; checksums of those are compared.
// Hostile: PSI_EFORMAT with its path.
psi_status run_manifest_load(psi_ctx *ctx, const char *folder, psi_run *run);

// Options and fingerprint as start.json has them.
psi_status run_start_load(psi_ctx *ctx, const char *path, psi_run *run);

// A line of refinements.jsonl out and in. Its text is in the buffer, without an end of line.
enum { RUN_STEP_SIZE = 1024 };
psi_status run_step_print(psi_ctx *ctx, const psi_cluster_step *step, size_t refinement,
                          char text[RUN_STEP_SIZE], size_t *size);
psi_status run_step_parse(psi_ctx *ctx, const char *path, size_t refinement, const char *text,
                          size_t size, psi_cluster_step *out);

// "clusters-03.npy": the name of the labels of refinement i (from 1).
enum { RUN_NAME_SIZE = 48 };
const char *run_labels_name(size_t refinement, char name[RUN_NAME_SIZE]);

// Where the labels of refinements are: in the run folder itself, or, while the run is not finished,
// in its checkpoint. NULL if there are none. *out belongs to the caller.
psi_status run_refinements_folder(psi_ctx *ctx, const char *folder, char **out);

// The labels of refinement i (from 1); NULL if they are not there.
psi_status run_refinement_labels(psi_ctx *ctx, const psi_run *run, size_t refinement,
                                 int32_t **labels);

// An array of int32, one for each of n observations (n 0: any number, which *n says), from −1 to
// below `below`.
psi_status run_labels_load(psi_ctx *ctx, const char *folder, const char *name, size_t below,
                           size_t *n, int32_t **out);

#endif
