// Makes up a run folder with many latent states: make_run FOLDER LATENT_STATES. The browser tests
// want pages larger than they have time to cluster for.
#include "support/runs.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    psi_ctx *ctx = test_ctx(1);
    const test_run_spec spec = {.n_latent = strtoul(argv[2], NULL, 10),
                                .n_actions = 2,
                                .episodes = strtoul(argv[2], NULL, 10),
                                .length = 6,
                                .dtype = PSI_UINT8,
                                .shape = {3, {2, 28, 28}},
                                .refinements = 12};
    test_made_up_run(ctx, argv[1], &spec);
    psi_ctx_free(ctx);
    return 0;
}
