/* pattern_bloom.c - BLOOM's expression: a word is everything up to a blank or one of a few
 * punctuation marks. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/text_cut.h"

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

static size_t bloom_match(view *v, size_t i)
{
    character c = char_at(v, i);
    if (c.code_point == ' ')
        c = char_at(v, ++i);
    if (!is_in_word(c))
        return 0;
    for (; is_in_word(c); c = char_at(v, i))
        i += c.n_bytes;
    return i;
}

const split_stage stage_bloom = {
    .name = "bloom",
    .alternatives = {"\\x20?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"},
    .cuts = CUT_AT_SPACE | CUT_AT_NEWLINE | CUT_AT_WIDE | CUT_AT_STOP,
    .match = bloom_match,
};

const split_list list_viking = {.name = "viking", .pattern = SPLIT_VIKING};
