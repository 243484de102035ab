/* SPDX-License-Identifier: Apache-2.0 */
/* json_span.h - the vector code of json_line.c: the inside of a JSON string. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

typedef struct json_span_moved {
    size_t read, written;
} json_span_moved;

/* The text must have 64 readable bytes after n_bytes. Nothing is written beyond out[n_bytes]. */
typedef struct json_span_calls {
    /* Bytes before the first quote, backslash or control character; n_bytes if there is none. */
    size_t (*find)(const uint8_t *text, size_t n_bytes);
    /* Copies, with escapes decoded, up to a quote, a control character, or an escape that is
     * invalid, incomplete, or a lone surrogate. */
    json_span_moved (*decode)(const uint8_t *text, size_t n_bytes, uint8_t *out);
} json_span_calls;

/* Returns the calls of this level, or of the next best that works on this machine. */
const json_span_calls *json_span_engine(simd_level level);
