/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_vector.h - compiles the algebra of a pattern for each vector engine. */
#ifndef TOKMAP_SPLITTER_VECTOR_H
#define TOKMAP_SPLITTER_VECTOR_H

#include "tokenizer/split/splitter_algebra.h"

#if defined(__x86_64__)

#include "tokenizer/split/splitter_avx2.h"
#include "tokenizer/split/splitter_avx512.h"

#define SPLIT_WALKER(target, engine, x, place, wanted)                                             \
    target static void x##_##place##_##engine(                                                     \
        const splitter *s, unsigned stage, const uint8_t *text, size_t n_bytes, uint64_t *starts)  \
    {                                                                                              \
        walk w = {.splitter = s,                                                                   \
                  .stage = stage,                                                                  \
                  .view = {.text = text},                                                          \
                  .reader = {.text = text, .n_bytes = n_bytes},                                    \
                  .starts = starts,                                                                \
                  .n_bytes_by_words = 64};                                                         \
        walk_blocks(&w, wanted, PLACE_##place, classify_##engine, x##_words);                      \
    }
#define SPLIT_TWINS(x, place, wanted)                                                              \
    SPLIT_WALKER(TARGET_AVX2, avx2, x, place, wanted)                                              \
    SPLIT_WALKER(TARGET_AVX512, avx512, x, place, wanted)
enum {
    PLACE_after, /* other stages */
    PLACE_first
};
/* Defines the walkers of stage x. x_words is its algebra_function; `wanted` is what it needs of a
 * block. */
#define SPLIT_WALKERS(x, wanted) SPLIT_TWINS(x, first, wanted) SPLIT_TWINS(x, after, wanted)
/* Of a list. */
#define SPLIT_LIST_WALKERS(x, wanted) SPLIT_TWINS(x, first, wanted)
/* The fields of a split_stage and of a split_list that point to them. */
#define SPLIT_VECTOR(x)                                                                            \
    .first = {x##_first_avx2, x##_first_avx512}, .after = {x##_after_avx2, x##_after_avx512}
#define SPLIT_LIST_VECTOR(x) .first = {x##_first_avx2, x##_first_avx512}

#else

#define SPLIT_WALKERS(x, wanted)
#define SPLIT_LIST_WALKERS(x, wanted)
#define SPLIT_VECTOR(x) .first = {NULL, NULL}
#define SPLIT_LIST_VECTOR(x) .first = {NULL, NULL}

#endif

#endif /* TOKMAP_SPLITTER_VECTOR_H */
