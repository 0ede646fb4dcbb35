// Masses of transitions, once before refinement: every thread writes the rows of its choices.
#include "mdp/masses.h"

#include "base/checked.h"
#include "base/context.h"
#include "mdp/intern.h"
#include "mdp/rational.h"

#include <math.h>
#include <string.h>

static const double UNIT = 0x1p52; // counts of a probability of 1

// Rows that were used lately.
enum { RECENT = 4096 };
typedef struct recent {
    uint64_t mass;
    uint32_t kind, row; // row + 1; 0: none
} recent;

// The rows of one thread, numbered from 0.
typedef struct share {
    psi_status status;
    mdp_residues known;
    recent recent[RECENT];
    uint64_t begin, end; // transitions
    size_t n, room;
    uint64_t *mass;   // (room)
    uint32_t *kind;   // (room)
    size_t before;    // rows of the threads before
    uint64_t *choice; // (room_choice) masses of the choice at hand
    size_t room_choice;
} share;

typedef struct measuring {
    psi_ctx *ctx;
    const psi_model *model;
    const uint32_t *kind;
    bool residues;
    mdp_masses *out;
    share *shares; // (threads)
} measuring;

static psi_status row_of(psi_ctx *ctx, share *own, uint64_t mass, uint32_t kind, uint32_t *row)
{
    psi_status status = PSI_OK;
    recent *at = &own->recent[(mass + kind) * UINT64_C(0x9E3779B97F4A7C15) >> 52];
    if (at->mass != mass || at->kind != kind || at->row == 0) {
        if (own->n == own->room) {
            const size_t room = base_max(2 * own->room, 1024);
            TRY(base_resize(ctx, room, sizeof *own->mass, &own->mass));
            TRY(base_resize(ctx, room, sizeof *own->kind, &own->kind));
            own->room = room;
        }
        if (own->n >= UINT32_MAX) TRY(FAIL(ctx, PSI_ELIMIT, "more than 2^32 different masses"));
        own->mass[own->n] = mass;
        own->kind[own->n] = kind;
        *at = (recent){mass, kind, (uint32_t)++own->n};
    }
    *row = at->row - 1;
done:
    return status;
}

// Fills in the masses of a choice: as fractions they are made to sum to exactly 1.
static void measure(const measuring *m, share *own, const double *probability, size_t n,
                    uint64_t *mass)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        mass[i] = m->residues ? mdp_residue_of(&own->known, probability[i])
                              : (uint64_t)llrint(probability[i] * UNIT);
        sum = mdp_plus(sum, m->residues ? mass[i] : 0);
    }
    if (sum <= 1) return;
    const uint64_t scale = mdp_inverse(sum);
    for (size_t i = 0; i < n; i++) mass[i] = mdp_times(mass[i], scale);
}

static psi_status measure_choice(measuring *m, share *own, uint64_t c)
{
    psi_status status = PSI_OK;
    const uint64_t begin = m->model->offsets[c], n = m->model->offsets[c + 1] - begin;
    if (n > own->room_choice) {
        TRY(base_resize(m->ctx, 2 * n, sizeof *own->choice, &own->choice));
        own->room_choice = 2 * n;
    }
    measure(m, own, m->model->probability + begin, n, own->choice);
    for (uint64_t i = 0; i < n; i++)
        TRY(row_of(m->ctx, own, own->choice[i], m->kind[c], &m->out->row[begin + i]));
done:
    return status;
}

static void measure_task(void *argument, int thread, int threads)
{
    measuring *m = argument;
    share *own = &m->shares[thread];
    size_t begin, end;
    base_slice(m->model->n_choices, thread, threads, &begin, &end);
    own->begin = m->model->offsets[begin];
    own->end = m->model->offsets[end];
    for (size_t c = begin; c < end && own->status == PSI_OK; c++)
        own->status = measure_choice(m, own, c);
}

// Puts the threads' rows one behind the other.
static void join_task(void *argument, int thread, int threads)
{
    const measuring *m = argument;
    const share *own = &m->shares[thread];
    (void)threads;
    if (own->n == 0) return; // no transition fell to this thread
    memcpy(m->out->mass + own->before, own->mass, own->n * sizeof *own->mass);
    memcpy(m->out->kind + own->before, own->kind, own->n * sizeof *own->kind);
    if (own->before == 0) return;
    for (uint64_t i = own->begin; i < own->end; i++) m->out->row[i] += (uint32_t)own->before;
}

static void share_out(base_team *team, base_task *task, measuring *m)
{
    if (team)
        base_team_run(team, task, m);
    else
        task(m, 0, 1);
}

psi_status mdp_masses_new(psi_ctx *ctx, base_team *team, const psi_model *model,
                          const uint32_t *kind, bool residues, mdp_masses *out)
{
    psi_status status = PSI_OK;
    const int threads = team ? base_team_size(team) : 1;
    measuring m = {ctx, model, kind, residues, out, NULL};
    *out = (mdp_masses){0};
    TRY(base_alloc(ctx, model->n_transitions, sizeof *out->row, &out->row));
    TRY(base_alloc_zero(ctx, (size_t)threads, sizeof *m.shares, &m.shares));
    share_out(team, measure_task, &m);
    for (int t = 0; t < threads; t++) {
        TRY(m.shares[t].status);
        m.shares[t].before = out->n_rows;
        out->n_rows += m.shares[t].n;
    }
    if (out->n_rows > UINT32_MAX) TRY(FAIL(ctx, PSI_ELIMIT, "more than 2^32 different masses"));
    TRY(base_alloc(ctx, out->n_rows, sizeof *out->mass, &out->mass));
    TRY(base_alloc(ctx, out->n_rows, sizeof *out->kind, &out->kind));
    share_out(team, join_task, &m);
done:
    for (int t = 0; m.shares && t < threads; t++) {
        base_free(ctx, m.shares[t].mass);
        base_free(ctx, m.shares[t].kind);
        base_free(ctx, m.shares[t].choice);
    }
    base_free(ctx, m.shares);
    if (status != PSI_OK) mdp_masses_free(ctx, out);
    return status;
}

void mdp_masses_free(psi_ctx *ctx, mdp_masses *masses)
{
    base_free(ctx, masses->kind);
    base_free(ctx, masses->mass);
    base_free(ctx, masses->row);
    *masses = (mdp_masses){0};
}
