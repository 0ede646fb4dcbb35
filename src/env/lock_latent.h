// The true latent states of a lock: which combinations no reward sequence can tell apart.
#ifndef PSI_ENV_LOCK_LATENT_H
#define PSI_ENV_LOCK_LATENT_H

#include <psifold/env.h>

// Dials move independently of each other, except for the two of a swap. A part is one dial, or that
// pair; each value of a part has a class, and a latent state is one class per part.
typedef struct env_lock_latent {
    int n_parts;
    struct env_lock_part {
        int dial, partner; // partner: PSI_NO_DIAL, or the other dial of a swap
        int classes;
        uint16_t class_of[PSI_MAX_DIGITS * PSI_MAX_DIGITS]; // by digit, or digit · D + partner's
    } part[PSI_MAX_DIALS];
} env_lock_latent;

// Parts with a single class, which never matter, are left out.
void env_lock_latent_make(const psi_task *task, env_lock_latent *latent);
uint64_t env_lock_latent_count(const env_lock_latent *latent); // product of the classes; saturates
int32_t env_lock_latent_state(const env_lock_latent *latent, const psi_task *task,
                              const uint8_t digit[PSI_MAX_DIALS]);

#endif
