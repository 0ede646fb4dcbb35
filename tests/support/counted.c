#include "support/counted.h"

#include "support/support.h"

#include "base/random.h"
#include "mdp/sparse_model.h"

#include <string.h>

enum { WHOLE = 420 };

// Where a latent state leads: anywhere; forwards, the last to itself; forwards or to itself;
// forwards, or to one of a few before it.
static size_t random_successor(base_random *own, uint32_t shape, size_t from, uint32_t n)
{
    const uint32_t ahead = n - 1 - (uint32_t)from;
    const size_t forwards = ahead ? from + 1 + base_random_below(own, ahead) : from;
    if (shape == 0) return base_random_below(own, n);
    if (shape == 1 || base_random_below(own, 3) > 0) return forwards;
    return shape == 2 ? from : from - base_random_below(own, (uint32_t)(from % 3) + 1);
}

counted counted_random(uint64_t seed)
{
    static const int parts[] = {1, 2, 3, 4, 5, 6, 7, 10};
    base_random r = base_random_stream(seed, 901, 0);
    counted m = {.n = 1 + base_random_below(&r, COUNTED_STATES)};
    const uint32_t shape = (uint32_t)(seed % 4);
    const uint32_t n_latent = 1 + base_random_below(&r, shape == 0 ? 5 : 8);
    const bool duplicates = base_random_below(&r, 4) == 0, chain = base_random_below(&r, 4) == 0;
    size_t latent[COUNTED_STATES];
    for (size_t s = 0; s < m.n; s++) latent[s] = base_random_below(&r, n_latent);
    for (size_t s = 0; s < m.n; s++) {
        // the same latent state: the same choices, but for which copies are entered
        base_random own = base_random_stream(seed, 902, latent[s]);
        m.label[s] = base_random_below(&own, 6) == 0;
        m.n_choices[s] = chain ? 1 : base_random_below(&own, COUNTED_CHOICES);
        for (size_t c = 0; c < m.n_choices[s]; c++) {
            const int n_parts = parts[base_random_below(&own, 8)];
            m.action[s][c] = chain ? 0 : duplicates ? (int)base_random_below(&own, 2) : (int)c;
            m.reward[s][c] = base_random_below(&own, 3) == 0;
            for (int i = 0; i < n_parts; i++) {
                const size_t to = random_successor(&own, shape, latent[s], n_latent);
                size_t copies[COUNTED_STATES], n_copies = 0;
                for (size_t t = 0; t < m.n; t++)
                    if (latent[t] == to) copies[n_copies++] = t;
                const size_t next = n_copies ? copies[base_random_below(&r, (uint32_t)n_copies)]
                                             : base_random_below(&own, (uint32_t)m.n);
                m.mass[s][c][next] += WHOLE / n_parts;
            }
        }
    }
    return m;
}

psi_model *counted_to_model(psi_ctx *ctx, const counted *m, const uint32_t *order, bool turned)
{
    psi_model *model;
    psi_model_reward *reward;
    uint8_t *holds;
    size_t n_choices = 0, n_transitions = 0, at[COUNTED_STATES];
    for (size_t s = 0; s < m->n; s++) {
        at[order[s]] = s;
        n_choices += m->n_choices[s];
    }
    assert_ok(ctx, psi_model_new(ctx, m->n, n_choices, n_choices * 2 * m->n, &model));
    assert_ok(ctx, mdp_model_add_label(ctx, model, "marked", 6, &holds));
    assert_ok(ctx, mdp_model_add_reward(ctx, model, "gain", 4, false, true, &reward));
    model->n_actions = COUNTED_CHOICES;
    model->choices[0] = model->offsets[0] = 0;
    size_t c = 0;
    for (size_t i = 0; i < m->n; i++) {
        const size_t s = at[i];
        holds[i] = (uint8_t)m->label[s];
        for (size_t k = 0; k < m->n_choices[s]; k++, c++) {
            const size_t own = turned ? m->n_choices[s] - 1 - k : k;
            model->action[c] = m->action[s][own];
            reward->choice[c] = 0.1 * m->reward[s][own];
            for (size_t j = 0; j < m->n; j++) {
                const size_t t = turned ? m->n - 1 - j : j;
                const int mass = m->mass[s][own][t];
                if (mass == 0) continue;
                const int pieces = turned && mass % 3 == 0 ? 2 : 1; // a third and two thirds
                for (int piece = 0; piece < pieces; piece++) {
                    const double share = pieces == 1 ? 1.0 : piece ? 2.0 / 3.0 : 1.0 / 3.0;
                    model->next[n_transitions] = (int32_t)order[t];
                    model->probability[n_transitions++] = mass * share / WHOLE;
                }
            }
            model->offsets[c + 1] = n_transitions;
        }
        model->choices[i + 1] = c;
    }
    model->n_transitions = n_transitions;
    return model;
}

// Is there an equal of choice c of s among those of t?
static bool is_matched(const counted *m, const int *block, size_t s, size_t c, size_t t, bool named)
{
    for (size_t d = 0; d < m->n_choices[t]; d++) {
        if (named && m->action[s][c] != m->action[t][d]) continue;
        if (m->reward[s][c] != m->reward[t][d]) continue;
        int into[COUNTED_STATES] = {0};
        for (size_t i = 0; i < m->n; i++) into[block[i]] += m->mass[s][c][i] - m->mass[t][d][i];
        bool same = true;
        for (size_t b = 0; b < m->n; b++) same = same && into[b] == 0;
        if (same) return true;
    }
    return false;
}

static bool is_alike(const counted *m, const int *block, size_t s, size_t t, bool named)
{
    if (block[s] != block[t]) return false;
    for (size_t c = 0; c < m->n_choices[s]; c++)
        if (!is_matched(m, block, s, c, t, named)) return false;
    for (size_t c = 0; c < m->n_choices[t]; c++)
        if (!is_matched(m, block, t, c, s, named)) return false;
    return true;
}

// Rounds of comparing all with all.
void counted_blocks(const counted *m, bool named, int32_t *out)
{
    int block[COUNTED_STATES], next[COUNTED_STATES];
    for (size_t s = 0; s < m->n; s++) block[s] = m->label[s];
    for (bool changed = true; changed;) {
        int n = 0;
        for (size_t s = 0; s < m->n; s++) {
            next[s] = -1;
            for (size_t t = 0; t < s && next[s] < 0; t++)
                if (is_alike(m, block, s, t, named)) next[s] = next[t];
            if (next[s] < 0) next[s] = n++;
        }
        changed = false;
        for (size_t s = 0; s < m->n; s++)
            for (size_t t = 0; t < s; t++)
                changed = changed || (block[s] == block[t]) != (next[s] == next[t]);
        memcpy(block, next, sizeof block);
    }
    for (size_t s = 0; s < m->n; s++) out[s] = block[s];
}

void counted_assert_blocks(psi_ctx *ctx, const psi_partition *c, const int32_t *label,
                           const uint32_t *order)
{
    psi_partition *expected;
    int32_t moved[COUNTED_STATES];
    bool equal;
    for (size_t s = 0; s < c->n_states; s++) moved[order[s]] = label[s];
    assert_ok(ctx, psi_partition_new(ctx, c->n_states, moved, &expected));
    assert_ok(ctx, psi_partition_equal(ctx, c, expected, &equal));
    assert_true(equal);
    psi_partition_free(ctx, expected);
}
