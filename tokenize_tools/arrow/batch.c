/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "arrow/schema.h"
#include "text/little_endian.h"

enum { /* the slots of a RecordBatch, a DictionaryBatch and a BodyCompression */
    BATCH_ROWS,
    BATCH_NODES,
    BATCH_BUFFERS,
    BATCH_COMPRESSION,
    BATCH_VIEW_COUNTS,
    DICTIONARY_ID = 0,
    DICTIONARY_VALUES,
    DICTIONARY_IS_DELTA,
    COMPRESSION_CODEC = 0,
    COMPRESSION_METHOD,
    LZ4_FRAME = 0,
    ZSTD = 1,
    PAIR_BYTES = 16 /* a node: rows, nulls; a buffer: offset, bytes */
};

static bool read_compression(arrow_batch *b, const flat_table *batch, failure *err)
{
    const flat_table t = flat_child(batch, BATCH_COMPRESSION);
    if (!t.buffer)
        return true;
    const int64_t codec = flat_number(&t, COMPRESSION_CODEC, 1, LZ4_FRAME);
    const int64_t method = flat_number(&t, COMPRESSION_METHOD, 1, 0);
    b->is_compressed = true;
    if (codec == LZ4_FRAME && method == 0)
        return fail(err, "is compressed with lz4, which tokmap does not read; write it with "
                         "zstd or uncompressed, such as compression=\"zstd\" in pyarrow and "
                         "Polars");
    return (codec == ZSTD && method == 0) ||
           fail(err, "is compressed in a way that is not known (codec %" PRId64 ")", codec);
}

bool arrow_read_batch(arrow_batch *b, const arrow_message *m, failure *err)
{
    flat_table batch = m->header;
    *b = (arrow_batch){.body_bytes = m->body_bytes};
    if (m->kind == ARROW_DICTIONARY) {
        b->dictionary_id = flat_number(&batch, DICTIONARY_ID, 8, 0);
        b->is_delta = flat_number(&batch, DICTIONARY_IS_DELTA, 1, 0) != 0;
        batch = flat_child(&m->header, DICTIONARY_VALUES);
    }
    const int64_t n_rows = flat_number(&batch, BATCH_ROWS, 8, 0);
    b->nodes = flat_items(&batch, BATCH_NODES, PAIR_BYTES);
    b->buffers = flat_items(&batch, BATCH_BUFFERS, PAIR_BYTES);
    b->view_counts = flat_items(&batch, BATCH_VIEW_COUNTS, 8);
    if (!read_compression(b, &batch, err))
        return false;
    if (m->buffer.damage)
        return fail(err, "damaged metadata: %s (byte %zu of the metadata)", m->buffer.damage,
                    m->buffer.damage_at);
    if (n_rows < 0)
        return fail(err, "damaged: %" PRId64 " rows", n_rows);
    b->n_rows = (uint64_t)n_rows;
    return true;
}

static const uint8_t *pair_at(const flat_list *l, size_t index)
{
    return l->buffer->bytes + l->at + index * PAIR_BYTES;
}

/* How many further buffers the view number n has. */
static uint64_t view_count(const arrow_batch *b, size_t n)
{
    return le_get64(b->view_counts.buffer->bytes + b->view_counts.at + n * 8);
}

static bool has_view_count(const arrow_field *f)
{
    return arrow_is_view(f->type) && !f->has_dictionary;
}

/* The number of the first buffer of a field in this batch, after the further buffers of views. */
static bool find_first(const arrow_batch *b, const arrow_field *f, uint64_t *first)
{
    *first = f->first_buffer;
    for (size_t i = 0; i < f->n_views; i++) {
        if (view_count(b, i) > b->buffers.n)
            return false;
        *first += view_count(b, i);
    }
    return *first <= b->buffers.n;
}

bool arrow_count_buffers(const arrow_batch *b, const arrow_schema *s, size_t field, size_t *n,
                         failure *err)
{
    const arrow_field *f = &s->fields[field];
    uint64_t first, n_own = f->n_buffers;
    if (b->nodes.n < s->n_nodes || b->view_counts.n < s->n_views || !find_first(b, f, &first))
        return fail(err, "damaged: the record batch does not fit the schema");
    if (has_view_count(f))
        n_own += view_count(b, f->n_views);
    if (n_own > b->buffers.n || first > b->buffers.n - n_own)
        return fail(err, "damaged: the record batch has too few buffers");
    *n = f->depth + (size_t)n_own;
    return true;
}

static bool read_extent(const arrow_batch *b, uint64_t index, arrow_extent *e, failure *err)
{
    const uint8_t *pair = pair_at(&b->buffers, (size_t)index);
    *e = (arrow_extent){.offset = le_get64(pair), .n_bytes = le_get64(pair + 8)};
    return (e->offset <= b->body_bytes && e->n_bytes <= b->body_bytes - e->offset) ||
           fail(err, "damaged: the buffer %" PRIu64 " of the record batch is outside its body",
                index);
}

static bool check_node(const arrow_batch *b, const arrow_field *f, bool has_validity, failure *err)
{
    const uint8_t *pair = pair_at(&b->nodes, f->node);
    const uint64_t n_rows = le_get64(pair), n_nulls = le_get64(pair + 8);
    if (n_rows != b->n_rows || n_nulls > n_rows)
        return fail(err,
                    "damaged: a column of %" PRIu64 " rows, %" PRIu64
                    " of them null, in a record batch of %" PRIu64 " rows",
                    n_rows, n_nulls, b->n_rows);
    return n_nulls == 0 || has_validity || f->type == ARROW_NULL ||
           fail(err, "damaged: a column with nulls does not say which rows are null");
}

bool arrow_find_buffers(const arrow_batch *b, const arrow_schema *s, size_t field,
                        arrow_extent *extents, failure *err)
{
    const arrow_field *f = &s->fields[field];
    size_t n = 0;
    uint64_t first = 0;
    if (!arrow_count_buffers(b, s, field, &n, err))
        return false;
    size_t at = f->depth;
    for (size_t p = f->parent; p != ARROW_NO_FIELD; p = s->fields[p].parent) {
        arrow_extent *e = &extents[--at];
        if (!find_first(b, &s->fields[p], &first) || !read_extent(b, first, e, err) ||
            !check_node(b, &s->fields[p], e->n_bytes > 0, err))
            return false;
    }
    find_first(b, f, &first);
    for (size_t i = f->depth; i < n; i++) {
        if (!read_extent(b, first + i - f->depth, &extents[i], err))
            return false;
    }
    return check_node(b, f, n > f->depth && extents[f->depth].n_bytes > 0, err);
}
