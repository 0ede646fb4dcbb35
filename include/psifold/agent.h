// psifold/agent.h: who acts in the tasks. First an agent that chooses at random, to collect data;
// then agents that learn, with and without a representation from a clustering run; and the
// statistics with which their scores are compared.
#ifndef PSIFOLD_AGENT_H
#define PSIFOLD_AGENT_H

#include <psifold/base.h>
#include <psifold/data.h>
#include <psifold/env.h>
#include <psifold/mdp.h>
#include <psifold/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- collecting ---------------------------------------------------------------------------------

// What was collected.
typedef struct psi_collect_result {
    uint64_t episodes, steps, terminated;
} psi_collect_result;

// What a writer or collector has to know about the trajectories of a task. task must be checked;
// name and task_options are left NULL for the caller to fill in.
PSI_API psi_episode_spec psi_collect_spec(const psi_task *task);

// Episodes of uniformly random actions, as in the paper, but for locks that these would never open
// (psi_env_behaviour). They are generated on all threads of the
// context while earlier ones are delivered, and reach deliver in order and on the caller's thread;
// the same seed gives the same bytes on any number of threads. An error of deliver ends it and is
// returned. result may be NULL; it tells what was delivered also on failure.
PSI_API psi_status psi_collect(psi_ctx *ctx, const psi_task *task, uint64_t episodes, uint64_t seed,
                               psi_status (*deliver)(void *user, const psi_episode *episode),
                               void *user, psi_collect_result *result);

// ---- the optimum --------------------------------------------------------------------------------

// The exact task as a finite model: w_a is the expected reward of a pair. *out belongs to the
// caller.
PSI_API psi_status psi_task_mdp(psi_ctx *ctx, const psi_task_exact *task, psi_mdp **out);

// What the best policy of a task (value iteration on its exact model) earns per episode.
typedef struct psi_optimum {
    double value;           // discounted, from the start
    double steps, reward;   // of an episode, expected; episodes are cut after the task's max_steps
    double reward_per_step; // their ratio
} psi_optimum;

// PSI_ELIMIT for a task too large to be written down (psi_task_model).
PSI_API psi_status psi_task_optimum(psi_ctx *ctx, const psi_task *task, double gamma,
                                    psi_optimum *out);

// ---- agents -------------------------------------------------------------------------------------

// X(name, text, what it is)
#define PSI_AGENT_TABLE(X)                                                                         \
    X(DQN, "dqn", "a Q-network from random weights")                                               \
    X(PRETRAINED, "pretrained",                                                                    \
      "a Q-network that has learnt another task; all of it goes on learning")                      \
    X(REWARD_PREDICTIVE, "reward-predictive",                                                      \
      "the trunk of a clustering run's network, frozen; only the top layer learns")                \
    X(PLANNER, "planner",                                                                          \
      "the clustering run's latent states; their model is counted anew and planned with")          \
    X(TABULAR, "tabular", "a table of Q-values over the true latent states: an upper reference")   \
    X(RANDOM, "random", "actions at random: a lower reference")

typedef enum psi_agent_kind {
#define X(name, text, what) PSI_AGENT_##name,
    PSI_AGENT_TABLE(X)
#undef X
} psi_agent_kind;
enum { PSI_AGENT_KINDS = 6 };

PSI_API const char *psi_agent_kind_name(psi_agent_kind kind); // "reward-predictive"
PSI_API psi_status psi_agent_kind_from_name(psi_ctx *ctx, const char *name, psi_agent_kind *out);

// What the learning part of an agent sees of an observation.
#define PSI_VIEW_TABLE(X)                                                                          \
    X(AUTO, "auto")               /* what the kind of agent needs */                               \
    X(OBSERVATION, "observation") /* all of it; the number of a state as a one-hot vector */       \
    X(ONE_HOT, "one-hot")         /* the network's latent state */                                 \
    X(SOFTMAX, "softmax")         /* the network's probabilities of the latent states */           \
    X(FEATURES, "features")       /* its trunk's features, scaled to unit RMS */                   \
    X(TRUTH, "truth")             /* the true latent state, one-hot; for reference only */

typedef enum psi_view {
#define X(name, text) PSI_VIEW_##name,
    PSI_VIEW_TABLE(X)
#undef X
} psi_view;

// "one-hot"; borrowed.
PSI_API const char *psi_view_name(psi_view view);

// The loss of a temporal difference δ = Q(s,a) − y: δ², or Huber's, ½δ² up to 1 and |δ| − ½ beyond.
typedef enum psi_td_loss { PSI_TD_SQUARED, PSI_TD_HUBER } psi_td_loss;

// What can be chosen about an agent (psi_agent_option_table describes it).
typedef struct psi_agent_options {
    size_t size; // of this struct: psi_agent_defaults sets it
    psi_agent_kind kind;
    psi_view view;
    psi_net_kind net;              // of dqn and pretrained: cnn, resnet18 or mlp
    size_t hidden;                 // units of each of the mlp's two layers
    const psi_net *representation; // of a clustering run; borrowed until the agent is freed
    const psi_net *start;          // pretrained: the Q-network to start from; copied
    const psi_task *truth_of; // view truth: the task whose latent states are shown, on the same
                              // dials or grid; NULL: the one that is played

    double gamma;
    double learning_rate;        // of Adam
    size_t batch;                // transitions of an update
    size_t buffer;               // observations that the replay memory holds
    size_t learning_starts;      // transitions before the first update
    size_t update_every;         // steps
    size_t exploration_episodes; // over which ε falls from 1 …
    double final_epsilon;        // … to this; ε is the probability of a random action
    double tau;                  // target ← (1 − τ)·target + τ·online at every update …
    size_t target_period;        // … or, unless 0, a copy every so many updates
    psi_td_loss loss;
    bool freeze_norm;    // batch norm by running statistics in updates, too
    bool stop_forgotten; // stop a Q-network once its full replay memory holds no reward: nothing
                         // there says where rewards are. Episodes left count as its last one
    double table_rate;   // step size of the table
    double optimism;     // planner: how many imagined visits say that a pair (k, a) …
    double best_value;   // … ends the episode with this much
    uint64_t seed;
} psi_agent_options;

// What is usual for a kind of agent: table 2 of the paper where it says something.
PSI_API psi_agent_options psi_agent_defaults(psi_agent_kind kind);
PSI_API const psi_option_table *psi_agent_option_table(void); // of what can be chosen

// One episode of a learning curve.
typedef struct psi_agent_episode {
    uint64_t steps;
    double reward;
    bool truncated;
    double epsilon;
    double loss;    // mean of the updates; NaN without one
    double seconds; // since the agent was made; the only number that is not reproducible
} psi_agent_episode;

// What a whole learning curve comes to.
typedef struct psi_agent_score {
    uint64_t episodes, steps, truncated;
    double reward;                 // total
    double reward_per_step;        // total reward / total steps
    uint64_t steps_to_first_solve; // steps until the first reward; all steps if there was none …
    bool solved;                   // … and whether there was one
    double area;                   // under the learning curve: mean of the episodes' reward / steps
} psi_agent_score;

// The score of n episodes. O(n).
PSI_API psi_agent_score psi_agent_score_of(const psi_agent_episode *episodes, size_t n);

// An agent in its task: learns episode by episode. What it does depends on task, options and seed
// alone.
typedef struct psi_agent psi_agent;

// PSI_EUSAGE for options that make no sense, PSI_EMISSING if the kind needs a representation or a
// network to start from, PSI_ESHAPE if that one was made for other observations or actions.
PSI_API psi_status psi_agent_new(psi_ctx *ctx, const psi_task *task,
                                 const psi_agent_options *options, psi_agent **out);
PSI_API void psi_agent_free(psi_ctx *ctx, psi_agent *agent);

// Plays and learns n further episodes. PSI_ENUMERIC if values grow beyond all that rewards explain
// or become not a number; PSI_ECANCELLED. Both leave the episodes that were finished.
PSI_API psi_status psi_agent_play(psi_ctx *ctx, psi_agent *agent, size_t episodes);
PSI_API const psi_agent_episode *psi_agent_curve(const psi_agent *agent, size_t *n);
PSI_API uint64_t psi_agent_updates(const psi_agent *agent);

// How many episodes of its curve were not played, since it had forgotten its task
// (stop_forgotten).
PSI_API size_t psi_agent_not_played(const psi_agent *agent);

// The Q-network so far, borrowed; NULL if this kind has none.
PSI_API const psi_net *psi_agent_network(const psi_agent *agent);

// Q-values (A) of an observation of the task, whose true latent state (of truth_of) is looked at in
// the view truth only. Zero for random; what its last plan says for the planner.
PSI_API psi_status psi_agent_values(psi_ctx *ctx, psi_agent *agent, const void *observation,
                                    int32_t true_latent_state, psi_real *values);

// n episodes as it would play now: no exploration, nothing is learnt, dice of their own.
PSI_API psi_status psi_agent_evaluate(psi_ctx *ctx, psi_agent *agent, size_t episodes,
                                      psi_agent_score *out);

// The same for n agents at once, each of which does what it would do alone. They must look through
// the same network in the same view: it then sees what all of them have before them together, which
// takes little longer than for one. Plays until each has so many episodes in all; ended (may be
// NULL) is called after every one with the number of the agent, and its error ends all. each (n;
// may be NULL) gets PSI_ENUMERIC for agents that diverged and left, without ending the others.
PSI_API psi_status psi_agents_play(psi_ctx *ctx, psi_agent *const *agents, size_t n,
                                   size_t episodes, psi_status (*ended)(void *user, size_t agent),
                                   void *user, psi_status *each);
PSI_API psi_status psi_agents_evaluate(psi_ctx *ctx, psi_agent *const *agents, size_t n,
                                       size_t episodes, psi_agent_score *scores);

// All that an agent is between two episodes, in a folder that appears whole or not at all. Loading
// needs an agent made for the same task with the same options; it then goes on as if it had never
// stopped.
PSI_API psi_status psi_agent_save(psi_ctx *ctx, const psi_agent *agent, const char *folder);
PSI_API psi_status psi_agent_load(psi_ctx *ctx, psi_agent *agent, const char *folder);

// A learning curve as CSV (episode, steps, total_steps, reward, truncated, epsilon, loss), and as a
// TensorBoard event file with one step per episode; started is the time of day, in seconds.
PSI_API psi_status psi_curve_save_csv(psi_ctx *ctx, const psi_agent_episode *episodes, size_t n,
                                      const char *path);
PSI_API psi_status psi_curve_save_events(psi_ctx *ctx, const psi_agent_episode *episodes, size_t n,
                                         double started, const char *path);
PSI_API psi_status psi_curve_load_csv(psi_ctx *ctx, const char *path, psi_agent_episode **episodes,
                                      size_t *n); // *episodes: psi_array_free

// ---- statistics over seeds, as rliable defines them ---------------------------------------------

// Scores of one agent: scores[task · runs + run].
typedef struct psi_scores {
    size_t tasks, runs;
    const double *scores;
} psi_scores;

// An estimate, and between which bounds it lies with the confidence that was asked for.
typedef struct psi_interval {
    double estimate, low, high;
} psi_interval;

// How intervals are found: by resampling runs so many times.
typedef struct psi_bootstrap_options {
    size_t size;        // of this struct: psi_bootstrap_defaults sets it
    size_t repetitions; // 2,000
    double confidence;  // .95
    uint64_t seed;
} psi_bootstrap_options;
PSI_API psi_bootstrap_options psi_bootstrap_defaults(void);

// The interquartile mean of all n numbers: the mean of what is left without the lowest and the
// highest ⌊n/4⌋.
PSI_API psi_status psi_iqm(psi_ctx *ctx, const double *numbers, size_t n, double *out);

// IQM over all runs and tasks with its stratified bootstrap interval: runs are resampled within
// each task, and the interval is between percentiles. PSI_EUSAGE without scores, PSI_EDATA if one
// is not finite.
PSI_API psi_status psi_scores_iqm(psi_ctx *ctx, const psi_scores *scores,
                                  const psi_bootstrap_options *options, psi_interval *out);

// How probably a run of x beats one of y in the same task, ties counted half: U / (n·m) of Mann and
// Whitney, averaged over the tasks. Runs of x and y may differ in number.
PSI_API psi_status psi_scores_improvement(psi_ctx *ctx, const psi_scores *x, const psi_scores *y,
                                          const psi_bootstrap_options *options, psi_interval *out);

// Performance profile: the share of runs with a score above each threshold, averaged over the
// tasks.
PSI_API psi_status psi_scores_profile(psi_ctx *ctx, const psi_scores *scores,
                                      const double *thresholds, size_t n,
                                      const psi_bootstrap_options *options, psi_interval *out);

#ifdef __cplusplus
}
#endif
#endif
