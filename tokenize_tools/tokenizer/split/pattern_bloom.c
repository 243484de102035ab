/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_bloom.c - BLOOM's expression: a word is everything up to a blank or one of a few
 * punctuation marks. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/split/splitter_scalar.h"

/* `[^(\s|[.,!?\u2026...])]` excludes the blanks, the marks of the inner class, and the parentheses
 * and the bar themselves. */
static bool is_in_word(character c)
{
    static const uint32_t marks[] = {'(',    '|',    ')',    '.',    ',',   '!',   '?',
                                     0x2026, 0x3002, 0xFF0C, 0x3001, 0x964, 0x6D4, 0x60C};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (c.code_point == marks[i])
            return false;
    }
    return c.n_bytes > 0 && !is_of(c, BLANKS);
}

/* ---- The same by masks ---- */

static uint64_t bloom_words(carry *c, const block *b, const block *next, const pieces *p)
{
    uint64_t visible = b->exists & ~b->blank, marks = 0;
    for (uint64_t left = visible & b->lead & ~(b->letter | b->number); left != 0;
         left &= left - 1) {
        const unsigned i = lowest(left);
        character one = {b->bytes[i], CLASS_OTHER, 1};
        if (one.code_point >= 0x80)
            one.n_bytes = (uint8_t)utf8_decode(b->bytes + i, 4, &one.code_point);
        if (one.n_bytes > 0 && !is_in_word(one))
            marks |= bit(i);
    }
    marks |= through(next_to(marks, c->found), b->wide & ~b->lead);
    uint64_t word = visible & ~marks, word_after = next->exists & ~next->blank;
    if (b->space >> 63 && word_after & ~next->letter & 1) { /* it may be a mark */
        character after = {UINT32_MAX, CLASS_OTHER, 1};
        utf8_decode(next->bytes, 4, &after.code_point);
        word_after = is_in_word(after);
    }
    uint64_t space = b->space & ahead(word & ~p->begin, word_after & ~p->begin_after, 1);
    word |= space;
    uint64_t same = next_to(word, c->letter) & ~space;
    uint64_t other = b->exists & ~word;
    uint64_t starts = (word & ~same) | (other & ~next_to(other, c->other)) | p->begin;
    c->letter = word;
    c->other = other;
    c->found = marks;
    return starts & b->lead;
}

/* ---- The rows ---- */

const split_stage stage_bloom = {
    .alternatives = {"\\x20?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"},
    .words = bloom_words,
};
