/* SPDX-License-Identifier: Apache-2.0 */
/* splitter.h - where words (pre-tokens) start.
 *
 * A pattern is a list of stages: known ones, which public tokenizers have, and expressions of the
 * tokenizer's own. The result is a bitmap: bit i % 64 of starts[i / 64] is set if a word starts at
 * byte i. A word always starts at byte 0. Text that an expression does not match is a word too
 * ("isolated"); only stages that remove text leave bytes in no word. A byte that is not UTF-8 is a
 * character of CLASS_OTHER. Words are whole characters, except with stages after BYTE_LEVEL, which
 * also split between bytes. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"
#include "tokenizer/split/stages.h"
#include "tokenizer/split/start_bits.h"

/* Whether blanks are not part of the words that are encoded: a word of blanks is removed, and so
 * are the blanks that a word begins with. */
bool split_drops_blanks(split_pattern p);

/* The stage of which the expression of a tokenizer.json is a spelling; STAGE_NONE: it is not known.
 * Nothing is guessed from parts of it. */
split_stage_id split_find_stage(const char *text, size_t n_bytes);

/* What finds the words of a pattern. It shares the expressions, and never changes. NULL: out of
 * memory. */
splitter *splitter_new(split_pattern p, const split_own *own);
void splitter_free(splitter *s);

/* Finds the words of a text, or of its beginning: from byte `stop` on, it may end before the start
 * of a word, where the rest of the text is to be split as a text of its own. Returns where it
 * ended. starts: n_bytes / 64 + 1 words that are 0; bits from the end on stay 0. text has
 * TEXT_PADDING readable bytes after n_bytes. */
size_t splitter_words(const splitter *s, simd_level e, const uint8_t *text, size_t n_bytes,
                      size_t stop, uint64_t *starts);

/* Returns how many bytes of blanks the word begins with, if they are dropped. */
size_t splitter_dropped_blanks(const splitter *s, const uint8_t *word, size_t n_bytes);
/* Whether stages remove text: JOIN_REMOVED, JOIN_KEPT. */
bool splitter_removes(const splitter *s);
/* The same as splitter_words, but with stages that remove text: *n_taken is where it ended. Writes
 * the words that stay to `kept`, for which n_bytes are enough, and their starts. Sets a bit in
 * `removed`, which has the size of starts, for each byte of the text that does not stay. Returns
 * the number of bytes in `kept`. */
size_t splitter_kept_words(const splitter *s, const uint8_t *text, size_t n_bytes, size_t stop,
                           uint8_t *kept, size_t *n_taken, uint64_t *starts, uint64_t *removed);
