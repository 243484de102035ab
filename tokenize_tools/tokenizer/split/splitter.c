#include "tokenizer/split/splitter.h"

#include <string.h>

#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/text_cut.h"

static size_t text_end(view *v, size_t start)
{
    (void)start;
    return v->n_bytes;
}

static const split_definition split_none = {.name = "none", .word_end = text_end};

#define DECLARE(X, x) extern const split_definition split_##x;
SPLIT_PATTERNS(DECLARE)
#undef DECLARE

#define ROW(X, x) [SPLIT_##X] = &split_##x,
const split_definition *const split_definitions[SPLIT_N_PATTERNS] = {[SPLIT_NONE] = &split_none,
                                                                     SPLIT_PATTERNS(ROW)};
#undef ROW

const char *split_pattern_name(split_pattern p)
{
    return (unsigned)p < SPLIT_N_PATTERNS ? split_definitions[p]->name : NULL;
}

bool split_drops_blanks(split_pattern p)
{
    return split_definitions[p]->drops_blanks;
}

size_t split_leading_blanks(const uint8_t *word, size_t n_bytes)
{
    const view v = {.text = word, .n_bytes = n_bytes};
    return skip_classes(&v, 0, BLANKS);
}

unsigned split_cuts(split_pattern p)
{
    return p == SPLIT_NONE ? 0 : CUT_ANYWHERE & ~split_definitions[p]->crosses;
}

size_t split_word_end(split_pattern p, const uint8_t *text, size_t n_bytes, size_t start)
{
    view v = {.text = text, .n_bytes = n_bytes};
    return split_definitions[p]->word_end(&v, start);
}

static void split_words_scalar(split_pattern p, const uint8_t *text, size_t n_bytes,
                               uint64_t *starts)
{
    const split_definition *d = split_definitions[p];
    memset(starts, 0, (n_bytes / 64 + 1) * sizeof *starts);
    for (size_t i = 0; i < n_bytes;) {
        view v = {.text = text, .n_bytes = n_bytes};
        size_t end = d->word_end(&v, i);
        if (d->split_word)
            d->split_word(&v, i, end, starts);
        else
            split_set_bit(starts, i);
        i = end;
    }
}

void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts)
{
    const split_definition *d = split_definitions[p];
    const simd_level level = e == SIMD_BEST ? simd_best() : e;
    split_walker *walk = level == SIMD_AVX512 ? d->avx512 : level == SIMD_AVX2 ? d->avx2 : NULL;
    if (walk)
        walk(p, text, n_bytes, starts);
    else
        split_words_scalar(p, text, n_bytes, starts);
}
