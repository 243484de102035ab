/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_avx2.h - reads a block into masks with AVX2. */
#pragma once

#include <immintrin.h>
#include <string.h>

#include "base/blend.h"
#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/unicode/unicode.h"

#define TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2")))

TARGET_AVX2 SPLITTER_INLINE __m256i load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

TARGET_AVX2 SPLITTER_INLINE __m256i all32(unsigned byte)
{
    return _mm256_set1_epi8((char)byte);
}

TARGET_AVX2 SPLITTER_INLINE __m256i table32(const uint8_t table[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
}

TARGET_AVX2 SPLITTER_INLINE __m256i is32(__m256i v, unsigned byte)
{
    return _mm256_cmpeq_epi8(v, all32(byte));
}

TARGET_AVX2 SPLITTER_INLINE __m256i is_between32(__m256i v, unsigned first, unsigned last)
{
    __m256i offset = _mm256_sub_epi8(v, all32(first));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(offset, all32(last - first)), offset);
}

TARGET_AVX2 SPLITTER_INLINE __m256i either(__m256i a, __m256i b)
{
    return _mm256_or_si256(a, b);
}

TARGET_AVX2 SPLITTER_INLINE __m256i both(__m256i a, __m256i b)
{
    return _mm256_and_si256(a, b);
}

/* 64 bytes; a mask of them comes from the highest bit of each. */
typedef struct bytes64 {
    __m256i low, high;
} bytes64;

TARGET_AVX2 SPLITTER_INLINE uint64_t mask_of(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)_mm256_movemask_epi8(high) << 32;
}

/* ---- Characters of several bytes ---- */

typedef struct wide_masks {
    uint64_t inner, lead2, lead3, lead4;
    uint64_t four; /* bytes of characters of four bytes */
} wide_masks;

/* Reads characters of several bytes. false: some bytes are not UTF-8. Does not compare first bytes
 * with second bytes. */
TARGET_AVX2 SPLITTER_INLINE bool read_wide_avx2(const block_reader *r, const uint8_t *p,
                                                uint64_t wide, wide_masks *w)
{
    __m256i low = load32(p), high = load32(p + 32);
    uint64_t lead = mask_of(is_between32(low, 0xC2, 0xF4), is_between32(high, 0xC2, 0xF4));
    uint64_t lead34 = mask_of(is_between32(low, 0xE0, 0xF4), is_between32(high, 0xE0, 0xF4));
    w->inner = mask_of(is_between32(low, 0x80, 0xBF), is_between32(high, 0x80, 0xBF));
    w->lead4 = mask_of(is_between32(low, 0xF0, 0xF4), is_between32(high, 0xF0, 0xF4));
    w->lead2 = lead & ~lead34;
    w->lead3 = lead34 & ~w->lead4;
    uint64_t lead34_before = r->lead3 | r->lead4;
    uint64_t owned = next_to(lead, r->lead2 | lead34_before) | lead34 << 2 | lead34_before >> 62;
    uint64_t inner_after =
        (p[64] >= 0x80 && p[64] < 0xC0) | (uint64_t)(p[65] >= 0x80 && p[65] < 0xC0) << 1;
    w->four = next_to(w->lead4, r->lead4) | w->lead4 << 2 | r->lead4 >> 62 | w->lead4 << 3 |
              r->lead4 >> 61;
    owned |= w->four;
    w->four |= w->lead4;
    return wide == (w->inner | lead) && w->inner == owned &&
           (lead & ~ahead(w->inner, inner_after, 1)) == 0 &&
           (lead34 & ~ahead(w->inner, inner_after, 2)) == 0;
}

/* For every byte of half a block: the first byte of its character, the second if it has three, and
 * the last. */
typedef struct wide_half {
    __m256i first, second, last, classes;
} wide_half;

TARGET_AVX2 SPLITTER_INLINE __m256i is_inner32(__m256i v)
{
    return _mm256_cmpgt_epi8(all32(0xC0), v);
}

TARGET_AVX2 SPLITTER_INLINE __m256i is_lead2(__m256i v)
{
    return _mm256_cmpeq_epi8(both(v, all32(0xE0)), all32(0xC0));
}

TARGET_AVX2 SPLITTER_INLINE __m256i is_lead3(__m256i v)
{
    return _mm256_cmpeq_epi8(both(v, all32(0xF0)), all32(0xE0));
}

TARGET_AVX2 SPLITTER_INLINE __m256i in_range_avx2(const wide_half *h, const uint8_t from[16],
                                                  const uint8_t to[16])
{
    __m256i low = both(h->first, all32(0x0F)), second = h->second;
    __m256i from_there = _mm256_max_epu8(second, _mm256_shuffle_epi8(table32(from), low));
    __m256i up_to_there = _mm256_min_epu8(second, _mm256_shuffle_epi8(table32(to), low));
    return both(_mm256_cmpeq_epi8(from_there, second), _mm256_cmpeq_epi8(up_to_there, second));
}

TARGET_AVX2 SPLITTER_INLINE void begin_half(const uint8_t *p, wide_half *h)
{
    __m256i v = load32(p), before1 = load32(p - 1), before2 = load32(p - 2), after1 = load32(p + 1);
    /* The bytes before the block may be first bytes that no inner bytes follow. */
    __m256i inner = is_inner32(v),
            third3 = both(inner, both(is_inner32(before1), is_lead3(before2)));
    __m256i lead2 = is_lead2(v), lead3 = is_lead3(v), second3 = both(inner, is_lead3(before1));
    __m256i second = either(both(inner, is_lead2(before1)), second3);
    h->first = blend_bytes(blend_bytes(v, before1, second), before2, third3);
    h->second = either(both(lead3, after1), either(both(second3, v), both(third3, before1)));
    h->last = blend_bytes(v, after1, either(lead2, second3));
    h->last = blend_bytes(h->last, load32(p + 2), lead3);
    h->classes = both(in_range_avx2(h, all_letters_from, all_letters_to), all32(CLASS_LETTER));
}

TARGET_AVX2 SPLITTER_INLINE __m256i is_cjk_avx2(const wide_half *h)
{
    __m256i after = both(is32(h->first, 0xE9), is32(h->second, 0xBE)); /* 9FA6 to 9FBF */
    after = both(after, is_between32(h->last, 0xA6, 0xBF));
    return _mm256_andnot_si256(after, in_range_avx2(h, cjk_from, cjk_to));
}

/* A page is the 64 classes of the characters that share all but their last byte. */
typedef struct page {
    __m256i quarters[4];
    __m256i first, second;
} page;

/* Sets the classes of the characters of the page; returns which bytes these are. */
TARGET_AVX2 SPLITTER_INLINE __m256i paint_page(wide_half *h, const page *t)
{
    __m256i of_page =
        both(_mm256_cmpeq_epi8(h->first, t->first), _mm256_cmpeq_epi8(h->second, t->second));
    __m256i index = both(h->last, all32(0x0F));
    __m256i bit4 = _mm256_slli_epi16(h->last, 3), bit5 = _mm256_slli_epi16(h->last, 2);
    __m256i low = blend_bytes(_mm256_shuffle_epi8(t->quarters[0], index),
                              _mm256_shuffle_epi8(t->quarters[1], index), bit4);
    __m256i high = blend_bytes(_mm256_shuffle_epi8(t->quarters[2], index),
                               _mm256_shuffle_epi8(t->quarters[3], index), bit4);
    __m256i classes = blend_bytes(low, high, bit5);
    h->classes = blend_bytes(h->classes, classes, of_page);
    return of_page;
}

TARGET_AVX2 SPLITTER_INLINE bool paint_pages_avx2(const uint8_t *p, uint64_t left, unsigned wanted,
                                                  wide_half *low, wide_half *high)
{
    while (left != 0) {
        const uint8_t *lead = p + lowest(left);
        while (*lead < 0xC0) /* of the block before */
            lead--;
        unsigned second = *lead < 0xE0 ? 0 : lead[1];
        const uint8_t *table = text_page(*lead, second, wanted);
        if (!table)
            return false;
        page t = {{table32(table), table32(table + 16), table32(table + 32), table32(table + 48)},
                  all32(*lead),
                  all32(second)};
        left &= ~mask_of(paint_page(low, &t), paint_page(high, &t));
    }
    return true;
}

/* Returns the classes of all bytes of 0x80 and more. */
TARGET_AVX2 SPLITTER_INLINE bytes64 classify_wide_avx2(block_reader *r, size_t at, unsigned wanted,
                                                       block *b)
{
    const uint8_t *p = b->bytes;
    wide_masks w;
    wide_half low, high;
    classified_block classified;
    begin_half(p, &low);
    begin_half(p + 32, &high);
    bool ok = read_wide_avx2(r, p, b->wide, &w);
    uint64_t letters = mask_of(_mm256_cmpeq_epi8(low.classes, all32(CLASS_LETTER)),
                               _mm256_cmpeq_epi8(high.classes, all32(CLASS_LETTER)));
    if (wanted & WANT_OLD_DEEPSEEK)
        low.classes = high.classes = all32(CLASS_OTHER);
    ok = ok && paint_pages_avx2(p, b->wide & ~(letters | w.four), wanted, &low, &high);
    if (ok && w.four) {
        uint8_t buffer[64 + FOUR_MARGIN * 2];
        _mm256_storeu_si256((__m256i *)(buffer + FOUR_MARGIN), low.classes);
        _mm256_storeu_si256((__m256i *)(buffer + FOUR_MARGIN + 32), high.classes);
        ok = block_reader_classify_fours(r, p, wanted, w.lead4, buffer);
        low.classes = load32(buffer + FOUR_MARGIN);
        high.classes = load32(buffer + FOUR_MARGIN + 32);
    }
    if (ok) {
        r->lead2 = w.lead2;
        r->lead3 = w.lead3;
        r->lead4 = w.lead4;
        b->lead &= ~w.inner;
        if (wanted & WANT_DEEPSEEK)
            b->cjk = mask_of(is_cjk_avx2(&low), is_cjk_avx2(&high));
        if (wanted & WANT_HAN)
            b->cjk = letters & mask_of(is_between32(low.first, 0xE3, 0xE9),
                                       is_between32(high.first, 0xE3, 0xE9));
        return (bytes64){low.classes, high.classes};
    }
    block_reader_classify(r, at, wanted, &classified);
    b->lead = classified.lead;
    b->cjk = classified.cjk;
    __m256i ascii_low = _mm256_cmpgt_epi8(load32(p), all32(0xFF));
    __m256i ascii_high = _mm256_cmpgt_epi8(load32(p + 32), all32(0xFF));
    return (bytes64){_mm256_andnot_si256(ascii_low, load32(classified.classes)),
                     _mm256_andnot_si256(ascii_high, load32(classified.classes + 32))};
}

TARGET_AVX2 SPLITTER_INLINE uint64_t any_of(bytes64 v, unsigned bits)
{
    __m256i low = both(v.low, all32(bits)), high = both(v.high, all32(bits));
    return ~mask_of(is32(low, 0), is32(high, 0));
}

/* Adds the bytes of 0x80 and more to masks that have only ASCII. */
TARGET_AVX2 SPLITTER_INLINE void add_wide(block_reader *r, size_t at, unsigned wanted, block *b)
{
    bytes64 classes = classify_wide_avx2(r, at, wanted, b);
    if (wanted & WANT_HIGH)
        b->high = b->lead & mask_of(is_between32(load32(b->bytes), 0xE2, 0xFF),
                                    is_between32(load32(b->bytes + 32), 0xE2, 0xFF));
    classes.low = _mm256_shuffle_epi8(table32(class_bits), classes.low);
    classes.high = _mm256_shuffle_epi8(table32(class_bits), classes.high);
    b->letter |= any_of(classes, letter_bits(wanted));
    b->number |= any_of(classes, 16);
    b->blank |= any_of(classes, blank_bits(wanted));
    if (wanted & WANT_CASE) {
        b->upper |= any_of(classes, 1);
        b->caseless = any_of(classes, 4);
        b->mark = any_of(classes, 8);
    }
    if (wanted & WANT_DEEPSEEK)
        b->visible |= any_of(classes, 64 | 128);
    if (wanted & WANT_WORDS)
        b->punctuation |= any_of(classes, 64 | 8);
    if (wanted & WANT_PUNCTUATION)
        b->punctuation |= any_of(classes, 64);
    if (wanted & WANT_OLD_DEEPSEEK)
        b->punctuation |= any_of(classes, 64 | 8 | 1);
}

/* ---- ASCII ---- */

/* ASCII's symbols: $+<=>^`|~ */
TARGET_AVX2 SPLITTER_INLINE __m256i is_symbol32(__m256i v)
{
    __m256i found = either(either(is32(v, '$'), is32(v, '+')), is_between32(v, '<', '>'));
    found = either(found, either(is32(v, '^'), is32(v, '`')));
    return either(found, either(is32(v, '|'), is32(v, '~')));
}

TARGET_AVX2 SPLITTER_INLINE void classify_avx2(block_reader *r, size_t at, unsigned wanted,
                                               block *b)
{
    const uint8_t *p = block_reader_block(r, at);
    __m256i low = load32(p), high = load32(p + 32);
    __m256i fold_low = either(low, all32(0x20)), fold_high = either(high, all32(0x20));
    __m256i space_low = is32(low, ' '), space_high = is32(high, ' ');
    b->bytes = p;
    b->wide = mask_of(low, high);
    b->lead = b->exists;
    b->letter = mask_of(is_between32(fold_low, 'a', 'z'), is_between32(fold_high, 'a', 'z'));
    b->number = mask_of(is_between32(low, '0', '9'), is_between32(high, '0', '9'));
    b->space = mask_of(space_low, space_high);
    b->blank = b->space | mask_of(is_between32(low, '\t', '\r'), is_between32(high, '\t', '\r'));
    b->newline = mask_of(either(is32(low, '\n'), is32(low, '\r')),
                         either(is32(high, '\n'), is32(high, '\r')));
    b->apostrophe = mask_of(is32(low, '\''), is32(high, '\''));
    b->upper = b->caseless = b->mark = b->slash = b->visible = b->cjk = 0;
    b->punctuation = b->high = 0;
    if (wanted & WANT_CASE) {
        b->upper = mask_of(is_between32(low, 'A', 'Z'), is_between32(high, 'A', 'Z'));
        b->slash = mask_of(is32(low, '/'), is32(high, '/'));
    }
    if (wanted & (WANT_DEEPSEEK | WANT_WORDS | WANT_PUNCTUATION)) {
        b->visible = mask_of(is_between32(low, '!', '~'), is_between32(high, '!', '~'));
        b->visible &= ~(b->letter | b->number);
        b->punctuation = b->visible;
    }
    if (wanted & WANT_PUNCTUATION)
        b->punctuation &= ~mask_of(is_symbol32(low), is_symbol32(high));
    if (wanted & WANT_OLD_DEEPSEEK)
        b->punctuation = mask_of(is_between32(low, '!', '/'), is_between32(high, '!', '/')) |
                         mask_of(is_between32(low, ':', '~'), is_between32(high, ':', '~'));
    if (wanted & WANT_WORDS)
        b->letter |= b->number | mask_of(is32(low, '_'), is32(high, '_'));
    if (b->wide != 0)
        add_wide(r, at, wanted, b);
    else
        r->lead2 = r->lead3 = r->lead4 = 0;
}
