// A task that is Markov only from two observations: somebody walks round a ring of five places, the
// action says whether to turn round first, and what is seen is the place, not which way they walk.
// Arriving at place 0 earns 1, and everybody starts upwards. From two places the direction is
// known, and of the ten (place, direction) those are one latent state that mirror each other about
// place 0.
#include "support/collect.h"
#include "support/support.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 5, EPISODES = 1000, LENGTH = 20, SIDE = 8, LATENT = 5 };

typedef enum kind { NUMBERS, VECTORS, IMAGES } kind;

typedef struct walk {
    psi_ctx *ctx;
    char *folder;
    kind look;
    size_t row_bytes;
    psi_trajectories *data;
} walk;

static void show(base_random *random, kind look, int place, void *row)
{
    if (look == NUMBERS) memcpy(row, &(int64_t){place}, sizeof(int64_t));
    if (look == VECTORS) {
        const float far = 6.0f * (float)place + (float)base_random_uniform(random);
        memcpy(row, (float[]){far, (float)base_random_uniform(random)}, 2 * sizeof(float));
    }
    if (look == IMAGES) { // channels last, and a few pixels that mean nothing
        uint8_t *pixel = row;
        memset(row, 0, SIDE * SIDE * 3);
        for (int y = 0; y < SIDE; y++) pixel[(y * SIDE + place) * 3] = 255;
        pixel[7 * 3 + 1] = (uint8_t)(base_random_below(random, 3) * 80);
    }
}

static psi_trajectories *collect(psi_ctx *ctx, kind look, uint64_t seed, size_t *row_bytes)
{
    const psi_shape shapes[] = {{0}, {1, {2}}, {3, {SIDE, SIDE, 3}}};
    const psi_dtype types[] = {PSI_INT64, PSI_FLOAT32, PSI_UINT8};
    const psi_episode_spec spec = {.observation_dtype = types[look],
                                   .observation_shape = shapes[look],
                                   .observation_high = 255,
                                   .n_actions = 2};
    unsigned char rows[LENGTH + 1][SIDE * SIDE * 3];
    unsigned char packed[sizeof rows];
    psi_collector *collector;
    psi_trajectories *data;
    *row_bytes = psi_shape_size(&shapes[look]) * psi_dtype_size(types[look]);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        base_random random = base_random_stream(seed, 1, e);
        int place = (int)base_random_below(&random, PLACES), way = 1;
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        show(&random, look, place, rows[0]);
        for (size_t t = 0; t < LENGTH; t++) {
            actions[t] = (int32_t)base_random_below(&random, 2);
            if (actions[t]) way = PLACES - way;
            place = (place + way) % PLACES;
            rewards[t] = place == 0;
            show(&random, look, place, rows[t + 1]);
        }
        for (size_t t = 0; t <= LENGTH; t++) {
            memcpy(packed + t * *row_bytes, rows[t], *row_bytes);
        }
        assert_ok(ctx, psi_collector_add(collector, &(psi_episode){.length = LENGTH,
                                                                   .observations = packed,
                                                                   .actions = actions,
                                                                   .rewards = rewards,
                                                                   .truncated = true}));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static walk begin(kind look)
{
    walk w = {.ctx = test_ctx(1), .folder = test_folder(), .look = look};
    w.data = collect(w.ctx, look, 7, &w.row_bytes);
    return w;
}

static void end(walk *w)
{
    psi_trajectories_free(w->ctx, w->data);
    psi_ctx_free(w->ctx);
    test_folder_free(w->folder);
}

static psi_run *cluster(walk *w, size_t stack, const char *folder)
{
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *found;
    how.stack = stack;
    assert_ok(w->ctx, folder
                          ? test_cluster_into(w->ctx, folder, PSI_FOLDER_NEW, w->data, &how, &found)
                          : psi_cluster(w->ctx, w->data, &how, &found));
    return found;
}

static void one_observation_is_not_enough(void **state)
{
    (void)state;
    walk w = begin(NUMBERS);
    psi_run *found = cluster(&w, 1, NULL);
    char text[256];
    assert_int_equal(found->verdict, PSI_VERDICT_NOT_MARKOV);
    psi_verdict_sentence(found, text, sizeof text);
    assert_non_null(strstr(text, "--stack 2"));
    bool advised = false;
    for (size_t i = 0; i < found->n_doubts; i++) {
        if (found->doubts[i].kind != PSI_DOUBT_PAST) continue;
        psi_doubt_sentence(&found->doubts[i], text, sizeof text);
        advised |= strstr(text, "--stack 2") != NULL;
    }
    assert_true(advised);
    psi_run_free(w.ctx, found);
    end(&w);
}

// Exactly the latent states of two places, and a run that knows by itself that it stacks.
static void two_are(kind look)
{
    walk w = begin(look);
    char *run_folder = strdup(test_path(w.folder, "run"));
    psi_run *found = cluster(&w, 2, run_folder);
    assert_int_equal(found->verdict, PSI_VERDICT_CERTAIN);
    assert_int_equal(found->n_latent, LATENT);
    assert_int_equal(found->options.stack, 2);
    psi_run *run;
    size_t row_bytes, wrong = 0;
    assert_ok(w.ctx, psi_run_load(w.ctx, run_folder, &run));
    assert_int_equal(run->options.stack, 2);
    psi_trajectories *other = collect(w.ctx, look, 8, &row_bytes);
    int32_t *labels = calloc(other->n_observations, sizeof *labels);
    bool own = true;
    assert_ok(w.ctx, psi_run_label(w.ctx, run, other, 0.0, labels, &own));
    assert_false(own);
    // what label and action promise is what happens on other walks
    for (size_t e = 0; e < other->n_episodes; e++) {
        const uint64_t begin = other->episode_offsets[e], end = other->episode_offsets[e + 1];
        for (uint64_t t = begin; t < end; t++) {
            const int32_t k = labels[t + e];
            const double promised =
                k < 0 ? -1.0 : run->model->reward[(size_t)k * 2 + (size_t)other->actions[t]];
            wrong += promised != other->rewards[t];
        }
    }
    assert_true(wrong <= other->n_transitions / 1000); // the network's own errors
    assert_ok(w.ctx, psi_run_label(w.ctx, run, w.data, 0.0, labels, &own));
    assert_true(own);
    free(labels);
    free(run_folder);
    psi_trajectories_free(w.ctx, other);
    psi_run_free(w.ctx, run);
    psi_run_free(w.ctx, found);
    end(&w);
}

static void two_numbers_are(void **state)
{
    (void)state;
    two_are(NUMBERS);
}

static void two_vectors_are(void **state)
{
    (void)state;
    two_are(VECTORS);
}

static void two_images_are(void **state)
{
    (void)state;
    two_are(IMAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_observation_is_not_enough),
        cmocka_unit_test(two_numbers_are),
        cmocka_unit_test(two_vectors_are),
        cmocka_unit_test(two_images_are),
    };
    return cmocka_run_group_tests_name("cluster/stack", tests, NULL, NULL);
}
