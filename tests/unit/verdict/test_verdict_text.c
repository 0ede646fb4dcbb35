// What leaves an answer open is named: the data, the refinements, or features that were learnt.
#include "support/support.h"

#include <psifold/cluster.h>

#include <string.h>

static const char *sentence(const psi_run *run)
{
    static char text[256];
    psi_verdict_sentence(run, text, sizeof text);
    assert_true(strlen(text) < sizeof text - 1);
    return text;
}

static void an_open_answer_says_why(void **state)
{
    (void)state;
    psi_run run = {.verdict = PSI_VERDICT_UNDETERMINED,
                   .converged = true,
                   .approximator = PSI_APPROXIMATOR_MLP};
    assert_non_null(strstr(sentence(&run), "the data leave something open"));
    run.has_trunk = true; // vectors left nothing open, or there would be a doubt
    assert_non_null(strstr(sentence(&run), "features that were learnt"));
    run.n_doubts = 1;
    assert_null(strstr(sentence(&run), "features"));
    run.n_doubts = 0;
    run.doubtful = 0.02;
    assert_null(strstr(sentence(&run), "features"));
    assert_non_null(strstr(sentence(&run), "2 % of the observations"));
    run.doubtful = 0.0;
    run.converged = false;
    assert_non_null(strstr(sentence(&run), "refinements went in circles"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_open_answer_says_why)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
