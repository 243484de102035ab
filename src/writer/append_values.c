/* SPDX-License-Identifier: Apache-2.0 */
/* append_values.c - adds the values of the documents of a dataset, for merging. */
#include <inttypes.h>

#include "base/base.h"
#include "base/status.h"
#include "dataset/verify_meta.h"
#include "writer/writer.h"

static bool is_name(const tokmap_i_meta_column *c, const char *name)
{
    return c->name_bytes == strlen(name) && memcmp(c->name, name, c->name_bytes) == 0;
}

/* The number of the column of ds with this name; n_columns if there is none. */
static uint32_t find_column(const tokmap_dataset *ds, const char *name)
{
    const uint32_t n_columns = ds->meta ? ds->meta->n_columns : 0;
    for (uint32_t i = 0; i < n_columns; i++)
        if (is_name(&ds->meta->columns[i], name))
            return i;
    return n_columns;
}

static const char *sort_of(tokmap_value_type type)
{
    return type == TOKMAP_VALUE_STRING ? "strings" : "numbers";
}

static tokmap_status fit_column(const tokmap_writer *w, const tokmap_dataset *ds, uint32_t column,
                                tokmap_error *err)
{
    const char *name = w->meta->spool.names[column];
    const uint32_t from = find_column(ds, name);
    if (!ds->meta || from == ds->meta->n_columns)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has no column '%s' of values, but the output has one", ds->index_path,
                    name);
    const tokmap_value_type is = tokmap_i_meta_value_type(&ds->meta->columns[from]);
    const tokmap_value_type was = w->meta->columns[column].type;
    if (is != TOKMAP_VALUE_NULL && was != TOKMAP_VALUE_NULL &&
        (is == TOKMAP_VALUE_STRING) != (was == TOKMAP_VALUE_STRING))
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: column '%s' has %s, but in the output it has %s",
                    ds->index_path, name, sort_of(is), sort_of(was));
    return TOKMAP_OK;
}

static tokmap_status take_columns(tokmap_writer *w, const tokmap_dataset *ds, tokmap_error *err)
{
    char names[TOKMAP_I_MAX_META_COLUMNS][TOKMAP_I_MAX_META_NAME + 1];
    const char *pointers[TOKMAP_I_MAX_META_COLUMNS];
    for (uint32_t i = 0; i < ds->meta->n_columns; i++) {
        const tokmap_i_meta_column *c = &ds->meta->columns[i];
        memcpy(names[i], c->name, c->name_bytes);
        names[i][c->name_bytes] = 0;
        pointers[i] = names[i];
    }
    return tokmap_i_writer_set_columns(w, pointers, ds->meta->n_columns, err);
}

tokmap_status tokmap_i_writer_fit_columns(tokmap_writer *w, const tokmap_dataset *ds,
                                          tokmap_error *err)
{
    if (!w->meta && !ds->meta)
        return w->meta_named = true, TOKMAP_OK;
    if (!w->meta && !w->meta_named && tokmap_i_index_writer_n_documents(w->index) == 0)
        return take_columns(w, ds, err);
    for (uint32_t i = 0; w->meta && i < w->meta->spool.n_columns; i++) {
        const tokmap_status status = fit_column(w, ds, i, err);
        if (status)
            return status;
    }
    for (uint32_t i = 0; ds->meta && i < ds->meta->n_columns; i++) {
        const tokmap_i_meta_column *c = &ds->meta->columns[i];
        bool found = false;
        for (uint32_t j = 0; w->meta && !found && j < w->meta->spool.n_columns; j++)
            found = is_name(c, w->meta->spool.names[j]);
        if (!found)
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: has a column '%.*s' of values, but the output has none",
                        ds->index_path, (int)c->name_bytes, c->name);
    }
    w->meta_named = true;
    return TOKMAP_OK;
}

static tokmap_status append_row(tokmap_writer *w, const tokmap_dataset *ds, const uint32_t *from,
                                uint64_t document, tokmap_error *err)
{
    tokmap_value row[TOKMAP_I_MAX_META_COLUMNS];
    for (uint32_t i = 0; i < w->meta->spool.n_columns; i++)
        if (tokmap_i_meta_get(ds->meta, from[i], document, &row[i]))
            return FAIL(err, TOKMAP_ERR_CORRUPT,
                        "%s: damaged: column '%s' has no sound value in document %" PRIu64,
                        ds->index_path, w->meta->spool.names[i], document);
    tokmap_status status = tokmap_i_meta_writer_add(w->meta, row, err);
    if (!status)
        status = tokmap_i_meta_writer_end(w->meta, err);
    if (status != TOKMAP_ERR_ARGUMENT)
        return status;
    if (err) /* the values do not go together; the caller has broken no rule */
        err->status = TOKMAP_ERR_MISMATCH;
    return TOKMAP_ERR_MISMATCH;
}

tokmap_status tokmap_i_writer_append_values(tokmap_writer *w, const tokmap_dataset *ds,
                                            tokmap_error *err)
{
    uint32_t from[TOKMAP_I_MAX_META_COLUMNS] = {0};
    tokmap_i_index_reader reader;
    if (!w->meta)
        return TOKMAP_OK;
    tokmap_status status = tokmap_i_index_reader_open(&reader, ds, err);
    if (status)
        return status;
    status = tokmap_i_index_reader_checksum(&reader,
                                            tokmap_i_section_find(&ds->header, TOKMAP_I_META), err);
    if (!status)
        status = tokmap_i_verify_meta(&reader, err);
    tokmap_i_index_reader_close(&reader);
    for (uint32_t i = 0; i < w->meta->spool.n_columns; i++)
        from[i] = find_column(ds, w->meta->spool.names[i]);
    for (uint64_t d = 0; !status && d < ds->header.n_documents; d++)
        status = append_row(w, ds, from, d, err);
    return status;
}
