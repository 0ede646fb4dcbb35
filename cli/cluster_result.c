// What a clustering found, as text and as JSON.
#include "cli/cluster_result.h"
#include "base/json.h"
#include "cli/certificate.h"

#include <math.h>

enum { MOST_ADVICE = 6 }; // lines of it on a terminal

static json_t *doubts_json(const psi_clustering *found, bool advice)
{
    static const char *const KINDS[] = {"pair", "untried", "rare", "past", "looks"};
    json_t *doubts = json_array();
    for (size_t i = 0; i < found->n_doubts; i++) {
        const psi_doubt *doubt = &found->doubts[i];
        char text[256];
        psi_doubt_sentence(doubt, text, sizeof text);
        json_t *one =
            advice ? json_string(text)
                   : json_pack("{s:s, s:i, s:i, s:o, s:I}", "kind", KINDS[doubt->kind], "state",
                               doubt->state, "other", doubt->other, "nats",
                               base_json_real(doubt->nats), "visits", (json_int_t)doubt->visits);
        if (json_array_append_new(doubts, one) == 0) continue;
        json_decref(doubts);
        return NULL;
    }
    return doubts;
}

static json_t *steps_json(const psi_clustering *found)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < found->n_steps; i++) {
        const psi_cluster_step *step = &found->steps[i];
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

static json_t *phases_json(const psi_clustering *found)
{
    json_t *phases = json_array();
    for (size_t i = 0; i < found->n_phases; i++) {
        const psi_cluster_phase *phase = &found->phases[i];
        json_t *object = json_pack("{s:s, s:f, s:I}", "phase", phase->name, "seconds",
                                   phase->seconds, "passes", (json_int_t)phase->passes);
        if (json_array_append_new(phases, object) == 0) continue;
        json_decref(phases);
        return NULL;
    }
    return phases;
}

void cli_print_clustering(cli_call *cli, const char *output, const psi_clustering *found)
{
    cli_print(cli, "\n%zu latent states%s", found->n_latent,
              found->has_terminal ? ", the terminal one (0) included" : "");
    char text[256];
    if (found->verdict != PSI_VERDICT_NOT_ASKED) {
        psi_verdict_sentence(found, text, sizeof text);
        cli_print(cli, "  %s", text);
        for (size_t i = 0; i < found->n_doubts && i < MOST_ADVICE; i++) {
            psi_doubt_sentence(&found->doubts[i], text, sizeof text);
            cli_print(cli, "    %s", text);
        }
        if (found->n_doubts > MOST_ADVICE) {
            cli_print(cli, "    … and %zu more (--json has them)", found->n_doubts - MOST_ADVICE);
        }
    } else {
        cli_print(cli, "  %s",
                  !found->judged
                      ? "the paper's schedule: whether anything is left to tell apart was not "
                        "asked"
                  : found->hot    ? "something in the observations still predicts more than "
                                    "the latent states do: there may be more of them"
                  : found->stable ? "found twice, with nothing left to tell apart"
                                  : "nothing left to tell apart, but found only once");
    }
    cli_print(cli, "  ignored         %.3f %% of the states", 100.0 * found->ignored);
    if (isfinite(found->accuracy)) {
        cli_print(cli, "  representation  %s, right for %.2f %% of held-out observations",
                  found->approximator, 100.0 * found->accuracy);
    } else {
        cli_print(cli, "  representation  %s", found->approximator);
    }
    cli_print(cli,
              "  chosen          gamma %g, epsilon %.3g for rewards, %.3g for successor features "
              "(gap %.3g)",
              found->gamma, found->epsilon_reward, found->epsilon_sf, found->gap);
    if (found->matching_condition) { // nothing follows where it is not met
        cli_print(cli, "  theorem         its condition on gamma and epsilon is met");
    }
    cli_print_certificate(cli, found->certificate);
    cli_print(cli, "  run folder      %s", output);
}

psi_status cli_set_clustering(cli_call *cli, const psi_clustering *found, double seconds)
{
    psi_status status = PSI_OK;
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)found->n_latent)));
    TRY(cli_set(cli, "verdict", json_string(psi_verdict_name(found->verdict))));
    TRY(cli_set(cli, "stopped", json_boolean(found->stopped)));
    TRY(cli_set(cli, "margin", base_json_real(found->margin)));
    TRY(cli_set(cli, "doubtful_fraction", base_json_real(found->doubtful)));
    TRY(cli_set(cli, "past_fraction", base_json_real(found->past)));
    TRY(cli_set(cli, "undetermined", doubts_json(found, false)));
    TRY(cli_set(cli, "advice", doubts_json(found, true)));
    TRY(cli_set(cli, "converged", json_boolean(found->converged)));
    TRY(cli_set(cli, "stable", json_boolean(found->stable)));
    TRY(cli_set(cli, "hot", found->judged ? json_boolean(found->hot) : json_null()));
    TRY(cli_set(cli, "split_gain", base_json_real(found->split_gain)));
    TRY(cli_set(cli, "approximator", json_string(found->approximator)));
    TRY(cli_set(cli, "ignored_fraction", base_json_real(found->ignored)));
    TRY(cli_set(cli, "refinements", steps_json(found)));
    TRY(cli_set(cli, "epsilon_reward", base_json_real(found->epsilon_reward)));
    TRY(cli_set(cli, "epsilon_sf", base_json_real(found->epsilon_sf)));
    TRY(cli_set(cli, "gamma", base_json_real(found->gamma)));
    TRY(cli_set(cli, "gap", base_json_real(found->gap)));
    TRY(cli_set(cli, "matching_condition", json_boolean(found->matching_condition)));
    TRY(cli_set(cli, "representation_accuracy", base_json_real(found->accuracy)));
    TRY(cli_set(cli, "certificate", cli_certificate_json(found->certificate)));
    TRY(cli_set(cli, "seconds", base_json_real(seconds)));
    TRY(cli_set(cli, "phases", phases_json(found)));
done:
    return status;
}
