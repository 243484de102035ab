/* plain_map.h - a dataset's files in memory without the library: what opening it, and looking
 * something up in it, are measured against. */
#ifndef TOKMAP_PLAIN_MAP_H
#define TOKMAP_PLAIN_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct plain_map {
    const uint8_t *index, *tokens; /* NULL: not mapped */
    size_t index_bytes, token_bytes;
} plain_map;

/* Opens and maps both files and looks at the first byte of the index; false: it said why. Close in
 * any case. */
bool plain_map_open(plain_map *map, const char *prefix);
void plain_map_close(plain_map *map);
/* ns for reading eight bytes from a random place of the index, all of which is in memory. With
 * `chained` each place depends on what was read before. */
double plain_map_index_ns(const plain_map *map, bool chained, uint32_t n_reads, uint64_t seed);
/* Brings all of the index into the map. */
void plain_map_touch_index(const plain_map *map);

#endif /* TOKMAP_PLAIN_MAP_H */
