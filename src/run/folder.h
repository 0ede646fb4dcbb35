// The run folder as a place: who may work in it, where a run under way keeps what it has, and how
// the finished run takes its place.
//
//   RUN/checkpoint/start.json      what the run was started with; without it there is no checkpoint
//   RUN/checkpoint/state.npz …     where it stands (checkpoint.h)
//   RUN/checkpoint/result/         what RUN will hold; ready once manifest.json is in it
//   RUN/checkpoint/replaced.json   the manifest of the older run whose place is being taken
//
// A folder is somebody's: nothing is removed from it but a checkpoint with a start.json of ours and
// the files that a manifest of ours lists, and nothing that is not listed there is overwritten.
#ifndef PSI_RUN_FOLDER_H
#define PSI_RUN_FOLDER_H

#include "base/json.h"

#include <psifold/cluster.h>

struct psi_run_folder {
    psi_ctx *ctx;
    char *path, *checkpoint, *result;
    int lock;              // on the folder, while this process works there; or −1
    bool resumed;          // there is a checkpoint to go on from
    bool made;             // the folder was not there before
    bool begun;            // the checkpoint was made by this process
    bool finished;         // resumed, and nothing was left to do
    double started, spent; // seconds: when this process began, and what earlier ones took
};

// Closes the folder, so that the run can be resumed; NULL is fine. psi_run_folder_close leaves no
// trace of a run that was begun now.
void run_folder_suspend(psi_run_folder *folder);

// Seconds spent on the run, by earlier processes, too.
double run_folder_seconds(const psi_run_folder *folder);

// An empty checkpoint in the place of an older one, unless the run has one already. Not before the
// work begins: until then an interrupted run that is to be replaced could still be resumed.
psi_status run_folder_begin(psi_run_folder *folder);

// start.json: written by a new run; one that is resumed must find the same there, or PSI_EUSAGE
// says what differs. start is an object of objects and plain values.
psi_status run_folder_start(psi_run_folder *folder, const json_t *start);

// PSI_EUSAGE, naming it, unless everything in `wanted` is so in `found`, too.
psi_status run_folder_compare(const psi_run_folder *folder, const json_t *wanted,
                              const json_t *found);

// A path in the checkpoint or in the result; it belongs to the caller.
psi_status run_folder_path(const psi_run_folder *folder, const char *name, char **out);
psi_status run_folder_result(const psi_run_folder *folder, const char *name, char **out);

// Puts the result in the folder's place: an older run's manifest goes first and the new one comes
// last, so that whoever finds a manifest finds the files that belong to it. Interrupted anywhere,
// it can be begun again.
psi_status run_folder_publish(psi_run_folder *folder);

// Whether there is something of this name in a folder, be it a link that leads nowhere.
bool run_folder_has(const char *folder, const char *name);

// A manifest.json can be anybody's. *out is one that psifold has written, or NULL if there is none
// or another program's; no file of a folder is removed unless one of these lists it.
psi_status run_folder_manifest(psi_ctx *ctx, const char *folder, const char *name, json_t **out);

// The run of this manifest ended with its budget: its checkpoint stays, to be gone on from.
bool run_folder_stopped(const json_t *manifest);

// PSI_EMISSING with a sentence on how to go on, if the folder holds nothing but a checkpoint.
psi_status run_folder_check_finished(psi_ctx *ctx, const char *folder);

#endif
