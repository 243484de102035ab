/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/meta_writer.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"
#include "format/meta_section.h"
#include "system/platform.h"

enum {
    SHOWN_BYTES = 40 /* of a string in a message */
};

/* ---- Open and close ---- */

static tokmap_status check_names(const char *path, const char *const *names, uint32_t n_columns,
                                 tokmap_error *err)
{
    if (n_columns > TOKMAP_I_MAX_META_COLUMNS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: %" PRIu32 " columns of values; the limit is %d",
                    path, n_columns, TOKMAP_I_MAX_META_COLUMNS);
    for (uint32_t i = 0; i < n_columns; i++) {
        if (!names[i] || !tokmap_i_meta_name_valid(names[i], strlen(names[i])))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "%s: the name of column %" PRIu32 " is not 1 to 255 bytes of UTF-8: '%s'",
                        path, i, names[i] ? names[i] : "");
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: there are two columns '%s'", path,
                            names[i]);
    }
    return TOKMAP_OK;
}

static tokmap_i_meta_writer *new_writer(void)
{
    tokmap_i_meta_writer *w = calloc(1, sizeof *w);
    if (w)
        w->spool = TOKMAP_I_NO_META_SPOOL;
    return w;
}

tokmap_status tokmap_i_meta_writer_open(tokmap_i_meta_writer **out, const char *path,
                                        const char *const *names, uint32_t n_columns,
                                        tokmap_error *err)
{
    *out = NULL;
    tokmap_status status = check_names(path, names, n_columns, err);
    if (status)
        return status;
    tokmap_i_meta_writer *w = new_writer();
    if (!w)
        return FAIL_MEMORY(err);
    status = tokmap_i_meta_spool_create(&w->spool, path, names, n_columns, err);
    if (status)
        tokmap_i_meta_writer_close(w);
    else
        *out = w;
    return status;
}

void tokmap_i_meta_writer_close(tokmap_i_meta_writer *w)
{
    if (!w)
        return;
    tokmap_i_meta_spool_close(&w->spool);
    free(w->row_text.data);
    free(w);
}

bool tokmap_i_meta_writer_has(const tokmap_i_meta_writer *w, const char *const *names,
                              uint32_t n_columns)
{
    bool same = n_columns == w->spool.n_columns;
    for (uint32_t i = 0; same && i < n_columns; i++)
        same = names[i] && strcmp(names[i], w->spool.names[i]) == 0;
    return same;
}

/* ---- Types ---- */

static tokmap_status fail_sort(const tokmap_i_meta_writer *w, uint32_t column,
                               const tokmap_value *v, tokmap_error *err)
{
    const tokmap_i_meta_state *c = &w->columns[column];
    const int shown = (int)MIN(v->text_bytes, SHOWN_BYTES);
    if (v->type == TOKMAP_VALUE_STRING)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: column '%s' is a number in document %" PRIu64 ", but the string '%.*s%s' "
                    "in document %" PRIu64,
                    w->spool.path, w->spool.names[column], c->first_document, shown, v->text,
                    v->text_bytes > SHOWN_BYTES ? "..." : "", w->n_rows);
    char number[32];
    if (v->type == TOKMAP_VALUE_INT64)
        snprintf(number, sizeof number, "%" PRId64, v->integer);
    else
        snprintf(number, sizeof number, "%.17g", v->real);
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: column '%s' is a string in document %" PRIu64
                ", but the number %s in document %" PRIu64,
                w->spool.path, w->spool.names[column], c->first_document, number, w->n_rows);
}

/* The column gets this value in document n_rows. */
static tokmap_status take_value(tokmap_i_meta_writer *w, uint32_t column, const tokmap_value *v,
                                tokmap_error *err)
{
    tokmap_i_meta_state *c = &w->columns[column];
    const char *path = w->spool.path, *name = w->spool.names[column];
    const bool is_string = v->type == TOKMAP_VALUE_STRING;
    if ((uint32_t)v->type > TOKMAP_VALUE_STRING)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: column '%s', document %" PRIu64 ": there is no type %d", path, name,
                    w->n_rows, (int)v->type);
    if (is_string && v->text_bytes > TOKMAP_I_MAX_META_STRING)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: column '%s' has a string of %zu bytes in document %" PRIu64
                    "; the limit is 64 KiB",
                    path, name, v->text_bytes, w->n_rows);
    if (is_string && !v->text && v->text_bytes > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: column '%s', document %" PRIu64 ": text is NULL",
                    path, name, w->n_rows);
    c->n_nulls += v->type == TOKMAP_VALUE_NULL;
    if (v->type == TOKMAP_VALUE_NULL)
        return TOKMAP_OK;
    if (c->type == TOKMAP_VALUE_NULL)
        c->first_document = w->n_rows;
    else if ((c->type == TOKMAP_VALUE_STRING) != is_string)
        return fail_sort(w, column, v, err);
    if (v->type == TOKMAP_VALUE_FLOAT64 && c->type != TOKMAP_VALUE_FLOAT64)
        c->first_real = w->n_rows;
    if (v->type == TOKMAP_VALUE_FLOAT64 || c->type == TOKMAP_VALUE_NULL)
        c->type = v->type;
    if (is_string)
        c->text_bytes += v->text_bytes;
    const bool is_integer = v->type == TOKMAP_VALUE_INT64;
    const double as_real = is_integer ? (double)v->integer : 0;
    if (is_integer && !c->has_inexact && (as_real >= 0x1p63 || (int64_t)as_real != v->integer)) {
        c->has_inexact = true;
        c->inexact = v->integer;
        c->inexact_document = w->n_rows;
    }
    if (c->type != TOKMAP_VALUE_FLOAT64 || !c->has_inexact)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: column '%s' is %" PRId64 " in document %" PRIu64
                ", which is not exact as a float64, and has a float64 in document %" PRIu64,
                path, name, c->inexact, c->inexact_document, c->first_real);
}

/* ---- Rows ---- */

tokmap_status tokmap_i_meta_writer_add(tokmap_i_meta_writer *w, const tokmap_value *values,
                                       tokmap_error *err)
{
    if (w->has_row)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: document %" PRIu64 " has its values already",
                    w->spool.path, w->n_rows);
    size_t text_bytes = 0;
    for (uint32_t i = 0; i < w->spool.n_columns; i++) {
        const tokmap_status status = take_value(w, i, &values[i], err);
        if (status)
            return status;
        w->row[i] = values[i];
        text_bytes += values[i].type == TOKMAP_VALUE_STRING ? values[i].text_bytes : 0;
    }
    w->row_text.n_bytes = 0;
    uint8_t *text = tokmap_i_bytes_add(&w->row_text, text_bytes);
    if (!text)
        return FAIL_MEMORY(err);
    for (uint32_t i = 0; i < w->spool.n_columns; i++) {
        if (values[i].type != TOKMAP_VALUE_STRING || values[i].text_bytes == 0)
            continue;
        memcpy(text, values[i].text, values[i].text_bytes);
        w->row[i].text = (const char *)text;
        text += values[i].text_bytes;
    }
    w->has_row = true;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_meta_writer_end(tokmap_i_meta_writer *w, tokmap_error *err)
{
    static const tokmap_value null = {.type = TOKMAP_VALUE_NULL};
    for (uint32_t i = 0; i < w->spool.n_columns; i++) {
        if (!tokmap_i_meta_spool_add(&w->spool, i, w->has_row ? &w->row[i] : &null))
            return FAIL_MEMORY(err);
        w->columns[i].n_nulls += !w->has_row;
    }
    w->has_row = false;
    w->n_rows++;
    return tokmap_i_meta_spool_end_row(&w->spool, err);
}

/* ---- Checkpoints ---- */

tokmap_status tokmap_i_meta_writer_save(tokmap_i_meta_writer *w, tokmap_i_meta_saved *saved,
                                        tokmap_error *err)
{
    const tokmap_status status = tokmap_i_meta_spool_flush(&w->spool, err);
    if (status)
        return status;
    *saved =
        (tokmap_i_meta_saved){w->spool.n_bytes, tokmap_i_hasher_get(w->spool.hasher), w->n_rows};
    return CHECK_IO(err, tokmap_i_file_sync(w->spool.fd), "%s: cannot write to the disk",
                    w->spool.path);
}

/* What is known of each column is learned again. The caller makes the message. */
static tokmap_status check_all(tokmap_i_meta_writer *w, const char *path,
                               const tokmap_i_meta_saved *saved, tokmap_error *err)
{
    tokmap_i_file_stat stat = {0};
    tokmap_status status = tokmap_i_meta_spool_open(&w->spool, path, saved->n_bytes, err);
    if (!status && (tokmap_i_file_stat_fd(w->spool.fd, &stat) || stat.n_bytes < saved->n_bytes))
        return TOKMAP_ERR_CORRUPT;
    if (!status)
        status = tokmap_i_meta_spool_hash(&w->spool, err);
    if (!status && tokmap_i_hasher_get(w->spool.hasher) != saved->checksum)
        status = TOKMAP_ERR_CORRUPT;
    for (uint32_t i = 0; !status && i < w->spool.n_columns; i++) {
        tokmap_i_meta_cursor c = tokmap_i_meta_cursor_at(&w->spool, i);
        for (w->n_rows = 0; !status; w->n_rows += !status) {
            tokmap_value value;
            status = tokmap_i_meta_cursor_next(&c, &value, err);
            if (!status && take_value(w, i, &value, err))
                status = TOKMAP_ERR_CORRUPT;
        }
        free(c.segment.data);
        if (status == TOKMAP_END)
            status = w->n_rows == saved->n_rows ? TOKMAP_OK : TOKMAP_ERR_CORRUPT;
    }
    return status;
}

tokmap_status tokmap_i_meta_writer_resume(tokmap_i_meta_writer **out, const char *path,
                                          const tokmap_i_meta_saved *saved, tokmap_error *err)
{
    *out = NULL;
    tokmap_i_meta_writer *w = new_writer();
    if (!w)
        return FAIL_MEMORY(err);
    tokmap_status status = check_all(w, path, saved, err);
    if (status == TOKMAP_ERR_CORRUPT || (status == TOKMAP_ERR_IO && !tokmap_i_file_exists(path)))
        status = FAIL(err, TOKMAP_ERR_CORRUPT,
                      "%s: does not match its journal: the unfinished dataset cannot be resumed; "
                      "discard it to start over",
                      path);
    if (status)
        tokmap_i_meta_writer_close(w);
    else
        *out = w;
    return status;
}

tokmap_status tokmap_i_meta_writer_cut(tokmap_i_meta_writer *w, tokmap_error *err)
{
    return CHECK_IO(err, tokmap_i_file_resize(w->spool.fd, w->spool.n_bytes), "%s: cannot shorten",
                    w->spool.path);
}
