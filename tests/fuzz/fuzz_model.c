// One input as a model: whatever its content says it is, then as PRISM's tables, cut at lines that
// say "%%" into .tra, .lab, .srew and .trew. What can be read is folded.
#include <psifold/psifold.h>

#include "mdp/model_formats.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fold(psi_ctx *ctx, psi_status status, psi_model *model)
{
    psi_quotient_result *found;
    if ((status == PSI_OK) != (model != NULL) || status == PSI_EINTERNAL) abort();
    if (!model) return;
    if (psi_quotient_find(ctx, model, NULL, &found) != PSI_OK) abort();
    if (found->partition->n_blocks > model->n_states) abort();
    psi_quotient_free(ctx, found);
    psi_model_free(ctx, model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    psi_ctx *ctx;
    psi_model *model;
    char *text = malloc(size + 1);
    if (!text ||
        psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &ctx) != PSI_OK)
        abort();
    memcpy(text, bytes, size);
    text[size] = '\0';
    psi_status status = mdp_read_model(ctx, "input", text, size, &model);
    fold(ctx, status, model);
    char *part[4] = {text, NULL, NULL, NULL};
    for (int i = 1; i < 4; i++) {
        char *cut = part[i - 1] ? strstr(part[i - 1], "%%\n") : NULL;
        if (!cut) break;
        *cut = '\0';
        part[i] = cut + 3;
    }
    const mdp_prism_texts texts = {.tra = part[0],
                                   .tra_size = strlen(part[0]),
                                   .lab = part[1],
                                   .lab_size = part[1] ? strlen(part[1]) : 0,
                                   .srew = part[2],
                                   .srew_size = part[2] ? strlen(part[2]) : 0,
                                   .trew = part[3],
                                   .trew_size = part[3] ? strlen(part[3]) : 0};
    status = mdp_read_prism(ctx, "input", &texts, &model);
    fold(ctx, status, model);
    psi_ctx_free(ctx);
    free(text);
    return 0;
}
