/* pattern_clip.c - CLIP's expression, whose blanks are removed: words are letters, one number, or
 * others. The older files of the text encoders know no specials. */
#include <string.h>

#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/text_cut.h"

static bool begins_with(const view *v, size_t i, const char *text)
{
    const size_t n = strlen(text);
    return v->n_bytes - i >= n && memcmp(v->text + i, text, n) == 0;
}

static size_t clip_old_match(view *v, size_t i)
{
    const size_t contraction = contraction_at(v, i, false);
    const character c = char_at(v, i);
    if (contraction > 0)
        return i + contraction;
    if (is_of(c, NUMBERS))
        return i + c.n_bytes;
    if (is_of(c, BLANKS))
        return 0;
    return skip_classes(v, i + c.n_bytes, is_of(c, LETTERS) ? LETTERS : OTHERS);
}

static size_t clip_match(view *v, size_t i)
{
    static const char *const specials[] = {"<|startoftext|>", "<|endoftext|>"};
    for (size_t k = 0; k < sizeof specials / sizeof *specials; k++)
        if (begins_with(v, i, specials[k]))
            return i + strlen(specials[k]);
    return clip_old_match(v, i);
}

#define REGEX_WORDS                                                                                \
    "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "[\\p{L}]+", "[\\p{N}]", "[^\\s\\p{L}\\p{N}]+"

const split_stage stage_clip = {
    .name = "clip",
    .alternatives = {"<\\|startoftext\\|>", "<\\|endoftext\\|>", REGEX_WORDS},
    .drops_blanks = true,
    .cuts = CUT_ANYWHERE,
    .match = clip_match,
};

const split_stage stage_clip_old = {
    .name = "clip_old",
    .alternatives = {REGEX_WORDS},
    .drops_blanks = true,
    .cuts = CUT_ANYWHERE,
    .match = clip_old_match,
};
