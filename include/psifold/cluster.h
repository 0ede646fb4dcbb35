// psifold/cluster.h: reward-predictive clustering, the paper's Algorithm 1 with functions that are
// approximated: trajectories in, latent states out.
#ifndef PSIFOLD_CLUSTER_H
#define PSIFOLD_CLUSTER_H

#include <psifold/base.h>
#include <psifold/data.h>
#include <psifold/mdp.h>
#include <psifold/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

// What predicts rewards and next latent states. Auto takes a table where observations repeat, a
// convolutional network for images and a perceptron for everything else.
#define PSI_APPROXIMATOR_TABLE(X)                                                                  \
    X(AUTO, "auto")                                                                                \
    X(TABLE, "table")                                                                              \
    X(MLP, "mlp")                                                                                  \
    X(CNN, "cnn")                                                                                  \
    X(RESNET18, "resnet18")

typedef enum psi_approximator {
#define X(name, text) PSI_APPROXIMATOR_##name,
    PSI_APPROXIMATOR_TABLE(X)
#undef X
} psi_approximator;

// "resnet18"; borrowed.
PSI_API const char *psi_approximator_name(psi_approximator approximator);

// How latent states are told apart: by evidence, or by successor features within epsilon, as they
// were before. The paper's own schedule is a third way (psi_cluster_paper).
typedef enum psi_method { PSI_METHOD_EVIDENCE, PSI_METHOD_SUCCESSOR_FEATURES } psi_method;

// The paper's schedule, with its constants for one of its tasks (psi_cluster_paper).
#define PSI_PAPER_TABLE(X)                                                                         \
    X(NONE, "none")                                                                                \
    X(COLUMN_WORLD, "column-world")                                                                \
    X(COMBINATION_LOCK, "combination-lock")

typedef enum psi_paper {
#define X(name, text) PSI_PAPER_##name,
    PSI_PAPER_TABLE(X)
#undef X
} psi_paper;

// How the features of all observations are kept. Halves (bfloat16) take half the memory; auto
// takes them where floats would need more than a gibibyte.
typedef enum psi_cache { PSI_CACHE_AUTO, PSI_CACHE_FULL, PSI_CACHE_HALF } psi_cache;

// One refinement: c_1 by rewards, then c_2, c_3, … by successor features.
typedef struct psi_cluster_step {
    size_t clusters;       // latent states, the terminal one included
    size_t looked_at;      // states that were clustered
    double ignored;        // share of these in no cluster
    double agreement;      // with the refinement before, over states that both keep
    double gap, epsilon;   // smallest distance that must split, and the radius that was used
    double held_out_error; // mean distance of held-out predictions from their cluster's
    double perfect;        // share of them within epsilon / 2 (the theorem wants all of them)
    double seconds;
} psi_cluster_step;

// Where the time of a run goes. Seconds are those of all processes that have worked on it, passes
// those that a run without interruption makes.
typedef struct psi_cluster_phase {
    const char *name; // as progress has it, but for "refinements" and "everything else"
    double seconds;
    uint64_t passes; // observations that went through a network: each step of a training counts its
                     // batch, each prediction its rows; heads on features that are kept see none
    psi_ranks_cost talk; // with other processes, where there are some
} psi_cluster_phase;

// What can be chosen about a clustering (psi_cluster_option_table describes it).
typedef struct psi_cluster_options {
    size_t size; // of this struct: psi_cluster_defaults sets it
    psi_method method;
    psi_approximator approximator;
    double budget;         // seconds for all of it, from when a folder was opened; 0: no bound
    size_t stack;          // observations, the last so many of an episode, that are seen as one
    bool split;            // refine strictly inside the old clusters; false: cluster anew
    bool fine_tune;        // at the end the whole network learns the labels; false: its heads
    bool heads;            // keep heads of every refinement in the run folder
    bool auxiliary;        // features learn more than rewards: actions and what comes next
    bool dropout;          // heads learn from a random half of the features at a time
    bool smooth;           // use what trajectories say about labels, beyond the paper
    psi_norm norm;         // of successor features
    psi_cache cache;       // precision of the features
    double gamma;          // of successor features
    double epsilon_reward; // 0: half of the smallest difference of two rewards
    double epsilon_sf;     // 0: .75 of the gap, at most .5, at every refinement
    double filter;         // share of the states below which a cluster is spurious
    size_t max_refinements;
    size_t max_latent_states; // at most 10⁹; PSI_ELIMIT if the first refinement has more
    size_t hidden;            // units of each of the perceptron's two layers; 0: 512, and 128 where
                              // it only has to tell labels apart
    size_t trunk_steps;       // 0: 2,000 for vectors, 1,000 for images
    size_t head_steps;
    size_t representation_steps; // 0: three epochs, 1,000 to 12,000; resnet18: two less 250
    size_t shift;                // images are moved by up to so many pixels while networks learn
    double learning_rate;
    psi_paper paper; // the paper's schedule: see psi_cluster_paper
    size_t batch, reward_epochs, sf_epochs, representation_epochs; // of it
    uint64_t seed;
    // After every refinement with the labels (observations) so far; may be NULL. The refinements of
    // a run that is resumed are told first, with NULL for labels.
    psi_status (*watch)(void *user, const psi_cluster_step *step, size_t refinement,
                        size_t n_observations, const int32_t *labels);
    void *user;
} psi_cluster_options;
PSI_API psi_cluster_options psi_cluster_defaults(void);
PSI_API const psi_option_table *psi_cluster_option_table(void); // of what can be chosen

// The paper's schedule with the constants of its table 1: at every refinement the whole network is
// trained for so many epochs at a constant learning rate, with cross-entropy alone; clusters are
// only ever split, by successor features alone; no smoothing, no verdict at the end.
// `task` is "column-world" or "combination-lock" (PSI_EUSAGE otherwise). The paper does not say
// what gamma was: 0.7 and 0.6 are where its epsilons tell neighbours apart with room to spare. One
// episode in ten is held out all the same.
PSI_API psi_status psi_cluster_paper(psi_ctx *ctx, const char *task, psi_cluster_options *out);

// The trajectories with these labels (one per observation, borrowed like the data) in the place of
// observations.
PSI_API psi_paths psi_trajectories_paths(const psi_trajectories *data, const int32_t *labels,
                                         size_t n_latent, bool has_terminal);

// ---- the certificate ----------------------------------------------------------------------------

// Definition 2 of the paper, asked of trajectories that the model was not made from. For every pair
// (k, a): how far rewards and successor features there are from the model's.
typedef struct psi_certificate {
    size_t n_latent, n_actions;      // K, A
    uint64_t *visits;                // (K, A) transitions behind the figures
    double *reward_error;            // (K, A) |w_a(k) − mean reward|
    double *sf_error;                // (K, A) γ ‖Fᵀ (M_a(k) − next latent states as seen)‖
    double *reward_doubt, *sf_doubt; // (K, A) two standard errors: what chance explains of each
    double epsilon_reward, epsilon_sf; // what an error may be
    size_t judged, violating; // transitions; of them, those in pairs whose error exceeds epsilon
                              // by more than chance explains
    size_t unseen;            // pairs that these trajectories never show
    double worst_reward, worst_sf; // largest errors less what chance explains
    size_t mergeable; // latent states that could be merged with another: 0 is maximal compression
} psi_certificate;

// O(transitions + K²·A). *out belongs to the caller.
PSI_API psi_status psi_certify(psi_ctx *ctx, const psi_mdp *model, double gamma,
                               const psi_paths *paths, double epsilon_reward, double epsilon_sf,
                               psi_certificate **out);
PSI_API void psi_certificate_free(psi_ctx *ctx, psi_certificate *certificate);

// ---- the verdict --------------------------------------------------------------------------------

// How sure the answer is, in a word.
#define PSI_VERDICT_TABLE(X)                                                                       \
    X(CERTAIN, "certain")                       /* every other answer loses by a margin */         \
    X(UNDETERMINED, "undetermined")             /* the data leave something open: see doubts */    \
    X(NOT_MARKOV, "not-markov")                 /* the past tells more than the latent state */    \
    X(NO_SMALL_ANSWER, "no-small-answer")       /* latent states keep growing with the data */     \
    X(NOTHING_TO_PREDICT, "nothing-to-predict") /* one reward, and no episode ends */              \
    X(NOT_ASKED, "not-asked")                   /* not with this method */

typedef enum psi_verdict {
#define X(name, text) PSI_VERDICT_##name,
    PSI_VERDICT_TABLE(X)
#undef X
} psi_verdict;

// "not-markov"; borrowed.
PSI_API const char *psi_verdict_name(psi_verdict verdict);

// What keeps an answer from being certain.
#define PSI_DOUBT_TABLE(X)                                                                           \
    X(PAIR, "pair") /* latent states `state` and `other` may be one */                               \
    X(UNTRIED,                                                                                       \
      "untried")      /* action `other` was never taken in latent state `state`; −1: anywhere */   \
    X(RARE, "rare")   /* … or in some of its looks too rarely to show another law */               \
    X(PAST, "past")   /* what came before latent state `state` tells what follows; −1: many. The   \
                         last `other` observations, seen as one, may tell it, too */                 \
    X(LOOKS, "looks") /* … or what its observations look like does: it may be several */           \
    X(GROWTH, "growth") /* latent states keep growing with the data; `state` and `other` are −1 */ \
    X(SELDOM, "seldom") /* something that followed action `other` in latent state `state`, not       \
                           every time, was seen `visits` times in all: too few to tell by what */    \
    X(TAILS, "tails")   /* a few rewards outweigh all others; `state` and `other` are −1 */        \
    X(CLOCK, "clock")   /* episodes end by a clock that no observation shows, most of all after      \
                           `visits` steps; `state` and `other` are −1 */                           \
    X(CHANCE, "chance") /* too little of what is left to chance was seen to show that nothing else   \
                           tells it: `visits` transitions; `state` and `other` are −1 */           \
    X(UNTOLD, "untold") /* `visits` percent of the held-out observations look like another latent    \
                           state's, or there are none; `state` and `other` are −1 */

typedef enum psi_doubt_kind {
#define X(name, text) PSI_DOUBT_##name,
    PSI_DOUBT_TABLE(X)
#undef X
} psi_doubt_kind;

// "untried"; borrowed.
PSI_API const char *psi_doubt_name(psi_doubt_kind kind);

// One thing that the data leave open.
typedef struct psi_doubt {
    psi_doubt_kind kind;
    int32_t state, other;
    double nats;     // of evidence, for pairs; 0: not clear when they were first told apart
    uint64_t visits; // transitions behind it
    uint64_t enough; // about so many would have left nothing open; 0: not known
} psi_doubt;

// ---- a run --------------------------------------------------------------------------------------

// Which data a run was made from: 128 bits over observations, actions, rewards and episodes (not
// the true latent states), in hexadecimal. Reads every observation once.
typedef struct psi_fingerprint {
    char hex[33];
} psi_fingerprint;
PSI_API psi_status psi_fingerprint_of(psi_ctx *ctx, const psi_trajectories *data,
                                      psi_fingerprint *out);

// A run: what was asked and what was found. Clustering returns one, a run folder is read into one,
// and everything that works with a result takes one. Everything in it belongs to it (psi_run_free);
// what a comment does not allow to be NULL is there in every finished run.
typedef struct psi_run {
    char *folder;  // where its files are; NULL: it was not kept
    bool finished; // false: it was interrupted, and this is what there is of it so far

    // what it was made from, and how
    psi_fingerprint fingerprint;
    char **data_paths;     // (n_data_paths) files and folders that are one data set, for the record
    size_t n_data_paths;   // 0: not known
    char *observation_key; // the entry of their Dict observation; NULL: there is only one
    size_t n_episodes, n_transitions, n_observations, n_actions;
    psi_dtype observation_dtype; // of a single one, not stacked
    psi_shape observation_shape;
    psi_cluster_options options; // but for watch and user, which are NULL
    int threads;

    // what was found
    size_t n_latent; // K; latent state 0 is the terminal one if has_terminal
    bool has_terminal;
    int32_t *labels;               // (n_observations) −1: ignored
    float *confidence;             // (n_observations) in every label; NULL: not with this method
    psi_mdp *model;                // {w_a, M_a}
    psi_approximator approximator; // what was chosen: not auto
    psi_net *representation;       // tells the latent states apart; NULL for a table, or it failed
    double accuracy;               // of it on held-out states; NaN without one
    struct psi_known *known;       // what psi_predictor_new needs; NULL: of an older version, or
                                   // it failed

    // how sure that is
    psi_verdict verdict;
    bool stopped;     // a budget ended before everything was done: going on may find more
    char *failure;    // the sentence of a later step that has failed: what was found before it is
                      // here, without certificate, network or more; NULL: none has
    double margin;    // nats by which the two most similar latent states are apart
    double doubtful;  // share of the observations whose latent state is not clear
    double past;      // share of the transitions about which the past tells more
    size_t growth[3]; // latent states in a quarter, half and all of the data; 0: not asked
    size_t n_doubts;  // the first of what is open …
    psi_doubt *doubts;
    psi_certificate *certificate; // on held-out episodes, of a model made from the others; NULL:
                                  // that failed

    // how it got there
    double gamma, epsilon_reward, epsilon_sf, gap; // of the last refinement
    bool matching_condition; // gamma and epsilon_sf satisfy the theorem's condition (equation 16)
    size_t n_steps;
    psi_cluster_step *steps; // (n_steps) the refinements
    bool converged;          // the last two clusterings are equal
    bool has_heads;          // heads of every refinement are in the run folder
    bool has_trunk;          // features were learnt: the network behind them is in the run folder
    double ignored;          // share of the states, at the end
    double smoothed;         // share of the states whose label smoothing changed
    size_t n_phases;
    psi_cluster_phase *phases; // (n_phases) in the order in which they begin
    double seconds;            // spent on it, by all processes
    char when[24];             // it was finished: "2026-11-17T12:00:00Z"; "" for one not kept
} psi_run;

// The whole method, in memory. Only rewards, actions and observations are looked at, never
// latent_states. PSI_EUSAGE for options that make no sense, PSI_EDATA if rewards never vary or
// observations are no numbers, PSI_ELIMIT if there are more than max_latent_states, PSI_ECANCELLED,
// also where a budget ends before the first refinement. *out belongs to the caller.
PSI_API psi_status psi_cluster(psi_ctx *ctx, const psi_trajectories *data,
                               const psi_cluster_options *options, psi_run **out);
PSI_API void psi_run_free(psi_ctx *ctx, psi_run *run); // NULL is fine

// One plain sentence: what the verdict is and what it rests on; and what to do about a doubt. At
// most size bytes, the closing one included.
PSI_API void psi_verdict_sentence(const psi_run *run, char *text, size_t size);
PSI_API void psi_doubt_sentence(const psi_doubt *doubt, char *text, size_t size);

// ---- other observations -------------------------------------------------------------------------

// A run's table or network, ready to be asked again and again; by one thread at a time. The run
// must outlive it. PSI_EMISSING for a table that an older version made. *out belongs to the caller.
typedef struct psi_predictor psi_predictor;
PSI_API psi_status psi_predictor_new(psi_ctx *ctx, const psi_run *run, psi_predictor **out);
PSI_API void psi_predictor_free(psi_ctx *ctx, psi_predictor *predictor);

// Which latent states observations (of psi_run_observe) are: labels (n) and, unless it is NULL,
// confidence (n), the probability of each label. An observation unlike anything that the run has
// seen, or whose label is less probable than min_confidence, is −1: a table knows the observations
// that occurred, a network those whose features are as near to their latent state's as those of its
// own data. PSI_ESHAPE for observations of another shape or type, PSI_EDATA for those that are no
// numbers.
PSI_API psi_status psi_predict(psi_ctx *ctx, psi_predictor *predictor,
                               const psi_observations *observations, double min_confidence,
                               int32_t *labels, float *confidence);

// Labels that a network gave, where latent state 0 is the terminal one: the ends of terminated
// episodes become what they are known to be, and −1 what looks like an end where the episode went
// on.
PSI_API void psi_mark_terminals(const psi_trajectories *data, int32_t *labels);

// The observations of data as a run sees them: stacked, if it stacks. The data must outlive them.
// *out belongs to the caller.
PSI_API psi_status psi_run_observe(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                                   psi_observations **out);

// The labels (n_observations) that a run gives to data: its own if these are the data that it was
// made from (*own, by their fingerprint; may be NULL), else those that psi_predict gives, with
// terminal states marked. Where psi_predict finds a label less probable than min_confidence, it is
// −1 in any case, but for the ends of terminated episodes. PSI_ESHAPE for another number of
// actions. Several processes (psi_ranks_join) do this, and what follows, together, each with its
// own part of the data.
PSI_API psi_status psi_run_label(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                                 double min_confidence, int32_t *labels, bool *own);

// Reward-sequence errors on data, stage by stage: of the refinements, then of the final model.
typedef struct psi_run_errors {
    size_t n_stages, n_episodes; // the last stage is the final model
    double *values;              // (n_stages, n_episodes) NaN: not judged
    psi_sequence_error *summary; // (n_stages)
} psi_run_errors;

// labels and own are what psi_run_label gives. On the run's own data a refinement is judged by its
// own labels and the model counted from them (those whose labels were removed are left out); on
// other data by its heads and the model it has kept, if there are any. O(stages · transitions).
// *out belongs to the caller.
PSI_API psi_status psi_run_evaluate(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                                    const int32_t *labels, bool own, psi_run_errors **out);
PSI_API void psi_run_errors_free(psi_ctx *ctx, psi_run_errors *errors);

// How small an error can be where the world is random.
typedef struct psi_error_floor {
    double mean; // NaN if no episode can be judged
    bool truth; // true: by the true latent states of the data, with the model that the data give of
                // them. False: the run's error on as many episodes that are put together from steps
                // of the data, each in the latent state that the one before led to: what is left if
                // latent states tell everything
} psi_error_floor;

// labels (n_observations) are those that psi_run_label gives. O(N · K) at worst; the same whenever
// it is asked.
PSI_API psi_status psi_error_floor_of(psi_ctx *ctx, const psi_run *run,
                                      const psi_trajectories *data, const int32_t *labels,
                                      psi_error_floor *out);

// How a labelling compares with the truth, where the data carry it.
typedef struct psi_purity {
    size_t true_latent_states; // among the states that occur, the terminal one included
    double off_diagonal;       // kept states outside their true state's majority cluster …
    double ignored;            // … and states that are ignored, as shares of all that are not
                               // terminal
    double accuracy;           // share of the states in the best one-to-one matching
    size_t merged; // true latent states whose majority cluster is that of a larger one, too
    size_t split;  // clusters most of whose states are of a true one that a larger cluster has, too
} psi_purity;

// PSI_EMISSING if the data do not know their latent states.
PSI_API psi_status psi_purity_of(psi_ctx *ctx, const psi_trajectories *data, const int32_t *labels,
                                 size_t n_latent, psi_purity *out);

// ---- the epsilon-cover --------------------------------------------------------------------------

// Gathers points that lie within epsilon of one another into clusters (the implication under lines
// 6 and 12 of Algorithm 1). Centres are chosen where the points are densest and moved to the mean
// of what they cover; every point then goes to its nearest centre.

// A point is a row of `groups` vectors of `width` numbers each: one vector per action. The distance
// of two points is the sum over the groups of the norm of the difference.
typedef struct psi_cover_points {
    size_t n, groups, width;
    // Writes the points rows[0 … count) to out (count, groups, width). Called by one thread at a
    // time.
    psi_status (*fill)(void *user, psi_ctx *ctx, const uint64_t *rows, size_t count, float *out);
    void *user;
} psi_cover_points;

// How points are covered.
typedef struct psi_cover_options {
    size_t size; // sizeof(psi_cover_options)
    double epsilon;
    psi_norm norm;
    double filter;       // clusters with a smaller share of the points are spurious
    size_t max_clusters; // PSI_ELIMIT beyond
    uint64_t seed;       // of the sample in which centres are looked for
    const char *phase; // the name under which each pass over the points tells its progress, or NULL
} psi_cover_options;

// Centres, and which of them each point belongs to.
typedef struct psi_cover_result {
    size_t n_clusters;
    float *centres;  // (n_clusters, groups, width)
    int32_t *labels; // (n) 0 … n_clusters−1, largest cluster first; −1: in a spurious cluster
    size_t *sizes;   // (n_clusters)
    size_t ignored;  // points labelled −1
    double mean_distance; // of the labelled points to their centres
} psi_cover_result;

// O(n · clusters · groups · width) time; memory for a sample of the points and the labels. The
// result's arrays belong to the caller. Deterministic for a given number of points and seed.
PSI_API psi_status psi_cover(psi_ctx *ctx, const psi_cover_points *points,
                             const psi_cover_options *options, psi_cover_result *out);
PSI_API void psi_cover_free(psi_ctx *ctx, psi_cover_result *result);

// ---- the run folder -----------------------------------------------------------------------------

// What a run leaves behind, as plain data:
//   manifest.json               options, seed, version, the data's fingerprint, what was found, the
//                               phases with their passes, the names of the other files; all times
//                               are under "timings"
//   refinements.jsonl           a line per refinement
//   clusters.npy                (observations) int32, −1 ignored; clusters-01.npy … per refinement
//   confidence.npy              (observations) float32: the probability of each label; by evidence
//                               only
//   latent.npz                  w (A, K), M (A, K, K), F (K, K), F_a (A, K, K)
//   certificate.npz             Definition 2 on held-out episodes, per latent state and action
//   representation.safetensors  the network, unless a table was used
//   seen.npz                    what was seen: the distinct observations of a table with their
//                               labels, or how far the features of a network's reach
//   trunk.safetensors           the network on whose features refinement worked, likewise
//   heads-01.safetensors …      per refinement, a linear map from the trunk's features to its
//                               clusters: what it would call other observations …
//   latent-01.npz …             … and its latent model, sparse: offsets (K·A + 1), next (entries),
//                               probability (entries), reward (K, A). Neither for tables, nor in
//                               the paper's schedule, where there is no common trunk
//
// While the run is under way the folder has a folder checkpoint, from which the run can be resumed
// after it was interrupted, be it by kill −9: at most the refinement (or the fit of the trunk) that
// was under way is lost, and the result is the same, byte for byte but for the timings. A folder
// with a manifest is whole.

// A folder to keep a run in while it is under way.
typedef struct psi_run_folder psi_run_folder;

// What is done with a run that is there already.
typedef enum psi_folder_mode {
    PSI_FOLDER_NEW,     // PSI_EUSAGE: nothing
    PSI_FOLDER_REPLACE, // it stays until the new one is finished
    PSI_FOLDER_RESUME,  // if it was interrupted, it goes on
} psi_folder_mode;

// Opens the folder, which is made if it is not there; one process at a time. PSI_EUSAGE if
// something else than a run is there, or another process works in it. *out belongs to the caller,
// who hands it over to psi_cluster_into or closes it.
PSI_API psi_status psi_run_folder_open(psi_ctx *ctx, const char *path, psi_folder_mode mode,
                                       psi_run_folder **out);
PSI_API bool psi_run_folder_finished(const psi_run_folder *folder); // nothing is left to do
// Closes it, and leaves it as it was found. NULL is fine.
PSI_API void psi_run_folder_close(psi_run_folder *folder);

// Of several processes (psi_ranks_join) rank 0 opens the folder and makes this call while the
// others make that of psi_cluster, each with its own episodes (psi_trajectories_read_all). What is
// found is rank 0's; elsewhere *out is NULL.
//
// The whole method, as psi_cluster, in a folder: goes on where an interrupted run has stopped, and
// reads one that is finished. PSI_EUSAGE, naming the difference, unless a run is resumed with the
// data, options, seed, number of threads and version that it was started with; of one that is
// finished the last two do not count, and data may be NULL. data_paths, in UTF-8, are for the
// record. The folder is closed in any case: after PSI_ECANCELLED, PSI_EIO and PSI_ENOMEM the run
// can be resumed; other failures before the first refinement leave nothing, unless it was there
// before, and later ones a whole run, as psi_cluster does. So does a budget that has ended; its run
// can be resumed all the same. *out belongs to the caller.
PSI_API psi_status psi_cluster_into(psi_run_folder *folder, const char *const *data_paths,
                                    size_t n_data_paths, const psi_trajectories *data,
                                    const psi_cluster_options *options, psi_run **out);

// Reads a finished run. Every file is checked as hostile input: PSI_EFORMAT or PSI_EDATA with the
// file's name. PSI_EMISSING if the run is not finished. *out belongs to the caller.
PSI_API psi_status psi_run_load(psi_ctx *ctx, const char *folder, psi_run **out);

// The same, and of an interrupted run what there is of it so far: options, steps and the labels of
// its last refinement; psi_run_attach adds what its data tell. PSI_EMISSING if there are no labels.
PSI_API psi_status psi_run_load_so_far(psi_ctx *ctx, const char *folder, psi_run **out);

// The data that a run was made from: in `path` (NULL: where the run says; PSI_EMISSING if they are
// not there any more), the entry `key` of a Dict observation (NULL: the run's). PSI_EDATA, or
// PSI_EMISSING where the path was not given, for other data. Reads every observation once. *out
// belongs to the caller.
PSI_API psi_status psi_run_data(psi_ctx *ctx, const psi_run *run, const char *path, const char *key,
                                psi_trajectories **out);

// Tells an interrupted run what only its data know: actions, the terminal state, the model of its
// labels, from counts. A finished run stays as it is. O(transitions).
PSI_API psi_status psi_run_attach(psi_ctx *ctx, psi_run *run, const psi_trajectories *data);

// Compares every file of a finished run with the checksum in its manifest. PSI_EFORMAT names the
// first that is not as it was left, PSI_EMISSING says that there are none to compare with. *n is
// how many files there are. psi_run_load does this, too.
PSI_API psi_status psi_run_check_files(psi_ctx *ctx, const char *folder, size_t *n);

// Whether what the files of a finished run say fits together: labels of latent states that there
// are, at least one observation in each of them, refinements with labels of their own, a model
// whose rows are distributions. PSI_EDATA or PSI_EFORMAT with a sentence if not.
PSI_API psi_status psi_run_check(psi_ctx *ctx, const char *folder);

// ---- the refinements of a run -------------------------------------------------------------------

// The labels of refinement i (from 1); they belong to the caller, to be given back with
// psi_array_free. PSI_EMISSING if the run was not kept.
PSI_API psi_status psi_run_labels(psi_ctx *ctx, const psi_run *run, size_t refinement,
                                  int32_t **labels);

// The cluster functions of a run: c_0, which knows terminal states from others, those of all
// refinements whose labels are there (some may have been removed to save space), and the final one.
typedef struct psi_levels {
    size_t n;         // refinements + 2
    int32_t **labels; // (n, n_observations)
    size_t *clusters; // (n) largest label + 1
} psi_levels;
PSI_API psi_status psi_run_levels(psi_ctx *ctx, const psi_run *run, psi_levels *out);
PSI_API void psi_levels_free(psi_ctx *ctx, psi_levels *levels); // not the struct itself

// What every refinement calls other observations, by its heads: labels (n_steps, n), in one pass
// over them. Latent state 0 is never given where it is the terminal one, which is no matter of
// looks. PSI_EMISSING without heads, PSI_ESHAPE for observations of another shape or type.
PSI_API psi_status psi_run_assign(psi_ctx *ctx, const psi_run *run,
                                  const psi_observations *observations, int32_t *labels);

// The latent model of refinement i (from 1), as made from the run's own data. *out belongs to the
// caller.
PSI_API psi_status psi_run_model(psi_ctx *ctx, const psi_run *run, size_t refinement,
                                 psi_mdp **out);

#ifdef __cplusplus
}
#endif
#endif
