// What a run calls other observations, and what it says of those unlike any that it has seen.
#include "support/runs.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    psi_ctx *ctx;
    char *folder;
    psi_trajectories *data;
    psi_run *run;
    psi_predictor *predictor;
} fixture;

static fixture make_run(const char *task, uint64_t episodes)
{
    fixture f = {.ctx = test_ctx(2), .folder = test_folder()};
    const psi_cluster_options how = psi_cluster_defaults();
    test_cluster_run(f.ctx, f.folder, task, episodes, NULL, &how);
    assert_ok(f.ctx, psi_trajectories_read(f.ctx, test_path(f.folder, "data.npz"), NULL, &f.data));
    assert_ok(f.ctx, psi_run_load(f.ctx, test_path(f.folder, "run"), &f.run));
    assert_ok(f.ctx, psi_predictor_new(f.ctx, f.run, &f.predictor));
    return f;
}

static void free_run(fixture *f)
{
    psi_predictor_free(f->ctx, f->predictor);
    psi_run_free(f->ctx, f->run);
    psi_trajectories_free(f->ctx, f->data);
    psi_ctx_free(f->ctx);
    test_folder_free(f->folder);
}

// The labels of rows with as many bytes as an observation of f has.
static void ask(const fixture *f, size_t n, const void *rows, double least, int32_t *labels,
                float *confidence)
{
    psi_observations *asked;
    assert_ok(f->ctx, psi_observations_over(f->ctx, psi_observations_dtype(f->data->observations),
                                            psi_observations_shape(f->data->observations), n, rows,
                                            &asked));
    assert_ok(f->ctx, psi_predict(f->ctx, f->predictor, asked, least, labels, confidence));
    psi_observations_free(f->ctx, asked);
}

static void a_table_knows_what_it_has_seen(void **state)
{
    (void)state;
    fixture f = make_run("column-world", 300);
    assert_null(f.run->representation);
    const size_t n = f.data->n_observations;
    const size_t bytes = psi_observations_row_bytes(f.data->observations);
    int32_t *labels = calloc(n, sizeof *labels);
    float *confidence = calloc(n, sizeof *confidence);
    assert_ok(f.ctx,
              psi_predict(f.ctx, f.predictor, f.data->observations, 0.0, labels, confidence));
    for (size_t e = 0; e < f.data->n_episodes; e++) {
        for (uint64_t t = f.data->episode_offsets[e]; t < f.data->episode_offsets[e + 1]; t++) {
            assert_int_equal(labels[t + e], f.run->labels[t + e]);
            assert_true(confidence[t + e] > 0.5f && confidence[t + e] <= 1.0f);
        }
    }
    unsigned char *strange = malloc(bytes);
    memset(strange, 0x5a, bytes);
    ask(&f, 1, strange, 0.0, labels, confidence);
    assert_int_equal(labels[0], -1);
    assert_true(confidence[0] == 0.0f);
    // nothing is surer than sure
    assert_ok(f.ctx, psi_predict(f.ctx, f.predictor, f.data->observations, 1.1, labels, NULL));
    for (size_t i = 0; i < n; i++) assert_int_equal(labels[i], -1);
    free(strange);
    free(confidence);
    free(labels);
    free_run(&f);
}

static void other_shapes_and_types_are_refused(void **state)
{
    (void)state;
    fixture f = make_run("column-world", 100);
    const double row[3] = {0};
    int32_t label;
    psi_observations *asked;
    assert_ok(f.ctx,
              psi_observations_over(f.ctx, PSI_FLOAT64, &(psi_shape){1, {3}}, 1, row, &asked));
    assert_status(f.ctx, psi_predict(f.ctx, f.predictor, asked, 0.0, &label, NULL), PSI_ESHAPE);
    test_assert_error_says(f.ctx, "float64");
    psi_observations_free(f.ctx, asked);
    free_run(&f);
}

static void a_network_knows_what_is_unlike_anything_seen(void **state)
{
    (void)state;
    fixture f = make_run("point-column-world", 300);
    assert_non_null(f.run->representation);
    const size_t n = f.data->n_observations;
    int32_t *labels = calloc(n, sizeof *labels);
    size_t unknown = 0, other = 0;
    assert_ok(f.ctx, psi_predict(f.ctx, f.predictor, f.data->observations, 0.0, labels, NULL));
    for (size_t i = 0; i < n; i++) {
        unknown += labels[i] == -1;
        other += labels[i] != f.run->labels[i];
    }
    assert_int_equal(unknown, 0);
    assert_true(other < n / 20); // the ends of episodes among them
    const float far[2][2] = {{40.0f, -40.0f}, {-100.0f, 100.0f}};
    int32_t found[2];
    float confidence[2];
    ask(&f, 2, far, 0.0, found, confidence);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(found[i], -1);
        assert_true(confidence[i] == 0.0f);
    }
    free(labels);
    free_run(&f);
}

static psi_status load_and_ask(psi_ctx *ctx, void *argument)
{
    const fixture *f = argument;
    psi_predictor *predictor = NULL;
    int32_t labels[64];
    psi_observations *asked = NULL;
    const void *rows = psi_observations_data(f->data->observations);
    psi_status status = psi_predictor_new(ctx, f->run, &predictor);
    if (status == PSI_OK) {
        status =
            psi_observations_over(ctx, psi_observations_dtype(f->data->observations),
                                  psi_observations_shape(f->data->observations), 64, rows, &asked);
    }
    if (status == PSI_OK) status = psi_predict(ctx, predictor, asked, 0.0, labels, NULL);
    psi_observations_free(ctx, asked);
    psi_predictor_free(ctx, predictor);
    return status;
}

static void every_refusal_of_memory_is_survived(void **state)
{
    (void)state;
    fixture f = make_run("column-world", 60);
    assert_true(test_fault_sweep(load_and_ask, &f) > 5);
    free_run(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_knows_what_it_has_seen),
        cmocka_unit_test(other_shapes_and_types_are_refused),
        cmocka_unit_test(a_network_knows_what_is_unlike_anything_seen),
        cmocka_unit_test(every_refusal_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
