/* SPDX-License-Identifier: Apache-2.0 */
/* json_oracle.h - a naive, strict, recursive JSON reader, to compare with json_line.c. A string is
 * an array of units, one for each character of an escape and one for each byte, so that a surrogate
 * written as an escape differs from the bytes ED A0 80. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/json_line.h"

typedef struct oracle_result {
    json_line_status status;
    uint8_t *text;
    size_t n_bytes;
    uint64_t lone_surrogates;
    size_t error_offset; /* when malformed */
} oracle_result;

/* text is malloced in any case. */
oracle_result oracle_read(const char *const *parts, size_t n_parts, const uint8_t *line,
                          size_t n_bytes);

/* ---- What json_line.c says; text is malloced, too ---- */

/* Aborts if it writes behind the text, or gives one that lies elsewhere. */
oracle_result scan_line(json_paths *paths, const uint8_t *line, size_t n_bytes, size_t alignment);
bool oracle_agrees(const oracle_result *expected, const oracle_result *got);
