/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - values of documents in a writer: the calls, and what ends with each document. */
#include <inttypes.h>

#include "base/base.h"
#include "base/status.h"
#include "writer/writer.h"

static tokmap_status fail_other_columns(const tokmap_writer *w, tokmap_error *err)
{
    char had[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; w->meta && i < w->meta->spool.n_columns; i++) {
        const char *name = w->meta->spool.names[i];
        const size_t n_bytes = strlen(name);
        if (used + n_bytes + 8 > sizeof had) {
            strcpy(had + used, "...");
            break;
        }
        memcpy(had + used, i > 0 ? ", " : "", i > 0 ? 2 : 0);
        used += i > 0 ? 2 : 0;
        memcpy(had + used, name, n_bytes + 1);
        used += n_bytes;
    }
    return FAIL(err, TOKMAP_ERR_MISMATCH,
                "%s: was begun with these columns of values: %s; resume it with the same, or "
                "discard it to start over",
                w->names.index_path, w->meta ? had : "none");
}

tokmap_status tokmap_i_writer_set_columns(tokmap_writer *w, const char *const *names,
                                          uint32_t n_columns, tokmap_error *err)
{
    const uint64_t n_documents = tokmap_i_index_writer_n_documents(w->index);
    const bool resumed = w->note != NULL;
    w->meta_named = true;
    if (w->meta)
        return tokmap_i_meta_writer_has(w->meta, names, n_columns) ? TOKMAP_OK
                                                                   : fail_other_columns(w, err);
    if (n_columns == 0)
        return TOKMAP_OK;
    if (n_documents > 0 && resumed)
        return fail_other_columns(w, err);
    if (n_documents > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: %" PRIu64 " documents have ended without columns of values",
                    w->names.index_path, n_documents);
    const tokmap_status status =
        tokmap_i_meta_writer_open(&w->meta, w->names.values, names, n_columns, err);
    if (!status)
        tokmap_i_index_writer_set_meta(w->index, w->meta);
    return status;
}

static tokmap_status set_columns(tokmap_writer *w, const char *const *names, uint32_t n_columns,
                                 tokmap_error *err)
{
    if (w->meta_named)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: its columns of values are set already",
                    w->names.index_path);
    return tokmap_i_writer_set_columns(w, names, n_columns, err);
}

tokmap_status tokmap_writer_set_meta_columns(tokmap_writer *w, const char *const *names,
                                             uint32_t n_columns, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, names || n_columns == 0, err);
    return status ? status
                  : tokmap_i_writer_leave(w, set_columns(w, names, n_columns, &w->failure), err);
}

static tokmap_status add_meta(tokmap_writer *w, const tokmap_value *values, uint32_t n_values,
                              tokmap_error *err)
{
    const uint32_t n_columns = w->meta ? w->meta->spool.n_columns : 0;
    if (n_values != n_columns)
        return FAIL(
            err, TOKMAP_ERR_ARGUMENT,
            "%s: %" PRIu32 " values for document %" PRIu64 ", but there are %" PRIu32 " columns",
            w->names.index_path, n_values, tokmap_i_index_writer_n_documents(w->index), n_columns);
    return n_values == 0 ? TOKMAP_OK : tokmap_i_meta_writer_add(w->meta, values, err);
}

tokmap_status tokmap_writer_add_meta(tokmap_writer *w, const tokmap_value *values,
                                     uint32_t n_values, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, values || n_values == 0, err);
    return status ? status
                  : tokmap_i_writer_leave(w, add_meta(w, values, n_values, &w->failure), err);
}

/* A caller that resumes without naming the columns may be another job. */
tokmap_status tokmap_i_writer_document(tokmap_writer *w, uint64_t end, tokmap_error *err)
{
    if (w->meta && !w->meta_named)
        return fail_other_columns(w, err);
    const tokmap_status status = tokmap_i_index_writer_document(w->index, end, err);
    return status || !w->meta ? status : tokmap_i_meta_writer_end(w->meta, err);
}
