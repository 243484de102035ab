/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/meta_writer.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "format/meta_section.h"
#include "system/platform.h"

static const uint8_t magic[8] = {0x89, 'T', 'M', 'V', '\r', '\n', 0x1a, '\n'};

/* The head of the file: magic, n_columns, for each column the size of its name and the name, and
 * the checksum of all that. The head of a chunk: n_rows, for each column size and checksum of its
 * segment, and the checksum of all that. A value: its type, and if it is not null 8 bytes, or the
 * size of a string in 4 bytes and the string. */
enum {
    CHUNK_BYTES = 1 << 20, /* a chunk is written after this many bytes of values */
    NAMES_AT = 16,
    CHECKSUM_BYTES = 8,
    CHUNK_COLUMN_BYTES = 16,
    MAX_HEAD_BYTES =
        NAMES_AT + TOKMAP_I_MAX_META_COLUMNS * (8 + TOKMAP_I_MAX_META_NAME) + CHECKSUM_BYTES
};

static size_t chunk_head_bytes(const tokmap_i_meta_writer *w)
{
    return 8 + w->n_columns * (size_t)CHUNK_COLUMN_BYTES + CHECKSUM_BYTES;
}

static tokmap_status refuse_changed(const tokmap_i_meta_writer *w, uint64_t offset,
                                    tokmap_error *err)
{
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, offset,
                   "%s: does not hold what was written to it at byte %" PRIu64
                   "; another process changed it, or the disk failed",
                   w->path, offset);
}

static tokmap_status write_at_end(tokmap_i_meta_writer *w, const void *data, size_t n_bytes,
                                  tokmap_error *err)
{
    const uint64_t at = w->n_bytes;
    w->n_bytes += n_bytes;
    return CHECK_IO_AT(err, tokmap_i_file_write(w->fd, data, n_bytes, at), at, "%s: cannot write",
                       w->path);
}

/* Ends a head with its checksum, and writes it. */
static tokmap_status write_head(tokmap_i_meta_writer *w, uint8_t *head, size_t n_bytes,
                                tokmap_error *err)
{
    le_put64(head + n_bytes - CHECKSUM_BYTES, tokmap_i_checksum(head, n_bytes - CHECKSUM_BYTES));
    tokmap_i_hasher_add(w->hasher, head, n_bytes);
    return write_at_end(w, head, n_bytes, err);
}

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

/* Returns a new writer; NULL when out of memory. */
static tokmap_i_meta_writer *new_writer(const char *path)
{
    tokmap_i_meta_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->fd = -1;
    w->path = path;
    w->hasher = tokmap_i_hasher_open();
    if (w->hasher)
        return w;
    tokmap_i_meta_writer_close(w);
    return NULL;
}

static tokmap_status create_file(tokmap_i_meta_writer *w, const char *const *names,
                                 uint32_t n_columns, tokmap_error *err)
{
    const int error = tokmap_i_file_create(w->path, &w->fd);
    if (error)
        return FAIL_IO(err, error, "%s: cannot create", w->path);
    uint8_t head[MAX_HEAD_BYTES];
    size_t n_bytes = NAMES_AT;
    memcpy(head, magic, sizeof magic);
    le_put64(head + sizeof magic, n_columns);
    for (; w->n_columns < n_columns; w->n_columns++) {
        const size_t name_bytes = strlen(names[w->n_columns]);
        le_put64(head + n_bytes, name_bytes);
        memcpy(head + n_bytes + 8, names[w->n_columns], name_bytes);
        n_bytes += 8 + name_bytes;
        w->names[w->n_columns] = strdup(names[w->n_columns]);
        if (!w->names[w->n_columns])
            return FAIL_MEMORY(err);
    }
    w->head_bytes = n_bytes + CHECKSUM_BYTES;
    return write_head(w, head, n_bytes + CHECKSUM_BYTES, err);
}

tokmap_status tokmap_i_meta_writer_open(tokmap_i_meta_writer **out, const char *path,
                                        const char *const *names, uint32_t n_columns,
                                        tokmap_error *err)
{
    *out = NULL;
    tokmap_status status = check_names(path, names, n_columns, err);
    if (status)
        return status;
    tokmap_i_meta_writer *w = new_writer(path);
    if (!w)
        return FAIL_MEMORY(err);
    status = create_file(w, names, n_columns, err);
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
    for (uint32_t i = 0; i < TOKMAP_I_MAX_META_COLUMNS; i++) {
        free(w->names[i]);
        free(w->segments[i].data);
    }
    tokmap_i_file_close(w->fd);
    tokmap_i_hasher_close(w->hasher);
    free(w->row_text.data);
    free(w);
}

/* ---- Rows ---- */

/* Stores what is known of a column after it has this value in document n_rows. */
static tokmap_status take_value(tokmap_i_meta_writer *w, uint32_t column, const tokmap_value *v,
                                tokmap_error *err)
{
    const tokmap_i_value_place at = {w->path, w->names[column], w->n_rows};
    return tokmap_i_meta_state_take(&w->columns[column], &at, v, err);
}

tokmap_status tokmap_i_meta_writer_add(tokmap_i_meta_writer *w, const tokmap_value *values,
                                       tokmap_error *err)
{
    if (w->has_row)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: document %" PRIu64 " already has its values",
                    w->path, w->n_rows);
    size_t text_bytes = 0;
    for (uint32_t i = 0; i < w->n_columns; i++) {
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
    for (uint32_t i = 0; i < w->n_columns; i++) {
        if (values[i].type != TOKMAP_VALUE_STRING || values[i].text_bytes == 0)
            continue;
        memcpy(text, values[i].text, values[i].text_bytes);
        w->row[i].text = (const char *)text;
        text += values[i].text_bytes;
    }
    w->has_row = true;
    return TOKMAP_OK;
}

/* Adds a value to the chunk. Returns false when out of memory. */
static bool add_value(tokmap_i_meta_writer *w, uint32_t column, const tokmap_value *v)
{
    tokmap_i_bytes *b = &w->segments[column];
    const bool is_string = v->type == TOKMAP_VALUE_STRING;
    const size_t n_bytes = v->type == TOKMAP_VALUE_NULL ? 1 : is_string ? 5 + v->text_bytes : 9;
    uint8_t *p = tokmap_i_bytes_add(b, n_bytes);
    if (!p)
        return false;
    uint64_t bits = (uint64_t)v->integer;
    if (v->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&bits, &v->real, sizeof bits);
    p[0] = (uint8_t)v->type;
    if (is_string)
        le_put32(p + 1, (uint32_t)v->text_bytes);
    else if (v->type != TOKMAP_VALUE_NULL)
        le_put64(p + 1, bits);
    if (is_string && v->text_bytes > 0)
        memcpy(p + 5, v->text, v->text_bytes);
    return true;
}

tokmap_status tokmap_i_meta_writer_flush(tokmap_i_meta_writer *w, tokmap_error *err)
{
    uint8_t head[MAX_HEAD_BYTES];
    if (w->n_in_chunk == 0)
        return TOKMAP_OK;
    le_put64(head, w->n_in_chunk);
    for (uint32_t i = 0; i < w->n_columns; i++) {
        const tokmap_i_bytes *b = &w->segments[i];
        uint8_t *entry = head + 8 + i * (size_t)CHUNK_COLUMN_BYTES;
        le_put64(entry, b->n_bytes);
        le_put64(entry + 8, tokmap_i_checksum(b->data, b->n_bytes));
    }
    tokmap_status status = write_head(w, head, chunk_head_bytes(w), err);
    for (uint32_t i = 0; !status && i < w->n_columns; i++) {
        status = write_at_end(w, w->segments[i].data, w->segments[i].n_bytes, err);
        w->segments[i].n_bytes = 0;
    }
    w->n_in_chunk = 0;
    return status;
}

tokmap_status tokmap_i_meta_writer_end(tokmap_i_meta_writer *w, tokmap_error *err)
{
    static const tokmap_value null = {.type = TOKMAP_VALUE_NULL};
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < w->n_columns; i++) {
        if (!add_value(w, i, w->has_row ? &w->row[i] : &null))
            return FAIL_MEMORY(err);
        w->columns[i].n_nulls += !w->has_row;
        n_bytes += w->segments[i].n_bytes;
    }
    w->has_row = false;
    w->n_rows++;
    w->n_in_chunk++;
    return n_bytes >= CHUNK_BYTES ? tokmap_i_meta_writer_flush(w, err) : TOKMAP_OK;
}

/* ---- Reading ---- */

static tokmap_status read_part(tokmap_i_meta_writer *w, uint64_t offset, uint8_t *dst,
                               size_t n_bytes, tokmap_error *err)
{
    size_t n_read;
    const int error = tokmap_i_file_read(w->fd, dst, n_bytes, offset, &n_read);
    if (error)
        return FAIL_IO_AT(err, error, offset, "%s: cannot read", w->path);
    return n_read == n_bytes ? TOKMAP_OK : refuse_changed(w, offset + n_read, err);
}

tokmap_i_meta_cursor tokmap_i_meta_cursor_at(tokmap_i_meta_writer *w, uint32_t column)
{
    return (tokmap_i_meta_cursor){.w = w, .column = column, .chunk = w->head_bytes};
}

/* The head of a chunk: the segment of a column, and where the next chunk is. */
typedef struct chunk {
    uint8_t head[MAX_HEAD_BYTES];
    uint64_t n_rows, segment_at, segment_bytes, segment_checksum, end;
} chunk;

static tokmap_status read_chunk(tokmap_i_meta_writer *w, uint64_t at, uint32_t column, chunk *c,
                                tokmap_error *err)
{
    const size_t head_bytes = chunk_head_bytes(w);
    if (w->n_bytes - at < head_bytes)
        return refuse_changed(w, at, err);
    const tokmap_status status = read_part(w, at, c->head, head_bytes, err);
    if (status)
        return status;
    if (le_get64(c->head + head_bytes - CHECKSUM_BYTES) !=
        tokmap_i_checksum(c->head, head_bytes - CHECKSUM_BYTES))
        return refuse_changed(w, at, err);
    c->n_rows = le_get64(c->head);
    c->end = at + head_bytes;
    for (uint32_t i = 0; i < w->n_columns; i++) {
        const uint8_t *entry = c->head + 8 + i * (size_t)CHUNK_COLUMN_BYTES;
        const uint64_t n_bytes = le_get64(entry);
        if (n_bytes > w->n_bytes - c->end || n_bytes < c->n_rows)
            return refuse_changed(w, at, err);
        if (i == column) {
            c->segment_at = c->end;
            c->segment_bytes = n_bytes;
            c->segment_checksum = le_get64(entry + 8);
        }
        c->end += n_bytes;
    }
    return TOKMAP_OK;
}

/* Reads a value of the segment. Returns false if no whole value is left. */
static bool parse_value(tokmap_i_meta_cursor *c, tokmap_value *out)
{
    const size_t left = c->segment.n_bytes - c->at;
    const uint8_t *p = c->segment.data + c->at;
    const bool is_string = left > 0 && p[0] == TOKMAP_VALUE_STRING;
    const size_t head_bytes = left > 0 && p[0] == TOKMAP_VALUE_NULL ? 1 : is_string ? 5 : 9;
    if (left < head_bytes || p[0] > TOKMAP_VALUE_STRING)
        return false;
    *out = (tokmap_value){.type = (tokmap_value_type)p[0]};
    c->at += head_bytes;
    if (is_string) {
        out->text = (const char *)p + 5;
        out->text_bytes = le_get32(p + 1);
        c->at += out->text_bytes;
        return out->text_bytes <= MIN(left - head_bytes, TOKMAP_I_MAX_META_STRING);
    }
    const uint64_t bits = head_bytes > 1 ? le_get64(p + 1) : 0;
    if (out->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&out->real, &bits, sizeof bits);
    else
        out->integer = (int64_t)bits;
    return true;
}

tokmap_status tokmap_i_meta_cursor_next(tokmap_i_meta_cursor *c, tokmap_value *out,
                                        tokmap_error *err)
{
    while (c->rows_left == 0) {
        chunk k;
        if (c->at != c->segment.n_bytes)
            return refuse_changed(c->w, c->chunk, err);
        if (c->chunk == c->w->n_bytes)
            return TOKMAP_END;
        tokmap_status status = read_chunk(c->w, c->chunk, c->column, &k, err);
        if (status)
            return status;
        c->segment.n_bytes = 0;
        uint8_t *p = tokmap_i_bytes_add(&c->segment, (size_t)k.segment_bytes);
        if (!p)
            return FAIL_MEMORY(err);
        status = read_part(c->w, k.segment_at, p, (size_t)k.segment_bytes, err);
        if (status)
            return status;
        if (tokmap_i_checksum(p, (size_t)k.segment_bytes) != k.segment_checksum)
            return refuse_changed(c->w, k.segment_at, err);
        c->at = 0;
        c->rows_left = k.n_rows;
        c->chunk = k.end;
    }
    c->rows_left--;
    return parse_value(c, out) ? TOKMAP_OK : refuse_changed(c->w, c->chunk, err);
}

/* ---- Checkpoints ---- */

tokmap_status tokmap_i_meta_writer_save(tokmap_i_meta_writer *w, tokmap_i_checkpoint *now,
                                        tokmap_error *err)
{
    const tokmap_status status = tokmap_i_meta_writer_flush(w, err);
    if (status)
        return status;
    now->values_bytes = w->n_bytes;
    now->values_checksum = tokmap_i_hasher_get(w->hasher);
    return CHECK_IO(err, tokmap_i_file_sync(w->fd), "%s: cannot write to the disk", w->path);
}

/* Opens a file of at least n_bytes, to continue it there, and reads the names. */
static tokmap_status open_file(tokmap_i_meta_writer *w, uint64_t n_bytes, tokmap_error *err)
{
    uint8_t head[MAX_HEAD_BYTES];
    const size_t n_read = (size_t)MIN(n_bytes, sizeof head);
    const int error = tokmap_i_file_open_again(w->path, &w->fd);
    if (error)
        return FAIL_IO(err, error, "%s: cannot open", w->path);
    w->n_bytes = n_bytes;
    if (n_bytes < NAMES_AT)
        return refuse_changed(w, n_bytes, err);
    const tokmap_status status = read_part(w, 0, head, n_read, err);
    if (status)
        return status;
    size_t at = NAMES_AT;
    const uint64_t n_columns = le_get64(head + sizeof magic);
    if (memcmp(head, magic, sizeof magic) != 0 || n_columns == 0 ||
        n_columns > TOKMAP_I_MAX_META_COLUMNS)
        return refuse_changed(w, 0, err);
    for (; w->n_columns < n_columns; w->n_columns++) {
        const uint64_t name_bytes = n_read - at < 8 ? UINT64_MAX : le_get64(head + at);
        if (name_bytes > n_read - MIN(at + 8, n_read) ||
            !tokmap_i_meta_name_valid((const char *)head + at + 8, (size_t)name_bytes))
            return refuse_changed(w, at, err);
        w->names[w->n_columns] = strndup((const char *)head + at + 8, (size_t)name_bytes);
        if (!w->names[w->n_columns])
            return FAIL_MEMORY(err);
        at += 8 + (size_t)name_bytes;
    }
    if (n_read - at < CHECKSUM_BYTES || le_get64(head + at) != tokmap_i_checksum(head, at))
        return refuse_changed(w, at, err);
    w->head_bytes = at + CHECKSUM_BYTES;
    tokmap_i_hasher_add(w->hasher, head, w->head_bytes);
    return TOKMAP_OK;
}

/* Adds all heads to the hasher, after the last value of a column. */
static tokmap_status hash_heads(tokmap_i_meta_writer *w, tokmap_error *err)
{
    chunk c;
    for (uint64_t at = w->head_bytes; at < w->n_bytes; at = c.end) {
        const tokmap_status status = read_chunk(w, at, 0, &c, err);
        if (status)
            return status;
        tokmap_i_hasher_add(w->hasher, c.head, chunk_head_bytes(w));
    }
    return TOKMAP_OK;
}

/* Collects again what is known of each column. The caller makes the message. */
static tokmap_status check_all(tokmap_i_meta_writer *w, const tokmap_i_checkpoint *c,
                               tokmap_error *err)
{
    tokmap_i_file_stat stat = {0};
    tokmap_status status = open_file(w, c->values_bytes, err);
    if (!status && (tokmap_i_file_stat_fd(w->fd, &stat) || stat.n_bytes < c->values_bytes))
        return TOKMAP_ERR_CORRUPT;
    if (!status)
        status = hash_heads(w, err);
    if (!status && tokmap_i_hasher_get(w->hasher) != c->values_checksum)
        status = TOKMAP_ERR_CORRUPT;
    for (uint32_t i = 0; !status && i < w->n_columns; i++) {
        tokmap_i_meta_cursor at = tokmap_i_meta_cursor_at(w, i);
        for (w->n_rows = 0; !status; w->n_rows += !status) {
            tokmap_value value;
            status = tokmap_i_meta_cursor_next(&at, &value, err);
            if (!status && take_value(w, i, &value, err))
                status = TOKMAP_ERR_CORRUPT;
        }
        free(at.segment.data);
        if (status == TOKMAP_END)
            status = w->n_rows == c->n_documents ? TOKMAP_OK : TOKMAP_ERR_CORRUPT;
    }
    return status;
}

tokmap_status tokmap_i_meta_writer_resume(tokmap_i_meta_writer **out, const char *path,
                                          const tokmap_i_checkpoint *c, tokmap_error *err)
{
    *out = NULL;
    tokmap_i_meta_writer *w = new_writer(path);
    if (!w)
        return FAIL_MEMORY(err);
    tokmap_status status = check_all(w, c, err);
    if (status == TOKMAP_ERR_CORRUPT || (status == TOKMAP_ERR_IO && !tokmap_i_file_exists(path)))
        status = FAIL(err, TOKMAP_ERR_CORRUPT,
                      "%s: does not match its journal" TOKMAP_I_CANNOT_RESUME, path);
    if (status)
        tokmap_i_meta_writer_close(w);
    else
        *out = w;
    return status;
}
