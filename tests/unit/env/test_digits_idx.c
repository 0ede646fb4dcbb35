// IDX files as they should be, and every way in which they are not.
#include "tasks.h"

#include "base/context.h"
#include "env/digits.h"
#include "env/mnist.h"

#include <stdlib.h>

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

// An images file: image i is filled with the byte i. Returns its size.
static size_t images_file(uint8_t *bytes, uint32_t n)
{
    put32(bytes, 0x00000803);
    put32(bytes + 4, n);
    put32(bytes + 8, 28);
    put32(bytes + 12, 28);
    for (uint32_t i = 0; i < n; i++) memset(bytes + 16 + i * 784, (int)i, 784);
    return 16 + n * 784;
}

// Labels 9, 8, …, 0, 9, 8, …
static size_t labels_file(uint8_t *bytes, uint32_t n)
{
    put32(bytes, 0x00000801);
    put32(bytes + 4, n);
    for (uint32_t i = 0; i < n; i++) bytes[8 + i] = (uint8_t)(9 - i % 10);
    return 8 + n;
}

static uint8_t images[16 + 30 * 784 + 1], labels[8 + 30 + 1];

static void test_images_are_sorted_by_digit(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    env_idx image_idx, label_idx;
    env_digits *digits;
    assert_ok(ctx, env_idx_parse(ctx, "i", images, images_file(images, 25), &image_idx));
    assert_ok(ctx, env_idx_parse(ctx, "l", labels, labels_file(labels, 25), &label_idx));
    assert_true(image_idx.rank == 3 && image_idx.dim[0] == 25 && image_idx.dim[2] == 28);
    assert_ok(ctx, env_digits_from_idx(ctx, "x", &image_idx, &label_idx, &digits));
    assert_int_equal(digits->first[10], 25);
    for (unsigned d = 0; d < 10; d++) {
        const uint32_t count = digits->first[d + 1] - digits->first[d];
        assert_int_equal(count, d >= 5 ? 3 : 2);
        for (uint32_t k = 0; k < count; k++) {
            const uint8_t *image = digits->images + (digits->first[d] + k) * 784;
            assert_int_equal(image[0], 9 - d + 10 * k); // in the order of the file
            assert_int_equal(image[783], image[0]);
        }
    }
    env_digits_free(ctx, digits);
    psi_ctx_free(ctx);
}

static void test_every_cut_is_noticed(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    env_idx idx;
    const size_t size = images_file(images, 3);
    for (size_t n = 0; n < size; n++) {
        // a block of exactly that length: a read past its end shows under the sanitizer
        uint8_t *cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, images, n);
        assert_status(ctx, env_idx_parse(ctx, "cut", cut, n, &idx), PSI_EFORMAT);
        assert_null(idx.data);
        free(cut);
    }
    test_assert_error_says(ctx, "cut is cut off");
    assert_status(ctx, env_idx_parse(ctx, "long", images, size + 1, &idx), PSI_EFORMAT);
    test_assert_error_says(ctx, "too long");
    psi_ctx_free(ctx);
}

static void test_strange_heads_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint32_t value;
        const char *says;
    } CASES[] = {{0, 0x01000803, "not an IDX file"},
                 {0, 0x1f8b0800, "not an IDX file"}, // gzip
                 {0, 0x00000d03, "elements of type 13"},
                 {0, 0x00000800, "0 dimensions"},
                 {0, 0x00000805, "5 dimensions"},
                 {4, 0xffffffff, "cut off"},
                 {8, 29, "cut off"},
                 {12, 27, "too long"}};
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        env_idx idx;
        const size_t size = images_file(images, 3);
        put32(images + CASES[i].at, CASES[i].value);
        assert_status(ctx, env_idx_parse(ctx, "file", images, size, &idx), PSI_EFORMAT);
        test_assert_error_says(ctx, CASES[i].says);
    }
    uint8_t huge[20];
    put32(huge, 0x00000804);
    for (int i = 0; i < 4; i++) put32(huge + 4 + 4 * i, 0xffffffff);
    env_idx idx;
    assert_status(ctx, env_idx_parse(ctx, "huge", huge, 20, &idx), PSI_EFORMAT);
    test_assert_error_says(ctx, "larger than any memory");
    psi_ctx_free(ctx);
}

static void test_pairs_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    env_idx image_idx, label_idx;
    env_digits *digits;
    assert_ok(ctx, env_idx_parse(ctx, "i", images, images_file(images, 20), &image_idx));
    assert_ok(ctx, env_idx_parse(ctx, "l", labels, labels_file(labels, 19), &label_idx));
    assert_status(ctx, env_digits_from_idx(ctx, "x", &image_idx, &label_idx, &digits), PSI_EFORMAT);
    test_assert_error_says(ctx, "20 images, but 19 labels");
    assert_status(ctx, env_digits_from_idx(ctx, "x", &label_idx, &label_idx, &digits), PSI_EFORMAT);
    test_assert_error_says(ctx, "not images of 28 × 28");
    assert_ok(ctx, env_idx_parse(ctx, "l", labels, labels_file(labels, 20), &label_idx));
    labels[8 + 7] = 10;
    assert_status(ctx, env_digits_from_idx(ctx, "x", &image_idx, &label_idx, &digits), PSI_EFORMAT);
    test_assert_error_says(ctx, "label 7 is 10");
    labels[8 + 7] = labels[8 + 17] = 3; // no 2 is left
    assert_status(ctx, env_digits_from_idx(ctx, "x", &image_idx, &label_idx, &digits), PSI_EFORMAT);
    test_assert_error_says(ctx, "no image of the digit 2");
    assert_null(digits);
    psi_ctx_free(ctx);
}

static psi_status load(psi_ctx *ctx, void *argument)
{
    const bool *test = argument;
    env_digits *digits;
    const psi_status status = env_digits_mnist(ctx, *test, &digits);
    if (status != PSI_OK) assert_null(digits);
    env_digits_free(ctx, digits);
    return status;
}

static void test_files_put_there_by_hand(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    bool train = false, test = true;
    setenv("PSIFOLD_CACHE", folder, 1);
    assert_false(psi_mnist_present(ctx));
    assert_status(ctx, load(ctx, &train), PSI_EMISSING);
    test_assert_error_says(ctx, "psifold fetch mnist");
    test_put(test_path(folder, ENV_MNIST.file[0].name), images, images_file(images, 30));
    assert_status(ctx, load(ctx, &train), PSI_EMISSING);
    test_put(test_path(folder, ENV_MNIST.file[1].name), labels, labels_file(labels, 30));
    assert_ok(ctx, load(ctx, &train));
    assert_true(test_fault_sweep(load, &train) >= 6);
    assert_status(ctx, load(ctx, &test), PSI_EMISSING);
    test_put(test_path(folder, ENV_MNIST.file[2].name), images, images_file(images, 10));
    test_put(test_path(folder, ENV_MNIST.file[3].name), labels, labels_file(labels, 10) - 1);
    assert_status(ctx, load(ctx, &test), PSI_EFORMAT);
    test_assert_error_says(ctx, "t10k-labels-idx1-ubyte is cut off");
    test_put(test_path(folder, ENV_MNIST.file[3].name), labels, labels_file(labels, 10));
    assert_ok(ctx, load(ctx, &test));
    assert_true(psi_mnist_present(ctx));

    // and a lock made of them
    const psi_task task = test_task(ctx, "combination-lock", NULL, "digits mnist-test");
    psi_env *env;
    uint8_t image[3 * 784];
    assert_ok(ctx, psi_env_new(ctx, &task, 1, 1, &env));
    psi_env_begin_one(env, 0, 0, image);
    assert_int_equal(image[0], 9); // the only 0 is image 9
    psi_env_free(ctx, env);
    unsetenv("PSIFOLD_CACHE");
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void test_where_the_cache_is(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char path[256], small[8];
    setenv("PSIFOLD_CACHE", "/a/b", 1);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    assert_ok(ctx, psi_cache_folder(ctx, path, sizeof path));
    assert_string_equal(path, "/a/b");
    unsetenv("PSIFOLD_CACHE");
    assert_ok(ctx, psi_cache_folder(ctx, path, sizeof path));
    assert_string_equal(path, "/xdg/psifold");
    assert_status(ctx, psi_cache_folder(ctx, small, sizeof small), PSI_ELIMIT);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/home/me", 1);
    assert_ok(ctx, psi_cache_folder(ctx, path, sizeof path));
    assert_string_equal(path, "/home/me/.cache/psifold");
    unsetenv("HOME");
    assert_status(ctx, psi_cache_folder(ctx, path, sizeof path), PSI_EMISSING);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_are_sorted_by_digit),
        cmocka_unit_test(test_every_cut_is_noticed),
        cmocka_unit_test(test_strange_heads_are_refused),
        cmocka_unit_test(test_pairs_that_do_not_fit_are_refused),
        cmocka_unit_test(test_files_put_there_by_hand),
        cmocka_unit_test(test_where_the_cache_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
