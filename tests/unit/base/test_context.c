// The context: what every failure, allocation and callback passes through.
#include "support/support.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/context.h"

#include <stdio.h>
#include <string.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

static void every_status_has_a_name_a_meaning_and_an_exit_code(void **state)
{
    (void)state;
    bool seen[256] = {false};
    for (int s = PSI_OK; s <= PSI_ECANCELLED; s++) {
        const int code = psi_status_exit_code((psi_status)s);
        assert_memory_equal(psi_status_name((psi_status)s), "PSI_", 4);
        assert_true(strlen(psi_status_meaning((psi_status)s)) > 5);
        assert_in_range(code, 0, 255);
        assert_false(seen[code]);
        seen[code] = true;
    }
    assert_int_equal(psi_status_exit_code(PSI_OK), 0);
    assert_int_equal(psi_status_exit_code((psi_status)1000), 70);
    assert_string_equal(psi_status_name(PSI_ESHAPE), "PSI_ESHAPE");
}

static void a_failure_is_one_sentence_with_its_place(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    assert_int_equal(FAIL(ctx, PSI_EDATA, "episode %d has no %s", 3, "rewards"), PSI_EDATA);
    assert_int_equal(psi_error(ctx)->status, PSI_EDATA);
    assert_string_equal(psi_error(ctx)->message, "episode 3 has no rewards");
    assert_memory_equal(psi_error(ctx)->where, "test_context.c:", 15);
    char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)FAIL(ctx, PSI_EIO, "%s", longer); // cut off, not overflowing
    assert_int_equal(strlen(psi_error(ctx)->message), sizeof psi_error(ctx)->message - 1);
    psi_ctx_free(ctx);
}

// What lies before and behind a block is nobody's: a write there must not go unnoticed.
static void the_sanitizer_sees_the_edges_of_a_block(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    psi_ctx *ctx = test_ctx(1);
    char *block;
    for (size_t size = 1; size < 200; size += 13) {
        assert_ok(ctx, base_alloc(ctx, size, 1, &block));
        assert_true(__asan_address_is_poisoned(block - 1));
        assert_true(__asan_address_is_poisoned(block + size));
        assert_false(__asan_address_is_poisoned(block));
        assert_false(__asan_address_is_poisoned(block + size - 1));
        base_free(ctx, block);
    }
    psi_ctx_free(ctx);
#else
    skip();
#endif
}

static void blocks_go_back_where_they_came_from(void **state)
{
    (void)state;
    test_faults one = {0}, other = {0};
    psi_ctx *mine = test_faulty_ctx(&one, 1), *yours = test_faulty_ctx(&other, 1);
    const long live[] = {one.live, other.live};
    char *block;
    assert_ok(mine, base_alloc(mine, 100, 1, &block));
    assert_int_equal(one.live, live[0] + 1);
    base_free(yours, block); // the wrong context
    assert_int_equal(one.live, live[0]);
    assert_int_equal(other.live, live[1]);
    psi_ctx_free(yours);
    psi_ctx_free(mine);
}

static void blocks_are_aligned_and_keep_their_content(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *block = NULL;
    for (size_t size = 0; size < 300; size += 7) {
        assert_ok(ctx, base_alloc(ctx, size, 1, &block));
        assert_int_equal((uintptr_t)block % 64, 0);
        memset(block, 7, size);
        assert_ok(ctx, base_resize(ctx, 2 * size + 1, 1, &block));
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(block[i], 7);
        base_free(ctx, block);
    }
    assert_status(ctx, base_alloc(ctx, SIZE_MAX / 2, 4, &block), PSI_ENOMEM);
    assert_null(block);
    assert_status(ctx, base_alloc(ctx, SIZE_MAX - 8, 1, &block), PSI_ENOMEM);
    base_free(ctx, NULL);
    psi_ctx_free(ctx);
}

static void a_failed_resize_leaves_the_block(void **state)
{
    (void)state;
    test_faults faults = {0};
    psi_ctx *ctx = test_faulty_ctx(&faults, 1);
    char *text;
    assert_ok(ctx, base_copy_text(ctx, "still here", &text));
    faults.fail_at = faults.count + 1;
    assert_status(ctx, base_resize(ctx, 1000, 1, &text), PSI_ENOMEM);
    assert_string_equal(text, "still here");
    base_free(ctx, text);
    psi_ctx_free(ctx);
    assert_int_equal(faults.live, 0);
}

static psi_status take_from_an_arena(psi_ctx *ctx, void *argument)
{
    (void)argument;
    psi_status status = PSI_OK;
    base_arena arena = {.ctx = ctx};
    const char *text;
    char *bytes;
    TRY(base_arena_text(&arena, "first", &text));
    for (size_t i = 1; i < 100; i++) {
        TRY(base_arena_take(&arena, i, 997, &bytes));
        for (size_t k = 0; k < i * 997; k++) assert_int_equal(bytes[k], 0);
        memset(bytes, 1, i * 997);
    }
    assert_string_equal(text, "first");
done:
    base_arena_free(&arena);
    return status;
}

static void an_arena_gives_all_back(void **state)
{
    (void)state;
    assert_in_range(test_fault_sweep(take_from_an_arena, NULL), 10, 200);
}

typedef struct listener {
    int notes, warnings;
    char last[512];
} listener;

static void listen(void *user, psi_log_level level, const char *sentence)
{
    listener *heard = user;
    if (level == PSI_LOG_NOTE) heard->notes++;
    if (level == PSI_LOG_WARNING) heard->warnings++;
    snprintf(heard->last, sizeof heard->last, "%s", sentence);
}

static void notes_and_warnings_reach_the_callback(void **state)
{
    (void)state;
    listener heard = {0};
    psi_ctx *ctx;
    const psi_options options = {
        .size = sizeof options, .log = listen, .user = &heard, .threads = 1};
    assert_int_equal(psi_ctx_new(&options, &ctx), PSI_OK);
    base_note(ctx, "%d of %d", 1, 2);
    base_warn(ctx, "epsilon %.1f contradicts the theorem", 0.8);
    assert_int_equal(heard.notes, 1);
    assert_int_equal(heard.warnings, 1);
    assert_string_equal(heard.last, "epsilon 0.8 contradicts the theorem");
    psi_ctx_free(ctx);
}

static void cancel_is_noticed(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    assert_ok(ctx, base_cancelled(ctx));
    psi_cancel(ctx);
    assert_status(ctx, base_cancelled(ctx), PSI_ECANCELLED);
    psi_ctx_free(ctx);
}

static void bad_thread_counts_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx;
    assert_int_equal(psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = -1}, &ctx),
                     PSI_EUSAGE);
    assert_null(ctx);
    assert_int_equal(
        psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 5000}, &ctx),
        PSI_EUSAGE);
    assert_int_equal(psi_ctx_new(NULL, &ctx), PSI_OK);
    assert_true(psi_threads(ctx) >= 1);
    psi_ctx_free(ctx);
}

static void sizes_that_overflow_are_noticed(void **state)
{
    (void)state;
    size_t out;
    assert_true(base_mul(1u << 20, 1u << 20, &out));
    assert_int_equal(out, (size_t)1 << 40);
    assert_false(base_mul(SIZE_MAX, 2, &out));
    assert_false(base_add(SIZE_MAX, 1, &out));
    assert_int_equal(base_round_up(65, 64), 128);
    assert_int_equal(base_round_up(0, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_a_meaning_and_an_exit_code),
        cmocka_unit_test(a_failure_is_one_sentence_with_its_place),
        cmocka_unit_test(the_sanitizer_sees_the_edges_of_a_block),
        cmocka_unit_test(blocks_go_back_where_they_came_from),
        cmocka_unit_test(blocks_are_aligned_and_keep_their_content),
        cmocka_unit_test(a_failed_resize_leaves_the_block),
        cmocka_unit_test(an_arena_gives_all_back),
        cmocka_unit_test(notes_and_warnings_reach_the_callback),
        cmocka_unit_test(cancel_is_noticed),
        cmocka_unit_test(bad_thread_counts_are_refused),
        cmocka_unit_test(sizes_that_overflow_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
