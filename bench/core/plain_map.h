/* SPDX-License-Identifier: Apache-2.0 */
/* plain_map.h - maps the files of a dataset without the library, to compare opening and lookups
 * with. */
#ifndef TOKMAP_PLAIN_MAP_H
#define TOKMAP_PLAIN_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct plain_map {
    const uint8_t *index, *tokens; /* NULL: not mapped */
    size_t index_bytes, token_bytes;
} plain_map;

/* Opens and maps both files and reads the first byte of the index; false: the error was printed.
 * Close it in either case. */
bool plain_map_open(plain_map *map, const char *prefix);
void plain_map_close(plain_map *map);
/* ns for reading eight bytes at a random place of the index, which is in memory. `chained`: each
 * place depends on the value read before. */
double plain_map_index_ns(const plain_map *map, bool chained, uint32_t n_reads, uint64_t seed);
/* Maps all pages of the index. */
void plain_map_touch_index(const plain_map *map);

#endif /* TOKMAP_PLAIN_MAP_H */
