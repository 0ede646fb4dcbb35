// psifold/mdp.h: finite models: partitions of states, tables of transitions, the linear successor
// feature model (appendix A of the paper), planning, roll-outs, exact refinement and smoothing.
//
// Everything here works on tables and labels. Data, algorithm and result are kept apart: a
// partition or a model is plain memory that can be looked at, and `check` says what is wrong with
// it.
#ifndef PSIFOLD_MDP_H
#define PSIFOLD_MDP_H

#include <psifold/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- partitions ---------------------------------------------------------------------------------

// c: state → block, the paper's clustering. An ignored state has label −1 and belongs to no block.
typedef struct psi_partition {
    size_t n_states;
    size_t n_blocks; // K; every block 0 … K−1 has a state
    int32_t *label;  // (n_states) −1 … K−1
} psi_partition;

// Copies labels (NULL: all states in one block). The number of blocks is the largest label + 1.
// Returns PSI_EDATA for a label below −1 or a block without a state. *out belongs to the caller.
PSI_API psi_status psi_partition_new(psi_ctx *ctx, size_t n_states, const int32_t *labels,
                                     psi_partition **out);
PSI_API void psi_partition_free(psi_ctx *ctx, psi_partition *partition);

// PSI_EDATA with a sentence unless every label is −1 … K−1 and every block has a state.
PSI_API psi_status psi_partition_check(psi_ctx *ctx, const psi_partition *partition);

// Renumbers the blocks in order of first appearance. With terminal (n_states) given, the block of
// the terminal states comes first, as block 0; PSI_EDATA if it is not a block of its own.
PSI_API psi_status psi_partition_canonical(psi_ctx *ctx, psi_partition *partition,
                                           const uint8_t *terminal);

// Splits every block by a key: s and s̃ stay together iff they were and key[s] = key[s̃]. The blocks
// of the result are numbered in order of first appearance; ignored states stay ignored.
PSI_API psi_status psi_partition_split(psi_ctx *ctx, psi_partition *partition, const int32_t *key);

// Joins blocks: the states of block k go to block target[k] (K entries, −1: are ignored from now
// on). Returns PSI_EDATA if the targets leave a block without a state.
PSI_API psi_status psi_partition_join(psi_ctx *ctx, psi_partition *partition,
                                      const int32_t *target);

// Are the two the same up to the names of the blocks? O(n).
PSI_API psi_status psi_partition_equal(psi_ctx *ctx, const psi_partition *a, const psi_partition *b,
                                       bool *equal);

// Definition 1: c is a sub-clustering of c* if c(s) ≠ c(s̃) ⟹ c*(s) ≠ c*(s̃), that is, if c* only
// splits what c holds together. States ignored by either are left out.
PSI_API psi_status psi_partition_is_subclustering(psi_ctx *ctx, const psi_partition *c,
                                                  const psi_partition *c_star, bool *holds);

// The share of states on which two partitions agree under the best one-to-one matching of their
// blocks. Exact: a maximum-weight matching of the sparse table of common states, found by shortest
// augmenting paths on integers. A state ignored by one of them counts as a disagreement; states
// ignored by both are left out. O(n + K·nnz·log nnz) at worst, near O(n) for similar partitions.
PSI_API psi_status psi_partition_agreement(psi_ctx *ctx, const psi_partition *a,
                                           const psi_partition *b, double *share);
// The same of partitions of which only common (n_a, n_b) is known: how many states are in block i
// of the one and block j of the other.
PSI_API psi_status psi_agreement_of_counts(psi_ctx *ctx, const size_t *common, size_t n_a,
                                           size_t n_b, double *share);

// ---- finite models ------------------------------------------------------------------------------

// A finite MDP, or the latent one {w_a, M_a}. Nothing follows a terminal state: its rows are empty.
// An empty row of any other state says that this pair (s, a) was never seen.
typedef struct psi_mdp {
    size_t n_states, n_actions; // S, A
    uint64_t *offsets;   // (S·A + 1) entries of row s·A + a: offsets[row] … offsets[row + 1]
    int32_t *next;       // (nnz) ascending within a row
    double *probability; // (nnz) p(s'|s,a) = M_a(s, s'); the rows sum to 1
    double *reward;      // (S, A) E[r|s,a] = w_a(s)
    uint8_t *terminal;   // (S)
} psi_mdp;

// From entries (row[i] = s·A + a, next[i], probability[i]) in any order; equal ones add up. reward
// (S, A) and terminal (S) may be NULL: zeros. Checked as psi_mdp_check with unseen pairs allowed.
PSI_API psi_status psi_mdp_from_entries(psi_ctx *ctx, size_t n_states, size_t n_actions,
                                        size_t n_entries, const uint64_t *row, const int32_t *next,
                                        const double *probability, const double *reward,
                                        const uint8_t *terminal, psi_mdp **out);
PSI_API void psi_mdp_free(psi_ctx *ctx, psi_mdp *mdp);

// PSI_EDATA, naming state and action, unless rows are sorted and in range, probabilities are
// positive and sum to 1 (to 1e-9), rewards are finite, terminal states have neither rewards nor
// successors, and, if complete, every other pair (s, a) has a row.
PSI_API psi_status psi_mdp_check(psi_ctx *ctx, const psi_mdp *mdp, bool complete);

// Whether the pair (s, a) has a row. O(1).
PSI_API bool psi_mdp_seen(const psi_mdp *mdp, size_t state, size_t action);
PSI_API void psi_mdp_dense(const psi_mdp *mdp, size_t action, double *m); // M_a into (S, S)

// The smallest of the largest probabilities of all rows: 1 for a deterministic model; smoothing is
// worth less the smaller it is. 1 if nothing was seen.
PSI_API double psi_mdp_smallest_row_maximum(const psi_mdp *mdp);

// ---- labels along trajectories → latent model ---------------------------------------------------

// The columns of trajectories with a latent state in the place of every observation. An episode of
// L steps has L + 1 labels; those of episode e start at row offset[e] + e.
typedef struct psi_paths {
    size_t n_episodes, n_transitions; // E, N
    size_t n_actions, n_latent;       // A, K
    bool has_terminal;                // latent state 0 is the terminal one
    const int32_t *labels;            // (N + E) −1 (ignored) … K−1
    const int32_t *actions;           // (N)
    const double *rewards;            // (N)
    const uint64_t *episode_offsets;  // (E + 1)
    const uint8_t *terminated;        // (E)
} psi_paths;

// PSI_EDATA, naming the episode, unless offsets, labels and actions are in range, rewards finite,
// and, with has_terminal, latent state 0 stands exactly (or −1) at the ends of terminated episodes.
PSI_API psi_status psi_paths_check(psi_ctx *ctx, const psi_paths *paths);

// How often j followed (k, a). A transition counts if both its labels are kept; its reward counts
// if the first one is.
typedef struct psi_counts {
    size_t n_latent, n_actions; // K, A
    bool has_terminal;
    uint64_t *offsets;      // (K·A + 1) as in psi_mdp
    int32_t *next;          // (nnz)
    double *count;          // (nnz) whole numbers
    double *visits;         // (K, A) transitions counted, the sum of the row
    double *rewards;        // (K, A) rewards counted
    double *reward_sum;     // (K, A)
    double *reward_scatter; // (K, A) Σ (r − w_a(k))²
} psi_counts;

// O(N + K·A). *out belongs to the caller.
PSI_API psi_status psi_counts_new(psi_ctx *ctx, const psi_paths *paths, psi_counts **out);
// The same, of the paths of all processes one after the other (psi_ranks_join): each has its own,
// and all make this call.
PSI_API psi_status psi_counts_together(psi_ctx *ctx, const psi_paths *paths, psi_counts **out);
PSI_API void psi_counts_free(psi_ctx *ctx, psi_counts *counts);

// Equations 20 and 21: w_a(k) = mean reward, M_a(k, j) = n(k,a,j) / Σ_j n(k,a,j). Pairs with fewer
// than min_visits transitions (0 is taken as 1) count as unseen: an empty row; their w_a(k) is the
// mean of the rewards that were seen, or 0. The terminal state's rows are empty.
PSI_API psi_status psi_counts_model(psi_ctx *ctx, const psi_counts *counts, double min_visits,
                                    psi_mdp **out);

// ---- the linear successor feature model ---------------------------------------------------------

// M̄ = mean of M_a over the actions seen in a state, F = (I − γM̄)⁻¹ (equation 22).
typedef struct psi_lsfm {
    size_t n_latent; // K
    double gamma;
    double *mean; // (K, K) M̄
    double *f;    // (K, K) F
} psi_lsfm;

// O(K³) time, 2·K² doubles. PSI_EUSAGE unless 0 ≤ γ < 1.
PSI_API psi_status psi_lsfm_new(psi_ctx *ctx, const psi_mdp *latent, double gamma, psi_lsfm **out);
PSI_API void psi_lsfm_free(psi_ctx *ctx, psi_lsfm *lsfm);

// F_a = I + γ M_a F into (K, K). A state in which a was never seen gets the row e_k.
PSI_API psi_status psi_lsfm_action(psi_ctx *ctx, const psi_lsfm *lsfm, const psi_mdp *latent,
                                   size_t action, double *f_a);

// ψ(s,a) = e_c(s) + γ Fᵀ p(·|s,a) for n predictions p (n, K) of the next latent state into psi
// (n, K). Equation 7 of the paper lacks the transpose: as rows it is ψ = e + γ p F. labels (n) may
// be NULL: ψ without its first term.
PSI_API psi_status psi_lsfm_predict(psi_ctx *ctx, const psi_lsfm *lsfm, size_t n,
                                    const int32_t *labels, const double *p, double *psi);

// The theorem's matching condition (equation 16): γ < ½ and 0 < ε_ψ < ⅔ (1 − γ/(1 − γ)).
PSI_API bool psi_matching_condition(double gamma, double epsilon_sf);

// Exact successor features of a finite MDP for φ(s) = e_c(s) and the uniform policy (equation 2),
// into psi (S, A, K): Ψ̄ = (I − γP̄)⁻¹ Φ, ψ(s,a) = φ(s) + γ Σ p(s'|s,a) Ψ̄(s'). O(S³ + S²·K).
PSI_API psi_status psi_successor_features(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c,
                                          double gamma, double *psi);

// Definition 2 on tables: how far a partition is from reward-predictive, as the largest
// |w_aᵀ e_c(s) − E[r|s,a]| and the largest ‖F_aᵀ e_c(s) − ψ(s,a)‖₂ over all pairs.
PSI_API psi_status psi_reward_predictive_error(psi_ctx *ctx, const psi_mdp *mdp,
                                               const psi_partition *c, double gamma,
                                               double *reward_error, double *sf_error);

// ---- exact refinement ---------------------------------------------------------------------------

// The MDP over the blocks: every row is the mean over the block's states. defect (may be NULL) gets
// the largest difference between a state's row or reward and its block's: 0 up to rounding iff the
// partition is a bisimulation. PSI_EDATA for ignored states, unseen pairs, or a block that mixes
// terminal states with others.
PSI_API psi_status psi_quotient(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c,
                                psi_mdp **out, double *defect);

// The coarsest bisimulation: terminal states, rewards and the probability of entering each block
// agree up to a tolerance (0: 1e-9; for rewards times the largest of them). psi_quotient_find says
// what a tolerance means. Independent of γ, ε and successor features.
PSI_API psi_status psi_bisimulation(psi_ctx *ctx, const psi_mdp *mdp, double tolerance,
                                    psi_partition **out);

// The norm of a difference of successor features.
typedef enum psi_norm { PSI_L2, PSI_L1 } psi_norm; // the footnote's, and the proof's

// How a model is refined.
typedef struct psi_refine_options {
    size_t size;           // of this struct: psi_refine_defaults sets it
    double gamma;          // .4: inside the theorem's condition
    double epsilon_reward; // 0: 1e-9 of the largest reward
    double epsilon_sf; // 1e-7: rounding is 1e-14, and ‖Fᵀx‖₁ ≥ ‖x‖₁/(1 + γ) keeps gaps open
    psi_norm norm;          // of one action's difference; the sum over actions is compared with ε
    bool recluster;         // all states anew each time; false: strictly inside the old blocks
    size_t max_refinements; // 0: as many as there are states
    const psi_partition *start; // only states of one block of it may come together; NULL: all
} psi_refine_options;
PSI_API psi_refine_options psi_refine_defaults(void);

// The partition that was found, and how.
typedef struct psi_refinement {
    psi_partition *partition; // block 0 is the terminal states', if there are any and no start
    size_t n_refinements;     // the reward refinement included
    size_t *clusters;         // (n_refinements) blocks of c_1, c_2, …
    bool converged;           // the last two are equal
} psi_refinement;

// Algorithm 1 on tables: c_1 by rewards, then by ψ = e_c(s) + γ Fᵀ p(·|s,a) until c_{i+1} = c_i.
// O(nnz·K + K³) time and O(nnz + K²) memory per refinement, where blocks are further apart than ε.
PSI_API psi_status psi_refine(psi_ctx *ctx, const psi_mdp *mdp, const psi_refine_options *options,
                              psi_refinement **out);
PSI_API void psi_refinement_free(psi_ctx *ctx, psi_refinement *refinement);

// ---- planning and roll-outs ---------------------------------------------------------------------

// What pairs without a row are to a plan.
typedef enum psi_unseen { PSI_UNSEEN_EXCLUDED, PSI_UNSEEN_OPTIMISTIC } psi_unseen;

// How a plan is made.
typedef struct psi_plan_options {
    size_t size;             // of this struct: psi_plan_defaults sets it
    double gamma;            // .95
    double tolerance;        // 1e-10: until no value changes by more
    size_t max_sweeps;       // 0: 100,000
    psi_unseen unseen;       // never chosen, or worth …
    double optimistic_value; // … this much
} psi_plan_options;
PSI_API psi_plan_options psi_plan_defaults(void);

// Values and the policy that reaches them.
typedef struct psi_plan {
    size_t n_states, n_actions;
    double *value;   // (S) V(s) = max_a Q(s,a); 0 for terminal states and where all is excluded
    double *q;       // (S, A) Q(s,a) = w_a(s) + γ Σ M_a(s,s') V(s'); −∞ for excluded pairs
    int32_t *policy; // (S) the first best action; −1 where there is none
    size_t sweeps;
    bool converged;
} psi_plan;

// Value iteration, in place (Gauss–Seidel). V is within tolerance·γ/(1 − γ) of the optimum.
PSI_API psi_status psi_value_iteration(psi_ctx *ctx, const psi_mdp *mdp,
                                       const psi_plan_options *options, psi_plan **out);
PSI_API void psi_plan_free(psi_ctx *ctx, psi_plan *plan);

// How a belief moves on.
typedef enum psi_rollout_kind {
    PSI_ROLLOUT_SOFT,  // the belief moves through M_a: b' = M_aᵀ b
    PSI_ROLLOUT_ARGMAX // the most probable latent state only
} psi_rollout_kind;

// r_t = w_{a_t}ᵀ b_t for a belief (K) and an action sequence, into rewards (length) (the paper's
// equation 1). Belief that reaches a terminal state or an unseen pair earns nothing afterwards.
PSI_API psi_status psi_rollout(psi_ctx *ctx, const psi_mdp *latent, const double *belief,
                               size_t length, const int32_t *actions, psi_rollout_kind kind,
                               double *rewards);

// How far predicted reward sequences are from those that were seen.
typedef struct psi_sequence_error {
    size_t judged;        // episodes with a known first latent state and at least one step
    double mean, median;  // over episodes, of the mean |r_t − r̂_t| along the episode
    double zero_baseline; // the mean error of predicting 0
    double unseen;        // mean share of belief that ran into unseen pairs
} psi_sequence_error;

// Rolls every episode out from the label of its first row, or from beliefs (E, K) if given, and
// compares with its rewards. errors (E) may be NULL; it gets NaN for episodes that are not judged.
// Only first labels are looked at. In parallel over episodes; the same on any number of threads.
PSI_API psi_status psi_sequence_errors(psi_ctx *ctx, const psi_mdp *latent, const psi_paths *paths,
                                       const double *beliefs, psi_rollout_kind kind, double *errors,
                                       psi_sequence_error *summary);
// The same with the paths of all processes (psi_ranks_join): errors (E) of its own, a summary of
// all.
PSI_API psi_status psi_sequence_errors_together(psi_ctx *ctx, const psi_mdp *latent,
                                                const psi_paths *paths, psi_rollout_kind kind,
                                                double *errors, psi_sequence_error *summary);

// ---- smoothing ----------------------------------------------------------------------------------

// What a network says about the rows: log p(observation | latent state) up to a constant per row.
typedef struct psi_emissions {
    size_t per_row;              // entries of a row: K if index is NULL
    const int32_t *index;        // (N + E, per_row) latent states, −1 for none; NULL: 0 … K−1
    const float *log_likelihood; // (N + E, per_row)
    float absent;                // log-likelihood of the latent states that index leaves out
    bool every_row;              // in the place of labels everywhere; false: for ignored rows only
} psi_emissions;

// How labels are smoothed.
typedef struct psi_smooth_options {
    size_t size;                    // of this struct: psi_smooth_defaults sets it
    double noise;                   // .1: a label is right with probability 1 − noise
    double floor;                   // 1e-3: M_a + floor/K, renormalised; > 0
    double keep;                    // .9: a row whose posterior is below is ignored
    size_t passes;                  // 2: M_a is estimated anew from the kept labels before each
    const psi_emissions *emissions; // NULL: labels only
    bool learn_start;               // psi_smooth takes the first latent states from the labels …
    const double *start;            // … and hands them on here: (K) probabilities; NULL: even
    const int32_t *reward_class; // (N) 0 … n_reward_classes−1: rewards are emissions, too; NULL
    size_t n_reward_classes;
    double reward_floor; // 1e-3 / n_reward_classes is added to every class's probability
    size_t memory;       // 64 MB: bytes of forward messages a thread may hold; longer episodes
                         // are computed twice, from checkpoints
    const char *phase;   // the name under which each pass tells its progress; NULL: it does not
    bool foretell;       // nothing that follows a row counts: labels as they are told by its look
                         // and by the rows before it
    bool together;       // psi_smooth estimates from the paths of all processes (psi_ranks_join);
                         // each smooths its own
} psi_smooth_options;
PSI_API psi_smooth_options psi_smooth_defaults(void);

// What smoothing changed.
typedef struct psi_smooth_summary {
    size_t ignored_before, ignored_after; // rows
    size_t changed;                       // rows kept before and after with different labels
    double log_likelihood;                // of the last pass
    double smallest_row_maximum;          // of the model of the last pass
} psi_smooth_summary;

// P(class | k, a) from the labels, into likelihood (A, C, K), with options->reward_floor.
PSI_API psi_status psi_reward_likelihood(psi_ctx *ctx, const psi_paths *paths,
                                         const psi_smooth_options *options, double *likelihood);

// One forward–backward pass with a given model. reward_likelihood (A, C, K) may be NULL. Any of the
// outputs may be NULL: labels (N + E), −1 where the posterior is below options->keep; posterior
// (N + E) of the best label; marginals (N + E, K). In parallel over episodes; the same bytes on any
// number of threads. O((nnz + K) per row): the floor is a rank-one term, never a dense matrix.
PSI_API psi_status psi_smooth_pass(psi_ctx *ctx, const psi_paths *paths, const psi_mdp *latent,
                                   const double *reward_likelihood,
                                   const psi_smooth_options *options, int32_t *labels,
                                   float *posterior, double *marginals, double *log_likelihood);

// options->passes passes: each estimates {M_a, P(class|k,a)} from the labels that the last one kept
// or confirmed, and smooths the original ones with it. labels (N + E) and posterior (N + E, may be
// NULL) are the outputs; on failure they are untouched.
PSI_API psi_status psi_smooth(psi_ctx *ctx, const psi_paths *paths,
                              const psi_smooth_options *options, int32_t *labels, float *posterior,
                              psi_smooth_summary *summary);

// When two latent states are merged.
typedef struct psi_merge_options {
    size_t size;             // of this struct: psi_merge_defaults sets it
    double tolerance;        // .1: total variation that two rows may differ by …
    double slack;            // 2: … plus this many standard errors of the difference
    double reward_tolerance; // 1e-6: and mean rewards, likewise with slack
} psi_merge_options;
PSI_API psi_merge_options psi_merge_defaults(void);

// Tolerant bisimulation on the latent table: latent states whose rewards and rows agree for every
// action, where next states that are merged themselves count as one. Split by split from the
// coarsest candidate, each state compared with its block's most visited one; then blocks whose most
// visited states agree are joined. Pairs never seen agree with all. The terminal state stays alone.
// *out is a partition of the K latent states.
PSI_API psi_status psi_merge(psi_ctx *ctx, const psi_counts *counts,
                             const psi_merge_options *options, psi_partition **out);

// ---- models as model checkers have them ---------------------------------------------------------

// A named number per state and per choice; either may be NULL: zeros.
typedef struct psi_model_reward {
    char *name;
    double *state;  // (S)
    double *choice; // (C)
} psi_model_reward;

// A named set of states.
typedef struct psi_model_label {
    char *name;
    uint8_t *holds; // (S) 0 or 1
} psi_model_label;

// A finite model of any size: every state has choices of its own number, every choice an action and
// a distribution. A state without choices is terminal. A Markov chain has one choice per state.
typedef struct psi_model {
    size_t n_states, n_choices, n_transitions; // S, C, m
    bool chain;                                // a Markov chain (DTMC): nobody chooses
    uint64_t *choices;   // (S + 1) choices of s: choices[s] … choices[s + 1]
    uint64_t *offsets;   // (C + 1) entries of a choice
    int32_t *next;       // (m) 0 … S−1, in any order
    double *probability; // (m) those of a choice sum to 1
    int32_t *action;     // (C) 0 … n_actions−1
    size_t n_actions;
    char **action_names; // (n_actions); NULL: actions are numbers
    uint8_t *initial;    // (S) 0 or 1
    size_t n_labels, n_rewards;
    psi_model_label *labels;
    psi_model_reward *rewards;
} psi_model;

// Arrays for so many, which the caller fills in: no labels, no rewards, no initial state.
// PSI_ELIMIT for more than 2^31 − 1 states. *out belongs to the caller.
PSI_API psi_status psi_model_new(psi_ctx *ctx, size_t n_states, size_t n_choices,
                                 size_t n_transitions, psi_model **out);
PSI_API void psi_model_free(psi_ctx *ctx, psi_model *model);

// Adds a label, or a reward of states, choices or both: zeros, which the caller fills in. *holds
// and *out belong to the model; *out is valid until the next one is added.
PSI_API psi_status psi_model_add_label(psi_ctx *ctx, psi_model *model, const char *name,
                                       uint8_t **holds);
PSI_API psi_status psi_model_add_reward(psi_ctx *ctx, psi_model *model, const char *name,
                                        bool state, bool choice, psi_model_reward **out);

// PSI_EDATA with a sentence that names the state, unless offsets ascend, next states exist,
// probabilities are positive and sum to 1 (as far as numbers of six digits do: 5e-7 for each),
// rewards are finite, actions exist, and a Markov chain has no state with two choices. O(m).
PSI_API psi_status psi_model_check(psi_ctx *ctx, const psi_model *model);

// An MDP of psi_mdp as such a model: action a of a state is its choice a, unseen pairs are left
// out, the reward is called "reward", terminal states are labelled "terminal".
PSI_API psi_status psi_model_from_mdp(psi_ctx *ctx, const psi_mdp *mdp, psi_model **out);

// And back: the choice with action a is row (s, a), an action that a state does not have is an
// unseen pair, a state without choices is terminal. The rewards are those of the model's reward of
// this name (NULL: the first; none: zeros), of state and choice together; rows that sum to 1 in few
// digits are made to sum to 1. PSI_EUSAGE for a name that is not there, PSI_EUNSUPPORTED for two
// choices of a state with one action.
PSI_API psi_status psi_mdp_from_model(psi_ctx *ctx, const psi_model *model, const char *reward,
                                      psi_mdp **out);

// Reads a model; what it is, is seen from its content: Storm's DRN, UMB (a tar, maybe gzipped), or
// Gymnasium's P as JSON, {"0": {"0": [[probability, next, reward, terminated], …], …}, …}. A path
// that ends with .tra is read as PRISM's tables, with .lab, .srew and .trew from beside it. Returns
// PSI_EFORMAT, with file and line where there are lines, for a file that is none of them or
// damaged, PSI_EDATA for a model that contradicts itself, PSI_EUNSUPPORTED for continuous time,
// intervals and partial observation. *out belongs to the caller and passes psi_model_check.
PSI_API psi_status psi_model_read(psi_ctx *ctx, const char *path, psi_model **out);

// Writes it as what path ends with: .drn, .umb, .tra (with .lab, .srew and .trew beside it) or
// .json. The file appears whole. PSI_EUSAGE for another ending.
PSI_API psi_status psi_model_write(psi_ctx *ctx, const psi_model *model, const char *path);

// ---- exact quotients ----------------------------------------------------------------------------

// What the quotient has to keep apart.
typedef struct psi_quotient_options {
    size_t size;                // of this struct: psi_quotient_defaults sets it
    const char *labels;         // "a,b": these are kept apart; NULL: all but init; "": none
    const char *rewards;        // "a,b"; NULL: all; "": none
    double tolerance;           // 0: exact; else two numbers in one cell of this width are equal
    bool ignore_actions;        // a choice may be matched by one with another action
    const psi_partition *start; // only states of one block of it may come together; NULL: all
    double epsilon_sf;          // 0: exact; else Algorithm 1: successor features within this …
    double gamma;               // … for this discount; 0: .4
    int hash_bits;              // 0: 64; fewer show that collisions are found
} psi_quotient_options;
PSI_API psi_quotient_options psi_quotient_defaults(void);

// The coarsest partition, its model, and what it took.
typedef struct psi_quotient_result {
    psi_partition *partition; // blocks in order of their first states
    psi_model *model;         // over the blocks: the choices of each block's first state
    size_t n_settled; // states off all cycles: looked up once; the others are refined, in passes …
    size_t n_passes;  // … over all of them …
    size_t n_rounds;  // … and in rounds over those whose successors were renamed
    size_t n_verified; // times all signatures were compared; above 1: hashes had collided
    double defect;     // the largest difference of two numbers taken to be equal
    double seconds;
    size_t bytes; // of memory, beside the model and the result
} psi_quotient_result;

// The coarsest partition in which the states of a block agree in the chosen labels and rewards, and
// in which every choice of one has its equal in the other: same action, same rewards, same
// probability of entering each block. Probabilities are summed exactly, as rational numbers (those
// that a double stands for: 0.1 is 1/10, 0.333333 and 1.0 / 3 are 1/3), modulo the prime 2^61 − 1,
// so that the answer depends neither on order nor on threads; signatures are hashed, and compared
// in full once no hash splits a block any more. O(m log n) for bounded numbers of choices.
//
// With a tolerance, probabilities and rewards (relative to the largest) fall into cells of that
// width; being closer than a tolerance is no equivalence (a ~ b ~ c does not make a ~ c), sharing a
// cell is one. Numbers that are close can lie in two cells: the partition may be finer than another
// that is as good; defect says how far its states really are from their blocks' first ones.
//
// With epsilon_sf, psi_refine finds the partition, inside the chosen labels: there is one reward
// (PSI_EUSAGE for several), no tolerance, and actions are kept apart (PSI_EUNSUPPORTED for two
// choices of a state with one action); those that a state does not have lead to an extra terminal
// state. n_passes says how many refinements it took. O(K²) memory.
PSI_API psi_status psi_quotient_find(psi_ctx *ctx, const psi_model *model,
                                     const psi_quotient_options *options,
                                     psi_quotient_result **out);
PSI_API void psi_quotient_free(psi_ctx *ctx, psi_quotient_result *result);

// ---- planning on such models --------------------------------------------------------------------

// What is planned for.
typedef struct psi_model_plan_options {
    size_t size;        // of this struct: psi_model_plan_defaults sets it
    const char *target; // a label: the probability of ever reaching it; NULL: discounted rewards …
    const char *reward; // … of this name; NULL: of the first there is
    double gamma;       // .95: of rewards
    bool minimise;      // the least instead of the most
    double precision;   // 1e-6: upper − lower, of probabilities, or relative to the largest value
    size_t max_sweeps;  // 0: 1,000,000
} psi_model_plan_options;
PSI_API psi_model_plan_options psi_model_plan_defaults(void);

// Bounds on both sides of every value, and the choice that reaches them.
typedef struct psi_model_plan {
    size_t n_states;
    double *lower, *upper; // (S) the value lies between them, but for rounding
    int32_t *choice; // (S) a choice of the state that attains it, from 0; −1: none is needed
    size_t sweeps;
    bool converged; // as close as asked for
} psi_model_plan;

// Interval iteration, in place (Gauss–Seidel): one sequence of values from below, one from above.
// For probabilities, states that cannot reach the target (or can avoid it, when minimising) are
// settled beforehand, and where a player could stay for ever, the value from above is that of the
// best way out (end components): the two sequences converge to one value, and stopping is sound.
// PSI_EUSAGE for a label or reward that is not there, or gamma outside [0, 1). *out belongs to the
// caller.
PSI_API psi_status psi_model_plan_find(psi_ctx *ctx, const psi_model *model,
                                       const psi_model_plan_options *options, psi_model_plan **out);
PSI_API void psi_model_plan_free(psi_ctx *ctx, psi_model_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
