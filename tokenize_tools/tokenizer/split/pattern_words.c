/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_words.c - pre-tokenizers that remove blanks:
 *
 * whitespace         Whitespace, \w+|[^\w\s]+ of Rust
 * whitespace_split   WhitespaceSplit
 * bert               BertPreTokenizer: each punctuation character is a word
 * clip, clip_old     CLIP: letters, one number, or others; the older files of the text encoders
 *                    know no specials
 *
 * A word that is removed encodes to no ids, and a blank before a word is removed from it: so U+0020
 * may be in the word after it, which saves a lookup. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/split/splitter_scalar.h"

SPLITTER_INLINE uint64_t removing_words(carry *c, const block *b, const block *next,
                                        const uint64_t runs[2], const pieces *p)
{
    const uint64_t first = runs[0], second = runs[1];
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t same = (first & next_to(first, c->letter)) | (second & next_to(second, c->other));
    uint64_t starts = visible & ~same & ~next_to(b->space, c->space);
    starts |= (b->blank & ~next_to(b->blank, c->blank)) | p->begin;
    starts |= followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    c->letter = first;
    c->other = second;
    c->space = b->space;
    c->blank = b->blank;
    return starts & b->lead;
}

static uint64_t whitespace_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return removing_words(c, b, next,
                          (const uint64_t[]){b->letter, b->exists & ~(b->letter | b->blank)}, p);
}

static uint64_t whitespace_split_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return removing_words(c, b, next, (const uint64_t[]){b->exists & ~b->blank, 0}, p);
}

static uint64_t bert_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return removing_words(c, b, next,
                          (const uint64_t[]){b->exists & ~(b->punctuation | b->blank), 0}, p);
}

/* ---- The rows ---- */

const split_stage stage_whitespace = {
    .everything = true,
    .drops_blanks = true,
    .dialect = EXPRESSION_RUST,
    .alternatives = {"\\x20?\\w+", "\\x20?[^\\s\\w]+", REGEX_BLANKS},
    .words = whitespace_words,
    .wanted = WANT_WORDS,
};

const split_stage stage_whitespace_split = {
    .everything = true,
    .drops_blanks = true,
    .dialect = EXPRESSION_RUST,
    .alternatives = {"\\x20?\\S+", REGEX_BLANKS},
    .words = whitespace_split_words,
    .wanted = WANT_WORDS,
};

const split_stage stage_bert = {
    .everything = true,
    .drops_blanks = true,
    .dialect = EXPRESSION_OWN,
    .alternatives = {"\\x20?\\p{HfPunctuation}", "\\x20?[^\\s\\p{HfPunctuation}]+", REGEX_BLANKS},
    .words = bert_words,
    .wanted = WANT_WORDS,
};

#define REGEX_CLIP                                                                                 \
    "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "[\\p{L}]+", "[\\p{N}]", "[^\\s\\p{L}\\p{N}]+"

const split_stage stage_clip = {
    .alternatives = {"<\\|startoftext\\|>", "<\\|endoftext\\|>", REGEX_CLIP},
    .drops_blanks = true,
};

const split_stage stage_clip_old = {
    .alternatives = {REGEX_CLIP},
    .drops_blanks = true,
};
