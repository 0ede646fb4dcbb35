// Learning curves: what they come to, CSV there and back, event files record by record.
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"

#include <psifold/agent.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const psi_agent_episode CURVE[] = {{10, 0, true, 1, (double)NAN, 0.5},
                                          {8, 1, false, 0.5, 0.125, 1},
                                          {4, 1, false, 0.1, 1.0 / 3, 2.25}};

static void test_scores(void **state)
{
    (void)state;
    const psi_agent_score score = psi_agent_score_of(CURVE, 3);
    assert_true(score.episodes == 3 && score.steps == 22 && score.truncated == 1);
    assert_true(score.reward == 2 && fabs(score.reward_per_step - 2.0 / 22) < 1e-15);
    assert_true(score.solved && score.steps_to_first_solve == 18);
    assert_true(fabs(score.area - (0 + 1.0 / 8 + 1.0 / 4) / 3) < 1e-15);
    const psi_agent_score never = psi_agent_score_of(CURVE, 1);
    assert_true(!never.solved && never.steps_to_first_solve == 10);
    assert_true(psi_agent_score_of(NULL, 0).reward_per_step == 0);
}

static void test_csv(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "curve.csv");
    psi_agent_episode *read;
    size_t n;
    assert_ok(ctx, psi_curve_save_csv(ctx, CURVE, 3, path));
    assert_ok(ctx, psi_curve_load_csv(ctx, path, &read, &n));
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_true(read[i].steps == CURVE[i].steps && read[i].reward == CURVE[i].reward);
        assert_true(read[i].truncated == CURVE[i].truncated);
        assert_true(read[i].epsilon == CURVE[i].epsilon);
        assert_true(i == 0 ? isnan(read[i].loss) : read[i].loss == CURVE[i].loss);
    }
    psi_array_free(ctx, read);
    static const char *const BAD[] = {
        "",
        "episode\n",
        "episode,steps,total_steps,reward,truncated,epsilon,loss\n1,2\n",
        "episode,steps,total_steps,reward,truncated,epsilon,loss\n1,0,0,0,0,0,0\n",
        "episode,steps,total_steps,reward,truncated,epsilon,loss\n2,1,1,0,0,0,0\n",
        "episode,steps,total_steps,reward,truncated,epsilon,loss\n1,1,1,nan,0,0,0\n",
        "episode,steps,total_steps,reward,truncated,epsilon,loss\n1,1,1,1,0,0,0",
        "episode,steps,total_steps,reward,truncated,epsilon,loss\n1,1,1,1,0,0,0\nmore"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        test_put_text(path, BAD[i]);
        assert_status(ctx, psi_curve_load_csv(ctx, path, &read, &n), PSI_EFORMAT);
        assert_null(read);
    }
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// CRC-32C by polynomial division, nothing like the library's loop: 33 bits at a time.
static uint32_t slow_crc(const uint8_t *bytes, size_t n)
{
    uint64_t rest = 0;
    for (size_t bit = 0; bit < 8 * n + 32; bit++) {
        uint64_t in = bit < 8 * n ? (bytes[bit / 8] >> bit % 8) & 1 : 0;
        if (bit < 32) in ^= 1;
        rest = rest << 1 | in;
        if (rest >> 32) rest ^= 0x11edc6f41;
    }
    uint32_t mirrored = 0;
    for (int bit = 0; bit < 32; bit++) mirrored |= (uint32_t)(rest >> bit & 1) << (31 - bit);
    return ~mirrored;
}

static uint32_t unmask(uint32_t masked)
{
    const uint32_t rotated = masked - 0xa282ead8U;
    return rotated >> 17 | rotated << 15;
}

static void test_events(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), *bytes;
    const char *path = test_path(folder, "events.out.tfevents.test");
    size_t size, records = 0;
    assert_int_equal(slow_crc((const uint8_t *)"123456789", 9), 0xe3069283); // the known answer
    assert_ok(ctx, psi_curve_save_events(ctx, CURVE, 3, 1e9, path));
    assert_ok(ctx, base_read_file(ctx, path, 1 << 20, &bytes, &size));
    for (size_t at = 0; at < size; records++) {
        uint64_t length;
        uint32_t of_length, of_data;
        assert_true(at + 12 <= size);
        memcpy(&length, bytes + at, 8);
        memcpy(&of_length, bytes + at + 8, 4);
        assert_int_equal(unmask(of_length), slow_crc((uint8_t *)bytes + at, 8));
        assert_true(at + 16 + length <= size);
        memcpy(&of_data, bytes + at + 12 + length, 4);
        assert_int_equal(unmask(of_data), slow_crc((uint8_t *)bytes + at + 12, (size_t)length));
        at += 16 + (size_t)length;
    }
    assert_int_equal(records, 4);
    base_free(ctx, bytes);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
