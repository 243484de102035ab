/* SPDX-License-Identifier: Apache-2.0 */
/* json_array.h - makes JSON lines of a JSON array of objects, byte for byte, so that each byte
 * keeps its place: the commas between the objects become newlines, the outer brackets and newlines
 * between values become blanks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct json_array { /* start with {0} at the first byte of the file */
    uint64_t depth;         /* of brackets */
    bool in_string, escaped, is_over;
    bool has_value;   /* a value has begun since the last comma of the array */
    bool after_comma; /* the array has had a comma */
} json_array;

/* Makes blanks of the comments of a whole JSON text, and of commas before a closing bracket. */
void json_blank_comments(uint8_t *bytes, size_t n_bytes);

/* Changes the next bytes; for window_change. No bytes: the end of the file, which must not come
 * before that of the array. */
bool json_array_change(void *array, uint8_t *bytes, size_t n_bytes, failure *err);
