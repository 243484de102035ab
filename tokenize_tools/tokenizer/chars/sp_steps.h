/* sp_steps.h - the steps of a tokenizer.json's normalizer: each writes the whole text to a new one.
 * false: out of memory. */
#ifndef TOKMAP_SP_STEPS_H
#define TOKMAP_SP_STEPS_H

#include "tokenizer/chars/charsmap.h"
#include "tokenizer/chars/sp_text.h"
#include "tokenizer/unicode/unicode.h"

/* Replaces each `from`, from left to right, by `to`; from must not be empty. */
bool sp_step_replace(sp_span text, const model_text *from, const model_text *to, sp_text *out);
/* Replaces each run of two or more `from` by one `to`. */
bool sp_step_replace_runs(sp_span text, const model_text *from, const model_text *to, sp_text *out);
/* Applies rules to grapheme clusters shorter than six bytes, and to characters. */
bool sp_step_charsmap(sp_span text, const charsmap *map, sp_text *out);
bool sp_step_nfc(sp_span text, nfc_scratch *scratch, sp_text *out);
/* Removes the blanks at its ends. */
sp_span sp_step_strip(sp_span text, bool left, bool right);

#endif /* TOKMAP_SP_STEPS_H */
