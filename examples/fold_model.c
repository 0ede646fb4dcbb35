// Folds a finite model: a walk on a 5 × 5 grid in which only the column matters, so that five
// states are enough. Its quotient can be planned on, and written for Storm.
#include <psifold/psifold.h>

#include <stdio.h>

enum { SIDE = 5, STATES = SIDE * SIDE, ACTIONS = 4 };

static psi_status make_grid(psi_ctx *ctx, psi_model **out)
{
    static const int step[ACTIONS][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}};
    psi_model *grid;
    psi_model_reward *reward;
    uint8_t *goal = NULL;
    psi_status status = psi_model_new(ctx, STATES, STATES * ACTIONS, STATES * ACTIONS, &grid);
    if (status != PSI_OK) return status;
    status = psi_model_add_reward(ctx, grid, "step", false, true, &reward);
    if (status == PSI_OK) status = psi_model_add_label(ctx, grid, "goal", &goal);
    for (size_t s = 0; s < STATES && status == PSI_OK; s++) {
        grid->choices[s] = s * ACTIONS;
        goal[s] = s % SIDE == SIDE - 1;
        for (size_t a = 0; a < ACTIONS; a++) {
            const size_t c = s * ACTIONS + a;
            const int x = (int)(s % SIDE) + step[a][0], y = (int)(s / SIDE) + step[a][1];
            const int inside = x >= 0 && x < SIDE && y >= 0 && y < SIDE;
            grid->action[c] = (int32_t)a;
            grid->offsets[c] = c;
            grid->next[c] = inside ? y * SIDE + x : (int32_t)s;
            grid->probability[c] = 1.0;
            reward->choice[c] = goal[s] ? 1.0 : 0.0;
        }
    }
    grid->choices[STATES] = grid->offsets[STATES * ACTIONS] = STATES * ACTIONS;
    grid->n_actions = ACTIONS;
    *out = grid;
    return status;
}

static psi_status fold(psi_ctx *ctx, const psi_model *grid)
{
    psi_quotient_result *found;
    psi_model_plan *plan;
    psi_status status = psi_quotient_find(ctx, grid, NULL, &found);
    if (status != PSI_OK) return status;
    printf("%zu states are %zu, and the first row is", grid->n_states, found->partition->n_blocks);
    for (size_t s = 0; s < SIDE; s++) printf(" %d", found->partition->label[s]);
    status = psi_model_plan_find(ctx, found->model, NULL, &plan);
    if (status == PSI_OK) {
        printf("\nthe value of its first state is %.3f\n", plan->lower[0]);
        psi_model_plan_free(ctx, plan);
        status = psi_model_write(ctx, found->model, "grid.drn");
    }
    psi_quotient_free(ctx, found);
    return status;
}

int main(void)
{
    psi_ctx *ctx;
    psi_model *grid = NULL;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 1;
    psi_status status = make_grid(ctx, &grid);
    if (status == PSI_OK) status = fold(ctx, grid);
    if (status != PSI_OK) fprintf(stderr, "%s\n", psi_error(ctx)->message);
    psi_model_free(ctx, grid);
    psi_ctx_free(ctx);
    return status == PSI_OK ? 0 : 1;
}
