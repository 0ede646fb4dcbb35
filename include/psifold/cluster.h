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
} psi_cluster_phase;

typedef struct psi_run psi_run; // a run folder, see below

// What can be chosen about a clustering (psi_cluster_option_table describes it).
typedef struct psi_cluster_options {
    psi_method method;
    psi_approximator approximator;
    double budget;            // seconds for all of it, from when the run was opened; 0: no bound
    size_t stack;             // observations, the last so many of an episode, that are seen as one
    bool split;               // refine strictly inside the old clusters; false: cluster anew
    bool fine_tune;           // at the end the whole network learns the labels; false: its heads
    bool heads;               // keep heads of every refinement in the run folder
    bool auxiliary;           // features learn more than rewards: actions and what comes next
    bool dropout;             // heads learn from a random half of the features at a time
    bool smooth;              // use what trajectories say about labels, beyond the paper
    psi_norm norm;            // of successor features
    psi_cache cache;          // precision of the features
    double gamma;             // of successor features
    double epsilon_reward;    // 0: half of the smallest difference of two rewards
    double epsilon_sf;        // 0: .75 of the gap, at most .5, at every refinement
    double filter;            // share of the states below which a cluster is spurious
    size_t max_refinements;   // in one go
    size_t max_rounds;        // restarts with a smaller epsilon where something is still hidden
    size_t max_latent_states; // PSI_ELIMIT beyond
    size_t subset;            // refinements look at about so many states, the last at all; 0: all
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
    psi_run *run; // where the run is kept while it is under way; NULL: nowhere
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
// only ever split, by successor features alone; no smoothing, one round, no judgement at the end.
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
typedef enum psi_doubt_kind {
    PSI_DOUBT_PAIR,    // latent states `state` and `other` may be one
    PSI_DOUBT_UNTRIED, // action `other` was never taken in latent state `state`
    PSI_DOUBT_RARE,    // … or in some of its looks too rarely to show another law
    PSI_DOUBT_PAST,    // what came before latent state `state` tells what follows; −1: many. The
                       // last `other` observations, seen as one, may tell it, too
    PSI_DOUBT_LOOKS,   // … or what its observations look like does: it may be several
} psi_doubt_kind;

// One thing that the data leave open.
typedef struct psi_doubt {
    psi_doubt_kind kind;
    int32_t state, other;
    double nats;     // of evidence, for pairs
    uint64_t visits; // transitions behind it
} psi_doubt;

// ---- the whole method ---------------------------------------------------------------------------

// What a clustering found. Everything in it belongs to it.
typedef struct psi_clustering {
    size_t n_observations;
    size_t stack;    // of them, the last so many of an episode, that were seen as one
    size_t n_latent; // K; latent state 0 is the terminal one if has_terminal
    bool has_terminal;
    int32_t *labels;         // (n_observations) −1: ignored
    psi_mdp *model;          // {w_a, M_a}
    psi_net *representation; // tells the latent states apart; NULL for a table
    double accuracy;         // of it on held-out states; NaN without one

    const char *approximator;                      // what was chosen
    double gamma, epsilon_reward, epsilon_sf, gap; // of the last refinement
    bool matching_condition; // gamma and epsilon_sf meet the theorem's condition (equation 16)
    size_t n_steps;
    psi_cluster_step *steps; // (n_steps)
    size_t n_phases;
    psi_cluster_phase *phases; // (n_phases) in the order in which they begin
    size_t rounds;
    bool converged;    // the last two clusterings are equal
    bool stable;       // a second round found the same latent states
    bool judged;       // whether anything is still hidden was asked (not in the paper's schedule)
    double split_gain; // nats per step by which direct predictions still beat the model's
    bool hot;          // … more than chance: the latent states hide something
    bool has_heads;    // … of every refinement are in the run folder
    bool has_trunk;    // features were learnt: the network behind them is in the run folder
    double ignored;    // share of the states, at the end
    double smoothed;   // share of the states whose label smoothing changed
    psi_certificate *certificate; // on held-out episodes, of a model made from the others

    bool stopped; // the budget ended before everything was done: going on may find more
    psi_verdict verdict;
    double margin;   // nats by which the two most similar latent states are apart
    double doubtful; // share of the observations whose latent state is not clear
    double past;     // share of the transitions about which the past tells more
    size_t n_doubts; // the first of what is open …
    psi_doubt *doubts;
    float *confidence; // (n_observations) in every label; NULL: not with this method
} psi_clustering;

// One plain sentence: what the verdict is and what it rests on; and what to do about doubt i. At
// most size bytes, the closing one included.
PSI_API void psi_verdict_sentence(const psi_clustering *clustering, char *text, size_t size);
PSI_API void psi_doubt_sentence(const psi_doubt *doubt, char *text, size_t size);

// The whole method. Only rewards, actions and observations are looked at, never latent_states.
// PSI_EUSAGE for options that make no sense, PSI_EDATA if rewards never vary or observations are no
// numbers, PSI_ELIMIT if there are more than max_latent_states, PSI_ECANCELLED, also where a budget
// ends before the first refinement. *out belongs to the caller.
PSI_API psi_status psi_cluster(psi_ctx *ctx, const psi_trajectories *data,
                               const psi_cluster_options *options, psi_clustering **out);
PSI_API void psi_clustering_free(psi_ctx *ctx, psi_clustering *clustering);

// Latent states of other observations, by the representation network; −1 is never given.
PSI_API psi_status psi_clustering_assign(psi_ctx *ctx, const psi_net *representation,
                                         const psi_observations *observations, int32_t *labels);

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

// How small the mean of psi_sequence_errors can be where the world is random.
typedef struct psi_error_floor {
    double mean; // NaN if no episode can be judged
    bool truth; // true: by the true latent states of the data, with the model that the data give of
                // them. False: the run's error on as many episodes that are put together from steps
                // of the data, each in the latent state that the one before led to: what is left if
                // latent states tell everything
} psi_error_floor;

// model and labels (n_observations) are a run's, or those that it gives to the data. O(N · K) at
// worst; the same whenever it is asked.
PSI_API psi_status psi_error_floor_of(psi_ctx *ctx, const psi_mdp *model,
                                      const psi_trajectories *data, const int32_t *labels,
                                      bool has_terminal, psi_error_floor *out);

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

// Opens the folder to work in it. It must not be there, unless replace allows an older run, which
// stays until the new one is finished. PSI_EUSAGE if something else is there, or another process
// works in it. psi_cluster with the run in its options keeps checkpoints there; psi_run_commit
// finishes it.
PSI_API psi_status psi_run_new(psi_ctx *ctx, const char *folder, bool replace, psi_run **out);

// Opens the folder of an interrupted run; the next psi_cluster goes on where it stopped, and
// returns PSI_EUSAGE, naming the difference, unless data, options, seed, number of threads and
// version are those that it was started with. A folder that is not there is begun as by
// psi_run_new.
PSI_API psi_status psi_run_resume(psi_ctx *ctx, const char *folder, psi_run **out);
PSI_API bool psi_run_finished(const psi_run *run);  // it was complete: nothing is left to do
PSI_API double psi_run_seconds(const psi_run *run); // spent on it, by earlier processes, too

// Writes the rest and puts everything in place; the run is closed afterwards, also on failure, and
// can then be resumed. One that a budget has stopped is whole, and can be resumed all the same.
// data_path is for the record.
PSI_API psi_status psi_run_commit(psi_run *run, const char *data_path, const psi_trajectories *data,
                                  const psi_cluster_options *options,
                                  const psi_clustering *clustering);
PSI_API void psi_run_suspend(psi_run *run); // closes it, to be resumed; NULL is fine
PSI_API void psi_run_discard(psi_run *run); // … and removes it, unless it was begun before

// Which data a run was made from: 128 bits over observations, actions, rewards and episodes (not
// the true latent states), in hexadecimal. Reads every observation once.
typedef struct psi_fingerprint {
    char hex[33];
} psi_fingerprint;
PSI_API psi_status psi_fingerprint_of(psi_ctx *ctx, const psi_trajectories *data,
                                      psi_fingerprint *out);

// Compares every file of a finished run with the checksum in its manifest. PSI_EFORMAT names the
// first that is not as it was left, PSI_EMISSING says that there are none to compare with. *n is
// how many files there are. psi_run_load does this, too.
PSI_API psi_status psi_run_check_files(psi_ctx *ctx, const char *folder, size_t *n);

// Whether what the files of a finished run say fits together: labels of latent states that there
// are, at least one observation in each of them, refinements with labels of their own, a model
// whose rows are distributions. PSI_EDATA or PSI_EFORMAT with a sentence if not.
PSI_API psi_status psi_run_check(psi_ctx *ctx, const char *folder);

// A run read back.
typedef struct psi_run_result {
    char *folder; // that it was read from
    size_t n_latent, n_actions, n_observations, n_refinements;
    bool has_terminal;
    psi_fingerprint fingerprint; // of the data it was made from
    char *observation_key;       // the entry of their Dict observation; or NULL
    size_t stack;                // their observations that are seen as one (psi_run_observe)
    double gamma, epsilon_reward, epsilon_sf;
    int32_t *labels;         // (n_observations)
    psi_mdp *model;          // {w_a, M_a}
    psi_net *representation; // NULL for a table
    bool has_heads;          // of every refinement: psi_run_assign, psi_run_model
} psi_run_result;

// Every file is checked as hostile input: PSI_EFORMAT or PSI_EDATA with the file's name.
// PSI_EMISSING if the run is not finished.
PSI_API psi_status psi_run_load(psi_ctx *ctx, const char *folder, psi_run_result **out);
PSI_API void psi_run_result_free(psi_ctx *ctx, psi_run_result *result);

// The labels of refinement i (from 1) of n_observations; they belong to the caller, to be given
// back with psi_array_free.
PSI_API psi_status psi_run_labels(psi_ctx *ctx, const char *folder, size_t refinement,
                                  size_t n_observations, int32_t **labels);

// The record of all refinements of a run that is finished. PSI_EFORMAT if it makes no sense. *out
// (n) belongs to the caller, to be given back with psi_run_steps_free.
PSI_API psi_status psi_run_steps(psi_ctx *ctx, const char *folder, size_t *n,
                                 psi_cluster_step **out);
PSI_API void psi_run_steps_free(psi_ctx *ctx, psi_cluster_step *steps);

// What every refinement calls other observations (of psi_run_observe), by its heads: labels
// (n_refinements, n), in one pass over them. Latent state 0 is never given where it is the terminal
// one, which is no matter of looks. PSI_EMISSING without heads, PSI_ESHAPE for observations of
// another shape or type.
PSI_API psi_status psi_run_assign(psi_ctx *ctx, const char *folder, const psi_run_result *run,
                                  const psi_observations *observations, int32_t *labels);

// The observations of data as a run sees them: stacked, if it stacks. The data must outlive them.
// *out belongs to the caller.
PSI_API psi_status psi_run_observe(psi_ctx *ctx, const psi_run_result *run,
                                   const psi_trajectories *data, psi_observations **out);

// A run's table or network, ready to be asked again and again; by one thread at a time. The run
// must outlive it, its folder need not. *out belongs to the caller.
typedef struct psi_predictor psi_predictor;
PSI_API psi_status psi_predictor_new(psi_ctx *ctx, const psi_run_result *run, psi_predictor **out);
PSI_API void psi_predictor_free(psi_ctx *ctx, psi_predictor *predictor);

// Which latent states observations (of psi_run_observe) are: labels (n) and, unless it is NULL,
// confidence (n), the probability of each label. An observation unlike anything that the run has
// seen, or whose label is less probable than min_confidence, is −1: a table knows the observations
// that occurred, a network those whose features are as near to their latent state's as those of its
// own data. PSI_ESHAPE for observations of another shape or type, PSI_EDATA for those that are no
// numbers, PSI_EMISSING for a table that an older version made.
PSI_API psi_status psi_predict(psi_ctx *ctx, psi_predictor *predictor,
                               const psi_observations *observations, double min_confidence,
                               int32_t *labels, float *confidence);

// Labels that a network gave, where latent state 0 is the terminal one: the ends of terminated
// episodes become what they are known to be, and −1 what looks like an end where the episode went
// on.
PSI_API void psi_mark_terminals(const psi_trajectories *data, int32_t *labels);

// The labels (n_observations) that a run gives to data: its own if these are the data that it was
// made from (*own, by their fingerprint; may be NULL), else those that psi_predict gives, with
// terminal states marked. PSI_ESHAPE for another number of actions.
PSI_API psi_status psi_run_label(psi_ctx *ctx, const psi_run_result *run,
                                 const psi_trajectories *data, int32_t *labels, bool *own);

// The latent model of refinement i (from 1), as made from the run's own data. *out belongs to the
// caller.
PSI_API psi_status psi_run_model(psi_ctx *ctx, const char *folder, const psi_run_result *run,
                                 size_t refinement, psi_mdp **out);

#ifdef __cplusplus
}
#endif
#endif
