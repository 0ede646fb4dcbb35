// Steps that the studies share: claims, trajectories, clusterings, tables of numbers.
#include "cli/phases.h"
#include "cli/reproduce.h"

#include "base/file.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- writing down what came out -----------------------------------------------------------------

psi_status study_set(study *of, const char *key, json_t *value)
{
    if (value && json_object_set_new(of->results, key, value) == 0) return PSI_OK;
    return FAIL(of->cli->ctx, PSI_ENOMEM, "no memory for the result %s", key);
}

static psi_status append(study *of, const char *list, json_t *entry)
{
    if (entry && json_array_append_new(json_object_get(of->results, list), entry) == 0) {
        return PSI_OK;
    }
    return FAIL(of->cli->ctx, PSI_ENOMEM, "no memory for the results");
}

psi_status study_title(study *of, const char *title, const char *what)
{
    const psi_status status = study_set(of, "title", json_string(title));
    return status == PSI_OK ? study_set(of, "what", json_string(what)) : status;
}

psi_status study_claim(study *of, const char *claim, const char *paper, bool holds,
                       const char *ours, ...)
{
    char words[512];
    va_list arguments;
    va_start(arguments, ours);
    vsnprintf(words, sizeof words, ours, arguments);
    va_end(arguments);
    return append(of, "claims",
                  json_pack("{s:s, s:s, s:s, s:b}", "claim", claim, "paper", paper, "ours", words,
                            "holds", holds));
}

psi_status study_figure(study *of, const char *name, const char *alt, const char *caption)
{
    return append(of, "figures",
                  json_pack("{s:s, s:s, s:s}", "name", name, "alt", alt, "caption", caption));
}

psi_status study_wide_figure(study *of, const char *name, const char *alt, const char *caption)
{
    return append(of, "figures",
                  json_pack("{s:s, s:s, s:s, s:b}", "name", name, "alt", alt, "caption", caption,
                            "wide", true));
}

psi_status study_file(study *of, const char *name, const char *what)
{
    return append(of, "files", json_pack("{s:s, s:s}", "name", name, "what", what));
}

psi_status study_path(study *of, const char *name, char **path)
{
    return base_join(of->cli->ctx, of->folder, name, path);
}

psi_status study_folder(study *of, const char *name, char **folder)
{
    psi_status status = PSI_OK;
    char *middle = NULL;
    TRY(base_join(of->cli->ctx, of->output, name, &middle));
    TRY(base_join(of->cli->ctx, middle, of->scale_name, folder));
done:
    base_free(of->cli->ctx, middle);
    return status;
}

bool study_has(study *of, const char *name)
{
    char *path = NULL;
    const bool there = study_path(of, name, &path) == PSI_OK && access(path, F_OK) == 0;
    base_free(of->cli->ctx, path);
    return there;
}

psi_status study_says(study *of, const char *format, ...)
{
    char words[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    cli_close_line(of->cli);
    if (!of->cli->quiet) cli_print(of->cli, "  %s", words);
    fflush(stdout);
    return base_cancelled(of->cli->ctx);
}

psi_status study_images(study *of, const char **images)
{
    psi_status status = PSI_OK;
    const bool choose = strcmp(of->images, "auto") == 0;
    const bool drawn = choose ? !psi_mnist_present(of->cli->ctx) : strcmp(of->images, "drawn") == 0;
    *images = drawn ? "drawn" : "mnist";
    TRY(study_set(of, "digits", json_string(*images)));
    if (choose && drawn) {
        TRY(study_says(of, "MNIST was not fetched ('psifold fetch mnist'): the digits are drawn"));
    }
done:
    return status;
}

// ---- trajectories -------------------------------------------------------------------------------

static psi_status deliver(void *user, const psi_episode *episode)
{
    return psi_writer_add(user, episode);
}

psi_status study_trajectories(study *of, const psi_task *task, size_t episodes, uint64_t seed,
                              const char *name, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->cli->ctx;
    psi_writer *writer = NULL;
    char *path = NULL, description[PSI_TASK_JSON_SIZE];
    TRY(study_path(of, name, &path));
    if (!study_has(of, name)) {
        psi_episode_spec spec = psi_collect_spec(task);
        TRY(psi_task_json(ctx, task, description));
        spec.name = psi_task_name(task->kind);
        spec.task_options = description;
        TRY(psi_writer_open(ctx, path, &spec, false, &writer));
        TRY(psi_collect(ctx, task, episodes, seed, deliver, writer, NULL));
        psi_writer *whole = writer;
        writer = NULL;
        TRY(psi_writer_commit(whole));
    }
    TRY(psi_trajectories_read(ctx, path, NULL, out));
    char count[CLI_NUMBER];
    TRY(study_says(of, "%s: %zu trajectories, %s transitions", name, (*out)->n_episodes,
                   cli_count(count, (*out)->n_transitions)));
done:
    psi_writer_discard(writer);
    base_free(ctx, path);
    return status;
}

// ---- options ------------------------------------------------------------------------------------

static const char *const PAPER_TASKS[] = {"column-world", "combination-lock"};
static const size_t PAPER_TRAJECTORIES[] = {1000, 10000};

psi_status study_options(const study *of, const char *task, psi_cluster_options *how)
{
    psi_status status = PSI_OK;
    *how = psi_cluster_defaults();
    if (strcmp(of->constants, "table-1") == 0) status = psi_cluster_paper(of->cli->ctx, task, how);
    how->seed = of->cli->seed;
    how->heads = false; // a study fits its own, on the final network's features
    return status;
}

psi_status study_show_presets(cli_call *cli)
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

// ---- clustering ---------------------------------------------------------------------------------

static psi_status watch(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                        const int32_t *labels)
{
    (void)n, (void)labels;
    return study_says(user, "refinement %zu: %zu latent states, %.2f %% ignored", refinement,
                      step->clusters, 100.0 * step->ignored);
}

static psi_status save_phases(study *of, const psi_clustering *found, const char *name)
{
    psi_status status = PSI_OK;
    char file[64], *path = NULL;
    json_t *phases = cli_phases_json(found);
    TRY(base_json_made(of->cli->ctx, phases));
    snprintf(file, sizeof file, "%s-phases.json", name);
    TRY(study_path(of, file, &path));
    TRY(base_json_save(of->cli->ctx, path, phases));
done:
    json_decref(phases);
    base_free(of->cli->ctx, path);
    return status;
}

// Goes on where an earlier process stopped.
static psi_status cluster_now(study *of, const char *path, const char *data_path,
                              const psi_trajectories *data, const psi_cluster_options *options,
                              const char *name)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->cli->ctx;
    psi_cluster_options how = *options;
    psi_clustering *found = NULL;
    psi_run *run = NULL;
    TRY(psi_run_resume(ctx, path, &run));
    if (psi_run_finished(run)) {
        status = study_says(of, "%s: clustered before", name);
        goto done;
    }
    how.run = run;
    how.watch = watch;
    how.user = of;
    TRY(psi_cluster(ctx, data, &how, &found));
    TRY(save_phases(of, found, name));
    run = NULL;
    TRY(psi_run_commit(how.run, data_path, data, &how, found));
done:
    psi_clustering_free(ctx, found);
    psi_run_suspend(run);
    return status;
}

psi_status study_cluster(study *of, const char *data_name, const psi_trajectories *data,
                         const psi_cluster_options *how, const char *name, psi_run_result **run)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->cli->ctx;
    char *path = NULL, *data_path = NULL, *page = NULL, file[64];
    TRY(study_path(of, name, &path));
    TRY(study_path(of, data_name, &data_path));
    TRY(cluster_now(of, path, data_path, data, how, name));
    TRY(psi_run_load(ctx, path, run));
    snprintf(file, sizeof file, "%s.html", name);
    TRY(study_path(of, file, &page));
    psi_report_options showing = psi_report_defaults();
    showing.replace = true;
    showing.data_path = data_path;
    TRY(psi_report_write(ctx, path, page, &showing, NULL));
    TRY(study_says(of, "%s: %zu latent states", name, (*run)->n_latent));
done:
    base_free(ctx, page);
    base_free(ctx, data_path);
    base_free(ctx, path);
    return status;
}

// ---- refinements --------------------------------------------------------------------------------

void study_free_levels(study *of, study_levels *levels)
{
    for (size_t i = 0; levels->labels && i < levels->n; i++) {
        base_free(of->cli->ctx, levels->labels[i]);
    }
    base_free(of->cli->ctx, levels->labels);
    base_free(of->cli->ctx, levels->ignored);
}

static size_t count_ignored(const int32_t *labels, size_t n)
{
    size_t ignored = 0;
    for (size_t i = 0; i < n; i++) ignored += labels[i] < 0;
    return ignored;
}

psi_status study_load_levels(study *of, const char *run_name, const psi_run_result *run,
                             const psi_trajectories *data, study_levels *out)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->cli->ctx;
    const size_t n = run->n_observations;
    char *path = NULL;
    psi_cluster_step *steps = NULL;
    size_t n_steps;
    *out = (study_levels){.n = run->n_refinements + 2, .n_observations = n};
    TRY(study_path(of, run_name, &path));
    TRY(base_alloc_zero(ctx, out->n, sizeof *out->labels, &out->labels));
    TRY(base_alloc(ctx, n, sizeof **out->labels, &out->labels[0]));
    for (size_t i = 0; i < n; i++) out->labels[0][i] = run->has_terminal ? 1 : 0;
    for (size_t e = 0; e < data->n_episodes; e++) {
        if (data->terminated[e]) out->labels[0][data->episode_offsets[e + 1] + e] = 0;
    }
    TRY(base_alloc_zero(ctx, out->n, sizeof *out->ignored, &out->ignored));
    TRY(psi_run_steps(ctx, path, &n_steps, &steps));
    if (n_steps != run->n_refinements) {
        status = FAIL(ctx, PSI_EDATA, "%s has a record of %zu refinements and labels of %zu", path,
                      n_steps, run->n_refinements);
        goto done;
    }
    for (size_t i = 1; i <= run->n_refinements; i++) {
        TRY(psi_run_labels(ctx, path, i, n, &out->labels[i]));
        const psi_cluster_step *step = &steps[i - 1];
        out->ignored[i] = (size_t)llround(step->ignored * (double)step->looked_at);
    }
    TRY(base_alloc(ctx, n, sizeof **out->labels, &out->labels[out->n - 1]));
    memcpy(out->labels[out->n - 1], run->labels, n * sizeof *run->labels);
    out->ignored[out->n - 1] = count_ignored(run->labels, n);
done:
    psi_run_steps_free(ctx, steps);
    base_free(ctx, path);
    return status;
}

static psi_status save_text(study *of, const char *name, const char *text, size_t size)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    base_output *output = NULL;
    TRY(study_path(of, name, &path));
    TRY(base_output_open(of->cli->ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, text, size));
    base_output *whole = output;
    output = NULL;
    TRY(base_output_commit(whole));
done:
    base_output_discard(output);
    base_free(of->cli->ctx, path);
    return status;
}

psi_status study_refinements(study *of, const study_levels *levels, const char *name)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->cli->ctx;
    json_t *counts = json_array();
    char *text = NULL, file[64];
    size_t size = 0, *sizes = NULL;
    FILE *csv = open_memstream(&text, &size);
    if (!csv) return FAIL(ctx, PSI_ENOMEM, "no memory for the table of refinements");
    fprintf(csv, "stage,cluster,observations,share\n");
    for (size_t level = 0; level < levels->n; level++) {
        size_t clusters = 0, labelled = 0;
        const size_t ignored = levels->ignored[level];
        const int32_t *labels = levels->labels[level];
        for (size_t i = 0; i < levels->n_observations; i++) {
            if (labels[i] >= 0 && (size_t)labels[i] >= clusters) clusters = (size_t)labels[i] + 1;
        }
        base_free(ctx, sizes);
        sizes = NULL;
        TRY(base_alloc_zero(ctx, clusters, sizeof *sizes, &sizes));
        for (size_t i = 0; i < levels->n_observations; i++) {
            if (labels[i] < 0) continue;
            sizes[labels[i]]++;
            labelled++;
        }
        const double all = (double)(labelled + ignored); // of what it looked at
        char stage[24];
        snprintf(stage, sizeof stage, "%zu", level);
        if (level + 1 == levels->n) snprintf(stage, sizeof stage, "final");
        fprintf(csv, "%s,ignored,%zu,%.9g\n", stage, ignored, (double)ignored / all);
        for (size_t k = 0; k < clusters; k++) {
            fprintf(csv, "%s,%zu,%zu,%.9g\n", stage, k, sizes[k], (double)sizes[k] / all);
        }
        json_array_append_new(counts, json_pack("{s:s, s:I, s:f}", "stage", stage, "clusters",
                                                (json_int_t)clusters, "ignored_fraction",
                                                (double)ignored / all));
    }
    if (fflush(csv) != 0) {
        status = FAIL(ctx, PSI_ENOMEM, "no memory for the table of refinements");
        goto done;
    }
    snprintf(file, sizeof file, "%s.csv", name);
    TRY(save_text(of, file, text, size));
    TRY(study_file(of, file, "clusters of every refinement: observations in each and their share"));
    TRY(study_set(of, name, json_incref(counts)));
done:
    fclose(csv);
    free(text);
    json_decref(counts);
    base_free(ctx, sizes);
    return status;
}

psi_status study_save_errors(study *of, const char *name, size_t groups, size_t n,
                             const double *errors, const char *const *names)
{
    psi_status status = PSI_OK;
    char *text = NULL, file[64];
    size_t size = 0;
    FILE *csv = open_memstream(&text, &size);
    if (!csv) return FAIL(of->cli->ctx, PSI_ENOMEM, "no memory for the table of errors");
    fputs("trajectory", csv);
    for (size_t g = 0; g < groups; g++) fprintf(csv, ",%s", names[g]);
    fputc('\n', csv);
    for (size_t i = 0; i < n; i++) {
        fprintf(csv, "%zu", i);
        for (size_t g = 0; g < groups; g++) fprintf(csv, ",%.9g", errors[g * n + i]);
        fputc('\n', csv);
    }
    if (fclose(csv) != 0) {
        status = FAIL(of->cli->ctx, PSI_ENOMEM, "no memory for the table of errors");
        goto done;
    }
    snprintf(file, sizeof file, "%s.csv", name);
    TRY(save_text(of, file, text, size));
    TRY(study_file(of, file,
                   "mean absolute error of the rewards of every test trajectory, one "
                   "column for each stage"));
done:
    free(text);
    return status;
}
