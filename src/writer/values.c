/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - values of documents in a writer: the calls, and what ends with each document. */
#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "base/status.h"
#include "writer/writer.h"

static tokmap_status fail_other_columns(const tokmap_writer *w, tokmap_error *err)
{
    char had[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; w->meta && i < w->meta->spool.n_columns; i++) {
        const char *name = w->meta->spool.names[i];
        if (used + strlen(name) + 8 > sizeof had) {
            strcpy(had + used, "...");
            break;
        }
        used += (size_t)sprintf(had + used, "%s%s", i > 0 ? ", " : "", name);
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

tokmap_status tokmap_writer_set_meta_columns(tokmap_writer *w, const char *const *names,
                                             uint32_t n_columns, tokmap_error *err)
{
    tokmap_status status =
        tokmap_i_writer_enter(w, names || n_columns == 0, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    if (w->meta_named)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: its columns of values are set already",
                      w->names.index_path);
    else
        status = tokmap_i_writer_set_columns(w, names, n_columns, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

tokmap_status tokmap_writer_add_meta(tokmap_writer *w, const tokmap_value *values,
                                     uint32_t n_values, tokmap_error *err)
{
    tokmap_status status =
        tokmap_i_writer_enter(w, values || n_values == 0, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    const uint32_t n_columns = w->meta ? w->meta->spool.n_columns : 0;
    if (n_values != n_columns)
        status = FAIL(
            &w->failure, TOKMAP_ERR_ARGUMENT,
            "%s: %" PRIu32 " values for document %" PRIu64 ", but there are %" PRIu32 " columns",
            w->names.index_path, n_values, tokmap_i_index_writer_n_documents(w->index), n_columns);
    else if (n_values > 0)
        status = tokmap_i_meta_writer_add(w->meta, values, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

/* A caller that resumes without naming the columns may be another job. */
tokmap_status tokmap_i_writer_document(tokmap_writer *w, uint64_t end, tokmap_error *err)
{
    if (w->meta && !w->meta_named)
        return fail_other_columns(w, err);
    const tokmap_status status = tokmap_i_index_writer_document(w->index, end, err);
    return status || !w->meta ? status : tokmap_i_meta_writer_end(w->meta, err);
}
