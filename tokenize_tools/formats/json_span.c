/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/json_span.h"

#include <string.h>

#include "base/json_parts.h"
#include "base/le.h"
#include "base/utf8.h"

#define INLINE static inline __attribute__((always_inline))

/* The unit of the \uXXXX at `text`; above FFFF if there is none, or it does not fit into
 * n_bytes. */
INLINE uint32_t escaped_unit(const uint8_t *text, size_t n_bytes)
{
    if (n_bytes < 6 || text[0] != '\\' || text[1] != 'u')
        return UINT32_MAX;
    uint32_t unit = 0;
    for (int i = 2; i < 6; i++)
        unit = unit << 4 | (uint32_t)(json_hex_digits[text[i]] - 1); /* not a digit: all ones */
    return unit;
}

/* Decodes the escape at `text`; {0, 0}: left to the caller of decode. */
INLINE json_span_moved decode_escape(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    const json_span_moved none = {0, 0};
    if (n_bytes < 2)
        return none;
    if (json_simple_escapes[text[1]]) {
        out[0] = json_simple_escapes[text[1]];
        return (json_span_moved){2, 1};
    }
    uint32_t unit = escaped_unit(text, n_bytes);
    if (unit > 0xffff)
        return none;
    if (unit < 0xd800 || unit > 0xdfff)
        return (json_span_moved){6, utf8_encode(unit, out)};
    uint32_t low = escaped_unit(text + 6, n_bytes - 6);
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return none;
    return (json_span_moved){12, utf8_encode(json_join_surrogates(unit, low), out)};
}

/* `copy` copies the bytes before the first special byte and returns their number; it may write
 * more, up to out[n_bytes]. No escape is shorter than its text, so this overwrites nothing that was
 * decoded. */
INLINE json_span_moved decode(const uint8_t *text, size_t n_bytes, uint8_t *out,
                              size_t (*copy)(const uint8_t *, size_t, uint8_t *))
{
    json_span_moved all = {0, 0}, one;
    do {
        size_t n_copied = copy(text + all.read, n_bytes - all.read, out + all.written);
        all.read += n_copied;
        all.written += n_copied;
        do {
            if (all.read == n_bytes || text[all.read] != '\\')
                return all;
            one = decode_escape(text + all.read, n_bytes - all.read, out + all.written);
            all.read += one.read;
            all.written += one.written;
        } while (one.read && all.read < n_bytes && text[all.read] == '\\');
    } while (one.read);
    return all;
}

/* ---- Scalar, for every machine ---- */

INLINE bool is_special(uint8_t c)
{
    return c == '"' || c == '\\' || c < 0x20;
}

/* The lowest bit that is set belongs to the first special byte of eight; later ones may be
 * wrong. */
INLINE uint64_t special_bits(uint64_t bytes)
{
    const uint64_t ones = UINT64_MAX / 255;
    const uint64_t quote = bytes ^ ones * '"', backslash = bytes ^ ones * '\\';
    return (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
            ((bytes - ones * 0x20) & ~bytes)) &
           ones * 0x80;
}

/* Also copies to out, unless it is NULL. */
INLINE size_t pass_usual(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    size_t i = 0;
    for (; n_bytes - i >= 8; i += 8) {
        const uint64_t bytes = le_get64(text + i), special = special_bits(bytes);
        if (out)
            le_put64(out + i, bytes);
        if (special)
            return i + (size_t)__builtin_ctzll(special) / 8;
    }
    for (; i < n_bytes && !is_special(text[i]); i++)
        if (out)
            out[i] = text[i];
    return i;
}

static size_t find_scalar(const uint8_t *text, size_t n_bytes)
{
    return pass_usual(text, n_bytes, NULL);
}

static size_t copy_scalar(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    return pass_usual(text, n_bytes, out);
}

static json_span_moved decode_scalar(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    return decode(text, n_bytes, out, copy_scalar);
}

static const json_span_calls scalar_calls = {find_scalar, decode_scalar};

/* ---- x86 ---- */

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2")))

AVX2 static inline uint32_t specials_avx2(__m256i v)
{
    const __m256i control = _mm256_set1_epi8(0x1f);
    __m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
    __m256i backslash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));
    __m256i low = _mm256_cmpeq_epi8(_mm256_min_epu8(v, control), v);
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, backslash), low));
}

AVX2 static size_t find_avx2(const uint8_t *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += 32) {
        uint32_t specials = specials_avx2(_mm256_loadu_si256((const __m256i *)(text + i)));
        if (specials) {
            size_t at = i + _tzcnt_u32(specials);
            return at < n_bytes ? at : n_bytes;
        }
    }
    return n_bytes;
}

AVX2 static inline size_t copy_avx2(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    size_t i = 0;
    for (; n_bytes - i >= 32; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(text + i));
        uint32_t specials = specials_avx2(v);
        _mm256_storeu_si256((__m256i *)(out + i), v);
        if (specials)
            return i + _tzcnt_u32(specials);
    }
    uint32_t specials = specials_avx2(_mm256_loadu_si256((const __m256i *)(text + i)));
    size_t n_rest = _tzcnt_u32(specials); /* 32 if there is none */
    if (n_rest > n_bytes - i)
        n_rest = n_bytes - i;
    memcpy(out + i, text + i, n_rest);
    return i + n_rest;
}

AVX2 static json_span_moved decode_avx2(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    return decode(text, n_bytes, out, copy_avx2);
}

static const json_span_calls avx2_calls = {find_avx2, decode_avx2};
#else
#define avx2_calls scalar_calls
#endif

const json_span_calls *json_span_engine(simd_level level)
{
    return level != SIMD_SCALAR && simd_works(SIMD_AVX2) ? &avx2_calls : &scalar_calls;
}
