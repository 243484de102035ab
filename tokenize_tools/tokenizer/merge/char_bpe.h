/* SPDX-License-Identifier: Apache-2.0 */
/* char_bpe.h - BPE over characters: sentencepiece's (by score) and that of tokenizer.json (listed
 * merges), with byte fallback for characters that have no token. */
#pragma once

#include "tokenizer/split/char_words.h"
#include "tokenizer/model/id_buffer.h"
#include "tokenizer/merge/merge.h"
#include "tokenizer/model/model.h"

typedef struct char_bpe char_bpe;

/* Makes the symbols and merges of m. spaces_are_marks: a blank is read as U+2581. NULL: err names
 * what is not supported. */
char_bpe *char_bpe_new(const model *m, bool spaces_are_marks, failure *err);
void char_bpe_free(char_bpe *b);
/* Returns where text can be divided, after char_bpe_join_user_pieces has cleared its starts. */
const char_words *char_bpe_words(const char_bpe *b);
/* Clears the starts in the bitmap of text[0 .. sizes[0]) that are inside a user-defined piece of
 * text[0 .. sizes[1]), so that such a piece is in one word. */
void char_bpe_join_user_pieces(const char_bpe *b, const uint8_t *text, const size_t sizes[2],
                               uint64_t *starts);
/* Appends the ids of a whole text in UTF-8. false: out of memory. */
bool char_bpe_encode(const char_bpe *b, merge_workspace *workspace, const uint8_t *text,
                     size_t n_bytes, id_buffer *out);
/* sentencepiece without byte fallback: makes one id of each run of unknown ids from `first` on. For
 * a text that was encoded in parts. */
void char_bpe_fuse_unknown(const char_bpe *b, size_t first, id_buffer *out);
