/* SPDX-License-Identifier: Apache-2.0 */
/* page_header.h - the header before each page of a column chunk. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARQUET_MAX_HEADER_BYTES ((size_t)16 << 20)

typedef enum parquet_page_type {
    PARQUET_PAGE_DATA,
    PARQUET_PAGE_INDEX,
    PARQUET_PAGE_DICTIONARY,
    PARQUET_PAGE_DATA_V2
} parquet_page_type;

typedef enum parquet_encoding {
    PARQUET_ENCODING_PLAIN = 0,
    PARQUET_ENCODING_PLAIN_DICTIONARY = 2,
    PARQUET_ENCODING_RLE = 3,
    PARQUET_ENCODING_BIT_PACKED = 4,
    PARQUET_ENCODING_DELTA_BINARY = 5,
    PARQUET_ENCODING_DELTA_LENGTH = 6,
    PARQUET_ENCODING_DELTA_BYTES = 7,
    PARQUET_ENCODING_RLE_DICTIONARY = 8,
    PARQUET_ENCODING_SPLIT = 9
} parquet_encoding;

typedef struct parquet_page_header {
    parquet_page_type type;
    uint32_t header_bytes; /* size of the header */
    uint32_t stored_bytes; /* size of the page that follows */
    uint32_t plain_bytes;  /* size of the page after decompression */
    bool has_crc;
    uint32_t crc;      /* CRC-32 of the stored page */
    uint32_t n_values; /* including nulls */
    uint8_t encoding;
    uint8_t level_encoding, repetition_encoding; /* DATA: of the two kinds of levels */
    /* DATA_V2: sizes of the levels, which come before the values and are never compressed. */
    uint32_t repetition_bytes, definition_bytes;
    bool is_compressed; /* whether the values are, if the chunk has a codec */
} parquet_page_header;

/* Reads a header. Returns NULL, or what is wrong; sets *is_short if more bytes are needed. */
const char *parquet_page_header_read(parquet_page_header *h, const uint8_t *bytes, size_t n_bytes,
                                     bool *is_short);
