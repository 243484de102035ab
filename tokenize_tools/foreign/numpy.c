/* SPDX-License-Identifier: Apache-2.0 */
/* numpy.c - .npy files: magic, version, header length, a Python dict literal, the array.
 *
 * The literal is parsed strictly: exactly the keys descr, fortran_order and shape, each once, in
 * any order; anything else is refused. */
#include "foreign/foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static const char magic[] = "\x93NUMPY";

enum {
    N_MAGIC = sizeof magic - 1,
    MAX_HEADER_BYTES = 16384,
    MAX_DESCR = 32
};

typedef struct npy_header {
    char descr[MAX_DESCR];
    uint64_t shape; /* the size of the first dimension */
    int n_dimensions;
    bool is_structured; /* descr is a list */
    bool has_descr, has_order, has_shape;
} npy_header;

typedef struct text_parser {
    const char *p, *end;
} text_parser;

static void skip_space(text_parser *t)
{
    while (t->p < t->end && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t' || *t->p == '\r'))
        t->p++;
}

static bool take_char(text_parser *t, char c)
{
    skip_space(t);
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

static bool take_word(text_parser *t, const char *word)
{
    size_t n = strlen(word);
    skip_space(t);
    if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
        return false;
    t->p += n;
    return true;
}

/* Parses a quoted string without escapes. */
static bool take_string(text_parser *t, char *out, size_t out_bytes)
{
    skip_space(t);
    if (t->p == t->end || (*t->p != '\'' && *t->p != '"'))
        return false;
    char quote = *t->p++;
    size_t n = 0;
    while (t->p < t->end && *t->p != quote) {
        char c = *t->p++;
        if (c == '\\' || c < ' ' || n + 1 == out_bytes)
            return false;
        out[n++] = c;
    }
    out[n] = 0;
    return take_char(t, quote);
}

static bool take_number(text_parser *t, uint64_t *out)
{
    skip_space(t);
    const char *first = t->p;
    while (t->p < t->end && *t->p >= '0' && *t->p <= '9')
        t->p++;
    if (!number_read_digits(first, (size_t)(t->p - first), out))
        return false;
    take_char(t, 'L'); /* Python 2 wrote long integers with an L */
    return true;
}

static bool take_shape(text_parser *t, npy_header *header)
{
    if (!take_char(t, '('))
        return false;
    while (!take_char(t, ')')) {
        uint64_t size;
        if (!take_number(t, &size) || header->n_dimensions == 64)
            return false;
        if (header->n_dimensions++ == 0)
            header->shape = size;
        if (!take_char(t, ','))
            return take_char(t, ')') && header->n_dimensions > 1; /* (5) is not a tuple */
    }
    return true;
}

static bool take_item(text_parser *t, npy_header *header)
{
    char key[16];
    if (!take_string(t, key, sizeof key) || !take_char(t, ':'))
        return false;
    if (strcmp(key, "descr") == 0 && !header->has_descr) {
        header->has_descr = true;
        skip_space(t);
        if (t->p < t->end && *t->p == '[') {
            header->is_structured = true;
            return true;
        }
        return take_string(t, header->descr, sizeof header->descr);
    }
    if (strcmp(key, "fortran_order") == 0 && !header->has_order) {
        /* With one dimension the order makes no difference. */
        header->has_order = true;
        return take_word(t, "True") || take_word(t, "False");
    }
    if (strcmp(key, "shape") == 0 && !header->has_shape) {
        header->has_shape = true;
        return take_shape(t, header);
    }
    return false;
}

static bool parse_literal(npy_header *header, const char *text, size_t n_bytes)
{
    text_parser t = {text, text + n_bytes};
    *header = (npy_header){0};
    if (!take_char(&t, '{'))
        return false;
    while (!take_char(&t, '}')) {
        if (!take_item(&t, header))
            return false;
        if (header->is_structured)
            return true; /* it is refused later */
        if (!take_char(&t, ',')) {
            if (!take_char(&t, '}'))
                return false;
            break;
        }
    }
    skip_space(&t);
    return t.p == t.end && header->has_descr && header->has_order && header->has_shape;
}

/* Writes "int64" for "<i8"; unknown types stay as they are. */
static void type_name(const char *descr, char *out, size_t out_bytes)
{
    static const struct {
        char letter;
        const char *name;
    } kinds[] = {{'u', "uint"}, {'i', "int"}, {'f', "float"}, {'c', "complex"}};
    bool has_order = descr[0] && strchr("<>|=", descr[0]);
    const char *kind = descr + has_order;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool has_size = kind[0] == kinds[i].letter && kind[1] >= '1' && kind[1] <= '8';
        if (has_size && kind[2] == 0) {
            snprintf(out, out_bytes, "%s%s%d", descr[0] == '>' ? "big-endian " : "", kinds[i].name,
                     8 * (kind[1] - '0'));
            return;
        }
    }
    snprintf(out, out_bytes, "'%s'", descr);
}

static bool decode_type(foreign_layout *out, const npy_header *header, failure *err)
{
    static const char copies[] = "; 'tokmap import numpy' makes a dataset of it";
    if (header->is_structured)
        return fail(err, "is a NumPy array of records, not of tokens");
    if (strcmp(header->descr, "<u2") == 0) {
        out->token_bytes = 2;
    } else if (strcmp(header->descr, "<u4") == 0 || strcmp(header->descr, "<i4") == 0) {
        out->token_bytes = 4;
        out->is_signed = header->descr[1] == 'i';
    } else {
        char name[64];
        type_name(header->descr, name, sizeof name);
        return fail(err,
                    "%s tokens cannot be adopted in place: tokmap reads little-endian "
                    "uint16, uint32 and int32 from .npy files%s",
                    name, strstr(name, "int") ? copies : "");
    }
    if (header->n_dimensions != 1)
        return fail(err, "is a NumPy array of %d dimensions; tokens have one%s",
                    header->n_dimensions, header->n_dimensions == 2 ? copies : "");
    out->n_tokens = header->shape;
    return true;
}

/* Finds the literal: at byte 10 in version 1, at 12 in versions 2 and 3. */
static bool locate_literal(const foreign_bytes *file, uint64_t *offset, uint64_t *n_bytes,
                           failure *err)
{
    uint8_t head[12];
    if (!foreign_read(file, 0, head, 10, err))
        return false;
    if (memcmp(head, magic, N_MAGIC) != 0)
        return fail(err, "is not a NumPy .npy file");
    if (head[6] < 1 || head[6] > 3 || head[7] != 0)
        return fail(err, "is a .npy file of version %u.%u; only 1.0, 2.0 and 3.0 are supported",
                    head[6], head[7]);
    *offset = head[6] == 1 ? 10 : 12;
    if (!foreign_read(file, 0, head, (size_t)*offset, err))
        return false;
    *n_bytes = head[6] == 1 ? le_get16(head + 8) : le_get32(head + 8);
    if (*n_bytes > MAX_HEADER_BYTES)
        return fail(err, "has a NumPy header of %" PRIu64 " bytes; at most %d are supported",
                    *n_bytes, MAX_HEADER_BYTES);
    return true;
}

static bool recognise_numpy(const uint8_t *head, size_t n_head, uint64_t file_bytes)
{
    (void)file_bytes;
    return n_head >= N_MAGIC && memcmp(head, magic, N_MAGIC) == 0;
}

static bool decode_numpy(foreign_layout *out, const foreign_files *files, failure *err)
{
    const foreign_bytes *file = files->tokens;
    *out = (foreign_layout){.boundaries = FOREIGN_BOUNDARIES_UNKNOWN};
    uint64_t literal_offset = 0, literal_bytes = 0;
    char literal[MAX_HEADER_BYTES];
    npy_header header;
    if (!locate_literal(file, &literal_offset, &literal_bytes, err) ||
        !foreign_read(file, literal_offset, literal, (size_t)literal_bytes, err))
        return false;
    if (!parse_literal(&header, literal, (size_t)literal_bytes))
        return fail(err, "has a damaged NumPy header");
    if (!decode_type(out, &header, err))
        return false;
    out->token_offset = literal_offset + literal_bytes;
    uint64_t array_bytes, file_bytes;
    if (__builtin_mul_overflow(out->n_tokens, out->token_bytes, &array_bytes) ||
        __builtin_add_overflow(array_bytes, out->token_offset, &file_bytes) ||
        file_bytes != file->size) {
        return fail(err,
                    "is damaged: %" PRIu64 " bytes do not fit a header of %" PRIu64 " and %" PRIu64
                    " tokens",
                    file->size, out->token_offset, out->n_tokens);
    }
    if (out->token_offset % out->token_bytes != 0)
        return fail(err, "has its tokens at byte %" PRIu64 ", which is not a multiple of %u",
                    out->token_offset, out->token_bytes);
    return true;
}

const foreign_reader foreign_numpy = {
    .name = "numpy",
    .help = ".npy with one dimension (uint16, uint32, int32)",
    .kind = "a NumPy .npy file with its header",
    .recognise = recognise_numpy,
    .decode = decode_numpy,
};
