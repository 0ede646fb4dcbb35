#include "learn/share.h"

#include "base/comm.h"
#include "base/context.h"

#include <string.h>

psi_status learn_share_net(psi_ctx *ctx, psi_net *net)
{
    psi_status status = PSI_OK;
    float *values = NULL;
    for (size_t i = 0; base_ranks(ctx) > 1 && i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        TRY(psi_net_tensor_info(ctx, net, i, &info));
        const size_t n = psi_shape_size(&info.shape);
        base_free(ctx, values);
        values = NULL;
        TRY(base_alloc(ctx, n, sizeof *values, &values));
        TRY(psi_net_tensor_get(ctx, net, i, values));
        TRY(base_broadcast(ctx, values, n * sizeof *values, 0));
        TRY(psi_net_tensor_set(ctx, net, i, values));
    }
done:
    base_free(ctx, values);
    return status;
}

psi_status learn_rows_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                          learn_rows *out)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)base_ranks(ctx);
    *out = (learn_rows){.inputs = inputs};
    TRY(base_alloc_zero(ctx, ranks + 1, sizeof *out->first, &out->first));
    TRY(base_gather(ctx, &problem->n_rows, sizeof problem->n_rows, out->first + 1));
    for (size_t r = 0; r < ranks; r++) out->first[r + 1] += out->first[r];
done:
    return status;
}

void learn_rows_free(psi_ctx *ctx, learn_rows *all)
{
    base_free(ctx, all->first);
}

psi_status learn_rows_gather(void *rows, psi_ctx *ctx, const uint64_t *numbers, size_t n, void *out)
{
    psi_status status = PSI_OK;
    const learn_rows *all = rows;
    problem_inputs *inputs = all->inputs;
    const size_t ranks = (size_t)base_ranks(ctx), rank = (size_t)base_rank(ctx);
    const size_t row_bytes = inputs->row_bytes;
    uint64_t *own = NULL;
    size_t *owner = NULL;               // (n)
    size_t *sizes = NULL, *next = NULL; // (ranks)
    char *brought = NULL, *unsorted = NULL;
    size_t mine = 0;
    if (ranks == 1) return problem_inputs_gather(inputs, ctx, numbers, n, out);
    TRY(base_alloc(ctx, n, sizeof *own, &own));
    TRY(base_alloc_zero(ctx, n, sizeof *owner, &owner));
    TRY(base_alloc_zero(ctx, ranks, sizeof *sizes, &sizes));
    TRY(base_alloc_zero(ctx, ranks, sizeof *next, &next));
    for (size_t i = 0; i < n; i++) {
        while (numbers[i] >= all->first[owner[i] + 1]) owner[i]++;
        sizes[owner[i]] += row_bytes;
        if (owner[i] == rank) own[mine++] = numbers[i] - all->first[rank];
    }
    TRY(base_alloc(ctx, mine, row_bytes, &brought));
    TRY(base_alloc(ctx, n, row_bytes, &unsorted));
    TRY(problem_inputs_gather(inputs, ctx, own, mine, brought));
    TRY(base_gather_into(ctx, brought, sizes, unsorted));
    for (size_t r = 1; r < ranks; r++) next[r] = next[r - 1] + sizes[r - 1];
    for (size_t i = 0; i < n; i++) {
        memcpy((char *)out + i * row_bytes, unsorted + next[owner[i]], row_bytes);
        next[owner[i]] += row_bytes;
    }
    inputs->passed += n - mine;
done:
    base_free(ctx, unsorted);
    base_free(ctx, brought);
    base_free(ctx, next);
    base_free(ctx, sizes);
    base_free(ctx, owner);
    base_free(ctx, own);
    return status;
}
