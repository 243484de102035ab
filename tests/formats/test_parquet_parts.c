/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet_parts.c - the parsers and decoders of parquet/, against naive encoders that write
 * bit by bit. */
#include "formats/parquet/codec.h"
#include "formats/parquet/footer.h"
#include "formats/parquet/integers.h"
#include "formats/parquet/page_header.h"
#include "formats/parquet/snappy.h"
#include "formats/parquet/thrift.h"
#include "formats/parquet/values.h"
#include "support/check.h"
#include "support/exact_copy.h"

static uint64_t any(void)
{
    return (uint64_t)check_bits() << 32 | check_bits();
}

static uint64_t any_bits(unsigned width)
{
    return width == 0 ? 0 : any() >> (64 - width);
}

/* ---- A naive encoder ---- */

typedef struct bytes {
    uint8_t data[1 << 16];
    size_t n;
} bytes;

static void add(bytes *b, uint64_t byte)
{
    CHECK(b->n < sizeof b->data);
    b->data[b->n++] = (uint8_t)byte;
}

static void add_varint(bytes *b, uint64_t n)
{
    for (; n >= 128; n >>= 7)
        add(b, n | 128);
    add(b, n);
}

static void add_zigzag(bytes *b, int64_t n)
{
    add_varint(b, n < 0 ? ~(uint64_t)n * 2 + 1 : (uint64_t)n * 2);
}

static void add_packed(bytes *b, const uint64_t *values, size_t n, unsigned width)
{
    for (size_t bit = 0; bit < n * width; bit++) {
        if (bit % 8 == 0)
            add(b, 0);
        b->data[b->n - 1] |= (uint8_t)((values[bit / width] >> bit % width & 1) << bit % 8);
    }
}

/* ---- Thrift ---- */

enum {
    T_TRUE = 1,
    T_INT = 6,
    T_DOUBLE,
    T_BINARY,
    T_LIST,
    T_SET,
    T_MAP,
    T_STRUCT
};

static void add_struct(bytes *b, unsigned depth);

static void add_value(bytes *b, uint8_t type, unsigned depth)
{
    switch (type) {
    case T_INT:
        add_zigzag(b, (int64_t)any());
        break;
    case T_DOUBLE:
        for (int i = 0; i < 8; i++)
            add(b, any());
        break;
    case T_BINARY:
        add(b, 3);
        for (int i = 0; i < 3; i++)
            add(b, any());
        break;
    case T_LIST: /* 20 booleans */
        add(b, 15 << 4 | T_TRUE);
        add_varint(b, 20);
        for (int i = 0; i < 20; i++)
            add(b, 1 + check_below(2));
        break;
    case T_SET: /* structures */
        add(b, 2 << 4 | T_STRUCT);
        add_struct(b, depth + 1);
        add_struct(b, depth + 1);
        break;
    case T_MAP:
        add_varint(b, 1);
        add(b, T_BINARY << 4 | T_INT);
        add_value(b, T_BINARY, depth);
        add_value(b, T_INT, depth);
        break;
    case T_STRUCT:
        add_struct(b, depth + 1);
        break;
    default:
        break; /* a boolean is in the type */
    }
}

static void add_struct(bytes *b, unsigned depth)
{
    static const uint8_t types[] = {T_TRUE, 2,     T_INT,    T_DOUBLE, T_BINARY,
                                    T_LIST, T_MAP, T_STRUCT, T_SET};
    for (uint64_t n = check_below(5), i = 0; i < n; i++) {
        const uint8_t type = types[check_below(depth < 4 ? 9 : 7)];
        const bool far = check_below(4) == 0;
        add(b, far ? type : (1 + check_below(15)) << 4 | type);
        if (far)
            add_zigzag(b, (int64_t)(1000 + i));
        add_value(b, type, depth);
    }
    add(b, 0);
}

TEST(thrift_structures_are_skipped_to_their_end)
{
    static bytes b;
    for (int round = 0; round < 3000; round++) {
        b.n = 0;
        add_struct(&b, 0);
        thrift t = {.at = b.data, .end = b.data + b.n};
        thrift_skip(&t, THRIFT_STRUCT);
        CHECK(!t.why && t.at == t.end);
        const size_t cut = check_below(b.n);
        t = (thrift){.at = b.data, .end = b.data + cut};
        thrift_skip(&t, THRIFT_STRUCT);
        CHECK(t.why && t.ends_early);
    }
}

TEST(thrift_numbers_are_read)
{
    static const int64_t numbers[] = {0,  1,         -1,        63,        -64,
                                      64, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        static bytes b;
        b.n = 0;
        add_zigzag(&b, numbers[i]);
        thrift t = {.at = b.data, .end = b.data + b.n};
        int64_t number = 1;
        thrift_integer(&t, T_INT, &number);
        CHECK_INT(number, numbers[i]);
        CHECK(!t.why && t.at == t.end);
    }
    const uint8_t endless[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    thrift t = {.at = endless, .end = endless + sizeof endless};
    int64_t number;
    thrift_integer(&t, T_INT, &number);
    CHECK(t.why && !t.ends_early);
    t = (thrift){.at = endless, .end = endless + sizeof endless};
    thrift_bytes text = {0};
    thrift_binary(&t, T_INT, &text);
    CHECK(text.n_bytes == 0 && t.why);
}

TEST(thrift_nesting_is_bounded)
{
    static uint8_t deep[100000];
    memset(deep, 1 << 4 | T_STRUCT, sizeof deep);
    thrift t = {.at = deep, .end = deep + sizeof deep};
    thrift_skip(&t, THRIFT_STRUCT);
    CHECK_STR(t.why, "its header is nested too deeply");
    memset(deep, 1 << 4 | T_LIST, sizeof deep);
    t = (thrift){.at = deep, .end = deep + sizeof deep};
    thrift_skip(&t, T_LIST);
    CHECK_STR(t.why, "its header is nested too deeply");
}

/* ---- Runs ---- */

static size_t add_runs(bytes *b, uint64_t *values, unsigned width, size_t max_values)
{
    size_t n = 0;
    while (n + 300 < max_values && check_below(12) > 0) {
        if (check_below(2)) {
            const uint64_t length = check_below(300), value = any_bits(width);
            add_varint(b, length << 1);
            for (unsigned i = 0; i < (width + 7) / 8; i++)
                add(b, value >> 8 * i);
            for (uint64_t i = 0; i < length; i++)
                values[n++] = value;
        } else {
            const size_t n_groups = check_below(30);
            add_varint(b, n_groups << 1 | 1);
            for (size_t i = 0; i < n_groups * 8; i++)
                values[n + i] = any_bits(width);
            add_packed(b, values + n, n_groups * 8, width);
            n += n_groups * 8;
        }
    }
    return n;
}

TEST(runs_are_those_of_a_naive_encoder)
{
    static uint64_t values[4000];
    static bytes b;
    for (int round = 0; round < 4000; round++) {
        const unsigned width = (unsigned)check_below(33);
        parquet_runs r;
        uint32_t value;
        b.n = 0;
        const size_t n = add_runs(&b, values, width, 4000);
        uint8_t *exact = exact_copy(b.data, b.n);
        parquet_runs_begin(&r, width, exact, b.n);
        for (size_t i = 0; i < n; i++)
            CHECK(parquet_runs_next(&r, &value) && value == values[i]);
        CHECK(!parquet_runs_next(&r, &value));
        /* A part of the bytes has a part of the values, and ends. */
        parquet_runs_begin(&r, width, exact, check_below(b.n + 1));
        size_t at = 0;
        while (parquet_runs_next(&r, &value))
            CHECK(at < n && (value == values[at] || width == 0) && ++at);
        free(exact);
    }
}

/* ---- Deltas ---- */

static unsigned width_of(uint64_t n)
{
    unsigned width = 0;
    for (; n; n >>= 1)
        width++;
    return width;
}

static void add_block(bytes *b, const uint64_t *deltas, size_t n, size_t per_mini, size_t n_mini)
{
    int64_t least = INT64_MAX;
    uint64_t above[512] = {0};
    for (size_t i = 0; i < n; i++)
        least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
    for (size_t i = 0; i < n; i++)
        above[i] = deltas[i] - (uint64_t)least;
    add_zigzag(b, least);
    unsigned widths[64] = {0};
    for (size_t m = 0; m < n_mini; m++) {
        for (size_t i = m * per_mini; i < (m + 1) * per_mini && i < n; i++)
            widths[m] = width_of(above[i]) > widths[m] ? width_of(above[i]) : widths[m];
        add(b, widths[m]);
    }
    for (size_t m = 0; m * per_mini < n; m++)
        add_packed(b, above + m * per_mini, per_mini, widths[m]);
}

static void add_deltas(bytes *b, const uint64_t *values, size_t n)
{
    uint64_t deltas[600];
    const size_t n_mini = (size_t)1 << check_below(3), per_mini = 32 << check_below(3),
                 block = n_mini * per_mini;
    for (size_t i = 1; i < n; i++)
        deltas[i - 1] = values[i] - values[i - 1];
    add_varint(b, block);
    add_varint(b, n_mini);
    add_varint(b, n);
    add_zigzag(b, n ? (int64_t)values[0] : 0);
    for (size_t at = 0; at + 1 < n; at += block)
        add_block(b, deltas + at, n - 1 - at < block ? n - 1 - at : block, per_mini, n_mini);
}

TEST(deltas_are_those_of_a_naive_encoder)
{
    uint64_t values[600], value;
    static bytes b;
    for (int round = 0; round < 4000; round++) {
        const size_t n = check_below(600);
        const unsigned width = (unsigned)check_below(65);
        parquet_delta d;
        b.n = 0;
        for (size_t i = 0; i < n; i++)
            values[i] = any_bits(width);
        add_deltas(&b, values, n);
        uint8_t *exact = exact_copy(b.data, b.n);
        CHECK(parquet_delta_begin(&d, exact, b.n));
        CHECK(parquet_delta_end(&d) == exact + b.n);
        for (size_t i = 0; i < n; i++)
            CHECK(parquet_delta_next(&d, &value) && value == values[i]);
        CHECK(!parquet_delta_next(&d, &value));
        const size_t cut = check_below(b.n);
        if (parquet_delta_begin(&d, exact, cut)) {
            CHECK(!parquet_delta_end(&d));
            while (parquet_delta_next(&d, &value))
                continue;
            CHECK(d.left > 0);
        }
        free(exact);
    }
}

/* ---- Page headers and footers ---- */

static bytes read_file(const char *name)
{
    static bytes b;
    char path[200];
    snprintf(path, sizeof path, "tests/formats/parquet/%s", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        SKIP("%s cannot be opened from this folder", path);
    b.n = fread(b.data, 1, sizeof b.data, f);
    fclose(f);
    return b;
}

TEST(a_part_of_a_page_header_is_too_short)
{
    const bytes file = read_file("text_plain_snappy.parquet");
    parquet_page_header h;
    bool is_short;
    CHECK(!parquet_page_header_read(&h, file.data + 4, file.n - 4, &is_short));
    CHECK(h.type == PARQUET_PAGE_DATA && h.has_crc && h.n_values > 0);
    CHECK_EQ(parquet_crc32(file.data + 4 + h.header_bytes, h.stored_bytes), h.crc);
    for (size_t n = 0; n < h.header_bytes; n++)
        CHECK(parquet_page_header_read(&h, file.data + 4, n, &is_short) && is_short);
}

enum {
    NOTHING = 0,
    PART = 100 /* and the number of a field: a field of the part for the type of the page */
};

/* Adds the number n as a field of a struct, unless it is the one that is left out. */
static void add_field(bytes *b, unsigned *before, unsigned field, int64_t n, bool is_left_out)
{
    if (is_left_out)
        return;
    add(b, (field - *before) << 4 | T_INT);
    add_zigzag(b, n);
    *before = field;
}

static const char *read_page_header_without(unsigned field, parquet_page_type type,
                                            parquet_page_header *h)
{
    static const unsigned parts[] = {
        [PARQUET_PAGE_DATA] = 5, [PARQUET_PAGE_DICTIONARY] = 7, [PARQUET_PAGE_DATA_V2] = 8};
    static const unsigned part_fields[][5] = {[PARQUET_PAGE_DATA] = {1, 2, 3, 4},
                                              [PARQUET_PAGE_DICTIONARY] = {1, 2},
                                              [PARQUET_PAGE_DATA_V2] = {1, 4, 5, 6}};
    bytes b = {.n = 0};
    unsigned before = 0;
    bool is_short;
    for (unsigned i = 1; i <= 3; i++)
        add_field(&b, &before, i, i == 1 ? type : 20, i == field);
    add(&b, (parts[type] - before) << 4 | T_STRUCT);
    before = 0;
    for (const unsigned *f = part_fields[type]; *f; f++)
        add_field(&b, &before, *f, *f, PART + *f == field);
    add(&b, 0);
    add(&b, 0);
    return parquet_page_header_read(h, b.data, b.n, &is_short);
}

TEST(only_encodings_of_levels_have_a_default_in_a_page_header)
{
    static const char size[] = "a size in its header is wrong",
                      number[] = "a number in its header is wrong";
    static const parquet_page_type types[] = {PARQUET_PAGE_DATA, PARQUET_PAGE_DICTIONARY,
                                              PARQUET_PAGE_DATA_V2};
    parquet_page_header h;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const parquet_page_type type = types[i];
        CHECK_NO_PROBLEM(read_page_header_without(NOTHING, type, &h));
        CHECK(h.type == type && h.n_values == 1 && !h.has_crc && h.is_compressed);
        CHECK_STR(read_page_header_without(1, type, &h), "its type is unknown");
        CHECK_STR(read_page_header_without(2, type, &h), size);
        CHECK_STR(read_page_header_without(3, type, &h), size);
        CHECK_STR(read_page_header_without(PART + 1, type, &h), size);
    }
    CHECK_STR(read_page_header_without(PART + 2, PARQUET_PAGE_DATA, &h), number);
    CHECK_STR(read_page_header_without(PART + 2, PARQUET_PAGE_DICTIONARY, &h), number);
    CHECK_STR(read_page_header_without(PART + 4, PARQUET_PAGE_DATA_V2, &h), number);
    CHECK_STR(read_page_header_without(PART + 5, PARQUET_PAGE_DATA_V2, &h), size);
    CHECK_STR(read_page_header_without(PART + 6, PARQUET_PAGE_DATA_V2, &h), size);
    CHECK_NO_PROBLEM(read_page_header_without(PART + 3, PARQUET_PAGE_DATA, &h));
    CHECK(h.level_encoding == PARQUET_ENCODING_RLE && h.repetition_encoding == 4);
    CHECK_NO_PROBLEM(read_page_header_without(PART + 4, PARQUET_PAGE_DATA, &h));
    CHECK(h.level_encoding == 3 && h.repetition_encoding == PARQUET_ENCODING_RLE);
}

static uint8_t *footer_of(const bytes *file, uint32_t *n_bytes)
{
    failure err;
    CHECK(parquet_find_footer(file->data, file->data + file->n - 8, file->n, n_bytes, &err));
    uint8_t *footer = malloc(*n_bytes);
    memcpy(footer, file->data + file->n - 8 - *n_bytes, *n_bytes);
    return footer;
}

TEST(a_damaged_footer_is_refused_or_read_but_never_crashes)
{
    static const char *const names[] = {"text_dictionary_gzip.parquet", "numbers_plain.parquet",
                                        "duckdb.parquet", "polars.parquet"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bytes file = read_file(names[i]);
        parquet_footer f;
        failure err;
        uint32_t n_bytes;
        uint8_t *footer = footer_of(&file, &n_bytes);
        CHECK(parquet_footer_read(&f, footer, n_bytes, file.n, &err));
        CHECK(f.n_rows > 0 && f.n_leaves > 0);
        parquet_footer_free(&f);
        for (uint32_t at = 0; at < n_bytes; at++) {
            const uint8_t was = footer[at];
            CHECK(!parquet_footer_read(&f, footer, at, file.n, &err));
            for (unsigned change = 1; change < 256; change++) {
                footer[at] = was ^ (uint8_t)change;
                if (parquet_footer_read(&f, footer, n_bytes, file.n, &err))
                    parquet_footer_free(&f);
                else
                    CHECK(err.text[0]);
            }
            footer[at] = was;
        }
        free(footer);
    }
}

/* ---- CRC, codecs ---- */

TEST(the_crc_is_that_of_gzip)
{
    CHECK_EQ(parquet_crc32((const uint8_t *)"123456789", 9), 0xcbf43926);
    CHECK_EQ(parquet_crc32((const uint8_t *)"", 0), 0);
}

TEST(damaged_compressed_data_is_refused)
{
    uint8_t from[64], to[256];
    parquet_codec c = {0};
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof from; i++)
            from[i] = (uint8_t)(check_below(4) ? any() : check_below(4));
        if (check_below(2))
            memcpy(from, check_below(2) ? "\x1f\x8b\x08\0" : "\x28\xb5\x2f\xfd", 4);
        const uint8_t codec = (uint8_t)(1 + check_below(8));
        const decoder_buffers b = {.in = from,
                                   .in_bytes = check_below(sizeof from + 1),
                                   .out = to,
                                   .out_bytes = check_below(sizeof to + 1)};
        const char *why = parquet_codec_refused(codec);
        if (!why)
            why = parquet_decompress(&c, codec, b);
        CHECK(!why || why[0]);
    }
    CHECK_STR(parquet_codec_name(4), "brotli");
    CHECK(parquet_codec_refused(4) && parquet_codec_refused(200) && !parquet_codec_refused(0));
    parquet_codec_free(&c);
}

TEST(an_empty_page_may_be_compressed_to_nothing)
{
    uint8_t none[1] = {0};
    parquet_codec c = {0};
    for (uint8_t codec = 1; codec < 8; codec++) {
        const decoder_buffers b = {.in = none, .out = none};
        if (!parquet_codec_refused(codec))
            CHECK_NO_PROBLEM(parquet_decompress(&c, codec, b));
    }
    parquet_codec_free(&c);
}

/* ---- Snappy ---- */

static void add_literal(bytes *b, bytes *plain, size_t n)
{
    const size_t n_extra = n <= 60 ? 0 : n <= 256 ? 1 + check_below(4) : 2 + check_below(3);
    add(b, (n_extra ? 59 + n_extra : n - 1) << 2);
    for (size_t i = 0; i < n_extra; i++)
        add(b, (n - 1) >> 8 * i);
    for (size_t i = 0; i < n; i++) {
        add(b, any());
        add(plain, b->data[b->n - 1]);
    }
}

static void add_copy(bytes *b, bytes *plain)
{
    const size_t distance = 1 + check_below(check_below(2)  ? plain->n
                                            : plain->n < 20 ? plain->n
                                                            : 20);
    const unsigned kind = 1 + (unsigned)check_below(3);
    const bool is_short = kind == 1 && distance < 2048;
    const size_t n = is_short ? 4 + check_below(8) : 1 + check_below(64);
    if (is_short) {
        add(b, 1 | (n - 4) << 2 | distance >> 8 << 5);
        add(b, distance);
    } else {
        add(b, (kind == 3 ? 3 : 2) | (n - 1) << 2);
        for (unsigned i = 0; i < (kind == 3 ? 4 : 2); i++)
            add(b, (uint64_t)distance >> 8 * i);
    }
    for (size_t i = 0; i < n; i++)
        add(plain, plain->data[plain->n - distance]);
}

/* In memory of the exact sizes, so that a sanitizer sees a step outside. */
static bool read_exactly(const bytes *b, const bytes *plain, size_t n_bytes)
{
    uint8_t *from = malloc(b->n), *to = malloc(n_bytes + 1);
    memcpy(from, b->data, b->n);
    const bool ok = snappy_read(from, b->n, to + 1, n_bytes);
    CHECK(!ok || (n_bytes == plain->n && memcmp(to + 1, plain->data, n_bytes) == 0));
    free(from);
    free(to);
    return ok;
}

TEST(snappy_is_that_of_a_naive_encoder)
{
    static bytes b, plain, body;
    for (int round = 0; round < 5000; round++) {
        b.n = plain.n = body.n = 0;
        for (uint64_t n = check_below(40), i = 0; i < n; i++) {
            if (plain.n == 0 || check_below(2))
                add_literal(&body, &plain, 1 + check_below(check_below(4) ? 70 : 700));
            else
                add_copy(&body, &plain);
        }
        add_varint(&b, plain.n);
        for (size_t i = 0; i < body.n; i++)
            add(&b, body.data[i]);
        CHECK(read_exactly(&b, &plain, plain.n));
        CHECK(!read_exactly(&b, &plain, plain.n + 1));
        CHECK(plain.n == 0 || !read_exactly(&b, &plain, plain.n - 1));
        const size_t was = b.n;
        b.n = check_below(was);
        CHECK(!read_exactly(&b, &plain, plain.n) || plain.n == 0);
        b.n = was;
    }
}

/* ---- Values ---- */

TEST(levels_and_values_of_a_page_are_checked)
{
    const parquet_element text = {.type = PARQUET_BYTE_ARRAY, .max_definition = 1, .is_leaf = true};
    /* nine rows, of which the second is "ab" and the others are null */
    const uint8_t page[] = {4, 0, 0, 0, 2, 0, 3, 1, 2, 0, 0, 0, 'a', 'b'};
    parquet_page_header h = {.n_values = 8, .plain_bytes = sizeof page, .level_encoding = 3};
    parquet_values v = {0};
    tokmap_value value;
    CHECK(parquet_values_begin(&v, &text, &h, page, NULL));
    CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK(value.type == TOKMAP_VALUE_NULL);
    CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK(value.type == TOKMAP_VALUE_STRING && value.text_bytes == 2 &&
          memcmp(value.text, "ab", 2) == 0);
    for (int i = 0; i < 6; i++)
        CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK_INT(parquet_values_next(&v, &value), 0);
    h.level_encoding = PARQUET_ENCODING_BIT_PACKED;
    CHECK(!parquet_values_begin(&v, &text, &h, page, NULL));
    CHECK_SAYS(v.why, "BIT_PACKED");
    h.level_encoding = PARQUET_ENCODING_RLE;
    h.n_values = 10;
    CHECK(parquet_values_begin(&v, &text, &h, page, NULL));
    for (int i = 0; i < 9; i++)
        CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK_INT(parquet_values_next(&v, &value), -1);
    h.encoding = PARQUET_ENCODING_RLE_DICTIONARY;
    CHECK(!parquet_values_begin(&v, &text, &h, page, NULL));
    CHECK_SAYS(v.why, "dictionary");
    parquet_values_free(&v);
}

TEST(unsigned_numbers_have_the_bits_of_their_type)
{
    const parquet_element large = {
        .type = PARQUET_INT64, .kind = PARQUET_UNSIGNED, .is_leaf = true};
    parquet_element small = large;
    small.type = PARQUET_INT32;
    const uint8_t plain[] = {1, 0, 0, 0, 0, 1, 0, 0};
    parquet_page_header h = {.n_values = 1, .plain_bytes = sizeof plain};
    parquet_values v = {0};
    tokmap_value value;
    CHECK(parquet_values_begin(&v, &large, &h, plain, NULL));
    CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK(value.type == TOKMAP_VALUE_INT64 && value.integer == ((int64_t)1 << 40) + 1);
    static bytes page;
    add_deltas(&page, (const uint64_t[]){UINT64_MAX, 0}, 2); /* as signed numbers, -1 and 0 */
    h = (parquet_page_header){
        .n_values = 2, .plain_bytes = (uint32_t)page.n, .encoding = PARQUET_ENCODING_DELTA_BINARY};
    CHECK(parquet_values_begin(&v, &small, &h, page.data, NULL));
    CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK(value.type == TOKMAP_VALUE_INT64 && value.integer == UINT32_MAX);
    CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK(value.type == TOKMAP_VALUE_INT64 && value.integer == 0);
    parquet_values_free(&v);
}

TEST(levels_and_lengths_beyond_the_largest_are_refused)
{
    const parquet_element text = {.type = PARQUET_BYTE_ARRAY, .is_leaf = true};
    parquet_element deep = text;
    deep.max_definition = 2;
    const uint8_t too_deep[] = {2, 0, 0, 0, 2, 3, 1, 0, 0, 0, 'a'}; /* one level of 3 */
    parquet_page_header h = {
        .n_values = 1, .plain_bytes = sizeof too_deep, .level_encoding = PARQUET_ENCODING_RLE};
    parquet_values v = {0};
    tokmap_value value;
    CHECK(parquet_values_begin(&v, &deep, &h, too_deep, NULL));
    CHECK_INT(parquet_values_next(&v, &value), -1);
    CHECK_SAYS(v.why, "definition level is too large");
    static bytes page;
    add_deltas(&page, (const uint64_t[]){2, 1}, 2);
    add(&page, 'a');
    add(&page, 'b');
    h = (parquet_page_header){
        .n_values = 2, .plain_bytes = (uint32_t)page.n, .encoding = PARQUET_ENCODING_DELTA_LENGTH};
    CHECK(parquet_values_begin(&v, &text, &h, page.data, NULL));
    CHECK_INT(parquet_values_next(&v, &value), 1);
    CHECK_INT(parquet_values_next(&v, &value), -1);
    CHECK_SAYS(v.why, "a value extends beyond its end");
    parquet_values_free(&v);
}
