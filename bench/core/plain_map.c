/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plain_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bench.h"
#include "cli/cli.h"

enum {
    SMALLEST_PAGE = 4096
};

static const uint8_t *map_file(const char *prefix, const char *suffix, size_t *n_bytes)
{
    char path[4100];
    struct stat st;
    void *map = MAP_FAILED;
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        *n_bytes = (size_t)st.st_size;
        map = mmap(NULL, *n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    }
    if (fd < 0 || map == MAP_FAILED)
        cli_warn("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return map == MAP_FAILED ? NULL : map;
}

bool plain_map_open(plain_map *map, const char *prefix)
{
    *map = (plain_map){0};
    map->index = map_file(prefix, ".tmi", &map->index_bytes);
    if (map->index)
        map->tokens = map_file(prefix, ".bin", &map->token_bytes);
    if (!map->index || !map->tokens)
        return false;
    *(const volatile uint8_t *)map->index;
    return true;
}

static void unmap_bytes(const uint8_t *at, size_t n_bytes)
{
    if (at)
        munmap((void *)(uintptr_t)at, n_bytes);
}

void plain_map_close(plain_map *map)
{
    unmap_bytes(map->index, map->index_bytes);
    unmap_bytes(map->tokens, map->token_bytes);
    *map = (plain_map){0};
}

void plain_map_touch_index(const plain_map *map)
{
    const volatile uint8_t *at = map->index;
    uint8_t sum = 0;
    for (size_t i = 0; i < map->index_bytes; i += SMALLEST_PAGE)
        sum = (uint8_t)(sum + at[i]);
    (void)sum;
}

double plain_map_index_ns(const plain_map *map, bool chained, uint32_t n_reads, uint64_t seed)
{
    const uint64_t n_places = map->index_bytes / sizeof(uint64_t);
    uint64_t sum = 0, word;
    const uint64_t start = tokmap_i_now_ns();
    for (uint32_t i = 0; i < n_reads; i++) {
        const uint64_t place = (bench_random(&seed) + (chained ? sum & 1 : 0)) % n_places;
        memcpy(&word, map->index + place * sizeof word, sizeof word);
        sum += word;
    }
    const double ns = (double)(tokmap_i_now_ns() - start) + (sum == 1) * 1e-9; /* keeps the sum */
    return ns / n_reads;
}
