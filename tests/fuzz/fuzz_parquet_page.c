/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_parquet_page.c - any bytes as a page of any type: its header, its decompression, and its
 * values. Each is refused or stays inside the bytes. */
#include "fuzz/fuzz.h"
#include "formats/parquet/codec.h"
#include "formats/parquet/values.h"
#include "support/exact_copy.h"

enum {
    OPTION_BYTES = 8,
    MAX_PLAIN = 1 << 16
};

static void try_header(const uint8_t *data, size_t size)
{
    parquet_page_header h;
    bool is_short;
    if (!parquet_page_header_read(&h, data, size, &is_short))
        require(h.header_bytes <= size && h.stored_bytes <= INT32_MAX && h.n_values <= INT32_MAX &&
                h.repetition_bytes + h.definition_bytes <= h.plain_bytes);
}

static void try_codec(uint8_t codec, const uint8_t *data, size_t size)
{
    parquet_codec c = {0};
    const size_t to_bytes = size < 4 ? size : (data[size - 1] | (size_t)data[size - 2] << 8);
    uint8_t *to = malloc(to_bytes + 1);
    const decoder_buffers b = {data, size, to, to_bytes};
    const char *why = codec == 0 ? "stored as it is" : parquet_codec_refused(codec);
    why = why ? why : parquet_decompress(&c, codec, b);
    require(!why || strlen(why) > 0);
    free(to);
    parquet_codec_free(&c);
}

/* The text is in memory that the decoder may point into. */
static void check_value(const parquet_element *column, const tokmap_value *value)
{
    const bool is_text = value->type == TOKMAP_VALUE_STRING;
    const bool may_be_text = column->type == PARQUET_BYTE_ARRAY && column->kind != PARQUET_DECIMAL;
    require(value->type == TOKMAP_VALUE_NULL || is_text == may_be_text);
    if (value->text && value->text_bytes)
        (void)*(volatile const char *)(value->text + value->text_bytes - 1);
}

static void try_values(const uint8_t *d, const uint8_t *data, size_t size)
{
    static const parquet_type types[] = {PARQUET_BYTE_ARRAY, PARQUET_BYTE_ARRAY, PARQUET_INT32,
                                         PARQUET_INT64,      PARQUET_FLOAT,      PARQUET_DOUBLE,
                                         PARQUET_BOOLEAN,    PARQUET_FIXED_BYTES};
    const parquet_type type = types[d[0] & 7];
    const bool is_decimal = type == PARQUET_FIXED_BYTES ||
                            (d[0] & 16 && (type == PARQUET_BYTE_ARRAY || type == PARQUET_INT32 ||
                                           type == PARQUET_INT64));
    const parquet_element column = {.is_leaf = true,
                                    .type = type,
                                    .kind = is_decimal ? PARQUET_DECIMAL
                                            : d[0] & 8 ? PARQUET_UNSIGNED
                                                       : PARQUET_PLAIN,
                                    .fixed_bytes = 1 + d[0] / 8u,
                                    .scale = (d[1] >> 3) - 8,
                                    .max_definition = d[1] & 3};
    const size_t dictionary_bytes = d[2] < size ? d[2] : 0;
    const bool v2 = d[1] & 4;
    const size_t n = size - dictionary_bytes;
    const parquet_page_header of_dictionary = {.type = PARQUET_PAGE_DICTIONARY,
                                               .n_values = d[3],
                                               .plain_bytes = (uint32_t)dictionary_bytes};
    const parquet_page_header header = {
        .type = v2 ? PARQUET_PAGE_DATA_V2 : PARQUET_PAGE_DATA,
        .n_values = (uint32_t)d[4] << (d[5] & 7),
        .encoding = d[6] & 15,
        .level_encoding = d[6] & 128 ? PARQUET_ENCODING_BIT_PACKED : PARQUET_ENCODING_RLE,
        .plain_bytes = (uint32_t)n,
        .definition_bytes = v2 && n ? d[7] % (uint32_t)(n < 64 ? n : 64) : 0,
    };
    parquet_dictionary dictionary = {0};
    parquet_values values = {0};
    tokmap_value value;
    uint32_t n_read = 0;
    int result = 0;
    if (dictionary_bytes &&
        parquet_dictionary_begin(&dictionary, &column, &of_dictionary, data + n)) {
        parquet_dictionary_free(&dictionary);
        return;
    }
    if (parquet_values_begin(&values, &column, &header, data, &dictionary)) {
        while ((result = parquet_values_next(&values, &value)) > 0) {
            check_value(&column, &value);
            n_read++;
        }
        require(result < 0 ? values.why != NULL : n_read == header.n_values);
    }
    parquet_values_free(&values);
    parquet_dictionary_free(&dictionary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < OPTION_BYTES || size > MAX_PLAIN)
        return 0;
    uint8_t *copy = exact_copy(data + OPTION_BYTES, size - OPTION_BYTES);
    const uint8_t what = data[0] >> 4;
    if (what == 0)
        try_header(copy, size - OPTION_BYTES);
    else if (what < 8)
        try_codec(what, copy, size - OPTION_BYTES);
    else
        try_values(data, copy, size - OPTION_BYTES);
    free(copy);
    return 0;
}
