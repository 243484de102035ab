/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - encodes and decodes UTF-8, and finds where a text stops being UTF-8. */
#include "base/utf8.h"

#include "base/le.h"

/* Whether the second byte is in its range, after Table 3-7 of the Unicode standard: other values
 * are overlong after E0 and F0, surrogates after ED, and above 10FFFF after F4. The bytes after it
 * are 80 to BF. */
static bool second_byte_fits(uint8_t first, uint8_t second)
{
    const uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return second >= least && second <= most;
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Returns the length of a character that starts with this byte; 0 if none does. */
static size_t length_from(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

size_t utf8_decode(const uint8_t *text, size_t n_bytes, uint32_t *code_point)
{
    const uint32_t first = text[0];
    if (first < 0x80) {
        *code_point = first;
        return 1;
    }
    if (n_bytes < 2 || !is_continuation(text[1]) || first < 0xC2)
        return 0;
    uint32_t c = first << 6 | (text[1] & 0x3Fu);
    if (first < 0xE0) {
        *code_point = c & 0x7FF;
        return 2;
    }
    if (n_bytes < 3 || !is_continuation(text[2]))
        return 0;
    c = c << 6 | (text[2] & 0x3Fu);
    if (first < 0xF0) {
        c &= 0xFFFF;
        if (c < 0x800 || (c >= 0xD800 && c < 0xE000))
            return 0;
        *code_point = c;
        return 3;
    }
    if (n_bytes < 4 || !is_continuation(text[3]) || first > 0xF4)
        return 0;
    c = (c << 6 | (text[3] & 0x3Fu)) & 0x1FFFFF;
    if (c < 0x10000 || c > 0x10FFFF)
        return 0;
    *code_point = c;
    return 4;
}

/* Returns the start of the last character that starts before offset i. */
static size_t last_start(const uint8_t *text, size_t i)
{
    size_t start = i;
    while (start > 0 && i - start < 4) {
        start--;
        if (!is_continuation(text[start]))
            break;
    }
    return start;
}

size_t utf8_decode_last(const uint8_t *text, size_t n_bytes, uint32_t *code_point)
{
    const size_t n = n_bytes - last_start(text, n_bytes);
    return n > 0 && utf8_decode(text + n_bytes - n, n, code_point) == n ? n : 0;
}

size_t utf8_bad_bytes(const uint8_t *text, size_t n_bytes)
{
    const size_t length = length_from(text[0]);
    if (length == 0)
        return 1;
    for (size_t i = 1; i < length; i++) {
        if (i == n_bytes)
            return 0;
        if (i == 1 ? !second_byte_fits(text[0], text[1]) : !is_continuation(text[i]))
            return i;
    }
    return 1; /* a valid character: the caller broke the precondition */
}

/* ---- Validation ----
 *
 * Works on vectors of bytes; the three bytes before each byte are loaded separately. (After Keiser
 * and Lemire, "Validating UTF-8 in less than one instruction per byte".) Three tables, indexed by
 * the halves of a byte and of the one before it, have one bit for each way in which two bytes in a
 * row can be wrong; they are wrong if all three tables have the bit. TWO_MORE is not an error yet:
 * two continuation bytes in a row must be where a third or fourth byte is due, and nowhere else.
 * When the vectors find an error, the scalar code finds its place. */

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    TOO_SHORT = 1,  /* a lead byte, then no continuation */
    TOO_LONG = 2,   /* ASCII, then a continuation */
    LONG_3 = 4,     /* E0 80 to E0 9F */
    ABOVE = 8,      /* F4 90 and on */
    SURROGATE = 16, /* ED A0 and on */
    LONG_2 = 32,    /* C0, C1 */
    LONG_4 = 64,    /* F0 8x */
    FAR_ABOVE = 64, /* F5 8x and on */
    TWO_MORE = 128,
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO_MORE,
    LOW_5 = ANY_LOW | ABOVE | FAR_ABOVE
};

/* Indexed by the high half and the low half of the first of two bytes, and the high half of the
 * second. */
static const uint8_t pair_tables[3][16] = {
    {TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TWO_MORE,
     TWO_MORE, TWO_MORE, TWO_MORE, TOO_SHORT | LONG_2, TOO_SHORT, TOO_SHORT | LONG_3 | SURROGATE,
     TOO_SHORT | ABOVE | FAR_ABOVE | LONG_4},
    {ANY_LOW | LONG_2 | LONG_3 | LONG_4, ANY_LOW | LONG_2, ANY_LOW, ANY_LOW, ANY_LOW | ABOVE, LOW_5,
     LOW_5, LOW_5, LOW_5, LOW_5, LOW_5, LOW_5, LOW_5, LOW_5 | SURROGATE, LOW_5, LOW_5},
    {TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
     TOO_LONG | TWO_MORE | LONG_2 | LONG_3 | LONG_4, TOO_LONG | TWO_MORE | LONG_2 | LONG_3 | ABOVE,
     TOO_LONG | TWO_MORE | LONG_2 | SURROGATE | ABOVE,
     TOO_LONG | TWO_MORE | LONG_2 | SURROGATE | ABOVE, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT}};

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i load_avx2(const uint8_t *text)
{
    return _mm256_loadu_si256((const __m256i *)text);
}

AVX2 static inline __m256i table_avx2(int i)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)pair_tables[i]));
}

/* Returns a vector that is not zero where a byte is wrong. */
AVX2 static inline __m256i errors_avx2(const uint8_t *text)
{
    const __m256i half = _mm256_set1_epi8(0x0F);
    const __m256i now = load_avx2(text), before = load_avx2(text - 1);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(before, 4), half);
    const __m256i low = _mm256_and_si256(before, half);
    const __m256i next = _mm256_and_si256(_mm256_srli_epi16(now, 4), half);
    const __m256i wrong =
        _mm256_and_si256(_mm256_and_si256(_mm256_shuffle_epi8(table_avx2(0), high),
                                          _mm256_shuffle_epi8(table_avx2(1), low)),
                         _mm256_shuffle_epi8(table_avx2(2), next));
    /* the top bit remains where the byte two before is E0 or more, or three before F0 or more */
    const __m256i third = _mm256_subs_epu8(load_avx2(text - 2), _mm256_set1_epi8(0xE0 - 0x80));
    const __m256i fourth = _mm256_subs_epu8(load_avx2(text - 3), _mm256_set1_epi8(0xF0 - 0x80));
    const __m256i due =
        _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)TWO_MORE));
    return _mm256_xor_si256(wrong, due);
}

AVX2 static inline bool is_ascii_avx2(const uint8_t *text)
{
    __m256i all = _mm256_setzero_si256();
    for (int i = 0; i < 256; i += 32)
        all = _mm256_or_si256(all, load_avx2(text + i));
    return _mm256_movemask_epi8(all) == 0;
}

/* Checks whole vectors from `start` on, which is at least 3 and follows valid characters. There is
 * no error before the returned offset, but a character may cross it. */
AVX2 static size_t check_vectors(const uint8_t *text, size_t n_bytes, size_t start)
{
    size_t i = start;
    while (n_bytes - i >= 64) {
        if (n_bytes - i >= 256 && text[i - 1] < 0x80 && is_ascii_avx2(text + i)) {
            i += 256;
            continue;
        }
        const __m256i errors = _mm256_or_si256(errors_avx2(text + i), errors_avx2(text + i + 32));
        if (!_mm256_testz_si256(errors, errors))
            break;
        i += 64;
    }
    return i;
}
#else
static size_t check_vectors(const uint8_t *text, size_t n_bytes, size_t start)
{
    (void)text, (void)n_bytes;
    return start;
}
#endif

static bool is_ascii_8(const uint8_t *text)
{
    return (le_get64(text) & 0x8080808080808080u) == 0;
}

/* Checks from `start` on, up to the end, the first error, or the first character that starts at
 * `stop` or later. Returns where it stopped. */
static size_t valid_until(const uint8_t *text, size_t n_bytes, size_t start, size_t stop)
{
    size_t i = start;
    while (i < n_bytes && i < stop) {
        uint32_t code_point;
        if (n_bytes - i >= 8 && is_ascii_8(text + i)) {
            i += 8;
            continue;
        }
        const size_t length = utf8_decode(text + i, n_bytes - i, &code_point);
        if (length == 0)
            break;
        i += length;
    }
    return i;
}

size_t utf8_valid_prefix_by(simd_level e, const uint8_t *text, size_t n_bytes)
{
    const simd_level engine = e == SIMD_BEST ? simd_best() : e;
    size_t i = valid_until(text, n_bytes, 0, 3);
    if (i < 3)
        return i;
    if (engine != SIMD_SCALAR)
        i = last_start(text, check_vectors(text, n_bytes, i));
    return valid_until(text, n_bytes, i, n_bytes);
}

size_t utf8_valid_prefix(const uint8_t *text, size_t n_bytes)
{
    return utf8_valid_prefix_by(SIMD_BEST, text, n_bytes);
}
