// Several files as one data set, and one data set for several processes. The files stand one after
// the other on a line, each as long as it has bytes; every process has an equal stretch of it, and
// reads the episodes that begin there, and no others.
#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/options.h"
#include "data/formats.h"
#include "data/joined.h"
#include "data/observations.h"
#include "data/trajectories.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct parts {
    psi_ctx *ctx;
    const char *const *paths;
    size_t n;
    const psi_read_options *options;
    double *begin;                   // (n + 1) where each file begins on the line
    double low, high;                // the stretch of this process
    data_set *set;                   // the columns of its episodes
    psi_observations **observations; // (n_opened) of the files that it reads from …
    data_piece *pieces;              // (n_opened) … and the rows that are its own
    size_t n_opened, n_rows, memory; // rows that are its own; bytes that they take in memory
    int64_t
        *episodes; // (n) that were taken of each file; (n) that there are; (n) the same, negated
    size_t known_actions, counted_actions; // as files say, or as they were counted
} parts;

// ---- who reads what -----------------------------------------------------------------------------

static psi_status lay_out(parts *all)
{
    psi_status status = PSI_OK;
    const double ranks = base_ranks(all->ctx), rank = base_rank(all->ctx);
    char *file = NULL;
    struct stat info;
    TRY(base_alloc_zero(all->ctx, all->n + 1, sizeof *all->begin, &all->begin));
    for (size_t i = 0; i < all->n; i++) {
        TRY(data_find_file(all->ctx, all->paths[i], &file));
        const off_t bytes = stat(file ? file : all->paths[i], &info) == 0 ? info.st_size : 0;
        base_free(all->ctx, file);
        file = NULL;
        all->begin[i + 1] = all->begin[i] + (double)base_max((size_t)bytes, 1);
    }
    const double whole = all->begin[all->n];
    all->low = whole * rank / ranks;
    all->high = rank + 1.0 < ranks ? whole * (rank + 1.0) / ranks : 2.0 * whole;
done:
    return status;
}

static bool reads_from(const parts *all, size_t i)
{
    return all->begin[i] < all->high && all->begin[i + 1] > all->low;
}

// The episodes of a file that begin in this process's stretch: first … *end − 1.
static size_t own_episodes(const parts *all, size_t i, const psi_trajectories *data, size_t *end)
{
    size_t first = 0;
    *end = 0;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const double share = (double)psi_row(e, data->episode_offsets[e]) /
                             (double)base_max(data->n_observations, 1);
        const double at = all->begin[i] + (all->begin[i + 1] - all->begin[i]) * share;
        if (at < all->low) first = e + 1;
        if (at < all->high) *end = e + 1;
    }
    *end = base_max(*end, first);
    return first;
}

// ---- one file -----------------------------------------------------------------------------------

static psi_status check_alike(parts *all, const char *path, const data_set *part)
{
    const psi_observations *first = all->n_opened ? all->observations[0] : NULL,
                           *other = part->view.observations;
    size_t *known = part->actions_counted ? &all->counted_actions : &all->known_actions;
    if (first && (first->dtype != other->dtype || !psi_shape_equal(&first->shape, &other->shape))) {
        return FAIL(all->ctx, PSI_EDATA,
                    "%s: its observations are not those of %s: type or shape are others", path,
                    all->paths[0]);
    }
    if (!part->actions_counted && *known && *known != part->view.n_actions) {
        return FAIL(all->ctx, PSI_EDATA, "%s has %zu actions, but %s has %zu", path,
                    part->view.n_actions, all->paths[0], *known);
    }
    *known = base_max(*known, part->view.n_actions);
    return PSI_OK;
}

// Copies the episodes first … end − 1.
static psi_status take_episodes(parts *all, const psi_trajectories *data, size_t first, size_t end)
{
    psi_status status = PSI_OK;
    data_set *set = all->set;
    for (size_t e = first; e < end; e++) {
        const uint64_t from = data->episode_offsets[e];
        const size_t length = (size_t)(data->episode_offsets[e + 1] - from);
        const size_t to = set->view.n_transitions, last = set->view.n_episodes;
        TRY(data_set_append(all->ctx, set, length));
        memcpy(set->actions + to, data->actions + from, length * sizeof *set->actions);
        memcpy(set->rewards + to, data->rewards + from, length * sizeof *set->rewards);
        set->terminated[last] = data->terminated[e];
        set->truncated[last] = data->truncated[e];
        set->final_missing[last] = data->final_missing[e];
        if (!set->has_latent_states || !data->latent_states) continue;
        memcpy(set->latent_states + to + last, data->latent_states + from + e,
               (length + 1) * sizeof *set->latent_states);
    }
done:
    return status;
}

// Of a file that others read from, too, only the own rows come into memory.
static psi_status bring_rows(parts *all, psi_observations *from, size_t first, size_t n,
                             psi_observations **out)
{
    psi_status status = PSI_OK;
    uint64_t *rows = NULL;
    psi_observations *here = NULL;
    *out = NULL;
    TRY(base_alloc(all->ctx, n, sizeof *rows, &rows));
    for (size_t i = 0; i < n; i++) rows[i] = first + i;
    TRY(data_observations_new(all->ctx, from->dtype, &from->shape, n, &here));
    TRY(base_alloc(all->ctx, n, here->row_bytes, &here->owned));
    TRY(psi_observations_gather(all->ctx, from, rows, n, here->owned));
    here->data = here->owned;
    *out = here;
    here = NULL;
done:
    psi_observations_free(all->ctx, here);
    base_free(all->ctx, rows);
    return status;
}

static void keep_findings(parts *all, const data_set *part)
{
    for (size_t i = 0; i < part->view.n_findings; i++) { // told already, with the name of the file
        psi_trajectories *view = &all->set->view;
        if (view->n_findings == DATA_FINDINGS) return;
        char *finding = all->set->finding[view->n_findings];
        snprintf(finding, DATA_FINDING_BYTES, "%.60s: %.250s", part->name, part->finding[i]);
        all->set->findings[view->n_findings++] = finding;
        view->findings = all->set->findings;
    }
}

static psi_status add_file(parts *all, size_t i)
{
    psi_status status = PSI_OK;
    const bool whole = all->begin[i] >= all->low && all->begin[i + 1] <= all->high;
    const size_t bound = data_memory_limit(all->options),
                 rest = bound - base_min(bound, all->memory);
    const psi_read_options how = {.size = sizeof how,
                                  .observation_key =
                                      all->options ? all->options->observation_key : NULL,
                                  .memory_limit = whole ? base_max(rest, 1) : 1};
    psi_trajectories *data = NULL;
    psi_observations *here = NULL;
    size_t end;
    TRY(psi_trajectories_read(all->ctx, all->paths[i], &how, &data));
    data_set *part = (data_set *)data;
    TRY(check_alike(all, all->paths[i], part));
    const size_t first = own_episodes(all, i, data, &end);
    const size_t from = psi_row(first, data->episode_offsets[first]);
    const size_t n = psi_row(end, data->episode_offsets[end]) - from;
    if (!all->set) {
        TRY(data_set_new(all->ctx, all->paths[0], part->has_latent_states, &all->set));
    } else if (all->set->has_latent_states && !part->has_latent_states) {
        base_free(all->ctx, all->set->latent_states);
        all->set->latent_states = NULL;
        all->set->has_latent_states = false;
        data_finding(all->ctx, all->set, "not all files know the true latent states: left out.");
    }
    all->episodes[i] = (int64_t)(end - first);
    all->episodes[all->n + i] = (int64_t)data->n_episodes;
    all->episodes[2 * all->n + i] = -(int64_t)data->n_episodes;
    TRY(take_episodes(all, data, first, end));
    keep_findings(all, part);
    const size_t bytes = n * data->observations->row_bytes;
    const bool bring = !whole && !data->observations->data && bytes <= rest;
    if (bring) TRY(bring_rows(all, data->observations, from, n, &here));
    if (!bring) { // the file's own
        here = data->observations;
        data->observations = NULL;
    }
    all->memory += here->data ? bytes : 0;
    all->observations[all->n_opened] = here;
    all->pieces[all->n_opened++] = (data_piece){here, bring ? 0 : from, all->n_rows, n};
    all->n_rows += n;
    here = NULL;
done:
    psi_observations_free(all->ctx, here);
    psi_trajectories_free(all->ctx, data);
    return status;
}

// ---- what the others have -----------------------------------------------------------------------

// Every episode of every file is somebody's, and the files are the same for all.
static psi_status check_shares(parts *all)
{
    psi_status status = PSI_OK;
    int64_t *sums = all->episodes, *sizes = all->episodes + all->n;
    for (size_t i = 0; i < all->n; i++) {
        if (!reads_from(all, i)) sizes[i] = sizes[all->n + i] = INT64_MIN;
    }
    TRY(base_sum(all->ctx, sums, all->n));
    TRY(base_maximum(all->ctx, sizes, 2 * all->n));
    for (size_t i = 0; i < all->n; i++) {
        if (sizes[i] == -sizes[all->n + i] && sums[i] == sizes[i]) continue;
        TRY(FAIL(all->ctx, PSI_EDATA, "%s is not the same file for all processes", all->paths[i]));
    }
done:
    return status;
}

// What all processes have to agree on: of one that reads nothing, nothing is asked.
typedef struct kind {
    uint64_t here, dtype, known_actions, counted_actions, latent_states;
    psi_shape shape;
} kind;

static psi_status agree(parts *all, kind *out)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)base_ranks(all->ctx);
    kind own = {.here = all->n_opened > 0,
                .known_actions = all->known_actions,
                .counted_actions = all->counted_actions,
                .latent_states = all->set && all->set->has_latent_states};
    kind *each = NULL;
    if (own.here) {
        own.dtype = all->observations[0]->dtype;
        own.shape = all->observations[0]->shape;
    }
    TRY(base_alloc(all->ctx, ranks, sizeof *each, &each));
    TRY(base_gather(all->ctx, &own, sizeof own, each));
    *out = (kind){0};
    for (size_t r = 0; r < ranks; r++) {
        const kind *other = &each[r];
        if (!other->here) continue;
        const uint64_t known = base_max(out->known_actions, other->known_actions);
        const uint64_t counted = base_max(out->counted_actions, other->counted_actions);
        const bool alike = !out->here || (out->dtype == other->dtype &&
                                          psi_shape_equal(&out->shape, &other->shape));
        const bool actions = !out->known_actions || !other->known_actions ||
                             out->known_actions == other->known_actions;
        if (!alike || !actions) {
            TRY(FAIL(all->ctx, PSI_EDATA, "the files have different %s",
                     alike ? "numbers of actions" : "observations"));
        }
        const uint64_t latent = other->latent_states && (out->latent_states || !out->here);
        *out = *other;
        out->known_actions = known;
        out->counted_actions = counted;
        out->latent_states = latent;
    }
    if (!out->here) TRY(FAIL(all->ctx, PSI_EDATA, "the files have no episode"));
    if (out->known_actions && out->counted_actions > out->known_actions) {
        TRY(FAIL(all->ctx, PSI_EDATA, "a file has an action %llu, but there are %llu",
                 (unsigned long long)out->counted_actions - 1,
                 (unsigned long long)out->known_actions));
    }
done:
    base_free(all->ctx, each);
    return status;
}

// A process that has no episode reads no file, and knows of observations what the others say.
static psi_status stand_by(parts *all, const kind *what)
{
    psi_status status = PSI_OK;
    if (!all->set) {
        TRY(data_set_new(all->ctx, all->paths[0], what->latent_states, &all->set));
    }
    if (all->n_opened == 0) {
        TRY(data_observations_new(all->ctx, (psi_dtype)what->dtype, &what->shape, 0,
                                  &all->observations[0]));
        all->pieces[0] = (data_piece){.of = all->observations[0]};
        all->n_opened = 1;
    }
    if (!what->latent_states) all->set->has_latent_states = false;
done:
    return status;
}

static psi_status put_together(parts *all, const kind *what, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    psi_observations *joined = NULL;
    data_set *set = all->set;
    if (!set->has_latent_states) {
        base_free(all->ctx, set->latent_states);
        set->latent_states = NULL;
    }
    set->view.n_actions =
        what->known_actions ? (size_t)what->known_actions : (size_t)what->counted_actions;
    set->actions_counted = !what->known_actions;
    psi_observations **observations = all->observations;
    const size_t n = all->n_opened;
    all->observations = NULL;
    all->n_opened = 0;
    TRY(data_join(all->ctx, observations, n, all->pieces, n, set->view.n_observations, &joined));
    if (all->options && all->options->observation_key) {
        TRY(base_copy_text(all->ctx, all->options->observation_key, &set->observation_key));
        set->view.observation_key = set->observation_key;
    }
    all->set = NULL;
    TRY(data_set_finish(all->ctx, set, joined, out));
    joined = NULL;
done:
    if (all->set) psi_observations_free(all->ctx, joined); // else it was handed over
    return status;
}

psi_status psi_trajectories_read_all(psi_ctx *ctx, const char *const *paths, size_t n,
                                     const psi_read_options *options, psi_trajectories **out)
{
    *out = NULL;
    if (options &&
        !base_options_fit(ctx, options, sizeof *options, "{.size = sizeof(psi_read_options)}"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    parts all = {.ctx = ctx, .paths = paths, .n = n, .options = options};
    kind what;
    if (n == 0) return FAIL(ctx, PSI_EUSAGE, "a data set is at least one file");
    if (n == 1 && base_ranks(ctx) == 1) return psi_trajectories_read(ctx, paths[0], options, out);
    TRY(lay_out(&all));
    TRY(base_alloc_zero(ctx, n, sizeof *all.observations, &all.observations));
    TRY(base_alloc_zero(ctx, n, sizeof *all.pieces, &all.pieces));
    TRY(base_alloc_zero(ctx, 3 * n, sizeof *all.episodes, &all.episodes));
    for (size_t i = 0; i < n; i++) {
        if (reads_from(&all, i)) TRY(add_file(&all, i));
    }
    TRY(check_shares(&all));
    TRY(agree(&all, &what));
    TRY(stand_by(&all, &what));
    TRY(put_together(&all, &what, out));
    TRY(data_check_appetite(ctx, *out, paths[0]));
done:
    if (status != PSI_OK) {
        psi_trajectories_free(ctx, *out);
        *out = NULL;
    }
    for (size_t i = 0; i < all.n_opened; i++) psi_observations_free(ctx, all.observations[i]);
    base_free(ctx, all.observations);
    base_free(ctx, all.pieces);
    base_free(ctx, all.episodes);
    base_free(ctx, all.begin);
    data_set_free(ctx, all.set);
    return status;
}

// ---- all of it, by one process ------------------------------------------------------------------

typedef struct column {
    const void *own;
    size_t bytes;
    void *whole; // where a pointer to it goes
} column;

// The rows of one process reach rank 0, block by block.
static psi_status collect_from(psi_ctx *ctx, const psi_observations *own, int rank, size_t n,
                               char *to)
{
    enum { BLOCK_BYTES = 1 << 26 };
    psi_status status = PSI_OK;
    const size_t row_bytes = own->row_bytes;
    const size_t most = base_min(n, base_max(BLOCK_BYTES / base_max(row_bytes, 1), 1));
    const bool here = base_rank(ctx) == 0;
    char *block = NULL;
    uint64_t *rows = NULL;
    if (rank != base_rank(ctx) && !here) return PSI_OK;
    TRY(base_alloc(ctx, most, here ? 0 : row_bytes, &block));
    TRY(base_alloc(ctx, most, sizeof *rows, &rows));
    for (size_t begin = 0; begin < n; begin += most) {
        const size_t count = base_min(most, n - begin);
        char *at = here ? to + begin * row_bytes : block;
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        if (rank == base_rank(ctx)) TRY(psi_observations_gather(ctx, own, rows, count, at));
        TRY(base_hand_over(ctx, at, count * row_bytes, rank, 0));
    }
done:
    base_free(ctx, rows);
    base_free(ctx, block);
    return status;
}

static psi_status collect_observations(psi_ctx *ctx, const psi_observations *own, size_t n,
                                       psi_observations **out)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)base_ranks(ctx), count = psi_observations_count(own);
    size_t *counts = NULL, row = 0;
    TRY(data_observations_new(ctx, own->dtype, &own->shape, n, out));
    TRY(base_alloc(ctx, base_rank(ctx) == 0 ? n : 0, own->row_bytes, &(*out)->owned));
    (*out)->data = (*out)->owned;
    TRY(base_alloc(ctx, ranks, sizeof *counts, &counts));
    TRY(base_gather(ctx, &count, sizeof count, counts));
    for (size_t r = 0; r < ranks; r++) {
        TRY(collect_from(ctx, own, (int)r, counts[r], (*out)->owned + row * own->row_bytes));
        row += counts[r];
    }
done:
    base_free(ctx, counts);
    return status;
}

psi_status psi_trajectories_collect(psi_ctx *ctx, const psi_trajectories *own,
                                    psi_trajectories **out)
{
    psi_status status = PSI_OK;
    data_set *set = NULL;
    psi_observations *observations = NULL;
    uint64_t *lengths = NULL, *all_lengths = NULL;
    const size_t episodes = own->n_episodes, steps = own->n_transitions;
    size_t n[2] = {episodes, steps}, total;
    *out = NULL;
    if (FREED(ctx, own)) return PSI_EUSAGE;
    TRY(data_set_new(ctx, "the data set", own->latent_states != NULL, &set));
    TRY(base_alloc(ctx, episodes, sizeof *lengths, &lengths));
    for (size_t e = 0; e < episodes; e++) {
        lengths[e] = own->episode_offsets[e + 1] - own->episode_offsets[e];
    }
    const column columns[] = {
        {lengths, episodes * sizeof *lengths, &all_lengths},
        {own->terminated, episodes, &set->terminated},
        {own->truncated, episodes, &set->truncated},
        {own->final_missing, episodes, &set->final_missing},
        {own->actions, steps * sizeof *own->actions, &set->actions},
        {own->rewards, steps * sizeof *own->rewards, &set->rewards},
        {own->latent_states, (steps + episodes) * sizeof *own->latent_states, &set->latent_states},
    };
    TRY(base_sum_sizes(ctx, n, 2));
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        if (!columns[c].own && columns[c].whole == &set->latent_states) continue; // nobody has them
        TRY(base_collect(ctx, columns[c].own, columns[c].bytes, columns[c].whole, &total));
    }
    TRY(collect_observations(ctx, own->observations, n[0] + n[1], &observations));
    if (base_rank(ctx) > 0) goto done;
    set->view.n_episodes = n[0];
    set->view.n_transitions = n[1];
    set->view.n_observations = n[0] + n[1];
    set->view.n_actions = own->n_actions;
    TRY(base_resize(ctx, n[0] + 1, sizeof *set->episode_offsets, &set->episode_offsets));
    for (size_t e = 0; e < n[0]; e++) {
        set->episode_offsets[e + 1] = set->episode_offsets[e] + all_lengths[e];
    }
    data_set *finished = set;
    psi_observations *taken = observations;
    set = NULL;
    observations = NULL;
    TRY(data_set_finish(ctx, finished, taken, out));
done:
    psi_observations_free(ctx, observations);
    data_set_free(ctx, set);
    base_free(ctx, all_lengths);
    base_free(ctx, lengths);
    return status;
}
