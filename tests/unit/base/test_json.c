// What JSON cannot hold is known before it is written.
#include "support/support.h"

#include "base/json.h"

#include <math.h>

// Jansson makes nothing of these, and says no more than if memory had run out.
static void numbers_that_are_none_are_null(void **state)
{
    (void)state;
    const double odd[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    for (size_t i = 0; i < 3; i++) {
        json_t *value = base_json_real(odd[i]);
        assert_true(json_is_null(value));
        json_decref(value);
    }
    json_t *value = base_json_real(1e308);
    assert_true(json_is_real(value));
    json_decref(value);
}

static void texts_that_are_none_are_known(void **state)
{
    (void)state;
    assert_true(base_is_utf8("") && base_is_utf8("plain") && base_is_utf8("\xc3\xa9"));
    assert_false(base_is_utf8("\xff\xfe") || base_is_utf8("\xc3") || base_is_utf8("a\xe9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_are_none_are_null),
        cmocka_unit_test(texts_that_are_none_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
