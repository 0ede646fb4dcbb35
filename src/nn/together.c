// Processes that train together. Each computes some of the slices of a batch, as a thread does, and
// what they add up meets here in the order of slices. Everybody has the same network afterwards,
// and its numbers are those that one process comes to.
#include "nn/pass.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <string.h>

bool nn_together_failed(const nn_pass *pass)
{
    const nn_together *together = pass->work->together;
    return together && together->status != PSI_OK;
}

void nn_together_begin(const nn_pass *pass)
{
    nn_together *together = pass->work->together;
    if (!together) return;
    together->status = PSI_OK;
    memcpy(together->running, pass->net->running, pass->net->arch.n_running * sizeof(real));
}

psi_status nn_together_end(const nn_pass *pass)
{
    const nn_together *together = pass->work->together;
    if (!nn_together_failed(pass)) return PSI_OK;
    memcpy(pass->net->running, together->running, pass->net->arch.n_running * sizeof(real));
    return together->status;
}

// together->bytes is what each process has of `all`, in their order; its own part lies in its
// place already.
static void gather(const nn_pass *pass, void *all)
{
    nn_together *together = pass->work->together;
    size_t before = 0;
    for (int r = 0; r < together->rank; r++) before += together->bytes[r];
    memcpy(together->own, (char *)all + before, together->bytes[together->rank]);
    together->status = base_gather_into(pass->ctx, together->own, together->bytes, all);
}

static void learners_have(const nn_pass *pass, size_t bytes)
{
    nn_together *together = pass->work->together;
    for (int r = 0; r < together->ranks; r++) {
        together->bytes[r] = r < pass->learners ? bytes : 0;
    }
}

void nn_meet_slices(const nn_pass *pass, int thread, void *blocks, size_t bytes)
{
    nn_together *together = pass->work->together;
    base_team_barrier(pass->team);
    if (!together) return;
    if (thread == 0 && together->status == PSI_OK) {
        learners_have(pass, (size_t)(pass->slices / pass->learners) * bytes);
        gather(pass, blocks);
    }
    base_team_barrier(pass->team);
}

void nn_meet_rows(const nn_pass *pass, void *rows, size_t bytes)
{
    nn_together *together = pass->work->together;
    const int each = pass->slices / pass->learners;
    if (!together || together->status != PSI_OK) return;
    learners_have(pass, 0);
    for (int slice = 0; slice < pass->slices; slice++) {
        size_t first, end;
        base_slice(pass->n, slice, pass->slices, &first, &end);
        together->bytes[slice / each] += (end - first) * bytes;
    }
    gather(pass, rows);
}

// The part of the parameters that a learner adds up.
static nn_rows piece_of(const nn_pass *pass, int rank)
{
    size_t first, end;
    base_slice(pass->work->arch.n_parameters / NN_BLOCK, rank, pass->learners, &first, &end);
    return (nn_rows){first * NN_BLOCK, (end - first) * NN_BLOCK};
}

// Every learner gets what all have of its piece and adds that up, as branches of the tree of
// slices; everybody gets the sums. So nobody sends more than the gradients of one network, and a
// sum.
static psi_status exchange(const nn_pass *pass)
{
    nn_together *together = pass->work->together;
    real *gradients = pass->work->thread[0].gradients, *pieces = together->gradients;
    psi_status status = PSI_OK;
    for (int to = 0; to < pass->learners; to++) {
        const nn_rows piece = piece_of(pass, to);
        learners_have(pass, piece.n * sizeof(real));
        TRY(base_gather_at(pass->ctx, gradients + piece.first, together->bytes, to, pieces));
    }
    learners_have(pass, 0);
    for (int r = 0; r < pass->learners; r++)
        together->bytes[r] = piece_of(pass, r).n * sizeof(real);
    const size_t own = together->bytes[together->rank] / sizeof(real);
    for (int half = 1; own > 0 && half < pass->learners; half *= 2) {
        for (int r = 0; r < pass->learners; r += 2 * half) {
            real *to = pieces + (size_t)r * own;
            pass->work->kernels->add(to + (size_t)half * own, own, to);
        }
    }
    TRY(base_gather_into(pass->ctx, pieces, together->bytes, gradients));
done:
    return status;
}

void nn_meet_gradients(const nn_pass *pass, int thread)
{
    nn_together *together = pass->work->together;
    if (!together) return;
    base_team_barrier(pass->team);
    if (thread == 0 && together->status == PSI_OK) together->status = exchange(pass);
    base_team_barrier(pass->team);
}
