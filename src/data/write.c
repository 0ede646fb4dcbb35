// psi_writer: checks every episode and hands it to the kind of file that was asked for.
#include "base/context.h"
#include "data/trajectories.h"
#include "data/writer.h"

#include <string.h>

void psi_writer_discard(psi_writer *writer)
{
    if (!writer || FREED(NULL, writer)) return;
    psi_ctx *ctx = writer->ctx;
    if (writer->state) writer->kind->release(writer);
    base_free(ctx, writer->state);
    base_free(ctx, writer->folder);
    base_output_discard(writer->output);
    base_free(ctx, writer->task_options);
    base_free(ctx, writer->name);
    base_free(ctx, writer->path);
    base_retire(ctx, writer);
}

psi_status psi_writer_open(psi_ctx *ctx, const char *path, const psi_episode_spec *spec,
                           bool replace, psi_writer **out)
{
    psi_status status = PSI_OK;
    psi_writer *writer = NULL;
    *out = NULL;
    TRY(data_check_spec(ctx, spec));
    TRY(base_alloc_zero(ctx, 1, sizeof *writer, &writer));
    writer->ctx = ctx;
    writer->spec = *spec;
    writer->row_bytes =
        psi_dtype_size(spec->observation_dtype) * psi_shape_size(&spec->observation_shape);
    TRY(base_copy_text(ctx, path, &writer->path));
    if (spec->name) TRY(base_copy_text(ctx, spec->name, &writer->name));
    if (spec->task_options) TRY(base_copy_text(ctx, spec->task_options, &writer->task_options));
    writer->spec.name = writer->name;
    writer->spec.task_options = writer->task_options;
    const size_t length = strlen(path);
    const bool npz = length > 4 && strcmp(path + length - 4, ".npz") == 0;
    const data_writer_kind *kind = npz ? &DATA_NPZ_WRITER : &DATA_MINARI_WRITER;
    writer->kind = kind;
    if (replace && kind->check_replaced) TRY(kind->check_replaced(ctx, path));
    TRY(base_output_open(ctx, path, kind->output, replace, &writer->output));
    TRY(base_alloc_zero(ctx, 1, kind->state_bytes, &writer->state));
    TRY(kind->open(writer));
    *out = writer;
    writer = NULL;
done:
    psi_writer_discard(writer);
    return status;
}

psi_status psi_writer_add(psi_writer *writer, const psi_episode *episode)
{
    if (FREED(NULL, writer)) return PSI_EUSAGE;
    if (writer->failed != PSI_OK) {
        return FAIL(writer->ctx, writer->failed, "%s: writing has failed before", writer->path);
    }
    psi_status status =
        data_check_episode(writer->ctx, &writer->spec, episode, writer->path, writer->n_episodes);
    if (status != PSI_OK) return status; // nothing was written: the next episode may come
    status = writer->kind->add(writer, episode);
    writer->failed = status;
    if (status == PSI_OK) {
        writer->n_episodes++;
        writer->n_transitions += episode->length;
    }
    return status;
}

psi_status psi_writer_commit(psi_writer *writer)
{
    if (FREED(NULL, writer)) return PSI_EUSAGE;
    psi_status status = writer->failed;
    if (status != PSI_OK) {
        status = FAIL(writer->ctx, status, "%s: writing has failed before", writer->path);
    } else if (writer->n_episodes == 0) {
        status = FAIL(writer->ctx, PSI_EDATA, "%s: a data set without episodes is not written",
                      writer->path);
    } else {
        status = writer->kind->finish(writer);
    }
    if (status == PSI_OK) {
        status = base_output_commit(writer->output);
        writer->output = NULL; // gone, also on failure
    }
    psi_writer_discard(writer);
    return status;
}
