// What a clustering found, as text and as JSON.
#include "cli/cluster_result.h"
#include "base/json.h"
#include "cli/certificate.h"

#include <math.h>

enum { MOST_ADVICE = 6 }; // lines of it on a terminal

static json_t *doubts_json(const psi_run *run, bool advice)
{
    json_t *doubts = json_array();
    for (size_t i = 0; i < run->n_doubts; i++) {
        const psi_doubt *doubt = &run->doubts[i];
        char text[256];
        psi_doubt_sentence(doubt, text, sizeof text);
        json_t *one =
            advice ? json_string(text)
                   : json_pack("{s:s, s:i, s:i, s:o, s:I, s:I}", "kind",
                               psi_doubt_name(doubt->kind), "state", doubt->state, "other",
                               doubt->other, "nats", base_json_real(doubt->nats), "visits",
                               (json_int_t)doubt->visits, "enough", (json_int_t)doubt->enough);
        if (json_array_append_new(doubts, one) == 0) continue;
        json_decref(doubts);
        return NULL;
    }
    return doubts;
}

static json_t *steps_json(const psi_run *run)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < run->n_steps; i++) {
        const psi_cluster_step *step = &run->steps[i];
        json_array_append_new(
            steps, json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "clusters",
                             (json_int_t)step->clusters, "looked_at", (json_int_t)step->looked_at,
                             "ignored_fraction", base_json_real(step->ignored), "agreement",
                             base_json_real(step->agreement), "epsilon",
                             base_json_real(step->epsilon), "gap", base_json_real(step->gap),
                             "held_out_error", base_json_real(step->held_out_error), "seconds",
                             base_json_real(step->seconds)));
    }
    return steps;
}

static json_t *phases_json(const psi_run *run)
{
    json_t *phases = json_array();
    for (size_t i = 0; i < run->n_phases; i++) {
        const psi_cluster_phase *phase = &run->phases[i];
        json_t *object = json_pack("{s:s, s:f, s:I, s:I, s:I, s:f}", "phase", phase->name,
                                   "seconds", phase->seconds, "passes", (json_int_t)phase->passes,
                                   "bytes_sent", (json_int_t)phase->talk.bytes, "bytes_received",
                                   (json_int_t)phase->talk.received, "communication_seconds",
                                   phase->talk.seconds);
        if (json_array_append_new(phases, object) == 0) continue;
        json_decref(phases);
        return NULL;
    }
    return phases;
}

void cli_print_run(cli_call *cli, const psi_run *run)
{
    cli_print(cli, "\n%zu latent state%s%s", run->n_latent, run->n_latent == 1 ? "" : "s",
              run->has_terminal ? ", the terminal one (0) included" : "");
    char text[256];
    if (run->verdict != PSI_VERDICT_NOT_ASKED) {
        psi_verdict_sentence(run, text, sizeof text);
        cli_print(cli, "  %s", text);
        for (size_t i = 0; i < run->n_doubts && i < MOST_ADVICE; i++) {
            psi_doubt_sentence(&run->doubts[i], text, sizeof text);
            cli_print(cli, "    %s", text);
        }
        if (run->n_doubts > MOST_ADVICE) {
            cli_print(cli, "    … and %zu more (--json has them)", run->n_doubts - MOST_ADVICE);
        }
    } else {
        cli_print(cli, "  how sure that is was not asked (it is with --method evidence)");
    }
    cli_print(cli, "  ignored         %.3f %% of the states", 100.0 * run->ignored);
    if (isfinite(run->accuracy)) {
        cli_print(cli, "  representation  %s, right for %.2f %% of held-out observations",
                  psi_approximator_name(run->approximator), 100.0 * run->accuracy);
    } else if (run->failure && !run->representation) {
        cli_print(cli, "  representation  none");
    } else {
        cli_print(cli, "  representation  %s", psi_approximator_name(run->approximator));
    }
    cli_print(cli,
              "  chosen          gamma %g, epsilon %.3g for rewards, %.3g for successor features "
              "(gap %.3g)",
              run->gamma, run->epsilon_reward, run->epsilon_sf, run->gap);
    if (run->matching_condition) { // nothing follows where it does not hold
        cli_print(cli, "  theorem         its condition on gamma and epsilon holds");
    }
    cli_print_certificate(cli, run->certificate);
    cli_print(cli, "  run folder      %s", run->folder);
}

psi_status cli_set_run(cli_call *cli, const psi_run *run)
{
    psi_status status = PSI_OK;
    const psi_ranks_cost talk = psi_ranks_spent(cli->ctx);
    TRY(cli_set(cli, "ranks", json_integer(psi_ranks(cli->ctx))));
    TRY(cli_set(cli, "communication",
                json_pack("{s:I, s:I, s:I, s:f}", "calls", (json_int_t)talk.calls, "bytes_sent",
                          (json_int_t)talk.bytes, "bytes_received", (json_int_t)talk.received,
                          "seconds", talk.seconds)));
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)run->n_latent)));
    TRY(cli_set(cli, "verdict", json_string(psi_verdict_name(run->verdict))));
    TRY(cli_set(cli, "stopped", json_boolean(run->stopped)));
    TRY(cli_set(cli, "failure", run->failure ? json_string(run->failure) : json_null()));
    TRY(cli_set(cli, "margin", base_json_real(run->margin)));
    TRY(cli_set(cli, "doubtful_fraction", base_json_real(run->doubtful)));
    TRY(cli_set(cli, "past_fraction", base_json_real(run->past)));
    TRY(cli_set(cli, "growth",
                json_pack("[I, I, I]", (json_int_t)run->growth[0], (json_int_t)run->growth[1],
                          (json_int_t)run->growth[2])));
    TRY(cli_set(cli, "undetermined", doubts_json(run, false)));
    TRY(cli_set(cli, "advice", doubts_json(run, true)));
    TRY(cli_set(cli, "converged", json_boolean(run->converged)));
    TRY(cli_set(cli, "approximator", json_string(psi_approximator_name(run->approximator))));
    TRY(cli_set(cli, "ignored_fraction", base_json_real(run->ignored)));
    TRY(cli_set(cli, "refinements", steps_json(run)));
    TRY(cli_set(cli, "epsilon_reward", base_json_real(run->epsilon_reward)));
    TRY(cli_set(cli, "epsilon_sf", base_json_real(run->epsilon_sf)));
    TRY(cli_set(cli, "gamma", base_json_real(run->gamma)));
    TRY(cli_set(cli, "gap", base_json_real(run->gap)));
    TRY(cli_set(cli, "matching_condition", json_boolean(run->matching_condition)));
    TRY(cli_set(cli, "representation_accuracy", base_json_real(run->accuracy)));
    TRY(cli_set(cli, "certificate", cli_certificate_json(run->certificate)));
    TRY(cli_set(cli, "seconds", base_json_real(run->seconds)));
    TRY(cli_set(cli, "phases", phases_json(run)));
done:
    return status;
}
