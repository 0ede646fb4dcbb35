// Threads in the place of processes: what several ranks do together, where sanitizers see all of
// them and no MPI is needed.
#ifndef PSI_TESTS_RANKS_H
#define PSI_TESTS_RANKS_H

#include <psifold/psifold.h>

// What each of n ranks does with a context of its own, all at once. The test fails unless all
// succeed; one that fails ends the others' waiting.
typedef psi_status test_rank(psi_ctx *ctx, int rank, void *argument);
void test_as_ranks(int n, test_rank *work, void *argument);

#endif
