/* SPDX-License-Identifier: Apache-2.0 */
/* test_unicode.c - classes, UTF-8 and NFC, compared with the tables of the reference engines, with
 * vectors, and with a slow and simple implementation. */

#include "support/check.h"
#include "oracles/unicode_naive.h"
#include "base/utf8.h"

static const char *hex(const uint8_t *text, size_t n_bytes)
{
    static char lines[4][400];
    static unsigned next;
    char *line = lines[next++ % 4];
    size_t n = 0;
    line[0] = 0;
    for (size_t i = 0; i < n_bytes && n < 390; i++)
        n += (size_t)snprintf(line + n, 4, "%02x ", text[i]);
    return line;
}

/* ---- Classes ---- */

static FILE *open_shared(const char *name)
{
    const char *folder = getenv("TOKMAP_SHARED");
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared", name);
    FILE *file = fopen(path, "r");
    if (!file)
        SKIP("there is no %s", path);
    return file;
}

static int class_named(const char *name)
{
    static const char *const names[] = {"", "Lu", "Ll", "Lo", "M", "N", "s", "P", "S", "Lt", "Lm"};
    for (int i = 1; i < 11; i++) {
        if (strcmp(name, names[i]) == 0)
            return i == 9 ? CLASS_UPPER : i == 10 ? CLASS_LETTER : i;
    }
    return CLASS_OTHER;
}

TEST(classes_are_those_of_the_reference_engines_for_every_code_point)
{
    FILE *file = open_shared("unicode/regex_classes_u16.tsv");
    static uint8_t wanted[0x110000];
    char line[512], name[16];
    unsigned first, last;
    size_t n_rows = 0;
    memset(wanted, CLASS_OTHER, sizeof wanted);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#' || sscanf(line, "%15s %x %x", name, &first, &last) != 3 ||
            last > 0x10FFFF || class_named(name) == CLASS_OTHER)
            continue;
        n_rows++;
        for (unsigned c = first; c <= last; c++)
            wanted[c] = (uint8_t)class_named(name);
    }
    fclose(file);
    CHECK(n_rows > 2500);
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (unicode_class_of(c) != (unicode_class)wanted[c])
            CHECK_FAIL("U+%04X is of class %d, not %d", c, (int)unicode_class_of(c), wanted[c]);
    }
}

/* ---- UTF-8 ---- */

TEST(every_character_is_encoded_and_decoded_and_nothing_else)
{
    uint8_t bytes[4], cut[4];
    uint32_t decoded;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xD800 && c < 0xE000)
            continue;
        const size_t length = utf8_encode(c, bytes);
        CHECK_EQ(length, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        CHECK_EQ(utf8_decode(bytes, length, &decoded), length);
        CHECK_EQ(decoded, c);
        CHECK_EQ(naive_decode(bytes, length, &decoded), length);
        for (size_t n = 1; n < length; n++) {
            memcpy(cut, bytes, n);
            CHECK_EQ(utf8_decode(cut, n, &decoded), 0);
            CHECK_EQ(utf8_bad_bytes(cut, n), 0);
        }
    }
}

/* The limits of all four bytes: those of Table 3-7 of the standard, and one beyond each. */
static const uint8_t edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF};

/* The longest beginning of text that some valid character begins with, too; 0 when that is all. */
static size_t naive_bad_bytes(const uint8_t *text, size_t n_bytes)
{
    static const uint8_t ends[] = {0x80, 0x90, 0xA0, 0x8F, 0x9F, 0xBF};
    uint8_t tried[4];
    uint32_t c;
    size_t best = 0;
    for (size_t n = 1; n <= 3 && n <= n_bytes; n++) {
        for (size_t k = 0; k < 6 * 3; k++) { /* one more byte that matters, then any */
            memcpy(tried, text, n);
            memset(tried + n, 0x80, 4 - n);
            tried[n] = ends[k % 6];
            if (naive_decode(tried, n + 1 + k / 6 > 4 ? 4 : n + 1 + k / 6, &c) > n)
                best = n;
        }
    }
    return best == n_bytes && best > 0 ? 0 : best > 0 ? best : 1;
}

TEST(four_bytes_of_every_edge_decode_as_the_naive_way_does)
{
    const size_t n_edges = sizeof edges;
    for (size_t k = 0; k < n_edges * n_edges * n_edges * n_edges; k++) {
        const uint8_t text[4] = {edges[k / n_edges / n_edges / n_edges],
                                 edges[k / n_edges / n_edges % n_edges],
                                 edges[k / n_edges % n_edges], edges[k % n_edges]};
        uint32_t a = 0, b = 0;
        const size_t length = naive_decode(text, 4, &b);
        if (utf8_decode(text, 4, &a) != length || (length && a != b))
            CHECK_FAIL("%s: U+%04X, not U+%04X in %zu", hex(text, 4), a, b, length);
        for (size_t n = 1; n <= 4 && !length; n++) {
            if (utf8_bad_bytes(text, n) != naive_bad_bytes(text, n))
                CHECK_FAIL("%s: %zu bad bytes, not %zu", hex(text, n), utf8_bad_bytes(text, n),
                           naive_bad_bytes(text, n));
        }
    }
}

/* Every engine, in memory of exactly the text's size. */
static void prefix_is(const uint8_t *text, size_t n_bytes, size_t wanted)
{
    uint8_t *copy = exact_copy(text, n_bytes);
    for (simd_level e = SIMD_BEST; e <= SIMD_AVX512; e++) {
        const size_t found = simd_works(e) ? utf8_valid_prefix_by(e, copy, n_bytes) : wanted;
        if (found != wanted)
            CHECK_FAIL("engine %d: %zu of %zu bytes are valid, not %zu", (int)e, found, n_bytes,
                       wanted);
    }
    free(copy);
}

static const uint32_t samples[] = {'a',    '\n',   0xE9,   0x7FF,   0x800,   0x2019,  0xD7FF,
                                   0xE000, 0xFFFD, 0x3042, 0x10000, 0x1F600, 0x10FFFF};

static size_t random_utf8(uint8_t *text, size_t n_bytes, uint32_t one_in)
{
    size_t n = 0;
    while (n + 4 <= n_bytes)
        n += utf8_encode(check_below(one_in) ? 'a' + check_below(26) : samples[check_below(13)],
                         text + n);
    return n;
}

TEST(the_valid_prefix_ends_at_the_same_byte_for_every_engine_wherever_the_error_is)
{
    static const struct {
        uint8_t bytes[4];
        size_t n;
    } bad[] = {{{0x80}, 1},       {{0xC0, 0x80}, 2},       {{0xC3}, 1},
               {{0xE0, 0x9F}, 2}, {{0xED, 0xA0, 0x80}, 3}, {{0xF0, 0x8F}, 2},
               {{0xF4, 0x90}, 2}, {{0xE2, 0x82}, 2},       {{0xF1, 0x80, 0x80}, 3},
               {{0xFF}, 1},       {{0xF5, 0x80}, 2},       {{0xC1, 0xBF}, 2}};
    uint8_t text[1100];
    for (size_t k = 0; k < 12 * 3; k++) {
        for (size_t at = 0; at < 600; at++) {
            /* after ASCII, after two-byte and after three-byte characters */
            const size_t width = 1 + k % 3, start = at / width * width;
            for (size_t i = 0; i + width <= start; i += width)
                utf8_encode(width == 1 ? 'x' : width == 2 ? 0x416 : 0x4E00, text + i);
            memcpy(text + start, bad[k / 3].bytes, bad[k / 3].n);
            memset(text + start + bad[k / 3].n, 'y', 400);
            prefix_is(text, start + bad[k / 3].n + at % 100, start);
            prefix_is(text, start + bad[k / 3].n + 300 + at % 100, start);
            prefix_is(text, start + bad[k / 3].n, start);
            prefix_is(text, start, start);
        }
    }
}

TEST(random_text_with_random_errors_has_the_same_valid_prefix_for_every_engine)
{
    uint8_t text[1000];
    const int n_rounds = check_sanitized() ? 10000 : check_long() ? 1000000 : 100000;
    for (int round = 0; round < n_rounds; round++) {
        const size_t n = random_utf8(text, check_below(10) ? check_below(200) : check_below(1000),
                                     1 + check_below(20));
        if (naive_valid_prefix(text, n) != n)
            CHECK_FAIL("the test's own text is not valid");
        prefix_is(text, n, n);
        for (uint32_t k = check_below(3); n > 0 && k > 0; k--)
            text[check_below((uint32_t)n)] = edges[check_below(sizeof edges)];
        prefix_is(text, n, naive_valid_prefix(text, n));
    }
}

/* ---- NFC ---- */

static void nfc_is_naive(const uint8_t *text, size_t n_bytes)
{
    const char *why = naive_nfc_compare(text, n_bytes);
    if (why)
        CHECK_FAIL("%s: %s", hex(text, n_bytes), why);
}

TEST(nfc_of_every_code_point_alone_and_between_others_is_the_naive_one)
{
    uint8_t text[16];
    for (uint32_t c = 0; c < 0x110000; c++) {
        /* unassigned planes only by samples */
        if ((c >= 0xD800 && c < 0xE000) || (c >= 0x30000 && c < 0xE0000 && c % 997))
            continue;
        size_t n = utf8_encode(c, text);
        nfc_is_naive(text, n);
        n = utf8_encode('a', text);
        n += utf8_encode(c, text + n);
        n += utf8_encode(0x301, text + n);
        n += utf8_encode(0x323, text + n);
        if (naive_kind(c).flags != KIND_BOUNDARY || naive_kind(c).combining_class || c % 16 == 0)
            nfc_is_naive(text, n);
    }
}

/* Code points that NFC changes, and those between them. */
static uint32_t random_code_point(void)
{
    const nfc_decomposition *d = nfc_decompositions + check_below(NFC_N_DECOMPOSITIONS);
    switch (check_below(16)) {
    case 0:
        return d->code_point;
    case 1:
        return d->first;
    case 2:
    case 3:
        return d->second ? d->second : 0x301;
    case 4:
        return 0x300 + check_below(0x70);
    case 5:
        return 0x1100 + check_below(0x100);
    case 6:
        return 0xAC00 + 28 * check_below(400) + check_below(2);
    case 7:
        return 0x3040 + check_below(0xC0);
    case 8: { /* any that is not plain */
        uint32_t c = 0;
        while (!naive_kind(c).combining_class && !(naive_kind(c).flags & KIND_DOUBTFUL))
            c = check_below(8) ? check_below(0x3100) : check_below(0x30000);
        return c;
    }
    case 9:
        return samples[check_below(13)];
    case 10:
        return NAIVE_BYTE + edges[4 + check_below(sizeof edges - 4)];
    case 11:
        return check_below(2) ? 0x4E00 + check_below(0x5000) : 0x400 + check_below(0x100);
    default:
        return 'a' + check_below(26);
    }
}

static size_t random_text(uint8_t *text, size_t n_characters)
{
    size_t n = 0;
    for (size_t i = 0; i < n_characters; i++) {
        const uint32_t c = random_code_point();
        if (c >= NAIVE_BYTE)
            text[n++] = (uint8_t)(c - NAIVE_BYTE);
        else
            n += utf8_encode(c, text + n);
    }
    return n;
}

TEST(nfc_of_random_text_is_the_naive_one_and_the_prefix_may_be_cut)
{
    uint8_t text[2000];
    const int n_rounds = check_sanitized() ? 30000 : check_long() ? 600000 : 150000;
    for (int round = 0; round < n_rounds; round++) {
        const size_t n_characters = round % 50 ? 1 + check_below(12) : check_below(300);
        nfc_is_naive(text, random_text(text, n_characters));
    }
}

TEST(usual_text_is_stable_to_its_end)
{
    static const uint32_t ranges[][2] = {
        {0x20, 0x7E},     {0xA0, 0x24F},     {0x391, 0x3A1},   {0x3B1, 0x3C9},   {0x400, 0x481},
        {0x5D0, 0x5EA},   {0x621, 0x64A},    {0x905, 0x939},   {0xE01, 0xE30},   {0x1EA0, 0x1EF9},
        {0x2010, 0x2027}, {0x3041, 0x3096},  {0x30A1, 0x30FA}, {0x4E00, 0x9FD5}, {0xAC00, 0xD7A3},
        {0xFF01, 0xFF5E}, {0x1F300, 0x1F64F}};
    static uint8_t text[200000];
    for (size_t k = 0; k < 17; k++) {
        size_t n = 0;
        for (uint32_t c = ranges[k][0]; c <= ranges[k][1]; c++) {
            n += utf8_encode(c, text + n);
            n += utf8_encode(' ', text + n);
        }
        for (size_t cut = 0; cut < 70 && cut < n; cut++)
            for (simd_level e = SIMD_BEST; e <= SIMD_AVX512; e++)
                if (simd_works(e))
                    CHECK_EQ(nfc_stable_prefix_by(e, text + cut, n - cut), n - cut);
    }
    /* marks in their right places: Russian with stress, Hindi, Arabic with vowels, Thai */
    static const char *const marked[] = {
        "за\u0301мок и замо\u0301к", "\u0939\u093F\u0928\u094D\u0926\u0940 \u095C",
        "\u0645\u064F\u062D\u064E\u0645\u0651\u064E\u062F", "\u0E17\u0E35\u0E48\u0E19\u0E35\u0E48"};
    for (size_t k = 0; k < 4; k++) {
        const size_t n = strlen(marked[k]);
        nfc_is_naive((const uint8_t *)marked[k], n);
    }
    CHECK_EQ(nfc_stable_prefix((const uint8_t *)marked[0], strlen(marked[0])), strlen(marked[0]));
}

TEST(marks_in_order_are_stable_in_segments_of_90_bytes_and_cut_off_when_longer)
{
    uint8_t text[400] = "before q";
    size_t n = strlen((char *)text);
    for (int i = 0; i < 120; i++) {
        n += utf8_encode(i < 20 ? 0x323 : 0x301, text + n); /* with q neither composes */
        CHECK_EQ(nfc_stable_prefix(text, n), n - 7 <= 96 ? n : 7);
        nfc_is_naive(text, n);
    }
}

/* A million marks in every order must not take a million steps each; the sum of it is checked by
 * a count for each class. */
TEST(a_million_combining_marks_are_sorted_in_linear_time)
{
    static const uint32_t marks[] = {0x345, 0x301, 0x323, 0x334, 0x327, 0x315, 0x35C, 0x5B0};
    const size_t n_marks = 1000000, n_bytes = 1 + 2 * n_marks;
    uint8_t *text = malloc(n_bytes), *out = malloc(n_bytes * NFC_GROWTH);
    nfc_workspace workspace = {0};
    size_t n_out = 0, n = utf8_encode('q', text), counts[8] = {0};
    for (size_t i = 0; i < n_marks; i++) {
        const uint32_t k = check_below(8);
        n += utf8_encode(marks[k], text + n);
        counts[k]++;
    }
    CHECK_EQ(nfc_stable_prefix(text, n), 0);
    CHECK(nfc_normalize(&workspace, text, n, out, &n_out));
    CHECK_EQ(n_out, n);
    uint8_t last_class = 0;
    for (size_t i = 1; i < n_out; i += 2) {
        uint32_t c = 0;
        CHECK_EQ(utf8_decode(out + i, n_out - i, &c), 2);
        CHECK(naive_kind(c).combining_class >= last_class);
        last_class = naive_kind(c).combining_class;
        for (size_t k = 0; k < 8; k++)
            counts[k] -= c == marks[k];
    }
    for (size_t k = 0; k < 8; k++)
        CHECK_EQ(counts[k], 0);
    CHECK(workspace.capacity <= 4 * n_bytes);
    nfc_workspace_free(&workspace);
    free(text);
    free(out);
}
