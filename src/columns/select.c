/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - evaluates an expression for 64 documents at a time.
 *
 * A comparison of a column of numbers with a literal becomes a comparison with two bounds, which
 * are found by asking where_test_order, so its results are those of where_holds. A column of few
 * strings gets a table of the results. All other tests go document by document. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "columns/column.h"
#include "columns/select.h"
#include "fields/where.h"
#include "system/platform.h"

enum {
    CHUNK_DOCUMENTS = 1 << 16,
    WORD = 64,               /* documents */
    FORGET_BYTES = 32 << 20, /* a part that is larger does not stay in memory */
    BAD_CODE = 2
};

/* A number v is LESS if v < low, GREATER if v > high, and EQUAL between the two. */
typedef struct bounds {
    union {
        int64_t integer;
        double real;
    } low, high;
    uint8_t less, equal, greater; /* 1: the test holds */
} bounds;

typedef enum test_kind {
    BY_DOCUMENT,
    BY_BOUNDS,
    BY_CODE,
    BY_VALIDITY
} test_kind;

typedef struct select_test {
    where_test test;
    test_kind kind;
    const tokmap_i_meta_column *column; /* of the first field */
    const uint8_t *section;
    bounds bounds;
    uint8_t *by_code; /* for every code, or NULL */
} select_test;

struct tokmap_i_selection {
    const tokmap_dataset *ds;
    where *where;
    field_list fields;
    tokmap_column *columns[FIELD_LIST_MAX];
    size_t n_tests;
    select_test *tests;
    uint64_t *active; /* for each test, and for the two exits: the documents that came to it */
    uint64_t kept[CHUNK_DOCUMENTS / WORD];
};

static tokmap_status fail_values(const tokmap_column *c, uint64_t document, tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: damaged: column '%.*s' in document %" PRIu64,
                c->file.path ? c->file.path : c->ds->index_path,
                (int)tokmap_i_column_of(c)->name_bytes, tokmap_i_column_of(c)->name, document);
}

/* Returns the place of an exit in `active`. */
static size_t exit_of(const tokmap_i_selection *s, size_t exit)
{
    return exit == WHERE_TRUE ? s->n_tests : exit == WHERE_FALSE ? s->n_tests + 1 : exit;
}

/* Returns the first field of a test. */
static size_t field_of(const where_test *t)
{
    return t->left != WHERE_NO_FIELD ? t->left : t->right;
}

/* ---- Bounds ---- */

/* Returns the real number of a key. Keys have the order of their numbers, of which each is one that
 * the column can have; there is no NaN. */
static double real_of_key(const tokmap_i_meta_column *c, int64_t key)
{
    const uint64_t size = key >= 0 ? (uint64_t)key : ~(uint64_t)key;
    const uint64_t bits = size | (uint64_t)(key < 0) << (8 * c->number_bytes - 1);
    return le_get_real((const uint8_t *)&bits, c->number_bytes);
}

/* Returns the largest key: that of infinity, or of the largest integer. The smallest one is its
 * complement. */
static int64_t largest_key(const tokmap_i_meta_column *c)
{
    if (c->type == TOKMAP_I_META_INT64)
        return INT64_MAX >> (64 - 8 * c->number_bytes);
    return c->number_bytes == 4 ? 0x7f800000 : 0x7ff0000000000000;
}

static tokmap_value value_of_key(const tokmap_i_meta_column *c, int64_t key)
{
    if (c->type == TOKMAP_I_META_INT64)
        return (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = key};
    return (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = real_of_key(c, key)};
}

/* Returns the order of the column's number to the literal, for the number of this key. */
static unsigned order_of_key(const tokmap_i_selection *s, size_t test, int64_t key)
{
    const where_test t = s->tests[test].test;
    const bool is_left = t.left != WHERE_NO_FIELD;
    tokmap_value values[FIELD_LIST_MAX];
    values[field_of(&t)] = value_of_key(s->tests[test].column, key);
    const unsigned order = where_test_order(s->where, test, values);
    return is_left || order == WHERE_EQUAL || order == 0 ? order
           : order == WHERE_LESS                         ? WHERE_GREATER
                                                         : WHERE_LESS;
}

/* Returns the smallest key whose order is one of these, which that of `last` is. */
static int64_t find_key(const tokmap_i_selection *s, size_t test, int64_t first, int64_t last,
                        unsigned orders)
{
    while (first < last) {
        const int64_t middle = first + (int64_t)(((uint64_t)last - (uint64_t)first) / 2);
        if (order_of_key(s, test, middle) & orders)
            last = middle;
        else
            first = middle + 1;
    }
    return last;
}

/* Sets the bounds of a comparison of a number with a literal. Returns false if there are none. */
static bool find_bounds(tokmap_i_selection *s, size_t test)
{
    select_test *t = &s->tests[test];
    const tokmap_i_meta_column *c = t->column;
    const bool is_left = t->test.left != WHERE_NO_FIELD, is_real = c->type == TOKMAP_I_META_FLOAT64;
    const unsigned less = is_left ? WHERE_LESS : WHERE_GREATER,
                   greater = is_left ? WHERE_GREATER : WHERE_LESS;
    const int64_t most = largest_key(c), least = ~most;
    if (order_of_key(s, test, least) == 0 || order_of_key(s, test, most) == 0)
        return false;
    t->bounds = (bounds){.less = (t->test.accepts & less) != 0,
                         .equal = (t->test.accepts & WHERE_EQUAL) != 0,
                         .greater = (t->test.accepts & greater) != 0};
    int64_t low = least, high = most;
    if (order_of_key(s, test, most) == WHERE_LESS)
        t->bounds.equal = t->bounds.less; /* all numbers are less, and between the bounds */
    else
        low = find_key(s, test, least, most, WHERE_EQUAL | WHERE_GREATER);
    if (order_of_key(s, test, least) == WHERE_GREATER)
        t->bounds.equal = t->bounds.greater;
    else if (order_of_key(s, test, most) == WHERE_GREATER)
        high = find_key(s, test, least, most, WHERE_GREATER) - 1;
    t->bounds.low.integer = low;
    t->bounds.high.integer = high;
    if (is_real) {
        t->bounds.low.real = real_of_key(c, low);
        t->bounds.high.real = real_of_key(c, high);
    }
    return true;
}

/* ---- Before the first document ---- */

/* Decides for each of the strings whether the test holds. */
static tokmap_status make_table(tokmap_i_selection *s, size_t test, const tokmap_column *column,
                                tokmap_error *err)
{
    select_test *t = &s->tests[test];
    const size_t n_codes = t->column->code_bytes == 1 ? 256 : 65536;
    tokmap_value values[FIELD_LIST_MAX];
    const size_t field = field_of(&t->test);
    t->by_code = malloc(n_codes);
    if (!t->by_code)
        return FAIL_MEMORY(err);
    memset(t->by_code, BAD_CODE, n_codes);
    for (uint64_t i = 0; i < t->column->n_strings; i++) {
        if (tokmap_i_meta_get_string(column->meta, column->index, i, &values[field]))
            return fail_values(column, 0, err);
        t->by_code[i] = where_test_holds(s->where, test, values);
    }
    return TOKMAP_OK;
}

static tokmap_status prepare_test(tokmap_i_selection *s, size_t test, tokmap_error *err)
{
    select_test *t = &s->tests[test];
    t->test = where_get_test(s->where, test);
    const bool is_left = t->test.left != WHERE_NO_FIELD;
    const bool has_literal = !is_left || t->test.right == WHERE_NO_FIELD;
    const tokmap_column *column = s->columns[field_of(&t->test)];
    t->column = tokmap_i_column_of(column);
    t->section = column->meta->section;
    if (t->test.accepts & (WHERE_NULL | WHERE_NOT_NULL))
        t->kind = BY_VALIDITY;
    else if (has_literal && t->column->type == TOKMAP_I_META_DICTIONARY)
        t->kind = BY_CODE;
    else if (has_literal && t->column->number_bytes > 0 && find_bounds(s, test))
        t->kind = BY_BOUNDS;
    return t->kind == BY_CODE ? make_table(s, test, column, err) : TOKMAP_OK;
}

static tokmap_status prepare(tokmap_i_selection *s, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    s->n_tests = where_n_tests(s->where);
    s->tests = calloc(s->n_tests, sizeof *s->tests);
    s->active = calloc(s->n_tests + 2, sizeof *s->active);
    if (!s->tests || !s->active)
        return FAIL_MEMORY(err);
    for (size_t i = 0; !status && i < s->n_tests; i++)
        status = prepare_test(s, i, err);
    return status;
}

/* ---- Tests ---- */

/* Makes a bit of each of 64 bytes, which are 0 or 1. */
static uint64_t pack_bits(const uint8_t bytes[WORD])
{
    uint64_t bits = 0;
    for (size_t i = 0; i < WORD / 8; i++)
        bits |= (le_get64(bytes + 8 * i) * 0x0102040810204080 >> 56) << 8 * i;
    return bits;
}

/* Sets kept[i] for the numbers values[i] that a comparison with bounds accepts. */
#define COMPARE(type, low_bound, high_bound)                                                       \
    do {                                                                                           \
        const type *v = (const type *)(const void *)values;                                        \
        for (size_t i = 0; i < n; i++)                                                             \
            kept[i] = (uint8_t)((b->less & (v[i] < (low_bound))) |                                 \
                                (b->greater & (v[i] > (high_bound))) |                             \
                                (b->equal & (v[i] >= (low_bound)) & (v[i] <= (high_bound))));      \
    } while (0)

static void compare(const select_test *t, const uint8_t *values, size_t n, uint8_t kept[WORD])
{
    const bounds *b = &t->bounds;
    const uint32_t width = t->column->number_bytes;
    const double low = b->low.real, high = b->high.real;
    if (t->column->type == TOKMAP_I_META_FLOAT64 && width == 4)
        COMPARE(float, (float)low, (float)high);
    else if (t->column->type == TOKMAP_I_META_FLOAT64)
        COMPARE(double, low, high);
    else if (width == 1)
        COMPARE(int8_t, (int8_t)b->low.integer, (int8_t)b->high.integer);
    else if (width == 2)
        COMPARE(int16_t, (int16_t)b->low.integer, (int16_t)b->high.integer);
    else if (width == 4)
        COMPARE(int32_t, (int32_t)b->low.integer, (int32_t)b->high.integer);
    else
        COMPARE(int64_t, b->low.integer, b->high.integer);
}

/* Returns the bits of the documents that have a value. */
static uint64_t valid_word(const select_test *t, uint64_t document)
{
    const tokmap_i_meta_column *c = t->column;
    if (c->type == TOKMAP_I_META_NULL)
        return 0;
    return c->has[TOKMAP_I_META_VALIDITY]
               ? le_get64(t->section + c->at[TOKMAP_I_META_VALIDITY] + document / 8)
               : UINT64_MAX;
}

/* Returns false if a code has no string. */
static bool look_up(const select_test *t, const uint8_t *codes, size_t n, uint8_t kept[WORD])
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) {
        kept[i] = t->by_code[t->column->code_bytes == 1 ? codes[i] : le_get16(codes + 2 * i)];
        any |= kept[i];
    }
    return !(any & BAD_CODE);
}

/* Reads the value of an operand, unless it is a literal. */
static tokmap_status get_operand(const tokmap_i_selection *s, size_t field, uint64_t document,
                                 tokmap_value *values, tokmap_error *err)
{
    if (field == WHERE_NO_FIELD ||
        !tokmap_column_get_value(s->columns[field], document, &values[field]))
        return TOKMAP_OK;
    return fail_values(s->columns[field], document, err);
}

/* Evaluates the test for the documents whose bits are set in `wanted`. */
static tokmap_status evaluate_each(const tokmap_i_selection *s, size_t test, uint64_t document,
                                   uint64_t wanted, uint64_t *holds, tokmap_error *err)
{
    const where_test *t = &s->tests[test].test;
    tokmap_value values[FIELD_LIST_MAX];
    tokmap_status status = TOKMAP_OK;
    *holds = 0;
    for (; !status && wanted != 0; wanted &= wanted - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(wanted);
        status = get_operand(s, t->left, document + i, values, err);
        if (!status)
            status = get_operand(s, t->right, document + i, values, err);
        if (!status)
            *holds |= (uint64_t)where_test_holds(s->where, test, values) << i;
    }
    return status;
}

static tokmap_status evaluate(const tokmap_i_selection *s, size_t test, uint64_t document, size_t n,
                              uint64_t *holds, tokmap_error *err)
{
    const select_test *t = &s->tests[test];
    const tokmap_i_meta_column *c = t->column;
    const uint64_t width = c->code_bytes > 0 ? c->code_bytes : c->number_bytes;
    const uint8_t *values = t->section + c->at[TOKMAP_I_META_VALUES] + width * document;
    uint8_t kept[WORD] = {0};
    if (t->kind == BY_DOCUMENT)
        return evaluate_each(s, test, document, s->active[test], holds, err);
    const uint64_t valid = valid_word(t, document);
    if (t->kind == BY_VALIDITY) {
        *holds = t->test.accepts & WHERE_NULL ? ~valid : valid;
        return TOKMAP_OK;
    }
    if (t->kind == BY_BOUNDS)
        compare(t, values, n, kept);
    else if (!look_up(t, values, n, kept))
        return fail_values(s->columns[field_of(&t->test)], document, err);
    *holds = pack_bits(kept) & valid;
    return TOKMAP_OK;
}

/* Evaluates the expression for n <= 64 documents: each test gets the documents that came to it. */
static tokmap_status select_word(tokmap_i_selection *s, uint64_t document, size_t n, uint64_t *kept,
                                 tokmap_error *err)
{
    uint64_t *active = s->active, holds;
    memset(active, 0, (s->n_tests + 2) * sizeof *active);
    active[0] = n < WORD ? ((uint64_t)1 << n) - 1 : UINT64_MAX;
    for (size_t i = 0; i < s->n_tests; i++) {
        if (active[i] == 0)
            continue;
        const where_test *t = &s->tests[i].test;
        const tokmap_status status = evaluate(s, i, document, n, &holds, err);
        if (status)
            return status;
        active[exit_of(s, t->if_true)] |= active[i] & holds;
        active[exit_of(s, t->if_false)] |= active[i] & ~holds;
    }
    *kept = active[s->n_tests];
    return TOKMAP_OK;
}

/* ---- All documents ---- */

/* Returns the memory of large columns to the system. */
static void forget_columns(const tokmap_i_selection *s)
{
    for (size_t i = 0; i < s->fields.n_fields; i++) {
        const tokmap_i_meta_column *c = tokmap_i_column_of(s->columns[i]);
        const uint8_t *section = s->columns[i]->meta->section;
        for (int part = 0; part < TOKMAP_I_META_PARTS; part++) {
            const uint8_t *begin = section + c->at[part];
            const size_t before = (uintptr_t)begin % tokmap_i_page_bytes();
            if (c->n_bytes[part] > FORGET_BYTES)
                tokmap_i_map_forget(begin - before, (size_t)c->n_bytes[part] + before);
        }
    }
}

/* Whether the column is checked: all columns of the index share a checksum. */
static bool is_checked(const tokmap_i_selection *s, size_t column)
{
    bool is_first = true;
    for (size_t i = 0; i < column; i++)
        is_first &= s->columns[i]->late != NULL;
    return is_first || s->columns[column]->late;
}

static tokmap_status check_columns(const tokmap_i_selection *s, tokmap_i_progress *progress,
                                   tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; !status && i < s->fields.n_fields; i++)
        if (is_checked(s, i))
            status = tokmap_i_column_check(s->columns[i], progress, err);
    return status;
}

uint64_t tokmap_i_selection_bytes(const tokmap_i_selection *s)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < s->fields.n_fields; i++)
        n_bytes += is_checked(s, i) ? tokmap_i_column_bytes(s->columns[i]) : 0;
    return n_bytes;
}

tokmap_status tokmap_i_selection_run(tokmap_i_selection *s, tokmap_use_kept *use, void *context,
                                     tokmap_i_progress *progress, tokmap_error *err)
{
    const uint64_t n_documents = s->ds->header.n_documents;
    tokmap_status status = check_columns(s, progress, err);
    if (!status)
        status = prepare(s, err);
    for (uint64_t first = 0; !status && first < n_documents; first += CHUNK_DOCUMENTS) {
        const uint32_t n = (uint32_t)MIN(n_documents - first, CHUNK_DOCUMENTS);
        for (uint32_t at = 0; !status && at < n; at += WORD)
            status = select_word(s, first + at, MIN(n - at, WORD), &s->kept[at / WORD], err);
        forget_columns(s);
        if (!status)
            status = use(context, first, n, s->kept, err);
    }
    return status;
}

/* ---- Open and close ---- */

static tokmap_status open_columns(tokmap_i_selection *s, const char *text, tokmap_error *err)
{
    tokmap_value_type types[FIELD_LIST_MAX];
    failure why;
    tokmap_status status = TOKMAP_OK;
    s->where = where_compile(text, &s->fields, &why);
    for (size_t i = 0; s->where && !status && i < s->fields.n_fields; i++) {
        status = tokmap_column_open(&s->columns[i], s->ds, s->fields.names[i], err);
        types[i] = status ? TOKMAP_VALUE_NULL
                          : tokmap_i_meta_value_type(tokmap_i_column_of(s->columns[i]));
    }
    if (status)
        return status;
    if (s->where && where_check_types(s->where, types, &why))
        return TOKMAP_OK;
    return why.status == ENOMEM
               ? FAIL_MEMORY(err)
               : FAIL_REASON(err, TOKMAP_ERR_ARGUMENT, TOKMAP_REASON_EXPRESSION,
                             "where: character %" PRIu64 ": %.400s", why.place, why.text);
}

tokmap_status tokmap_i_selection_open(tokmap_i_selection **out, const tokmap_dataset *ds,
                                      const char *text, tokmap_error *err)
{
    *out = NULL;
    if (ds->header.n_documents == 0 && ds->header.n_tokens > 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: the document boundaries are not known",
                    ds->index_path);
    tokmap_i_selection *s = calloc(1, sizeof *s);
    if (!s)
        return FAIL_MEMORY(err);
    s->ds = ds;
    const tokmap_status status = open_columns(s, text, err);
    if (status)
        tokmap_i_selection_close(s);
    else
        *out = s;
    return status;
}

void tokmap_i_selection_close(tokmap_i_selection *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->fields.n_fields; i++)
        tokmap_column_close(s->columns[i]);
    for (size_t i = 0; s->tests && i < s->n_tests; i++)
        free(s->tests[i].by_code);
    free(s->tests);
    free(s->active);
    where_free(s->where);
    field_list_free(&s->fields);
    free(s);
}

tokmap_status tokmap_i_selection_key(const tokmap_i_selection *s, uint64_t *key, tokmap_error *err)
{
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    if (!hasher)
        return FAIL_MEMORY(err);
    for (size_t i = 0; i < s->fields.n_fields; i++) {
        const uint64_t checksum = s->columns[i]->checksum;
        tokmap_i_hasher_add(hasher, s->fields.names[i], strlen(s->fields.names[i]) + 1);
        tokmap_i_hasher_add(hasher, &checksum, sizeof checksum);
    }
    where_hash(s->where, hasher);
    *key = tokmap_i_hasher_get(hasher);
    tokmap_i_hasher_close(hasher);
    return TOKMAP_OK;
}

bool tokmap_i_selection_is_current(const tokmap_i_selection *s)
{
    bool is_current = true;
    for (size_t i = 0; i < s->fields.n_fields; i++) {
        const tokmap_column *c = s->columns[i];
        tokmap_i_file_stat now;
        if (c->late)
            is_current &= !tokmap_i_file_stat_path(c->file.path, &now) &&
                          now.device == c->file.stat.device && now.inode == c->file.stat.inode &&
                          now.n_bytes == c->file.stat.n_bytes &&
                          now.modified_ns == c->file.stat.modified_ns;
    }
    return is_current;
}

tokmap_status tokmap_dataset_select(const tokmap_dataset *ds, const char *text,
                                    tokmap_use_kept *use, void *context, tokmap_error *err)
{
    tokmap_i_selection *s;
    tokmap_i_error_clear(err);
    if (!ds || !text || !use)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_selection_open(&s, ds, text, err);
    if (!status)
        status = tokmap_i_selection_run(s, use, context, NULL, err);
    tokmap_i_selection_close(s);
    return status;
}
