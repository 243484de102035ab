/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_pieces.c - splits at classes of characters, which come before or after others.
 *
 * numbers, cjk                         before DeepSeek's words, and others
 * newline, blank_letters, blank_punctuation, deepseek_letters, deepseek_marks, last_blanks, old_cjk
 *                                      DeepSeek-LLM and Coder
 * lines                                Laguna
 * youtu                                Youtu-LLM
 * digits, each_digit, three_digits, punctuation, each_punctuation
 *                                      Digits and Punctuation, with ByteLevel */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_pieces.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/text_cut.h"

typedef uint32_t range[2];

static bool is_in(const range *ranges, size_t n, uint32_t code_point)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (code_point > ranges[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && code_point >= ranges[low][0];
}
#define IS_IN(ranges, code_point) is_in(ranges, sizeof(ranges) / sizeof *(ranges), code_point)

int split_youtu_class(uint32_t code_point)
{
    static const range marks[] = {{0x2014, 0x2014}, {0x2018, 0x2019}, {0x201C, 0x201D},
                                  {0x2026, 0x2026}, {0x3001, 0x303F}, {0xFE30, 0xFE4F},
                                  {0xFF01, 0xFF01}, {0xFF0C, 0xFF0C}, {0xFF1A, 0xFF1B}};
    if (is_cjk(code_point))
        return 4;
    if ((code_point >= 0xAC00 && code_point <= 0xD7A3) ||
        (code_point >= 0x3131 && code_point <= 0x318E))
        return 1;
    if (code_point >= 0x3105 && code_point <= 0x312F)
        return 3;
    return IS_IN(marks, code_point) ? 2 : 0;
}

static size_t lines_match(view *v, size_t i)
{
    size_t end = 0;
    for (;;) {
        const character c = char_at(v, i), next = char_at(v, i + c.n_bytes);
        if (c.code_point != '\n' && (c.code_point != '\r' || next.code_point != '\n'))
            return end;
        end = i = i + 1 + (c.code_point == '\r');
    }
}

/* ---- The same by masks ---- */

#define PIECES(x, words, wanted)                                                                   \
    SPLITTER_INLINE uint64_t x##_words(carry *c, const block *b, const block *next,                \
                                       const pieces *p)                                            \
    {                                                                                              \
        (void)next, (void)p;                                                                       \
        return words;                                                                              \
    }                                                                                              \
    SPLIT_WALKERS(x, wanted)
PIECES(digits, run_words(&c->number, b->number, b), WANT_HF_NUMERIC)
PIECES(each_digit, one_words(&c->number, b->number, b), WANT_HF_NUMERIC)
PIECES(punctuation, run_words(&c->punctuation, b->punctuation, b), WANT_FALCON)
PIECES(each_punctuation, one_words(&c->punctuation, b->punctuation, b), WANT_FALCON)
PIECES(newline, one_words(&c->newline, b->newline, b), 0)
PIECES(cjk, run_words(&c->cjk, b->cjk, b), WANT_CJK)
PIECES(old_cjk, run_words(&c->cjk, b->cjk, b), WANT_OLD_CJK)
PIECES(numbers, number_groups(c, b, p), 0)
PIECES(youtu, youtu_class_words(c, b), WANT_CJK | WANT_HIGH)

SPLITTER_INLINE uint64_t keep_blank(carry *c, const block *b, uint64_t starts)
{
    c->blank = b->blank;
    return starts;
}
#define BLANK_RUN(x, field, wanted)                                                                \
    PIECES(x, keep_blank(c, b, blank_run_words(c, MASKS(field), b, next, p)), wanted)
#define MASKS(field) ((class_masks){b->field, next->field, &c->field})
BLANK_RUN(blank_letters, letter, 0)
BLANK_RUN(blank_punctuation, punctuation, WANT_PUNCTUATION)
BLANK_RUN(deepseek_letters, letter, WANT_OLD_DEEPSEEK)
BLANK_RUN(deepseek_marks, punctuation, WANT_OLD_DEEPSEEK)
PIECES(last_blanks, keep_blank(c, b, last_blank_words(c, b, next, p)), 0)

SPLITTER_INLINE uint64_t lines_words(carry *c, const block *b, const block *next, const pieces *p)
{
    (void)next;
    c->undecided |= (p->begin & b->newline) != 0; /* it may be between \r and \n */
    return line_words(c, b);
}
SPLIT_WALKERS(lines, 0)

/* ---- The rows ---- */

/* `places`: see text_cut.h. */
#define STAGE(x, places) .name = #x, .cuts = (places), SPLIT_VECTOR(x)

const split_stage stage_numbers = {STAGE(numbers, CUT_AT_DIGIT), .alternatives = {"\\p{N}{1,3}"}};
const split_stage stage_cjk = {STAGE(cjk, CUT_AT_STOP),
                               .alternatives = {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}};
const split_stage stage_old_cjk = {STAGE(old_cjk, 0),
                                   .alternatives = {"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"}};
const split_stage stage_youtu = {
    STAGE(youtu, CUT_AT_STOP),
    .alternatives = {"[\uac00-\ud7a3\u3131-\u318e]+",
                     "[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-"
                     "\u303f\ufe30-\ufe4f]+",
                     "[\u3105-\u312f]+", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}};
const split_stage stage_newline = {STAGE(newline, CUT_AT_NEWLINE), .alternatives = {"[\\r\\n]"}};
const split_stage stage_lines = {STAGE(lines, 0), .match = lines_match, .join = JOIN_NEXT,
                                 .alternatives = {"(?:\\r?\\n)+(?!\\r?\\n)"}};
const split_stage stage_last_blanks = {STAGE(last_blanks, 0), .alternatives = {"\\s+$"}};
const split_stage stage_blank_letters = {
    STAGE(blank_letters, CUT_AT_SPACE | CUT_AT_WIDE | CUT_AT_DIGIT),
    .alternatives = {"\\s?\\p{L}+"}};
const split_stage stage_blank_punctuation = {STAGE(blank_punctuation, CUT_AT_STOP),
                                             .alternatives = {"\\s?\\p{P}+"}};
const split_stage stage_deepseek_letters = {
    STAGE(deepseek_letters, CUT_AT_SPACE | CUT_AT_DIGIT),
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
    STAGE(deepseek_marks, CUT_AT_STOP),
    .alternatives = {"\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"}};

#define COMPONENT(x) .component = COMPONENT_##x, .dialect = EXPRESSION_OWN
const split_stage stage_digits = {STAGE(digits, CUT_AT_DIGIT), COMPONENT(DIGITS),
                                  .alternatives = {"\\p{HfNumber}+"}};
const split_stage stage_each_digit = {STAGE(each_digit, CUT_AT_DIGIT), COMPONENT(EACH_DIGIT),
                                      .alternatives = {"\\p{HfNumber}"}};
const split_stage stage_three_digits = {.name = "three_digits",
                                        .alternatives = {"[0-9][0-9][0-9]"}};
const split_stage stage_punctuation = {STAGE(punctuation, CUT_AT_SIGN), COMPONENT(PUNCTUATION),
                                       .alternatives = {"\\p{HfPunctuation}+"}};
const split_stage stage_each_punctuation = {STAGE(each_punctuation, CUT_AT_SIGN),
                                            COMPONENT(EACH_PUNCTUATION),
                                            .alternatives = {"\\p{HfPunctuation}"}};
