// Algorithm 1 on a model as model checkers have it: the same question as partition_refinement.c, by
// successor features within epsilon.
#include "mdp/partition_refinement.h"

#include "base/context.h"
#include "mdp/model_tables.h"

#include <string.h>

static psi_status check_options(psi_ctx *ctx, const psi_quotient_options *options)
{
    if (options->ignore_actions) {
        return FAIL(ctx, PSI_EUSAGE,
                    "successor features belong to actions, which cannot be ignored then");
    }
    if (options->tolerance > 0.0) {
        return FAIL(ctx, PSI_EUSAGE, "a tolerance of %g and an epsilon of %g; one at a time",
                    options->tolerance, options->epsilon_sf);
    }
    return PSI_OK;
}

// The one reward that counts; NULL for none.
static psi_status choose_reward(psi_ctx *ctx, const psi_model *model, const char *words,
                                const psi_model_reward **out)
{
    *out = NULL;
    for (size_t r = 0; r < model->n_rewards; r++) {
        if (!mdp_is_word(words, model->rewards[r].name)) continue;
        if (*out) {
            return FAIL(ctx, PSI_EUSAGE,
                        "rewards '%s' and '%s': Algorithm 1 predicts one, so choose one",
                        (*out)->name, model->rewards[r].name);
        }
        *out = &model->rewards[r];
    }
    return PSI_OK;
}

// Labels are kept apart from the beginning, and so is the table's extra state.
static psi_status find_start(psi_ctx *ctx, const mdp_signing *signing, size_t n_states,
                             psi_partition **out)
{
    psi_status status = PSI_OK;
    int32_t *label = NULL;
    TRY(base_alloc(ctx, n_states, sizeof *label, &label));
    for (size_t s = 0; s < signing->model->n_states; s++) label[s] = (int32_t)signing->class_[s];
    if (n_states > signing->model->n_states) label[n_states - 1] = (int32_t)signing->n_classes;
    TRY(psi_partition_new(ctx, n_states, label, out));
done:
    base_free(ctx, label);
    return status;
}

// The table, its rows over the blocks, and the two matrices of the latent model.
static size_t bytes_of(const psi_mdp *table, size_t n_blocks)
{
    const size_t pairs = table->n_states * table->n_actions;
    const size_t entry = sizeof *table->next + sizeof *table->probability;
    return 2 * (table->offsets[pairs] * entry + pairs * sizeof *table->offsets) +
           pairs * sizeof *table->reward + 2 * n_blocks * n_blocks * sizeof(double);
}

psi_status mdp_refine_features(psi_ctx *ctx, const mdp_signing *signing,
                               const psi_quotient_options *options, mdp_stable *out)
{
    psi_status status = PSI_OK;
    const psi_model *model = signing->model;
    const psi_model_reward *reward;
    psi_refine_options how = psi_refine_defaults();
    psi_mdp *table = NULL;
    psi_partition *start = NULL;
    psi_refinement *found = NULL;
    *out = (mdp_stable){0};
    TRY(check_options(ctx, options));
    TRY(choose_reward(ctx, model, options->rewards, &reward));
    TRY(mdp_table_of(ctx, model, reward, true, &table));
    TRY(find_start(ctx, signing, table->n_states, &start));
    how.start = start;
    how.epsilon_sf = options->epsilon_sf;
    if (options->gamma != 0.0) how.gamma = options->gamma;
    TRY(psi_refine(ctx, table, &how, &found));
    TRY(base_alloc(ctx, model->n_states, sizeof *out->block, &out->block));
    // the extra state is alone in its block and the last to appear
    memcpy(out->block, found->partition->label, model->n_states * sizeof *out->block);
    out->n_blocks = found->partition->n_blocks - (table->n_states - model->n_states);
    out->n_passes = found->n_refinements;
    out->bytes = bytes_of(table, found->partition->n_blocks);
done:
    psi_refinement_free(ctx, found);
    psi_partition_free(ctx, start);
    psi_mdp_free(ctx, table);
    return status;
}
