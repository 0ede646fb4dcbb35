// The MDP over the blocks of a partition: w_a and M_a of appendix A where every state weighs the
// same.
#include <psifold/mdp.h>

#include "base/context.h"
#include "mdp/csr.h"

#include <math.h>

// Counts the states of every block; a block is terminal if its states are, and never mixes them.
static psi_status measure_blocks(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c,
                                 double *size, uint8_t *terminal)
{
    for (size_t s = 0; s < mdp->n_states; s++) {
        const size_t k = (size_t)c->label[s];
        if (size[k] > 0.0 && terminal[k] != (mdp->terminal[s] != 0)) {
            return FAIL(ctx, PSI_EDATA, "block %zu holds terminal states and others", k);
        }
        size[k] += 1.0;
        terminal[k] = mdp->terminal[s] != 0;
    }
    return PSI_OK;
}

static double largest_difference(const psi_mdp *mdp, const psi_partition *c, const mdp_csr *rows,
                                 const psi_mdp *quotient)
{
    const size_t n_actions = mdp->n_actions;
    const mdp_csr mean = {
        .offsets = quotient->offsets, .column = quotient->next, .value = quotient->probability};
    double largest = 0.0;
    for (size_t row = 0; row < mdp->n_states * n_actions; row++) {
        const size_t block_row = (size_t)c->label[row / n_actions] * n_actions + row % n_actions;
        largest = fmax(largest, mdp_row_distance(rows, row, &mean, block_row));
        largest = fmax(largest, fabs(mdp->reward[row] - quotient->reward[block_row]));
    }
    return largest;
}

psi_status psi_quotient(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c, psi_mdp **out,
                        double *defect)
{
    *out = NULL;
    if (FREED(ctx, mdp, c)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const size_t n_actions = mdp->n_actions, n_blocks = c->n_blocks;
    mdp_csr rows = {0};
    double *size = NULL, *reward = NULL;
    uint8_t *terminal = NULL;
    uint64_t *entry_row = NULL;
    if (defect) *defect = 0.0;
    TRY(psi_mdp_check(ctx, mdp, true));
    TRY(mdp_check_complete(ctx, c, mdp->n_states));
    TRY(base_alloc_zero(ctx, n_blocks, sizeof *size, &size));
    TRY(base_alloc_zero(ctx, n_blocks, sizeof *terminal, &terminal));
    TRY(base_alloc_zero(ctx, n_blocks * n_actions, sizeof *reward, &reward));
    TRY(measure_blocks(ctx, mdp, c, size, terminal));
    TRY(mdp_block_rows(ctx, mdp, c, &rows));
    TRY(base_alloc(ctx, rows.offsets[rows.n_rows], sizeof *entry_row, &entry_row));
    // every state gives its row to its block's, divided by the number of states
    for (size_t row = 0; row < rows.n_rows; row++) {
        const size_t k = (size_t)c->label[row / n_actions];
        const size_t block_row = k * n_actions + row % n_actions;
        reward[block_row] += mdp->reward[row] / size[k];
        for (uint64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; i++) {
            entry_row[i] = block_row;
            rows.value[i] /= size[k];
        }
    }
    TRY(psi_mdp_from_entries(ctx, n_blocks, n_actions, rows.offsets[rows.n_rows], entry_row,
                             rows.column, rows.value, reward, terminal, out));
    if (defect) {
        mdp_csr_free(ctx, &rows);
        TRY(mdp_block_rows(ctx, mdp, c, &rows));
        *defect = largest_difference(mdp, c, &rows, *out);
    }
done:
    base_free(ctx, entry_row);
    mdp_csr_free(ctx, &rows);
    base_free(ctx, reward);
    base_free(ctx, terminal);
    base_free(ctx, size);
    if (status != PSI_OK) {
        psi_mdp_free(ctx, *out);
        *out = NULL;
    }
    return status;
}
