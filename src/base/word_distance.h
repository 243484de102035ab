/* SPDX-License-Identifier: Apache-2.0 */
/* word_distance.h - how different two words are, to suggest the one that was meant. */
#pragma once

#include <stddef.h>

#define WORD_DISTANCE_LONGEST 40 /* bytes of a word */

/* Returns the Levenshtein distance, in bytes; SIZE_MAX if a word is longer than
 * WORD_DISTANCE_LONGEST. */
size_t word_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes);
