/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_scalar.h - splits by the definitions of the stages, one character at a time. */
#pragma once

#include "tokenizer/split/pattern.h"
#include "tokenizer/split/start_bits.h"
#include "tokenizer/split/text_cursor.h"

/* Splits what the stages before left of a range, and sets bits in starts, up to the first start of
 * a word from byte `stop` on after which nothing is searched for again. Returns where that is, or
 * the end of the range. range->piece_end is kept for the next call. */
size_t split_range(const splitter *s, unsigned stage, text_cursor *range, size_t stop,
                   uint64_t *starts);
