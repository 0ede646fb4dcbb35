// A run folder as the report sees it: finished or not, with whatever is there.
#ifndef PSI_REPORT_RUN_H
#define PSI_REPORT_RUN_H

#include <psifold/cluster.h>

#include "base/json.h"

typedef struct report_run {
    psi_ctx *ctx;
    const char *folder;
    bool finished;    // false: interrupted, nothing final is there
    json_t *manifest; // NULL where there is none
    size_t n_steps, n_levels;
    psi_cluster_step *steps; // (n_steps) the lines of refinements.jsonl
    int32_t **levels;        // (n_levels ≤ n_steps) labels (n_observations) of every refinement
    size_t *level_clusters;  // (n_levels) largest label + 1

    size_t n_observations, n_latent, n_actions; // n_actions is 0 while nothing tells it
    char **action_names; // (n_actions) hostile words; NULL: actions are numbers
    bool has_terminal;
    double gamma;
    int32_t *labels;            // (n_observations) final, or of the last refinement
    float *confidence;          // (n_observations) in every label, 0 … 1; NULL: nothing says
    psi_run_result *result;     // of a finished run
    psi_quotient_result *exact; // of a model that was folded exactly: no run, and nothing to doubt
    const psi_mdp *model;       // result's, or counted from the data; NULL if neither is there
    psi_mdp *counted;
} report_run;

// Everything in the folder is hostile until checked: PSI_EFORMAT or PSI_EDATA with the file's name.
// PSI_EMISSING if the folder is no run at all. folder must outlive *out.
psi_status report_run_open(psi_ctx *ctx, const char *folder, report_run **out);
void report_run_free(report_run *run);

// The data set's path as the manifest has it, or NULL.
const char *report_run_data_path(const report_run *run);

// A member of the manifest's object ("options", "result", …), or NULL.
const json_t *report_run_get(const report_run *run, const char *object, const char *member);

// What the verdict leaves open, as far as the manifest has it as data.
typedef struct report_doubt {
    const char *kind; // "pair", "untried", "rare" or "past"
    size_t state;
    size_t other; // another latent state, or an action
    double nats;
} report_doubt;
// Doubt i; false beyond the last, and for those that make no sense.
bool report_run_doubt(const report_run *run, size_t i, report_doubt *out);
size_t report_run_n_doubts(const report_run *run);

// "seconds" or "finished", wherever the manifest has them; or NULL.
const json_t *report_run_timing(const report_run *run, const char *member);

// The model of a refinement's labels, from counts. *out belongs to the caller.
psi_status report_count_model(const report_run *run, const psi_trajectories *data,
                              const int32_t *labels, size_t n_latent, psi_mdp **out);

// Tells an interrupted run what only the data know: actions, the terminal state, the model.
psi_status report_run_meet(report_run *run, const psi_trajectories *data);

#endif
