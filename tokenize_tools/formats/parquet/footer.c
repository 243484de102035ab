/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/footer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/parquet/thrift.h"
#include "base/array.h"
#include "base/number.h"
#include "base/le.h"

const char parquet_no_memory[] = "out of memory";

/* ---- The frame ---- */

static bool has_magic(const uint8_t *bytes, const char *magic)
{
    return memcmp(bytes, magic, 4) == 0;
}

bool parquet_find_footer(const uint8_t *head, const uint8_t *tail, uint64_t file_bytes,
                         uint32_t *footer_bytes, failure *err)
{
    if (has_magic(head, "PARE") || has_magic(tail + 4, "PARE"))
        return fail(err, "an encrypted Parquet file (PARE) cannot be read");
    if (!has_magic(head, "PAR1"))
        return fail(err, "not a Parquet file: it does not begin with PAR1");
    if (file_bytes < PARQUET_HEAD_BYTES + PARQUET_TAIL_BYTES || !has_magic(tail + 4, "PAR1"))
        return fail(err, "truncated Parquet file: it does not end with PAR1");
    *footer_bytes = le_get32(tail);
    if (*footer_bytes > file_bytes - PARQUET_HEAD_BYTES - PARQUET_TAIL_BYTES)
        return fail(err, "damaged footer: it would have %" PRIu32 " bytes", *footer_bytes);
    if (*footer_bytes > PARQUET_MAX_FOOTER_BYTES)
        return fail(err, "its footer has %" PRIu32 " bytes, more than the limit of 256 MiB",
                    *footer_bytes);
    return true;
}

/* ---- The schema ---- */

enum {
    REQUIRED,
    OPTIONAL,
    REPEATED
};

typedef struct raw_element { /* as stored; -1: absent */
    int64_t type, repetition, n_children, converted;
    int64_t logical; /* the number of a field of a union; 0: absent */
    int64_t fixed_bytes, scale;
    int64_t unit; /* of a timestamp: the number of a field of a union */
    bool is_signed;
    thrift_bytes name;
} raw_element;

/* Reads the repetition. fastparquet with has_nulls=None writes a boolean: whether there may be
 * nulls. */
static void read_repetition(thrift *t, uint8_t type, void *to)
{
    if (type <= THRIFT_FALSE)
        *(int64_t *)to = type == THRIFT_TRUE;
    else
        thrift_integer(t, type, to);
}

enum { /* logical types */
    DECIMAL = 5,
    DATE = 6,
    TIMESTAMP = 8,
    INTEGER = 10
};

/* Reads the number of the field that a union has. */
static void read_unit(thrift *t, uint8_t type, void *to)
{
    int32_t id = 0;
    if (type != THRIFT_STRUCT)
        thrift_fail(t, "a field of its header has the wrong type");
    while (thrift_next(t, &id, &type)) {
        *(int64_t *)to = id;
        thrift_skip(t, type);
    }
}

static void read_logical_type(thrift *t, uint8_t type, void *to)
{
    static const thrift_field integer_fields[] = {
        {2, thrift_boolean, offsetof(raw_element, is_signed), NULL}, {0}};
    static const thrift_field decimal_fields[] = {
        {1, thrift_integer, offsetof(raw_element, scale), NULL}, {0}};
    static const thrift_field timestamp_fields[] = {
        {2, read_unit, offsetof(raw_element, unit), NULL}, {0}};
    static const thrift_field *const fields[] = {
        [DECIMAL] = decimal_fields, [TIMESTAMP] = timestamp_fields, [INTEGER] = integer_fields};
    raw_element *raw = to;
    int32_t id = 0;
    if (type != THRIFT_STRUCT)
        thrift_fail(t, "a field of its header has the wrong type");
    while (thrift_next(t, &id, &type)) {
        raw->logical = id;
        if (id > 0 && id <= INTEGER && fields[id])
            thrift_read(t, type, fields[id], raw);
        else
            thrift_skip(t, type);
    }
}

static const thrift_field element_fields[] = {
    {1, thrift_integer, offsetof(raw_element, type), NULL},
    {2, thrift_integer, offsetof(raw_element, fixed_bytes), NULL},
    {3, read_repetition, offsetof(raw_element, repetition), NULL},
    {4, thrift_binary, offsetof(raw_element, name), NULL},
    {5, thrift_integer, offsetof(raw_element, n_children), NULL},
    {6, thrift_integer, offsetof(raw_element, converted), NULL},
    {7, thrift_integer, offsetof(raw_element, scale), NULL},
    {10, read_logical_type, 0, NULL},
    {0}};

/* Returns the kind by the logical type if there is one, else by the older converted type. */
static parquet_kind kind_of(const raw_element *raw)
{
    static const uint8_t of_logical[] = {
        [1] = PARQUET_TEXT,    [2] = PARQUET_OTHER,  [3] = PARQUET_OTHER, [4] = PARQUET_TEXT,
        [5] = PARQUET_DECIMAL, [6] = PARQUET_TIME,   [7] = PARQUET_TIME,  [8] = PARQUET_TIME,
        [9] = PARQUET_OTHER,   [10] = PARQUET_PLAIN, [11] = PARQUET_NULL, [12] = PARQUET_TEXT};
    static const uint8_t of_converted[] = {
        [0] = PARQUET_TEXT,      [4] = PARQUET_TEXT,      [5] = PARQUET_DECIMAL,
        [6] = PARQUET_TIME,      [7] = PARQUET_TIME,      [8] = PARQUET_TIME,
        [9] = PARQUET_TIME,      [10] = PARQUET_TIME,     [11] = PARQUET_UNSIGNED,
        [12] = PARQUET_UNSIGNED, [13] = PARQUET_UNSIGNED, [14] = PARQUET_UNSIGNED,
        [15] = PARQUET_PLAIN,    [16] = PARQUET_PLAIN,    [17] = PARQUET_PLAIN,
        [18] = PARQUET_PLAIN,    [19] = PARQUET_TEXT,     [1] = PARQUET_OTHER,
        [2] = PARQUET_OTHER,     [3] = PARQUET_OTHER};
    if (!raw->is_signed)
        return PARQUET_UNSIGNED;
    if (raw->logical)
        return raw->logical < (int)sizeof of_logical ? of_logical[raw->logical] : PARQUET_OTHER;
    if (raw->converted < 0)
        return PARQUET_PLAIN;
    return raw->converted < (int)sizeof of_converted ? of_converted[raw->converted] : PARQUET_OTHER;
}

/* Returns the unit of a date (32 bits) or a timestamp (64 bits). */
static time_unit unit_of(const raw_element *raw)
{
    const bool is_date = raw->logical ? raw->logical == DATE : raw->converted == 6;
    const int64_t unit = raw->logical == TIMESTAMP              ? raw->unit
                         : !raw->logical && raw->converted >= 9 ? raw->converted - 8 /* 9: ms */
                                                                : 0;
    if (is_date && raw->type == PARQUET_INT32)
        return TIME_DAYS;
    const bool is_known = unit >= 1 && unit <= 3 && raw->type == PARQUET_INT64;
    return is_known && (raw->logical || unit < 3) ? TIME_SECONDS + (time_unit)unit : TIME_NONE;
}

/* A group whose children are still being read; the tree is stored in depth-first order. */
typedef struct open_group {
    uint32_t element;
    uint64_t n_left;
} open_group;

static const char *set_element(parquet_footer *f, const raw_element *raw, const open_group *parent)
{
    parquet_element *e = &f->elements[f->n_elements];
    const parquet_element *above = parent ? &f->elements[parent->element] : NULL;
    if (raw->name.n_bytes > UINT32_MAX || raw->n_children < 0)
        return "a column of its schema is malformed";
    *e = (parquet_element){.name = raw->name.data,
                           .name_bytes = (uint32_t)raw->name.n_bytes,
                           .is_leaf = parent && raw->n_children == 0};
    if (!parent)
        return NULL;
    if (raw->repetition < REQUIRED || raw->repetition > REPEATED || !raw->name.data)
        return "a column of its schema is malformed";
    e->parent = parent->element;
    e->depth = (uint8_t)(above->depth + 1);
    e->max_definition = (uint8_t)(above->max_definition + (raw->repetition != REQUIRED));
    e->max_repetition = (uint8_t)(above->max_repetition + (raw->repetition == REPEATED));
    e->kind = kind_of(raw);
    if (!e->is_leaf)
        return NULL;
    /* A group without columns has no type, so it is not a column. */
    if (raw->type < PARQUET_BOOLEAN || raw->type > PARQUET_FIXED_BYTES)
        return "a column of its schema has no type";
    e->type = (parquet_type)raw->type;
    e->time = unit_of(raw);
    if (e->kind == PARQUET_DECIMAL) {
        e->fixed_bytes = (uint32_t)raw->fixed_bytes;
        e->scale = (int32_t)raw->scale;
    }
    e->leaf = (uint32_t)f->n_leaves++;
    return NULL;
}

typedef struct footer_reader { /* the state while a footer is read */
    parquet_footer *f;
    uint64_t file_bytes;
    int64_t n_rows;     /* as stated by the footer */
    int64_t group_rows; /* of the current row group; -1: not known */
    bool has_chunks;    /* the current row group */
} footer_reader;

static void read_schema(thrift *t, uint8_t type, void *to)
{
    parquet_footer *f = ((footer_reader *)to)->f;
    open_group open[THRIFT_MAX_DEPTH];
    size_t depth = 0;
    const thrift_list list = thrift_begin_list(t, type);
    if (f->elements) {
        thrift_fail(t, "it has two schemas");
        return;
    }
    f->elements = calloc(list.n ? list.n : 1, sizeof *f->elements);
    if (!f->elements) {
        thrift_fail(t, parquet_no_memory);
        return;
    }
    for (uint32_t i = 0; i < list.n && !t->why; i++) {
        raw_element raw = {.type = -1, .repetition = -1, .converted = -1, .is_signed = true};
        thrift_read(t, list.type, element_fields, &raw);
        if (t->why)
            return;
        if (i > 0 && depth == 0)
            t->why = "its schema has a column outside of the root";
        else
            t->why = set_element(f, &raw, i > 0 ? &open[depth - 1] : NULL);
        if (t->why)
            return;
        if (depth > 0)
            open[depth - 1].n_left--;
        if (raw.n_children > 0 && depth == THRIFT_MAX_DEPTH)
            thrift_fail(t, "its schema is nested too deeply");
        else if (raw.n_children > 0)
            open[depth++] = (open_group){(uint32_t)f->n_elements, (uint64_t)raw.n_children};
        while (depth > 0 && open[depth - 1].n_left == 0)
            depth--;
        f->n_elements++;
    }
    if (depth > 0 || f->n_elements == 0)
        thrift_fail(t, "its schema is incomplete");
}

/* ---- Row groups ---- */

typedef struct raw_chunk { /* as stored; -1: absent */
    parquet_chunk chunk;
    int64_t codec, data_offset, dictionary_offset, type, n_nulls, plain_bytes;
} raw_chunk;

static void read_encodings(thrift *t, uint8_t type, void *to)
{
    const thrift_list list = thrift_begin_list(t, type);
    for (uint32_t i = 0; i < list.n && !t->why; i++) {
        int64_t encoding = -1;
        thrift_integer(t, list.type, &encoding);
        if (encoding >= 0 && encoding < 32)
            *(uint32_t *)to |= (uint32_t)1 << encoding;
    }
}

static const thrift_field statistics_fields[] = {
    {3, thrift_integer, offsetof(raw_chunk, n_nulls), NULL}, {0}};
static const thrift_field metadata_fields[] = {
    {1, thrift_integer, offsetof(raw_chunk, type), NULL},
    {2, read_encodings, offsetof(raw_chunk, chunk.encodings), NULL},
    {4, thrift_integer, offsetof(raw_chunk, codec), NULL},
    {5, thrift_integer, offsetof(raw_chunk, chunk.n_values), NULL},
    {6, thrift_integer, offsetof(raw_chunk, plain_bytes), NULL},
    {7, thrift_integer, offsetof(raw_chunk, chunk.stored_bytes), NULL},
    {9, thrift_integer, offsetof(raw_chunk, data_offset), NULL},
    {11, thrift_integer, offsetof(raw_chunk, dictionary_offset), NULL},
    {12, NULL, 0, statistics_fields},
    {0}};
static const thrift_field chunk_fields[] = {
    {1, thrift_present, offsetof(raw_chunk, chunk.external), NULL}, /* the path of another file */
    {3, NULL, 0, metadata_fields},
    {8, thrift_present, offsetof(raw_chunk, chunk.encrypted), NULL},
    {9, thrift_present, offsetof(raw_chunk, chunk.encrypted), NULL},
    {0}};

static bool is_within(int64_t n, uint64_t limit)
{
    return n >= 0 && (uint64_t)n <= limit;
}

/* Sets a chunk, and returns what is wrong with it. One that is encrypted or in another file is
 * refused later, if it is needed. */
static const char *set_chunk(parquet_chunk *to, const raw_chunk *c, const parquet_element *column,
                             uint64_t file_bytes)
{
    *to = (parquet_chunk){.encrypted = c->chunk.encrypted, .external = c->chunk.external};
    if (to->encrypted || to->external)
        return NULL;
    if (!is_within(c->codec, UINT8_MAX) || c->chunk.n_values > INT64_MAX || c->plain_bytes < 0 ||
        c->chunk.stored_bytes > file_bytes || !is_within(c->data_offset, file_bytes) ||
        !is_within(c->dictionary_offset, file_bytes))
        return "the metadata of a column chunk is invalid";
    if (c->type != (int64_t)column->type)
        return "a column chunk and its column have different types";
    /* Some writers leave out the offset of the dictionary page, or write 0: then the dictionary is
     * the first page, at data_offset. */
    const bool before = c->dictionary_offset > 0 && c->dictionary_offset < c->data_offset;
    *to = c->chunk;
    to->offset = (uint64_t)(before ? c->dictionary_offset : c->data_offset);
    to->all_null = c->n_nulls == (int64_t)to->n_values;
    to->codec = (uint8_t)c->codec;
    return NULL;
}

static bool grow_groups(footer_reader *r, thrift *t)
{
    parquet_footer *f = r->f;
    const size_t row_bytes = (f->n_leaves ? f->n_leaves : 1) * sizeof *f->chunks;
    const bool grown = array_grow(&f->groups, f->n_groups, sizeof *f->groups) &&
                       array_grow(&f->chunks, f->n_groups, row_bytes);
    if (!grown)
        thrift_fail(t, parquet_no_memory);
    return grown;
}

static void read_chunks(thrift *t, uint8_t type, void *to)
{
    footer_reader *r = to;
    parquet_footer *f = r->f;
    const parquet_element *column = f->elements;
    const thrift_list list = thrift_begin_list(t, type);
    if (r->has_chunks || list.n != f->n_leaves)
        thrift_fail(t, "a row group must have one chunk for each column");
    r->has_chunks = true;
    for (uint32_t i = 0; i < list.n && !t->why; i++) {
        /* The offset of a dictionary is optional: 0. */
        raw_chunk raw = {
            {.n_values = UINT64_MAX, .stored_bytes = UINT64_MAX}, -1, -1, 0, -1, -1, -1};
        thrift_read(t, list.type, chunk_fields, &raw);
        while (!column->is_leaf || column->leaf != i)
            column++;
        parquet_chunk *chunk = &f->chunks[f->n_groups * f->n_leaves + i];
        if (!t->why)
            t->why = set_chunk(chunk, &raw, column, r->file_bytes);
        if (!t->why && f->n_groups > 0)
            chunk->first_value = chunk[-(ptrdiff_t)f->n_leaves].first_value +
                                 chunk[-(ptrdiff_t)f->n_leaves].n_values;
        if (!t->why && chunk->first_value > INT64_MAX)
            t->why = "a column has too many values";
    }
}

static void read_row_groups(thrift *t, uint8_t type, void *to)
{
    static const thrift_field group_fields[] = {
        {1, read_chunks, 0, NULL},
        {3, thrift_integer, offsetof(footer_reader, group_rows), NULL},
        {0}};
    footer_reader *r = to;
    parquet_footer *f = r->f;
    const thrift_list list = thrift_begin_list(t, type);
    if (!f->elements)
        thrift_fail(t, "its schema does not come first");
    if (f->groups)
        thrift_fail(t, "it has two lists of row groups");
    if (t->why || !grow_groups(r, t))
        return;
    for (uint32_t i = 0; i < list.n && grow_groups(r, t); i++) {
        r->group_rows = -1;
        r->has_chunks = false;
        thrift_read(t, list.type, group_fields, r);
        if (r->group_rows < 0 || !r->has_chunks)
            thrift_fail(t, "a row group is incomplete");
        else if ((uint64_t)r->group_rows > INT64_MAX - f->n_rows)
            thrift_fail(t, "its row groups have too many rows");
        if (t->why)
            return;
        assert(f->groups); /* allocated by grow_groups */
        f->groups[f->n_groups++] = (parquet_row_group){f->n_rows, (uint64_t)r->group_rows};
        f->n_rows += (uint64_t)r->group_rows;
    }
}

/* ---- The footer ---- */

bool parquet_footer_read(parquet_footer *f, const uint8_t *bytes, size_t n_bytes,
                         uint64_t file_bytes, failure *err)
{
    static const thrift_field file_fields[] = {
        {2, read_schema, 0, NULL},
        {3, thrift_integer, offsetof(footer_reader, n_rows), NULL},
        {4, read_row_groups, 0, NULL},
        {0}};
    thrift t = {.at = bytes, .end = bytes + n_bytes};
    footer_reader r = {.f = f, .file_bytes = file_bytes, .n_rows = -1};
    *f = (parquet_footer){0};
    thrift_read(&t, THRIFT_STRUCT, file_fields, &r);
    if (!f->elements || !f->groups)
        thrift_fail(&t, "it has no schema or no row groups");
    else if (r.n_rows < 0 || (uint64_t)r.n_rows != f->n_rows)
        thrift_fail(&t, "its row groups do not have as many rows as the file");
    if (!t.why)
        return true;
    parquet_footer_free(f);
    if (t.why == parquet_no_memory)
        return fail_memory(err);
    return fail(err, "damaged footer: %s", t.why);
}

void parquet_footer_free(parquet_footer *f)
{
    free(f->elements);
    free(f->groups);
    free(f->chunks);
    *f = (parquet_footer){0};
}

const parquet_chunk *parquet_chunk_of(const parquet_footer *f, size_t group,
                                      const parquet_element *column)
{
    return &f->chunks[group * f->n_leaves + column->leaf];
}

bool parquet_is_null(const parquet_footer *f, const parquet_element *column)
{
    bool all_null = true;
    for (size_t i = 0; i < f->n_groups && all_null; i++)
        all_null = parquet_chunk_of(f, i, column)->all_null;
    return all_null || column->kind == PARQUET_NULL;
}

uint64_t parquet_footer_pages_end(const parquet_footer *f)
{
    uint64_t end = PARQUET_HEAD_BYTES;
    for (size_t i = 0; i < f->n_groups * f->n_leaves; i++) {
        const uint64_t chunk_end = f->chunks[i].offset + f->chunks[i].stored_bytes;
        end = chunk_end > end ? chunk_end : end;
    }
    return end;
}

/* ---- Columns ---- */

static const char *const type_names[] = {"boolean", "int32",  "int64",      "int96",
                                         "float",   "double", "byte array", "fixed-length bytes"};
static const char *const encoding_names[] = {"PLAIN",
                                             "",
                                             "PLAIN_DICTIONARY",
                                             "RLE",
                                             "BIT_PACKED",
                                             "DELTA_BINARY_PACKED",
                                             "DELTA_LENGTH_BYTE_ARRAY",
                                             "DELTA_BYTE_ARRAY",
                                             "RLE_DICTIONARY",
                                             "BYTE_STREAM_SPLIT"};

/* A text that is built in a buffer, and truncated to its size. */
typedef struct bounded_text {
    char *text;
    size_t n_bytes, capacity;
} bounded_text;

static void add_bytes(bounded_text *l, const char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes && l->n_bytes + 1 < l->capacity; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        l->text[l->n_bytes++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    l->text[l->n_bytes] = 0;
}

static void add_text(bounded_text *l, const char *text)
{
    add_bytes(l, text, strlen(text));
}

static void add_path(bounded_text *l, const parquet_footer *f, const parquet_element *e)
{
    const parquet_element *path[256]; /* depth is a uint8_t */
    size_t n = 0;
    for (; e->depth > 0; e = &f->elements[e->parent])
        path[n++] = e;
    while (n-- > 0) {
        add_bytes(l, (const char *)path[n]->name, path[n]->name_bytes);
        if (n > 0)
            add_text(l, ".");
    }
}

void parquet_path(const parquet_footer *f, const parquet_element *e, char *text, size_t n_bytes)
{
    bounded_text l = {.text = text, .capacity = n_bytes};
    add_text(&l, "");
    add_path(&l, f, e);
}

static const char *type_name(const parquet_element *e)
{
    if (e->kind == PARQUET_DECIMAL)
        return "decimal";
    if (e->kind == PARQUET_TEXT && e->type == PARQUET_BYTE_ARRAY)
        return "string";
    if (e->kind == PARQUET_UNSIGNED)
        return e->type == PARQUET_INT64 ? "uint64" : "uint32";
    if (e->kind == PARQUET_TIME)
        return "date or time";
    return type_names[e->type];
}

void parquet_encodings_text(uint32_t encodings, char *text, size_t n_bytes)
{
    bounded_text l = {.text = text, .capacity = n_bytes};
    add_text(&l, "");
    for (size_t i = 0; i < sizeof encoding_names / sizeof *encoding_names; i++) {
        if (!(encodings >> i & 1))
            continue;
        add_text(&l, l.n_bytes ? ", " : "");
        add_text(&l, encoding_names[i]);
    }
}

/* ---- Choosing ---- */

static bool is_string(const parquet_element *e)
{
    return e->is_leaf && e->type == PARQUET_BYTE_ARRAY &&
           (e->kind == PARQUET_TEXT || e->kind == PARQUET_PLAIN);
}

static bool is_text(const parquet_element *e)
{
    return is_string(e) && e->max_repetition == 0;
}

static bool is_decimal(const parquet_element *e)
{
    const bool is_short = e->fixed_bytes - 1u < NUMBER_MAX_DECIMAL_BYTES;
    return e->kind == PARQUET_DECIMAL &&
           (e->type == PARQUET_INT32 || e->type == PARQUET_INT64 || e->type == PARQUET_BYTE_ARRAY ||
            (e->type == PARQUET_FIXED_BYTES && is_short));
}

bool parquet_is_value(const parquet_element *e)
{
    const bool is_plain = e->kind != PARQUET_DECIMAL && e->kind != PARQUET_OTHER &&
                          e->type != PARQUET_INT96 && e->type != PARQUET_FIXED_BYTES;
    return e->is_leaf && e->max_repetition == 0 && (is_plain || is_decimal(e));
}

/* Whether the element has this path. Names may contain dots, so the joined paths are compared, from
 * their ends. */
static bool has_path(const parquet_footer *f, const parquet_element *e, const char *path)
{
    size_t n = strlen(path);
    while (e->depth > 0) {
        if (n < e->name_bytes || memcmp(path + n - e->name_bytes, e->name, e->name_bytes) != 0)
            return false;
        n -= e->name_bytes;
        e = &f->elements[e->parent];
        if (e->depth > 0 && (n == 0 || path[--n] != '.'))
            return false;
    }
    return n == 0;
}

/* Adds to a message the columns that fit. */
static void list_columns(const parquet_footer *f, bool (*fits)(const parquet_element *),
                         failure *err)
{
    bounded_text l = {
        .text = err->text, .n_bytes = strlen(err->text), .capacity = sizeof err->text};
    size_t n = 0;
    for (size_t i = 1; i < f->n_elements && l.n_bytes + 1 < l.capacity; i++) {
        if (!fits(&f->elements[i]))
            continue;
        const char *begin = fits == is_text ? "; use --field with one of " : "; it has ";
        add_text(&l, n++ ? ", " : begin);
        add_path(&l, f, &f->elements[i]);
    }
    if (n == 0)
        add_text(&l, fits == is_text ? "; it has no string columns" : "");
}

/* Whether the element is a list or map, or a part of one. */
static bool is_list(const parquet_footer *f, const parquet_element *e)
{
    bool found = e->max_repetition > 0;
    for (size_t i = 1; i < f->n_elements && !found; i++)
        found = &f->elements[f->elements[i].parent] == e && f->elements[i].max_repetition > 0;
    return found;
}

static const parquet_element *choose_column(const parquet_footer *f, const char *path,
                                            bool (*fits)(const parquet_element *), failure *err)
{
    const parquet_element *e = NULL;
    for (size_t i = 1; i < f->n_elements; i++) {
        if (!has_path(f, &f->elements[i], path))
            continue;
        if (e) {
            fail(err, "it has two columns \"%.100s\", which cannot be told apart", path);
            return NULL;
        }
        e = &f->elements[i];
        assert(e);
    }
    if (e && (fits(e) || (parquet_is_value(e) && parquet_is_null(f, e))))
        return e;
    const char *what = fits == is_text ? "text" : "a value";
    if (e && is_list(f, e))
        fail(err, "the column \"%.100s\" is a list or map, which cannot be %s", path, what);
    else if (e && !e->is_leaf)
        fail(err, "the column \"%.100s\" is a group of columns, which cannot be %s", path, what);
    else if (e)
        fail(err, "the column \"%.100s\" has the type %s, which cannot be %s", path, type_name(e),
             what);
    else
        fail(err, "it has no column \"%.100s\"", path);
    list_columns(f, fits, err);
    if (!e)
        fail_kind(err, "a Parquet file without the column");
    return NULL;
}

const parquet_element *parquet_text_column(const parquet_footer *f, const char *path, failure *err)
{
    return choose_column(f, path, is_text, err);
}

const parquet_element *parquet_value_column(const parquet_footer *f, const char *path, failure *err)
{
    return choose_column(f, path, parquet_is_value, err);
}

/* Whether the elements of a list are numbers, or all null. Dates and times are refused elsewhere,
 * by name. */
static bool is_number(const parquet_element *e)
{
    return e->kind != PARQUET_TEXT && e->kind != PARQUET_DECIMAL && e->kind != PARQUET_OTHER &&
           (e->type == PARQUET_INT32 || e->type == PARQUET_INT64 || e->type == PARQUET_BOOLEAN);
}

/* Whether the column is this member of a group of two columns. */
static bool is_member(const parquet_footer *f, const parquet_element *e, const char *member)
{
    const parquet_element *group = &f->elements[e->parent], *end = f->elements + f->n_elements;
    const bool is_pair = end - group > 2 && group[2].is_leaf && group[2].parent == e->parent &&
                         !(end - group > 3 && group[3].parent == e->parent);
    return is_pair && e->name_bytes == strlen(member) &&
           memcmp(e->name, member, e->name_bytes) == 0 &&
           (strcmp(member, "text") == 0 ? is_string(e) : e->type == PARQUET_BOOLEAN);
}

const parquet_element *parquet_list_column(const parquet_footer *f, const char *path,
                                           const char *member, uint8_t *definition, failure *err)
{
    const parquet_element *found = NULL;
    for (size_t i = 1; i < f->n_elements; i++) {
        /* What repeats is the column itself, or a group around it. */
        const parquet_element *column = &f->elements[i],
                              *e = member ? &f->elements[column->parent] : column,
                              *above = &f->elements[e->parent],
                              *repeated = above->max_repetition > 0 ? above : e,
                              *list = &f->elements[repeated->parent];
        if (!column->is_leaf || column->max_repetition != 1 || e->max_repetition != 1 ||
            list->max_repetition > 0 ||
            !(member ? is_member(f, column, member) : is_number(column)) ||
            !(has_path(f, e, path) || (repeated != e && has_path(f, list, path))))
            continue;
        if (found) {
            fail(err, "it has two columns \"%.100s\", which cannot be told apart", path);
            return NULL;
        }
        found = column;
        *definition = repeated->max_definition;
    }
    if (!found)
        fail(err, "it has no column \"%.100s\" that is a list of %s", path,
             member ? "groups with a string \"text\", a boolean \"train\" and nothing else"
                    : "whole numbers");
    return found;
}
