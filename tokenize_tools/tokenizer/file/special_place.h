/* SPDX-License-Identifier: Apache-2.0 */
/* special_place.h - describes the special token for which --specials error refused a text, for
 * messages. */
#pragma once

#include "tokenizer/encode/tokenizer.h"

#define SPECIAL_NAME_BYTES 128

typedef struct special_place {
    size_t at;                     /* offset in the text */
    char name[SPECIAL_NAME_BYTES]; /* the token, on one line; "": there is none, or no memory */
} special_place;

/* Describes the token for which encoder_encode has just refused this text. */
special_place special_place_of(const encoder *e, const uint8_t *text, size_t n_bytes);
/* The same as special_place_of, but encodes the text again. As for encoder_encode, TEXT_PADDING
 * bytes after the text are readable. */
special_place special_place_find(const tokenizer *t, const uint8_t *text, size_t n_bytes);
