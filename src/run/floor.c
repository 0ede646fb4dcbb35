// How small a reward-sequence error can be. Where the world is random no prediction is always
// right: beside the error of a run stands what the true latent states leave of it, if the data know
// them, or else what the run's own latent states would leave if they told everything.
#include <psifold/cluster.h>

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/random.h"

#include <math.h>

enum { FLOOR_STREAM = 0x666c6f6f };

// ---- the true latent states ---------------------------------------------------------------------

// True latent states as labels: terminal ones are 0, all others one more than the data say.
static psi_status true_labels(psi_ctx *ctx, const psi_trajectories *data, int32_t **labels,
                              size_t *n_latent)
{
    psi_status status = PSI_OK;
    int32_t largest = 0;
    TRY(base_alloc(ctx, data->n_observations, sizeof **labels, labels));
    for (size_t row = 0; row < data->n_observations; row++) {
        const int32_t k = data->latent_states[row];
        if (k < 0 || k == INT32_MAX) {
            status = FAIL(ctx, PSI_EDATA, "the true latent state of observation %zu is %d", row, k);
            goto done;
        }
        if (k > largest) largest = k;
        (*labels)[row] = k + 1;
    }
    for (size_t e = 0; e < data->n_episodes; e++) {
        if (data->terminated[e]) (*labels)[data->episode_offsets[e + 1] + e] = 0;
    }
    int64_t of_all = largest;
    TRY(base_maximum(ctx, &of_all, 1));
    *n_latent = (size_t)of_all + 2;
done:
    return status;
}

static psi_status judge_truth(psi_ctx *ctx, const psi_trajectories *data, psi_sequence_error *out)
{
    psi_status status = PSI_OK;
    int32_t *labels = NULL;
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    size_t n_latent = 0;
    TRY(true_labels(ctx, data, &labels, &n_latent));
    const psi_paths paths = psi_trajectories_paths(data, labels, n_latent, true);
    TRY(psi_counts_together(ctx, &paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, &model));
    TRY(psi_sequence_errors_together(ctx, model, &paths, PSI_ROLLOUT_SOFT, NULL, out));
done:
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    base_free(ctx, labels);
    return status;
}

// ---- episodes as if latent states told everything -----------------------------------------------

// A step that was seen, and an episode.
typedef struct seen_step {
    int32_t from, to, action, unused; // latent states
    double reward;
} seen_step;
typedef struct seen_episode {
    uint64_t length;
    int32_t first; // latent state
    uint32_t terminated;
} seen_episode;

// Episodes that are put together from steps that were seen, each in the latent state that the step
// before led to.
typedef struct drawing {
    psi_ctx *ctx;
    seen_step *step; // (n_steps) of all processes; …
    seen_episode *episode;
    size_t n_steps, n_episodes;
    uint64_t *first;  // (K + 1) of sorted
    uint64_t *sorted; // … those that start in one latent state side by side
    base_random random;
    size_t n, room; // steps drawn so far
    int32_t *actions;
    double *rewards;
    int32_t *drawn;      // (n + episodes) their labels
    uint64_t *offsets;   // (episodes + 1)
    uint8_t *terminated; // (episodes)
} drawing;

// What all processes have seen reaches rank 0.
static psi_status collect_steps(drawing *d, const psi_trajectories *data, const int32_t *labels)
{
    psi_status status = PSI_OK;
    seen_step *step = NULL;
    seen_episode *episode = NULL;
    size_t bytes;
    TRY(base_alloc(d->ctx, data->n_transitions, sizeof *step, &step));
    TRY(base_alloc(d->ctx, data->n_episodes, sizeof *episode, &episode));
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
        episode[e] = (seen_episode){end - begin, labels[psi_row(e, begin)], data->terminated[e]};
        for (uint64_t t = begin; t < end; t++) {
            const uint64_t row = psi_row(e, t);
            step[t] =
                (seen_step){labels[row], labels[row + 1], data->actions[t], 0, data->rewards[t]};
        }
    }
    TRY(base_collect(d->ctx, step, data->n_transitions * sizeof *step, &d->step, &bytes));
    d->n_steps = d->step ? bytes / sizeof *step : 0;
    TRY(base_collect(d->ctx, episode, data->n_episodes * sizeof *episode, &d->episode, &bytes));
    d->n_episodes = d->episode ? bytes / sizeof *episode : 0;
done:
    base_free(d->ctx, episode);
    base_free(d->ctx, step);
    return status;
}

static bool is_known(const seen_step *step)
{
    return step->from >= 0 && step->to >= 0;
}

// Transitions by the latent state in which they start; those that lead nowhere known are left out.
static psi_status sort_steps(drawing *d, size_t n_latent)
{
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(d->ctx, n_latent + 2, sizeof *d->first, &d->first));
    TRY(base_alloc(d->ctx, d->n_steps, sizeof *d->sorted, &d->sorted));
    for (uint64_t t = 0; t < d->n_steps; t++) {
        if (is_known(&d->step[t])) d->first[d->step[t].from + 2]++;
    }
    for (size_t k = 0; k < n_latent; k++) d->first[k + 2] += d->first[k + 1];
    for (uint64_t t = 0; t < d->n_steps; t++) {
        if (is_known(&d->step[t])) d->sorted[d->first[d->step[t].from + 1]++] = t;
    }
done:
    return status;
}

static psi_status make_room(drawing *d)
{
    psi_status status = PSI_OK;
    if (d->n < d->room) return PSI_OK;
    const size_t room = base_max(1024, 2 * d->room);
    TRY(base_resize(d->ctx, room, sizeof *d->actions, &d->actions));
    TRY(base_resize(d->ctx, room, sizeof *d->rewards, &d->rewards));
    TRY(base_resize(d->ctx, room + d->n_episodes, sizeof *d->drawn, &d->drawn));
    d->room = room;
done:
    return status;
}

// One episode from the first latent state of the data's, to a terminal one or to the given length.
static psi_status draw_episode(drawing *d, size_t e, size_t most, bool has_terminal)
{
    psi_status status = PSI_OK;
    int32_t k = d->episode[e].first;
    d->drawn[d->n + e] = k;
    for (size_t i = 0; i < most && k >= 0; i++) {
        const uint64_t begin = d->first[k], n = d->first[k + 1] - begin;
        if (n == 0) break; // nothing was ever seen to follow
        const uint64_t choice = n <= UINT32_MAX ? base_random_below(&d->random, (uint32_t)n)
                                                : base_random_u64(&d->random) % n;
        const seen_step *step = &d->step[d->sorted[begin + choice]];
        TRY(make_room(d));
        d->actions[d->n] = step->action;
        d->rewards[d->n++] = step->reward;
        k = step->to;
        d->drawn[d->n + e] = k;
        d->terminated[e] = has_terminal && k == 0;
        if (d->terminated[e]) break;
    }
    d->offsets[e + 1] = d->n;
done:
    return status;
}

static void drawing_free(drawing *d)
{
    base_free(d->ctx, d->terminated);
    base_free(d->ctx, d->offsets);
    base_free(d->ctx, d->drawn);
    base_free(d->ctx, d->rewards);
    base_free(d->ctx, d->actions);
    base_free(d->ctx, d->sorted);
    base_free(d->ctx, d->first);
    base_free(d->ctx, d->episode);
    base_free(d->ctx, d->step);
}

static psi_status judge_drawn(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                              const int32_t *labels, psi_sequence_error *out)
{
    psi_status status = PSI_OK;
    const psi_mdp *model = run->model;
    const bool has_terminal = run->has_terminal;
    drawing d = {.ctx = ctx, .random = base_random_stream(0, FLOOR_STREAM, 0)};
    size_t longest = 0;
    TRY(collect_steps(&d, data, labels));
    TRY(sort_steps(&d, model->n_states));
    TRY(base_alloc_zero(ctx, d.n_episodes + 1, sizeof *d.offsets, &d.offsets));
    TRY(base_alloc_zero(ctx, d.n_episodes, sizeof *d.terminated, &d.terminated));
    TRY(make_room(&d));
    for (size_t e = 0; e < d.n_episodes; e++) longest = base_max(longest, d.episode[e].length);
    for (size_t e = 0; e < d.n_episodes; e++) {
        const size_t length = d.episode[e].length;
        if (e % 1024 == 0) TRY(base_cancelled(ctx));
        // one that was cut off would have gone on
        TRY(draw_episode(&d, e, d.episode[e].terminated ? longest : length, has_terminal));
    }
    const psi_paths paths = {.n_episodes = d.n_episodes,
                             .n_transitions = d.n,
                             .n_actions = data->n_actions,
                             .n_latent = model->n_states,
                             .has_terminal = has_terminal,
                             .labels = d.drawn,
                             .actions = d.actions,
                             .rewards = d.rewards,
                             .episode_offsets = d.offsets,
                             .terminated = d.terminated};
    TRY(psi_sequence_errors(ctx, model, &paths, NULL, PSI_ROLLOUT_SOFT, NULL, out));
    TRY(base_broadcast(ctx, out, sizeof *out, 0));
done:
    drawing_free(&d);
    return status;
}

psi_status psi_error_floor_of(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                              const int32_t *labels, psi_error_floor *out)
{
    if (FREED(ctx, run, data)) return PSI_EUSAGE;
    psi_sequence_error error;
    const bool truth = data->latent_states != NULL;
    *out = (psi_error_floor){(double)NAN, truth};
    const psi_status status =
        truth ? judge_truth(ctx, data, &error) : judge_drawn(ctx, run, data, labels, &error);
    if (status == PSI_OK && error.judged > 0) out->mean = error.mean;
    return status;
}
