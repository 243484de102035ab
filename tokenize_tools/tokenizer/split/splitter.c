#include "tokenizer/split/splitter.h"

#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_simd.h"

static const char *const names[SPLIT_N_PATTERNS] = {
    [SPLIT_NONE] = "none",           [SPLIT_GPT2] = "gpt2",           [SPLIT_CL100K] = "cl100k",
    [SPLIT_O200K] = "o200k",         [SPLIT_QWEN2] = "qwen2",         [SPLIT_QWEN35] = "qwen35",
    [SPLIT_TEKKEN] = "tekken",       [SPLIT_DEEPSEEK3] = "deepseek3", [SPLIT_FALCON] = "falcon",
    [SPLIT_STARCODER] = "starcoder",
};

const char *split_pattern_name(split_pattern p)
{
    return (unsigned)p < SPLIT_N_PATTERNS ? names[p] : NULL;
}

void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts)
{
    const simd_level level = e == SIMD_BEST ? simd_best() : e;
    bool done = false;
    if (level == SIMD_AVX512)
        done = split_words_avx512(p, text, n_bytes, starts);
    else if (level == SIMD_AVX2)
        done = split_words_avx2(p, text, n_bytes, starts);
    if (!done)
        split_words_scalar(p, text, n_bytes, starts);
}
