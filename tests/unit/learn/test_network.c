// Features that are learnt once (trunk.c), and heads on them (network.c): on points whose columns
// are known.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/vector.h"
#include "learn/network.h"
#include "learn/samples.h"

#include <math.h>
#include <string.h>

enum { HIDDEN = 48 };

typedef struct fixture {
    psi_ctx *ctx;
    psi_trajectories *data;
    cluster_problem problem;
    problem_inputs inputs;
    network_options options;
} fixture;

static fixture begin(size_t steps)
{
    fixture f = {.ctx = test_ctx(1)};
    f.data = test_collect(f.ctx, "point-column-world", 120, 5, NULL);
    assert_ok(f.ctx, problem_new(f.ctx, f.data, 0, &f.problem));
    assert_ok(f.ctx, problem_inputs_new(f.ctx, f.data->observations, false, &f.inputs));
    assert_ok(f.ctx, problem_inputs_look(f.ctx, &f.inputs));
    f.options = (network_options){.kind = PSI_NET_MLP,
                                  .n_hidden = 1,
                                  .hidden = {HIDDEN},
                                  .trunk = {.steps = steps,
                                            .windows = 16,
                                            .length = 8,
                                            .learning_rate = 0.002,
                                            .inverse_weight = 1.0,
                                            .contrast_weight = 1.0,
                                            .seed = 1},
                                  .cache = PSI_CACHE_FULL,
                                  .head_steps = 400,
                                  .head_batch = 256,
                                  .head_learning_rate = 0.01,
                                  .seed = 1};
    return f;
}

static void end(fixture *f)
{
    problem_inputs_free(f->ctx, &f->inputs);
    problem_free(f->ctx, &f->problem);
    psi_trajectories_free(f->ctx, f->data);
    psi_ctx_free(f->ctx);
}

static void train(fixture *f, size_t steps, psi_net **net, trunk_losses *losses)
{
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &f->inputs.shape, f->inputs.dtype,
                                         f->data->n_actions, f->problem.rewards.n);
    spec.mean = f->inputs.mean;
    spec.scale = f->inputs.scale;
    spec.n_hidden = 1;
    spec.hidden[0] = HIDDEN;
    trunk_options how = f->options.trunk;
    how.steps = steps;
    assert_ok(f->ctx, psi_net_new(f->ctx, &spec, 1, net));
    assert_ok(f->ctx, learn_trunk_train(f->ctx, &f->problem, &f->inputs, &how, *net, losses));
}

static void a_trunk_learns_rewards_actions_and_what_comes_next(void **state)
{
    (void)state;
    fixture f = begin(0);
    psi_net *few, *many, *again;
    trunk_losses early, late, same;
    train(&f, 10, &few, &early);
    train(&f, 400, &many, &late);
    assert_true(late.reward < 0.5 * early.reward);
    assert_true(late.inverse < early.inverse && late.contrast < early.contrast);
    assert_true(late.next == 0.0); // vectors have no outline to be seen
    // the same seed, the same network
    train(&f, 10, &again, &same);
    assert_true(same.reward == early.reward && same.contrast == early.contrast);
    psi_net_free(f.ctx, again);
    psi_net_free(f.ctx, many);
    psi_net_free(f.ctx, few);
    end(&f);
}

// Probabilities of every class for all states.
static float *ask(fixture *f, const learn_approximator *heads, const learn_fit *fit)
{
    float *p;
    const size_t width = fit->n_actions * fit->n_classes;
    assert_ok(f->ctx, base_alloc(f->ctx, f->problem.n_states, width * sizeof *p, &p));
    assert_ok(f->ctx,
              heads->predict(heads->self, f->ctx, fit, f->problem.states, f->problem.n_states, p));
    return p;
}

static void heads_tell_columns_apart_and_survive_a_file(void **state)
{
    (void)state;
    fixture f = begin(300);
    char *folder = test_folder();
    const char *path = test_path(folder, "heads.safetensors");
    psi_net *trunk, *joined;
    learn_approximator heads;
    learn_fit *fit, *read;
    assert_ok(f.ctx, learn_network_fit_trunk(f.ctx, &f.problem, &f.inputs, &f.options, &trunk));
    assert_ok(f.ctx, learn_network_new(f.ctx, &f.problem, &f.inputs, &f.options, trunk, &heads));
    assert_true(learn_is_network(&heads) && heads.features && !heads.trained);
    assert_ok(f.ctx,
              learn_fit_states(f.ctx, &f.problem, &heads, f.data->latent_states, 4, 7, NULL, &fit));
    float *p = ask(&f, &heads, fit);
    size_t right = 0;
    for (size_t i = 0; i < f.problem.n_states; i++) {
        float sum = 0.0f;
        for (size_t k = 0; k < 4; k++) sum += p[i * 4 + k];
        assert_true(fabsf(sum - 1.0f) < 1e-5f);
        right +=
            (int32_t)base_largest(p + i * 4, 0, 4) == f.data->latent_states[f.problem.states[i]];
    }
    assert_true(100 * right > 95 * f.problem.n_states);

    assert_ok(f.ctx, learn_fit_save(f.ctx, fit, path));
    assert_ok(f.ctx, heads.load(heads.self, f.ctx, path, 1, 4, &read));
    float *q = ask(&f, &heads, read);
    assert_memory_equal(p, q, f.problem.n_states * 4 * sizeof *p);
    learn_fit *none;
    assert_status(f.ctx, heads.load(heads.self, f.ctx, path, 1, 5, &none), PSI_EDATA);
    assert_null(none);

    // trunk and heads as one network say the same of observations
    assert_ok(f.ctx, learn_network_join(f.ctx, heads.features, trunk, fit, &joined));
    psi_work *work;
    float logits[64 * 4];
    const psi_batch_source source = {&f.inputs, problem_inputs_gather};
    assert_ok(f.ctx, psi_work_new(f.ctx, joined,
                                  &(psi_work_options){.size = sizeof(psi_work_options),
                                                      .max_batch = 64,
                                                      .predict_only = true},
                                  &work));
    assert_ok(f.ctx, psi_net_predict_all(f.ctx, joined, work, &source, f.problem.states, 64, NULL,
                                         NULL, logits));
    for (size_t i = 0; i < 64; i++) {
        base_softmax(logits + i * 4, 4, logits + i * 4);
        for (size_t k = 0; k < 4; k++) {
            assert_true(fabsf(logits[i * 4 + k] - p[i * 4 + k]) < 1e-4f);
        }
    }
    psi_work_free(f.ctx, work);
    psi_net_free(f.ctx, joined);
    base_free(f.ctx, q);
    base_free(f.ctx, p);
    learn_fit_free(f.ctx, read);
    learn_fit_free(f.ctx, fit);
    learn_approximator_free(f.ctx, &heads);
    psi_net_free(f.ctx, trunk);
    test_folder_free(folder);
    end(&f);
}

// Every class begins as the class that it comes from: without a step of training, clusters that
// were split have the same probabilities.
static void heads_inherit(void **state)
{
    (void)state;
    fixture f = begin(50);
    psi_net *trunk;
    learn_approximator heads;
    learn_fit *first, *second;
    const int32_t parent[] = {0, 1, 1, -1};
    assert_ok(f.ctx, learn_network_fit_trunk(f.ctx, &f.problem, &f.inputs, &f.options, &trunk));
    assert_ok(f.ctx, learn_network_new(f.ctx, &f.problem, &f.inputs, &f.options, trunk, &heads));
    int32_t *target;
    assert_ok(f.ctx, base_alloc(f.ctx, f.data->n_transitions, sizeof *target, &target));
    for (size_t t = 0; t < f.data->n_transitions; t++) target[t] = f.data->actions[t] % 2;
    assert_ok(f.ctx, learn_fit_transitions(f.ctx, &f.problem, &heads, target, 2, NULL, NULL, 3,
                                           NULL, &first));
    f.options.head_steps = 0;
    assert_ok(f.ctx, learn_fit_transitions(f.ctx, &f.problem, &heads, target, 4, first, parent, 4,
                                           NULL, &second));
    float *p = ask(&f, &heads, first), *q = ask(&f, &heads, second);
    const size_t actions = f.data->n_actions;
    for (size_t i = 0; i < f.problem.n_states * actions; i++) {
        assert_true(q[i * 4 + 1] == q[i * 4 + 2]);
        const float odds = p[i * 2 + 1] / p[i * 2];
        assert_true(fabsf(q[i * 4 + 1] / q[i * 4] - odds) <= 1e-3f * odds);
    }
    base_free(f.ctx, q);
    base_free(f.ctx, p);
    base_free(f.ctx, target);
    learn_fit_free(f.ctx, second);
    learn_fit_free(f.ctx, first);
    learn_approximator_free(f.ctx, &heads);
    psi_net_free(f.ctx, trunk);
    end(&f);
}

static void a_trunk_for_other_observations_is_refused(void **state)
{
    (void)state;
    fixture f = begin(0);
    psi_net *other;
    learn_approximator heads;
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {9}}, PSI_FLOAT32, 2, 2);
    assert_ok(f.ctx, psi_net_new(f.ctx, &spec, 1, &other));
    assert_status(f.ctx, learn_network_new(f.ctx, &f.problem, &f.inputs, &f.options, other, &heads),
                  PSI_EDATA);
    assert_int_equal(heads.kind, PSI_APPROXIMATOR_AUTO); // there is none
    learn_approximator_free(f.ctx, &heads);
    psi_net_free(f.ctx, other);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trunk_learns_rewards_actions_and_what_comes_next),
        cmocka_unit_test(heads_tell_columns_apart_and_survive_a_file),
        cmocka_unit_test(heads_inherit),
        cmocka_unit_test(a_trunk_for_other_observations_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
