// Figure 1: Column World, exactly: the map, the colouring, successor features, the refinements.
#include "study/study.h"

#include <math.h>
#include <string.h>

enum { MAX_LEVELS = 8, REWARDED = 2, GAMMA_PERCENT = 90 };

typedef struct exact_world {
    psi_task task;
    psi_task_exact *table;
    psi_mdp *mdp;
    size_t n_levels;
    psi_partition *levels[MAX_LEVELS]; // c_0, c_1, …
} exact_world;

static void free_world(psi_ctx *ctx, exact_world *world)
{
    for (size_t i = 0; i < world->n_levels; i++) psi_partition_free(ctx, world->levels[i]);
    psi_mdp_free(ctx, world->mdp);
    psi_task_model_free(ctx, world->table);
}

// c_0 holds everything together; c_i is what i refinements leave.
static psi_status refine_world(psi_ctx *ctx, exact_world *world)
{
    psi_status status = PSI_OK;
    psi_refinement *found = NULL;
    TRY(psi_partition_new(ctx, world->mdp->n_states, NULL, &world->levels[0]));
    world->n_levels = 1;
    for (bool changed = true; changed && world->n_levels < MAX_LEVELS;) {
        psi_refine_options how = psi_refine_defaults();
        how.max_refinements = world->n_levels;
        TRY(psi_refine(ctx, world->mdp, &how, &found));
        TRY(psi_partition_canonical(ctx, found->partition, NULL));
        changed = found->partition->n_blocks != world->levels[world->n_levels - 1]->n_blocks;
        if (changed) {
            world->levels[world->n_levels++] = found->partition;
            found->partition = NULL;
        }
        psi_refinement_free(ctx, found);
        found = NULL;
    }
done:
    psi_refinement_free(ctx, found);
    return status;
}

static psi_status draw_maps(study *of, const exact_world *world)
{
    psi_status status = PSI_OK;
    const int width = world->task.width, height = world->task.height;
    int colour[64];
    const char *text[64];
    const psi_partition *last = world->levels[world->n_levels - 1];
    for (int cell = 0; cell < width * height; cell++) {
        const bool rewarded = cell % width == width - 1;
        colour[cell] = rewarded ? REWARDED : -1;
        text[cell] = rewarded ? "reward 1" : NULL;
    }
    const psi_figure map = {.folder = of->folder, .name = "map"};
    TRY(psi_figure_map(of->ctx, &map, (size_t)height, (size_t)width, colour, text));
    TRY(study_figure(of, "map", "A grid of four by four cells, the right column rewarding",
                     "The task (1a): moves up, down, left and right; reward in the right column."));
    for (int cell = 0; cell < width * height; cell++) colour[cell] = last->label[cell];
    const psi_figure colouring = {.folder = of->folder, .name = "colouring"};
    TRY(psi_figure_map(of->ctx, &colouring, (size_t)height, (size_t)width, colour, NULL));
    TRY(study_figure(of, "colouring", "The same grid, every column in its own colour",
                     "The latent states found (1b): one colour for each."));
done:
    return status;
}

// psi(s, right) of every cell; returns how far apart cells of one latent state are at most.
static psi_status draw_features(study *of, const exact_world *world, double *apart)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const psi_mdp *mdp = world->mdp;
    const psi_partition *last = world->levels[world->n_levels - 1];
    const size_t k = last->n_blocks;
    double *all = NULL, *right = NULL;
    char words[64][24];
    const char *names[64];
    *apart = 0.0;
    TRY(base_alloc(ctx, mdp->n_states * mdp->n_actions, k * sizeof *all, &all));
    TRY(base_alloc(ctx, mdp->n_states, k * sizeof *right, &right));
    TRY(psi_successor_features(ctx, mdp, last, GAMMA_PERCENT / 100.0, all));
    for (size_t s = 0; s < mdp->n_states; s++) {
        memcpy(right + s * k, all + (s * mdp->n_actions + PSI_MOVE_RIGHT) * k, k * sizeof *right);
        snprintf(words[s], sizeof words[s], "row %zu, column %zu",
                 s / (size_t)world->task.width + 1, s % (size_t)world->task.width + 1);
        names[s] = words[s];
        for (size_t t = 0; t < s; t++) {
            if (last->label[s] != last->label[t]) continue;
            for (size_t i = 0; i < k; i++) {
                *apart = fmax(*apart, fabs(right[s * k + i] - right[t * k + i]));
            }
        }
    }
    const psi_figure at = {of->folder, "successor-features", "latent state", NULL};
    const psi_figure_matrix_options how = {
        .size = sizeof how, .row_names = names, .show_values = true};
    TRY(psi_figure_matrix(ctx, &at, mdp->n_states, k, right, &how));
    TRY(study_figure(of, "successor-features", "Successor features of all cells for moving right",
                     "Successor features of moving right, under random actions and gamma .9 (1c): "
                     "cells of one column have equal rows."));
done:
    base_free(ctx, right);
    base_free(ctx, all);
    return status;
}

static psi_status draw_tree(study *of, const exact_world *world)
{
    psi_status status = PSI_OK;
    const int32_t *labels[MAX_LEVELS];
    const psi_figure at = {of->folder, "tree", "refinement", NULL};
    for (size_t i = 0; i < world->n_levels; i++) labels[i] = world->levels[i]->label;
    TRY(psi_figure_tree(of->ctx, &at, 0, world->n_levels, world->mdp->n_states, labels));
    TRY(study_figure(of, "tree", "The tree of refinements, from one cluster to four",
                     "The refinements (1d), from one cluster that holds every cell together."));
done:
    return status;
}

static psi_status claim_exact(study *of, const exact_world *world, double apart)
{
    psi_status status = PSI_OK;
    const psi_partition *last = world->levels[world->n_levels - 1];
    bool columns = last->n_blocks == (size_t)world->task.width;
    for (size_t s = 0; s < last->n_states; s++) {
        columns = columns && last->label[s] == last->label[s % (size_t)world->task.width];
    }
    char counts[128] = "";
    bool one_by_one = world->n_levels == 4;
    json_t *levels = json_array();
    for (size_t i = 0; i < world->n_levels; i++) {
        const size_t used = strlen(counts);
        snprintf(counts + used, sizeof counts - used, "%s%zu", i ? ", " : "",
                 world->levels[i]->n_blocks);
        one_by_one = one_by_one && world->levels[i]->n_blocks == i + 1;
        json_array_append_new(levels, json_integer((json_int_t)world->levels[i]->n_blocks));
    }
    TRY(study_set(of, "clusters", levels));
    TRY(study_set(of, "successor_feature_difference", json_real(apart)));
    TRY(study_claim(of, "Every column is one latent state", "4 latent states", columns,
                    "%zu latent states, %s", last->n_blocks,
                    columns ? "each of them a column" : "not the columns"));
    TRY(study_claim(of, "Clusters of c_0, c_1, c_2, c_3", "1, 2, 3, 4", one_by_one, "%s", counts));
    TRY(study_claim(of, "Cells of one column have equal successor features", "equal rows",
                    apart < 1e-9, "rows differ by at most %.2g", apart));
done:
    return status;
}

// The same from trajectories: the variant that ends in the rewarding column, as a table of counts.
static psi_status claim_from_data(study *of)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    psi_task task;
    psi_trajectories *data = NULL;
    psi_run *run = NULL;
    psi_purity purity;
    TRY(psi_task_defaults(ctx, "column-world", NULL, &task));
    TRY(psi_task_check(ctx, &task));
    TRY(study_trajectories(of, &task, of->how->episodes ? of->how->episodes : 1000, of->how->seed,
                           "data", &data));
    psi_cluster_options how = psi_cluster_defaults(); // a table: the paper's schedule has none
    how.seed = of->how->seed;
    TRY(study_cluster(of, "data", data, &how, "run", &run));
    TRY(psi_purity_of(ctx, data, run->labels, run->n_latent, &purity));
    TRY(study_set(of, "latent_states_from_data", json_integer((json_int_t)run->n_latent)));
    TRY(study_claim(of, "The same from random trajectories",
                    "4 latent states, with the terminal one",
                    run->n_latent == 4 && purity.off_diagonal == 0.0,
                    "%zu latent states, %.3g %% of the observations in a wrong one", run->n_latent,
                    100.0 * purity.off_diagonal));
    TRY(study_file(of, "data", "random trajectories"));
    TRY(study_file(of, "run", "the run folder; run.html is its report"));
done:
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
    return status;
}

psi_status study_column_world(study *of)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    exact_world world = {0};
    double apart;
    TRY(study_title(of, "Figure 1: Column World",
                    "An agent moves on a grid of four by four cells; only its column matters for "
                    "rewards. The method is run exactly, on the task's own table."));
    TRY(psi_task_defaults(ctx, "column-world", NULL, &world.task));
    TRY(psi_task_set(ctx, &world.task, "reward", "being"));
    TRY(psi_task_set(ctx, &world.task, "no-terminate", NULL));
    TRY(psi_task_check(ctx, &world.task));
    TRY(psi_task_model(ctx, &world.task, &world.table));
    TRY(psi_task_mdp(ctx, world.table, &world.mdp));
    TRY(refine_world(ctx, &world));
    TRY(draw_maps(of, &world));
    TRY(draw_features(of, &world, &apart));
    TRY(draw_tree(of, &world));
    TRY(claim_exact(of, &world, apart));
    TRY(claim_from_data(of));
done:
    free_world(ctx, &world);
    return status;
}
