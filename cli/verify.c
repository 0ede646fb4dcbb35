// psifold verify: Definition 2 of the paper, asked of data that a run was not made from.
#include "base/json.h"
#include "cli/certificate.h"
#include "cli/commands.h"
#include "cli/labels.h"

void cli_print_certificate(cli_call *cli, const psi_certificate *certificate)
{
    if (!certificate) return;
    const double share = certificate->judged > 0
                             ? 100.0 * (double)certificate->violating / (double)certificate->judged
                             : 0.0;
    cli_print(cli,
              "  certificate     %.3f %% of %zu judged transitions violate Definition 2; beyond "
              "chance, rewards",
              share, certificate->judged);
    cli_print(
        cli,
        "                  are off by at most %.3g (allowed %.3g), successor features by %.3g "
        "(allowed %.3g)",
        certificate->worst_reward, certificate->epsilon_reward, certificate->worst_sf,
        certificate->epsilon_sf);
    if (certificate->mergeable > 0) {
        cli_print(cli, "                  %zu latent states could be merged with another",
                  certificate->mergeable);
    }
    if (certificate->unseen > 0) {
        cli_print(cli, "                  %zu pairs of latent state and action are not among them",
                  certificate->unseen);
    }
}

json_t *cli_certificate_json(const psi_certificate *certificate)
{
    if (!certificate) return json_null();
    json_t *pairs = json_array();
    for (size_t k = 0; k < certificate->n_latent; k++) {
        for (size_t a = 0; a < certificate->n_actions; a++) {
            const size_t pair = k * certificate->n_actions + a;
            if (certificate->visits[pair] == 0) continue;
            json_array_append_new(
                pairs,
                json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "latent_state", (json_int_t)k,
                          "action", (json_int_t)a, "visits", (json_int_t)certificate->visits[pair],
                          "reward_error", base_json_real(certificate->reward_error[pair]),
                          "reward_doubt", base_json_real(certificate->reward_doubt[pair]),
                          "sf_error", base_json_real(certificate->sf_error[pair]), "sf_doubt",
                          base_json_real(certificate->sf_doubt[pair])));
        }
    }
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "epsilon_reward",
                     base_json_real(certificate->epsilon_reward), "epsilon_sf",
                     base_json_real(certificate->epsilon_sf), "judged",
                     (json_int_t)certificate->judged, "violating",
                     (json_int_t)certificate->violating, "unseen_pairs",
                     (json_int_t)certificate->unseen, "worst_reward_error",
                     base_json_real(certificate->worst_reward), "worst_sf_error",
                     base_json_real(certificate->worst_sf), "mergeable",
                     (json_int_t)certificate->mergeable, "pairs", pairs);
}

static psi_status verify_files(cli_call *cli, const char *folder)
{
    size_t n;
    psi_status status = psi_run_check_files(cli->ctx, folder, &n);
    if (status == PSI_OK) status = psi_run_check(cli->ctx, folder);
    if (status != PSI_OK) return status;
    cli_print(cli, "%s: all %zu files match their checksums", folder, n);
    return cli_set(cli, "files", json_integer((json_int_t)n));
}

typedef struct verify_call {
    const char *key;
    bool files;
} verify_call;

#define FIELD(name) OPTION_FIELD(verify_call, name)
static const psi_option OPTIONS[] = {
    {"files", 0, PSI_OPTION_FLAG, FIELD(files), NULL, "off", NULL, PSI_OPTION_MAIN,
     "compare the run's files with the checksums in its manifest and with each other, and no more"},
    CLI_KEY(FIELD(key)),
};

psi_status cli_verify(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    verify_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {
        .name = "verify",
        .arguments = "RUN [FILE...]",
        .summary = "Repeats a run's certificate on other data",
        .text =
            "For every latent state and action, compares rewards and successor features in FILE\n"
            "with the run's latent model (Definition 2 of the paper).",
        .example = "psifold verify run fresh",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    cli_labelled of = {0};
    psi_certificate *certificate = NULL;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (call.files) {
        status = verify_files(cli, arguments[0]);
        goto done;
    }
    if (!arguments[1]) {
        TRY(FAIL(cli->ctx, PSI_EUSAGE,
                 "verify needs FILE, the data to test the run on, or --files"));
    }
    TRY(cli_load_labels(cli, arguments[0], call.key, 0.0, &of));
    const psi_run *run = of.run;
    const psi_paths paths =
        psi_trajectories_paths(of.data, of.labels, run->n_latent, run->has_terminal);
    TRY(psi_certify(cli->ctx, run->model, run->gamma, &paths, run->epsilon_reward, run->epsilon_sf,
                    &certificate));
    cli_print(cli, "%s on %s%s", arguments[0], arguments[1],
              of.own ? ", its own data: other data make a stronger test" : "");
    TRY(cli_set(cli, "own_data", json_boolean(of.own)));
    cli_print_certificate(cli, certificate);
    status = cli_set(cli, "certificate", cli_certificate_json(certificate));
done:
    psi_certificate_free(cli->ctx, certificate);
    cli_labelled_free(cli, &of);
    return status;
}
