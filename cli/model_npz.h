// Finite models as psifold's own .npz.
#ifndef PSI_CLI_MODEL_NPZ_H
#define PSI_CLI_MODEL_NPZ_H

#include <psifold/psifold.h>

// PSI_EFORMAT for an .npz that holds something else; the sentence says what it seems to be.
psi_status cli_model_npz_read(psi_ctx *ctx, const char *path, psi_model **out);
psi_status cli_model_npz_write(psi_ctx *ctx, const psi_model *model, const char *path);

#endif
