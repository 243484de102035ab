/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_words.c - pre-tokenizers that remove blanks:
 *
 * whitespace         Whitespace, \w+|[^\w\s]+ of Rust
 * whitespace_split   WhitespaceSplit
 * bert               BertPreTokenizer: each punctuation character is a word
 *
 * A word that is removed encodes to no ids, and a blank before a word is removed from it: so U+0020
 * may be in the word after it, which saves a lookup. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/text_cut.h"

/* ---- The definition: \x20?X+|\x20?Y|\s+(?!\S)|\s ---- */

enum {
    WORD = 1 << CLASS_LETTER | 1 << CLASS_MARK | 1 << CLASS_NUMBER,
    PUNCTUATION = 1 << CLASS_PUNCTUATION | 1 << CLASS_MARK,
    ANY = WORD | PUNCTUATION | 1 << CLASS_OTHER
};

/* The sets of classes of unicode_word_pages that the character is in; 0: a blank, or the end. */
static unsigned set_of(character c)
{
    if (c.class == CLASS_END || c.class == CLASS_SPACE)
        return 0;
    if (c.code_point == UINT32_MAX)
        return 1 << CLASS_OTHER;
    return 1u << unicode_word_pages[unicode_word_index[c.code_point >> 7]][c.code_point & 127];
}

/* Characters of the same one of two sets are a word, or each character of `alone`. */
static size_t words_end(const view *v, size_t i, const unsigned sets[2], unsigned alone)
{
    character c = char_at(v, i);
    size_t end = i + (c.code_point == ' ');
    c = char_at(v, end);
    const unsigned first = set_of(c);
    if (first == 0)
        return blanks_end(v, i, false);
    const unsigned set = first & alone ? 0 : first & sets[0] ? sets[0] : sets[1];
    do {
        end += c.n_bytes;
        c = char_at(v, end);
    } while (set_of(c) & set);
    return end;
}

static size_t whitespace_match(view *v, size_t i)
{
    return words_end(v, i, (const unsigned[]){WORD, ANY & ~WORD}, 0);
}

static size_t whitespace_split_match(view *v, size_t i)
{
    return words_end(v, i, (const unsigned[]){ANY, 0}, 0);
}

static size_t bert_match(view *v, size_t i)
{
    return words_end(v, i, (const unsigned[]){ANY & ~PUNCTUATION, 0}, PUNCTUATION);
}

/* ---- The same by masks ---- */

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

SPLITTER_INLINE uint64_t whitespace_words(carry *c, const block *b, const block *next,
                                          const pieces *p)
{
    return removing_words(c, b, next,
                          (const uint64_t[]){b->letter, b->exists & ~(b->letter | b->blank)}, p);
}

SPLITTER_INLINE uint64_t whitespace_split_words(carry *c, const block *b, const block *next,
                                                const pieces *p)
{
    return removing_words(c, b, next, (const uint64_t[]){b->exists & ~b->blank, 0}, p);
}

SPLITTER_INLINE uint64_t bert_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return removing_words(c, b, next,
                          (const uint64_t[]){b->exists & ~(b->punctuation | b->blank), 0}, p);
}

SPLIT_WALKERS(whitespace, WANT_WORDS)
SPLIT_WALKERS(whitespace_split, WANT_WORDS)
SPLIT_WALKERS(bert, WANT_WORDS)

/* ---- The rows ---- */

const split_stage stage_whitespace = {
    .name = "whitespace",
    .component = COMPONENT_WHITESPACE,
    .everything = true,
    .drops_blanks = true,
    .cuts = CUT_ANYWHERE & ~(unsigned)CUT_AT_DIGIT,
    .match = whitespace_match,
    SPLIT_VECTOR(whitespace),
};

const split_stage stage_whitespace_split = {
    .name = "whitespace_split",
    .component = COMPONENT_WHITESPACE_SPLIT,
    .everything = true,
    .drops_blanks = true,
    .cuts = CUT_ANYWHERE & ~(unsigned)(CUT_AT_DIGIT | CUT_AT_STOP | CUT_AT_SIGN),
    .match = whitespace_split_match,
    SPLIT_VECTOR(whitespace_split),
};

const split_stage stage_bert = {
    .name = "bert",
    .component = COMPONENT_BERT,
    .everything = true,
    .drops_blanks = true,
    .cuts = CUT_ANYWHERE & ~(unsigned)CUT_AT_DIGIT,
    .match = bert_match,
    SPLIT_VECTOR(bert),
};
