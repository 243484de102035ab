/* SPDX-License-Identifier: Apache-2.0 */
/* token_scan.h - finds the largest of the tokens, and stores them at their width. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the largest of n_tokens ids of token_bytes (2 or 4) bytes each; 0 when there are none. */
uint32_t tokmap_i_largest_id(const void *tokens, size_t n_tokens, uint32_t token_bytes);
/* The same as tokmap_i_largest_id, but without vector code: the reference in tests. */
uint32_t tokmap_i_largest_id_scalar(const void *tokens, size_t n_tokens, uint32_t token_bytes);

/* Stores ids at token_bytes (2 or 4) bytes each and returns the largest. An id that does not fit
 * the width loses its upper half. */
uint32_t tokmap_i_store_ids(uint8_t *dst, const uint32_t *ids, size_t n_ids, uint32_t token_bytes);
uint32_t tokmap_i_store_ids_scalar(uint8_t *dst, const uint32_t *ids, size_t n_ids,
                                   uint32_t token_bytes);
