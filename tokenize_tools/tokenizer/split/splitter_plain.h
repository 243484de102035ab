/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_plain.h - reads a block into masks in plain C, for processors without AVX2.
 *
 * Compilers make vectors of its loops. Characters of several bytes are left to the scalar
 * decoder. */
#pragma once

#include "base/le.h"
#include "tokenizer/split/splitter_algebra.h"

/* The highest bit of the product has bit i of a byte from byte i. */
SPLITTER_INLINE uint64_t mask_of_plain(const uint8_t is[64])
{
    uint64_t mask = 0;
    for (unsigned k = 0; k < 8; k++) {
        const uint64_t bits = le_get64(is + 8 * k) & 0x8040201008040201;
        mask |= (bits * 0x0101010101010101 >> 56) << 8 * k;
    }
    return mask;
}

SPLITTER_INLINE uint64_t between_plain(const uint8_t *p, unsigned first, unsigned last)
{
    uint8_t is[64];
    for (unsigned i = 0; i < 64; i++)
        is[i] = (uint8_t)(p[i] - first) <= last - first ? 0xFF : 0;
    return mask_of_plain(is);
}

SPLITTER_INLINE uint64_t equal_plain(const uint8_t *p, unsigned byte)
{
    return between_plain(p, byte, byte);
}

/* The bytes of 0x80 and more whose class has its bit among `bits`, as letter_bits() has it. */
SPLITTER_INLINE uint64_t any_of_plain(const classified_block *classified, uint64_t wide,
                                      unsigned bits)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i++)
        mask |= (uint64_t)((class_bits[classified->classes[i]] & bits) != 0) << i;
    return mask & wide;
}

/* Adds the bytes of 0x80 and more to masks that have only ASCII. */
SPLITTER_INLINE void add_wide_plain(block_reader *r, size_t at, unsigned wanted, block *b)
{
    classified_block c;
    block_reader_classify(r, at, wanted, &c);
    b->lead = c.lead;
    b->cjk = c.cjk;
    if (wanted & WANT_HIGH)
        b->high = c.lead & between_plain(b->bytes, 0xE2, 0xFF);
    b->letter |= any_of_plain(&c, b->wide, letter_bits(wanted));
    b->number |= any_of_plain(&c, b->wide, 16);
    b->blank |= any_of_plain(&c, b->wide, blank_bits(wanted));
    if (wanted & WANT_CASE) {
        b->upper |= any_of_plain(&c, b->wide, 1);
        b->caseless = any_of_plain(&c, b->wide, 4);
        b->mark = any_of_plain(&c, b->wide, 8);
    }
    if (wanted & WANT_DEEPSEEK)
        b->visible |= any_of_plain(&c, b->wide, 64 | 128);
    if (wanted & WANT_WORDS)
        b->punctuation |= any_of_plain(&c, b->wide, 64 | 8);
    if (wanted & WANT_PUNCTUATION)
        b->punctuation |= any_of_plain(&c, b->wide, 64);
    if (wanted & WANT_OLD_DEEPSEEK)
        b->punctuation |= any_of_plain(&c, b->wide, 64 | 8 | 1);
}

SPLITTER_INLINE void classify_blocks(block_reader *r, size_t at, unsigned wanted, block *b)
{
    const uint8_t *p = block_reader_block(r, at);
    const uint64_t exists = b->exists, upper = between_plain(p, 'A', 'Z');
    *b = (block){.bytes = p, .exists = exists, .lead = exists};
    b->wide = between_plain(p, 0x80, 0xFF);
    b->letter = upper | between_plain(p, 'a', 'z');
    b->number = between_plain(p, '0', '9');
    b->space = equal_plain(p, ' ');
    b->blank = b->space | between_plain(p, '\t', '\r');
    b->newline = equal_plain(p, '\n') | equal_plain(p, '\r');
    b->apostrophe = equal_plain(p, '\'');
    if (wanted & WANT_CASE) {
        b->upper = upper;
        b->slash = equal_plain(p, '/');
    }
    if (wanted & (WANT_DEEPSEEK | WANT_WORDS | WANT_PUNCTUATION))
        b->visible = b->punctuation = between_plain(p, '!', '~') & ~(b->letter | b->number);
    if (wanted & WANT_PUNCTUATION) /* ASCII's symbols: $+<=>^`|~ */
        b->punctuation &= ~(equal_plain(p, '$') | equal_plain(p, '+') | between_plain(p, '<', '>') |
                            equal_plain(p, '^') | equal_plain(p, '`') | equal_plain(p, '|') |
                            equal_plain(p, '~'));
    if (wanted & WANT_OLD_DEEPSEEK)
        b->punctuation = between_plain(p, '!', '/') | between_plain(p, ':', '~');
    if (wanted & WANT_WORDS)
        b->letter |= b->number | equal_plain(p, '_');
    if (b->wide != 0)
        add_wide_plain(r, at, wanted, b);
    else
        r->lead2 = r->lead3 = r->lead4 = 0;
}
