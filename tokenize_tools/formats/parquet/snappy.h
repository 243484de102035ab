/* SPDX-License-Identifier: Apache-2.0 */
/* snappy.h - decompresses snappy data: a length, then literals and copies of earlier output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decompresses. Returns whether the data is complete and has exactly to_bytes bytes. */
bool snappy_read(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes);
