// Table 2 on a lock of four patterns: what is interrupted goes on to the same end, and kept scores
// that are known make a table, figures and claims that are known.
#include "support/studies.h"
#include "support/support.h"

#include "base/context.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEEDS = 2 };

static const char *const KEPT[] = {"learning_rate-0.0001",
                                   "learning_rate-0.001",
                                   "learning_rate-0.01",
                                   "learning_rate-0.1",
                                   "batch-100",
                                   "batch-500",
                                   "buffer-100",
                                   "buffer-1000",
                                   "exploration_episodes-5",
                                   "exploration_episodes-20",
                                   "exploration_episodes-50",
                                   "exploration_episodes-80"};

static psi_study_options small(const char *output, test_listener *all)
{
    psi_study_options options = test_study_options(output, all);
    options.digits_per_dial = 2;
    options.seeds = 1;
    options.agent_episodes = 1;
    return options;
}

static const char *file_of(const char *folder, size_t setting, size_t seed, const char *file)
{
    char name[128];
    snprintf(name, sizeof name, "runs/%s/seed-%zu/%s", KEPT[setting], seed, file);
    return test_path(folder, name);
}

static size_t count_finished(const char *folder)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(KEPT); i++) {
        n += access(file_of(folder, i, 0, "result.json"), F_OK) == 0;
    }
    return n;
}

// The sweep that all tests look at, and how often it asked for memory.
typedef struct made {
    char *output, folder[1024];
    long allocations;
} made;

static int make_sweep(void **state)
{
    static made sweep;
    test_listener all = {.text = ""};
    test_faults counting = {0};
    if (!psi_figures_possible()) return 0;
    sweep.output = test_folder();
    snprintf(sweep.folder, sizeof sweep.folder, "%s/sweep/quick", sweep.output);
    const psi_study_options options = small(sweep.output, &all);
    psi_ctx *ctx = test_faulty_ctx(&counting, 1);
    test_study_run(ctx, "sweep", &options);
    psi_ctx_free(ctx);
    assert_int_equal(count_finished(sweep.folder), COUNT(KEPT));
    sweep.allocations = counting.count;
    *state = &sweep;
    return 0;
}

static int remove_sweep(void **state)
{
    made *sweep = *state;
    if (sweep) test_folder_free(sweep->output);
    return 0;
}

// Memory is refused in the middle. What was finished till then is kept, the rest is played when
// there is memory, and every curve is, to the last byte, that of a sweep at one go.
static void what_was_interrupted_goes_on(void **state)
{
    const made *whole = *state;
    if (!whole) skip();
    char *output = test_folder(), folder[1024];
    test_listener all = {.text = ""};
    test_faults faults = {.fail_at = whole->allocations / 2};
    const psi_study_options options = small(output, &all);
    psi_ctx *ctx = test_ctx(1), *short_of_memory = test_faulty_ctx(&faults, 1);
    snprintf(folder, sizeof folder, "%s/sweep/quick", output);
    test_study_refused(short_of_memory, "sweep", &options, PSI_ENOMEM, "memory");
    psi_ctx_free(short_of_memory);
    assert_int_equal(faults.live, 0);
    assert_in_range(count_finished(folder), 1, COUNT(KEPT) - 1);
    assert_int_not_equal(access(test_path(folder, "scores.json"), F_OK), 0);
    assert_int_not_equal(access(test_path(folder, "results.json"), F_OK), 0);
    test_study_run(ctx, "sweep", &options);
    assert_int_equal(count_finished(folder), COUNT(KEPT));
    for (size_t i = 0; i < COUNT(KEPT); i++) {
        char name[128];
        snprintf(name, sizeof name, "runs/%s/seed-0/curve.csv", KEPT[i]);
        char *expected = test_text(ctx, whole->folder, name);
        test_assert_text(ctx, folder, name, expected);
        base_free(ctx, expected);
    }
    psi_ctx_free(ctx);
    test_folder_free(output);
}

// ---- known scores -------------------------------------------------------------------------------

// Puts a score into the place of what the trial with seed 0 came to, and makes one of this seed of
// it.
static void set_score(psi_ctx *ctx, const char *folder, size_t setting, size_t seed, double score,
                      bool diverged)
{
    json_t *json;
    assert_ok(ctx, base_json_load(ctx, file_of(folder, setting, 0, "result.json"), 1 << 20, &json));
    json_t *options = json_object_get(json_object_get(json, "trial"), "options"),
           *result = json_object_get(json, "result");
    json_object_set_new(options, "seed", json_integer((json_int_t)seed));
    json_object_set_new(result, "reward_per_step", json_real(score));
    json_object_set_new(result, "diverged", json_boolean(diverged));
    if (seed > 0) {
        assert_int_equal(mkdir(file_of(folder, setting, seed, ""), 0777), 0);
        assert_int_equal(link(file_of(folder, setting, 0, "curve.csv"),
                              file_of(folder, setting, seed, "curve.csv")),
                         0);
    }
    assert_ok(ctx, base_json_save(ctx, file_of(folder, setting, seed, "result.json"), json));
    json_decref(json);
}

// The paper's own values earn 0.40 and 0.42; a learning rate of 0.1 always more, though one
// diverged; all others less, but for 20 episodes of exploration, which earn the same.
static double known(size_t setting, size_t seed)
{
    if (setting == 1 || setting == 9) return 0.40 + 0.02 * (double)seed;
    if (setting == 3) return 0.45 + 0.03 * (double)seed;
    return 0.01 * (double)(setting + 1) + 0.005 * (double)seed;
}

static void check_table(psi_ctx *ctx, const char *folder, const test_listener *all)
{
    json_t *scores = test_load(ctx, folder, "scores.json");
    const json_t *table = json_object_get(scores, "reward_per_step"),
                 *bad = json_object_get(scores, "diverged");
    static const struct {
        const char *option, *value;
        size_t setting; // that it was kept as
    } ROWS[] = {{"learning_rate", "0.0001", 0},
                {"learning_rate", "0.1", 3},
                {"batch", "100", 4},
                {"batch", "200", 1},
                {"batch", "500", 5},
                {"buffer", "1000", 7},
                {"buffer", "10000", 1},
                {"exploration_episodes", "10", 1},
                {"exploration_episodes", "20", 9},
                {"exploration_episodes", "80", 11}};
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const json_t *row = json_object_get(json_object_get(table, ROWS[i].option), ROWS[i].value),
                     *count = json_object_get(json_object_get(bad, ROWS[i].option), ROWS[i].value);
        assert_int_equal(json_array_size(row), SEEDS);
        for (size_t s = 0; s < SEEDS; s++) {
            assert_true(json_real_value(json_array_get(row, s)) == known(ROWS[i].setting, s));
        }
        assert_int_equal(json_integer_value(count), ROWS[i].setting == 3);
    }
    // the interquartile mean of two is their mean
    test_assert_heard(all, "\nlearning_rate                 0.1     0.4650 [0.4500, 0.4800]  some "
                           "diverged\n");
    test_assert_heard(all, "\nbuffer                      10000     0.4100 [0.4000, 0.4200]\n");
    json_decref(scores);
}

static void check_figure(psi_ctx *ctx, const char *folder)
{
    static const size_t SETTINGS[] = {0, 1, 2, 3};
    double bars[8], seeds[16], line[16];
    assert_int_equal(test_figure_numbers(ctx, folder, "learning-rate.dat", 0, bars, 8), 8);
    assert_int_equal(test_figure_numbers(ctx, folder, "learning-rate.dat", 1, seeds, 16), 16);
    assert_int_equal(test_figure_numbers(ctx, folder, "learning-rate.dat", 2, line, 16), 16);
    for (size_t i = 0; i < 4; i++) {
        const double first = known(SETTINGS[i], 0), second = known(SETTINGS[i], 1);
        assert_true(fabs(bars[2 * i + 1] - (first + second) / 2) < 1e-8);
        assert_true(fabs(seeds[4 * i + 1] - first) < 1e-8);
        assert_true(fabs(seeds[4 * i + 3] - second) < 1e-8);
        assert_true(line[4 * i + 1] == 0.5); // two steps to the reward
    }
}

static void check_claims(psi_ctx *ctx, const char *folder)
{
    json_t *results = test_load(ctx, folder, "results.json");
    bool holds;
    assert_int_equal(json_array_size(json_object_get(results, "claims")), 4);
    assert_string_equal(test_claim(results, "learning rate: nothing beats 0.001", &holds),
                        "0.1 comes closest, or beyond: probability 1.00 [1.00, 1.00] of beating "
                        "it, 2 seeds");
    assert_false(holds);
    assert_string_equal(test_claim(results, "batch size: nothing beats 200", &holds),
                        "100 comes closest, or beyond: probability 0.00 [0.00, 0.00] of beating "
                        "it, 2 seeds");
    assert_true(holds);
    const char *same = test_claim(results, "episodes until exploration ends: nothing", &holds);
    assert_non_null(strstr(same, "20 comes closest, or beyond: probability 0.50"));
    assert_true(holds); // its interval is not above one half
    assert_true(test_number(results, "optimum") == 0.5);
    assert_true(test_number(results, "seeds") == SEEDS);
    json_decref(results);
}

static void kept_scores_make_the_table(void **state)
{
    const made *sweep = *state;
    if (!sweep) skip();
    psi_ctx *ctx = test_ctx(1);
    const char *folder = sweep->folder;
    test_listener all = {.text = ""};
    psi_study_options options = small(sweep->output, &all);
    for (size_t i = 0; i < COUNT(KEPT); i++) {
        for (size_t s = 0; s < SEEDS; s++) {
            set_score(ctx, folder, i, s, known(i, s), i == 3 && s == 0);
        }
    }
    // finished is finished, and what is asked for otherwise is something else
    test_study_run(ctx, "sweep", &options);
    test_assert_heard(&all, "finished before");
    options.net = "resnet18";
    test_study_refused(ctx, "sweep", &options, PSI_EUSAGE, "with another net");
    assert_int_equal(unlink(test_path(folder, "results.json")), 0);
    test_study_refused(ctx, "sweep", &options, PSI_EUSAGE, "learning_rate-0.0001/seed-0 is there");
    test_assert_error_says(ctx, "with another net");
    options.net = "auto";
    options.agent_episodes = 2;
    test_study_refused(ctx, "sweep", &options, PSI_EUSAGE, "with another episodes");
    options.agent_episodes = 1;
    options.seeds = SEEDS;
    all = (test_listener){.text = ""};
    test_study_run(ctx, "sweep", &options);
    check_table(ctx, folder, &all);
    check_figure(ctx, folder);
    check_claims(ctx, folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_interrupted_goes_on),
        cmocka_unit_test(kept_scores_make_the_table),
    };
    return cmocka_run_group_tests(tests, make_sweep, remove_sweep);
}
