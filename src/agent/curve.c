// Learning curves: what they come to, and as CSV. Numbers are written so that reading them gives
// the same bits; times are left out, so that the same seed gives the same bytes.
#include <psifold/agent.h>

#include "base/context.h"
#include "base/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "episode,steps,total_steps,reward,truncated,epsilon,loss\n";
enum { LINE = 256, LARGEST_FILE = 1 << 28 };

psi_agent_score psi_agent_score_of(const psi_agent_episode *episodes, size_t n)
{
    psi_agent_score score = {.episodes = n};
    for (size_t i = 0; i < n; i++) {
        const psi_agent_episode *e = &episodes[i];
        score.steps += e->steps;
        score.reward += e->reward;
        score.truncated += e->truncated;
        score.area += e->reward / (double)(e->steps ? e->steps : 1) / (double)n;
        // rewards of these tasks end an episode, or come in every step from some point on
        if (!score.solved) score.steps_to_first_solve = score.steps;
        if (e->reward > 0) score.solved = true;
    }
    score.reward_per_step = score.steps ? score.reward / (double)score.steps : 0;
    return score;
}

psi_status psi_curve_save_csv(psi_ctx *ctx, const psi_agent_episode *episodes, size_t n,
                              const char *path)
{
    psi_status status = PSI_OK;
    base_output *output = NULL;
    uint64_t total = 0;
    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, HEAD, sizeof HEAD - 1));
    for (size_t i = 0; i < n; i++) {
        const psi_agent_episode *e = &episodes[i];
        char line[LINE];
        total += e->steps;
        const int length =
            snprintf(line, sizeof line, "%zu,%" PRIu64 ",%" PRIu64 ",%.17g,%d,%.17g,%.17g\n", i + 1,
                     e->steps, total, e->reward, e->truncated, e->epsilon, e->loss);
        TRY(base_output_write(output, line, (size_t)length));
    }
    base_output *whole = output;
    output = NULL;
    TRY(base_output_commit(whole));
done:
    base_output_discard(output);
    return status;
}

// The numbers of one line; false if it is not one of ours.
static bool parse_line(const char *text, size_t number, psi_agent_episode *out)
{
    double column[7];
    for (size_t i = 0; i < 7; i++) {
        char *end;
        column[i] = strtod(text, &end);
        if (end == text || *end != (i < 6 ? ',' : '\n')) return false;
        text = end + 1;
    }
    *out = (psi_agent_episode){
        .reward = column[3], .truncated = column[4] != 0, .epsilon = column[5], .loss = column[6]};
    if (!(column[1] >= 1 && column[1] <= 0x1p53)) return false;
    out->steps = (uint64_t)column[1];
    return column[0] == (double)number && isfinite(out->reward) && isfinite(out->epsilon);
}

psi_status psi_curve_load_csv(psi_ctx *ctx, const char *path, psi_agent_episode **episodes,
                              size_t *n)
{
    psi_status status = PSI_OK;
    char *text = NULL;
    size_t size, lines = 0;
    *episodes = NULL;
    *n = 0;
    TRY(base_read_file(ctx, path, LARGEST_FILE, &text, &size));
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    if (strncmp(text, HEAD, sizeof HEAD - 1) != 0) {
        status = FAIL(ctx, PSI_EFORMAT, "%s is not a learning curve", path);
        goto done;
    }
    TRY(base_alloc(ctx, lines, sizeof **episodes, episodes));
    for (const char *at = text + sizeof HEAD - 1; *at; at = strchr(at, '\n') + 1) {
        if (*n + 1 >= lines || !parse_line(at, *n + 1, &(*episodes)[*n])) {
            status = FAIL(ctx, PSI_EFORMAT, "%s: line %zu is not an episode", path, *n + 2);
            goto done;
        }
        (*n)++;
    }
done:
    base_free(ctx, text);
    if (status != PSI_OK) {
        base_free(ctx, *episodes);
        *episodes = NULL;
        *n = 0;
    }
    return status;
}
