// The public functions as nobody should call them: NULL for a path, a name or what is to be freed,
// kinds and types that there are not, shapes that fit nothing. A status with a sentence, never a
// crash; each call has a process of its own, so that one that falls is known by its name.
#include "support/support.h"

#include <psifold/psifold.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef psi_status (*misuse)(psi_ctx *ctx);
typedef struct misuse_case {
    const char *name;
    misuse call;
} misuse_case;

// What a child found: 0 refused with a sentence, else what is wrong.
static int try_one(const misuse_case *one)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        psi_ctx *ctx;
        signal(SIGSEGV, SIG_DFL); // cmocka's own handlers would go on with the other tests
        signal(SIGBUS, SIG_DFL);
        signal(SIGFPE, SIG_DFL);
        alarm(20); // nor does it go on for ever
        if (psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &ctx) != PSI_OK)
            _exit(10);
        const psi_status status = one->call(ctx);
        const bool explained = psi_error(ctx)->message[0] != '\0';
        _exit(status == PSI_OK ? 11 : status == PSI_EINTERNAL ? 12 : explained ? 0 : 13);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFSIGNALED(result) ? 1000 + WTERMSIG(result) : WEXITSTATUS(result);
}

static void try_all(const misuse_case *all, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        const int result = try_one(&all[i]);
        if (result == 0) continue;
        print_error("%s: %s (%d)\n", all[i].name,
                    result >= 1000 ? "ended by a signal"
                    : result == 11 ? "accepted"
                    : result == 12 ? "called a defect of psifold"
                    : result == 13 ? "refused without a sentence"
                                   : "ended",
                    result >= 1000 ? result - 1000 : result);
        wrong++;
    }
    if (wrong > 0) fail_msg("%zu of %zu", wrong, n);
}

#define CASE(name, ...)                                                                            \
    static psi_status name(psi_ctx *ctx)                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

// ---- paths and names ----------------------------------------------------------------------------

CASE(curve_load, psi_agent_episode *e; size_t n; return psi_curve_load_csv(ctx, NULL, &e, &n);)
CASE(curve_save, return psi_curve_save_csv(ctx, NULL, 0, NULL);)
CASE(agent_kind, psi_agent_kind kind; return psi_agent_kind_from_name(ctx, NULL, &kind);)
CASE(paper, psi_cluster_options how; return psi_cluster_paper(ctx, NULL, &how);)
CASE(run_folder, psi_run_folder *folder;
     return psi_run_folder_open(ctx, NULL, PSI_FOLDER_NEW, &folder);)
CASE(run_check_files, size_t n; return psi_run_check_files(ctx, NULL, &n);)
CASE(run_check, return psi_run_check(ctx, NULL);)
CASE(run_load, psi_run *run; return psi_run_load(ctx, NULL, &run);)
CASE(run_so_far, psi_run *run; return psi_run_load_so_far(ctx, NULL, &run);)
CASE(run_labels, int32_t *labels; return psi_run_labels(ctx, &(psi_run){0}, 1, &labels);)
CASE(run_model, psi_mdp *model; return psi_run_model(ctx, &(psi_run){0}, 1, &model);)
CASE(run_data, psi_trajectories *data; return psi_run_data(ctx, &(psi_run){0}, NULL, NULL, &data);)
CASE(read_path, psi_trajectories *data; return psi_trajectories_read(ctx, NULL, NULL, &data);)
CASE(arrays_save, return psi_arrays_save(ctx, NULL, NULL, 0);)
CASE(array_load, psi_shape shape; void *data;
     return psi_array_load(ctx, NULL, NULL, PSI_FLOAT64, &shape, &data);)
CASE(task_name, psi_task task; return psi_task_defaults(ctx, NULL, NULL, &task);)
CASE(option_name, psi_cluster_options how = psi_cluster_defaults();
     return psi_option_set(ctx, psi_cluster_option_table(), &how, NULL, "1", NULL);)
CASE(option_value, psi_cluster_options how = psi_cluster_defaults();
     return psi_option_set(ctx, psi_cluster_option_table(), &how, "gamma", NULL, NULL);)
CASE(task_option, psi_task task;
     if (psi_task_defaults(ctx, "column-world", NULL, &task) != PSI_OK) return PSI_OK;
     return psi_task_set(ctx, &task, NULL, "1");)
CASE(task_json, psi_task task; return psi_task_from_json(ctx, NULL, &task);)
CASE(model_read, psi_model *model; return psi_model_read(ctx, NULL, &model);)
CASE(net_kind, psi_net_kind kind; return psi_net_kind_from_name(ctx, NULL, &kind);)
CASE(net_load, psi_net *net; return psi_net_load(ctx, NULL, &net);)
CASE(report, const psi_report_options how = psi_report_defaults();
     return psi_report_write(ctx, &(psi_run){0}, NULL, NULL, &how, NULL);)
CASE(writer, const psi_episode_spec spec = {.observation_dtype = PSI_UINT8, .n_actions = 2};
     psi_writer * writer; return psi_writer_open(ctx, NULL, &spec, false, &writer);)

static void no_path_and_no_name(void **state)
{
    (void)state;
    static const misuse_case all[] = {
        {"psi_curve_load_csv", curve_load},
        {"psi_curve_save_csv", curve_save},
        {"psi_agent_kind_from_name", agent_kind},
        {"psi_cluster_paper", paper},
        {"psi_run_folder_open", run_folder},
        {"psi_run_check_files", run_check_files},
        {"psi_run_check", run_check},
        {"psi_run_load", run_load},
        {"psi_run_labels", run_labels},
        {"psi_run_load_so_far", run_so_far},
        {"psi_run_model", run_model},
        {"psi_run_data", run_data},
        {"psi_trajectories_read", read_path},
        {"psi_arrays_save", arrays_save},
        {"psi_array_load", array_load},
        {"psi_task_defaults", task_name},
        {"psi_option_set, its name", option_name},
        {"psi_option_set, its value", option_value},
        {"psi_task_set", task_option},
        {"psi_task_from_json", task_json},
        {"psi_model_read", model_read},
        {"psi_net_kind_from_name", net_kind},
        {"psi_net_load", net_load},
        {"psi_report_write", report},
        {"psi_writer_open", writer},
    };
    try_all(all, sizeof all / sizeof all[0]);
}

// ---- sizes, shapes, kinds -----------------------------------------------------------------------

CASE(threads, psi_ctx *other; (void)ctx;
     const psi_status status =
         psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = -1}, &other);
     return status != PSI_OK && !other ? psi_task_from_json(ctx, "", &(psi_task){0}) : PSI_OK;)
CASE(rank, psi_observations *o;
     return psi_observations_over(ctx, PSI_UINT8, &(psi_shape){PSI_MAX_RANK + 1, {1, 1, 1, 1}}, 1,
                                  "", &o);)
CASE(dtype, psi_observations *o;
     return psi_observations_over(ctx, (psi_dtype)99, &(psi_shape){1, {1}}, 1, "", &o);)
CASE(row_overflow, psi_observations *o;
     return psi_observations_over(ctx, PSI_FLOAT64, &(psi_shape){2, {SIZE_MAX, SIZE_MAX}}, 1, "",
                                  &o);)
CASE(missing_row, psi_observations *o; uint8_t out[8]; const uint64_t row = 7;
     if (psi_observations_over(ctx, PSI_UINT8, &(psi_shape){1, {2}}, 3, "abcdef", &o) !=
         PSI_OK) return PSI_OK;
     const psi_status status = psi_observations_gather(ctx, o, &row, 1, out);
     psi_observations_free(ctx, o); return status;)
CASE(collector_spec, psi_collector *c;
     return psi_collector_new(ctx, &(psi_episode_spec){.observation_dtype = (psi_dtype)99}, &c);)
CASE(no_actions, psi_collector *c;
     return psi_collector_new(ctx, &(psi_episode_spec){.observation_dtype = PSI_UINT8}, &c);)
CASE(net_of_nothing, psi_net *net;
     psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {0}}, PSI_FLOAT32, 1, 2);
     return psi_net_new(ctx, &spec, 0, &net);)
CASE(net_kind_99, psi_net *net;
     psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {2}}, PSI_FLOAT32, 1, 2);
     spec.kind = (psi_net_kind)99; return psi_net_new(ctx, &spec, 0, &net);)
CASE(cnn_of_a_vector, psi_net *net;
     psi_net_spec spec = psi_net_defaults(PSI_NET_CNN, &(psi_shape){1, {2}}, PSI_FLOAT32, 1, 2);
     return psi_net_new(ctx, &spec, 0, &net);)
CASE(gamma_2, psi_cluster_options how = psi_cluster_defaults(); psi_run * found; how.gamma = 2;
     return psi_cluster(ctx, &(psi_trajectories){0}, &how, &found);)
CASE(gamma_nan, psi_cluster_options how = psi_cluster_defaults(); psi_run * found;
     how.gamma = (double)NAN; return psi_cluster(ctx, &(psi_trajectories){0}, &how, &found);)
CASE(states_without_end, psi_cluster_options how = psi_cluster_defaults(); psi_run * found;
     how.max_latent_states = SIZE_MAX;
     const psi_status status = psi_cluster(ctx, &(psi_trajectories){0}, &how, &found);
     return status == PSI_EUSAGE ? status : PSI_OK;)
CASE(forest_that_loops, psi_grouping *g; const int32_t left[] = {0}; const int32_t right[] = {0};
     const uint32_t family[] = {0, 1}; const psi_forest forest = {1, left, right, false, 0.0};
     const psi_draws draws = {.n_families = 1, .family = family};
     return psi_group(ctx, &forest, &draws, 10, &g);)
CASE(draw_of_no_node, psi_grouping *g; const int32_t leaf[] = {-1}; const uint32_t node[] = {5};
     const uint32_t outcome[] = {0}; const uint32_t family[] = {0, 1};
     const psi_forest forest = {1, leaf, leaf, false, 0.0};
     const psi_draws draws =
         {.n = 1, .node = node, .outcome = outcome, .n_families = 1, .family = family};
     return psi_group(ctx, &forest, &draws, 10, &g);)
CASE(draw_of_no_outcome, psi_grouping *g; const int32_t leaf[] = {-1}; const uint32_t node[] = {0};
     const uint32_t outcome[] = {9}; const uint32_t family[] = {0, 1};
     const psi_forest forest = {1, leaf, leaf, false, 0.0};
     const psi_draws draws =
         {.n = 1, .node = node, .outcome = outcome, .n_families = 1, .family = family};
     return psi_group(ctx, &forest, &draws, 10, &g);)

static void sizes_and_kinds_that_there_are_not(void **state)
{
    (void)state;
    static const misuse_case all[] = {
        {"a negative number of threads", threads},
        {"five dimensions", rank},
        {"an unknown type", dtype},
        {"rows larger than memory", row_overflow},
        {"a row that does not exist", missing_row},
        {"episodes of an unknown type", collector_spec},
        {"no actions", no_actions},
        {"a network of no inputs", net_of_nothing},
        {"an unknown kind of network", net_kind_99},
        {"a convolution over a vector", cnn_of_a_vector},
        {"gamma beyond 1", gamma_2},
        {"gamma that is no number", gamma_nan},
        {"more latent states than can be counted", states_without_end},
        {"a tree that is its own child", forest_that_loops},
        {"a draw from no node", draw_of_no_node},
        {"a draw of no outcome", draw_of_no_outcome},
    };
    try_all(all, sizeof all / sizeof all[0]);
}

// ---- options of another size --------------------------------------------------------------------

// Options of a program that was built with other headers, or that nobody has filled. They end
// behind their size: nothing else may be looked at.
#define SIZES(name, type, call)                                                                    \
    static psi_status name(psi_ctx *ctx)                                                           \
    {                                                                                              \
        const size_t wrong[] = {0, sizeof(type) - sizeof(void *), sizeof(type) + sizeof(void *)};  \
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {                                \
            size_t *head = malloc(sizeof *head);                                                   \
            if (!head) return PSI_OK;                                                              \
            *head = wrong[i];                                                                      \
            const type *how = (const void *)head;                                                  \
            const psi_status status = call;                                                        \
            free(head);                                                                            \
            if (status != PSI_EUSAGE || !strstr(psi_error(ctx)->message, " bytes, "))              \
                return PSI_OK;                                                                     \
        }                                                                                          \
        return PSI_EUSAGE;                                                                         \
    }
static union { // what nobody comes to write
    void *handle;
    psi_cover_result cover;
    psi_study_result study;
    psi_interval interval;
} made;
#define INTO(type) ((type **)(void *)&made.handle)

SIZES(size_read, psi_read_options, psi_trajectories_read(ctx, "x", how, INTO(psi_trajectories)))
SIZES(size_read_all, psi_read_options,
      psi_trajectories_read_all(ctx, (const char *const[]){"x", "y"}, 2, how,
                                INTO(psi_trajectories)))
SIZES(size_cluster, psi_cluster_options,
      psi_cluster(ctx, &(psi_trajectories){0}, how, INTO(psi_run)))
SIZES(size_cover, psi_cover_options, psi_cover(ctx, &(psi_cover_points){0}, how, &made.cover))
SIZES(size_agent, psi_agent_options, psi_agent_new(ctx, NULL, how, INTO(psi_agent)))
SIZES(size_iqm, psi_bootstrap_options, psi_scores_iqm(ctx, NULL, how, &made.interval))
SIZES(size_improvement, psi_bootstrap_options,
      psi_scores_improvement(ctx, NULL, NULL, how, &made.interval))
SIZES(size_profile, psi_bootstrap_options,
      psi_scores_profile(ctx, NULL, NULL, 0, how, &made.interval))
SIZES(size_study, psi_study_options, psi_study_run(ctx, "column-world", how, &made.study))
SIZES(size_report, psi_report_options,
      psi_report_write(ctx, &(psi_run){0}, NULL, "nowhere/x", how, NULL))
SIZES(size_report_model, psi_report_options,
      psi_report_model(ctx, NULL, "x", "nowhere/x", how, NULL))
SIZES(size_matrix, psi_figure_matrix_options, psi_figure_matrix(ctx, NULL, 1, 1, NULL, how))
SIZES(size_refine, psi_refine_options, psi_refine(ctx, NULL, how, INTO(psi_refinement)))
SIZES(size_plan, psi_plan_options, psi_value_iteration(ctx, NULL, how, INTO(psi_plan)))
SIZES(size_likelihood, psi_smooth_options, psi_reward_likelihood(ctx, NULL, how, NULL))
SIZES(size_pass, psi_smooth_options,
      psi_smooth_pass(ctx, NULL, NULL, NULL, how, NULL, NULL, NULL, NULL))
SIZES(size_smooth, psi_smooth_options, psi_smooth(ctx, NULL, how, NULL, NULL, NULL))
SIZES(size_merge, psi_merge_options, psi_merge(ctx, NULL, how, INTO(psi_partition)))
SIZES(size_quotient, psi_quotient_options,
      psi_quotient_find(ctx, NULL, how, INTO(psi_quotient_result)))
SIZES(size_model_plan, psi_model_plan_options,
      psi_model_plan_find(ctx, NULL, how, INTO(psi_model_plan)))
SIZES(size_net, psi_net_spec, psi_net_new(ctx, how, 0, INTO(psi_net)))
SIZES(size_work, psi_work_options, psi_work_new(ctx, NULL, how, INTO(psi_work)))
SIZES(size_adam, psi_adam_options, psi_adam_new(ctx, NULL, how, INTO(psi_adam)))
SIZES(size_training, psi_train_options,
      psi_training_new(ctx, NULL, NULL, NULL, how, INTO(psi_training)))
SIZES(size_train, psi_train_options, psi_net_train(ctx, NULL, NULL, NULL, how))
CASE(size_context, psi_ctx *other; const psi_options how = {.threads = 1};
     if (psi_ctx_new(&how, &other) != PSI_EUSAGE || other) return PSI_OK; // it has no sentence
     return psi_task_from_json(ctx, "", &(psi_task){0});)
CASE(size_null, return psi_cluster(ctx, &(psi_trajectories){0}, NULL, INTO(psi_run));)

static void options_of_another_size(void **state)
{
    (void)state;
    static const misuse_case all[] = {
        {"psi_trajectories_read", size_read},
        {"psi_trajectories_read_all", size_read_all},
        {"psi_cluster", size_cluster},
        {"psi_cover", size_cover},
        {"psi_agent_new", size_agent},
        {"psi_scores_iqm", size_iqm},
        {"psi_scores_improvement", size_improvement},
        {"psi_scores_profile", size_profile},
        {"psi_study_run", size_study},
        {"psi_report_write", size_report},
        {"psi_report_model", size_report_model},
        {"psi_figure_matrix", size_matrix},
        {"psi_refine", size_refine},
        {"psi_value_iteration", size_plan},
        {"psi_reward_likelihood", size_likelihood},
        {"psi_smooth_pass", size_pass},
        {"psi_smooth", size_smooth},
        {"psi_merge", size_merge},
        {"psi_quotient_find", size_quotient},
        {"psi_model_plan_find", size_model_plan},
        {"psi_net_new", size_net},
        {"psi_work_new", size_work},
        {"psi_adam_new", size_adam},
        {"psi_training_new", size_training},
        {"psi_net_train", size_train},
        {"psi_ctx_new", size_context},
        {"no options at all", size_null},
    };
    try_all(all, sizeof all / sizeof all[0]);
}

// ---- what is not there is freed
// ------------------------------------------------------------------

static psi_status free_nothing(psi_ctx *ctx)
{
    psi_agent_free(ctx, NULL);
    psi_certificate_free(ctx, NULL);
    psi_run_free(ctx, NULL);
    psi_cover_free(ctx, NULL);
    psi_run_folder_close(NULL);
    psi_predictor_free(ctx, NULL);
    psi_run_errors_free(ctx, NULL);
    psi_observations_free(ctx, NULL);
    psi_trajectories_free(ctx, NULL);
    psi_summary_free(ctx, NULL);
    psi_writer_discard(NULL);
    psi_collector_discard(NULL);
    psi_array_free(ctx, NULL);
    psi_env_free(ctx, NULL);
    psi_task_model_free(ctx, NULL);
    psi_grouping_free(ctx, NULL);
    psi_partition_free(ctx, NULL);
    psi_mdp_free(ctx, NULL);
    psi_counts_free(ctx, NULL);
    psi_lsfm_free(ctx, NULL);
    psi_refinement_free(ctx, NULL);
    psi_plan_free(ctx, NULL);
    psi_model_free(ctx, NULL);
    psi_quotient_free(ctx, NULL);
    psi_model_plan_free(ctx, NULL);
    psi_net_free(ctx, NULL);
    psi_work_free(ctx, NULL);
    psi_adam_free(ctx, NULL);
    psi_training_free(ctx, NULL);
    psi_ctx_free(NULL);
    return psi_task_from_json(ctx, "", &(psi_task){0}); // refused: we came to the end
}

static void nothing_is_freed(void **state)
{
    (void)state;
    try_all(&(misuse_case){"free(NULL)", free_nothing}, 1);
}

// ---- what was freed is used ---------------------------------------------------------------------

#if defined(PSI_DEBUG_HANDLES)
static const psi_shape PAIR = {1, {2}};

static psi_net *freed_net_of(psi_ctx *ctx)
{
    psi_net *net;
    const psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &PAIR, PSI_FLOAT32, 1, 2);
    if (psi_net_new(ctx, &spec, 0, &net) != PSI_OK) _exit(10);
    psi_net_free(ctx, net);
    return net;
}

// One state that stays as it is.
static psi_mdp *mdp_of(psi_ctx *ctx)
{
    psi_mdp *mdp;
    const uint64_t row[] = {0};
    const int32_t next[] = {0};
    const double probability[] = {1.0}, reward[] = {1.0};
    if (psi_mdp_from_entries(ctx, 1, 1, 1, row, next, probability, reward, NULL, &mdp) != PSI_OK)
        _exit(10);
    return mdp;
}

static psi_collector *collector_of(psi_ctx *ctx)
{
    psi_collector *made;
    const psi_episode_spec spec = {
        .observation_dtype = PSI_UINT8, .observation_shape = PAIR, .n_actions = 2};
    if (psi_collector_new(ctx, &spec, &made) != PSI_OK) _exit(10);
    return made;
}

static psi_trajectories *freed_data_of(psi_ctx *ctx)
{
    const psi_episode one = {.length = 1,
                             .observations = "abcd",
                             .actions = (const int32_t[]){0},
                             .rewards = (const double[]){1.0},
                             .terminated = true};
    psi_collector *from = collector_of(ctx);
    psi_trajectories *data;
    if (psi_collector_add(from, &one) != PSI_OK || psi_collector_finish(from, &data) != PSI_OK)
        _exit(10);
    psi_trajectories_free(ctx, data);
    return data;
}

static psi_env *freed_env_of(psi_ctx *ctx)
{
    psi_task task;
    psi_env *env;
    if (psi_task_defaults(ctx, "column-world", NULL, &task) != PSI_OK) _exit(10);
    if (psi_env_new(ctx, &task, 1, 0, &env) != PSI_OK) _exit(10);
    psi_env_free(ctx, env);
    return env;
}

CASE(freed_net, return psi_net_save(ctx, freed_net_of(ctx), "nowhere/net");)
CASE(freed_net_twice, psi_net *net = freed_net_of(ctx); psi_net_free(ctx, net);
     return psi_net_n_features(net) == 0 && !psi_net_spec_of(net) ? PSI_EUSAGE : PSI_OK;)
CASE(freed_work, const psi_work_options how = {.size = sizeof how, .max_batch = 1}; psi_work * work;
     psi_net * net; float in[2] = {0}; float out[2];
     const psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &PAIR, PSI_FLOAT32, 1, 2);
     if (psi_net_new(ctx, &spec, 0, &net) != PSI_OK) return PSI_OK;
     if (psi_work_new(ctx, net, &how, &work) != PSI_OK) return PSI_OK; psi_work_free(ctx, work);
     return psi_work_outputs(work) ? PSI_OK : psi_net_predict(ctx, net, work, in, 1, NULL, out);)
CASE(freed_observations, psi_observations *rows; uint8_t out[2];
     if (psi_observations_over(ctx, PSI_UINT8, &PAIR, 1, "ab", &rows) != PSI_OK) return PSI_OK;
     psi_observations_free(ctx, rows); const uint64_t first = 0;
     return psi_observations_gather(ctx, rows, &first, 1, out);)
CASE(freed_collector, psi_collector *from = collector_of(ctx); psi_trajectories * data;
     psi_collector_discard(from); psi_collector_discard(from);
     return psi_collector_finish(from, &data);)
CASE(freed_collector_add, psi_collector *from = collector_of(ctx); psi_collector_discard(from);
     return psi_collector_add(from, &(psi_episode){.length = 1});)
CASE(freed_writer, const psi_episode_spec spec = {.observation_dtype = PSI_UINT8, .n_actions = 2};
     psi_writer * to; char *folder = test_folder();
     if (psi_writer_open(ctx, test_path(folder, "x.npz"), &spec, false, &to) !=
         PSI_OK) return PSI_OK;
     psi_writer_discard(to); test_folder_free(folder); return psi_writer_commit(to);)
CASE(freed_folder, psi_run_folder *place; psi_run * run; char *folder = test_folder();
     const psi_cluster_options how = psi_cluster_defaults();
     if (psi_run_folder_open(ctx, test_path(folder, "run"), PSI_FOLDER_NEW, &place) !=
         PSI_OK) return PSI_OK;
     psi_run_folder_close(place); psi_run_folder_close(place); test_folder_free(folder);
     return psi_cluster_into(place, NULL, 0, &(psi_trajectories){0}, &how, &run);)
CASE(freed_env, uint8_t out[4096]; return psi_env_reset(ctx, freed_env_of(ctx), NULL, out);)
CASE(freed_env_twice, psi_env *env = freed_env_of(ctx); psi_env_free(ctx, env);
     return psi_env_count(env) == 0 && !psi_env_space(env) ? PSI_EUSAGE : PSI_OK;)
CASE(freed_data, psi_run *run; const psi_cluster_options how = psi_cluster_defaults();
     return psi_cluster(ctx, freed_data_of(ctx), &how, &run);)
CASE(freed_data_twice, psi_summary *summary; psi_trajectories *data = freed_data_of(ctx);
     psi_trajectories_free(ctx, data); return psi_trajectories_summary(ctx, data, &summary);)
CASE(freed_mdp, psi_mdp *mdp = mdp_of(ctx); psi_plan * plan; psi_mdp_free(ctx, mdp);
     psi_mdp_free(ctx, mdp); return psi_value_iteration(ctx, mdp, NULL, &plan);)
CASE(freed_model, psi_mdp *mdp = mdp_of(ctx); psi_model * model; psi_quotient_result * found;
     if (psi_model_from_mdp(ctx, mdp, &model) != PSI_OK) return PSI_OK; psi_model_free(ctx, model);
     psi_model_free(ctx, model); return psi_quotient_find(ctx, model, NULL, &found);)
CASE(freed_partition, psi_partition *c; const int32_t key[] = {0};
     if (psi_partition_new(ctx, 1, key, &c) != PSI_OK) return PSI_OK; psi_partition_free(ctx, c);
     psi_partition_free(ctx, c); return psi_partition_check(ctx, c);)
CASE(freed_long_ago, psi_net *net = freed_net_of(ctx);
     for (int i = 0; i < 1000; i++) psi_mdp_free(ctx, mdp_of(ctx));
     return psi_net_save(ctx, net, "nowhere/net");)

// Handles are the process's, not the context's: one that lives may be used and freed with another,
// and what was freed with another is found out where the handle itself is asked.
static void a_handle_may_change_its_context(void **state)
{
    (void)state;
    psi_ctx *first = test_ctx(1), *second = test_ctx(1);
    psi_plan *plan;
    psi_mdp *mdp = mdp_of(first);
    psi_net *net = freed_net_of(first);
    assert_int_equal(psi_value_iteration(second, mdp, NULL, &plan), PSI_OK);
    psi_plan_free(first, plan);
    psi_mdp_free(second, mdp);
    assert_int_equal(psi_value_iteration(second, mdp, NULL, &plan), PSI_EUSAGE);
    test_assert_error_says(second, "freed");
    assert_null(plan);
    assert_int_equal(psi_net_n_features(net), 0);
    test_assert_error_says(first, "freed");
    psi_ctx_free(second);
    psi_ctx_free(first);
}
#endif

static void what_was_freed_is_refused(void **state)
{
    (void)state;
#if defined(PSI_DEBUG_HANDLES)
    static const misuse_case all[] = {
        {"network", freed_net},
        {"network, freed twice", freed_net_twice},
        {"workspace", freed_work},
        {"observations", freed_observations},
        {"collector, finished", freed_collector},
        {"collector, added to", freed_collector_add},
        {"writer", freed_writer},
        {"run folder", freed_folder},
        {"environments", freed_env},
        {"environments, freed twice", freed_env_twice},
        {"trajectories", freed_data},
        {"trajectories, freed twice", freed_data_twice},
        {"MDP", freed_mdp},
        {"model", freed_model},
        {"partition", freed_partition},
        {"network, and a thousand handles after it", freed_long_ago},
    };
    try_all(all, sizeof all / sizeof all[0]);
#else
    skip();
#endif
}

// A context that was freed has no place to remember it: the address sanitizer stops the first
// access.
#if defined(__SANITIZE_ADDRESS__)
enum { FOUND = 1 }; // how the sanitizer ends a process

CASE(freed_context, psi_ctx *other;
     if (psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &other) !=
         PSI_OK) return PSI_OK;
     psi_ctx_free(other); (void)ctx; psi_run * run; return psi_run_load(other, "nowhere", &run);)
#endif

static void a_freed_context_is_found_out(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    assert_int_equal(try_one(&(misuse_case){"context", freed_context}), FOUND);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_path_and_no_name),
        cmocka_unit_test(sizes_and_kinds_that_there_are_not),
        cmocka_unit_test(options_of_another_size),
        cmocka_unit_test(nothing_is_freed),
        cmocka_unit_test(what_was_freed_is_refused),
#if defined(PSI_DEBUG_HANDLES)
        cmocka_unit_test(a_handle_may_change_its_context),
#endif
        cmocka_unit_test(a_freed_context_is_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
