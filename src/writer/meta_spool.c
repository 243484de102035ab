/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/meta_spool.h"

#include <errno.h>
#include <inttypes.h>

#include "base/status.h"
#include "format/meta_section.h"
#include "system/platform.h"

static const uint8_t magic[8] = {0x89, 'T', 'M', 'V', '\r', '\n', 0x1a, '\n'};

/* The head of the file: magic, n_columns, for each column the size of its name and the name, and
 * the checksum of all that. The head of a chunk: n_rows, for each column size and checksum of its
 * segment, and the checksum of all that. A value: its type, and if it is not null 8 bytes, or the
 * size of a string in 4 bytes and the string. */
enum {
    CHUNK_BYTES = 1 << 20, /* of values, after which a chunk is written */
    NAMES_AT = 16,
    CHECKSUM_BYTES = 8,
    CHUNK_COLUMN_BYTES = 16,
    MAX_HEAD_BYTES =
        NAMES_AT + TOKMAP_I_MAX_META_COLUMNS * (8 + TOKMAP_I_MAX_META_NAME) + CHECKSUM_BYTES
};

static size_t chunk_head_bytes(const tokmap_i_meta_spool *s)
{
    return 8 + s->n_columns * (size_t)CHUNK_COLUMN_BYTES + CHECKSUM_BYTES;
}

static tokmap_status fail_changed(const tokmap_i_meta_spool *s, uint64_t offset, tokmap_error *err)
{
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, offset,
                   "%s: does not hold what was written to it at byte %" PRIu64
                   "; another process changed it, or the disk failed",
                   s->path, offset);
}

static tokmap_status write_at_end(tokmap_i_meta_spool *s, const void *data, size_t n_bytes,
                                  tokmap_error *err)
{
    const uint64_t at = s->n_bytes;
    s->n_bytes += n_bytes;
    return CHECK_IO_AT(err, tokmap_i_file_write(s->fd, data, n_bytes, at), at, "%s: cannot write",
                       s->path);
}

/* Ends a head with its checksum, and writes it. */
static tokmap_status write_head(tokmap_i_meta_spool *s, uint8_t *head, size_t n_bytes,
                                tokmap_error *err)
{
    store_le64(head + n_bytes - CHECKSUM_BYTES, tokmap_i_checksum(head, n_bytes - CHECKSUM_BYTES));
    tokmap_i_hasher_add(s->hasher, head, n_bytes);
    return write_at_end(s, head, n_bytes, err);
}

static bool begin(tokmap_i_meta_spool *s, const char *path)
{
    *s = TOKMAP_I_NO_META_SPOOL;
    s->path = strdup(path);
    s->hasher = tokmap_i_hasher_open();
    return s->path && s->hasher;
}

tokmap_status tokmap_i_meta_spool_create(tokmap_i_meta_spool *s, const char *path,
                                         const char *const *names, uint32_t n_columns,
                                         tokmap_error *err)
{
    if (!begin(s, path))
        return FAIL_MEMORY(err);
    const int error = tokmap_i_file_create(path, &s->fd);
    if (error)
        return FAIL_IO(err, error, "%s: cannot create", path);
    uint8_t head[MAX_HEAD_BYTES];
    size_t n_bytes = NAMES_AT;
    memcpy(head, magic, sizeof magic);
    store_le64(head + sizeof magic, n_columns);
    for (; s->n_columns < n_columns; s->n_columns++) {
        const size_t name_bytes = strlen(names[s->n_columns]);
        store_le64(head + n_bytes, name_bytes);
        memcpy(head + n_bytes + 8, names[s->n_columns], name_bytes);
        n_bytes += 8 + name_bytes;
        s->names[s->n_columns] = strdup(names[s->n_columns]);
        if (!s->names[s->n_columns])
            return FAIL_MEMORY(err);
    }
    s->head_bytes = n_bytes + CHECKSUM_BYTES;
    return write_head(s, head, n_bytes + CHECKSUM_BYTES, err);
}

void tokmap_i_meta_spool_close(tokmap_i_meta_spool *s)
{
    for (uint32_t i = 0; i < TOKMAP_I_MAX_META_COLUMNS; i++) {
        free(s->names[i]);
        free(s->segments[i].data);
    }
    tokmap_i_file_close(s->fd);
    tokmap_i_hasher_close(s->hasher);
    free(s->path);
    *s = TOKMAP_I_NO_META_SPOOL;
}

/* ---- Writing ---- */

bool tokmap_i_meta_spool_add(tokmap_i_meta_spool *s, uint32_t column, const tokmap_value *v)
{
    tokmap_i_bytes *b = &s->segments[column];
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
        store_le32(p + 1, (uint32_t)v->text_bytes);
    else if (v->type != TOKMAP_VALUE_NULL)
        store_le64(p + 1, bits);
    if (is_string && v->text_bytes > 0)
        memcpy(p + 5, v->text, v->text_bytes);
    return true;
}

tokmap_status tokmap_i_meta_spool_end_row(tokmap_i_meta_spool *s, tokmap_error *err)
{
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < s->n_columns; i++)
        n_bytes += s->segments[i].n_bytes;
    s->n_rows++;
    return n_bytes >= CHUNK_BYTES ? tokmap_i_meta_spool_flush(s, err) : TOKMAP_OK;
}

tokmap_status tokmap_i_meta_spool_flush(tokmap_i_meta_spool *s, tokmap_error *err)
{
    uint8_t head[MAX_HEAD_BYTES];
    if (s->n_rows == 0)
        return TOKMAP_OK;
    store_le64(head, s->n_rows);
    for (uint32_t i = 0; i < s->n_columns; i++) {
        const tokmap_i_bytes *b = &s->segments[i];
        uint8_t *entry = head + 8 + i * (size_t)CHUNK_COLUMN_BYTES;
        store_le64(entry, b->n_bytes);
        store_le64(entry + 8, tokmap_i_checksum(b->data, b->n_bytes));
    }
    tokmap_status status = write_head(s, head, chunk_head_bytes(s), err);
    for (uint32_t i = 0; !status && i < s->n_columns; i++) {
        status = write_at_end(s, s->segments[i].data, s->segments[i].n_bytes, err);
        s->segments[i].n_bytes = 0;
    }
    s->n_rows = 0;
    return status;
}

/* ---- Reading ---- */

static tokmap_status read_part(tokmap_i_meta_spool *s, uint64_t offset, uint8_t *dst,
                               size_t n_bytes, tokmap_error *err)
{
    size_t n_read;
    const int error = tokmap_i_file_read(s->fd, dst, n_bytes, offset, &n_read);
    if (error)
        return FAIL_IO_AT(err, error, offset, "%s: cannot read", s->path);
    return n_read == n_bytes ? TOKMAP_OK : fail_changed(s, offset + n_read, err);
}

tokmap_status tokmap_i_meta_spool_open(tokmap_i_meta_spool *s, const char *path, uint64_t n_bytes,
                                       tokmap_error *err)
{
    uint8_t head[MAX_HEAD_BYTES];
    const size_t n_read = (size_t)MIN(n_bytes, sizeof head);
    if (!begin(s, path))
        return FAIL_MEMORY(err);
    const int error = tokmap_i_file_open_again(path, &s->fd);
    if (error)
        return FAIL_IO(err, error, "%s: cannot open", path);
    s->n_bytes = n_bytes;
    if (n_bytes < NAMES_AT)
        return fail_changed(s, n_bytes, err);
    const tokmap_status status = read_part(s, 0, head, n_read, err);
    if (status)
        return status;
    size_t at = NAMES_AT;
    const uint64_t n_columns = load_le64(head + sizeof magic);
    if (memcmp(head, magic, sizeof magic) != 0 || n_columns == 0 ||
        n_columns > TOKMAP_I_MAX_META_COLUMNS)
        return fail_changed(s, 0, err);
    for (; s->n_columns < n_columns; s->n_columns++) {
        const uint64_t name_bytes = n_read - at < 8 ? UINT64_MAX : load_le64(head + at);
        if (name_bytes > n_read - MIN(at + 8, n_read) ||
            !tokmap_i_meta_name_valid((const char *)head + at + 8, (size_t)name_bytes))
            return fail_changed(s, at, err);
        s->names[s->n_columns] = strndup((const char *)head + at + 8, (size_t)name_bytes);
        if (!s->names[s->n_columns])
            return FAIL_MEMORY(err);
        at += 8 + (size_t)name_bytes;
    }
    if (n_read - at < CHECKSUM_BYTES || load_le64(head + at) != tokmap_i_checksum(head, at))
        return fail_changed(s, at, err);
    s->head_bytes = at + CHECKSUM_BYTES;
    tokmap_i_hasher_add(s->hasher, head, s->head_bytes);
    return TOKMAP_OK;
}

tokmap_i_meta_cursor tokmap_i_meta_cursor_at(tokmap_i_meta_spool *s, uint32_t column)
{
    return (tokmap_i_meta_cursor){.spool = s, .column = column, .chunk = s->head_bytes};
}

/* Reads the head of a chunk, and finds the segment of a column and the next chunk. */
typedef struct chunk {
    uint8_t head[MAX_HEAD_BYTES];
    uint64_t n_rows, segment_at, segment_bytes, segment_checksum, end;
} chunk;

static tokmap_status read_chunk(tokmap_i_meta_spool *s, uint64_t at, uint32_t column, chunk *c,
                                tokmap_error *err)
{
    const size_t head_bytes = chunk_head_bytes(s);
    if (s->n_bytes - at < head_bytes)
        return fail_changed(s, at, err);
    const tokmap_status status = read_part(s, at, c->head, head_bytes, err);
    if (status)
        return status;
    if (load_le64(c->head + head_bytes - CHECKSUM_BYTES) !=
        tokmap_i_checksum(c->head, head_bytes - CHECKSUM_BYTES))
        return fail_changed(s, at, err);
    c->n_rows = load_le64(c->head);
    c->end = at + head_bytes;
    for (uint32_t i = 0; i < s->n_columns; i++) {
        const uint8_t *entry = c->head + 8 + i * (size_t)CHUNK_COLUMN_BYTES;
        const uint64_t n_bytes = load_le64(entry);
        if (n_bytes > s->n_bytes - c->end || n_bytes < c->n_rows)
            return fail_changed(s, at, err);
        if (i == column) {
            c->segment_at = c->end;
            c->segment_bytes = n_bytes;
            c->segment_checksum = load_le64(entry + 8);
        }
        c->end += n_bytes;
    }
    return TOKMAP_OK;
}

/* False if there is no whole value. */
static bool take_value(tokmap_i_meta_cursor *c, tokmap_value *out)
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
        out->text_bytes = load_le32(p + 1);
        c->at += out->text_bytes;
        return out->text_bytes <= MIN(left - head_bytes, TOKMAP_I_MAX_META_STRING);
    }
    const uint64_t bits = head_bytes > 1 ? load_le64(p + 1) : 0;
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
            return fail_changed(c->spool, c->chunk, err);
        if (c->chunk == c->spool->n_bytes)
            return TOKMAP_END;
        tokmap_status status = read_chunk(c->spool, c->chunk, c->column, &k, err);
        if (status)
            return status;
        c->segment.n_bytes = 0;
        uint8_t *p = tokmap_i_bytes_add(&c->segment, (size_t)k.segment_bytes);
        if (!p)
            return FAIL_MEMORY(err);
        status = read_part(c->spool, k.segment_at, p, (size_t)k.segment_bytes, err);
        if (status)
            return status;
        if (tokmap_i_checksum(p, (size_t)k.segment_bytes) != k.segment_checksum)
            return fail_changed(c->spool, k.segment_at, err);
        c->at = 0;
        c->rows_left = k.n_rows;
        c->chunk = k.end;
    }
    c->rows_left--;
    return take_value(c, out) ? TOKMAP_OK : fail_changed(c->spool, c->chunk, err);
}

tokmap_status tokmap_i_meta_spool_hash(tokmap_i_meta_spool *s, tokmap_error *err)
{
    chunk c;
    for (uint64_t at = s->head_bytes; at < s->n_bytes; at = c.end) {
        const tokmap_status status = read_chunk(s, at, 0, &c, err);
        if (status)
            return status;
        tokmap_i_hasher_add(s->hasher, c.head, chunk_head_bytes(s));
    }
    return TOKMAP_OK;
}
