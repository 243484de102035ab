/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - values of documents in a writer: the public calls, the end of a document, and the
 * values of a dataset that is added. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "dataset/index_reader.h"
#include "writer/writer.h"

static tokmap_status fail_other_columns(const tokmap_writer *w, tokmap_error *err)
{
    char had[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; w->meta && i < w->meta->n_columns; i++) {
        const char *name = w->meta->names[i];
        if (used + strlen(name) + 8 > sizeof had) {
            strcpy(had + used, "...");
            break;
        }
        used += (size_t)sprintf(had + used, "%s%s", i > 0 ? ", " : "", name);
    }
    return FAIL(
        err, TOKMAP_ERR_MISMATCH,
        "%s: was begun with these columns of values: %s; set the same before the next document "
        "ends, or discard it to start over",
        w->names.index_path, w->meta ? had : "none");
}

/* Creates P.tmv.partial for these columns, or compares them with those of the dataset that was
 * resumed. */
static tokmap_status set_columns(tokmap_writer *w, const char *const *names, uint32_t n_columns,
                                 tokmap_error *err)
{
    const uint64_t n_documents = w->index->n_documents;
    const bool resumed = w->note.data != NULL;
    w->meta_named = true;
    bool same = w->meta && names && n_columns == w->meta->n_columns;
    for (uint32_t i = 0; same && i < n_columns; i++)
        same = names[i] && strcmp(names[i], w->meta->names[i]) == 0;
    if (w->meta)
        return same ? TOKMAP_OK : fail_other_columns(w, err);
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
    w->index->meta = w->meta;
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
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: its columns of values are already set",
                      w->names.index_path);
    else
        status = set_columns(w, names, n_columns, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

tokmap_status tokmap_writer_add_meta(tokmap_writer *w, const tokmap_value *values,
                                     uint32_t n_values, tokmap_error *err)
{
    tokmap_status status =
        tokmap_i_writer_enter(w, values || n_values == 0, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    const uint32_t n_columns = w->meta ? w->meta->n_columns : 0;
    if (n_values != n_columns)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                      "%s: %" PRIu32 " values for document %" PRIu64 ", but there are %" PRIu32
                      " columns",
                      w->names.index_path, n_values, w->index->n_documents, n_columns);
    else if (n_values > 0)
        status = tokmap_i_meta_writer_add(w->meta, values, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

/* The caller must have named the columns: one that resumes without naming them may be another
 * job. */
tokmap_status tokmap_i_writer_document(tokmap_writer *w, uint64_t end, tokmap_error *err)
{
    if (w->meta && !w->meta_named)
        return fail_other_columns(w, err);
    tokmap_status status = tokmap_i_writer_end_spans(w, end, err);
    if (!status)
        status = tokmap_i_index_writer_document(w->index, end, err);
    return status || !w->meta ? status : tokmap_i_meta_writer_end(w->meta, err);
}

/* ---- Those of a dataset ---- */

static bool is_name(const tokmap_i_meta_column *c, const char *name)
{
    return c->name_bytes == strlen(name) && memcmp(c->name, name, c->name_bytes) == 0;
}

tokmap_status tokmap_i_writer_fit_columns(tokmap_writer *w, const tokmap_dataset *ds,
                                          tokmap_error *err)
{
    const uint32_t n_has = ds->meta ? ds->meta->n_columns : 0;
    if (n_has > 0 && !w->meta && !w->meta_named && w->index->n_documents == 0) {
        char names[TOKMAP_I_MAX_META_COLUMNS][TOKMAP_I_MAX_META_NAME + 1];
        const char *pointers[TOKMAP_I_MAX_META_COLUMNS];
        for (uint32_t i = 0; i < n_has; i++) {
            const tokmap_i_meta_column *c = &ds->meta->columns[i];
            memcpy(names[i], c->name, c->name_bytes);
            names[i][c->name_bytes] = 0;
            pointers[i] = names[i];
        }
        return set_columns(w, pointers, n_has, err);
    }
    const uint32_t n_wants = w->meta ? w->meta->n_columns : 0;
    for (uint32_t i = 0; i < n_wants; i++) {
        const char *name = w->meta->names[i];
        uint32_t from;
        if (!tokmap_i_find_column(ds, name, &from))
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: has no column '%s' of values, but the output has one", ds->index_path,
                        name);
        const tokmap_value_type is = tokmap_i_meta_value_type(&ds->meta->columns[from]);
        const tokmap_value_type was = w->meta->columns[i].type;
        const bool is_text = is == TOKMAP_VALUE_STRING, was_text = was == TOKMAP_VALUE_STRING;
        if (is != TOKMAP_VALUE_NULL && was != TOKMAP_VALUE_NULL && is_text != was_text)
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: column '%s' has %s, but in the output it has %s", ds->index_path, name,
                        is_text ? "strings" : "numbers", was_text ? "strings" : "numbers");
    }
    for (uint32_t i = 0; i < n_has; i++) {
        const tokmap_i_meta_column *c = &ds->meta->columns[i];
        uint32_t at = 0;
        while (at < n_wants && !is_name(c, w->meta->names[at]))
            at++;
        if (at == n_wants)
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: has a column '%.*s' of values, but the output has none",
                        ds->index_path, (int)c->name_bytes, c->name);
    }
    w->meta_named = true;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_writer_append_values(tokmap_writer *w, tokmap_i_index_reader *reader,
                                            const uint64_t *redacted, tokmap_error *err)
{
    const uint32_t n_columns = w->meta ? w->meta->n_columns : 0;
    uint32_t from[TOKMAP_I_MAX_META_COLUMNS] = {0};
    const tokmap_dataset *ds = reader->ds;
    if (!w->meta)
        return TOKMAP_OK;
    tokmap_status status = tokmap_i_index_reader_checksum(
        reader, tokmap_i_section_find(&ds->header, TOKMAP_I_META), err);
    if (!status)
        status = tokmap_i_verify_meta(reader, err);
    for (uint32_t i = 0; i < n_columns; i++)
        tokmap_i_find_column(ds, w->meta->names[i], &from[i]);
    for (uint64_t d = 0; !status && d < ds->header.n_documents; d++) {
        tokmap_value row[TOKMAP_I_MAX_META_COLUMNS];
        for (uint32_t i = 0; i < n_columns; i++)
            if (tokmap_i_meta_get(ds->meta, from[i], d, &row[i]))
                return FAIL(err, TOKMAP_ERR_CORRUPT,
                            "%s: damaged: column '%s' has no valid value in document %" PRIu64,
                            ds->index_path, w->meta->names[i], d);
        if (redacted && d == *redacted)
            redacted++;
        else
            status = tokmap_i_meta_writer_add(w->meta, row, err);
        if (!status)
            status = tokmap_i_meta_writer_end(w->meta, err);
    }
    if (status == TOKMAP_ERR_ARGUMENT) { /* values that do not match: no rule was broken */
        status = TOKMAP_ERR_MISMATCH;
        if (err)
            err->status = status;
    }
    return status;
}
