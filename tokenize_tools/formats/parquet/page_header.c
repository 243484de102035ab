/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/page_header.h"

#include "formats/parquet/thrift.h"

typedef struct raw_part { /* as stored */
    int64_t n_values, encoding, level_encoding, repetition_encoding, definition_bytes,
        repetition_bytes;
    bool is_compressed;
} raw_part;

typedef struct raw_header { /* -1: absent */
    int64_t type, plain_bytes, stored_bytes, crc;
    raw_part parts[PARQUET_PAGE_DATA_V2 + 1]; /* for each type; only that of `type` is used */
} raw_header;

static const thrift_field v1_fields[] = {
    {1, thrift_integer, offsetof(raw_part, n_values), NULL},
    {2, thrift_integer, offsetof(raw_part, encoding), NULL},
    {3, thrift_integer, offsetof(raw_part, level_encoding), NULL},
    {4, thrift_integer, offsetof(raw_part, repetition_encoding), NULL},
    {0}};
static const thrift_field dictionary_fields[] = {
    {1, thrift_integer, offsetof(raw_part, n_values), NULL},
    {2, thrift_integer, offsetof(raw_part, encoding), NULL},
    {0}};
static const thrift_field v2_fields[] = {
    {1, thrift_integer, offsetof(raw_part, n_values), NULL},
    {4, thrift_integer, offsetof(raw_part, encoding), NULL},
    {5, thrift_integer, offsetof(raw_part, definition_bytes), NULL},
    {6, thrift_integer, offsetof(raw_part, repetition_bytes), NULL},
    {7, thrift_boolean, offsetof(raw_part, is_compressed), NULL},
    {0}};
static const thrift_field header_fields[] = {
    {1, thrift_integer, offsetof(raw_header, type), NULL},
    {2, thrift_integer, offsetof(raw_header, plain_bytes), NULL},
    {3, thrift_integer, offsetof(raw_header, stored_bytes), NULL},
    {4, thrift_integer, offsetof(raw_header, crc), NULL},
    {5, NULL, offsetof(raw_header, parts[PARQUET_PAGE_DATA]), v1_fields},
    {7, NULL, offsetof(raw_header, parts[PARQUET_PAGE_DICTIONARY]), dictionary_fields},
    {8, NULL, offsetof(raw_header, parts[PARQUET_PAGE_DATA_V2]), v2_fields},
    {0}};

static bool is_size(int64_t n)
{
    return n >= 0 && n <= INT32_MAX;
}

static const char *check_header(const raw_header *r)
{
    if (r->type < 0 || r->type > PARQUET_PAGE_DATA_V2)
        return "its type is unknown";
    const raw_part *p = &r->parts[r->type];
    if (!is_size(r->plain_bytes) || !is_size(r->stored_bytes) || !is_size(p->n_values) ||
        !is_size(p->definition_bytes) || !is_size(p->repetition_bytes))
        return "a size in its header is wrong";
    if (p->definition_bytes + p->repetition_bytes > r->stored_bytes ||
        p->definition_bytes + p->repetition_bytes > r->plain_bytes)
        return "its levels are longer than the page";
    if (p->encoding < 0 || p->encoding > UINT8_MAX || p->level_encoding < 0 ||
        p->level_encoding > UINT8_MAX || p->repetition_encoding < 0 ||
        p->repetition_encoding > UINT8_MAX || (r->crc != INT64_MIN && r->crc < INT32_MIN) ||
        r->crc > UINT32_MAX)
        return "a number in its header is wrong";
    return NULL;
}

const char *parquet_page_header_read(parquet_page_header *h, const uint8_t *bytes, size_t n_bytes,
                                     bool *is_short)
{
    const int64_t rle = PARQUET_ENCODING_RLE;
    thrift t = {.at = bytes, .end = bytes + n_bytes};
    /* Fields without a default are -1 if they are absent, which check_header() refuses. */
    raw_header r = {.type = -1,
                    .plain_bytes = -1,
                    .stored_bytes = -1,
                    .crc = INT64_MIN,
                    .parts = {[PARQUET_PAGE_DATA] = {-1, -1, rle, rle, 0, 0, true},
                              [PARQUET_PAGE_DICTIONARY] = {-1, -1, rle, rle, 0, 0, true},
                              [PARQUET_PAGE_DATA_V2] = {-1, -1, rle, rle, -1, -1, true}}};
    thrift_read(&t, THRIFT_STRUCT, header_fields, &r);
    const char *why = t.why ? t.why : check_header(&r);
    *is_short = t.ends_early;
    if (why)
        return why;
    const raw_part *p = &r.parts[r.type];
    *h = (parquet_page_header){
        .type = (parquet_page_type)r.type,
        .header_bytes = (uint32_t)(t.at - bytes),
        .stored_bytes = (uint32_t)r.stored_bytes,
        .plain_bytes = (uint32_t)r.plain_bytes,
        .has_crc = r.crc != INT64_MIN,
        .crc = (uint32_t)r.crc,
        .n_values = (uint32_t)p->n_values,
        .encoding = (uint8_t)p->encoding,
        .level_encoding = (uint8_t)p->level_encoding,
        .repetition_encoding = (uint8_t)p->repetition_encoding,
        .repetition_bytes = (uint32_t)p->repetition_bytes,
        .definition_bytes = (uint32_t)p->definition_bytes,
        .is_compressed = p->is_compressed,
    };
    return NULL;
}
