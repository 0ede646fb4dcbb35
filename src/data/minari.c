// Minari: a group per episode. The action space stands in metadata.json beside the file, as JSON
// inside JSON; everything else is taken from the arrays themselves.
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "data/formats.h"
#include "data/hdf5.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 384, LIST_BYTES = 320, METADATA_LIMIT = 1 << 28 };

typedef struct minari_reader {
    data_reading base;
    char observations[PATH_BYTES]; // below an episode: "observations/image"
    int64_t action_start;
    size_t n_actions; // 0: the file does not say
    size_t n_episodes;
} minari_reader;

static psi_status read_action_space(minari_reader *reader, const char *metadata, json_t *root)
{
    psi_ctx *ctx = reader->base.ctx;
    json_t *text = json_object_get(root, "action_space"), *space = NULL;
    if (!text) return PSI_OK;
    psi_status status = PSI_OK;
    if (json_is_string(text)) {
        TRY(base_json_parse(ctx, metadata, json_string_value(text), json_string_length(text),
                            &space));
    } else {
        space = json_incref(text);
    }
    const char *type = json_string_value(json_object_get(space, "type"));
    if (!type || strcmp(type, "Discrete") != 0) {
        status = FAIL(ctx, PSI_EUNSUPPORTED,
                      "%s: the action space is %.40s; psifold needs Discrete "
                      "actions",
                      metadata, type ? type : "not given");
        goto done;
    }
    const json_int_t n = json_integer_value(json_object_get(space, "n"));
    if (n < 1 || n > PSI_MAX_ACTIONS) {
        status =
            FAIL(ctx, PSI_EFORMAT, "%s: an action space of %lld actions", metadata, (long long)n);
        goto done;
    }
    reader->n_actions = (size_t)n;
    reader->action_start = json_integer_value(json_object_get(space, "start"));
done:
    json_decref(space);
    return status;
}

static psi_status read_metadata(minari_reader *reader, const char *metadata)
{
    psi_ctx *ctx = reader->base.ctx;
    json_t *root = NULL;
    psi_status status = PSI_OK;
    if (!metadata || !base_is_there(metadata)) return PSI_OK;
    TRY(base_json_load(ctx, metadata, METADATA_LIMIT, &root));
    TRY(read_action_space(reader, metadata, root));
    const json_t *episodes = json_object_get(root, "total_episodes");
    if (json_is_integer(episodes) &&
        json_integer_value(episodes) != (json_int_t)reader->n_episodes) {
        status = FAIL(ctx, PSI_EDATA, "%s: total_episodes is %lld, but the file has %zu episodes",
                      metadata, (long long)json_integer_value(episodes), reader->n_episodes);
    }
done:
    json_decref(root);
    return status;
}

static bool count_episode(void *user, const char *name)
{
    size_t *count = user;
    *count += strncmp(name, "episode_", 8) == 0;
    return true;
}

// The arrays below a group, as a list for people and for counting.
typedef struct leaf_list {
    size_t n;
    char first[PATH_BYTES];
    char text[LIST_BYTES];
} leaf_list;

enum { MOST_KEYS = 256, DEEPEST = 8 };

typedef struct key_names {
    size_t n;
    char name[MOST_KEYS][64];
} key_names;

static bool keep_key(void *user, const char *name)
{
    key_names *keys = user;
    if (keys->n == MOST_KEYS) return false;
    const size_t size = strlen(name) + 1;
    if (size <= sizeof keys->name[0]) memcpy(keys->name[keys->n++], name, size);
    return true;
}

static psi_status list_leaves(minari_reader *reader, const char *group, const char *prefix,
                              int depth, leaf_list *leaves)
{
    psi_ctx *ctx = reader->base.ctx;
    psi_status status = PSI_OK;
    key_names *keys = NULL;
    if (depth > DEEPEST) {
        return FAIL(ctx, PSI_EUNSUPPORTED, "%s: %s is nested too deeply",
                    reader->base.archive->path, group);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *keys, &keys));
    TRY(data_hdf5_list(reader->base.archive, group, keep_key, keys));
    for (size_t i = 0; i < keys->n; i++) {
        char path[PATH_BYTES], key[PATH_BYTES];
        snprintf(path, sizeof path, "%.300s/%s", group, keys->name[i]);
        snprintf(key, sizeof key, "%.300s%s%s", prefix, *prefix ? "/" : "", keys->name[i]);
        const data_node node = data_hdf5_node(reader->base.archive, path);
        if (node == DATA_GROUP) {
            TRY(list_leaves(reader, path, key, depth + 1, leaves));
        } else if (node == DATA_ARRAY) {
            if (leaves->n++ == 0) snprintf(leaves->first, sizeof leaves->first, "%s", key);
            const size_t used = strlen(leaves->text);
            snprintf(leaves->text + used, sizeof leaves->text - used, "%s%s", used ? ", " : "",
                     key);
        }
    }
done:
    base_free(ctx, keys);
    return status;
}

// Which array of an episode the observations are: a Dict or Tuple needs a choice.
static psi_status choose_observations(minari_reader *reader, const char *key)
{
    psi_ctx *ctx = reader->base.ctx;
    const char *path = reader->base.archive->path;
    leaf_list leaves = {0};
    const data_node node = data_hdf5_node(reader->base.archive, "episode_0/observations");
    if (node == DATA_ARRAY) {
        snprintf(reader->observations, sizeof reader->observations, "observations");
        if (!key) return PSI_OK;
        return FAIL(ctx, PSI_EUSAGE,
                    "%s: the observations are one array, there is no \"%s\" to "
                    "choose",
                    path, key);
    }
    if (node == DATA_NO_NODE) {
        return FAIL(ctx, PSI_EDATA, "%s: episode 0, observations: missing", path);
    }
    const psi_status status = list_leaves(reader, "episode_0/observations", "", 0, &leaves);
    if (status != PSI_OK) return status;
    if (!key && leaves.n != 1) {
        return FAIL(ctx, PSI_EUSAGE,
                    "%s: the observations consist of several arrays, choose one "
                    "of: %s",
                    path, leaves.text);
    }
    if (!key) key = leaves.first;
    char full[PATH_BYTES];
    snprintf(full, sizeof full, "episode_0/observations/%.300s", key);
    if (data_hdf5_node(reader->base.archive, full) != DATA_ARRAY) {
        return FAIL(ctx, PSI_EUSAGE, "%s: the observations have no \"%.60s\", choose one of: %s",
                    path, key, leaves.text);
    }
    snprintf(reader->observations, sizeof reader->observations, "observations/%.300s", key);
    return PSI_OK;
}

// Step flags must be set at the last step only; *last tells whether they are there.
static psi_status read_end(minari_reader *reader, size_t e, const char *field, size_t length,
                           bool *last)
{
    psi_ctx *ctx = reader->base.ctx;
    const char *path = reader->base.archive->path;
    char name[PATH_BYTES];
    uint8_t *flags;
    size_t n;
    snprintf(name, sizeof name, "episode_%zu/%s", e, field);
    psi_status status = data_read_flags(reader->base.archive, name, &n, &flags);
    if (status != PSI_OK) return status;
    *last = false;
    if (n != length) {
        status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, %s: %zu values for %zu steps", path, e,
                      field, n, length);
    }
    for (size_t t = 0; t < n && status == PSI_OK; t++) {
        if (flags[t] && t + 1 < n) {
            status = FAIL(ctx, PSI_EDATA,
                          "%s: episode %zu, %s: set at step %zu, but the episode "
                          "goes on to step %zu",
                          path, e, field, t, n - 1);
        }
    }
    if (status == PSI_OK && n > 0) *last = flags[n - 1];
    base_free(ctx, flags);
    return status;
}

static psi_status read_latent(minari_reader *reader, size_t e, size_t length)
{
    psi_ctx *ctx = reader->base.ctx;
    char name[PATH_BYTES];
    int64_t *states;
    size_t n;
    snprintf(name, sizeof name, "episode_%zu/infos/latent_state", e);
    psi_status status = data_read_integers(reader->base.archive, name, &n, &states);
    if (status != PSI_OK) return status;
    if (n != length + 1) {
        status = FAIL(ctx, PSI_EDATA,
                      "%s: episode %zu, infos/latent_state: %zu values for %zu "
                      "observations",
                      reader->base.archive->path, e, n, length + 1);
    } else {
        status = data_set_latent(ctx, reader->base.set,
                                 psi_row(e, reader->base.set->episode_offsets[e]), states, n, name);
    }
    base_free(ctx, states);
    return status;
}

static psi_status read_episode(minari_reader *reader, size_t e)
{
    psi_ctx *ctx = reader->base.ctx;
    const char *path = reader->base.archive->path;
    psi_status status = PSI_OK;
    data_steps steps = {0};
    size_t n, index;
    bool terminated, truncated;
    char name[PATH_BYTES + 32], actions[64];
    snprintf(name, sizeof name, "episode_%zu", e);
    if (data_hdf5_node(reader->base.archive, name) != DATA_GROUP) {
        return FAIL(ctx, PSI_EDATA, "%s: episode %zu is missing, though there are %zu episodes",
                    path, e, reader->n_episodes);
    }
    snprintf(name, sizeof name, "episode_%zu/rewards", e);
    snprintf(actions, sizeof actions, "episode_%zu/actions", e);
    TRY(data_reading_steps(&reader->base, name, actions, &steps));
    const size_t length = steps.n;
    TRY(read_end(reader, e, "terminations", length, &terminated));
    TRY(read_end(reader, e, "truncations", length, &truncated));
    TRY(data_reading_add(&reader->base, length, steps.actions, reader->action_start, actions,
                         steps.rewards, terminated, truncated));
    snprintf(name, sizeof name, "episode_%zu/%s", e, reader->observations);
    TRY(data_source_add_array(ctx, reader->base.source, name, &index, &n));
    if (n == length) {
        status = FAIL(ctx, PSI_EDATA,
                      "%s: episode %zu, %s: the last observation is missing (%zu "
                      "observations for %zu steps)",
                      path, e, reader->observations, n, length);
        goto done;
    }
    if (n != length + 1) {
        status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, %s: %zu observations for %zu steps", path,
                      e, reader->observations, n, length);
        goto done;
    }
    TRY(data_source_add_rows(ctx, reader->base.source, index, 0, n));
    if (reader->base.set->has_latent_states) TRY(read_latent(reader, e, length));
done:
    data_steps_free(ctx, &steps);
    return status;
}

psi_status data_read_minari(psi_ctx *ctx, data_archive *archive, const char *metadata,
                            const char *observation_key, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    minari_reader reader = {0};
    data_reading *reading = &reader.base;
    *out = NULL;
    TRY(data_reading_begin(ctx, archive, data_archive_has(archive, "episode_0/infos/latent_state"),
                           reading));
    TRY(data_hdf5_list(archive, "/", count_episode, &reader.n_episodes));
    TRY(read_metadata(&reader, metadata));
    TRY(choose_observations(&reader, observation_key));
    base_progress progress = base_progress_start(ctx, "reading", reader.n_episodes);
    for (size_t e = 0; e < reader.n_episodes; e++) {
        TRY(read_episode(&reader, e));
        TRY(base_progress_at(&progress, e + 1));
    }
    if (observation_key) {
        TRY(base_copy_text(ctx, observation_key, &reading->set->observation_key));
        reading->set->view.observation_key = reading->set->observation_key;
    }
    status = data_reading_end(reading, reader.n_actions, out);
done:
    data_reading_free(reading);
    return status;
}
