/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_pieces.c - splits at classes of characters, which come before or after others.
 *
 * numbers, cjk                         before DeepSeek's words, and others
 * newline, blank_letters, blank_punctuation, deepseek_letters, deepseek_marks, last_blanks, old_cjk
 *                                      DeepSeek-LLM and Coder
 * lines                                Laguna
 * youtu                                Youtu-LLM
 * marks                                Metaspace, among others
 * digits, each_digit, three_digits, punctuation, each_punctuation
 *                                      Digits and Punctuation, with ByteLevel */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_algebra.h"

/* ---- Masks ---- */

/* A class in two blocks, and in the block before. */
typedef struct class_masks {
    uint64_t here, after, *before;
} class_masks;

/* \s?[X]+ */
static uint64_t blank_run_words(carry *c, class_masks x, const block *b, const block *next,
                                const pieces *p)
{
    const uint64_t blank = b->blank & ~x.here, after = next_to(x.here, *x.before);
    const uint64_t joined = next_to(blank, c->blank & ~*x.before) & ~p->begin;
    uint64_t starts = (x.here & ~after & ~joined) | (after & ~x.here);
    starts |= followed_by(blank, x.here & ~p->begin, x.after & ~p->begin_after, b, next);
    *x.before = x.here;
    c->blank = b->blank;
    return starts & b->lead;
}

static uint64_t letter_runs(carry *c, const block *b, const block *next, const pieces *p)
{
    return blank_run_words(c, (class_masks){b->letter, next->letter, &c->letter}, b, next, p);
}

static uint64_t punctuation_runs(carry *c, const block *b, const block *next, const pieces *p)
{
    return blank_run_words(c, (class_masks){b->punctuation, next->punctuation, &c->punctuation}, b,
                           next, p);
}

/* \s+$ */
static uint64_t last_blank_words(carry *c, const block *b, const block *next, const pieces *p)
{
    const uint64_t blank = b->blank & ~p->begin, blank_after = next->blank & ~p->begin_after;
    uint64_t starts = blank & b->lead & ~next_to(b->blank, c->blank);
    c->undecided |= ((b->newline & ~p->begin) | (next->newline & ~p->begin_after)) != 0;
    for (uint64_t left = starts; left != 0; left &= left - 1) {
        const unsigned end = run_end(blank, blank_after, lowest(left));
        c->undecided |= end == 128;
        if (end < 128 && has_bit(b->exists & ~p->begin, next->exists & ~p->begin_after, end))
            starts &= ~(left & -left);
    }
    c->blank = b->blank;
    return starts;
}

/* ---- The rows ---- */

const split_stage stage_numbers = {.alternatives = {"\\p{N}{1,3}"}};
const split_stage stage_cjk = {.alternatives = {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}};
const split_stage stage_old_cjk = {.alternatives = {"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"}};
const split_stage stage_youtu = {
    .alternatives = {"[\uac00-\ud7a3\u3131-\u318e]+",
                     "[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-"
                     "\u303f\ufe30-\ufe4f]+",
                     "[\u3105-\u312f]+", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}};
const split_stage stage_newline = {.alternatives = {"[\\r\\n]"}};
/* A match takes all newlines, so its look-ahead always holds. */
const split_stage stage_lines = {.join = JOIN_NEXT,
                                 .alternatives = {"(?:\\n|\\r\\n)+ (?:\\r?\\n)+(?!\\r?\\n)"}};
const split_stage stage_marks = {.join = JOIN_NEXT, .alternatives = {"\u2581"}};
const split_stage stage_last_blanks = {.words = last_blank_words, .alternatives = {"\\s+$"}};
const split_stage stage_blank_letters = {.words = letter_runs, .alternatives = {"\\s?\\p{L}+"}};
const split_stage stage_blank_punctuation = {
    .words = punctuation_runs, .wanted = WANT_PUNCTUATION, .alternatives = {"\\s?\\p{P}+"}};
const split_stage stage_deepseek_letters = {
    .words = letter_runs,
    .wanted = WANT_OLD_DEEPSEEK,
    .alternatives = {
        "\\s?["
        "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
        "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-"
        "\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
        "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00"
        "-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-"
        "\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-"
        "\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-"
        "\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
        "\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
        "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13"
        "-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
        "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
        "\U0001e900-\U0001e943"
        "]+"}};
const split_stage stage_deepseek_marks = {
    .words = punctuation_runs,
    .wanted = WANT_OLD_DEEPSEEK,
    .alternatives = {"\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"}};

const split_stage stage_digits = {.dialect = EXPRESSION_OWN, .alternatives = {"\\p{HfNumber}+"}};
const split_stage stage_each_digit = {.dialect = EXPRESSION_OWN, .alternatives = {"\\p{HfNumber}"}};
const split_stage stage_three_digits = {.alternatives = {"[0-9][0-9][0-9]"}};
const split_stage stage_punctuation = {.dialect = EXPRESSION_OWN,
                                       .alternatives = {"\\p{HfPunctuation}+"}};
const split_stage stage_each_punctuation = {.dialect = EXPRESSION_OWN,
                                            .alternatives = {"\\p{HfPunctuation}"}};
