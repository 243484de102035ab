/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/char_words.h"

#include <string.h>

#include "base/utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* One bit each, so that a byte can say which kinds a kind is joined to. There are two kinds of
 * letters, so that half bytes are enough to recognize them. */
enum {
    LETTER = 1,       /* A to O */
    LATER_LETTER = 2, /* P to Z */
    DIGIT = 4,
    BLANK = 8,
    CONTROL = 16,
    PUNCTUATION = 32,  /* and U+7F */
    NOT_ASCII = 64,    /* the first byte */
    CONTINUATION = 128 /* the other bytes: never cut before them */
};

static uint8_t kind_of_byte(unsigned c)
{
    if (c >= 0x80)
        return c < 0xC0 ? CONTINUATION : NOT_ASCII;
    if ((c | 0x20) - 'a' < 26)
        return (c & 0x10) == 0 ? LETTER : LATER_LETTER;
    if (c - '0' < 10)
        return DIGIT;
    return c < ' ' ? CONTROL : c == ' ' ? BLANK : PUNCTUATION;
}

static uint8_t kind_of(const char_words *w, uint32_t c)
{
    if (c == CHAR_WORDS_MARK && w->spaces_are_marks)
        return BLANK;
    return c < 0x80 ? w->kind[c] : NOT_ASCII;
}

void char_words_init(char_words *w, bool spaces_are_marks)
{
    w->spaces_are_marks = spaces_are_marks;
    for (unsigned c = 0; c < 256; c++) {
        w->kind[c] = kind_of_byte(c);
        w->joins[c] = CONTINUATION;
    }
    char_words_join(w, 0x80, 0x80);
}

static void join_kinds(char_words *w, uint8_t left, uint8_t right)
{
    /* The byte after a character that is not ASCII follows its last byte. */
    const uint8_t last = left == NOT_ASCII ? CONTINUATION : left;
    for (unsigned c = 0; c < 256; c++)
        if (w->kind[c] == last)
            w->joins[c] |= right;
}

bool char_words_joined(const char_words *w, uint32_t left, uint32_t right)
{
    const uint8_t last = left < 0x80 ? (uint8_t)left : 0x80;
    if (left == CHAR_WORDS_MARK && w->spaces_are_marks)
        return (w->joins[' '] & kind_of(w, right)) != 0;
    return (w->joins[last] & kind_of(w, right)) != 0;
}

void char_words_join(char_words *w, uint32_t left, uint32_t right)
{
    if (!char_words_joined(w, left, right))
        join_kinds(w, kind_of(w, left), kind_of(w, right));
}

static const uint8_t all_kinds[] = {LETTER,  LATER_LETTER, DIGIT,    BLANK,
                                    CONTROL, PUNCTUATION,  NOT_ASCII};

void char_words_join_all_but_blanks(char_words *w)
{
    bool joined = false;
    for (unsigned c = 0; c < 0xC0; c++)
        joined |= c != ' ' && (w->joins[c] & BLANK);
    for (size_t i = 0; i < sizeof all_kinds; i++) {
        join_kinds(w, all_kinds[i], UINT8_MAX & ~BLANK);
        if (joined || all_kinds[i] == BLANK)
            join_kinds(w, all_kinds[i], BLANK);
    }
}

void char_words_join_all(char_words *w)
{
    for (size_t i = 0; i < sizeof all_kinds; i++)
        join_kinds(w, all_kinds[i], UINT8_MAX);
}

void char_words_join_piece(char_words *w, const uint8_t *piece, size_t n_bytes)
{
    uint32_t left = 0;
    for (size_t i = 0; i < n_bytes;) {
        uint32_t c;
        size_t n = utf8_decode(piece + i, n_bytes - i, &c);
        if (n == 0) {
            n = 1;
            c = 0x80;
        }
        if (i > 0)
            char_words_join(w, left, c);
        left = c;
        i += n;
    }
}

/* ---- Splitting ---- */

static void split_scalar(const char_words *w, const uint8_t *text, size_t n_bytes, uint64_t *starts)
{
    unsigned before = 0; /* there is nothing before to be joined to */
    for (size_t word = 0; word * 64 < n_bytes; word++) {
        const size_t n = n_bytes - word * 64 < 64 ? n_bytes - word * 64 : 64;
        uint64_t bits = 0;
        for (size_t i = 0; i < n; i++) {
            const uint8_t byte = text[word * 64 + i];
            bits |= (uint64_t)((before & w->kind[byte]) == 0) << i;
            before = w->joins[byte];
        }
        starts[word] = bits;
    }
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

/* The kind from the two halves of a byte, what it is joined to from the kind. */

typedef struct half_tables {
    __m256i low, high;             /* the kinds that bytes with this half may have */
    __m256i joins_low, joins_high; /* by the halves of a kind */
} half_tables;

AVX2 static __m256i load_twice(const uint8_t table[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
}

/* Each kind except PUNCTUATION, which is the rest, is a set of low halves for some high halves. */
AVX2 static half_tables load_halves(const char_words *w)
{
    uint8_t low[16] = {0}, high[16] = {0}, joins_low[16] = {0}, joins_high[16] = {0};
    half_tables t;
    for (unsigned c = 0; c < 256; c++) {
        const uint8_t kind = w->kind[c];
        const uint8_t set = kind == PUNCTUATION ? 0 : kind;
        low[c & 15] |= set;
        high[c >> 4] |= set;
        if (kind < 16)
            joins_low[kind] = w->joins[c];
        else
            joins_high[kind >> 4] = w->joins[c];
    }
    t.low = load_twice(low);
    t.high = load_twice(high);
    t.joins_low = load_twice(joins_low);
    t.joins_high = load_twice(joins_high);
    return t;
}

AVX2 static __m256i kinds_avx2(const half_tables *t, __m256i bytes)
{
    const __m256i fifteen = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(t->low, _mm256_and_si256(bytes, fifteen));
    const __m256i high =
        _mm256_shuffle_epi8(t->high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), fifteen));
    const __m256i kind = _mm256_and_si256(low, high);
    const __m256i none = _mm256_cmpeq_epi8(kind, _mm256_setzero_si256());
    return _mm256_or_si256(kind, _mm256_and_si256(none, _mm256_set1_epi8(PUNCTUATION)));
}

AVX2 static __m256i joins_avx2(const half_tables *t, __m256i kinds)
{
    const __m256i fifteen = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(t->joins_low, _mm256_and_si256(kinds, fifteen));
    const __m256i high =
        _mm256_shuffle_epi8(t->joins_high, _mm256_and_si256(_mm256_srli_epi16(kinds, 4), fifteen));
    return _mm256_or_si256(low, high);
}

AVX2 static uint32_t starts_avx2(const half_tables *t, const uint8_t *text)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)text);
    const __m256i before = _mm256_loadu_si256((const __m256i *)(text - 1));
    const __m256i joined =
        _mm256_and_si256(joins_avx2(t, kinds_avx2(t, before)), kinds_avx2(t, bytes));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(joined, _mm256_setzero_si256()));
}

/* Splits whole blocks; the byte before the first one exists. */
AVX2 static void split_avx2(const char_words *w, const uint8_t *text, size_t n_blocks,
                            uint64_t *starts)
{
    const half_tables t = load_halves(w);
    for (size_t i = 0; i < n_blocks; i++) {
        const uint64_t low = starts_avx2(&t, text + 64 * i);
        starts[i] = low | (uint64_t)starts_avx2(&t, text + 64 * i + 32) << 32;
    }
}

#endif

/* To the tables, a mark in the text is a character that is not ASCII: so it stays joined to both
 * sides. */
static void join_marks(const uint8_t *text, const size_t sizes[2], uint64_t *starts)
{
    const uint8_t *at = text;
    const uint8_t *end = text + (sizes[1] > sizes[0] ? sizes[0] + 1 : sizes[0]);
    while (at < end && (at = memchr(at, 0x96, (size_t)(end - at))) != NULL) {
        const size_t i = (size_t)(at++ - text);
        if (i == 0 || i + 1 >= sizes[1] || text[i - 1] != 0xE2 || text[i + 1] != 0x81)
            continue;
        if (i > 1)
            starts[(i - 1) / 64] &= ~((uint64_t)1 << (i - 1) % 64);
        if (i + 2 < sizes[0])
            starts[(i + 2) / 64] &= ~((uint64_t)1 << (i + 2) % 64);
    }
}

void char_words_split(const char_words *w, simd_level e, const uint8_t *text, const size_t sizes[2],
                      uint64_t *starts)
{
    const size_t n_bytes = sizes[0];
    size_t n_blocks = 0;
#if defined(__x86_64__)
    if (n_bytes >= 128 && e != SIMD_SCALAR && simd_works(SIMD_AVX2)) {
        n_blocks = n_bytes / 64;
        split_scalar(w, text, 64, starts);
        split_avx2(w, text + 64, n_blocks - 1, starts + 1);
    }
#else
    (void)e;
#endif
    const size_t at = n_blocks * 64;
    if (at < n_bytes) {
        split_scalar(w, text + at, n_bytes - at, starts + n_blocks);
        if (at > 0 && (w->joins[text[at - 1]] & w->kind[text[at]]) != 0)
            starts[n_blocks] &= ~(uint64_t)1;
    }
    if (w->spaces_are_marks)
        join_marks(text, sizes, starts);
}
