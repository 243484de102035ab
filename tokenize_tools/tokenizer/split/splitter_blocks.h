/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_blocks.h - what the vector engines share: the text in blocks of 64 bytes, and the walk
 * over them. splitter_algebra.h finds the words of a block.
 *
 * An engine reads a block into masks, one for each class: bit i is set if byte i belongs to a
 * character of that class. All bytes of a character have its bit, so adjacent bytes mean adjacent
 * characters. The algebra sees a block and the one after it, and carries over what it needs of the
 * one before. Two blocks are not enough for a few cases, such as a run of more than 64 blanks that
 * may end with a newline. These are left to the scalar splitter, which splits from the last word
 * until a word of the first stage starts after the block. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/unicode/unicode.h"

#define SPLITTER_INLINE static inline __attribute__((always_inline))

typedef struct block {
    const uint8_t *bytes; /* 3 more can be read; they are 0 after the end of the text */
    uint64_t exists;      /* bytes of the text */
    uint64_t lead;        /* first bytes of characters */
    uint64_t wide;        /* bytes of 0x80 and more */
    uint64_t letter;      /* with the marks, if wanted */
    uint64_t number, blank;
    uint64_t newline, space, apostrophe, slash;
    uint64_t upper, caseless, mark; /* WANT_CASE; caseless: Lm, Lo */
    uint64_t visible, cjk;          /* WANT_DEEPSEEK; visible: P, S */
    uint64_t punctuation;           /* WANT_WORDS: HF_PUNCTUATION; and others */
    uint64_t high;                  /* WANT_HIGH: first bytes of characters from U+2000 on */
} block;

/* What a pattern needs of a block besides letter, number and blank. */
enum {
    WANT_CASE = 1,
    WANT_MARKS_AS_LETTERS = 2,
    WANT_DEEPSEEK = 4,
    WANT_HF_NUMERIC = 8,   /* number is HF_NUMBER */
    WANT_WORDS = 16,       /* letter is \w, as unicode_word_pages says */
    WANT_PUNCTUATION = 32, /* punctuation is \p{P} */
    WANT_HIGH = 64,
    WANT_HAN = 128,         /* cjk is the most frequent Chinese characters */
    WANT_OLD_DEEPSEEK = 256 /* letter, punctuation: the letters and marks of DeepSeek-LLM */
};

/* Returns the classes whose characters are letters or blanks: bit 0 is CLASS_UPPER. */
SPLITTER_INLINE unsigned letter_bits(unsigned wanted)
{
    if (wanted & WANT_WORDS)
        return 1 | 2 | 4 | 8 | 16;
    return wanted & (WANT_MARKS_AS_LETTERS | WANT_DEEPSEEK) ? 1 | 2 | 4 | 8 : 1 | 2 | 4;
}

SPLITTER_INLINE unsigned blank_bits(unsigned wanted)
{
    return wanted & WANT_OLD_DEEPSEEK ? 32 | 8 : 32;
}

/* The bit of a class in letter_bits() and below: one for each, so that one test finds any set of
 * classes. */
static const uint8_t class_bits[16] = {
    [CLASS_UPPER] = 1,   [CLASS_LOWER] = 2,  [CLASS_LETTER] = 4,       [CLASS_MARK] = 8,
    [CLASS_NUMBER] = 16, [CLASS_SPACE] = 32, [CLASS_PUNCTUATION] = 64, [CLASS_SYMBOL] = 128,
};

/* Blocks at the ends of the text are read from a copy with zeros around it. */
enum {
    EDGE_BEFORE = 64,
    EDGE_BYTES = 256
};

typedef struct block_reader {
    const uint8_t *text;
    size_t begin, n_bytes; /* the text before `begin` reads as zeros */
    size_t piece_end;      /* what split_range() keeps */
    /* First bytes of characters of two, three and four bytes in the block before: the highest bits
     * say which of this block's bytes belong to them. */
    uint64_t lead2, lead3, lead4;
    uint8_t edges[2][EDGE_BYTES]; /* a block is used until the one after the next is read */
} block_reader;

/* Returns p, of which p[-64] to p[129] can be read; bytes outside the text are 0. */
__attribute__((cold)) const uint8_t *block_reader_edge(block_reader *r, size_t at);

SPLITTER_INLINE const uint8_t *block_reader_block(block_reader *r, size_t at)
{
    const bool at_edge = at < r->begin + EDGE_BEFORE || at + 64 + 66 > r->n_bytes;
    return __builtin_expect(at_edge, 0) ? block_reader_edge(r, at) : r->text + at;
}

/* A block with bytes that are not UTF-8, by the scalar decoder: the class of each byte, which are
 * first bytes, and which belong to Chinese or Japanese characters. */
typedef struct classified_block {
    uint8_t classes[64];
    uint64_t lead, cjk;
} classified_block;
/* Classifies such a block, and sets r->lead2 to r->lead4. */
__attribute__((cold)) void block_reader_classify(block_reader *r, size_t at, unsigned wanted,
                                                 classified_block *classified);

/* Writes the classes of the characters of four bytes that begin in the block at p, and of one that
 * began before it, to classes[FOUR_MARGIN + byte]; false if they are not UTF-8. */
enum {
    FOUR_MARGIN = 3
};
__attribute__((cold)) bool block_reader_classify_fours(const block_reader *r, const uint8_t *p,
                                                       unsigned wanted, uint64_t lead4,
                                                       uint8_t *classes);

/* Returns the classes of 128 code points. */
SPLITTER_INLINE const uint8_t *class_page(unsigned page, unsigned wanted)
{
    if (wanted & WANT_WORDS)
        return unicode_word_pages[unicode_word_index[page]];
    if (wanted & WANT_OLD_DEEPSEEK)
        return unicode_deepseek_pages[unicode_deepseek_index[page]];
    return unicode_class_pages[unicode_class_index[page]];
}

/* The classes of the 64 characters that differ only in their last byte. `second` is 0 for
 * characters of two bytes. NULL: they are surrogates or overlong. */
SPLITTER_INLINE const uint8_t *text_page(unsigned first, unsigned second, unsigned wanted)
{
    unsigned page = second == 0 ? first & 0x1F : (first & 0x0F) << 6 | (second & 0x3F);
    if (second != 0 && (page < 0x800 >> 6 || (page >= 0xD800 >> 6 && page < 0xE000 >> 6)))
        return NULL;
    return class_page(page >> 1, wanted) + (page & 1) * 64;
}

/* For characters of three bytes, by the low half of the first byte: the range of second bytes in
 * which all are CLASS_LETTER, as most Chinese and Korean characters are; and the range of
 * DeepSeek's CJK, which ends inside the second byte of U+9FA5. */
extern const uint8_t all_letters_from[16], all_letters_to[16], cjk_from[16], cjk_to[16];

/* ---- The walk ---- */

/* What the algebra keeps of the block before: masks, of which the highest bit matters. */
typedef struct carry {
    const struct family *family; /* of the stage */
    split_algebra *words;        /* the same */
    uint64_t letter, number, blank, newline, space, cjk, visible, punctuation;
    uint64_t other;       /* characters that are neither letter, number nor blank */
    uint64_t other_first; /* all bytes of those that start a word */
    uint64_t absorbed;    /* other_first and blanks: what a word of letters may start with */
    uint64_t tail;        /* newlines (and slashes) that end a word of others */
    uint64_t lower_word;  /* letters of a word from its first lower case letter on */
    uint64_t caseless;
    uint64_t mark_as_other; /* marks inside a word of others */
    uint64_t ascii_word;    /* ASCII letters after punctuation, DeepSeek */
    uint64_t found;         /* found_bytes() */
    uint64_t forced;        /* of the block itself: words start here, after a contraction */
    uint64_t joined;        /* of the block itself: no word starts here */
    unsigned digits;        /* since a group started, if the block ended in one */
    bool undecided;         /* the block is left to the scalar splitter */
} carry;

/* Where the pieces of the stages before begin: a character there has none before it. */
typedef struct pieces {
    uint64_t begin;       /* first bytes of characters of the block */
    uint64_t begin_after; /* the same of the next block; at least after a blank */
} pieces;

/* Splits a block that the algebra cannot decide with the scalar splitter: from the last known start
 * of a word to the first one of `stage`, or of the first stage, after the block. Returns where that
 * is. */
__attribute__((cold)) size_t split_undecided(const splitter *s, unsigned stage, block_reader *r,
                                             size_t at, uint64_t *starts);

/* Reads a block, of which b->exists is set. */
typedef void classify_function(block_reader *r, size_t at, unsigned wanted, block *b);

SPLITTER_INLINE void scan_read(block_reader *r, size_t at, unsigned wanted,
                               classify_function *classify, block *b)
{
    if (at >= r->n_bytes) {
        *b = (block){.bytes = r->edges[0]};
        return;
    }
    const size_t n_left = r->n_bytes - at, n_done = at < r->begin ? r->begin - at : 0;
    b->exists = (n_left < 64 ? ((uint64_t)1 << n_left) - 1 : UINT64_MAX) & UINT64_MAX << n_done;
    classify(r, at, wanted, b);
}

/* Does what a split_scanner does. A block is split after the next one was read. `first`: no stage
 * comes before. */
SPLITTER_INLINE size_t scan_blocks(const splitter *s, unsigned stage, block_reader *r, size_t stop,
                                   uint64_t *starts, unsigned wanted, bool first,
                                   classify_function *classify, split_algebra *algebra)
{
    const split_stage *about = s->stages[stage % SPLIT_ALL];
    const carry nothing = {.family = about->family, .words = about->words};
    const size_t n_bytes = r->n_bytes;
    size_t limit = stop < n_bytes ? stop : n_bytes;
    carry c = nothing;
    block blocks[2], *b = &blocks[0], *next = &blocks[1];
    for (size_t at = 0;; at += 64) { /* of the block that is read */
        scan_read(r, at, wanted, classify, next);
        if (__builtin_expect(at > r->begin, 1)) {
            uint64_t *here = &starts[at / 64 - 1];
            const pieces p = {.begin = first ? 0 : here[0],
                              .begin_after = first || at >= n_bytes ? 0 : here[1]};
            const uint64_t found = algebra(&c, b, next, &p);
            if (__builtin_expect(c.undecided, 0)) {
                r->begin = split_undecided(s, stage, r, at - 64, starts);
                if (r->begin >= limit)
                    return split_clear_bit(starts, r->begin);
                r->lead2 = r->lead3 = r->lead4 = 0;
                c = nothing;
                at = r->begin / 64 * 64 - 64;
                continue;
            }
            *here |= found;
        }
        if (__builtin_expect(at >= limit, 0)) {
            const size_t end = at < n_bytes ? split_take_last_start(starts, at) : n_bytes;
            if (end > 0)
                return end;
            limit = n_bytes - at > at ? 2 * at : n_bytes; /* a long word */
        }
        block *last = b;
        b = next;
        next = last;
    }
}
