// psifold/study.h: many runs. Trials of agents over seeds, and the paper's experiments, each with
// the files, figures and claims that come out of it.
#ifndef PSIFOLD_STUDY_H
#define PSIFOLD_STUDY_H

#include <psifold/agent.h>
#include <psifold/base.h>
#include <psifold/data.h>
#include <psifold/env.h>
#include <psifold/mdp.h>
#include <psifold/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- trials -------------------------------------------------------------------------------------

// One agent, one task, one seed, with a folder that says what came out and from which a trial that
// was stopped goes on.
typedef struct psi_trial {
    psi_task task;
    // Pretrained: the Q-network that it starts from is in a file; or it is that of another trial,
    // which was run before and has kept it; or, both NULL, it learns this task first.
    const char *start_file;
    const struct psi_trial *source;
    psi_task training;
    psi_agent_options options; // seed included
    size_t episodes;
    size_t evaluation;  // episodes without exploration at the end; 0: none
    char *folder;       // where its files go; NULL: nowhere. psi_trials_free gives it back
    bool keep_network;  // save the Q-network there, as network.safetensors
    bool needs_network; // a result without its network does not count: it is run again

    // what came out
    bool finished, diverged;
    size_t not_played;            // episodes, since it had forgotten its task (psi_agent_options)
    psi_agent_score score, final; // while learning; of the evaluation
    uint64_t updates;
    double seconds;           // its share, if it was played together with others
    psi_agent_episode *curve; // (n_curve)
    size_t n_curve;
} psi_trial;

// Copies the path of a trial's folder into it.
PSI_API psi_status psi_trial_keep_in(psi_ctx *ctx, psi_trial *trial, const char *folder);

// Runs those that have no result yet, in order, on the context's threads, one thread each; those
// that look through the same frozen network share a thread and let it look for all of them at once.
// wide: one after the other, each on all threads. A folder with a finished trial is read instead,
// and one that was stopped goes on, if task, options and all else that decides the result are the
// same; PSI_EUSAGE, naming what differs, if not. On success all are finished; what they hold
// belongs to the caller, also on failure. Several processes (psi_ranks_join), which all have the
// same list, play trial i in process i mod n, and all get all results.
PSI_API psi_status psi_trials_run(psi_ctx *ctx, psi_trial *trials, size_t n, bool wide);
PSI_API void psi_trials_free(psi_ctx *ctx, psi_trial *trials, size_t n); // not the array itself

enum { PSI_TRIAL_JSON_SIZE = 2048 };

// The scores of a finished trial as JSON text, as its result.json has them.
PSI_API psi_status psi_trial_json(psi_ctx *ctx, const psi_trial *trial,
                                  char text[PSI_TRIAL_JSON_SIZE]);

// ---- earlier refinements on other data ----------------------------------------------------------

// Reward-sequence errors that the representations of several cluster functions make on trajectories
// none of them has seen. For every stage a linear head is trained on the features of the final
// network (between refinements the paper, too, trains only the topmost layer), the latent model is
// counted from the stage's labels, and every test episode is rolled out from what the head says its
// first observation is.
typedef struct psi_stages {
    const psi_net *representation;
    const psi_trajectories *data; // that the labels are of
    size_t n_stages;
    const int32_t *const *labels; // (n_stages) of data's observations; −1: ignored
    const psi_trajectories *test;
    uint64_t seed; // of the heads' training
} psi_stages;

// errors (n_stages, test episodes); summary (n_stages). PSI_ESHAPE unless the observations of both
// data sets are what the network takes.
PSI_API psi_status psi_stage_errors(psi_ctx *ctx, const psi_stages *stages, double *errors,
                                    psi_sequence_error *summary);

// ---- the paper's studies ------------------------------------------------------------------------

// How much of a study: minutes, an hour or more, or as much as the paper.
#define PSI_SCALE_TABLE(X)                                                                         \
    X(QUICK, "quick")                                                                              \
    X(MEDIUM, "medium")                                                                            \
    X(PAPER, "paper")

typedef enum psi_scale {
#define X(name, text) PSI_SCALE_##name,
    PSI_SCALE_TABLE(X)
#undef X
} psi_scale;

// What can be chosen about a study (psi_study_option_table describes it).
typedef struct psi_study_options {
    size_t size;        // of this struct: psi_study_defaults sets it
    const char *output; // folder of all studies; each has OUTPUT/NAME/SCALE
    psi_scale scale;
    const char *constants;  // "ours", or "table-1": the paper's schedule and constants
    const char *net;        // of the lock and its agents: "auto", "cnn" or "resnet18"
    size_t episodes;        // trajectories to train on; 0: the scale's
    size_t agent_episodes;  // of an agent in a task; 0: the scale's
    const char *run;        // transfer: where the representation comes from; NULL: see docs
    size_t seeds;           // of agents; 0: the scale's
    const char *digits;     // images of the lock: "auto", "mnist" or "drawn"
    size_t digits_per_dial; // fewer than ten make the lock smaller
    uint64_t seed;
    // Lines to read while it goes on; detail: of progress, not of results. May be NULL.
    void (*tell)(void *user, bool detail, const char *line);
    void *user;
} psi_study_options;

// What is usual, and the table of what can be chosen.
PSI_API psi_study_options psi_study_defaults(void);
PSI_API const psi_option_table *psi_study_option_table(void); // of what can be chosen

// A study of the paper.
typedef struct psi_study {
    const char *name;   // "column-world"
    const char *figure; // of the paper: "figure 1"
    const char *what;
    bool agents; // trials that are kept one by one: asked for other seeds, it goes on
    bool apart;  // no part of "all"
} psi_study;

enum { PSI_STUDIES = 5 };
PSI_API const psi_study *psi_studies(void); // (PSI_STUDIES)

// Where the files of studies are.
typedef struct psi_study_result {
    size_t n;
    char *folders[PSI_STUDIES]; // (n) with results.json, figures, data and index.html
    char *page;                 // of the study, or of all of them together
} psi_study_result;

// Runs a study, or "all" of them that are not apart. What is finished is not run again, what was
// stopped goes on. PSI_EUSAGE for a name that is not known, options that make no sense, or a folder
// with a finished study that was asked for otherwise; PSI_EMISSING without gnuplot. out belongs to
// the caller: psi_study_result_free.
PSI_API psi_status psi_study_run(psi_ctx *ctx, const char *name, const psi_study_options *options,
                                 psi_study_result *out);
PSI_API void psi_study_result_free(psi_ctx *ctx, psi_study_result *result);

#ifdef __cplusplus
}
#endif
#endif
