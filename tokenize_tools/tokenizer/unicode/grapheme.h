/* SPDX-License-Identifier: Apache-2.0 */
/* grapheme.h - extended grapheme clusters (UAX 29), as HuggingFace's Precompiled normalizer finds
 * them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPHEME_UNICODE "17.0.0"

/* Returns the length of the cluster at text[0], which must be the start of one, in UTF-8; n_bytes >
 * 0. */
size_t grapheme_length(const uint8_t *text, size_t n_bytes);
