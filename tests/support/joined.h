/* SPDX-License-Identifier: Apache-2.0 */
/* joined.h - cuts a flat dataset into a joined one with the same content: token files of any sizes,
 * and an index over them, written byte by byte as docs/FORMAT.md says. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct joined_part {
    const char *name; /* of the token file, from the folder of the index */
    uint64_t n_tokens;
    uint32_t token_offset;
} joined_part;

/* Writes prefix.tmi and the token files, of which several parts must not have the same. The parts
 * have all tokens of `flat`, which stays as it is. A failure ends the test. */
void joined_store(const char *flat, const char *prefix, const joined_part *parts, size_t n_parts);
/* The same, with names NAME-0000.bin and so on, and as many tokens in each but the last, up to 2^16
 * parts. */
void joined_store_even(const char *flat, const char *prefix, const char *name, uint64_t n_tokens);
/* The same, with n_parts of very different sizes, also of one token. Every third has bytes in front
 * of its tokens. */
void joined_store_uneven(const char *flat, const char *prefix, const char *name, size_t n_parts);

/* Of a folder of /proc. */
unsigned n_entries(const char *folder);
/* What this process has open, and has mapped of files with this in their names ("": everything). */
unsigned n_open_files(void);
unsigned n_mapped_files(const char *part_of_name);
