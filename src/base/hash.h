/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - the checksums of the format: XXH3 under our own names. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t tokmap_i_checksum(const void *data, size_t n_bytes);
/* Computes XXH3-128 in canonical byte order, as the format stores ids. */
void tokmap_i_id128(const void *data, size_t n_bytes, uint8_t out[16]);

typedef struct tokmap_i_hasher tokmap_i_hasher;
tokmap_i_hasher *tokmap_i_hasher_open(void); /* NULL when out of memory */
void tokmap_i_hasher_reset(tokmap_i_hasher *h);
void tokmap_i_hasher_add(tokmap_i_hasher *h, const void *data, size_t n_bytes);
uint64_t tokmap_i_hasher_get(const tokmap_i_hasher *h);
void tokmap_i_hasher_close(tokmap_i_hasher *h);
