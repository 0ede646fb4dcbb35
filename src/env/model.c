// The exact finite model of a task, for tests and evaluation: every transition with its probability
// and reward. The observations of the point world and the images hide it; nothing is lost by that,
// because they depend on the ground state alone.
#include "env/rules.h"

#include "base/checked.h"
#include "base/context.h"

enum { LARGEST_TABLE = 1 << 26 };

static size_t state_count(const psi_task *task)
{
    size_t count = 1;
    if (task->kind == PSI_BIT_LOCK) return (size_t)task->levels;
    if (task->kind == PSI_RICH_LOCK) return ENV_RICH_STATES * ((size_t)task->levels + 1);
    if (task->kind != PSI_COMBINATION_LOCK) return (size_t)task->width * (size_t)task->height;
    for (int i = 0; i < task->dials; i++) count *= (size_t)task->digits_per_dial;
    return count;
}

// How many outcomes an action has at most.
static size_t outcomes(const psi_task *task, int action)
{
    if (task->kind == PSI_RICH_LOCK) return 2;
    if (task->kind != PSI_COMBINATION_LOCK || !env_lock_spins(task, action)) return 1;
    return (size_t)task->digits_per_dial;
}

static void add(psi_task_exact *model, size_t *entry, size_t next, double probability,
                double reward)
{
    model->next[*entry] = (int32_t)next;
    model->probability[*entry] = probability;
    model->reward[*entry] = reward;
    (*entry)++;
}

static void column_row(const psi_task *task, psi_task_exact *model, size_t s, int a, size_t *entry)
{
    int row = (int)s / task->width, column = (int)s % task->width;
    const int from = column;
    env_column_move(task, a, &row, &column);
    add(model, entry, (size_t)row * (size_t)task->width + (size_t)column, 1.0,
        env_column_reward(task, from, column));
}

static void digits_of(const psi_task *task, size_t s, uint8_t digit[PSI_MAX_DIALS])
{
    for (int i = task->dials - 1; i >= 0; i--) {
        digit[i] = (uint8_t)(s % (size_t)task->digits_per_dial);
        s /= (size_t)task->digits_per_dial;
    }
}

static void lock_row(const psi_task *task, psi_task_exact *model, size_t s, int a, size_t *entry)
{
    const size_t n = outcomes(task, a);
    for (size_t spun = 0; spun < n; spun++) {
        uint8_t digit[PSI_MAX_DIALS];
        digits_of(task, s, digit);
        env_lock_turn(task, a, (uint8_t)spun, digit);
        add(model, entry, (size_t)env_lock_number(task, digit), 1.0 / (double)n,
            env_lock_matches(task, digit) ? 1.0 : 0.0);
    }
}

static void bit_row(const psi_task *task, const env_code *code, psi_task_exact *model, size_t s,
                    int a, size_t *entry)
{
    double reward;
    const int next = env_bit_lock_next(task, code, (int)s, a, &reward);
    add(model, entry, (size_t)next, 1.0, reward);
}

static void rich_row(const psi_task *task, const env_code *code, psi_task_exact *model, size_t s,
                     int a, size_t *entry)
{
    const int level = (int)s / ENV_RICH_STATES, which = (int)s % ENV_RICH_STATES;
    const size_t next = ENV_RICH_STATES * ((size_t)level + 1);
    if (env_rich_lock_goes_on(code, level, which, a)) {
        const double reward = level == task->levels - 1 ? 1.0 : 0.0;
        add(model, entry, next + ENV_GOOD, 0.5, reward);
        add(model, entry, next + ENV_OTHER_GOOD, 0.5, reward);
    } else if (which == ENV_DEAD) {
        add(model, entry, next + ENV_DEAD, 1.0, 0.0);
    } else {
        add(model, entry, next + ENV_DEAD, 0.5, ENV_RICH_CONSOLATION);
        add(model, entry, next + ENV_DEAD, 0.5, 0.0);
    }
}

static void describe_bits(psi_task_exact *model)
{
    for (size_t s = 0; s < model->n_states; s++) {
        model->latent_states[s] = 1 + (int32_t)s;
        model->start[s] = 1.0 / (double)model->n_states;
    }
}

static void describe_rich(const psi_task *task, const env_code *code, psi_task_exact *model)
{
    for (size_t s = 0; s < model->n_states; s++) {
        const int level = (int)s / ENV_RICH_STATES, which = (int)s % ENV_RICH_STATES;
        model->terminal[s] = level == task->levels;
        model->latent_states[s] = env_rich_lock_latent(task, code, level, which);
    }
    model->start[ENV_GOOD] = model->start[ENV_OTHER_GOOD] = 0.5;
}

static void describe_columns(const psi_task *task, psi_task_exact *model)
{
    const int columns = task->width - task->terminate;
    for (size_t s = 0; s < model->n_states; s++) {
        const int column = (int)s % task->width;
        model->terminal[s] = env_column_terminal(task, column);
        model->latent_states[s] = env_column_latent(task, column);
        if (task->start_column == PSI_ANY && column < columns) {
            model->start[s] = 1.0 / (double)(columns * task->height);
        } else if (task->start_column == column) {
            model->start[s] = 1.0 / (double)task->height;
        }
    }
}

static psi_status describe_lock(psi_ctx *ctx, const psi_task *task, psi_task_exact *model)
{
    psi_status status = PSI_OK;
    env_lock_latent *latent = NULL;
    uint8_t digit[PSI_MAX_DIALS];
    TRY(base_alloc_zero(ctx, 1, sizeof *latent, &latent));
    env_lock_latent_make(task, latent);
    for (size_t s = 0; s < model->n_states; s++) {
        digits_of(task, s, digit);
        model->terminal[s] = env_lock_matches(task, digit);
        model->latent_states[s] = env_lock_latent_state(latent, task, digit);
    }
    for (int i = 0; i < task->dials; i++) digit[i] = (uint8_t)task->start[i];
    model->start[env_lock_number(task, digit)] = 1.0;
done:
    base_free(ctx, latent);
    return status;
}

// Ends, latent states and starts; and the code of a lock that has one.
static psi_status describe(psi_ctx *ctx, const psi_task *task, env_code *code,
                           psi_task_exact *model)
{
    switch (task->kind) {
    case PSI_COMBINATION_LOCK: return describe_lock(ctx, task, model);
    case PSI_BIT_LOCK:
        env_bit_lock_draw(task, code);
        describe_bits(model);
        break;
    case PSI_RICH_LOCK:
        env_rich_lock_draw(task, code);
        describe_rich(task, code, model);
        break;
    default: describe_columns(task, model);
    }
    return PSI_OK;
}

static void add_row(const psi_task *task, const env_code *code, psi_task_exact *model, size_t s,
                    int a, size_t *entry)
{
    switch (task->kind) {
    case PSI_COMBINATION_LOCK: lock_row(task, model, s, a, entry); break;
    case PSI_BIT_LOCK: bit_row(task, code, model, s, a, entry); break;
    case PSI_RICH_LOCK: rich_row(task, code, model, s, a, entry); break;
    default: column_row(task, model, s, a, entry);
    }
}

psi_status psi_task_model(psi_ctx *ctx, const psi_task *given, psi_task_exact **out)
{
    psi_status status = PSI_OK;
    psi_task_exact *model = NULL;
    env_code *code = NULL;
    psi_task task = *given;
    *out = NULL;
    TRY(psi_task_check(ctx, &task));
    TRY(base_alloc_zero(ctx, 1, sizeof *model, &model));
    TRY(base_alloc_zero(ctx, 1, sizeof *code, &code));
    const size_t S = model->n_states = state_count(&task);
    const size_t A = model->n_actions = psi_task_observe(&task).n_actions;
    size_t per_state = 0, entries;
    for (size_t a = 0; a < A; a++) per_state += outcomes(&task, (int)a);
    if (!base_mul(S, per_state, &entries) || entries > LARGEST_TABLE) {
        status = FAIL(ctx, PSI_ELIMIT, "the exact table of this task has %zu states: too many", S);
        goto done;
    }
    TRY(base_alloc_zero(ctx, S * A + 1, sizeof *model->offsets, &model->offsets));
    TRY(base_alloc_zero(ctx, entries, sizeof *model->next, &model->next));
    TRY(base_alloc_zero(ctx, entries, sizeof *model->probability, &model->probability));
    TRY(base_alloc_zero(ctx, entries, sizeof *model->reward, &model->reward));
    TRY(base_alloc_zero(ctx, S, sizeof *model->terminal, &model->terminal));
    TRY(base_alloc_zero(ctx, S, sizeof *model->latent_states, &model->latent_states));
    TRY(base_alloc_zero(ctx, S, sizeof *model->start, &model->start));
    TRY(describe(ctx, &task, code, model));
    size_t entry = 0;
    for (size_t s = 0; s < S; s++) {
        for (size_t a = 0; a < A; a++) {
            if (!model->terminal[s]) add_row(&task, code, model, s, (int)a, &entry);
            model->offsets[s * A + a + 1] = entry;
        }
    }
    *out = model;
    model = NULL;
done:
    base_free(ctx, code);
    psi_task_model_free(ctx, model);
    return status;
}

void psi_task_model_free(psi_ctx *ctx, psi_task_exact *model)
{
    if (!model || FREED(ctx, model)) return;
    base_free(ctx, model->offsets);
    base_free(ctx, model->next);
    base_free(ctx, model->probability);
    base_free(ctx, model->reward);
    base_free(ctx, model->terminal);
    base_free(ctx, model->latent_states);
    base_free(ctx, model->start);
    base_retire(ctx, model);
}
