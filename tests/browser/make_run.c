// Makes up a run folder with many latent states: make_run FOLDER LATENT_STATES [NUMBERS]. The
// browser tests want pages larger than they have time to cluster for. Observations are images, or
// vectors of so many numbers.
#include "support/runs.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) return 2;
    psi_ctx *ctx = test_ctx(1);
    test_run_spec spec = {.n_latent = strtoul(argv[2], NULL, 10),
                          .n_actions = 2,
                          .episodes = strtoul(argv[2], NULL, 10),
                          .length = 6,
                          .dtype = PSI_UINT8,
                          .shape = {3, {2, 28, 28}},
                          .refinements = 12};
    if (argc == 4) {
        spec.dtype = PSI_FLOAT32;
        spec.shape = (psi_shape){1, {strtoul(argv[3], NULL, 10)}};
    }
    test_made_up_run(ctx, argv[1], &spec);
    psi_ctx_free(ctx);
    return 0;
}
