// A clustering under way, shared by the chapters that the method has: by evidence (grouping.c), by
// successor features (by_successor_features.c), and what both need before and after (cluster.c).
#ifndef PSI_CLUSTER_CLUSTERING_H
#define PSI_CLUSTER_CLUSTERING_H

#include "learn/network.h"
#include "learn/paper.h"
#include "refine/by_evidence.h"
#include "run/checkpoint.h"
#include "run/phases.h"

enum { CLUSTER_MOST_ACTIONS = 1024 }; // of networks, which have a head for each
enum { CLUSTER_FEWEST_VISITS = 4 };   // of an observation, on average, to be one of a table

// What was found, and what was judged of it, while something else is tried.
typedef struct cluster_answer {
    by_evidence found;
    psi_doubt *doubts;
    size_t n_doubts;
    psi_verdict verdict;
    double margin, doubtful, past;
} cluster_answer;

typedef struct clustering_run {
    psi_ctx *ctx;
    const psi_cluster_options *options;
    psi_run_folder *folder;        // where it is kept while it is under way; NULL: nowhere
    const psi_trajectories *given; // the data as they were given; …
    psi_trajectories seen;         // … as they are looked at: …
    psi_observations *stacked;     // … several frames as one
    psi_trajectories *whole;       // what all processes have, of one that goes on alone
    bool elsewhere;                // the rest is done by rank 0
    cluster_problem problem;
    problem_inputs inputs;
    network_options network;
    paper_options paper;
    char *fits;     // where trainings under way are kept; NULL: nowhere
    psi_net *trunk; // NULL for a table
    learn_approximator approximator;
    run_state state;
    float *vectors; // (n_rows, width) what looks are compared by; NULL for a table
    problem_looks looks;
    float *raw; // the same of vectors as they are, while features are compared, with what they say
    problem_looks raw_looks;
    outcome_rewards raw_outcomes;
    cluster_answer raw_answer;
    outcome_rewards outcomes;
    by_evidence found;
    bool atoms;     // what was compared is distinct, or stands apart: none of it is several
    bool refused;   // whoever watches has ended it
    bool tentative; // refinements are not reported: they may not be those of the answer
    psi_run *result;
    double began; // base_seconds
} clustering_run;

// Every piece of work has random numbers of its own, named by what it is and the round it is in.
typedef enum seed_purpose {
    SEED_TRUNK = 0x7472756e,
    SEED_REFINE = 0x72656669,
    SEED_POLISH = 0x706f6c69,
    SEED_REPRESENTATION = 0x72657072,
    SEED_STAGES = 0x73746167,
} seed_purpose;
uint64_t cluster_seed_of(const clustering_run *run, seed_purpose purpose, size_t round);

// Of several processes, rank 0 goes on alone, with all data; run->elsewhere of the others.
psi_status cluster_go_on_alone(clustering_run *run, const char *why);

void cluster_set_network_options(clustering_run *run, psi_net_kind kind);
// The network whose features are looked at, from an earlier process or learnt now: run->trunk, as
// far as it got if the time is up.
psi_status cluster_learn_trunk(clustering_run *run);
// The features of all observations, and heads on them: run->approximator.
psi_status cluster_use_heads(clustering_run *run);

// γ · min ‖F_i − F_j‖: the smallest distance of two latent states' successor features.
psi_status cluster_find_gap(psi_ctx *ctx, const psi_mdp *model, double gamma, double *gap);

// A by_evidence_options watch, whose user is the run: after every refinement, what it found is
// kept, and told.
psi_status cluster_after_grouping(void *user, const psi_cluster_step *step, size_t number,
                                  size_t n_observations, const int32_t *labels);
// Refinements are numbered on, and their record (of run->found) is one list, where the same data
// are looked at twice.
psi_status cluster_add_steps(clustering_run *run);
// Algorithm 1 by evidence on run->looks, as the options say, with a verdict: run->found.
by_evidence_options cluster_how_to_refine(clustering_run *run);
psi_status cluster_group_looks(clustering_run *run);
// The same of run->vectors (n_rows, width), with run->looks as the tree over them. deviation
// (width; NULL: not known): of their numbers before they were standardised. *apart: their looks
// stand apart, so that they are as good as a table.
psi_status cluster_group_vectors(clustering_run *run, size_t width, const float *deviation,
                                 bool *apart);
// The share of the observations in cells of run->looks that mix what rewards and ends tell apart.
psi_status cluster_share_mixed(clustering_run *run, double *share);
// The answer so far, which leaves run without one; … and takes it back instead of another one.
cluster_answer cluster_set_aside(clustering_run *run);
void cluster_take_back(clustering_run *run, cluster_answer *aside);
void cluster_answer_free(psi_ctx *ctx, cluster_answer *aside);
// What an answer leaves open: observations whose latent state is not clear, or not enough to tell
// what follows. Features may have learnt away what vectors tell, and be clear of the rest.
double cluster_share_open(double doubtful, double past);

// Turns in which labels are settled, at most.
enum { CLUSTER_MOST_TURNS = 12 };
// Where cells came to an end and leave something open, their labels are settled in turns, by heads
// on the features that were learnt. *settled: that leaves less open, and is what was found.
psi_status cluster_settle_labels(clustering_run *run, bool *settled);
// Vectors and images, whose labels go to run->found.
psi_status cluster_find_in_vectors(clustering_run *run);
psi_status cluster_find_in_images(clustering_run *run);

// Both fill run->result, but for what comes after the labels: certificate, representation, heads.
psi_status cluster_find_by_evidence(clustering_run *run);
psi_status cluster_find_by_successor_features(clustering_run *run);

void cluster_forget_looks(clustering_run *run);

// When this share of the budget is spent, work is to stop; without a budget, never. Half is for
// finding latent states, a quarter for the network that tells them apart, the rest for what is
// written. Where there is no network, or no answer without its time, nothing is left for it. Where
// latent states are found by features alone, half of the time for both is for learning these, and
// half of that for a look at the pixels before.
#define CLUSTER_BEFORE_FEATURES 0.125
#define CLUSTER_BEFORE_FINDING  0.25
#define CLUSTER_BEFORE_NETWORK  0.5
#define CLUSTER_BEFORE_WRITING  0.75
#define CLUSTER_NEVER           0.0
void cluster_set_deadline(clustering_run *run, double share);

// After the first refinement: there is an answer, and a network that tells it wants time, too.
void cluster_share_time(clustering_run *run);

// Whether that is why something has stopped.
bool cluster_is_late(const clustering_run *run, psi_status status);

// A step that fails takes nothing away from what was found before it: whether this failure is such
// a one. Not what somebody has asked for, nor a defect; nor, in a folder, what may pass: there the
// run is resumed.
bool cluster_can_spare(const clustering_run *run, psi_status status);
// PSI_OK if it is, and the run says what it goes without: stopped, or failure.
psi_status cluster_go_without(clustering_run *run, psi_status status);

// Tells whoever watches.
psi_status cluster_tell(clustering_run *run, const psi_cluster_step *step, size_t number,
                        size_t n_observations, const int32_t *labels);

#endif
