/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/arrow/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/le.h"

#define MAX_DEPTH 64
/* A limit is needed: metadata of any size can list the same field many times. */
#define MAX_FIELDS ((size_t)1 << 18)

static bool check_damage(const flatbuffer *b, failure *err)
{
    return !b->damage ||
           fail(err, "damaged metadata: %s (byte %zu of the metadata)", b->damage, b->damage_at);
}

/* ---- Messages ---- */

bool arrow_read_prefix(const uint8_t *prefix, size_t *metadata_bytes, failure *err)
{
    *metadata_bytes = le_get32(prefix + 4);
    if (le_get32(prefix) != UINT32_MAX)
        return fail(err, "there is no Arrow message here (Arrow before 0.15 is not supported)");
    return *metadata_bytes <= INT32_MAX ||
           fail(err, "damaged: a message with %zu bytes of metadata", *metadata_bytes);
}

enum { /* the slots of a Message */
    MESSAGE_VERSION,
    MESSAGE_KIND,
    MESSAGE_HEADER,
    MESSAGE_BODY_BYTES,
    VERSION_4 = 3,
    VERSION_5 = 4
};

bool arrow_read_message(arrow_message *m, const uint8_t *metadata, size_t n_bytes, failure *err)
{
    *m = (arrow_message){.buffer = {.bytes = metadata, .n_bytes = n_bytes}};
    const flat_table root = flat_root(&m->buffer);
    const int64_t version = flat_number(&root, MESSAGE_VERSION, 2, 0);
    const int64_t body_bytes = flat_number(&root, MESSAGE_BODY_BYTES, 8, 0);
    const int64_t kind = flat_number(&root, MESSAGE_KIND, 1, 0);
    m->header = flat_child(&root, MESSAGE_HEADER);
    if (!check_damage(&m->buffer, err))
        return false;
    if (version != VERSION_4 && version != VERSION_5)
        return fail(err, "version %" PRId64 " of Arrow's metadata is not supported", version + 1);
    if (kind < ARROW_SCHEMA || kind > ARROW_RECORDS || !m->header.buffer)
        return fail(err, "messages of kind %" PRId64 " are not supported", kind);
    if (body_bytes < 0)
        return fail(err, "damaged: a message of %" PRId64 " bytes", body_bytes);
    m->kind = (arrow_kind)kind;
    m->is_v4 = version == VERSION_4;
    m->body_bytes = (uint64_t)body_bytes;
    return true;
}

bool arrow_read_footer(const uint8_t *footer, size_t n_bytes, uint64_t *n_batches, failure *err)
{
    const unsigned batches_slot = 3;
    const size_t block_bytes = 24;
    flatbuffer b = {.bytes = footer, .n_bytes = n_bytes};
    const flat_table root = flat_root(&b);
    *n_batches = flat_items(&root, batches_slot, block_bytes).n;
    return check_damage(&b, err);
}

/* ---- Types ---- */

static const struct {
    const char *name;
    uint8_t n_buffers; /* including validity */
} types[] = {
    [ARROW_NULL] = {"null", 0},
    [ARROW_INT] = {"int", 2},
    [ARROW_FLOAT] = {"float", 2},
    [ARROW_BINARY] = {"binary", 3},
    [ARROW_UTF8] = {"string", 3},
    [ARROW_BOOL] = {"bool", 2},
    [ARROW_DECIMAL] = {"decimal", 2},
    [ARROW_DATE] = {"date", 2},
    [ARROW_TIME] = {"time", 2},
    [ARROW_TIMESTAMP] = {"timestamp", 2},
    [ARROW_INTERVAL] = {"interval", 2},
    [ARROW_LIST] = {"list", 2},
    [ARROW_STRUCT] = {"struct", 1},
    [ARROW_UNION] = {"union", 1},
    [ARROW_FIXED_BINARY] = {"fixed_size_binary", 2},
    [ARROW_FIXED_LIST] = {"fixed_size_list", 1},
    [ARROW_MAP] = {"map", 2},
    [ARROW_DURATION] = {"duration", 2},
    [ARROW_LARGE_BINARY] = {"large_binary", 3},
    [ARROW_LARGE_UTF8] = {"large_string", 3},
    [ARROW_LARGE_LIST] = {"large_list", 2},
    [ARROW_RUN_END] = {"run_end_encoded", 0},
    [ARROW_BINARY_VIEW] = {"binary_view", 2},
    [ARROW_UTF8_VIEW] = {"string_view", 2},
    [ARROW_LIST_VIEW] = {"list_view", 3},
    [ARROW_LARGE_LIST_VIEW] = {"large_list_view", 3},
};
#define N_TYPES (sizeof types / sizeof *types)

static const char *number_name(const arrow_field *f)
{
    static const char *const names[4][3] = {{"int8", "uint8", "float"},
                                            {"int16", "uint16", "halffloat"},
                                            {"int32", "uint32", "float"},
                                            {"int64", "uint64", "double"}};
    const unsigned size = f->bits == 8 ? 0 : f->bits == 16 ? 1 : f->bits == 32 ? 2 : 3;
    return names[size][f->type == ARROW_FLOAT ? 2 : f->is_unsigned];
}

bool arrow_is_view(arrow_type type)
{
    return type == ARROW_BINARY_VIEW || type == ARROW_UTF8_VIEW;
}

const char *arrow_type_name(const arrow_field *f)
{
    if (f->has_dictionary)
        return arrow_is_text(f) ? "dictionary of string" : "dictionary";
    return f->type == ARROW_INT || f->type == ARROW_FLOAT ? number_name(f) : types[f->type].name;
}

bool arrow_is_text(const arrow_field *f)
{
    return f->type == ARROW_BINARY || f->type == ARROW_UTF8 || f->type == ARROW_LARGE_BINARY ||
           f->type == ARROW_LARGE_UTF8 || arrow_is_view(f->type);
}

bool arrow_is_value(const arrow_field *f)
{
    switch (f->type) {
    case ARROW_NULL:
    case ARROW_BOOL:
        return true;
    case ARROW_INT:
    case ARROW_DATE:
    case ARROW_TIME:
    case ARROW_TIMESTAMP:
    case ARROW_DURATION:
        return f->bits == 8 || f->bits == 16 || f->bits == 32 || f->bits == 64;
    case ARROW_FLOAT:
        return f->bits >= 32;
    case ARROW_DECIMAL:
        return f->bits == 32 || f->bits == 64 || f->bits == 128 || f->bits == 256;
    default:
        return arrow_is_text(f);
    }
}

/* ---- The schema ---- */

enum { /* the slots of a Field */
    FIELD_NAME,
    FIELD_NULLABLE,
    FIELD_TYPE,
    FIELD_TYPE_TABLE,
    FIELD_DICTIONARY,
    FIELD_CHILDREN
};

enum { /* of a Schema, of a DictionaryEncoding */
    SCHEMA_ENDIANNESS,
    SCHEMA_FIELDS,
    ENCODING_ID = 0,
    ENCODING_INDEX_TYPE
};

/* Reads the bits of a number. The slots of a type are its width, unit, precision, mode or scale. */
static unsigned read_bits(arrow_type type, const flat_table *t)
{
    switch (type) {
    case ARROW_INT:
        return (unsigned)flat_number(t, 0, 4, 0);
    case ARROW_FLOAT: {
        const int64_t precision = flat_number(t, 0, 2, 0);
        return precision == 0 ? 16 : precision == 1 ? 32 : 64;
    }
    case ARROW_DECIMAL:
        return (unsigned)flat_number(t, 2, 4, 128);
    case ARROW_DATE:
        return flat_number(t, 0, 2, 1) == 0 ? 32 : 64;
    case ARROW_TIME:
        return (unsigned)flat_number(t, 1, 4, 32);
    case ARROW_TIMESTAMP:
    case ARROW_DURATION:
        return 64;
    default:
        return 0;
    }
}

static time_unit read_unit(arrow_type type, const flat_table *t)
{
    const int64_t unit = type == ARROW_TIMESTAMP ? flat_number(t, 0, 2, 0) : -1;
    if (type == ARROW_DATE)
        return flat_number(t, 0, 2, 1) == 0 ? TIME_DAYS : TIME_MILLISECONDS;
    return unit >= 0 && unit <= 3 ? TIME_SECONDS + (time_unit)unit : TIME_NONE;
}

static void read_encoding(arrow_field *f, const flat_table *encoding)
{
    f->has_dictionary = encoding->buffer != NULL;
    if (!f->has_dictionary)
        return;
    const flat_table index = flat_child(encoding, ENCODING_INDEX_TYPE);
    f->dictionary_id = flat_number(encoding, ENCODING_ID, 8, 0);
    f->index_bits = index.buffer ? read_bits(ARROW_INT, &index) : 32;
    f->index_unsigned = index.buffer && !flat_number(&index, 1, 1, 0);
}

static size_t count_own_buffers(const arrow_schema *s, const arrow_field *f, const flat_table *type)
{
    if (f->has_dictionary)
        return 2;
    if (f->type != ARROW_UNION)
        return types[f->type].n_buffers;
    const bool dense = flat_number(type, 0, 2, 0) == 1;
    return 1 + (size_t)dense + s->is_v4;
}

static bool read_fields(arrow_schema *s, const flat_list *list, size_t parent, failure *err);

static bool read_field(arrow_schema *s, const flat_table *t, size_t parent, failure *err)
{
    const int64_t type = flat_number(t, FIELD_TYPE, 1, 0);
    const flat_table type_table = flat_child(t, FIELD_TYPE_TABLE);
    const flat_table encoding = flat_child(t, FIELD_DICTIONARY);
    const flat_list name = flat_items(t, FIELD_NAME, 1);
    const flat_list children = flat_items(t, FIELD_CHILDREN, 4);
    arrow_field f = {.parent = parent, .type = (arrow_type)type};
    f.depth = parent == ARROW_NO_FIELD ? 0 : s->fields[parent].depth + 1;
    if (name.n)
        f.name = (arrow_bytes){name.buffer->bytes + name.at, name.n};
    if (type < ARROW_NULL || type >= (int64_t)N_TYPES)
        return fail(err, "the column %.*s has an unknown type (%" PRId64 ")",
                    (int)(f.name.n_bytes < 100 ? f.name.n_bytes : 100),
                    f.name.n_bytes ? (const char *)f.name.bytes : "", type);
    f.bits = read_bits(f.type, &type_table);
    f.is_unsigned = type == ARROW_INT && !flat_number(&type_table, 1, 1, 0);
    f.scale = type == ARROW_DECIMAL ? (int32_t)flat_number(&type_table, 1, 4, 0) : 0;
    f.time = read_unit(f.type, &type_table);
    read_encoding(&f, &encoding);
    f.node = s->n_nodes++;
    f.first_buffer = s->n_buffers;
    f.n_views = s->n_views;
    f.n_buffers = count_own_buffers(s, &f, &type_table);
    s->n_buffers += f.n_buffers;
    s->n_views += arrow_is_view(f.type) && !f.has_dictionary;
    if (s->n_fields == MAX_FIELDS || f.depth >= MAX_DEPTH)
        return fail(err, "too many columns, or columns that are nested too deeply");
    if (!array_grow(&s->fields, s->n_fields, sizeof *s->fields))
        return fail_memory(err);
    s->fields[s->n_fields++] = f;
    /* The values of a dictionary, with their children, are in batches of their own. */
    return f.has_dictionary || read_fields(s, &children, s->n_fields - 1, err);
}

static bool read_fields(arrow_schema *s, const flat_list *list, size_t parent, failure *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const flat_table t = flat_item(list, i);
        if (!check_damage(list->buffer, err) || !read_field(s, &t, parent, err))
            return false;
    }
    return true;
}

bool arrow_read_schema(arrow_schema *s, const arrow_message *m, failure *err)
{
    *s = (arrow_schema){.is_v4 = m->is_v4};
    if (flat_number(&m->header, SCHEMA_ENDIANNESS, 2, 0) != 0)
        return fail(err, "is big-endian Arrow, which is not supported; write it on a "
                         "little-endian machine");
    const flat_list fields = flat_items(&m->header, SCHEMA_FIELDS, 4);
    return read_fields(s, &fields, ARROW_NO_FIELD, err) && check_damage(&m->buffer, err);
}

void arrow_free_schema(arrow_schema *s)
{
    free(s->fields);
}

arrow_schema arrow_dictionary_schema(const arrow_field *f, arrow_field *storage)
{
    *storage = *f;
    storage->parent = ARROW_NO_FIELD;
    storage->has_dictionary = false;
    storage->n_buffers = types[f->type].n_buffers;
    storage->depth = storage->node = storage->first_buffer = storage->n_views = 0;
    return (arrow_schema){
        .fields = storage, .n_fields = 1, .n_nodes = 1, .n_views = arrow_is_view(f->type)};
}

/* Whether the field has this path. Names may contain dots, so it is compared from its end. */
static bool is_path_of(const arrow_schema *s, size_t field, const char *path)
{
    size_t n = strlen(path);
    for (;;) {
        const arrow_field *f = &s->fields[field];
        const size_t name_bytes = f->name.n_bytes;
        if (name_bytes > n ||
            (name_bytes > 0 && memcmp(path + n - name_bytes, f->name.bytes, name_bytes) != 0))
            return false;
        n -= name_bytes;
        if (f->parent == ARROW_NO_FIELD)
            return n == 0;
        if (s->fields[f->parent].type != ARROW_STRUCT || n == 0 || path[--n] != '.')
            return false;
        field = f->parent;
    }
}

/* Writes the dotted path, truncated to less than text_bytes. Returns its length. */
static size_t write_path(const arrow_schema *s, size_t field, char *text, size_t text_bytes)
{
    const arrow_field *f = &s->fields[field];
    size_t n = 0;
    if (f->parent != ARROW_NO_FIELD) {
        n = write_path(s, f->parent, text, text_bytes - 1);
        text[n++] = '.';
    }
    for (size_t i = 0; i < f->name.n_bytes && n + 1 < text_bytes; i++) {
        const uint8_t c = f->name.bytes[i];
        text[n++] = c < ' ' || c == 0x7F ? '?' : (char)c;
    }
    text[n] = '\0';
    return n;
}

/* Whether a message lists the field: of structs the parts are listed, of other types the field. */
static bool is_shown(const arrow_schema *s, size_t field)
{
    const arrow_field *f = &s->fields[field];
    for (size_t p = f->parent; p != ARROW_NO_FIELD; p = s->fields[p].parent) {
        if (s->fields[p].type != ARROW_STRUCT)
            return false;
    }
    return f->type != ARROW_STRUCT || f->has_dictionary;
}

/* Writes "id (int64), text (string)", with as many columns as there is room for. */
static void list_columns(const arrow_schema *s, char *text, size_t text_bytes)
{
    const size_t room_for_more = 5;
    size_t n = 0;
    char path[256];
    snprintf(text, text_bytes, "none");
    for (size_t i = 0; s->fields && i < s->n_fields; i++) {
        if (!is_shown(s, i))
            continue;
        write_path(s, i, path, sizeof path);
        const int added = snprintf(text + n, text_bytes - n, "%s%s (%s)", n ? ", " : "", path,
                                   arrow_type_name(&s->fields[i]));
        if (added < 0 || (size_t)added + room_for_more >= text_bytes - n) {
            snprintf(text + n, text_bytes - n, "%s...", n ? ", " : "");
            return;
        }
        n += (size_t)added;
    }
}

const arrow_field *arrow_find_field(const arrow_schema *s, const char *path, failure *err)
{
    char columns[256];
    const arrow_field *found = NULL;
    for (size_t i = 0; i < s->n_fields; i++) {
        if (!is_path_of(s, i, path))
            continue;
        if (found) {
            fail(err, "has two columns named \"%.100s\"", path);
            return NULL;
        }
        found = &s->fields[i];
    }
    if (!found) {
        list_columns(s, columns, sizeof columns);
        fail(err, "has no column \"%.100s\"; there are: %s", path, columns);
        fail_kind(err, "an Arrow file without the column");
    }
    return found;
}

/* ---- Record batches and dictionaries ---- */

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
           fail(err, "is compressed with an unknown codec (%" PRId64 ")", codec);
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
    if (!read_compression(b, &batch, err) || !check_damage(&m->buffer, err))
        return false;
    if (n_rows < 0)
        return fail(err, "damaged: %" PRId64 " rows", n_rows);
    b->n_rows = (uint64_t)n_rows;
    return true;
}

static const uint8_t *pair_at(const flat_list *l, size_t index)
{
    return l->buffer->bytes + l->at + index * PAIR_BYTES;
}

/* Returns the number of extra buffers of view n. */
static uint64_t view_count(const arrow_batch *b, size_t n)
{
    return le_get64(b->view_counts.buffer->bytes + b->view_counts.at + n * 8);
}

/* Finds the index of the first buffer of a field in this batch, counting extra buffers of views. */
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
           fail(err, "damaged: a column with nulls does not state which rows are null");
}

bool arrow_find_buffers(const arrow_batch *b, const arrow_schema *s, const arrow_field *f,
                        arrow_extent **extents, size_t *n, failure *err)
{
    uint64_t first, outer, n_own = f->n_buffers;
    *extents = NULL;
    if (b->nodes.n < s->n_nodes || b->view_counts.n < s->n_views || !find_first(b, f, &first))
        return fail(err, "damaged: the record batch does not fit the schema");
    if (arrow_is_view(f->type) && !f->has_dictionary)
        n_own += view_count(b, f->n_views);
    if (n_own > b->buffers.n || first > b->buffers.n - n_own)
        return fail(err, "damaged: the record batch has too few buffers");
    *n = f->depth + (size_t)n_own;
    arrow_extent *e = *extents = calloc(*n + 1, sizeof *e);
    if (!e)
        return fail_memory(err);
    size_t at = f->depth;
    for (size_t p = f->parent; p != ARROW_NO_FIELD; p = s->fields[p].parent) {
        at--;
        if (!find_first(b, &s->fields[p], &outer) || !read_extent(b, outer, &e[at], err) ||
            !check_node(b, &s->fields[p], e[at].n_bytes > 0, err))
            return false;
    }
    for (size_t i = 0; i < n_own; i++) {
        if (!read_extent(b, first + i, &e[f->depth + i], err))
            return false;
    }
    return check_node(b, f, e[f->depth].n_bytes > 0, err);
}
