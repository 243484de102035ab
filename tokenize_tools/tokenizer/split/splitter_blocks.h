/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_blocks.h - what the vector engines share: the text in blocks of 64 bytes, and the walk
 * over them. splitter_algebra.h finds the words of a block.
 *
 * An engine reads a block into masks, one for each class: bit i is set if byte i belongs to a
 * character of that class. All bytes of a character have its bit, so adjacent bytes mean adjacent
 * characters. The algebra sees a block and the one after it, and carries over what it needs of the
 * one before. Two blocks are not enough for a few cases, such as a run of more than 64 blanks that
 * may end with a newline. These are left to the scalar splitter, which splits from the last word
 * until a word starts after the block. */
#ifndef TOKMAP_SPLITTER_BLOCKS_H
#define TOKMAP_SPLITTER_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/unicode/unicode.h"

#define SPLITTER_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(condition) __builtin_expect((condition), 0)

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
    uint64_t punctuation;           /* WANT_FALCON, WANT_WORDS: HF_PUNCTUATION; and others */
    uint64_t high;                  /* WANT_HIGH: first bytes of characters from U+2000 on */
    uint64_t high_digits;           /* WANT_FALCON: bytes that are numeric as characters */
} block;

/* What a pattern needs of a block besides letter, number and blank. */
enum {
    WANT_CASE = 1,
    WANT_MARKS_AS_LETTERS = 2,
    WANT_DEEPSEEK = 4,
    WANT_HF_NUMERIC = 8, /* number is HF_NUMBER */
    WANT_FALCON = 16,
    WANT_WORDS = 32,        /* letter is \w, as unicode_word_pages says */
    WANT_CJK = 64,          /* cjk without the rest of WANT_DEEPSEEK */
    WANT_OLD_CJK = 128,     /* cjk is that of DeepSeek-LLM */
    WANT_PUNCTUATION = 256, /* punctuation is \p{P} */
    WANT_HIGH = 1024,
    WANT_HAN = 2048,        /* cjk is the most frequent Chinese characters */
    WANT_OLD_DEEPSEEK = 512 /* letter, punctuation: the letters and marks of DeepSeek-LLM */
};

/* The classes whose characters are letters or blanks: bit 0 is CLASS_UPPER. */
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

/* Blocks at the ends of the text are read from a copy with zeros around it. */
enum {
    EDGE_BEFORE = 64,
    EDGE_BYTES = 256
};

typedef struct text_reader {
    const uint8_t *text;
    size_t n_bytes;
    /* First bytes of characters of two, three and four bytes in the block before: the highest bits
     * say which of this block's bytes belong to them. */
    uint64_t lead2, lead3, lead4;
    uint8_t edges[2][EDGE_BYTES]; /* a block is used until the one after the next is read */
} text_reader;

/* Of p = text_reader_block(), p[-64] to p[129] can be read; what is not of the text is 0. */
__attribute__((cold)) const uint8_t *text_reader_edge(text_reader *r, size_t at);

SPLITTER_INLINE const uint8_t *text_reader_block(text_reader *r, size_t at)
{
    bool at_edge = at < EDGE_BEFORE || at + 64 + 66 > r->n_bytes;
    return UNLIKELY(at_edge) ? text_reader_edge(r, at) : r->text + at;
}

/* For a block with bytes that are not UTF-8, by the scalar decoder: the class of each byte, which
 * are first bytes, and which belong to Chinese or Japanese characters. Sets r->lead*. */
typedef struct painted_block {
    uint8_t classes[64];
    uint64_t lead, cjk;
} painted_block;
__attribute__((cold)) void text_reader_paint(text_reader *r, size_t at, unsigned wanted,
                                             painted_block *painted);

/* Writes the classes of the characters of four bytes that begin in the block at p, and of one that
 * began before it, to classes[FOUR_MARGIN + byte]; false if they are not UTF-8. */
enum {
    FOUR_MARGIN = 3
};
__attribute__((cold)) bool text_reader_paint_fours(const text_reader *r, const uint8_t *p,
                                                   unsigned wanted, uint64_t lead4,
                                                   uint8_t *classes);

/* Pages of 64 characters in which punctuation differs from HF_PUNCTUATION. */
static inline bool differs_for_falcon(unsigned page)
{
    return page == 0x61D >> 6 || page == 0x9FD >> 6 || page == 0xA76 >> 6 || page == 0xC77 >> 6 ||
           page == 0xC84 >> 6 || page == 0x166D >> 6 || page == 0x1B4E >> 6 || page == 0x2E43 >> 6;
}

/* The classes of the 64 characters that differ only in their last byte. `second` is 0 for
 * characters of two bytes. NULL: they are surrogates or overlong, or are looked up one by one. */
SPLITTER_INLINE const uint8_t *text_page(unsigned first, unsigned second, unsigned wanted)
{
    unsigned page = second == 0 ? first & 0x1F : (first & 0x0F) << 6 | (second & 0x3F);
    if (second != 0 && (page < 0x800 >> 6 || (page >= 0xD800 >> 6 && page < 0xE000 >> 6)))
        return NULL;
    if (wanted & WANT_WORDS)
        return unicode_word_pages[unicode_word_index[page >> 1]] + (page & 1) * 64;
    if (wanted & WANT_OLD_DEEPSEEK)
        return unicode_deepseek_pages[unicode_deepseek_index[page >> 1]] + (page & 1) * 64;
    if (wanted & WANT_FALCON && differs_for_falcon(page))
        return NULL;
    return unicode_class_pages[unicode_class_index[page >> 1]] + (page & 1) * 64;
}

/* For characters of three bytes, by the low half of the first byte: the range of second bytes in
 * which all are CLASS_LETTER, as most Chinese and Korean characters are; and the ranges of
 * DeepSeek's CJK, new and old, which end inside the second byte of U+9FA5. */
extern const uint8_t all_letters_from[16], all_letters_to[16];
extern const uint8_t cjk_from[16], cjk_to[16], old_cjk_from[16], old_cjk_to[16];

/* ---- The walk ---- */

/* What the algebra keeps of the block before: masks, of which the highest bit matters. */
typedef struct carry {
    uint64_t letter, number, blank, newline, space, cjk, visible, punctuation, high_digits;
    uint64_t other;       /* characters that are neither letter, number nor blank */
    uint64_t other_first; /* all bytes of those that start a word */
    uint64_t absorbed;    /* other_first and blanks: what a word of letters may start with */
    uint64_t tail;        /* newlines (and slashes) that end a word of others */
    uint64_t lower_word;  /* letters of a word from its first lower case letter on */
    uint64_t caseless;
    uint64_t mark_as_other; /* marks inside a word of others */
    uint64_t ascii_word;    /* ASCII letters after punctuation, DeepSeek */
    uint64_t ascii_digits;
    uint64_t found;     /* found_bytes() */
    uint64_t line_ends; /* \r?\n */
    uint64_t youtu[SPLIT_YOUTU_CLASSES + 1];
    uint64_t groups; /* of the block itself: groups of blanks start here */
    uint64_t forced; /* of the block itself: words start here, after a contraction */
    uint64_t joined; /* of the block itself: no word starts here */
    unsigned digits; /* since a group started, if the block ended in one */
    bool undecided;  /* the block is left to the scalar splitter */
} carry;

typedef void classify_function(text_reader *r, size_t at, unsigned wanted, block *b);
/* Where the pieces of the stages before begin: a character there has none before it. */
typedef struct pieces {
    uint64_t begin;       /* first bytes of characters of the block */
    uint64_t begin_after; /* the same of the next block; at least after a blank */
} pieces;

/* Returns where words start; no bits after the end of the text. */
typedef uint64_t algebra_function(carry *c, const block *b, const block *next, const pieces *p);

typedef struct walk {
    const splitter *splitter;
    unsigned stage;
    view view;
    text_reader reader;
    uint64_t *starts;
    size_t n_bytes_by_words, by_words_end; /* of the last walk_by_words() */
} walk;

/* Splits from the last word before the block until a word starts after the block. Returns its
 * place, at most n_bytes; the words before it are in w->starts. */
__attribute__((cold)) size_t walk_by_words(walk *w, size_t at);

SPLITTER_INLINE void block_begin_at(block *b, unsigned offset)
{
    uint64_t keep = ~(uint64_t)0 << offset;
    b->exists &= keep;
    b->lead &= keep;
    b->wide &= keep;
    b->letter &= keep;
    b->number &= keep;
    b->blank &= keep;
    b->newline &= keep;
    b->space &= keep;
    b->apostrophe &= keep;
    b->slash &= keep;
    b->upper &= keep;
    b->caseless &= keep;
    b->mark &= keep;
    b->visible &= keep;
    b->cjk &= keep;
    b->punctuation &= keep;
    b->high_digits &= keep;
    b->high &= keep;
}

SPLITTER_INLINE void walk_read(walk *w, size_t at, unsigned wanted, classify_function *classify,
                               block *b)
{
    size_t n_left = w->reader.n_bytes - at;
    if (at >= w->reader.n_bytes) {
        *b = (block){.bytes = w->reader.edges[0]};
        return;
    }
    b->exists = n_left >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n_left) - 1;
    classify(&w->reader, at, wanted, b);
}

/* A block is split after the next one was read. `first`: no stage comes before. */
SPLITTER_INLINE void walk_blocks(walk *w, unsigned wanted, bool first, classify_function *classify,
                                 algebra_function *algebra)
{
    size_t n_bytes = w->reader.n_bytes, begin = 0;
    carry c = {0};
    block b = {0}, next;
    for (size_t at = 0;; at += 64) { /* of the block that is read */
        walk_read(w, at, wanted, classify, &next);
        if (UNLIKELY(at <= begin)) {
            block_begin_at(&next, begin % 64);
        } else {
            uint64_t *here = &w->starts[at / 64 - 1];
            const pieces p = {.begin = first ? 0 : here[0],
                              .begin_after = first || at >= n_bytes ? 0 : here[1]};
            const uint64_t starts = algebra(&c, &b, &next, &p);
            if (UNLIKELY(c.undecided)) {
                begin = walk_by_words(w, at - 64);
                if (begin == n_bytes)
                    return;
                at = begin / 64 * 64 - 64;
                c = (carry){0};
                w->reader.lead2 = w->reader.lead3 = w->reader.lead4 = 0;
                continue;
            }
            *here |= starts;
        }
        if (at >= n_bytes)
            return;
        b = next;
    }
}

#endif /* TOKMAP_SPLITTER_BLOCKS_H */
