/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_avx512.h - reads a block into masks with AVX-512. */
#pragma once

#include <immintrin.h>

#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/unicode/unicode.h"

#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi,bmi2")))

TARGET_AVX512 SPLITTER_INLINE __m512i load64(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

TARGET_AVX512 SPLITTER_INLINE __m512i all64(unsigned byte)
{
    return _mm512_set1_epi8((char)byte);
}

TARGET_AVX512 SPLITTER_INLINE __m512i table64(const uint8_t table[16])
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
}

TARGET_AVX512 SPLITTER_INLINE uint64_t is_inner64(__m512i v)
{
    return _mm512_cmplt_epi8_mask(v, all64(0xC0));
}

TARGET_AVX512 SPLITTER_INLINE uint64_t is_between64(__m512i v, unsigned first, unsigned last)
{
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, all64(first)), all64(last - first));
}

/* A block with characters of several bytes. For every byte: the first byte of its character, the
 * second if it has three, and the last. */
typedef struct wide_block {
    __m512i first, second, last;
    uint64_t lead4; /* and none of the others */
    uint64_t four;  /* bytes of characters of four bytes */
} wide_block;

/* Reads characters of several bytes. false: some bytes are not UTF-8. Does not compare first bytes
 * with second bytes. */
TARGET_AVX512 SPLITTER_INLINE bool read_wide_avx512(block_reader *r, const uint8_t *p, __m512i v,
                                                    uint64_t wide, wide_block *w)
{
    __m512i before1 = load64(p - 1), before2 = load64(p - 2), after1 = load64(p + 1);
    __m512i after2 = load64(p + 2);
    uint64_t inner = is_inner64(v), inner1 = is_inner64(after1), inner2 = is_inner64(after2);
    uint64_t lead2 = is_between64(v, 0xC2, 0xDF), lead3 = is_between64(v, 0xE0, 0xEF);
    uint64_t lead4 = is_between64(v, 0xF0, 0xF4);
    uint64_t second2 = next_to(lead2, r->lead2), second3 = next_to(lead3, r->lead3);
    uint64_t third3 = lead3 << 2 | r->lead3 >> 62;
    uint64_t four =
        next_to(lead4, r->lead4) | lead4 << 2 | r->lead4 >> 62 | lead4 << 3 | r->lead4 >> 61;
    bool ok = (wide == (inner | lead2 | lead3 | lead4)) &
              (inner == (second2 | second3 | third3 | four)) &
              (((lead2 | lead3 | lead4) & ~inner1) == 0) & (((lead3 | lead4) & ~inner2) == 0);
    w->first = _mm512_mask_mov_epi8(v, second2 | second3, before1);
    w->first = _mm512_mask_mov_epi8(w->first, third3, before2);
    w->second = _mm512_maskz_mov_epi8(lead3, after1);
    w->second = _mm512_mask_mov_epi8(w->second, second3, v);
    w->second = _mm512_mask_mov_epi8(w->second, third3, before1);
    w->last = _mm512_mask_mov_epi8(v, lead2 | second3, after1);
    w->last = _mm512_mask_mov_epi8(w->last, lead3, after2);
    w->lead4 = lead4;
    w->four = lead4 | four;
    r->lead2 = lead2;
    r->lead3 = lead3;
    return ok;
}

/* Characters of two and three bytes: at a time, all that differ only in the last byte. */
TARGET_AVX512 SPLITTER_INLINE bool paint_pages_avx512(const uint8_t *p, uint64_t left,
                                                      unsigned wanted, const wide_block *w,
                                                      __m512i *classes)
{
    while (left != 0) {
        const uint8_t *lead = p + lowest(left);
        while (*lead < 0xC0) /* of the block before */
            lead--;
        unsigned second = *lead < 0xE0 ? 0 : lead[1];
        const uint8_t *table = text_page(*lead, second, wanted);
        if (!table)
            return false;
        uint64_t same = _mm512_cmpeq_epi8_mask(w->first, all64(*lead));
        same = _mm512_mask_cmpeq_epi8_mask(same, w->second, all64(second));
        *classes = _mm512_mask_permutexvar_epi8(*classes, same, w->last, load64(table));
        left &= ~same;
    }
    return true;
}

TARGET_AVX512 SPLITTER_INLINE uint64_t in_range_avx512(const wide_block *w, const uint8_t from[16],
                                                       const uint8_t to[16])
{
    __m512i low = _mm512_and_si512(w->first, all64(0x0F));
    uint64_t above = _mm512_cmpge_epu8_mask(w->second, _mm512_shuffle_epi8(table64(from), low));
    return _mm512_mask_cmple_epu8_mask(above, w->second, _mm512_shuffle_epi8(table64(to), low));
}

TARGET_AVX512 SPLITTER_INLINE uint64_t is_cjk_avx512(const wide_block *w)
{
    uint64_t after = _mm512_cmpeq_epi8_mask(w->first, all64(0xE9)); /* 9FA6 to 9FBF */
    after = _mm512_mask_cmpeq_epi8_mask(after, w->second, all64(0xBE));
    after = _mm512_mask_cmpgt_epu8_mask(after, w->last, all64(0xA5));
    return in_range_avx512(w, cjk_from, cjk_to) & ~after;
}

TARGET_AVX512 SPLITTER_INLINE __m512i classify_wide_avx512(block_reader *r, size_t at,
                                                           unsigned wanted, __m512i classes,
                                                           block *b)
{
    const uint8_t *p = b->bytes;
    wide_block w;
    bool ok = read_wide_avx512(r, p, load64(p), b->wide, &w);
    uint64_t letters = in_range_avx512(&w, all_letters_from, all_letters_to);
    classes = _mm512_mask_mov_epi8(classes, letters,
                                   all64(wanted & WANT_OLD_DEEPSEEK ? CLASS_OTHER : CLASS_LETTER));
    ok = ok && paint_pages_avx512(p, b->wide & ~(letters | w.four), wanted, &w, &classes);
    if (ok && w.four) {
        uint8_t buffer[64 + FOUR_MARGIN * 2];
        _mm512_storeu_si512(buffer + FOUR_MARGIN, classes);
        ok = block_reader_classify_fours(r, p, wanted, w.lead4, buffer);
        classes = load64(buffer + FOUR_MARGIN);
    }
    if (ok) {
        r->lead4 = w.lead4;
        b->lead &= ~is_inner64(load64(p));
        b->cjk = wanted & WANT_DEEPSEEK ? is_cjk_avx512(&w) : 0;
        if (wanted & WANT_HAN)
            b->cjk = letters & _mm512_cmplt_epu8_mask(w.first, all64(0xEA));
        return classes;
    }
    classified_block classified;
    block_reader_classify(r, at, wanted, &classified);
    b->lead = classified.lead;
    b->cjk = classified.cjk;
    return load64(classified.classes);
}

TARGET_AVX512 SPLITTER_INLINE void classify_avx512(block_reader *r, size_t at, unsigned wanted,
                                                   block *b)
{
    const uint8_t *p = block_reader_block(r, at);
    const uint8_t *ascii = class_page(0, wanted);
    __m512i v = load64(p);
    b->bytes = p;
    b->wide = _mm512_movepi8_mask(v);
    b->lead = b->exists;
    b->cjk = b->upper = b->caseless = b->mark = b->visible = 0;
    b->punctuation = b->high = 0;
    __m512i classes =
        _mm512_maskz_permutex2var_epi8(~b->wide, load64(ascii), v, load64(ascii + 64));
    if (b->wide != 0)
        classes = classify_wide_avx512(r, at, wanted, classes, b);
    else
        r->lead2 = r->lead3 = r->lead4 = 0;
    if (wanted & WANT_HIGH)
        b->high = _mm512_cmpge_epu8_mask(v, all64(0xE2)) & b->lead;
    classes = _mm512_shuffle_epi8(table64(class_bits), classes);
    b->letter = _mm512_test_epi8_mask(classes, all64(letter_bits(wanted)));
    b->number = _mm512_test_epi8_mask(classes, all64(16));
    b->blank = _mm512_test_epi8_mask(classes, all64(blank_bits(wanted)));
    b->newline = _mm512_cmpeq_epi8_mask(v, all64('\n')) | _mm512_cmpeq_epi8_mask(v, all64('\r'));
    b->space = _mm512_cmpeq_epi8_mask(v, all64(' '));
    b->apostrophe = _mm512_cmpeq_epi8_mask(v, all64('\''));
    b->slash = 0;
    if (wanted & WANT_CASE) {
        b->upper = _mm512_test_epi8_mask(classes, all64(1));
        b->caseless = _mm512_test_epi8_mask(classes, all64(4));
        b->mark = _mm512_test_epi8_mask(classes, all64(8));
        b->slash = _mm512_cmpeq_epi8_mask(v, all64('/'));
    }
    if (wanted & WANT_DEEPSEEK)
        b->visible = _mm512_test_epi8_mask(classes, all64(64 | 128));
    if (wanted & WANT_WORDS)
        b->punctuation = _mm512_test_epi8_mask(classes, all64(64 | 8));
    if (wanted & WANT_PUNCTUATION)
        b->punctuation = _mm512_test_epi8_mask(classes, all64(64));
    if (wanted & WANT_OLD_DEEPSEEK)
        b->punctuation = _mm512_test_epi8_mask(classes, all64(64 | 8 | 1));
}
