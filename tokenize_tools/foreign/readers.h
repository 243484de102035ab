/* SPDX-License-Identifier: Apache-2.0 */
/* readers.h - the formats of token files, and names for files that have none of them. */
#pragma once

#include "foreign/foreign.h"

/* The readers of FOREIGN_READERS, in its order; NULL ends the array. */
extern const foreign_reader *const foreign_readers[];

/* Returns the kind of a file that certainly does not contain raw tokens ("a gzip file", ...), or
 * NULL. */
const char *foreign_other_kind(const uint8_t *head, size_t n_head, uint64_t file_bytes);
