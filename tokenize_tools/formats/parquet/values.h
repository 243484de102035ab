/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - the values of a data page, one after another, from its decompressed bytes.
 *
 * Nothing is allocated except, for an encoding that stores differences from the value before, the
 * current value. Strings point into the page or the dictionary. */
#pragma once

#include "formats/parquet/footer.h"
#include "formats/parquet/integers.h"
#include "formats/parquet/page_header.h"
#include "base/number.h"
#include "tokmap.h"

typedef struct parquet_dictionary { /* {0}: none */
    const uint8_t *bytes;
    size_t n_bytes;
    uint32_t n_values;
    uint32_t *offsets; /* of byte arrays */
} parquet_dictionary;

/* Begins a dictionary, whose bytes must stay valid. Returns NULL, or why it cannot be read. */
const char *parquet_dictionary_begin(parquet_dictionary *d, const parquet_element *column,
                                     const parquet_page_header *header, const uint8_t *bytes);
void parquet_dictionary_free(parquet_dictionary *d);

typedef struct parquet_values {
    const parquet_element *column;
    const parquet_dictionary *dictionary;
    uint8_t encoding;
    uint32_t left;    /* values to come, including nulls */
    uint32_t n_taken; /* values taken, not counting nulls */
    parquet_runs repetitions, levels;
    uint32_t repetition, definition; /* the levels of the last value */
    const uint8_t *begin, *at, *end; /* of the values */
    parquet_runs runs;
    parquet_delta numbers, suffixes; /* `numbers` also has lengths and prefixes */
    uint8_t *value;                  /* DELTA_BYTE_ARRAY: the last value */
    size_t value_bytes, value_capacity;
    uint8_t split[NUMBER_MAX_DECIMAL_BYTES]; /* BYTE_STREAM_SPLIT: the last value */
    char decimal[NUMBER_DECIMAL_TEXT_BYTES];
    bool (*take)(struct parquet_values *, tokmap_value *);
    const char *why; /* after an error */
} parquet_values;

/* Begins a page, given its header->plain_bytes decompressed bytes. *v is {0}, or was used for the
 * page before. False: v->why is the reason. */
bool parquet_values_begin(parquet_values *v, const parquet_element *column,
                          const parquet_page_header *header, const uint8_t *bytes,
                          const parquet_dictionary *dictionary);
/* Returns 1 and the next value, valid until the next call; 0 after the last one; -1 on an error:
 * v->why is the reason. */
int parquet_values_next(parquet_values *v, tokmap_value *value);
void parquet_values_free(parquet_values *v);
