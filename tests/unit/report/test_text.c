// The page's text: nothing that others wrote keeps a meaning in it.
#include "support/support.h"

#include "report/text.h"

#include <stdio.h>
#include <string.h>

static void markup_loses_its_meaning(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    report_text text = {.ctx = ctx};
    report_escape(&text, "<script>alert('x')</script> & \"q\" `b`\n\x1b[0m é");
    assert_string_equal(text.bytes, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; "
                                    "&quot;q&quot; &#96;b&#96;\xef\xbf\xbd\xef\xbf\xbd[0m é");
    report_text_free(&text);
    psi_ctx_free(ctx);
}

static void numbers_are_grouped(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    report_text text = {.ctx = ctx};
    report_count(&text, 0);
    report_put(&text, " ");
    report_count(&text, 999);
    report_put(&text, " ");
    report_count(&text, 1460000);
    report_put(&text, " ");
    report_duration(&text, 9.94);
    report_put(&text, " ");
    report_duration(&text, 125.0);
    report_put(&text, " ");
    report_duration(&text, 7384.0);
    assert_string_equal(text.bytes, "0 999 1,460,000 9.9 s 2 min 5 s 2 h 3 min");
    report_text_free(&text);
    psi_ctx_free(ctx);
}

static void base64_is_the_usual_one(void **state)
{
    (void)state;
    static const char *const expected[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE="};
    psi_ctx *ctx = test_ctx(1);
    for (size_t n = 0; n < 6; n++) {
        report_text text = {.ctx = ctx};
        report_base64(&text, "foobar", n);
        assert_string_equal(text.bytes, expected[n]);
        report_text_free(&text);
    }
    psi_ctx_free(ctx);
}

static psi_status grow(psi_ctx *ctx, void *argument)
{
    (void)argument;
    report_text text = {.ctx = ctx};
    for (int i = 0; i < 5000; i++) report_putf(&text, "%d,", i);
    report_base64(&text, "0123456789", 10);
    report_escape(&text, "<>");
    const psi_status status = text.status;
    report_text_free(&text);
    return status;
}

static void a_failure_sticks(void **state)
{
    (void)state;
    assert_in_range(test_fault_sweep(grow, NULL), 3, 100);
}

static void a_text_is_saved_whole(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    report_text text = {.ctx = ctx};
    report_put(&text, "page");
    assert_ok(ctx, report_text_save(&text, test_path(folder, "x.html"), false));
    assert_status(ctx, report_text_save(&text, test_path(folder, "x.html"), false), PSI_EUSAGE);
    assert_ok(ctx, report_text_save(&text, test_path(folder, "x.html"), true));
    FILE *file = fopen(test_path(folder, "x.html"), "r");
    char read[16] = "";
    assert_int_equal(fread(read, 1, sizeof read - 1, file), 4);
    assert_string_equal(read, "page");
    fclose(file);
    report_text_free(&text);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_loses_its_meaning), cmocka_unit_test(numbers_are_grouped),
        cmocka_unit_test(base64_is_the_usual_one),  cmocka_unit_test(a_failure_sticks),
        cmocka_unit_test(a_text_is_saved_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
