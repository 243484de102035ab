/* splitter_blocks.h - what the vector engines share: the text in blocks of 64 bytes, and the walk
 * over them. The algebra that makes words of a block is in splitter_algebra.h.
 *
 * An engine reads a block into masks, one for each class: bit i says that byte i is of a character
 * of that class. All bytes of a character have its bit, so that neighbours among the bytes are
 * neighbours among the characters. The algebra sees a block together with the one after it and
 * carries what it has to know of the one before. The few things that two blocks do not decide (a
 * run of more than 64 blanks that may hold a newline at its end) it leaves to the scalar splitter,
 * which splits from the last word on until the block is behind it. */
#ifndef TOKMAP_SPLITTER_BLOCKS_H
#define TOKMAP_SPLITTER_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter.h"
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
    uint64_t punctuation;           /* WANT_FALCON: as unicode_hf_punctuation() says */
    uint64_t high_digits;           /* WANT_FALCON: bytes that are numeric as characters */
} block;

/* What an engine has to find out besides letter, number and blank. */
enum {
    WANT_CASE = 1,
    WANT_MARKS_AS_LETTERS = 2,
    WANT_DEEPSEEK = 4,
    WANT_HF_NUMERIC = 8, /* number is what unicode_hf_numeric() says */
    WANT_FALCON = 16
};

/* Blocks at the ends of the text are read from a copy with zeros around it. */
enum {
    EDGE_BEFORE = 64,
    EDGE_BYTES = 256
};

typedef struct text_reader {
    const uint8_t *text;
    size_t n_bytes;
    /* First bytes of characters of two, three and four bytes in the block before: the highest
     * bits tell which of this block's bytes belong to them. */
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

/* The same masks by the scalar decoder, for a block with bytes that are not UTF-8: the class of
 * each byte, and which are first bytes and of Chinese or Japanese characters. Sets r->lead*. */
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

/* Pages of 64 in which punctuation is not that of unicode_hf_punctuation(). */
static inline bool differs_for_falcon(unsigned page)
{
    return page == 0x61D >> 6 || page == 0x9FD >> 6 || page == 0xA76 >> 6 || page == 0xC77 >> 6 ||
           page == 0xC84 >> 6 || page == 0x166D >> 6 || page == 0x1B4E >> 6 || page == 0x2E43 >> 6;
}

/* The classes of the 64 characters that share all bytes but the last: the first, and the second of
 * characters of three bytes, else 0. NULL: they are surrogates, or overlong, or have to be looked
 * at one by one. */
SPLITTER_INLINE const uint8_t *text_page(unsigned first, unsigned second, unsigned wanted)
{
    unsigned page = second == 0 ? first & 0x1F : (first & 0x0F) << 6 | (second & 0x3F);
    if (second != 0 && (page < 0x800 >> 6 || (page >= 0xD800 >> 6 && page < 0xE000 >> 6)))
        return NULL;
    if (wanted & WANT_FALCON && differs_for_falcon(page))
        return NULL;
    return unicode_class_pages[unicode_class_index[page >> 1]] + (page & 1) * 64;
}

/* For characters of three bytes, by the low half of the first byte: the range of the second where
 * all are CLASS_LETTER, as most Chinese and Korean is, and where the range of DeepSeek's second
 * split is, which ends inside the last. */
extern const uint8_t all_letters_from[16], all_letters_to[16];
extern const uint8_t cjk_from[16], cjk_to[16];

/* ---- The walk ---- */

/* What the algebra knows of the block before: masks of which the highest bit counts. */
typedef struct carry {
    uint64_t letter, number, blank, newline, space, cjk, visible, punctuation, high_digits;
    uint64_t other;       /* characters that are neither letter, number nor blank */
    uint64_t other_first; /* all bytes of those among them that a word starts with */
    uint64_t absorbed;    /* other_first and blanks: what a word of letters may begin with */
    uint64_t tail;        /* newlines (and slashes) that end a word of others */
    uint64_t lower_word;  /* where a word has had a lower case letter */
    uint64_t caseless;
    uint64_t mark_as_other; /* marks inside a word of others */
    uint64_t ascii_word;    /* ASCII letters after punctuation, DeepSeek */
    uint64_t ascii_digits;
    uint64_t forced; /* of the block itself: words start here, after a contraction */
    uint64_t joined; /* of the block itself: no word starts here */
    unsigned digits; /* since a group of three began, when the block ended in one */
    bool undecided;  /* the block cannot be decided */
} carry;

typedef void classify_function(text_reader *r, size_t at, unsigned wanted, block *b);
typedef uint64_t algebra_function(carry *c, const block *b, const block *next);

typedef struct walk {
    split_pattern pattern;
    text_reader reader;
    uint64_t *starts;
} walk;

void walk_begin(walk *w, split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts);
/* Splits from the last word before the block on, until a word starts after it. Returns where, at
 * most n_bytes; the words before it are in w->starts. */
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

/* A block is split when the one after it has been read. */
SPLITTER_INLINE void walk_blocks(walk *w, unsigned wanted, classify_function *classify,
                                 algebra_function *algebra)
{
    size_t n_bytes = w->reader.n_bytes, begin = 0;
    carry c = {0};
    block b = {0}, next;
    uint64_t kept = 0; /* words of the block that are known already, all before `begin` */
    w->starts[n_bytes / 64] = 0;
    for (size_t at = 0;; at += 64) { /* of the block that is read */
        walk_read(w, at, wanted, classify, &next);
        if (UNLIKELY(at <= begin)) {
            block_begin_at(&next, begin % 64);
        } else {
            uint64_t starts = algebra(&c, &b, &next);
            if (UNLIKELY(c.undecided)) {
                begin = walk_by_words(w, at - 64);
                if (begin == n_bytes)
                    return;
                at = begin / 64 * 64 - 64;
                kept = w->starts[begin / 64];
                c = (carry){0};
                w->reader.lead2 = w->reader.lead3 = w->reader.lead4 = 0;
                continue;
            }
            w->starts[at / 64 - 1] = (starts & b.exists) | kept;
            kept = 0;
        }
        if (at >= n_bytes)
            return;
        b = next;
    }
}

#endif /* TOKMAP_SPLITTER_BLOCKS_H */
