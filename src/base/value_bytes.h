/* SPDX-License-Identifier: Apache-2.0 */
/* value_bytes.h - values of documents as bytes, so that they can be kept beside other data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

size_t value_bytes_size(const tokmap_value *values, size_t n);
/* Writes value_bytes_size bytes. */
void value_bytes_put(uint8_t *to, const tokmap_value *values, size_t n);
/* Reads n values, whose text points into the bytes. Returns the number of bytes read. */
size_t value_bytes_get(const uint8_t *from, tokmap_value *values, size_t n);
