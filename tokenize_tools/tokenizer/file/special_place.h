/* SPDX-License-Identifier: Apache-2.0 */
/* special_place.h - finds the special token that --specials error refused: an encoder knows only
 * about where it stopped. For messages; takes some tens of encodings. */
#pragma once

#include "tokenizer/tokenizer.h"

#define SPECIAL_NAME_BYTES 128

typedef struct special_place {
    size_t at;                     /* in the text */
    char name[SPECIAL_NAME_BYTES]; /* as in the text, on one line; "": out of memory */
} special_place;

/* Finds the first special token in a text that encoder_encode refused with TOKENIZE_SPECIAL. As for
 * that call, TEXT_PADDING bytes after the text are readable. */
special_place special_place_find(const tokenizer *t, const uint8_t *text, size_t n_bytes);
