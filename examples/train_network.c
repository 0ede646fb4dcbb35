// Trains a network and saves it: which quarter of the unit square is a point in? The inputs come
// from the caller's own memory, row by row, as they would from a file.
#include <psifold/psifold.h>

#include <stdio.h>
#include <string.h>

enum { POINTS = 4000, CLASSES = 4 };

typedef struct points {
    float at[POINTS][2];
    int32_t quarter[POINTS];
} points;

static void make_points(points *all)
{
    uint32_t dice = 1;
    for (int i = 0; i < POINTS; i++) {
        for (int axis = 0; axis < 2; axis++) {
            dice = dice * 1664525u + 1013904223u;
            all->at[i][axis] = (float)(dice >> 8) / (float)(1 << 24);
        }
        all->quarter[i] = (all->at[i][0] > 0.5f) + 2 * (all->at[i][1] > 0.5f);
    }
}

static psi_status gather(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n, void *out)
{
    const points *all = user;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        memcpy((float *)out + 2 * i, all->at[rows[i]], sizeof all->at[0]);
    }
    return PSI_OK;
}

static psi_status remember(void *user, const psi_epoch *epoch, bool *stop)
{
    *(psi_epoch *)user = *epoch;
    *stop = epoch->held_out_accuracy > 0.99;
    return PSI_OK;
}

int main(void)
{
    static points all;
    psi_ctx *ctx;
    psi_net *net = NULL;
    psi_work *work = NULL;
    psi_epoch last = {0};
    const psi_samples samples = {.source = {&all, gather}, .n = POINTS, .targets = all.quarter};
    const psi_train_options training = {.size = sizeof training,
                                        .batch = 64,
                                        .epochs = 30,
                                        .schedule = {PSI_LINEAR, 0.01, 0, 0.5},
                                        .held_out = 0.2,
                                        .seed = 1,
                                        .after_epoch = remember,
                                        .user = &last};
    make_points(&all);
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 1;
    psi_net_spec spec =
        psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {2}}, PSI_FLOAT32, 1, CLASSES);
    spec.hidden[0] = spec.hidden[1] = 32;
    psi_status status = psi_net_new(ctx, &spec, 1, &net);
    const psi_work_options passes = {.size = sizeof passes, .max_batch = 64};
    if (status == PSI_OK) status = psi_work_new(ctx, net, &passes, &work);
    if (status == PSI_OK) status = psi_net_train(ctx, net, work, &samples, &training);
    if (status == PSI_OK) status = psi_net_save(ctx, net, "quarters.safetensors");
    if (status == PSI_OK) {
        printf("right for more than 97 of 100 points that were held out: %s\n",
               last.held_out_accuracy > 0.97 ? "yes" : "no");
    } else {
        fprintf(stderr, "%s\n", psi_error(ctx)->message);
    }
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
