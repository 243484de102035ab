/* SPDX-License-Identifier: Apache-2.0 */
/* append_values.c - adds the values of the documents of a dataset, for merging. */
#include <inttypes.h>

#include "base/base.h"
#include "base/status.h"
#include "dataset/index_reader.h"
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

tokmap_status tokmap_i_writer_fit_columns(tokmap_writer *w, const tokmap_dataset *ds,
                                          tokmap_error *err)
{
    const uint32_t n_has = ds->meta ? ds->meta->n_columns : 0;
    if (n_has > 0 && !w->meta && !w->meta_named &&
        tokmap_i_index_writer_n_documents(w->index) == 0) {
        char names[TOKMAP_I_MAX_META_COLUMNS][TOKMAP_I_MAX_META_NAME + 1];
        const char *pointers[TOKMAP_I_MAX_META_COLUMNS];
        for (uint32_t i = 0; i < n_has; i++) {
            const tokmap_i_meta_column *c = &ds->meta->columns[i];
            memcpy(names[i], c->name, c->name_bytes);
            names[i][c->name_bytes] = 0;
            pointers[i] = names[i];
        }
        return tokmap_i_writer_set_columns(w, pointers, n_has, err);
    }
    const uint32_t n_wants = w->meta ? w->meta->spool.n_columns : 0;
    for (uint32_t i = 0; i < n_wants; i++) {
        const char *name = w->meta->spool.names[i];
        const uint32_t from = find_column(ds, name);
        if (from == n_has)
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
        while (at < n_wants && !is_name(c, w->meta->spool.names[at]))
            at++;
        if (at == n_wants)
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: has a column '%.*s' of values, but the output has none",
                        ds->index_path, (int)c->name_bytes, c->name);
    }
    w->meta_named = true;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_writer_append_values(tokmap_writer *w, const tokmap_dataset *ds,
                                            tokmap_error *err)
{
    const uint32_t n_columns = w->meta ? w->meta->spool.n_columns : 0;
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
    for (uint32_t i = 0; i < n_columns; i++)
        from[i] = find_column(ds, w->meta->spool.names[i]);
    for (uint64_t d = 0; !status && d < ds->header.n_documents; d++) {
        tokmap_value row[TOKMAP_I_MAX_META_COLUMNS];
        for (uint32_t i = 0; i < n_columns; i++)
            if (tokmap_i_meta_get(ds->meta, from[i], d, &row[i]))
                return FAIL(err, TOKMAP_ERR_CORRUPT,
                            "%s: damaged: column '%s' has no sound value in document %" PRIu64,
                            ds->index_path, w->meta->spool.names[i], d);
        status = tokmap_i_meta_writer_add(w->meta, row, err);
        if (!status)
            status = tokmap_i_meta_writer_end(w->meta, err);
    }
    if (status == TOKMAP_ERR_ARGUMENT) { /* values that do not go together: no rule was broken */
        status = TOKMAP_ERR_MISMATCH;
        if (err)
            err->status = status;
    }
    return status;
}
