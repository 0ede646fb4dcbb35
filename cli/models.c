// Models from everywhere: a file that the library reads, psifold's own .npz, a run folder.
#include "cli/models.h"

#include "cli/model_npz.h"

#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

psi_status cli_model_read(cli_call *cli, const char *path, psi_model **out)
{
    struct stat info;
    *out = NULL;
    // what reading gives back is used again for the work on the model, not fetched page by page
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (ends_with(path, ".npz")) return cli_model_npz_read(cli->ctx, path, out);
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return psi_model_read(cli->ctx, path, out);
    psi_run *run = NULL;
    psi_status status = psi_run_load(cli->ctx, path, &run);
    if (status == PSI_OK) status = psi_model_from_mdp(cli->ctx, run->model, out);
    psi_run_free(cli->ctx, run);
    return status;
}

psi_status cli_model_write(cli_call *cli, const psi_model *model, const char *path)
{
    return ends_with(path, ".npz") ? cli_model_npz_write(cli->ctx, model, path)
                                   : psi_model_write(cli->ctx, model, path);
}
