/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/page_header.h"

#include "parquet/thrift.h"

typedef struct raw_header { /* as stored */
    int64_t type, plain_bytes, stored_bytes, crc;
    int64_t n_values, encoding, level_encoding, definition_bytes, repetition_bytes;
    bool has_crc, is_compressed;
    unsigned seen;  /* fields of the header */
    unsigned known; /* fields of the kind of page */
} raw_header;

static bool is_part_of(const raw_header *r, int32_t field)
{
    enum {
        DATA_FIELD = 5,
        INDEX_FIELD,
        DICTIONARY_FIELD,
        DATA_V2_FIELD
    };
    static const int32_t fields[] = {DATA_FIELD, INDEX_FIELD, DICTIONARY_FIELD, DATA_V2_FIELD};
    return r->type >= 0 && r->type <= PARQUET_PAGE_DATA_V2 && fields[r->type] == field;
}

static void read_integers(thrift *t, raw_header *r, int64_t *const *integers, int32_t n)
{
    thrift_struct s = {0};
    while (thrift_next(t, &s)) {
        if (s.id > 0 && s.id < n && integers[s.id]) {
            *integers[s.id] = thrift_integer(t, s.type);
            r->known |= 1u << s.id;
        } else if (s.id == 7 && r->type == PARQUET_PAGE_DATA_V2) {
            r->is_compressed = thrift_boolean(t, s.type);
        } else {
            thrift_skip(t, s.type);
        }
    }
}

/* The part for the type of the page; its fields have other numbers in each. */
static void read_part(thrift *t, raw_header *r)
{
    int64_t *const data[] = {[1] = &r->n_values, [2] = &r->encoding, [3] = &r->level_encoding};
    int64_t *const dictionary[] = {[1] = &r->n_values, [2] = &r->encoding};
    int64_t *const data_v2[] = {[1] = &r->n_values,
                                [4] = &r->encoding,
                                [5] = &r->definition_bytes,
                                [6] = &r->repetition_bytes};
    unsigned needed = 0;
    if (r->type == PARQUET_PAGE_DATA) {
        read_integers(t, r, data, 4);
        needed = 1 << 1 | 1 << 2;
    } else if (r->type == PARQUET_PAGE_DICTIONARY) {
        read_integers(t, r, dictionary, 3);
        needed = 1 << 1 | 1 << 2;
    } else if (r->type == PARQUET_PAGE_DATA_V2) {
        read_integers(t, r, data_v2, 7);
        needed = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6;
    } else {
        thrift_skip(t, THRIFT_STRUCT);
    }
    if (!t->why && (r->known & needed) != needed)
        t->why = "its header is incomplete";
}

static void read_header(thrift *t, raw_header *r)
{
    thrift_struct s = {0};
    int64_t *const integers[] = {
        [1] = &r->type, [2] = &r->plain_bytes, [3] = &r->stored_bytes, [4] = &r->crc};
    while (thrift_next(t, &s)) {
        if (s.id > 0 && s.id < 32)
            r->seen |= 1u << s.id;
        if (s.id > 0 && s.id < 5) {
            *integers[s.id] = thrift_integer(t, s.type);
            r->has_crc = r->has_crc || s.id == 4;
        } else if (is_part_of(r, s.id) && thrift_is_struct(t, s.type)) {
            r->known |= 1;
            read_part(t, r);
        } else {
            thrift_skip(t, s.type);
        }
    }
}

static bool is_size(int64_t n)
{
    return n >= 0 && n <= INT32_MAX;
}

static const char *check_header(const raw_header *r)
{
    enum {
        NEEDED = 1 << 1 | 1 << 2 | 1 << 3
    };
    if ((r->seen & NEEDED) != NEEDED)
        return "its header is incomplete";
    if (r->type < 0 || r->type > PARQUET_PAGE_DATA_V2)
        return "its type is unknown";
    if (!(r->known & 1) && r->type != PARQUET_PAGE_INDEX)
        return "its header is incomplete";
    if (!is_size(r->plain_bytes) || !is_size(r->stored_bytes) || !is_size(r->n_values) ||
        !is_size(r->definition_bytes) || !is_size(r->repetition_bytes))
        return "a size in its header is wrong";
    if (r->definition_bytes + r->repetition_bytes > r->stored_bytes ||
        r->definition_bytes + r->repetition_bytes > r->plain_bytes)
        return "its levels are longer than the page";
    if (r->encoding < 0 || r->encoding > UINT8_MAX || r->level_encoding < 0 ||
        r->level_encoding > UINT8_MAX || r->crc < INT32_MIN || r->crc > UINT32_MAX)
        return "a number in its header is wrong";
    return NULL;
}

parquet_header_result parquet_page_header_read(parquet_page_header *h, const uint8_t *bytes,
                                               size_t n_bytes, const char **why)
{
    thrift t = {.at = bytes, .end = bytes + n_bytes};
    raw_header r = {.type = -1, .is_compressed = true, .level_encoding = PARQUET_ENCODING_RLE};
    read_header(&t, &r);
    *why = t.why;
    if (t.why)
        return t.short_of ? PARQUET_HEADER_SHORT : PARQUET_HEADER_DAMAGED;
    *why = check_header(&r);
    if (*why)
        return PARQUET_HEADER_DAMAGED;
    *h = (parquet_page_header){
        .type = (parquet_page_type)r.type,
        .header_bytes = (uint32_t)(t.at - bytes),
        .stored_bytes = (uint32_t)r.stored_bytes,
        .plain_bytes = (uint32_t)r.plain_bytes,
        .has_crc = r.has_crc,
        .crc = (uint32_t)r.crc,
        .n_values = (uint32_t)r.n_values,
        .encoding = (uint8_t)r.encoding,
        .level_encoding = (uint8_t)r.level_encoding,
        .repetition_bytes = (uint32_t)r.repetition_bytes,
        .definition_bytes = (uint32_t)r.definition_bytes,
        .is_compressed = r.is_compressed,
    };
    return PARQUET_HEADER_OK;
}
