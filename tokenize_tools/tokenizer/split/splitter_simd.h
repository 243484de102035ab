/* splitter_simd.h - the vector engines: all words of a text, 64 bytes at a time.
 *
 * They say false for a pattern that they do not have; the processor must have what they need. */
#ifndef TOKMAP_SPLITTER_SIMD_H
#define TOKMAP_SPLITTER_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter.h"

bool split_words_avx2(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts);
bool split_words_avx512(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts);

#endif /* TOKMAP_SPLITTER_SIMD_H */
