// Refining partitions by signatures: from the bottom and all states together, by rounds and by
// passes, with hashes that collide; all ways give the blocks that brute force finds.
#include "support/counted.h"
#include "support/support.h"

#include "base/context.h"
#include "base/random.h"
#include "mdp/partition_refinement.h"
#include "mdp/sparse_model.h"

// The same with rounds from the start, with passes only, and with hashes that collide, from the
// bottom and all states together.
static void test_ways(void **state)
{
    (void)state;
    static const size_t shares[] = {1, 4, SIZE_MAX};
    psi_ctx *both[2] = {test_ctx(1), test_ctx(2)};
    size_t collided = 0, both_ways = 0;
    for (uint64_t seed = 0; seed < 1200; seed++) {
        psi_ctx *ctx = both[seed % 8 == 0];
        const counted m = counted_random(seed);
        const bool named = seed / 4 % 2;
        uint32_t order[COUNTED_STATES];
        int32_t label[COUNTED_STATES];
        for (uint32_t s = 0; s < m.n; s++) order[s] = s;
        psi_model *model = counted_to_model(ctx, &m, order, false);
        counted_blocks(&m, named, label);
        for (size_t i = 0; i < 6; i++) {
            const psi_quotient_options options = {.size = sizeof options,
                                                  .ignore_actions = !named,
                                                  .hash_bits = i < 3 ? 0 : 1 + (int)(seed % 6)};
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
            const psi_quotient_options options = {.size = sizeof options};
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

static psi_status refine_in(psi_ctx *ctx, void *argument)
{
    mdp_signing signing;
    mdp_stable stable;
    const psi_quotient_options options = {.size = sizeof options};
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
    psi_model *model = large_model(ctx, 4, 20);
    assert_true(test_fault_sweep(refine_in, model) > 60);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_faults_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
