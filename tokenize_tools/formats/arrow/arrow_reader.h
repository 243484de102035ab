/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_reader.h - the format of Arrow IPC, for the readers of inputs. */
#pragma once

#include "formats/format.h"

/* Arrow's IPC format: a column of texts, one record batch after another. A stream and a file are
 * read in the same way, from front to back. The place of a document is the offset of its record
 * batch and the number of its row in the input. */
extern const reader_kind arrow_reader_kind;
bool arrow_is_magic(const uint8_t *bytes, size_t n_bytes);
