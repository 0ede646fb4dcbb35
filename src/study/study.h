// What the paper's studies share. A study is a function; it leaves its files in a folder of its
// own, each of them whole, and results.json last: where that is, the study is finished.
#ifndef PSI_STUDY_STUDY_H
#define PSI_STUDY_STUDY_H

#include <psifold/cluster.h>
#include <psifold/report.h>
#include <psifold/study.h>

#include "base/context.h"
#include "base/json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct study {
    psi_ctx *ctx;
    const psi_study_options *how;
    const char *name; // "point-column-world"
    char *folder;     // where its files go
    json_t *results;  // results.json: title, what, claims, figures, files, and numbers
} study;

typedef psi_status study_run(study *of);
study_run study_column_world, study_point_column_world, study_combination_lock, study_transfer,
    study_sweep;

// ---- writing down what came out -----------------------------------------------------------------

psi_status study_title(study *of, const char *title, const char *what);
psi_status study_claim(study *of, const char *claim, const char *paper, bool holds,
                       const char *ours, ...) PRINTF_LIKE(5, 6);
psi_status study_figure(study *of, const char *name, const char *alt, const char *caption);
psi_status study_wide_figure(study *of, const char *name, const char *alt, const char *caption);
psi_status study_file(study *of, const char *name, const char *what);
psi_status study_set(study *of, const char *key, json_t *value); // takes over the value

// "folder/name" of a file of the study; belongs to the caller.
psi_status study_path(study *of, const char *name, char **path);
bool study_has(study *of, const char *name);

// A line to read: of the results, or of progress, where a cancel is noticed.
void study_prints(const study *of, const char *format, ...) PRINTF_LIKE(2, 3);
psi_status study_says(const study *of, const char *format, ...) PRINTF_LIKE(2, 3);

// The folder of a study of this output and scale; belongs to the caller.
psi_status study_folder(const study *of, const char *name, char **folder);
const char *study_scale_name(const study *of);

// {"estimate": …, "low": …, "high": …}
json_t *study_interval_json(const psi_interval *interval);

// Compares scores, for qsort.
int study_ascending(const void *a, const void *b);

// ---- steps that several studies take ------------------------------------------------------------

// Trajectories of a task into the study's folder, unless they are there; then reads them.
// PSI_EUSAGE if those that are there were asked for otherwise.
psi_status study_trajectories(study *of, const psi_task *task, size_t episodes, uint64_t seed,
                              const char *name, psi_trajectories **out);

// Clusters into the run folder name, or goes on with what is there; then reads it, and writes its
// page to name.html. Seconds and passes through a network per phase are kept in name-phases.json.
psi_status study_cluster(study *of, const char *data_name, const psi_trajectories *data,
                         const psi_cluster_options *how, const char *name, psi_run **run);

// Which digits the lock shows, "mnist" or "drawn": as asked for, else those there are. Says so
// where MNIST is missing, and notes it in the results.
psi_status study_images(study *of, const char **images);

// The options of the clustering: psifold's own, or the paper's schedule with the constants of table
// 1 for this task ("column-world" or "combination-lock").
psi_status study_cluster_options(const study *of, const char *task, psi_cluster_options *how);

// The cluster functions of a run (psi_run_levels), none of which may be missing.
psi_status study_levels(study *of, const psi_run *run, psi_levels *out);

// How many clusters every refinement has and which share of the observations it ignores, to
// name.csv and results.json.
psi_status study_refinements(study *of, const psi_run *run, const psi_levels *levels,
                             const char *name);

// (groups, n) errors as a table with one row per episode.
psi_status study_save_errors(study *of, const char *name, size_t groups, size_t n,
                             const double *errors, const char *const *names);

#endif
