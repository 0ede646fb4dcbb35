// Text on its way into a file, piece by piece. A failure sticks and is asked for once, at the end.
#ifndef PSI_MDP_TEXT_OUT_H
#define PSI_MDP_TEXT_OUT_H

#include "base/context.h"
#include "base/file.h"

typedef struct mdp_text_out {
    base_output *output;
    psi_status status;
    size_t used;
    char buffer[1 << 15];
} mdp_text_out;

// Text for this output, which stays the caller's; so does *out, to be given back with base_free.
psi_status mdp_text_out_new(psi_ctx *ctx, base_output *output, mdp_text_out **out);
void mdp_put(mdp_text_out *out, const char *format, ...) PRINTF_LIKE(2, 3);
void mdp_put_count(mdp_text_out *out, uint64_t count);
void mdp_put_number(mdp_text_out *out, double number); // the shortest that reads as the same
psi_status mdp_put_end(mdp_text_out *out);             // what is left, and how it went

#endif
