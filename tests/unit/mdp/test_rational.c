// Fractions that doubles stand for, as residues and snapped.
#include "support/support.h"

#include "mdp/rational.h"

#include <math.h>

// Fractions that doubles stand for, added up in any order.
static void test_fractions(void **state)
{
    (void)state;
    for (int q = 1; q <= 2000; q++) {
        uint64_t sum = 0;
        const uint64_t part = mdp_residue(1.0 / q);
        for (int i = 0; i < q; i++) sum = mdp_plus(sum, part);
        assert_true(sum == 1);
        assert_true(mdp_times(part, (uint64_t)q) == 1);
    }
    assert_true(mdp_plus(mdp_residue(0.1), mdp_residue(0.2)) == mdp_residue(0.3));
    assert_true(mdp_plus(mdp_residue(0.12345678901), mdp_residue(0.87654321099)) == 1);
    assert_true(mdp_residue(0.1 + 0.2) == mdp_residue(0.3));
    // as files with few digits have them
    assert_true(mdp_residue(0.333333) == mdp_residue(1.0 / 3));
    assert_true(mdp_residue(0.6666666667) == mdp_residue(2.0 / 3));
    assert_true(mdp_residue(0.1428571429) == mdp_residue(1.0 / 7));
    assert_true(mdp_residue(0.999999) != 1 && mdp_residue(0.500001) != mdp_residue(0.5));
    assert_true(mdp_residue(1e-6) != 0 && mdp_plus(mdp_residue(1e-6), mdp_residue(0.999999)) == 1);
    assert_true(mdp_plus(mdp_residue(-2.5), mdp_residue(2.5)) % MDP_PRIME == 0);
    assert_true(mdp_residue(0x1p-70) != 0 && mdp_residue(M_PI) != mdp_residue(M_E));
    assert_true(mdp_snap(0.1 + 0.2) == 0.3 && mdp_snap(M_PI) == M_PI);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fractions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
