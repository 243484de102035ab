/* SPDX-License-Identifier: Apache-2.0 */
/* repair.h - text that may not be UTF-8, as a document has it. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "formats/options.h"

/* Returns the size of the text after repair. *n_valid: bytes before the first ones that are not
 * UTF-8 and not left as they are. */
size_t repair_size(const uint8_t *text, size_t n_bytes, corpus_utf8 how, size_t *n_valid);
/* Copies the text to dst, which has room for repair_size bytes, with U+FFFD for each maximal
 * invalid part after the first n_valid bytes. Returns the number of replacements. */
uint64_t repair_copy(uint8_t *dst, const uint8_t *text, size_t n_bytes, size_t n_valid);
