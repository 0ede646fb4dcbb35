// How the state of a run (state.h) survives in the run folder. All else follows from it: random
// streams are named by seed, purpose and refinement, and features are computed again from
// the trunk.
//
//   checkpoint/state.npz                    the numbers of run_state; replaced in one step,
//                                           after the other files that it speaks of
//   checkpoint/phases.npz                   seconds so far; passes, of which those of the trunk
//                                           count as long as there is no state.npz
//   checkpoint/rewards.npy                  (n_states, A) what the reward refinement predicted
//   checkpoint/next-<n>.safetensors         heads from which the next refinement starts
//   checkpoint/result/trunk.safetensors     the trunk; from then on it is not fitted again
//   checkpoint/result/clusters-<n>.npy      the labels of refinement n
#ifndef PSI_RUN_CHECKPOINT_H
#define PSI_RUN_CHECKPOINT_H

#include "run/folder.h"
#include "run/state.h"

psi_status run_checkpoint_refinement(psi_run_folder *folder, const cluster_problem *problem,
                                     const run_state *state);

// The state as it was kept; untouched if nothing was. Every file is hostile input: PSI_EFORMAT or
// PSI_EDATA with its name. Passes are those that were kept: what this process has repeated to get
// here, the features, is among them.
psi_status run_checkpoint_load(psi_run_folder *folder, const cluster_problem *problem,
                               const learn_approximator *approximator, size_t max_latent,
                               run_state *state);

// Phases as far as they are up to date, and back: seconds, and the passes of a trunk that was kept.
psi_status run_checkpoint_save_phases(psi_run_folder *folder, const run_phases *phases);
psi_status run_checkpoint_load_phases(psi_run_folder *folder, run_phases *phases);

// The labels of a refinement (from 1) as a file of the result.
psi_status run_checkpoint_labels(psi_run_folder *folder, size_t number, size_t n,
                                 const int32_t *labels);

// Whether a refinement was kept that can be gone on from.
bool run_checkpoint_exists(const psi_run_folder *folder);

// The trunk: kept once it is fitted; *out is NULL as long as there is none.
psi_status run_checkpoint_save_trunk(psi_run_folder *folder, const psi_net *trunk);
psi_status run_checkpoint_load_trunk(psi_run_folder *folder, psi_net **out);

#endif
