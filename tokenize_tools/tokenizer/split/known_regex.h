/* known_regex.h - compares the regular expressions of tokenizer files with those of the patterns.
 * Nothing is guessed from parts of them. */
#ifndef TOKMAP_KNOWN_REGEX_H
#define TOKMAP_KNOWN_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "tokenizer/split/pattern.h"

/* Whether the text is a spelling of the expression of this stage. */
bool known_regex_matches(const split_stage *stage, const char *text, size_t n_bytes);
/* The first stage of any pattern of which it is one; NULL: it is not known. */
const split_stage *known_regex_find(const char *text, size_t n_bytes);

#endif /* TOKMAP_KNOWN_REGEX_H */
