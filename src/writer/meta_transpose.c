/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/meta_transpose.h"

#include "base/error.h"
#include "writer/column_parts.h"

/* ---- Where values come from ---- */

static void rewind_cursor(void *context)
{
    tokmap_i_meta_cursor *c = context;
    free(c->segment.data);
    *c = tokmap_i_meta_cursor_at(c->w, c->column);
}

static tokmap_status next_value(void *context, tokmap_value *out, tokmap_error *err)
{
    return tokmap_i_meta_cursor_next(context, out, err);
}

static tokmap_i_values values_at(tokmap_i_meta_cursor *c)
{
    return (tokmap_i_values){c->w->path, c->w->n_rows, c, rewind_cursor, next_value};
}

/* ---- The section ---- */

static tokmap_status put_bytes(void *context, const void *data, size_t n_bytes, tokmap_error *err)
{
    return tokmap_i_index_writer_put(context, data, n_bytes, err);
}

/* Describes a column, as its values are. */
static tokmap_status describe(tokmap_i_meta_writer *w, uint32_t column, tokmap_i_meta_column *out,
                              tokmap_error *err)
{
    const tokmap_i_meta_state *state = &w->columns[column];
    const bool is_string = state->type == TOKMAP_VALUE_STRING;
    *out = (tokmap_i_meta_column){
        .type = (uint32_t)state->type,
        .number_bytes = tokmap_i_meta_number_bytes((uint32_t)state->type),
        .n_nulls = state->n_nulls,
        .n_strings = is_string ? w->n_rows : 0,
        .text_bytes = state->text_bytes,
        .name = w->names[column],
        .name_bytes = strlen(w->names[column]),
    };
    if (!is_string)
        return TOKMAP_OK;
    tokmap_i_meta_cursor cursor = tokmap_i_meta_cursor_at(w, column);
    const tokmap_i_values values = values_at(&cursor);
    const tokmap_status status = tokmap_i_choose_dictionary(out, &values, err);
    free(cursor.segment.data);
    return status;
}

static tokmap_status put_column(tokmap_i_column_parts *p, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (int part = 0; !status && part < TOKMAP_I_META_PARTS; part++) {
        if (!p->column->has[part])
            continue;
        status = tokmap_i_column_parts_pad(p, p->column->at[part], err);
        if (!status)
            status = tokmap_i_column_parts_put(p, (tokmap_i_meta_part)part, err);
    }
    tokmap_i_column_parts_end(p);
    return status;
}

tokmap_status tokmap_i_put_values(tokmap_i_meta_writer *w, tokmap_i_index_writer *to,
                                  tokmap_error *err)
{
    uint8_t directory[TOKMAP_I_META_DIRECTORY_BYTES];
    tokmap_i_meta meta = {.n_columns = w->n_columns, .n_documents = w->n_rows};
    tokmap_i_column_parts parts = {
        .values.path = w->path, .context = to, .put = put_bytes, .at = 0};
    tokmap_status status = tokmap_i_meta_writer_flush(w, err);
    for (uint32_t i = 0; !status && i < w->n_columns; i++)
        status = describe(w, i, &meta.columns[i], err);
    if (!status && !tokmap_i_meta_place(&meta))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: the values are too large", w->path);
    if (!status) {
        parts.at = tokmap_i_meta_encode(&meta, directory);
        status = put_bytes(to, directory, (size_t)parts.at, err);
    }
    for (uint32_t i = 0; !status && i < w->n_columns; i++) {
        tokmap_i_meta_cursor cursor = tokmap_i_meta_cursor_at(w, i);
        parts.values = values_at(&cursor);
        parts.column = &meta.columns[i];
        status = put_column(&parts, err);
        free(cursor.segment.data);
    }
    return status ? status : tokmap_i_column_parts_pad(&parts, meta.section_bytes, err);
}
