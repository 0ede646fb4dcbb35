// The constants of the paper's table 1 beside psifold's own, for psifold reproduce --show-options.
#include "cli/presets.h"

static const char *const PAPER_TASKS[] = {"column-world", "combination-lock"};
static const size_t PAPER_TRAJECTORIES[] = {1000, 10000};

psi_status cli_show_presets(cli_call *cli)
{
    psi_status status = PSI_OK;
    json_t *presets = json_object();
    psi_cluster_options paper[2];
    const psi_cluster_options ours = psi_cluster_defaults();
    for (size_t i = 0; i < 2; i++) {
        const psi_cluster_options *p = &paper[i];
        char name[64];
        TRY(psi_cluster_paper(cli->ctx, PAPER_TASKS[i], &paper[i]));
        snprintf(name, sizeof name, "table-1 %s", PAPER_TASKS[i]);
        json_object_set_new(
            presets, name,
            json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f}", "batch_size",
                      (json_int_t)p->batch, "reward_epochs", (json_int_t)p->reward_epochs,
                      "sf_epochs", (json_int_t)p->sf_epochs, "representation_epochs",
                      (json_int_t)p->representation_epochs, "learning_rate", p->learning_rate,
                      "epsilon_reward", p->epsilon_reward, "epsilon_sf", p->epsilon_sf, "filter",
                      p->filter, "trajectories", (json_int_t)PAPER_TRAJECTORIES[i], "gamma",
                      p->gamma));
    }
    json_object_set_new(
        presets, "ours",
        json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "trunk_steps",
                  (json_int_t)ours.trunk_steps, "head_steps", (json_int_t)ours.head_steps,
                  "representation_steps", (json_int_t)ours.representation_steps, "learning_rate",
                  ours.learning_rate, "epsilon_reward", ours.epsilon_reward, "epsilon_sf",
                  ours.epsilon_sf, "filter", ours.filter, "gamma", ours.gamma));
    const psi_cluster_options *c = &paper[0], *l = &paper[1];
    cli_print(cli, "--constants table-1                column-world  combination-lock");
    cli_print(cli, "  batch size                       %12zu  %16zu", c->batch, l->batch);
    cli_print(cli, "  epochs, reward refinement        %12zu  %16zu", c->reward_epochs,
              l->reward_epochs);
    cli_print(cli, "  epochs, SF refinement            %12zu  %16zu", c->sf_epochs, l->sf_epochs);
    cli_print(cli, "  epochs, representation network   %12zu  %16zu", c->representation_epochs,
              l->representation_epochs);
    cli_print(cli, "  learning rate                    %12g  %16g", c->learning_rate,
              l->learning_rate);
    cli_print(cli, "  epsilon of rewards               %12g  %16g", c->epsilon_reward,
              l->epsilon_reward);
    cli_print(cli, "  epsilon of successor features    %12g  %16g", c->epsilon_sf, l->epsilon_sf);
    cli_print(cli, "  spurious latent state filter     %12g  %16g", c->filter, l->filter);
    cli_print(cli, "  training trajectories            %12zu  %16zu", PAPER_TRAJECTORIES[0],
              PAPER_TRAJECTORIES[1]);
    cli_print(cli, "  gamma (not in the paper)         %12g  %16g", c->gamma, l->gamma);
    cli_print(cli, "--constants ours");
    cli_print(cli, "  learning rate %g, filter %g, gamma %g, steps and both epsilons from the data",
              ours.learning_rate, ours.filter, ours.gamma);
    TRY(cli_set(cli, "presets", json_incref(presets)));
done:
    json_decref(presets);
    return status;
}
