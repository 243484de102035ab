/* splitter_vector.h - compiles the algebra of a pattern for each vector engine. */
#ifndef TOKMAP_SPLITTER_VECTOR_H
#define TOKMAP_SPLITTER_VECTOR_H

#include "tokenizer/split/splitter_algebra.h"

#if defined(__x86_64__)

#include "tokenizer/split/splitter_avx2.h"
#include "tokenizer/split/splitter_avx512.h"

#define SPLIT_WALKER(target, engine, x, wanted)                                                    \
    target static void x##_##engine(split_pattern p, const uint8_t *text, size_t n_bytes,          \
                                    uint64_t *starts)                                              \
    {                                                                                              \
        walk w;                                                                                    \
        walk_begin(&w, p, text, n_bytes, starts);                                                  \
        walk_blocks(&w, wanted, classify_##engine, x##_words);                                     \
    }
/* Defines the walkers of pattern x. x_words is its algebra_function; `wanted` is what it needs of a
 * block. */
#define SPLIT_WALKERS(x, wanted)                                                                   \
    SPLIT_WALKER(TARGET_AVX2, avx2, x, wanted) SPLIT_WALKER(TARGET_AVX512, avx512, x, wanted)
/* The fields of a split_definition that point to them. */
#define SPLIT_VECTOR(x) .avx2 = x##_avx2, .avx512 = x##_avx512

#else

#define SPLIT_WALKERS(x, wanted)
#define SPLIT_VECTOR(x) .avx2 = NULL, .avx512 = NULL

#endif

#endif /* TOKMAP_SPLITTER_VECTOR_H */
