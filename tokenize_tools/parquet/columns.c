/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - names and types of columns, and which column an option means. */
#include <stdio.h>
#include <string.h>

#include "parquet/footer.h"

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

/* Text that is written piece by piece into a buffer, and cut to its size. */
typedef struct line {
    char *text;
    size_t n_bytes, capacity;
} line;

static void add(line *l, const char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes && l->n_bytes + 1 < l->capacity; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        l->text[l->n_bytes++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    l->text[l->n_bytes] = 0;
}

static void add_text(line *l, const char *text)
{
    add(l, text, strlen(text));
}

static void add_path(line *l, const parquet_footer *f, const parquet_element *e)
{
    const parquet_element *path[256]; /* depth is a uint8_t */
    size_t n = 0;
    for (; e->depth > 0; e = &f->elements[e->parent])
        path[n++] = e;
    while (n-- > 0) {
        add(l, (const char *)path[n]->name, path[n]->name_bytes);
        if (n > 0)
            add_text(l, ".");
    }
}

void parquet_path(const parquet_footer *f, const parquet_element *e, char *text, size_t n_bytes)
{
    line l = {.text = text, .capacity = n_bytes};
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
    return type_names[e->type];
}

void parquet_type_text(const parquet_element *e, char *text, size_t n_bytes)
{
    snprintf(text, n_bytes, "%s %s", e->max_definition ? "optional" : "required", type_name(e));
}

void parquet_encodings_text(uint32_t encodings, char *text, size_t n_bytes)
{
    line l = {.text = text, .capacity = n_bytes};
    add_text(&l, "");
    for (size_t i = 0; i < sizeof encoding_names / sizeof *encoding_names; i++) {
        if (!(encodings >> i & 1))
            continue;
        add_text(&l, l.n_bytes ? ", " : "");
        add_text(&l, encoding_names[i]);
    }
}

/* ---- Choosing ---- */

static bool is_text(const parquet_element *e)
{
    return e->is_leaf && e->type == PARQUET_BYTE_ARRAY && e->max_repetition == 0 &&
           (e->kind == PARQUET_TEXT || e->kind == PARQUET_PLAIN);
}

static bool is_value(const parquet_element *e)
{
    bool known = e->kind == PARQUET_PLAIN || e->kind == PARQUET_UNSIGNED ||
                 e->kind == PARQUET_TEXT || e->kind == PARQUET_NULL;
    return e->is_leaf && known && e->type != PARQUET_INT96 && e->type != PARQUET_FIXED_BYTES &&
           e->max_repetition == 0;
}

/* Names may contain dots, so the joined path is compared, from its end. */
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

/* NULL: there is none, or two. */
static const parquet_element *find(const parquet_footer *f, const char *path, bool *twice,
                                   failure *err)
{
    const parquet_element *found = NULL;
    *twice = false;
    for (size_t i = 1; i < f->n_elements; i++) {
        const parquet_element *e = &f->elements[i];
        if (!has_path(f, e, path))
            continue;
        if (found) {
            fail(err, "it has two columns \"%.100s\", which cannot be told apart", path);
            *twice = true;
            return NULL;
        }
        found = e;
    }
    if (!found)
        fail(err, "it has no column \"%.100s\"", path);
    return found;
}

/* Lists the columns that could be meant. */
static void list_columns(const parquet_footer *f, bool (*fits)(const parquet_element *),
                         failure *err)
{
    line l = {.text = err->text, .n_bytes = strlen(err->text), .capacity = sizeof err->text};
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

/* A list or map is a group around a repeated one. */
static bool is_list(const parquet_footer *f, const parquet_element *e)
{
    bool found = e->max_repetition > 0;
    for (size_t i = 1; i < f->n_elements && !found; i++)
        found = &f->elements[f->elements[i].parent] == e && f->elements[i].max_repetition > 0;
    return found;
}

static const parquet_element *choose(const parquet_footer *f, const char *path,
                                     bool (*fits)(const parquet_element *), failure *err)
{
    bool twice;
    const parquet_element *e = find(f, path, &twice, err);
    if (twice || (e && (fits(e) || (is_value(e) && parquet_is_null(f, e)))))
        return e;
    const char *what = fits == is_text ? "text" : "a value";
    if (e && is_list(f, e))
        fail(err, "the column \"%.100s\" is a list or map, which cannot be %s", path, what);
    else if (e && !e->is_leaf)
        fail(err, "the column \"%.100s\" is a group of columns, which cannot be %s", path, what);
    else if (e)
        fail(err, "the column \"%.100s\" has the type %s, which cannot be %s", path, type_name(e),
             what);
    list_columns(f, fits, err);
    return NULL;
}

const parquet_element *parquet_text_column(const parquet_footer *f, const char *path, failure *err)
{
    return choose(f, path, is_text, err);
}

const parquet_element *parquet_value_column(const parquet_footer *f, const char *path, failure *err)
{
    return choose(f, path, is_value, err);
}
