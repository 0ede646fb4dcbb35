// Models in files: what is written is read again as the same model, and what is wrong with a file
// is told in one sentence.
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"
#include "mdp/model_formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Four states: the last terminal, one with two choices, thirds that no decimal holds.
static psi_model *sample(psi_ctx *ctx, bool named)
{
    static const uint64_t choices[] = {0, 2, 3, 4, 4}, offsets[] = {0, 3, 4, 5, 7};
    static const int32_t next[] = {0, 1, 2, 3, 2, 0, 3}, action[] = {0, 1, 0, 1};
    static const double probability[] = {1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0, 1.0, 0.1, 0.9};
    psi_model *model;
    psi_model_reward *reward;
    uint8_t *holds;
    assert_ok(ctx, psi_model_new(ctx, 4, 4, 7, &model));
    memcpy(model->choices, choices, sizeof choices);
    memcpy(model->offsets, offsets, sizeof offsets);
    memcpy(model->next, next, sizeof next);
    memcpy(model->action, action, sizeof action);
    memcpy(model->probability, probability, sizeof probability);
    model->n_actions = 2;
    model->initial[0] = 1;
    assert_ok(ctx, psi_model_add_label(ctx, model, "goal", &holds));
    holds[3] = 1;
    assert_ok(ctx, psi_model_add_reward(ctx, model, "gain", true, true, &reward));
    reward->choice[1] = 0.25, reward->choice[3] = -1e-3, reward->state[2] = 7.0;
    if (named) {
        assert_ok(ctx, base_alloc_zero(ctx, 2, sizeof(char *), &model->action_names));
        assert_ok(ctx, base_copy_text(ctx, "left", &model->action_names[0]));
        assert_ok(ctx, base_copy_text(ctx, "right", &model->action_names[1]));
    }
    return model;
}

// The same but for the choice that a terminal state is given.
static void assert_same_model(const psi_model *a, const psi_model *b, bool annotated)
{
    assert_int_equal(a->n_states, b->n_states);
    for (size_t s = 0; s < a->n_states; s++) {
        const uint64_t first = a->choices[s], n = a->choices[s + 1] - first;
        const uint64_t other = b->choices[s];
        if (annotated) assert_int_equal(a->initial[s], b->initial[s]);
        if (n == 0) {
            assert_true(b->choices[s + 1] - other <= 1);
            continue;
        }
        assert_int_equal(b->choices[s + 1] - other, n);
        for (uint64_t c = 0; c < n; c++) {
            const uint64_t i = a->offsets[first + c], j = b->offsets[other + c];
            const uint64_t length = a->offsets[first + c + 1] - i;
            assert_int_equal(b->offsets[other + c + 1] - j, length);
            assert_memory_equal(a->next + i, b->next + j, length * sizeof *a->next);
            for (uint64_t k = 0; k < length; k++)
                assert_true(a->probability[i + k] == b->probability[j + k]);
            if (!annotated) continue;
            assert_true(a->rewards[0].choice[first + c] == b->rewards[0].choice[other + c]);
            if (a->action_names) {
                assert_string_equal(a->action_names[a->action[first + c]],
                                    b->action_names[b->action[other + c]]);
            }
        }
        if (!annotated) continue;
        assert_true(a->rewards[0].state[s] == b->rewards[0].state[s]);
        assert_int_equal(a->labels[0].holds[s], b->labels[0].holds[s]);
    }
    if (annotated) assert_string_equal(a->rewards[0].name, b->rewards[0].name);
}

static void test_round_trips(void **state)
{
    (void)state;
    static const char *const names[] = {"m.drn", "m.umb", "m.tra", "m.json"};
    psi_ctx *ctx = test_ctx(2);
    char *folder = test_folder();
    for (size_t i = 0; i < 8; i++) {
        psi_model *model = sample(ctx, i >= 4), *read;
        const char *path = test_path(folder, names[i % 4]);
        assert_ok(ctx, psi_model_write(ctx, model, path));
        assert_ok(ctx, psi_model_read(ctx, path, &read));
        const bool annotated = i % 4 < 2;
        assert_same_model(model, read, annotated);
        if (i % 4 == 2) { // one reward of the tables' choices is what their transitions give
            assert_true(fabs(read->rewards[0].choice[1] - 0.25) < 1e-15);
            assert_true(read->rewards[0].state[2] == 7.0 && read->initial[0]);
        }
        psi_model_free(ctx, read);
        psi_model_free(ctx, model);
    }
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// ---- what is wrong with them --------------------------------------------------------------------

typedef struct bad_text {
    const char *text;
    psi_status status;
    const char *says;
} bad_text;

#define DRN "@type: MDP\n@parameters\n\n@reward_models\nr\n@nr_states\n2\n@nr_choices\n2\n@model\n"

static void test_bad_texts(void **state)
{
    (void)state;
    static const bad_text cases[] = {
        {DRN "state 0 [0]\n\taction 0 [0]\n\t\t0 : 0.5\nstate 1 [0]\n\taction 0 [0]\n\t\t1 : 1\n",
         PSI_EDATA, "choice 0 of state 0 sum to 0.5"},
        {DRN "state 0 [0]\n\taction 0 [0]\n\t\t2 : 1\n", PSI_EFORMAT,
         "line 13: a transition to state 2 of a model of 2"},
        {DRN "state 0 [0]\n\taction 0 [0]\n\t\t1 : 1\nstate 0 [0]\n", PSI_EFORMAT,
         "line 14: state 0 is declared twice"},
        {DRN "state 1 [0]\n", PSI_EFORMAT, "state 0 is missing"},
        {DRN "state 0 [0]\n\taction 0 [0]\n\t\t1 : 1\n", PSI_EFORMAT,
         "2 states are announced, 1 are there"},
        {DRN "state 0 [0, 1]\n", PSI_EFORMAT, "more than the 1 declared rewards"},
        {DRN "state 0 [0]\n\taction 0 [0]\n\t\t1 : x\n", PSI_EFORMAT,
         "a number is expected at 'x'"},
        {DRN "state 0 [0]\n\t\t1 : 1\n", PSI_EFORMAT, "before the first action of its state"},
        {DRN "state 0 [0]\n\taction 0 [0]\n\t\t1 : nan\n", PSI_EFORMAT, "a number is expected"},
        {"@type: MDP\n@nr_states\n1000000000000\n@model\n", PSI_EFORMAT,
         "1000000000000 states are announced in a file of 5 lines"},
        {"@type: CTMC\n@nr_states\n1\n@model\n", PSI_EUNSUPPORTED, "only DTMC and MDP"},
        {"@type: DTMC\n@nr_states\n1\n@model\nstate 0 !2 init\n", PSI_EUNSUPPORTED, "exit rates"},
        {"@type: DTMC\n@nr_states\n1\n@model\nstate 0\n\taction 0\n\t\t0 : 1\n\taction 1\n\t\t0 : "
         "1",
         PSI_EDATA, "of a Markov chain has 2 choices"},
        {"@type: MDP\n", PSI_EFORMAT, "ends before @model"},
        {"{\"0\": {\"0\": [[1.0, 0, 0.0, false]]}, \"0\": {}}", PSI_EFORMAT,
         "state 0 is named twice"},
        {"{\"0\": {\"0\": [[0.5, 0, 0.0, false]]}}", PSI_EDATA, "sum to 0.5"},
        {"{\"0\": {\"0\": [[1.0, 7, 0.0, false]]}}", PSI_EDATA, "leads to state 7 of 1"},
        {"{\"0\": {\"0\": [[1.0, 0, 0.0, false]], \"0\": []}}", PSI_EFORMAT,
         "action 0 of state 0 is named twice"},
        {"{\"0\": {\"0\": [[1.0, 0, 0.0, false", PSI_EFORMAT, "an outcome has four parts"},
        {"hello", PSI_EFORMAT, "is not a model"},
        {"", PSI_EFORMAT, "is not a model"},
    };
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        psi_model *model;
        assert_status(ctx,
                      mdp_read_model(ctx, "file", cases[i].text, strlen(cases[i].text), &model),
                      cases[i].status);
        assert_null(model);
        test_assert_error_says(ctx, cases[i].says);
    }
    psi_ctx_free(ctx);
}

static void test_bad_tables(void **state)
{
    (void)state;
    static const bad_text cases[] = {
        {"2 2\n0 1 1\n1 1 0.5\n", PSI_EDATA, "choice 0 of state 1 sum to 0.5"},
        {"2 2\n0 1 1\n2 1 1\n", PSI_EFORMAT, "line 3: state 2 of a model of 2"},
        {"2 3\n0 1 1\n1 1 0.5\n0 1 0.5\n", PSI_EFORMAT, "stands twice or out of order"},
        {"2 3\n0 1 1\n1 1 1\n", PSI_EFORMAT, "3 transitions are announced, 2 are there"},
        {"1000000000000 1\n0 0 1\n", PSI_EFORMAT, "1000000000000 states"},
        {"2 2 2\n0 1 1 1\n", PSI_EFORMAT, "choice 0 of state 0 is missing"},
        {"", PSI_EFORMAT, "the table is empty"},
    };
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const mdp_prism_texts texts = {.tra = cases[i].text, .tra_size = strlen(cases[i].text)};
        psi_model *model;
        assert_status(ctx, mdp_read_prism(ctx, "file", &texts, &model), cases[i].status);
        assert_null(model);
        test_assert_error_says(ctx, cases[i].says);
    }
    psi_ctx_free(ctx);
}

// Every way to cut a tar off, and counts that the file cannot hold.
static void test_bad_umb(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), *bytes;
    const char *path = test_path(folder, "m.umb");
    psi_model *model = sample(ctx, true), *read;
    size_t size;
    assert_ok(ctx, psi_model_write(ctx, model, path));
    assert_ok(ctx, base_read_file(ctx, path, 1 << 20, &bytes, &size));
    for (size_t cut = 0; cut + 1024 < size; cut += 64) {
        const psi_status got = mdp_read_umb(ctx, "file", bytes, cut, &read);
        assert_true(got == PSI_EFORMAT);
        assert_null(read);
    }
    assert_status(ctx, mdp_read_umb(ctx, "file", bytes, 5000, &read), PSI_EFORMAT);
    test_assert_error_says(ctx, "is cut off");
    // a digit more in every count of states
    char *states = strstr(bytes + 512, "\"#states\": 4,\n");
    assert_non_null(states);
    memcpy(states, "\"#states\":1e12", 14);
    assert_status(ctx, mdp_read_umb(ctx, "file", bytes, size, &read), PSI_EFORMAT);
    memcpy(states, "\"#states\":99999,\n   ", 17);
    assert_status(ctx, mdp_read_umb(ctx, "file", bytes, size, &read), PSI_EFORMAT);
    bytes[600] ^= 1;
    bytes[130] ^= 1;
    assert_status(ctx, mdp_read_umb(ctx, "file", bytes, size, &read), PSI_EFORMAT);
    test_assert_error_says(ctx, "is damaged");
    base_free(ctx, bytes);
    psi_model_free(ctx, model);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Ends: a state entered by ends only is terminal; one entered both ways gets an extra one beside
// it.
static void test_gymnasium_ends(void **state)
{
    (void)state;
    static const char *const text = "[[[[1.0, 1, 0.5, true]], [[1.0, 0, 0.0, false]]],"
                                    " [[[1.0, 1, 0.0, true]]]]";
    static const char *const both = "{\"0\": {\"0\": [[0.5, 1, 1, true], [0.5, 1, 3, false]]},\n"
                                    " \"1\": {\"3\": [[1, 0, 0, 0]]}}";
    psi_ctx *ctx = test_ctx(1);
    psi_model *model;
    assert_ok(ctx, mdp_read_model(ctx, "file", text, strlen(text), &model));
    assert_int_equal(model->n_states, 2);
    assert_int_equal(model->choices[2] - model->choices[1], 0);
    assert_int_equal(model->labels[0].holds[1], 1);
    assert_true(model->rewards[0].choice[0] == 0.5);
    psi_model_free(ctx, model);
    assert_ok(ctx, mdp_read_model(ctx, "file", both, strlen(both), &model));
    assert_int_equal(model->n_states, 3);
    assert_int_equal(model->next[0], 2);
    assert_int_equal(model->next[1], 1);
    assert_int_equal(model->action[1], 3);
    assert_true(model->rewards[0].choice[0] == 2.0);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

static psi_status read_bytes(psi_ctx *ctx, void *argument)
{
    const char *const *pair = argument; // text, and where it ends
    psi_model *model;
    const psi_status status =
        mdp_read_model(ctx, "file", pair[0], (size_t)(pair[1] - pair[0]), &model);
    psi_model_free(ctx, model);
    return status;
}

static void test_faults_everywhere(void **state)
{
    (void)state;
    static const char *const names[] = {"m.drn", "m.umb", "m.json"};
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_model *model = sample(ctx, true);
    for (size_t i = 0; i < 3; i++) {
        const char *path = test_path(folder, names[i]);
        char *bytes;
        size_t size;
        assert_ok(ctx, psi_model_write(ctx, model, path));
        assert_ok(ctx, base_read_file(ctx, path, 1 << 20, &bytes, &size));
        const char *pair[2] = {bytes, bytes + size};
        assert_true(test_fault_sweep(read_bytes, pair) > 8);
        base_free(ctx, bytes);
    }
    psi_model_free(ctx, model);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),    cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_bad_tables),     cmocka_unit_test(test_bad_umb),
        cmocka_unit_test(test_gymnasium_ends), cmocka_unit_test(test_faults_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
