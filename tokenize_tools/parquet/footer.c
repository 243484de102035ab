/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/footer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parquet/thrift.h"
#include "text/little_endian.h"

const char parquet_no_memory[] = "out of memory";

static bool refuse(parquet_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(parquet_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *err = (parquet_error){0};
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return false;
}

static bool no_memory(parquet_error *err)
{
    refuse(err, "%s", parquet_no_memory);
    err->no_memory = true;
    return false;
}

/* ---- The frame ---- */

static bool is(const uint8_t *bytes, const char *magic)
{
    return memcmp(bytes, magic, 4) == 0;
}

bool parquet_find_footer(const uint8_t *head, const uint8_t *tail, uint64_t file_bytes,
                         uint32_t *footer_bytes, parquet_error *err)
{
    if (is(head, "PARE") || is(tail + 4, "PARE"))
        return refuse(err, "an encrypted Parquet file (PARE) cannot be read");
    if (!is(head, "PAR1"))
        return refuse(err, "not a Parquet file: it does not begin with PAR1");
    if (file_bytes < PARQUET_HEAD_BYTES + PARQUET_TAIL_BYTES || !is(tail + 4, "PAR1"))
        return refuse(err, "truncated Parquet file: it does not end with PAR1");
    *footer_bytes = le_get32(tail);
    if (*footer_bytes > file_bytes - PARQUET_HEAD_BYTES - PARQUET_TAIL_BYTES)
        return refuse(err, "damaged footer: it would have %" PRIu32 " bytes", *footer_bytes);
    if (*footer_bytes > PARQUET_MAX_FOOTER_BYTES)
        return refuse(err, "its footer has %" PRIu32 " bytes, more than the limit of 256 MiB",
                      *footer_bytes);
    return true;
}

/* ---- The schema ---- */

enum {
    REQUIRED,
    OPTIONAL,
    REPEATED
};

typedef struct raw_element { /* as stored */
    int64_t type, repetition, n_children, converted;
    int32_t logical;
    bool is_unsigned;
    thrift_bytes name;
} raw_element;

static void read_integer_type(thrift *t, raw_element *raw)
{
    thrift_struct s = {0};
    while (thrift_next(t, &s)) {
        if (s.id == 2)
            raw->is_unsigned = !thrift_boolean(t, s.type);
        else
            thrift_skip(t, s.type);
    }
}

/* A union: one field, whose number is the type. */
static void read_logical_type(thrift *t, raw_element *raw)
{
    enum {
        INTEGER = 10
    };
    thrift_struct s = {0};
    while (thrift_next(t, &s)) {
        raw->logical = s.id;
        if (s.id == INTEGER && thrift_is_struct(t, s.type))
            read_integer_type(t, raw);
        else
            thrift_skip(t, s.type);
    }
}

/* fastparquet's has_nulls=None writes a truth value: whether there may be nulls. */
static int64_t read_repetition(thrift *t, uint8_t type)
{
    return type <= THRIFT_FALSE ? thrift_boolean(t, type) : thrift_integer(t, type);
}

static void read_raw_element(thrift *t, raw_element *raw)
{
    thrift_struct s = {0};
    *raw = (raw_element){.type = -1, .repetition = -1, .converted = -1};
    while (thrift_next(t, &s)) {
        if (s.id == 1)
            raw->type = thrift_integer(t, s.type);
        else if (s.id == 3)
            raw->repetition = read_repetition(t, s.type);
        else if (s.id == 4)
            raw->name = thrift_binary(t, s.type);
        else if (s.id == 5)
            raw->n_children = thrift_integer(t, s.type);
        else if (s.id == 6)
            raw->converted = thrift_integer(t, s.type);
        else if (s.id == 10 && thrift_is_struct(t, s.type))
            read_logical_type(t, raw);
        else
            thrift_skip(t, s.type);
    }
}

/* The logical type counts if there is one, else the older converted type. */
static parquet_kind kind_of(const raw_element *raw)
{
    static const uint8_t of_logical[] = {
        [1] = PARQUET_TEXT,    [2] = PARQUET_OTHER,  [3] = PARQUET_OTHER, [4] = PARQUET_TEXT,
        [5] = PARQUET_DECIMAL, [6] = PARQUET_PLAIN,  [7] = PARQUET_PLAIN, [8] = PARQUET_PLAIN,
        [9] = PARQUET_OTHER,   [10] = PARQUET_PLAIN, [11] = PARQUET_NULL, [12] = PARQUET_TEXT};
    static const uint8_t of_converted[] = {
        [0] = PARQUET_TEXT,      [4] = PARQUET_TEXT,      [5] = PARQUET_DECIMAL,
        [6] = PARQUET_PLAIN,     [7] = PARQUET_PLAIN,     [8] = PARQUET_PLAIN,
        [9] = PARQUET_PLAIN,     [10] = PARQUET_PLAIN,    [11] = PARQUET_UNSIGNED,
        [12] = PARQUET_UNSIGNED, [13] = PARQUET_UNSIGNED, [14] = PARQUET_UNSIGNED,
        [15] = PARQUET_PLAIN,    [16] = PARQUET_PLAIN,    [17] = PARQUET_PLAIN,
        [18] = PARQUET_PLAIN,    [19] = PARQUET_TEXT,     [1] = PARQUET_OTHER,
        [2] = PARQUET_OTHER,     [3] = PARQUET_OTHER};
    if (raw->is_unsigned)
        return PARQUET_UNSIGNED;
    if (raw->logical)
        return raw->logical < (int)sizeof of_logical ? of_logical[raw->logical] : PARQUET_OTHER;
    if (raw->converted < 0)
        return PARQUET_PLAIN;
    return raw->converted < (int)sizeof of_converted ? of_converted[raw->converted] : PARQUET_OTHER;
}

/* A group that still has children to come, while the tree is read in depth-first order. */
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
    /* A group without columns has no type: it is no column. */
    if (raw->type < PARQUET_BOOLEAN || raw->type > PARQUET_FIXED_BYTES)
        return "a column of its schema has no type";
    e->type = (parquet_type)raw->type;
    e->leaf = (uint32_t)f->n_leaves++;
    return NULL;
}

static void fail(thrift *t, const char *why)
{
    if (!t->why)
        t->why = why;
}

static bool read_schema(parquet_footer *f, thrift *t, uint8_t type, parquet_error *err)
{
    open_group open[THRIFT_MAX_DEPTH];
    size_t depth = 0;
    const thrift_list list = thrift_begin_list(t, type);
    if (f->elements)
        return refuse(err, "damaged footer: it has two schemas");
    f->elements = calloc(list.n ? list.n : 1, sizeof *f->elements);
    if (!f->elements)
        return no_memory(err);
    for (uint32_t i = 0; i < list.n && !t->why && thrift_is_struct(t, list.type); i++) {
        raw_element raw;
        read_raw_element(t, &raw);
        if (t->why)
            break;
        if (i > 0 && depth == 0)
            fail(t, "its schema has a column outside of the root");
        else
            t->why = set_element(f, &raw, i > 0 ? &open[depth - 1] : NULL);
        if (t->why)
            break;
        if (depth > 0)
            open[depth - 1].n_left--;
        if (raw.n_children > 0 && depth == THRIFT_MAX_DEPTH)
            fail(t, "its schema is nested too deeply");
        else if (raw.n_children > 0)
            open[depth++] = (open_group){(uint32_t)f->n_elements, (uint64_t)raw.n_children};
        while (depth > 0 && open[depth - 1].n_left == 0)
            depth--;
        f->n_elements++;
    }
    if (depth > 0 || f->n_elements == 0)
        fail(t, "its schema is incomplete");
    return true;
}

/* ---- Row groups ---- */

typedef struct raw_chunk {
    int64_t codec, n_values, plain_bytes, stored_bytes, data_offset, dictionary_offset, type;
    int64_t n_nulls; /* -1: not known */
    uint32_t encodings;
    unsigned seen; /* fields of the metadata */
    bool encrypted, external;
} raw_chunk;

static uint32_t read_encodings(thrift *t, uint8_t type)
{
    uint32_t bits = 0;
    const thrift_list list = thrift_begin_list(t, type);
    for (uint32_t i = 0; i < list.n && !t->why; i++) {
        const int64_t encoding = thrift_integer(t, list.type);
        if (encoding >= 0 && encoding < 32)
            bits |= (uint32_t)1 << encoding;
    }
    return bits;
}

static void read_statistics(thrift *t, raw_chunk *c)
{
    thrift_struct s = {0};
    while (thrift_next(t, &s)) {
        if (s.id == 3)
            c->n_nulls = thrift_integer(t, s.type);
        else
            thrift_skip(t, s.type);
    }
}

static void read_metadata(thrift *t, raw_chunk *c)
{
    thrift_struct s = {0};
    int64_t *const integers[] = {[1] = &c->type,
                                 [4] = &c->codec,
                                 [5] = &c->n_values,
                                 [6] = &c->plain_bytes,
                                 [7] = &c->stored_bytes,
                                 [9] = &c->data_offset,
                                 [11] = &c->dictionary_offset};
    while (thrift_next(t, &s)) {
        if (s.id > 0 && s.id < 32)
            c->seen |= 1u << s.id;
        if (s.id == 2)
            c->encodings = read_encodings(t, s.type);
        else if (s.id == 12 && thrift_is_struct(t, s.type))
            read_statistics(t, c);
        else if (s.id > 0 && s.id < (int)(sizeof integers / sizeof *integers) && integers[s.id])
            *integers[s.id] = thrift_integer(t, s.type);
        else
            thrift_skip(t, s.type);
    }
}

static void read_raw_chunk(thrift *t, raw_chunk *c)
{
    thrift_struct s = {0};
    *c = (raw_chunk){.n_nulls = -1};
    while (thrift_next(t, &s)) {
        if (s.id == 3 && thrift_is_struct(t, s.type)) {
            read_metadata(t, c);
            continue;
        }
        c->external = c->external || s.id == 1;
        c->encrypted = c->encrypted || s.id == 8 || s.id == 9;
        thrift_skip(t, s.type);
    }
}

static bool fits(int64_t n, uint64_t limit)
{
    return n >= 0 && (uint64_t)n <= limit;
}

/* A chunk that is encrypted or in another file is refused when it is needed. */
static const char *set_chunk(parquet_chunk *to, const raw_chunk *c, uint64_t file_bytes)
{
    /* type, codec, number of values, both sizes, offset of the data pages */
    enum {
        NEEDED = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 9
    };
    *to = (parquet_chunk){.encrypted = c->encrypted, .external = c->external};
    if (c->encrypted || c->external)
        return NULL;
    if ((c->seen & NEEDED) != NEEDED || !fits(c->codec, UINT8_MAX) ||
        !fits(c->n_values, INT64_MAX) || !fits(c->plain_bytes, INT64_MAX) ||
        !fits(c->stored_bytes, file_bytes) || !fits(c->data_offset, file_bytes) ||
        !fits(c->dictionary_offset, file_bytes))
        return "a column chunk is described wrongly";
    /* Some writers leave out the offset of the dictionary page, or write 0: then it is the first of
     * the data pages. */
    const bool before = c->dictionary_offset > 0 && c->dictionary_offset < c->data_offset;
    to->offset = (uint64_t)(before ? c->dictionary_offset : c->data_offset);
    to->n_values = (uint64_t)c->n_values;
    to->all_null = c->n_nulls == c->n_values;
    to->stored_bytes = (uint64_t)c->stored_bytes;
    to->plain_bytes = (uint64_t)c->plain_bytes;
    to->encodings = c->encodings;
    to->codec = (uint8_t)c->codec;
    return NULL;
}

typedef struct groups { /* what is being read */
    parquet_footer *f;
    uint64_t file_bytes;
    size_t capacity;
    const parquet_type *types; /* of the columns */
} groups;

static bool grow(groups *g, parquet_error *err)
{
    parquet_footer *f = g->f;
    if (f->groups && f->n_groups < g->capacity)
        return true;
    const size_t capacity = g->capacity ? g->capacity * 2 : 1;
    parquet_row_group *const row_groups = realloc(f->groups, capacity * sizeof *row_groups);
    if (!row_groups)
        return no_memory(err);
    f->groups = row_groups;
    parquet_chunk *const chunks =
        realloc(f->chunks, (f->n_leaves ? f->n_leaves : 1) * capacity * sizeof *chunks);
    if (!chunks)
        return no_memory(err);
    f->chunks = chunks;
    g->capacity = capacity;
    return true;
}

static void read_chunks(groups *g, thrift *t, uint8_t type)
{
    parquet_footer *f = g->f;
    const thrift_list list = thrift_begin_list(t, type);
    if (!t->why && list.n != f->n_leaves)
        fail(t, "a row group has not one chunk for each column");
    for (uint32_t i = 0; i < list.n && !t->why && thrift_is_struct(t, list.type); i++) {
        raw_chunk raw;
        read_raw_chunk(t, &raw);
        if (t->why)
            return;
        t->why = set_chunk(&f->chunks[f->n_groups * f->n_leaves + i], &raw, g->file_bytes);
        if (!raw.encrypted && !raw.external && raw.type != (int64_t)g->types[i])
            fail(t, "a column chunk has another type than its column");
    }
}

static void read_row_group(groups *g, thrift *t)
{
    parquet_footer *f = g->f;
    int64_t n_rows = -1;
    bool has_chunks = false;
    thrift_struct s = {0};
    while (thrift_next(t, &s)) {
        if (s.id == 1 && !has_chunks) {
            has_chunks = true;
            read_chunks(g, t, s.type);
        } else if (s.id == 3) {
            n_rows = thrift_integer(t, s.type);
        } else {
            thrift_skip(t, s.type);
        }
    }
    if (n_rows < 0 || !has_chunks)
        fail(t, "a row group is incomplete");
    if ((uint64_t)n_rows > INT64_MAX - f->n_rows)
        fail(t, "its row groups have too many rows");
    if (t->why)
        return;
    f->groups[f->n_groups++] = (parquet_row_group){f->n_rows, (uint64_t)n_rows};
    f->n_rows += (uint64_t)n_rows;
}

static bool list_types(const parquet_footer *f, parquet_type **types, parquet_error *err)
{
    *types = calloc(f->n_leaves + 1, sizeof **types);
    for (size_t i = 0; *types && i < f->n_elements; i++) {
        if (f->elements[i].is_leaf)
            (*types)[f->elements[i].leaf] = f->elements[i].type;
    }
    return *types || no_memory(err);
}

static bool read_row_groups(groups *g, thrift *t, uint8_t type, parquet_error *err)
{
    parquet_footer *f = g->f;
    parquet_type *types;
    if (!f->elements || f->groups)
        return refuse(err, "damaged footer: %s",
                      f->groups ? "it has two lists of row groups"
                                : "its schema does not come first");
    if (!list_types(f, &types, err))
        return false;
    g->types = types;
    const thrift_list list = thrift_begin_list(t, type);
    bool ok = grow(g, err);
    for (uint32_t i = 0; ok && i < list.n && !t->why && thrift_is_struct(t, list.type); i++) {
        ok = grow(g, err);
        if (ok)
            read_row_group(g, t);
    }
    free(types);
    return ok;
}

/* ---- The footer ---- */

static bool read_file(groups *g, thrift *t, int64_t *n_rows, parquet_error *err)
{
    parquet_footer *f = g->f;
    thrift_struct s = {0};
    bool ok = true;
    while (ok && thrift_next(t, &s)) {
        if (s.id == 2) {
            ok = read_schema(f, t, s.type, err);
        } else if (s.id == 3) {
            *n_rows = thrift_integer(t, s.type);
        } else if (s.id == 4) {
            ok = read_row_groups(g, t, s.type, err);
        } else if (s.id == 6) {
            const thrift_bytes text = thrift_binary(t, s.type);
            f->created_by = text.data;
            f->created_by_bytes = text.n_bytes;
        } else {
            thrift_skip(t, s.type);
        }
    }
    return ok;
}

bool parquet_footer_read(parquet_footer *f, const uint8_t *bytes, size_t n_bytes,
                         uint64_t file_bytes, parquet_error *err)
{
    thrift t = {.at = bytes, .end = bytes + n_bytes};
    groups g = {.f = f, .file_bytes = file_bytes};
    int64_t n_rows = -1;
    *f = (parquet_footer){0};
    bool ok = read_file(&g, &t, &n_rows, err);
    if (ok && !t.why && (!f->elements || !f->groups))
        t.why = "it has no schema or no row groups";
    if (ok && !t.why && (n_rows < 0 || (uint64_t)n_rows != f->n_rows))
        t.why = "its row groups do not have as many rows as the file";
    if (ok && t.why)
        ok = refuse(err, "damaged footer: %s", t.why);
    if (!ok)
        parquet_footer_free(f);
    return ok;
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
