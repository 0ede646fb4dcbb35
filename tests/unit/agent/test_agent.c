// Agents: the same seed gives the same bytes, a saved agent goes on as if it had not stopped,
// target networks follow as they should, and what makes no sense is refused.
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"

#include <psifold/agent.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static psi_task task_of(psi_ctx *ctx, const char *name, const char *option, const char *value)
{
    psi_task task;
    assert_ok(ctx, psi_task_defaults(ctx, name, NULL, &task));
    assert_ok(ctx, psi_task_set(ctx, &task, "max-steps", "60"));
    if (option) assert_ok(ctx, psi_task_set(ctx, &task, option, value));
    assert_ok(ctx, psi_task_check(ctx, &task));
    return task;
}

// Small and quick: learns from the first steps on, and forgets, so that the ring goes round.
static psi_agent_options small(psi_agent_kind kind, psi_view view)
{
    psi_agent_options options = psi_agent_defaults(kind);
    options.view = view;
    options.net = PSI_NET_MLP;
    options.hidden = 16;
    options.batch = 16;
    options.buffer = 64;
    options.learning_starts = 20;
    options.exploration_episodes = 4;
    return options;
}

// A representation of the points: random weights do.
static psi_net *some_network(psi_ctx *ctx, size_t outputs)
{
    psi_net_spec spec =
        psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {2}}, PSI_FLOAT32, 1, outputs);
    spec.hidden[0] = spec.hidden[1] = 8;
    psi_net *net;
    assert_ok(ctx, psi_net_new(ctx, &spec, 3, &net));
    return net;
}

static const struct {
    psi_agent_kind kind;
    psi_view view;
} KINDS[] = {{PSI_AGENT_DQN, PSI_VIEW_AUTO},
             {PSI_AGENT_PRETRAINED, PSI_VIEW_AUTO},
             {PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_ONE_HOT},
             {PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_SOFTMAX},
             {PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_FEATURES},
             {PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_TRUTH},
             {PSI_AGENT_PLANNER, PSI_VIEW_AUTO},
             {PSI_AGENT_PLANNER, PSI_VIEW_TRUTH},
             {PSI_AGENT_TABULAR, PSI_VIEW_AUTO},
             {PSI_AGENT_RANDOM, PSI_VIEW_AUTO}};
enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

// An agent of row i of the table in Point Column World. networks: a representation, a Q-network.
static psi_agent *make(psi_ctx *ctx, size_t i, psi_net *networks[2], uint64_t seed)
{
    const psi_task task = task_of(ctx, "point-column-world", NULL, NULL);
    psi_agent_options options = small(KINDS[i].kind, KINDS[i].view);
    options.representation = networks[0];
    options.start = networks[1];
    options.seed = seed;
    psi_agent *agent;
    assert_ok(ctx, psi_agent_new(ctx, &task, &options, &agent));
    return agent;
}

static psi_net *some_q_network(psi_ctx *ctx)
{
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {2}}, PSI_FLOAT32, 4, 1);
    spec.hidden[0] = spec.hidden[1] = 16;
    psi_net *net;
    assert_ok(ctx, psi_net_new(ctx, &spec, 5, &net));
    return net;
}

static bool same_curve(const psi_agent *a, const psi_agent *b)
{
    size_t n, m;
    const psi_agent_episode *x = psi_agent_curve(a, &n), *y = psi_agent_curve(b, &m);
    bool same = n == m;
    for (size_t i = 0; same && i < n; i++) {
        same = x[i].steps == y[i].steps && x[i].reward == y[i].reward &&
               x[i].truncated == y[i].truncated && x[i].epsilon == y[i].epsilon &&
               (x[i].loss == y[i].loss || (isnan(x[i].loss) && isnan(y[i].loss)));
    }
    return same;
}

static void assert_same_files(psi_ctx *ctx, const char *folder, const char *other, const char *name)
{
    char *x, *y;
    size_t n, m;
    assert_ok(ctx, base_read_file(ctx, test_path(folder, name), 1 << 26, &x, &n));
    assert_ok(ctx, base_read_file(ctx, test_path(other, name), 1 << 26, &y, &m));
    assert_true(n == m && memcmp(x, y, n) == 0);
    base_free(ctx, x);
    base_free(ctx, y);
}

static void test_same_seed_same_bytes(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_net *networks[] = {some_network(ctx, 5), some_q_network(ctx)};
    for (size_t i = 0; i < N_KINDS; i++) {
        psi_agent *a = make(ctx, i, networks, 7), *b = make(ctx, i, networks, 7);
        psi_agent *c = make(ctx, i, networks, 8);
        assert_ok(ctx, psi_agent_play(ctx, a, 12));
        assert_ok(ctx, psi_agent_play(ctx, b, 12));
        assert_ok(ctx, psi_agent_play(ctx, c, 12));
        assert_true(same_curve(a, b));
        assert_false(same_curve(a, c));
        char one[512], two[512];
        snprintf(one, sizeof one, "%s/a", folder);
        snprintf(two, sizeof two, "%s/b", folder);
        assert_ok(ctx, psi_agent_save(ctx, a, one));
        assert_ok(ctx, psi_agent_save(ctx, b, two));
        assert_same_files(ctx, one, two, "curve.csv");
        if (psi_agent_network(a)) {
            assert_same_files(ctx, one, two, "online.safetensors");
            assert_same_files(ctx, one, two, "target.safetensors");
            assert_same_files(ctx, one, two, "adam.safetensors");
            assert_same_files(ctx, one, two, "replay.npz");
            assert_true(psi_agent_updates(a) > 5);
        }
        psi_agent_free(ctx, a);
        psi_agent_free(ctx, b);
        psi_agent_free(ctx, c);
    }
    psi_net_free(ctx, networks[0]);
    psi_net_free(ctx, networks[1]);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Stopped after any number of episodes, saved, read by another agent and continued.
static void test_resuming_is_exact(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_net *networks[] = {some_network(ctx, 5), some_q_network(ctx)};
    for (size_t i = 0; i < N_KINDS; i++) {
        for (size_t stop = 0; stop <= 7; stop += 7) {
            char at[512], whole_at[512];
            snprintf(at, sizeof at, "%s/stopped", folder);
            snprintf(whole_at, sizeof whole_at, "%s/whole", folder);
            psi_agent *whole = make(ctx, i, networks, 2), *first = make(ctx, i, networks, 2);
            psi_agent *second = make(ctx, i, networks, 2), *other = make(ctx, i, networks, 3);
            assert_ok(ctx, psi_agent_play(ctx, whole, 12));
            assert_ok(ctx, psi_agent_play(ctx, first, stop));
            assert_ok(ctx, psi_agent_save(ctx, first, at));
            assert_ok(ctx, psi_agent_load(ctx, second, at));
            assert_ok(ctx, psi_agent_play(ctx, second, 12 - stop));
            assert_true(same_curve(whole, second));
            assert_ok(ctx, psi_agent_save(ctx, second, at));
            assert_ok(ctx, psi_agent_save(ctx, whole, whole_at));
            assert_same_files(ctx, at, whole_at, "curve.csv");
            if (psi_agent_network(whole)) {
                assert_same_files(ctx, at, whole_at, "online.safetensors");
                assert_same_files(ctx, at, whole_at, "target.safetensors");
                assert_same_files(ctx, at, whole_at, "adam.safetensors");
            }
            assert_status(ctx, psi_agent_load(ctx, other, at), PSI_EDATA); // another seed
            psi_agent_free(ctx, whole);
            psi_agent_free(ctx, first);
            psi_agent_free(ctx, second);
            psi_agent_free(ctx, other);
        }
    }
    psi_net_free(ctx, networks[0]);
    psi_net_free(ctx, networks[1]);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// A Q-network whose memory has lost its last reward: what follows is not played, and it is the same
// when it went on from a checkpoint. Without the option, and while rewards are left, nothing
// changes.
static void test_one_that_forgot_is_stopped(void **state)
{
    (void)state;
    enum { EPISODES = 30, STOP = 2 };
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), at[512];
    const psi_task task = task_of(ctx, "column-world", NULL, NULL);
    psi_agent_options options = small(PSI_AGENT_DQN, PSI_VIEW_AUTO);
    psi_agent *plain, *agent, *again;
    size_t n, forgot = 0, kept = 0;
    snprintf(at, sizeof at, "%s/agent", folder);
    options.exploration_episodes = 1;
    options.learning_rate = 1e-6; // acts by its random weights, which is to run against a wall
    for (options.seed = 0; options.seed < 8; options.seed++) {
        options.stop_forgotten = false;
        assert_ok(ctx, psi_agent_new(ctx, &task, &options, &plain));
        options.stop_forgotten = true;
        assert_ok(ctx, psi_agent_new(ctx, &task, &options, &agent));
        assert_ok(ctx, psi_agent_new(ctx, &task, &options, &again));
        assert_ok(ctx, psi_agent_play(ctx, plain, EPISODES));
        assert_ok(ctx, psi_agent_play(ctx, agent, STOP));
        assert_ok(ctx, psi_agent_save(ctx, agent, at));
        assert_ok(ctx, psi_agent_load(ctx, again, at));
        assert_ok(ctx, psi_agent_play(ctx, agent, EPISODES - STOP));
        assert_ok(ctx, psi_agent_play(ctx, again, EPISODES - STOP));
        assert_true(same_curve(agent, again));
        const size_t not_played = psi_agent_not_played(agent);
        assert_int_equal(psi_agent_not_played(again), not_played);
        assert_int_equal(psi_agent_not_played(plain), 0);
        const psi_agent_episode *curve = psi_agent_curve(agent, &n);
        assert_int_equal(n, EPISODES);
        if (not_played == 0) {
            assert_true(same_curve(agent, plain));
            kept++;
        } else {
            const psi_agent_episode *whole = psi_agent_curve(plain, &n);
            const psi_agent_episode *last = &curve[EPISODES - not_played - 1];
            assert_true(last->reward == 0 && last->truncated);
            assert_true(psi_agent_updates(agent) < psi_agent_updates(plain));
            for (size_t e = 0; e < EPISODES; e++) {
                const bool played = e < EPISODES - not_played;
                assert_int_equal(curve[e].steps, played ? whole[e].steps : last->steps);
                assert_true(curve[e].reward == (played ? whole[e].reward : 0));
            }
            assert_ok(ctx, psi_agent_save(ctx, agent, at));
            assert_ok(ctx, psi_agent_load(ctx, again, at));
            assert_int_equal(psi_agent_not_played(again), not_played);
            forgot++;
        }
        psi_agent_free(ctx, plain);
        psi_agent_free(ctx, agent);
        psi_agent_free(ctx, again);
    }
    assert_true(forgot > 0 && kept > 0);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Evaluation changes nothing of what is learnt afterwards.
static void test_evaluation_leaves_no_trace(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_net *networks[] = {some_network(ctx, 5), some_q_network(ctx)};
    for (size_t i = 0; i < N_KINDS; i++) {
        psi_agent *a = make(ctx, i, networks, 2), *b = make(ctx, i, networks, 2);
        psi_agent_score once, twice;
        assert_ok(ctx, psi_agent_play(ctx, a, 10));
        for (size_t e = 0; e < 10; e++) {
            assert_ok(ctx, psi_agent_evaluate(ctx, b, 1, &once));
            assert_ok(ctx, psi_agent_play(ctx, b, 1));
        }
        assert_true(same_curve(a, b));
        assert_ok(ctx, psi_agent_evaluate(ctx, a, 5, &once));
        assert_ok(ctx, psi_agent_evaluate(ctx, b, 5, &twice));
        assert_true(once.steps == twice.steps && once.reward == twice.reward);
        psi_agent_free(ctx, a);
        psi_agent_free(ctx, b);
    }
    psi_net_free(ctx, networks[0]);
    psi_net_free(ctx, networks[1]);
    psi_ctx_free(ctx);
}

enum { TOGETHER = 5 };

// Agents that share an encoder do what each does alone, whoever else is there and wherever they
// begin.
static void play_together(psi_ctx *ctx, const psi_task *task, psi_agent_options options,
                          size_t episodes)
{
    psi_agent *agents[TOGETHER], *alone;
    psi_agent_score scores[TOGETHER], score;
    psi_status each[TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++) {
        options.seed = i;
        assert_ok(ctx, psi_agent_new(ctx, task, &options, &agents[i]));
        assert_ok(ctx, psi_agent_play(ctx, agents[i], i / 2)); // some have played before
    }
    assert_ok(ctx, psi_agents_play(ctx, agents, TOGETHER, episodes, NULL, NULL, each));
    assert_ok(ctx, psi_agents_evaluate(ctx, agents, TOGETHER, 2, scores));
    for (size_t i = 0; i < TOGETHER; i++) {
        options.seed = i;
        assert_ok(ctx, psi_agent_new(ctx, task, &options, &alone));
        assert_ok(ctx, psi_agent_play(ctx, alone, episodes));
        assert_ok(ctx, psi_agent_evaluate(ctx, alone, 2, &score));
        assert_int_equal(each[i], PSI_OK);
        assert_true(same_curve(agents[i], alone));
        assert_true(scores[i].steps == score.steps && scores[i].reward == score.reward);
        psi_agent_free(ctx, alone);
        psi_agent_free(ctx, agents[i]);
    }
}

static void test_together_as_alone(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task points = task_of(ctx, "point-column-world", NULL, NULL);
    psi_net *net = some_network(ctx, 5);
    for (size_t i = 0; i < N_KINDS; i++) {
        psi_agent_options options = small(KINDS[i].kind, KINDS[i].view);
        if (options.kind < PSI_AGENT_REWARD_PREDICTIVE || options.kind > PSI_AGENT_PLANNER ||
            options.view == PSI_VIEW_TRUTH) {
            continue;
        }
        options.representation = net;
        play_together(ctx, &points, options, 8);
    }
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
}

// Features of images show the last bit of what a network computes.
static void test_together_before_images(void **state)
{
    (void)state;
    static const psi_net_kind NETS[] = {PSI_NET_CNN, PSI_NET_RESNET18};
    psi_ctx *ctx = test_ctx(2);
    psi_task lock = task_of(ctx, "combination-lock", "images-per-digit", "3");
    assert_ok(ctx, psi_task_set(ctx, &lock, "max-steps", "12"));
    assert_ok(ctx, psi_task_check(ctx, &lock));
    const psi_task_space space = psi_task_observe(&lock);
    for (size_t i = 0; i < 2; i++) {
        psi_agent_options options = small(PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_FEATURES);
        const psi_net_spec spec = psi_net_defaults(NETS[i], &space.shape, space.dtype, 1, 7);
        psi_net *net;
        assert_ok(ctx, psi_net_new(ctx, &spec, 3, &net));
        options.representation = net;
        play_together(ctx, &lock, options, 4);
        psi_net_free(ctx, net);
    }
    psi_ctx_free(ctx);
}

static psi_status stop_at_third(void *user, size_t agent)
{
    size_t *ended = user;
    assert_in_range(agent, 0, 1);
    return ++*ended == 3 ? PSI_ECANCELLED : PSI_OK;
}

// One that diverges leaves, the others play on; who looks at something else cannot join.
static void test_batch(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = task_of(ctx, "point-column-world", NULL, NULL);
    psi_net *net = some_network(ctx, 5);
    psi_agent_options options = small(PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_FEATURES);
    psi_agent *agents[2], *other;
    psi_status each[2];
    size_t n, ended = 0;
    options.representation = net;
    assert_ok(ctx, psi_agent_new(ctx, &task, &options, &agents[1]));
    options.view = PSI_VIEW_ONE_HOT;
    assert_ok(ctx, psi_agent_new(ctx, &task, &options, &other));
    options.view = PSI_VIEW_FEATURES;
    options.learning_rate = 1e4;
    options.tau = 1;
    options.loss = PSI_TD_SQUARED;
    assert_ok(ctx, psi_agent_new(ctx, &task, &options, &agents[0]));
    psi_agent *strangers[] = {agents[1], other};
    assert_status(ctx, psi_agents_play(ctx, strangers, 2, 9, NULL, NULL, NULL), PSI_EUSAGE);
    test_assert_error_says(ctx, "share one network");
    assert_int_equal(psi_agents_play(ctx, agents, 2, 9, stop_at_third, &ended, each),
                     PSI_ECANCELLED);
    assert_ok(ctx, psi_agents_play(ctx, agents, 2, 30, NULL, NULL, each));
    assert_int_equal(each[0], PSI_ENUMERIC);
    assert_int_equal(each[1], PSI_OK);
    psi_agent_curve(agents[0], &n);
    assert_true(n < 30);
    psi_agent_curve(agents[1], &n);
    assert_int_equal(n, 30);
    psi_agent_free(ctx, agents[0]);
    psi_agent_free(ctx, agents[1]);
    psi_agent_free(ctx, other);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
}

// Weights of a saved network, all tensors one after the other.
static size_t weights_in(psi_ctx *ctx, const char *path, float *out, size_t most)
{
    psi_net *net;
    size_t n = 0;
    assert_ok(ctx, psi_net_load(ctx, path, &net));
    for (size_t i = 0; i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        assert_ok(ctx, psi_net_tensor_info(ctx, net, i, &info));
        assert_true(n + psi_shape_size(&info.shape) <= most);
        assert_ok(ctx, psi_net_tensor_get(ctx, net, i, out + n));
        n += psi_shape_size(&info.shape);
    }
    psi_net_free(ctx, net);
    return n;
}

enum { WEIGHTS = 4096 };

typedef struct weights {
    float online[WEIGHTS], target[WEIGHTS];
    size_t n;
} weights;

static weights after_updates(psi_ctx *ctx, psi_agent_options options, size_t updates)
{
    const psi_task task = task_of(ctx, "point-column-world", "max-steps", "1");
    char *folder = test_folder(), at[512];
    psi_agent *agent;
    static weights found;
    snprintf(at, sizeof at, "%s/agent", folder);
    options.update_every = 1;
    options.learning_starts = 1;
    options.learning_rate = 0.01;
    assert_ok(ctx, psi_agent_new(ctx, &task, &options, &agent));
    assert_ok(ctx, psi_agent_play(ctx, agent, updates)); // an episode is one step here
    assert_int_equal(psi_agent_updates(agent), updates);
    assert_ok(ctx, psi_agent_save(ctx, agent, at));
    found.n = weights_in(ctx, test_path(at, "online.safetensors"), found.online, WEIGHTS);
    weights_in(ctx, test_path(at, "target.safetensors"), found.target, WEIGHTS);
    psi_agent_free(ctx, agent);
    test_folder_free(folder);
    return found;
}

static bool equal(const float *x, const float *y, size_t n)
{
    return memcmp(x, y, n * sizeof *x) == 0;
}

static void test_targets_follow(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_agent_options options = small(PSI_AGENT_DQN, PSI_VIEW_AUTO);
    static weights w[4];
    // softly: target_1 = (1 − τ) · online_0 + τ · online_1; online_1 does not depend on τ
    options.tau = 1;
    w[0] = after_updates(ctx, options, 0);
    w[1] = after_updates(ctx, options, 1);
    assert_true(equal(w[0].online, w[0].target, w[0].n));
    assert_true(equal(w[1].online, w[1].target, w[1].n));
    assert_false(equal(w[0].online, w[1].online, w[0].n));
    options.tau = 0.25;
    w[2] = after_updates(ctx, options, 1);
    assert_true(equal(w[1].online, w[2].online, w[1].n));
    for (size_t i = 0; i < w[2].n; i++) {
        const double expected = 0.75 * (double)w[0].online[i] + 0.25 * (double)w[1].online[i];
        assert_true(fabs((double)w[2].target[i] - expected) < 1e-6);
    }
    // periodically: as it began until update 3, a copy then, unchanged until 6
    options.target_period = 3;
    w[1] = after_updates(ctx, options, 2);
    w[2] = after_updates(ctx, options, 3);
    w[3] = after_updates(ctx, options, 5);
    assert_true(equal(w[1].target, w[0].online, w[0].n));
    assert_true(equal(w[2].target, w[2].online, w[0].n));
    assert_true(equal(w[3].target, w[2].online, w[0].n));
    assert_false(equal(w[3].target, w[3].online, w[0].n));
    psi_ctx_free(ctx);
}

// A frozen agent starts from zero, and values that rewards cannot explain end it.
static void test_values(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = task_of(ctx, "column-world", NULL, NULL);
    psi_agent_options options = small(PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_TRUTH);
    psi_agent *agent;
    psi_real q[4] = {1, 1, 1, 1};
    const int64_t cell = 0;
    assert_ok(ctx, psi_agent_new(ctx, &task, &options, &agent));
    assert_ok(ctx, psi_agent_values(ctx, agent, &cell, 1, q));
    for (size_t a = 0; a < 4; a++) assert_true(q[a] == 0);
    assert_status(ctx, psi_agent_values(ctx, agent, &cell, 99, q), PSI_EUSAGE);
    psi_agent_free(ctx, agent);
    options = small(PSI_AGENT_DQN, PSI_VIEW_AUTO);
    options.learning_rate = 1e4;
    options.tau = 1;
    options.loss = PSI_TD_SQUARED;
    assert_ok(ctx, psi_agent_new(ctx, &task, &options, &agent));
    assert_status(ctx, psi_agent_play(ctx, agent, 100), PSI_ENUMERIC);
    test_assert_error_says(ctx, "learning rate");
    psi_agent_free(ctx, agent);
    psi_ctx_free(ctx);
}

static void refuse(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                   psi_status expected, const char *says)
{
    psi_agent *agent;
    assert_status(ctx, psi_agent_new(ctx, task, options, &agent), expected);
    assert_null(agent);
    test_assert_error_says(ctx, says);
}

static void test_nonsense_is_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = task_of(ctx, "point-column-world", NULL, NULL);
    const psi_task columns = task_of(ctx, "column-world", "width", "5");
    psi_net *wide = some_network(ctx, 3);
    psi_agent_options o = small(PSI_AGENT_DQN, PSI_VIEW_AUTO);
    psi_agent_kind kind;
    o.gamma = 1;
    refuse(ctx, &task, &o, PSI_EUSAGE, "gamma");
    o = small(PSI_AGENT_DQN, PSI_VIEW_AUTO);
    o.batch = 0;
    refuse(ctx, &task, &o, PSI_EUSAGE, "batch");
    o = small(PSI_AGENT_DQN, PSI_VIEW_TRUTH);
    refuse(ctx, &task, &o, PSI_EUSAGE, "view truth");
    o = small(PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_OBSERVATION);
    refuse(ctx, &task, &o, PSI_EUSAGE, "view observation");
    o = small(PSI_AGENT_REWARD_PREDICTIVE, PSI_VIEW_AUTO);
    refuse(ctx, &task, &o, PSI_EMISSING, "representation");
    o = small(PSI_AGENT_PRETRAINED, PSI_VIEW_AUTO);
    refuse(ctx, &task, &o, PSI_EMISSING, "start from");
    o.start = wide;
    refuse(ctx, &task, &o, PSI_ESHAPE, "actions");
    o = small(PSI_AGENT_PLANNER, PSI_VIEW_FEATURES);
    o.representation = wide;
    refuse(ctx, &task, &o, PSI_EUSAGE, "numbered");
    o = small(PSI_AGENT_TABULAR, PSI_VIEW_AUTO);
    o.truth_of = &columns;
    refuse(ctx, &task, &o, PSI_ESHAPE, "20 states");
    assert_status(ctx, psi_agent_kind_from_name(ctx, "sarsa", &kind), PSI_EUSAGE);
    for (int i = 0; i < PSI_AGENT_KINDS; i++) {
        assert_ok(ctx,
                  psi_agent_kind_from_name(ctx, psi_agent_kind_name((psi_agent_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    psi_net_free(ctx, wide);
    psi_ctx_free(ctx);
}

typedef struct sweep {
    psi_agent_kind kind;
    char *folder;
} sweep;

// A whole life: made, played, saved, read back.
static psi_status live(psi_ctx *ctx, void *argument)
{
    psi_status status = PSI_OK;
    const sweep *what = argument;
    psi_agent *agent = NULL, *again = NULL;
    psi_agent_score score;
    psi_task task;
    char at[512];
    snprintf(at, sizeof at, "%s/agent", what->folder);
    psi_agent_options options =
        small(what->kind, what->kind == PSI_AGENT_DQN ? PSI_VIEW_AUTO : PSI_VIEW_TRUTH);
    options.learning_starts = 2;
    TRY(psi_task_defaults(ctx, "column-world", NULL, &task));
    task.max_steps = 4;
    TRY(psi_agent_new(ctx, &task, &options, &agent));
    TRY(psi_agent_play(ctx, agent, 2));
    TRY(psi_agent_evaluate(ctx, agent, 1, &score));
    TRY(psi_agent_save(ctx, agent, at));
    TRY(psi_agent_new(ctx, &task, &options, &again));
    TRY(psi_agent_load(ctx, again, at));
done:
    psi_agent_free(ctx, agent);
    psi_agent_free(ctx, again);
    return status;
}

// Two that look through the same network.
static psi_status live_together(psi_ctx *ctx, void *argument)
{
    psi_status status = PSI_OK;
    psi_agent *agents[2] = {NULL, NULL};
    psi_agent_score scores[2];
    psi_task task;
    psi_agent_options options = small(PSI_AGENT_PLANNER, PSI_VIEW_AUTO);
    options.representation = argument;
    TRY(psi_task_defaults(ctx, "point-column-world", NULL, &task));
    task.max_steps = 4;
    for (size_t i = 0; i < 2; i++) TRY(psi_agent_new(ctx, &task, &options, &agents[i]));
    TRY(psi_agents_play(ctx, agents, 2, 2, NULL, NULL, NULL));
    TRY(psi_agents_evaluate(ctx, agents, 2, 1, scores));
done:
    for (size_t i = 0; i < 2; i++) psi_agent_free(ctx, agents[i]);
    return status;
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    sweep what = {.folder = test_folder()};
    static const psi_agent_kind SWEPT[] = {PSI_AGENT_DQN, PSI_AGENT_REWARD_PREDICTIVE,
                                           PSI_AGENT_PLANNER, PSI_AGENT_TABULAR};
    for (size_t i = 0; i < sizeof SWEPT / sizeof SWEPT[0]; i++) {
        what.kind = SWEPT[i];
        assert_true(test_fault_sweep(live, &what) >= 20);
    }
    psi_ctx *ctx = test_ctx(1);
    psi_net *net = some_network(ctx, 5);
    assert_true(test_fault_sweep(live_together, net) >= 20);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
    test_folder_free(what.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_bytes),
        cmocka_unit_test(test_resuming_is_exact),
        cmocka_unit_test(test_one_that_forgot_is_stopped),
        cmocka_unit_test(test_evaluation_leaves_no_trace),
        cmocka_unit_test(test_together_as_alone),
        cmocka_unit_test(test_together_before_images),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_targets_follow),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_nonsense_is_refused),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
