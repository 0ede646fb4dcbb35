// What the tests of this room share: tasks from a line of options, and random locks.
#ifndef PSI_TESTS_ENV_TASKS_H
#define PSI_TESTS_ENV_TASKS_H

#include "support/support.h"

#include "base/random.h"

#include <psifold/env.h>
#include <stdio.h>
#include <string.h>

// The task with these options, "dials 4 broken 2 no-terminate": names and values in turn.
static inline psi_status test_task_from(psi_ctx *ctx, const char *name, const char *preset,
                                        const char *options, psi_task *task)
{
    psi_status status = psi_task_defaults(ctx, name, preset, task);
    char line[512], *rest = line;
    snprintf(line, sizeof line, "%s", options);
    for (char *option; status == PSI_OK && (option = strtok_r(NULL, " ", &rest));) {
        const bool is_switch = strstr(option, "terminate") != NULL;
        status = psi_task_set(ctx, task, option, is_switch ? NULL : strtok_r(NULL, " ", &rest));
    }
    return status == PSI_OK ? psi_task_check(ctx, task) : status;
}

static inline psi_task test_task(psi_ctx *ctx, const char *name, const char *preset,
                                 const char *options)
{
    psi_task task;
    assert_ok(ctx, test_task_from(ctx, name, preset, options, &task));
    return task;
}

// A small random lock without images; every feature occurs.
static inline psi_task test_random_lock(psi_ctx *ctx, base_random *random)
{
    for (;;) {
        psi_task task;
        assert_ok(ctx, psi_task_defaults(ctx, "combination-lock", NULL, &task));
        task.digits = PSI_DIGITS_NONE;
        task.dials = task.goal_length = 2 + (int)base_random_below(random, 2);
        task.digits_per_dial = 2 + (int)base_random_below(random, 4);
        for (int i = 0; i < task.dials; i++) {
            const uint32_t mark = base_random_below(random, 4);
            task.broken[i] = mark == 0;
            task.reversed[i] = mark == 1;
            task.goal[i] = (int)base_random_below(random, (uint32_t)task.digits_per_dial + 1) - 1;
        }
        if (base_random_below(random, 2)) {
            task.swap[0] = (int)base_random_below(random, (uint32_t)task.dials);
            task.swap[1] = (int)base_random_below(random, (uint32_t)task.dials);
        }
        if (psi_task_check(ctx, &task) == PSI_OK) return task;
    }
}

#endif
