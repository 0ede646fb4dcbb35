// Agents that learn to the end: references that were measured before, the optimum where all can
// reach it, and a small transfer study from pixels.
#include "support/collect.h"
#include "support/support.h"
#include "support/truth.h"

#include <math.h>

enum { MOST_SEEDS = 10 };

typedef struct sample {
    double mean, deviation;
    psi_agent_score final; // of the last seed
} sample;

static psi_task lock(psi_ctx *ctx, const char *preset, const char *const *options)
{
    psi_task task;
    assert_ok(ctx, psi_task_defaults(ctx, "combination-lock", preset, &task));
    for (; options && *options; options += 2) {
        assert_ok(ctx, psi_task_set(ctx, &task, options[0], options[1]));
    }
    task.max_steps = 1000;
    assert_ok(ctx, psi_task_check(ctx, &task));
    return task;
}

// Reward per step of several seeds.
static sample play(psi_ctx *ctx, const psi_task *task, psi_agent_options options, size_t seeds,
                   size_t episodes)
{
    sample found = {0};
    double square = 0;
    assert_true(seeds <= MOST_SEEDS);
    for (size_t s = 0; s < seeds; s++) {
        psi_agent *agent;
        size_t n;
        options.seed = s;
        assert_ok(ctx, psi_agent_new(ctx, task, &options, &agent));
        assert_ok(ctx, psi_agent_play(ctx, agent, episodes));
        const psi_agent_episode *curve = psi_agent_curve(agent, &n);
        const double score = psi_agent_score_of(curve, n).reward_per_step;
        found.mean += score / (double)seeds;
        square += score * score / (double)seeds;
        if (s + 1 == seeds) assert_ok(ctx, psi_agent_evaluate(ctx, agent, 10, &found.final));
        psi_agent_free(ctx, agent);
    }
    found.deviation = sqrt(fmax(0, square - found.mean * found.mean));
    return found;
}

// On the latent states of the training task, known exactly, scores were measured independently
// before: a table with replay, 5 seeds. Ours must agree up to the spread of seeds, and the linear
// agent must not fall behind by more.
static void exact_latent_states_give_the_known_scores(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const char *const NONE[] = {"digits", "none", NULL};
    static const struct {
        const char *preset;
        double known;
    } CASES[] = {{"train", .042},
                 {"swap-digits", .055},
                 {"reversed-dial", .059},
                 {"left-dial-broken", .028}};
    const psi_task training = lock(ctx, "train", NONE);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const psi_task task = lock(ctx, CASES[i].preset, NONE);
        psi_agent_options options = psi_agent_defaults(PSI_AGENT_TABULAR);
        options.truth_of = &training;
        const sample table = play(ctx, &task, options, MOST_SEEDS, 100);
        options = psi_agent_defaults(PSI_AGENT_REWARD_PREDICTIVE);
        options.view = PSI_VIEW_TRUTH;
        options.truth_of = &training;
        const sample linear = play(ctx, &task, options, MOST_SEEDS, 100);
        options = psi_agent_defaults(PSI_AGENT_PLANNER);
        options.view = PSI_VIEW_TRUTH;
        options.truth_of = &training;
        const sample planner = play(ctx, &task, options, 5, 100);
        print_message("%s: table %.4f ± %.4f, linear %.4f ± %.4f, planner %.4f ± %.4f\n",
                      CASES[i].preset, table.mean, table.deviation, linear.mean, linear.deviation,
                      planner.mean, planner.deviation);
        assert_true(fabs(table.mean - CASES[i].known) < 2 * table.deviation);
        assert_true(linear.mean > CASES[i].known - 2 * table.deviation);
        assert_true(planner.mean > table.mean - 2 * table.deviation);
    }
    psi_ctx_free(ctx);
}

static void assert_optimal(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                           size_t episodes)
{
    psi_optimum best;
    assert_ok(ctx, psi_task_optimum(ctx, task, options->gamma, &best));
    const sample found = play(ctx, task, *options, 2, episodes);
    print_message("%s: %s ends with %.4f of %.4f\n", psi_task_name(task->kind),
                  psi_agent_kind_name(options->kind), found.final.reward_per_step,
                  best.reward_per_step);
    assert_true(fabs(found.final.reward_per_step - best.reward_per_step) < 1e-9);
}

static void all_agents_reach_the_optimum_of_column_world(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task task, points;
    psi_agent *first;
    psi_trajectories *data = test_collect(ctx, "point-column-world", 500, 3, NULL);
    psi_net *representation;
    assert_ok(ctx, psi_task_defaults(ctx, "column-world", NULL, &task));
    assert_ok(ctx, psi_task_check(ctx, &task));
    assert_ok(ctx, psi_task_defaults(ctx, "point-column-world", NULL, &points));
    assert_ok(ctx, psi_task_check(ctx, &points));
    assert_ok(ctx, test_truth_net(ctx, data, PSI_NET_MLP, 400, 1, &representation));
    psi_agent_options options = psi_agent_defaults(PSI_AGENT_TABULAR);
    assert_optimal(ctx, &task, &options, 60);
    for (int kind = PSI_AGENT_REWARD_PREDICTIVE; kind <= PSI_AGENT_PLANNER; kind++) {
        options = psi_agent_defaults((psi_agent_kind)kind);
        options.view = PSI_VIEW_TRUTH;
        assert_optimal(ctx, &task, &options, 60);
        options.view = PSI_VIEW_AUTO;
        options.representation = representation;
        assert_optimal(ctx, &points, &options, 100);
    }
    options = psi_agent_defaults(PSI_AGENT_DQN);
    options.net = PSI_NET_MLP;
    options.hidden = 64;
    assert_optimal(ctx, &task, &options, 100);
    // pretrained on a world whose episodes start everywhere
    psi_task everywhere = task;
    everywhere.start_column = PSI_ANY;
    assert_ok(ctx, psi_agent_new(ctx, &everywhere, &options, &first));
    assert_ok(ctx, psi_agent_play(ctx, first, 60));
    options.kind = PSI_AGENT_PRETRAINED;
    options.start = psi_agent_network(first);
    assert_optimal(ctx, &task, &options, 100);
    psi_agent_free(ctx, first);
    psi_net_free(ctx, representation);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// A lock with five digits on a dial, drawn: the representation comes from the training task, the
// middle dial then turns backwards and another combination is wanted. Who reuses it must do better
// than who learns from pixels, and all better than chance.
static void a_representation_carries_over(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { EPISODES = 60, SEEDS = 3 };
    static const char *const TRAINING[] = {"digits-per-dial", "5", "images-per-digit", "60", NULL};
    static const char *const TEST[] = {"digits-per-dial",
                                       "5",
                                       "images-per-digit",
                                       "60",
                                       "digits",
                                       "drawn-test",
                                       "reverse",
                                       "2",
                                       "goal",
                                       "3,2,*",
                                       NULL};
    psi_trajectories *data = test_collect(ctx, "combination-lock", 150, 3, TRAINING);
    const psi_task task = lock(ctx, NULL, TEST);
    psi_net *representation;
    assert_ok(ctx, test_truth_net(ctx, data, PSI_NET_CNN, 150, 1, &representation));
    psi_agent_options options = psi_agent_defaults(PSI_AGENT_RANDOM);
    const sample chance = play(ctx, &task, options, SEEDS, EPISODES);
    options = psi_agent_defaults(PSI_AGENT_REWARD_PREDICTIVE);
    options.representation = representation;
    const sample reused = play(ctx, &task, options, SEEDS, EPISODES);
    options = psi_agent_defaults(PSI_AGENT_PLANNER);
    options.representation = representation;
    const sample planner = play(ctx, &task, options, SEEDS, EPISODES);
    options = psi_agent_defaults(PSI_AGENT_DQN);
    const sample dqn = play(ctx, &task, options, SEEDS, EPISODES);
    print_message("random %.3f, dqn %.3f, reward-predictive %.3f, planner %.3f\n", chance.mean,
                  dqn.mean, reused.mean, planner.mean);
    assert_true(dqn.mean > chance.mean);
    assert_true(reused.mean > dqn.mean);
    assert_true(planner.mean > reused.mean);
    psi_net_free(ctx, representation);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_latent_states_give_the_known_scores),
        cmocka_unit_test(all_agents_reach_the_optimum_of_column_world),
        cmocka_unit_test(a_representation_carries_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
