/* SPDX-License-Identifier: Apache-2.0 */
/* known_regex.h - compares the regular expressions of tokenizer files with those of the patterns.
 * Nothing is guessed from parts of them. */
#ifndef TOKMAP_KNOWN_REGEX_H
#define TOKMAP_KNOWN_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "tokenizer/split/pattern.h"

/* The stage of which the text is a spelling; STAGE_NONE: it is not known. */
split_stage_id known_regex_find(const char *text, size_t n_bytes);

#endif /* TOKMAP_KNOWN_REGEX_H */
