// Exact quotients against brute force on random small models, and the properties they must have.
#include "support/support.h"

#include "base/context.h"
#include "base/random.h"
#include "mdp/partition_refinement.h"
#include "mdp/rational.h"
#include "mdp/sparse_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WHOLE = 420, MOST_STATES = 14, MOST_CHOICES = 4 };

// A model in counts of 1/420, which brute force can compare exactly.
typedef struct counted {
    size_t n, n_choices[MOST_STATES];
    int action[MOST_STATES][MOST_CHOICES], reward[MOST_STATES][MOST_CHOICES];
    int mass[MOST_STATES][MOST_CHOICES][MOST_STATES], label[MOST_STATES];
} counted;

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

// Few latent states with several copies each, so that there is something to be found.
static counted random_counted(uint64_t seed)
{
    static const int parts[] = {1, 2, 3, 4, 5, 6, 7, 10};
    base_random r = base_random_stream(seed, 901, 0);
    counted m = {.n = 1 + base_random_below(&r, MOST_STATES)};
    const uint32_t shape = (uint32_t)(seed % 4);
    const uint32_t n_latent = 1 + base_random_below(&r, shape == 0 ? 5 : 8);
    const bool duplicates = base_random_below(&r, 4) == 0, chain = base_random_below(&r, 4) == 0;
    size_t latent[MOST_STATES];
    for (size_t s = 0; s < m.n; s++) latent[s] = base_random_below(&r, n_latent);
    for (size_t s = 0; s < m.n; s++) {
        // the same latent state: the same choices, but for which copies are entered
        base_random own = base_random_stream(seed, 902, latent[s]);
        m.label[s] = base_random_below(&own, 6) == 0;
        m.n_choices[s] = chain ? 1 : base_random_below(&own, MOST_CHOICES);
        for (size_t c = 0; c < m.n_choices[s]; c++) {
            const int n_parts = parts[base_random_below(&own, 8)];
            m.action[s][c] = chain ? 0 : duplicates ? (int)base_random_below(&own, 2) : (int)c;
            m.reward[s][c] = base_random_below(&own, 3) == 0;
            for (int i = 0; i < n_parts; i++) {
                const size_t to = random_successor(&own, shape, latent[s], n_latent);
                size_t copies[MOST_STATES], n_copies = 0;
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

// The same with state s as order[s], choices turned round if asked for, transitions in pieces.
static psi_model *model_of(psi_ctx *ctx, const counted *m, const uint32_t *order, bool turned)
{
    psi_model *model;
    psi_model_reward *reward;
    uint8_t *holds;
    size_t n_choices = 0, n_transitions = 0, at[MOST_STATES];
    for (size_t s = 0; s < m->n; s++) {
        at[order[s]] = s;
        n_choices += m->n_choices[s];
    }
    assert_ok(ctx, psi_model_new(ctx, m->n, n_choices, n_choices * 2 * m->n, &model));
    assert_ok(ctx, mdp_model_add_label(ctx, model, "marked", 6, &holds));
    assert_ok(ctx, mdp_model_add_reward(ctx, model, "gain", 4, false, true, &reward));
    model->n_actions = MOST_CHOICES;
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
        int into[MOST_STATES] = {0};
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
static void brute_force(const counted *m, bool named, int32_t *out)
{
    int block[MOST_STATES], next[MOST_STATES];
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

static void assert_same(psi_ctx *ctx, const psi_partition *c, const int32_t *label,
                        const uint32_t *order)
{
    psi_partition *expected;
    int32_t moved[MOST_STATES];
    bool equal;
    for (size_t s = 0; s < c->n_states; s++) moved[order[s]] = label[s];
    assert_ok(ctx, psi_partition_new(ctx, c->n_states, moved, &expected));
    assert_ok(ctx, psi_partition_equal(ctx, c, expected, &equal));
    assert_true(equal);
    psi_partition_free(ctx, expected);
}

// Any partition that the found one refines must lead to the found one.
static void check_start(psi_ctx *ctx, const psi_model *model, const psi_quotient_options *options,
                        const psi_partition *found, base_random *r)
{
    int32_t target[MOST_STATES], label[MOST_STATES], n = 0, name[MOST_STATES];
    psi_quotient_options from = *options;
    psi_partition *start;
    psi_quotient_result *again;
    bool equal;
    for (size_t k = 0; k < found->n_blocks; k++) {
        target[k] = (int32_t)base_random_below(r, 3);
        name[k] = -1;
    }
    for (size_t s = 0; s < found->n_states; s++) {
        int32_t *own = &name[target[found->label[s]]];
        if (found->n_blocks < 3) own = &name[0];
        if (*own < 0) *own = n++;
        label[s] = *own;
    }
    assert_ok(ctx, psi_partition_new(ctx, found->n_states, label, &start));
    from.start = start;
    assert_ok(ctx, psi_quotient_find(ctx, model, &from, &again));
    assert_ok(ctx, psi_partition_equal(ctx, again->partition, found, &equal));
    assert_true(equal);
    psi_quotient_free(ctx, again);
    psi_partition_free(ctx, start);
}

static void check_quotient(psi_ctx *ctx, const psi_model *model,
                           const psi_quotient_options *options, const psi_quotient_result *found)
{
    psi_quotient_result *again;
    assert_ok(ctx, psi_model_check(ctx, found->model));
    assert_ok(ctx, psi_quotient_find(ctx, found->model, options, &again));
    assert_int_equal(again->partition->n_blocks, found->model->n_states);
    assert_int_equal(again->model->n_choices, found->model->n_choices);
    assert_int_equal(again->model->n_transitions, found->model->n_transitions);
    for (size_t i = 0; i < found->model->n_transitions; i++) {
        assert_int_equal(again->model->next[i], found->model->next[i]);
        assert_true(again->model->probability[i] == found->model->probability[i]);
    }
    psi_quotient_free(ctx, again);
    (void)model;
}

static void test_brute_force(void **state)
{
    (void)state;
    psi_ctx *ctx[2] = {test_ctx(1), test_ctx(2)};
    size_t folded = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const counted m = random_counted(seed);
        base_random r = base_random_stream(seed, 903, 0);
        psi_ctx *own = ctx[seed % 8 == 0]; // threads that wait for each other take long
        for (int variant = 0; variant < 4; variant++) {
            const bool named = variant % 2 == 0, turned = variant >= 2;
            const psi_quotient_options options = {.ignore_actions = !named};
            int32_t label[MOST_STATES];
            uint32_t order[MOST_STATES];
            psi_quotient_result *found;
            for (uint32_t s = 0; s < m.n; s++) order[s] = s;
            if (turned) base_random_shuffle(&r, order, m.n);
            psi_model *model = model_of(own, &m, order, turned);
            brute_force(&m, named, label);
            assert_ok(own, psi_quotient_find(own, model, &options, &found));
            assert_same(own, found->partition, label, order);
            assert_int_equal(found->n_verified, 1);
            folded += found->partition->n_blocks < m.n;
            check_quotient(own, model, &options, found);
            check_start(own, model, &options, found->partition, &r);
            psi_quotient_free(own, found);
            psi_model_free(own, model);
        }
    }
    assert_true(folded > 2000); // a test of models without anything to fold would show nothing
    psi_ctx_free(ctx[1]);
    psi_ctx_free(ctx[0]);
}

// The same with rounds from the start, with passes only, and with hashes that collide, from the
// bottom and all states together.
static void test_ways(void **state)
{
    (void)state;
    static const size_t shares[] = {1, 4, SIZE_MAX};
    psi_ctx *both[2] = {test_ctx(1), test_ctx(2)};
    size_t collided = 0, both_ways = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        psi_ctx *ctx = both[seed % 8 == 0];
        const counted m = random_counted(seed);
        const bool named = seed / 4 % 2;
        uint32_t order[MOST_STATES];
        int32_t label[MOST_STATES];
        for (uint32_t s = 0; s < m.n; s++) order[s] = s;
        psi_model *model = model_of(ctx, &m, order, false);
        brute_force(&m, named, label);
        for (size_t i = 0; i < 6; i++) {
            const psi_quotient_options options = {.ignore_actions = !named,
                                                  .hash_bits = i < 3 ? 0 : 2};
            mdp_signing signing;
            mdp_stable stable;
            assert_ok(ctx, mdp_signing_new(ctx, model, &options, &signing));
            signing.round_share = shares[i % 3];
            assert_ok(ctx, mdp_signing_search(ctx, &signing, 1));
            for (int together = 0; together < 2; together++) {
                if (together)
                    assert_ok(ctx, mdp_refine_jointly(ctx, &signing, &stable));
                else
                    assert_ok(ctx, mdp_refine_partition(ctx, &signing, &stable));
                for (size_t s = 0; s < m.n; s++)
                    for (size_t t = 0; t < s; t++)
                        assert_int_equal(stable.block[s] == stable.block[t], label[s] == label[t]);
                collided += stable.n_verified > 1;
                both_ways += stable.n_settled > 0 && stable.n_passes > 0;
                base_free(ctx, stable.block);
            }
            mdp_signing_free(ctx, &signing);
        }
        psi_model_free(ctx, model);
    }
    assert_true(collided > 100);
    assert_true(both_ways > 100);
    for (int i = 0; i < 2; i++) psi_ctx_free(both[i]);
}

// Latent states in copies, thousands of them: mostly forwards, some to themselves, a few back (how
// many in a thousand), many to the same one.
static psi_model *large_model(psi_ctx *ctx, uint64_t seed, uint32_t back)
{
    enum { LATENT = 1500, COPIES = 4, STATES = LATENT * COPIES, MOST_NEXT = 3 };
    psi_model *model;
    psi_model_reward *reward;
    base_random r = base_random_stream(seed, 905, 0);
    assert_ok(ctx, psi_model_new(ctx, STATES, STATES, STATES * MOST_NEXT, &model));
    assert_ok(ctx, mdp_model_add_reward(ctx, model, "gain", 4, true, false, &reward));
    uint64_t m = 0;
    for (uint32_t s = 0; s < STATES; s++) {
        const uint32_t latent = s % LATENT, ahead = LATENT - 1 - latent;
        base_random own = base_random_stream(seed, 906, latent);
        const uint32_t n = 1 + base_random_below(&own, MOST_NEXT);
        model->choices[s] = s;
        model->offsets[s] = m;
        model->action[s] = 0;
        reward->state[s] = base_random_below(&own, 40) == 0;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t kind = base_random_below(&own, 1000);
            const uint32_t step = 1 + base_random_below(&own, 50);
            uint32_t to = latent + (step < ahead ? step : ahead);
            if (kind < back)
                to = latent > step ? latent - step : 0;
            else if (kind < back + 30)
                to = latent;
            else if (kind < back + 200)
                to = LATENT - 1;
            model->next[m] = (int32_t)(to + LATENT * base_random_below(&r, COPIES));
            if (s == LATENT - 1) model->next[m] = (int32_t)s; // final, as one copy has to be
            model->probability[m++] = 1.0 / n;
        }
    }
    model->choices[STATES] = STATES;
    model->offsets[STATES] = model->n_transitions = m;
    model->n_actions = 1;
    return model;
}

// From the bottom and all together give the same, on any number of threads.
static void test_layers(void **state)
{
    (void)state;
    static const uint32_t back[] = {0, 0, 10, 20, 50, 100};
    size_t both_ways = 0;
    for (int threads = 1; threads <= 2; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        for (uint64_t seed = 0; seed < 12; seed++) {
            psi_model *model = large_model(ctx, seed, back[seed % 6]);
            const psi_quotient_options options = {0};
            mdp_signing signing;
            mdp_stable layered, together;
            psi_partition a = {.n_states = model->n_states}, b = a;
            bool equal;
            assert_ok(ctx, mdp_signing_new(ctx, model, &options, &signing));
            assert_ok(ctx, mdp_signing_search(ctx, &signing, 1));
            assert_ok(ctx, mdp_refine_partition(ctx, &signing, &layered));
            assert_ok(ctx, mdp_refine_jointly(ctx, &signing, &together));
            assert_int_equal(layered.n_blocks, together.n_blocks);
            assert_in_range(layered.n_blocks, 100, model->n_states / 4);
            assert_true(layered.n_settled > 0);
            assert_true(back[seed % 6] > 0 || layered.n_passes == 0);
            both_ways += layered.n_passes > 0;
            a.n_blocks = b.n_blocks = layered.n_blocks;
            a.label = (int32_t *)layered.block;
            b.label = (int32_t *)together.block;
            assert_ok(ctx, psi_partition_equal(ctx, &a, &b, &equal));
            assert_true(equal);
            base_free(ctx, layered.block);
            base_free(ctx, together.block);
            mdp_signing_free(ctx, &signing);
            psi_model_free(ctx, model);
        }
        psi_ctx_free(ctx);
    }
    assert_true(both_ways > 10);
}

// n states one behind the other, the last with a reward: every one is a block of its own.
static psi_model *chain_of(psi_ctx *ctx, size_t n)
{
    psi_model *model;
    psi_model_reward *reward;
    assert_ok(ctx, psi_model_new(ctx, n, n, n, &model));
    assert_ok(ctx, mdp_model_add_reward(ctx, model, "gain", 4, true, false, &reward));
    for (size_t s = 0; s < n; s++) {
        model->choices[s] = model->offsets[s] = s;
        model->next[s] = (int32_t)(s + 1 < n ? s + 1 : s);
        model->probability[s] = 1.0;
        model->action[s] = 0;
    }
    model->choices[n] = model->offsets[n] = n;
    model->n_actions = 1;
    model->chain = true;
    reward->state[n - 1] = 1.0;
    return model;
}

static void test_chain(void **state)
{
    (void)state;
    enum { LENGTH = 200000 };
    psi_ctx *ctx = test_ctx(2);
    psi_model *model = chain_of(ctx, LENGTH);
    psi_quotient_result *found;
    const clock_t before = clock();
    assert_ok(ctx, psi_quotient_find(ctx, model, NULL, &found));
    assert_int_equal(found->partition->n_blocks, LENGTH);
    // naive rounds would need minutes of the processor, whoever else works on the machine
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 20.0);
    psi_quotient_free(ctx, found);
    psi_quotient_options options = {.rewards = ""};
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 1);
    psi_quotient_free(ctx, found);
    psi_cancel(ctx);
    assert_status(ctx, psi_quotient_find(ctx, model, NULL, &found), PSI_ECANCELLED);
    assert_null(found);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

// Two copies whose probabilities differ by rounding noise, or by more.
static psi_model *noisy_pair(psi_ctx *ctx, double noise)
{
    psi_model *model;
    psi_model_reward *reward;
    static const int32_t next[] = {2, 3, 2, 3, 2, 3};
    assert_ok(ctx, psi_model_new(ctx, 4, 4, 6, &model));
    assert_ok(ctx, mdp_model_add_reward(ctx, model, "gain", 4, true, false, &reward));
    for (size_t c = 0; c <= 4; c++) {
        model->choices[c] = c;
        model->offsets[c] = c < 3 ? 2 * c : c + 2;
    }
    memcpy(model->next, next, sizeof next);
    model->probability[0] = 0.3, model->probability[1] = 0.7;
    model->probability[2] = 0.3 + noise, model->probability[3] = 0.7 - noise;
    model->probability[4] = model->probability[5] = 1.0;
    memset(model->action, 0, 4 * sizeof *model->action);
    model->n_actions = 1;
    reward->state[3] = 1.0;
    return model;
}

static void test_tolerance(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_quotient_result *found;
    for (int i = 0; i < 3; i++) {
        const double noise = i == 0 ? 1e-10 : i == 1 ? 1e-4 : 1e-2;
        psi_model *model = noisy_pair(ctx, noise);
        assert_ok(ctx, psi_quotient_find(ctx, model, NULL, &found));
        assert_int_equal(found->partition->n_blocks, 4);
        assert_true(found->defect == 0.0);
        psi_quotient_free(ctx, found);
        const psi_quotient_options options = {.tolerance = 1e-3};
        assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
        assert_int_equal(found->partition->n_blocks, i < 2 ? 3 : 4);
        assert_true(fabs(found->defect - (i < 2 ? noise : 0.0)) < 1e-12);
        psi_quotient_free(ctx, found);
        psi_model_free(ctx, model);
    }
    psi_ctx_free(ctx);
}

static bool has_repeated_action(const counted *m)
{
    for (size_t s = 0; s < m->n; s++)
        for (size_t c = 0; c < m->n_choices[s]; c++)
            for (size_t d = 0; d < c; d++)
                if (m->action[s][c] == m->action[s][d]) return true;
    return false;
}

// Algorithm 1 finds the same blocks by successor features, whichever actions states lack.
static void test_successor_features(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    uint32_t order[MOST_STATES];
    size_t compared = 0;
    for (uint32_t s = 0; s < MOST_STATES; s++) order[s] = s;
    for (uint64_t seed = 0; seed < 500; seed++) {
        const counted m = random_counted(seed);
        const psi_quotient_options options = {.epsilon_sf = 1e-7};
        psi_model *model = model_of(ctx, &m, order, false);
        psi_quotient_result *found;
        if (has_repeated_action(&m)) {
            assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUNSUPPORTED);
        } else {
            int32_t label[MOST_STATES];
            brute_force(&m, true, label);
            assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
            assert_same(ctx, found->partition, label, order);
            assert_ok(ctx, psi_model_check(ctx, found->model));
            assert_int_equal(found->model->n_states, found->partition->n_blocks);
            assert_true(found->defect < 1e-12 && found->n_passes > 0 && found->bytes > 0);
            compared += found->partition->n_blocks < m.n;
            psi_quotient_free(ctx, found);
        }
        psi_model_free(ctx, model);
    }
    assert_true(compared > 200);
    psi_ctx_free(ctx);
}

// Within an epsilon that is too large, states come together that differ, and the defect says so.
static void test_large_epsilon(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = noisy_pair(ctx, 0.01);
    psi_quotient_result *found;
    psi_quotient_options options = {.epsilon_sf = 0.1};
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 3);
    assert_true(fabs(found->defect - 0.01) < 1e-12);
    psi_quotient_free(ctx, found);
    options.tolerance = 0.1;
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    options = (psi_quotient_options){.epsilon_sf = 0.1, .ignore_actions = true};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    options = (psi_quotient_options){.epsilon_sf = -1.0};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    options = (psi_quotient_options){.epsilon_sf = 0.1, .gamma = 1.0};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    psi_model_reward *second;
    assert_ok(ctx, psi_model_add_reward(ctx, model, "loss", true, false, &second));
    options = (psi_quotient_options){.epsilon_sf = 1e-7};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    test_assert_error_says(ctx, "rewards 'gain' and 'loss'");
    options.rewards = "loss"; // all zeros: nothing to keep apart
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 1);
    psi_quotient_free(ctx, found);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

// Rewards of states within a cell count in the defect, too.
static void test_reward_defect(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = noisy_pair(ctx, 0.0);
    const psi_quotient_options options = {.tolerance = 1e-2};
    psi_quotient_result *found;
    model->rewards[0].state[1] = 1e-3;
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 3);
    assert_true(fabs(found->defect - 1e-3) < 1e-12);
    psi_quotient_free(ctx, found);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = chain_of(ctx, 5);
    psi_quotient_result *found;
    psi_quotient_options options = {.labels = "nowhere"};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    test_assert_error_says(ctx, "no label 'nowhere'");
    options = (psi_quotient_options){.rewards = "gain,loss"};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    test_assert_error_says(ctx, "no reward 'loss'");
    options = (psi_quotient_options){.tolerance = (double)NAN};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    model->probability[2] = 0.5;
    assert_status(ctx, psi_quotient_find(ctx, model, NULL, &found), PSI_EDATA);
    test_assert_error_says(ctx, "state 2 sum to 0.5");
    model->probability[2] = 1.0;
    model->next[3] = 5;
    assert_status(ctx, psi_quotient_find(ctx, model, NULL, &found), PSI_EDATA);
    test_assert_error_says(ctx, "leads to state 5");
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

// Fractions that doubles stand for, added up in any order.
static void test_fractions(void **state)
{
    (void)state;
    for (int q = 1; q <= 2000; q++) {
        uint64_t sum = 0;
        const uint64_t part = mdp_residue(1.0 / q);
        for (int i = 0; i < q; i++) sum = mdp_plus(sum, part);
        assert_true(sum == 1);
        assert_true(mdp_times(part, (uint64_t)q) == 1);
    }
    assert_true(mdp_plus(mdp_residue(0.1), mdp_residue(0.2)) == mdp_residue(0.3));
    assert_true(mdp_plus(mdp_residue(0.12345678901), mdp_residue(0.87654321099)) == 1);
    assert_true(mdp_residue(0.1 + 0.2) == mdp_residue(0.3));
    // as files with few digits have them
    assert_true(mdp_residue(0.333333) == mdp_residue(1.0 / 3));
    assert_true(mdp_residue(0.6666666667) == mdp_residue(2.0 / 3));
    assert_true(mdp_residue(0.1428571429) == mdp_residue(1.0 / 7));
    assert_true(mdp_residue(0.999999) != 1 && mdp_residue(0.500001) != mdp_residue(0.5));
    assert_true(mdp_residue(1e-6) != 0 && mdp_plus(mdp_residue(1e-6), mdp_residue(0.999999)) == 1);
    assert_true(mdp_plus(mdp_residue(-2.5), mdp_residue(2.5)) % MDP_PRIME == 0);
    assert_true(mdp_residue(0x1p-70) != 0 && mdp_residue(M_PI) != mdp_residue(M_E));
    assert_true(mdp_snap(0.1 + 0.2) == 0.3 && mdp_snap(M_PI) == M_PI);
}

static psi_status find_in(psi_ctx *ctx, void *argument)
{
    psi_quotient_result *found;
    const psi_quotient_options options = {.ignore_actions = true}, features = {.epsilon_sf = 1e-7};
    psi_status status = psi_quotient_find(ctx, argument, NULL, &found);
    if (status == PSI_OK) psi_quotient_free(ctx, found);
    if (status == PSI_OK) status = psi_quotient_find(ctx, argument, &features, &found);
    if (status == PSI_OK) psi_quotient_free(ctx, found);
    if (status == PSI_OK) status = psi_quotient_find(ctx, argument, &options, &found);
    if (status == PSI_OK) psi_quotient_free(ctx, found);
    return status;
}

static psi_status refine_in(psi_ctx *ctx, void *argument)
{
    mdp_signing signing;
    mdp_stable stable;
    const psi_quotient_options options = {0};
    psi_status status = mdp_signing_new(ctx, argument, &options, &signing);
    if (status != PSI_OK) return status;
    status = mdp_signing_search(ctx, &signing, 1);
    if (status == PSI_OK) status = mdp_refine_partition(ctx, &signing, &stable);
    if (status == PSI_OK) base_free(ctx, stable.block);
    mdp_signing_free(ctx, &signing);
    return status;
}

static void test_faults_everywhere(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    uint32_t order[MOST_STATES];
    for (uint32_t s = 0; s < MOST_STATES; s++) order[s] = s;
    for (uint64_t seed = 4; seed < 8; seed++) { // one of each shape
        const counted m = random_counted(seed);
        psi_model *model = model_of(ctx, &m, order, false);
        assert_true(test_fault_sweep(find_in, model) > 40);
        psi_model_free(ctx, model);
    }
    psi_model *model = large_model(ctx, 4, 20);
    assert_true(test_fault_sweep(refine_in, model) > 60);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_successor_features),
        cmocka_unit_test(test_large_epsilon),
        cmocka_unit_test(test_reward_defect),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_fractions),
        cmocka_unit_test(test_faults_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
