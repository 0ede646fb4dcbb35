// Smoothing: the marginals against the sum over all label sequences, and the repair of planted
// noise.
#include "paths.h"

// One tiny instance with everything that a row may say about itself.
typedef struct tiny {
    walk w;
    psi_mdp *latent;
    float log_likelihood[40 * 4];
    int32_t index[40 * 2], classes[40];
    psi_emissions emissions;
    double likelihood[3 * 2 * 10];
    psi_smooth_options options;
} tiny;

static void tiny_new(psi_ctx *ctx, uint64_t seed, tiny *out)
{
    base_random r = base_random_stream(seed, 21, 0);
    const size_t k = 2 + base_random_below(&r, 3);
    model_builder b = builder_new(k, 2);
    if (base_random_below(&r, 2)) b.terminal[0] = 1;
    for (size_t row = 2 * (size_t)b.terminal[0]; row < 2 * k; row++) {
        if (base_random_below(&r, 6) == 0 && k > 2) continue; // unseen
        const size_t to = base_random_below(&r, (uint32_t)k), other = (to + 1) % k;
        builder_add(&b, row / 2, row % 2, to, 0.7);
        builder_add(&b, row / 2, row % 2, other, 0.3);
    }
    *out = (tiny){.options = psi_smooth_defaults()};
    out->latent = builder_finish(ctx, &b);
    // random labels along random actions: the model need not have made them
    walk *w = &out->w;
    const bool ends = out->latent->terminal[0];
    const size_t lengths[3] = {4, base_random_below(&r, 3), 5};
    w->labels = malloc(40 * sizeof *w->labels);
    w->actions = malloc(40 * sizeof *w->actions);
    w->rewards = calloc(40, sizeof *w->rewards);
    w->offsets = calloc(4, sizeof *w->offsets);
    w->terminated = calloc(3, 1);
    for (size_t e = 0; e < 3; e++) {
        w->offsets[e + 1] = w->offsets[e] + lengths[e];
        w->terminated[e] = base_random_below(&r, 2) != 0;
        for (size_t t = 0; t <= lengths[e]; t++) {
            int32_t *label = &w->labels[w->offsets[e] + e + t];
            *label = (int32_t)((ends ? 1 : 0) + base_random_below(&r, (uint32_t)k - ends));
            if (base_random_below(&r, 3) == 0) *label = -1;
            if (t == lengths[e] && ends && w->terminated[e]) *label = 0;
        }
    }
    const size_t n = w->offsets[3];
    for (size_t t = 0; t < n; t++) {
        w->actions[t] = (int32_t)base_random_below(&r, 2);
        out->classes[t] = (int32_t)base_random_below(&r, 3);
    }
    w->paths = (psi_paths){.n_episodes = 3,
                           .n_transitions = n,
                           .n_actions = 2,
                           .n_latent = k,
                           .has_terminal = ends,
                           .labels = w->labels,
                           .actions = w->actions,
                           .rewards = w->rewards,
                           .episode_offsets = w->offsets,
                           .terminated = w->terminated};
    const uint32_t kind = base_random_below(&r, 4); // none, dense, listed, listed for every row
    out->emissions = (psi_emissions){.per_row = kind == 1 ? k : 2,
                                     .index = kind == 1 ? NULL : out->index,
                                     .log_likelihood = out->log_likelihood,
                                     .absent = -3.5f,
                                     .every_row = kind == 3};
    for (size_t i = 0; i < 160; i++)
        out->log_likelihood[i] = (float)(-5.0 * base_random_uniform(&r) + 20.0 * (double)(i % 3));
    for (size_t row = 0; row < 40; row++) {
        out->index[2 * row] = (int32_t)base_random_below(&r, (uint32_t)k);
        out->index[2 * row + 1] =
            base_random_below(&r, 2) ? -1 : (out->index[2 * row] + 1) % (int32_t)k;
    }
    if (kind > 0) out->options.emissions = &out->emissions;
    if (base_random_below(&r, 2)) {
        out->options.reward_class = out->classes;
        out->options.n_reward_classes = 3;
        for (size_t i = 0; i < 60; i++) out->likelihood[i] = 0.1 + base_random_uniform(&r);
    }
}

static void tiny_free(psi_ctx *ctx, tiny *t)
{
    walk_free(&t->w);
    psi_mdp_free(ctx, t->latent);
}

// p(row | k), written down a second time.
static double row_says(const tiny *t, size_t e, size_t i, size_t k)
{
    const psi_paths *p = &t->w.paths;
    const size_t n = p->n_latent, row = p->episode_offsets[e] + e + i;
    const bool last = p->episode_offsets[e] + i == p->episode_offsets[e + 1];
    if (p->has_terminal) {
        const bool over = last && p->terminated[e];
        if (over != (k == 0)) return 0.0;
        if (over) return 1.0;
    }
    const psi_emissions *m = t->options.emissions;
    double says = 1.0;
    if (m && (m->every_row || p->labels[row] < 0)) {
        double value = (double)m->absent;
        if (!m->index) value = (double)m->log_likelihood[row * n + k];
        for (size_t j = 0; m->index && j < 2; j++)
            if (m->index[2 * row + j] == (int32_t)k) value = (double)m->log_likelihood[2 * row + j];
        says = exp(value);
    } else if (p->labels[row] >= 0) {
        const size_t others = n - 1 - p->has_terminal;
        if (others > 0) says = p->labels[row] == (int32_t)k ? 0.9 : 0.1 / (double)others;
    }
    if (t->options.reward_class && !last) {
        const size_t at = p->episode_offsets[e] + i;
        says *= t->likelihood[((size_t)p->actions[at] * 3 + (size_t)t->classes[at]) * n + k];
    }
    return says;
}

static double moves(const tiny *t, size_t action, size_t k, size_t j)
{
    const double n = (double)t->latent->n_states;
    const size_t row = k * 2 + action;
    if (!psi_mdp_seen(t->latent, k, action)) return 1.0 / n;
    double p = 1e-3 / n;
    for (uint64_t i = t->latent->offsets[row]; i < t->latent->offsets[row + 1]; i++)
        if (t->latent->next[i] == (int32_t)j) p += t->latent->probability[i];
    return p / 1.001;
}

static void test_against_all_sequences(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    for (uint64_t seed = 0; seed < 400; seed++) {
        tiny t;
        tiny_new(ctx, seed, &t);
        const psi_paths *p = &t.w.paths;
        const size_t n = p->n_latent, rows = walk_rows(&t.w);
        double marginals[160], expected[160] = {0}, log_likelihood, expected_log = 0.0;
        int32_t labels[40];
        float posterior[40];
        assert_ok(ctx,
                  psi_smooth_pass(ctx, p, t.latent, t.options.reward_class ? t.likelihood : NULL,
                                  &t.options, labels, posterior, marginals, &log_likelihood));
        for (size_t e = 0; e < 3; e++) {
            const size_t begin = p->episode_offsets[e], length = p->episode_offsets[e + 1] - begin;
            size_t sequences = 1;
            double total = 0.0;
            for (size_t i = 0; i <= length; i++) sequences *= n;
            for (size_t code = 0; code < sequences; code++) {
                double weight = 1.0 / (double)n;
                size_t digits = code, k[6];
                for (size_t i = 0; i <= length; i++, digits /= n) {
                    k[i] = digits % n;
                    weight *= row_says(&t, e, i, k[i]);
                    if (i > 0)
                        weight *= moves(&t, (size_t)p->actions[begin + i - 1], k[i - 1], k[i]);
                }
                total += weight;
                for (size_t i = 0; i <= length; i++) expected[(begin + e + i) * n + k[i]] += weight;
            }
            expected_log += log(total);
            for (size_t i = 0; i <= length; i++)
                for (size_t k = 0; k < n; k++) expected[(begin + e + i) * n + k] /= total;
        }
        if (!(fabs(log_likelihood - expected_log) < 1e-10 * fmax(1.0, fabs(expected_log))))
            fail_msg("seed %llu: log-likelihood %.17g, not %.17g", (unsigned long long)seed,
                     log_likelihood, expected_log);
        for (size_t row = 0; row < rows; row++) {
            double best = 0.0;
            for (size_t k = 0; k < n; k++) {
                const double off = fabs(marginals[row * n + k] - expected[row * n + k]);
                if (!(off < 1e-12))
                    fail_msg("seed %llu, row %zu: off by %g", (unsigned long long)seed, row, off);
                best = fmax(best, expected[row * n + k]);
            }
            assert_true(fabs((double)posterior[row] - best) < 1e-6);
            assert_true((labels[row] >= 0) ==
                        (marginals[row * n + (size_t)(labels[row] < 0 ? 0 : labels[row])] >= 0.9));
        }
        tiny_free(ctx, &t);
    }
    psi_ctx_free(ctx);
}

// What is foretold of a row goes by the rows before it and by its look: not by the reward that
// followed, nor by anything after.
static void test_foretold_against_all_sequences(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    for (uint64_t seed = 0; seed < 200; seed++) {
        tiny t;
        tiny_new(ctx, seed, &t);
        const psi_paths *p = &t.w.paths;
        const size_t n = p->n_latent;
        const int32_t *rewards = t.options.reward_class;
        double marginals[160], whole, log_likelihood;
        psi_smooth_options options = t.options;
        const double *likelihood = rewards ? t.likelihood : NULL;
        options.foretell = true;
        assert_ok(ctx, psi_smooth_pass(ctx, p, t.latent, likelihood, &t.options, NULL, NULL, NULL,
                                       &whole));
        assert_ok(ctx, psi_smooth_pass(ctx, p, t.latent, likelihood, &options, NULL, NULL,
                                       marginals, &log_likelihood));
        assert_true(fabs(log_likelihood - whole) < 1e-10 * fmax(1.0, fabs(whole)));
        for (size_t e = 0; e < 3; e++) {
            const size_t begin = p->episode_offsets[e], length = p->episode_offsets[e + 1] - begin;
            double before[4] = {0};
            for (size_t i = 0; i <= length; i++) {
                double told[4], total = 0.0;
                for (size_t k = 0; k < n; k++) {
                    t.options.reward_class = NULL;
                    told[k] = row_says(&t, e, i, k) * (i == 0 ? 1.0 : before[k]);
                    t.options.reward_class = rewards;
                    total += told[k];
                }
                for (size_t k = 0; k < n; k++) {
                    const double off = fabs(marginals[(begin + e + i) * n + k] - told[k] / total);
                    assert_true(off < 1e-12);
                }
                double after[4] = {0};
                for (size_t k = 0; i < length && k < n; k++) {
                    const double here = (i == 0 ? 1.0 : before[k]) * row_says(&t, e, i, k);
                    for (size_t j = 0; j < n; j++) {
                        after[j] += here * moves(&t, (size_t)p->actions[begin + i], k, j) / total;
                    }
                }
                memcpy(before, after, sizeof before);
            }
        }
        tiny_free(ctx, &t);
    }
    psi_ctx_free(ctx);
}

// Any number of threads, any memory: the same bytes. And an episode of 60,000 steps neither
// underflows nor needs its 60,000 messages at once.
static void test_threads_and_memory(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *column = column_world(ctx), *lock = lock_quotient(ctx);
    for (int i = 0; i < 2; i++) {
        const psi_mdp *mdp = i ? lock : column;
        walk w = i ? random_walk(mdp, 40, 300, 3) : random_walk(mdp, 2, 60000, 3);
        spoil(&w, 0.1, 0.2, 4);
        const size_t rows = walk_rows(&w);
        int32_t *labels[4];
        float *posterior[4];
        double log_likelihood[4];
        for (int variant = 0; variant < 4; variant++) {
            psi_ctx *team = test_ctx(1 + variant % 3);
            psi_smooth_options options = psi_smooth_defaults();
            if (variant == 3) options.memory = 1;
            labels[variant] = malloc(rows * sizeof(int32_t));
            posterior[variant] = malloc(rows * sizeof(float));
            assert_ok(team, psi_smooth_pass(team, &w.paths, mdp, NULL, &options, labels[variant],
                                            posterior[variant], NULL, &log_likelihood[variant]));
            assert_true(isfinite(log_likelihood[variant]));
            assert_memory_equal(labels[0], labels[variant], rows * sizeof(int32_t));
            assert_memory_equal(posterior[0], posterior[variant], rows * sizeof(float));
            assert_true(log_likelihood[0] == log_likelihood[variant]);
            psi_ctx_free(team);
        }
        for (int variant = 0; variant < 4; variant++) {
            free(labels[variant]);
            free(posterior[variant]);
        }
        walk_free(&w);
    }
    psi_mdp_free(ctx, column);
    psi_mdp_free(ctx, lock);
    psi_ctx_free(ctx);
}

static void count_mistakes(const walk *w, const int32_t *labels, size_t *wrong, size_t *ignored)
{
    *wrong = *ignored = 0;
    for (size_t row = 0; row < walk_rows(w); row++) {
        *ignored += labels[row] < 0;
        *wrong += labels[row] >= 0 && labels[row] != w->truth[row];
    }
}

// The lock's chain with noisy labels, from mild to heavy: nearly nothing may stay wrong.
static void test_repairs_noise(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_mdp *lock = lock_quotient(ctx);
    walk w = random_walk(lock, 1000, 1000, 11);
    int32_t *labels = malloc(walk_rows(&w) * sizeof *labels);
    const struct {
        double ignore, wrong;
        size_t passes;
        double most_wrong, most_ignored;
    } cases[] = {{0.07, 0.015, 2, 0.0002, 0.0005}, {0.22, 0.24, 3, 0.002, 0.005}};
    for (size_t i = 0; i < 2; i++) {
        size_t wrong, ignored;
        psi_smooth_options options = psi_smooth_defaults();
        psi_smooth_summary summary;
        options.passes = cases[i].passes;
        spoil(&w, cases[i].ignore, cases[i].wrong, i);
        assert_ok(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, &summary));
        count_mistakes(&w, labels, &wrong, &ignored);
        const double n = (double)walk_rows(&w);
        print_message("%.0f rows, %.1f %% ignored, %.1f %% wrong: after %zu passes %zu ignored, "
                      "%zu wrong\n",
                      n, 100.0 * cases[i].ignore, 100.0 * cases[i].wrong, cases[i].passes, ignored,
                      wrong);
        assert_true((double)wrong <= cases[i].most_wrong * n);
        assert_true((double)ignored <= cases[i].most_ignored * n);
        assert_int_equal(summary.ignored_after, ignored);
        assert_true(summary.ignored_before > summary.ignored_after);
        assert_true(summary.changed > 0);
    }
    // clean labels stay as they are
    spoil(&w, 0.0, 0.0, 0);
    psi_smooth_summary summary;
    assert_ok(ctx, psi_smooth(ctx, &w.paths, NULL, labels, NULL, &summary));
    assert_memory_equal(labels, w.truth, walk_rows(&w) * sizeof *labels);
    assert_true(summary.smallest_row_maximum == 1.0);
    free(labels);
    walk_free(&w);
    psi_mdp_free(ctx, lock);
    psi_ctx_free(ctx);
}

// Stochastic rows are where smoothing has little to say: it must not make things worse.
static void test_stochastic_models(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    size_t tried = 0, all_before = 0, all = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        planted_model model = random_planted(ctx, seed);
        const psi_mdp *mdp = model.small;
        if (psi_mdp_smallest_row_maximum(mdp) == 1.0 || mdp->n_states < 3) {
            planted_free(ctx, &model);
            continue;
        }
        walk w = random_walk(mdp, 200, 50, seed);
        spoil(&w, 0.1, 0.02, seed);
        int32_t *labels = malloc(walk_rows(&w) * sizeof *labels);
        size_t wrong_before, wrong, ignored_before, ignored;
        count_mistakes(&w, w.labels, &wrong_before, &ignored_before);
        psi_smooth_options options = psi_smooth_defaults();
        options.passes = 4;
        assert_ok(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, NULL));
        count_mistakes(&w, labels, &wrong, &ignored);
        const double rows = (double)walk_rows(&w);
        if ((double)wrong > (double)wrong_before + 0.01 * rows)
            fail_msg("seed %llu: %zu of %.0f wrong, %zu before", (unsigned long long)seed, wrong,
                     rows, wrong_before);
        tried++;
        all_before += wrong_before;
        all += wrong;
        free(labels);
        walk_free(&w);
        planted_free(ctx, &model);
    }
    print_message("%zu stochastic models: %zu labels wrong, %zu after 4 passes\n", tried,
                  all_before, all);
    assert_true(tried > 20);
    assert_true(all < all_before / 2);
    psi_ctx_free(ctx);
}

// Rewards as emissions: two latent states that only rewards tell apart, all labels ignored but few.
// A few labels in a row are wrong in a way that hangs together: the step into them and the step out
// of them are in the model only because of them, which must not be enough to keep them.
static void test_wrong_labels_do_not_confirm_themselves(void **state)
{
    (void)state;
    enum { K = 40, EPISODES = 60, LENGTH = 400, WRONG = 3 };
    psi_ctx *ctx = test_ctx(1);
    walk w = {.labels = malloc(EPISODES * (LENGTH + 1) * sizeof *w.labels),
              .actions = malloc(EPISODES * LENGTH * sizeof *w.actions),
              .rewards = calloc(EPISODES * LENGTH, sizeof *w.rewards),
              .offsets = calloc(EPISODES + 1, sizeof *w.offsets),
              .terminated = calloc(EPISODES, 1)};
    base_random r = base_random_stream(5, 22, 0);
    for (size_t e = 0; e < EPISODES; e++) {
        int32_t at = (int32_t)base_random_below(&r, K);
        w.offsets[e + 1] = w.offsets[e] + LENGTH;
        for (size_t t = 0; t <= LENGTH; t++) { // action 0 goes round, action 1 stays
            w.labels[w.offsets[e] + e + t] = at;
            if (t == LENGTH) break;
            w.actions[w.offsets[e] + t] = (int32_t)base_random_below(&r, 2);
            if (w.actions[w.offsets[e] + t] == 0) at = (at + 1) % K;
        }
    }
    w.paths = (psi_paths){.n_episodes = EPISODES,
                          .n_transitions = EPISODES * LENGTH,
                          .n_actions = 2,
                          .n_latent = K,
                          .labels = w.labels,
                          .actions = w.actions,
                          .rewards = w.rewards,
                          .episode_offsets = w.offsets,
                          .terminated = w.terminated};
    int32_t *smoothed = malloc(EPISODES * (LENGTH + 1) * sizeof *smoothed), right[WRONG];
    memcpy(right, w.labels + 100, sizeof right);
    for (size_t i = 100; i < 100 + WRONG; i++) w.labels[i] = (w.labels[i] + 20) % K;
    assert_ok(ctx, psi_smooth(ctx, &w.paths, NULL, smoothed, NULL, NULL));
    assert_memory_equal(smoothed + 100, right, sizeof right);
    free(smoothed);
    walk_free(&w);
    psi_ctx_free(ctx);
}

static void test_rewards_help(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    model_builder b = builder_new(2, 1);
    for (size_t s = 0; s < 2; s++) {
        builder_add(&b, s, 0, 0, 0.5);
        builder_add(&b, s, 0, 1, 0.5);
        b.reward[s] = (double)s;
    }
    psi_mdp *mdp = builder_finish(ctx, &b);
    walk w = random_walk(mdp, 20, 200, 5);
    spoil(&w, 0.8, 0.0, 6);
    const size_t rows = walk_rows(&w);
    int32_t *labels = malloc(rows * sizeof *labels), *classes = malloc(rows * sizeof *classes);
    for (size_t t = 0; t < w.paths.n_transitions; t++) classes[t] = w.rewards[t] > 0.5;
    psi_smooth_options options = psi_smooth_defaults();
    psi_smooth_summary without, with;
    assert_ok(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, &without));
    options.reward_class = classes;
    options.n_reward_classes = 2;
    assert_ok(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, &with));
    size_t wrong, ignored;
    count_mistakes(&w, labels, &wrong, &ignored);
    assert_true(without.ignored_after > rows / 2);
    assert_true(ignored <= 20); // the last rows of the episodes
    assert_int_equal(wrong, 0);
    classes[3] = 2;
    assert_status(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, NULL), PSI_EDATA);
    free(labels);
    free(classes);
    walk_free(&w);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx);
    walk w = random_walk(mdp, 2, 5, 5);
    int32_t labels[32];
    float likelihood[12 * 16] = {0};
    psi_smooth_options options = psi_smooth_defaults();
    options.floor = 0.0;
    assert_status(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, NULL), PSI_EUSAGE);
    options = psi_smooth_defaults();
    options.passes = 0;
    assert_status(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, NULL), PSI_EUSAGE);
    options = psi_smooth_defaults();
    psi_emissions emissions = {.per_row = 15, .log_likelihood = likelihood};
    options.emissions = &emissions;
    assert_status(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, NULL), PSI_ESHAPE);
    emissions.per_row = 16;
    likelihood[17] = NAN;
    assert_status(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, NULL), PSI_ENUMERIC);
    test_assert_error_says(ctx, "row 1");
    for (size_t i = 0; i < 12 * 16; i++) likelihood[i] = (float)-HUGE_VAL; // says nothing
    emissions.every_row = true;
    assert_ok(ctx, psi_smooth(ctx, &w.paths, &options, labels, NULL, NULL));
    options = psi_smooth_defaults();
    w.paths.n_latent = 17;
    assert_status(ctx,
                  psi_smooth_pass(ctx, &w.paths, mdp, NULL, &options, labels, NULL, NULL, NULL),
                  PSI_ESHAPE);
    w.paths.n_latent = 16;
    psi_cancel(ctx);
    assert_status(ctx, psi_smooth(ctx, &w.paths, NULL, labels, NULL, NULL), PSI_ECANCELLED);
    walk_free(&w);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

static psi_status sweep(psi_ctx *ctx, void *argument)
{
    const tiny *t = argument;
    int32_t labels[40];
    return psi_smooth(ctx, &t->w.paths, &t->options, labels, NULL, NULL);
}

static void test_faults_in_smooth(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    long swept = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        tiny t;
        tiny_new(ctx, seed, &t);
        swept += test_fault_sweep(sweep, &t);
        tiny_free(ctx, &t);
    }
    assert_true(swept > 200);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_all_sequences),
        cmocka_unit_test(test_foretold_against_all_sequences),
        cmocka_unit_test(test_threads_and_memory),
        cmocka_unit_test(test_repairs_noise),
        cmocka_unit_test(test_stochastic_models),
        cmocka_unit_test(test_rewards_help),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_faults_in_smooth),
        cmocka_unit_test(test_wrong_labels_do_not_confirm_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
