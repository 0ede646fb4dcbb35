// How sure an answer is, from the same evidence that found it.
#ifndef PSI_VERDICT_VERDICT_H
#define PSI_VERDICT_VERDICT_H

#include "refine/by_evidence.h"

// Fills verdict, margin, doubtful and doubts of the result, whose labels and n_latent are set.
psi_status verdict_judge(psi_ctx *ctx, const cluster_problem *problem, const problem_looks *looks,
                         const outcome_rewards *rewards, const by_evidence *found, psi_run *result);

// Of an answer that is certain so far: whether there was enough of everything to show that it is
// not so. atoms: what was compared stands apart, so that none of it is several. mistaken: the share
// of held-out observations that look like another latent state's; 0 where nothing was learnt.
psi_status verdict_judge_resolution(psi_ctx *ctx, const cluster_problem *problem,
                                    const outcome_rewards *rewards, bool atoms, double mistaken,
                                    psi_run *result);

// The same where not everything was asked, since the time was up or a step has failed:
// undetermined, with the margin of the last refinement and the share of the observations that it
// was not sure of.
psi_status verdict_judge_unfinished(psi_ctx *ctx, const cluster_problem *problem,
                                    const by_evidence *found, psi_run *result);

// Where latent states keep growing with the data (growth.h): no small answer, and what to do about
// that instead of what to collect.
psi_status verdict_judge_growing(psi_ctx *ctx, psi_run *result);

// Of an answer by features that is certain: whether the vectors that they were learnt from leave
// something open.
psi_status verdict_judge_vectors(psi_ctx *ctx, const cluster_problem *problem,
                                 const problem_looks *vectors, const outcome_rewards *rewards,
                                 const by_evidence *found, psi_run *result);

// The same of labels that were found by successor features: are any two latent states one, is any
// several by the looks of its observations (where looks has nodes) or by the past, and have two
// rounds found the same and nothing undetermined? untold: the share of labels that only what
// followed told, which is open.
psi_status verdict_judge_labels(psi_ctx *ctx, const cluster_problem *problem,
                                const problem_looks *looks, double untold, psi_run *result);

#endif
