// Learning rates over a training.
#include <psifold/nn.h>

#include <math.h>

double psi_schedule_at(const psi_schedule *schedule, uint64_t step, uint64_t n_steps)
{
    double rate = schedule->learning_rate;
    if (step < schedule->warmup_steps) {
        return rate * (double)(step + 1) / (double)(schedule->warmup_steps + 1);
    }
    const double share = n_steps > 0 ? (double)step / (double)n_steps : 0;
    if (share <= schedule->decay_from || schedule->decay_from >= 1) return rate;
    const double fallen = fmin((share - schedule->decay_from) / (1 - schedule->decay_from), 1);
    switch (schedule->kind) {
    case PSI_CONSTANT: break;
    case PSI_LINEAR: rate *= 1 - fallen; break;
    case PSI_COSINE: rate *= 0.5 * (1 + cos(fallen * 3.14159265358979323846)); break;
    }
    return rate;
}
