// What the chapters on tasks share: limits, and which options somebody has given.
#ifndef PSI_ENV_TASK_H
#define PSI_ENV_TASK_H

#include <psifold/env.h>

enum {
    ENV_MAX_SIDE = 1024, // rows and columns of a grid: a float then has 13 bits for the point
    ENV_MAX_IMAGES = 100000,
    ENV_RIGHT_COLUMN = -2 // "right", until the width is known
};

const char *env_digits_name(psi_digits digits);

bool env_task_wants_default_goal(const psi_task *task);
bool env_task_gave_broken(const psi_task *task);
bool env_task_gave_reverse(const psi_task *task);
bool env_task_gave_random_share(const psi_task *task);

#endif
