/* SPDX-License-Identifier: Apache-2.0 */
/* content_hash.h - a hash of a sequence that can be joined: the hash of A followed by B follows
 * from the hashes and lengths of A and B.
 *
 * It is two remainders of the sequence as a polynomial over GF(2), modulo two primitive polynomials
 * of degree 64: CRC-64 with the polynomials of CRC-64/NVME and CRC-64/REDIS, both reflected, both
 * starting at 0 and without a final XOR. docs/FORMAT.md defines what is hashed. It finds accidents,
 * as a random function of 128 bits would; it does not resist an attacker. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct tokmap_i_content_hash { /* starts as {0}: the hash of nothing */
    uint64_t crc[2];
    uint64_t n_bytes;
} tokmap_i_content_hash;

/* Stores the two remainders in 16 bytes. The length is stored elsewhere. */
void tokmap_i_content_hash_store(const tokmap_i_content_hash *h, uint8_t *bytes);

/* Adds bytes to the end. */
void tokmap_i_content_hash_add(tokmap_i_content_hash *h, const void *data, size_t n_bytes);
/* Adds tokens of 2 or 4 bytes, little-endian, as if each had 4. */
void tokmap_i_content_hash_add_tokens(tokmap_i_content_hash *h, const void *tokens, size_t n_tokens,
                                      unsigned token_bytes);
/* Adds a sequence by its hash. */
void tokmap_i_content_hash_join(tokmap_i_content_hash *h, const tokmap_i_content_hash *next);

/* The instructions to use; for tests. Without them, the next smaller set that this machine has. */
typedef enum tokmap_i_content_engine {
    CONTENT_SCALAR,
    CONTENT_128,
    CONTENT_256,
    CONTENT_512
} tokmap_i_content_engine;
void tokmap_i_content_hash_add_with(tokmap_i_content_hash *h, const void *data, size_t n_bytes,
                                    tokmap_i_content_engine engine);
