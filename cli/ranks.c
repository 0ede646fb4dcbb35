// The command as one of several processes, started by mpirun: rank 0 speaks for all of them.
#include "base/comm.h"
#include "cli/internal.h"

#include <time.h>

bool cli_is_spare(const cli_call *cli, const cli_usage *usage)
{
    if (usage->shared || base_started_as() < 0) return false;
    if (base_started_as() == 0 && !cli->quiet) {
        fprintf(stderr, "note: %s is done by one process; the others have nothing to do\n",
                usage->name);
    }
    return base_started_as() > 0;
}

psi_status cli_join_others(cli_call *cli, bool wanted)
{
    const psi_status status = psi_ranks_join(cli->ctx, wanted);
    if (status == PSI_OK && psi_rank(cli->ctx) > 0) {
        cli->quiet = cli->silent = true;
        cli->json = false;
    }
    return status;
}

// What all of them have to complain about, rank 0 says.
void cli_end_job(cli_call *cli, int code)
{
    static const struct timespec FOR_RANK_0 = {1, 0}, FOR_MPIRUN = {0, 300000000};
    if (psi_ranks(cli->ctx) == 1) return;
    if (psi_rank(cli->ctx) > 0) {
        const psi_error_record *error = psi_error(cli->ctx);
        nanosleep(&FOR_RANK_0, NULL);
        if (error->status != PSI_ECANCELLED) {
            cli_complain("process %d of %d: %s", psi_rank(cli->ctx), psi_ranks(cli->ctx),
                         error->message);
        }
    }
    fflush(NULL);
    nanosleep(&FOR_MPIRUN, NULL); // it passes on what it has read so far
    psi_ranks_abandon(cli->ctx, code);
}
