/* SPDX-License-Identifier: Apache-2.0 */
/* normalize_steps.h - the steps of a tokenizer.json's normalizer: each writes the whole text to a
 * new one. false: out of memory. */
#ifndef TOKMAP_NORMALIZE_STEPS_H
#define TOKMAP_NORMALIZE_STEPS_H

#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/text_buffer.h"
#include "tokenizer/unicode/unicode.h"

/* Replaces each `from`, from left to right, by `to`; from must not be empty. */
bool step_replace(text_span text, const model_text *from, const model_text *to, text_buffer *out);
/* Replaces each run of two or more `from` by one `to`. */
bool step_replace_runs(text_span text, const model_text *from, const model_text *to,
                       text_buffer *out);
/* Replaces white space by `to`: each run of it, as \s+ does, or with long_only each run of two or
 * more, and \n, \r and \t alone, as \s{2,}|[\n\r\t] does. */
bool step_replace_blanks(text_span text, bool long_only, const model_text *to, text_buffer *out);
/* Applies rules to grapheme clusters shorter than six bytes, and to characters. */
bool step_charsmap(text_span text, const charsmap *map, text_buffer *out);
/* Text in NFC stays where it is. out is empty. */
bool step_nfc(text_span *text, nfc_scratch *scratch, text_buffer *out);
/* Removes the blanks at its ends. */
text_span step_strip(text_span text, bool left, bool right);

#endif /* TOKMAP_NORMALIZE_STEPS_H */
