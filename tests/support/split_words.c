/* SPDX-License-Identifier: Apache-2.0 */
#include "support/split_words.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/split/pattern.h"

#define ROW(X, x) {#x, STAGE_##X},
static const struct {
    const char *name;
    split_pattern pattern;
} known[] = {
    {"none", SPLIT_NONE},
    /* clang-format off */
    SPLIT_STAGES(ROW)
    /* clang-format on */
    {"deepseek3", SPLIT_DEEPSEEK3},
    {"starcoder", SPLIT_STARCODER},
    {"falcon", SPLIT_FALCON},
    {"spark_x2", SPLIT_LIST(STAGE_NUMBERS, STAGE_CJK, STAGE_SPARK, STAGE_EACH_DIGIT)},
    {"deepseek_llm", SPLIT_THEN(SPLIT_THEN(SPLIT_LIST(STAGE_NEWLINE, STAGE_DEEPSEEK_LETTERS,
                                                      STAGE_DEEPSEEK_MARKS, STAGE_LAST_BLANKS),
                                           STAGE_OLD_CJK, 4),
                                STAGE_EACH_DIGIT, 5)},
    {"deepseek_coder", SPLIT_THEN(SPLIT_LIST(STAGE_NEWLINE, STAGE_BLANK_LETTERS,
                                             STAGE_BLANK_PUNCTUATION, STAGE_OLD_CJK),
                                  STAGE_EACH_DIGIT, 4)},
    {"minicpm5", SPLIT_LIST(STAGE_NUMBERS, STAGE_CL100K_ANY_DIGITS, STAGE_NONE, STAGE_NONE)},
    {"ax_k2", SPLIT_AX_K2},
    {"laguna", SPLIT_LAGUNA},
    {"tiny_aya", SPLIT_LIST(STAGE_THOUSANDS, STAGE_O200K, STAGE_NONE, STAGE_NONE)},
    {"youtu_llm", SPLIT_LIST(STAGE_YOUTU, STAGE_O200K_EACH_DIGIT, STAGE_NONE, STAGE_NONE)},
    {"viking", SPLIT_LIST(STAGE_BLOOM, STAGE_EACH_DIGIT, STAGE_NONE, STAGE_NONE)},
    {"superbpe_1", SPLIT_LIST(STAGE_DIGITS, STAGE_SUPERBPE, STAGE_NONE, STAGE_NONE)},
    {"superbpe_2", SPLIT_LIST(STAGE_DIGITS, STAGE_THOUSANDS_ONLY, STAGE_NONE, STAGE_NONE)},
    {"clip_gpt2", SPLIT_LIST(STAGE_CLIP, STAGE_GPT2, STAGE_NONE, STAGE_NONE)},
    {"clip_old_gpt2", SPLIT_LIST(STAGE_CLIP_OLD, STAGE_GPT2, STAGE_NONE, STAGE_NONE)},
};
enum {
    N_KNOWN = sizeof known / sizeof *known
};

split_pattern split_known(size_t i)
{
    return i < N_KNOWN ? known[i].pattern : SPLIT_UNKNOWN;
}

const char *split_pattern_name(split_pattern p)
{
    size_t i = 0;
    while (i < N_KNOWN && known[i].pattern != p)
        i++;
    return i < N_KNOWN ? known[i].name : "several splits";
}

const splitter *split_kept(size_t i)
{
    static splitter *splitters[256];
    if (!splitters[i])
        splitters[i] = splitter_new(split_known(i), NULL);
    if (!splitters[i])
        abort();
    return splitters[i];
}

size_t split_window(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes, size_t stop,
                    uint64_t *starts)
{
    splitter s = {.pattern = p};
    memset(starts, 0, (n_bytes / 64 + 1) * sizeof *starts);
    for (size_t i = 0; split_known(i) != SPLIT_UNKNOWN; i++) {
        if (split_known(i) == p)
            return splitter_words(split_kept(i), e, text, n_bytes, stop, starts);
    }
    for (; split_stage_at(p, s.n_stages); s.n_stages++) {
        const splitter *one = split_kept(split_stage_at(p, s.n_stages));
        s.stages[s.n_stages] = one->stages[0];
        s.expressions[s.n_stages] = one->expressions[0];
        s.joins[s.n_stages] = one->joins[0];
    }
    return splitter_words(&s, e, text, n_bytes, stop, starts);
}

void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts)
{
    split_window(p, e, text, n_bytes, SIZE_MAX, starts);
}
