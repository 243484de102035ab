/* SPDX-License-Identifier: Apache-2.0 */
/* absent_text.h - whether a text can occur in what a model's normalizer and added tokens leave. */
#ifndef TOKMAP_ABSENT_TEXT_H
#define TOKMAP_ABSENT_TEXT_H

#include "tokenizer/model/model.h"

/* Whether no normalized text between added tokens ever has this text, whatever the input: a Split
 * there does nothing. Gemma's normalizer leaves no spaces, ChatGLM's no "<!dummy-prefix!>", and a
 * newline is one of Helium's added tokens. */
bool is_absent_text(const model *m, const model_text *text);

#endif /* TOKMAP_ABSENT_TEXT_H */
