// Which digits a task asks for.
#include "env/digits.h"

#include "base/context.h"
#include "env/rules.h"

psi_status env_digits_new(psi_ctx *ctx, const psi_task *task, uint64_t seed, env_digits **out)
{
    const size_t n_digits = (size_t)task->digits_per_dial;
    *out = NULL;
    switch (task->digits) {
    case PSI_DIGITS_MNIST: return env_digits_mnist(ctx, false, out);
    case PSI_DIGITS_MNIST_TEST: return env_digits_mnist(ctx, true, out);
    case PSI_DIGITS_DRAWN:
        return env_digits_drawn(ctx, seed, ENV_STREAM_DRAWN, n_digits, task->images_per_digit, out);
    case PSI_DIGITS_DRAWN_TEST:
        return env_digits_drawn(ctx, seed, ENV_STREAM_DRAWN_TEST, n_digits, task->images_per_digit,
                                out);
    case PSI_DIGITS_NONE: break;
    }
    return PSI_OK;
}

void env_digits_free(psi_ctx *ctx, env_digits *digits)
{
    if (!digits) return;
    base_free(ctx, digits->images);
    base_free(ctx, digits);
}
