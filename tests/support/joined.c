/* SPDX-License-Identifier: Apache-2.0 */
#include "support/joined.h"

#include <dirent.h>

#include "base/base.h"
#include "base/le.h"
#include "base/hash.h"
#include "support/bad_days.h"
#include "support/check.h"

enum {
    TABLE = 256,
    ENTRY = 32,
    BLOCK = 1 << 20
};

/* Bytes that grow. */
typedef struct heap {
    uint8_t *data;
    size_t n_bytes;
} heap;

static uint8_t *add(heap *h, size_t n_bytes)
{
    h->data = realloc(h->data, h->n_bytes + n_bytes + 1);
    CHECK(h->data != NULL);
    uint8_t *at = h->data + h->n_bytes;
    memset(at, 0, n_bytes);
    h->n_bytes += n_bytes;
    return at;
}

static void add_u64(heap *h, uint64_t x)
{
    le_put64(add(h, 8), x);
}

static void add_bytes(heap *h, const void *bytes, size_t n_bytes)
{
    memcpy(add(h, n_bytes), bytes, n_bytes);
}

static const char *in_folder_of(const char *prefix, const char *name)
{
    static char path[5000];
    const char *slash = strrchr(prefix, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - prefix) + 1 : 0, prefix, name);
    return path;
}

/* The token file of a part, and its block checksums. */
static void store_tokens(const char *path, const joined_part *part, const uint8_t *tokens,
                         uint32_t token_bytes, heap *checksums)
{
    const size_t n_bytes = (size_t)part->n_tokens * token_bytes;
    heap file = {0};
    memset(add(&file, part->token_offset), 0xee, part->token_offset);
    add_bytes(&file, tokens, n_bytes);
    CHECK(file_store(path, file.data, file.n_bytes));
    free(file.data);
    for (size_t at = 0; at < n_bytes; at += BLOCK)
        add_u64(checksums, tokmap_i_checksum(tokens + at, MIN(n_bytes - at, BLOCK)));
}

static heap segments_section(const joined_part *parts, size_t n_parts)
{
    heap s = {0};
    uint64_t end_token = 0, name_end = 0;
    add_u64(&s, n_parts);
    for (size_t i = 0; i < n_parts; i++) {
        add_u64(&s, end_token += parts[i].n_tokens);
        add_u64(&s, parts[i].token_offset);
        add_u64(&s, name_end += strlen(parts[i].name));
    }
    for (size_t i = 0; i < n_parts; i++)
        add_bytes(&s, parts[i].name, strlen(parts[i].name));
    return s;
}

/* Adds a section behind the others, and its entry in the table. */
static void add_section(heap *index, uint32_t i, uint32_t kind, const uint8_t *bytes,
                        size_t n_bytes)
{
    add(index, (64 - index->n_bytes % 64) % 64);
    const size_t offset = index->n_bytes;
    add_bytes(index, bytes, n_bytes);
    uint8_t *entry = index->data + TABLE + ENTRY * (size_t)i;
    le_put32(entry, kind);
    le_put32(entry + 4, kind != 5);
    le_put64(entry + 8, offset);
    le_put64(entry + 16, n_bytes);
    le_put64(entry + 24, tokmap_i_checksum(bytes, n_bytes));
}

enum {
    CHECKSUMS = 2,
    SEGMENTS = 6
};

/* The index of the flat dataset with other block checksums, and a section more in its place. */
static heap joined_index(const file_bytes *flat, const heap *checksums, const heap *segments)
{
    const uint32_t n_sections = le_get32(flat->data + 28);
    heap index = {0};
    add_bytes(&index, flat->data, TABLE);
    add(&index, ENTRY * (size_t)(n_sections + 1));
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_sections; i++) {
        const uint8_t *entry = flat->data + TABLE + ENTRY * (size_t)i;
        const uint32_t kind = le_get32(entry);
        const uint8_t *bytes = flat->data + le_get64(entry + 8);
        if (kind > SEGMENTS && n == i)
            add_section(&index, n++, SEGMENTS, segments->data, segments->n_bytes);
        if (kind == CHECKSUMS)
            add_section(&index, n++, kind, checksums->data, checksums->n_bytes);
        else
            add_section(&index, n++, kind, bytes, (size_t)le_get64(entry + 16));
    }
    if (n == n_sections)
        add_section(&index, n, SEGMENTS, segments->data, segments->n_bytes);
    uint8_t *h = index.data;
    le_put32(h + 28, n_sections + 1);
    le_put64(h + 32, index.n_bytes);
    le_put64(h + 72, 0);
    memset(h + 104, 0, 16);
    memcpy(h + 104, ".bin", 4);
    le_put64(h + 240, tokmap_i_checksum(h + TABLE, ENTRY * (size_t)(n_sections + 1)));
    le_put64(h + 248, tokmap_i_checksum(h, 248));
    return index;
}

void joined_store(const char *flat, const char *prefix, const joined_part *parts, size_t n_parts)
{
    file_bytes index = file_load(with_suffix(flat, ".tmi"));
    CHECK(index.data != NULL);
    char suffix[17] = "";
    memcpy(suffix, index.data + 104, 16);
    file_bytes tokens = file_load(with_suffix(flat, suffix));
    CHECK(tokens.data != NULL);
    const uint32_t token_bytes = le_get32(index.data + 80);
    const uint8_t *from = tokens.data + le_get64(index.data + 72);
    heap checksums = {0};
    add(&checksums, 0);
    for (size_t i = 0; i < n_parts; i++) {
        store_tokens(in_folder_of(prefix, parts[i].name), &parts[i], from, token_bytes, &checksums);
        from += parts[i].n_tokens * token_bytes;
    }
    CHECK(from == tokens.data + tokens.n_bytes);
    heap segments = segments_section(parts, n_parts);
    heap joined = joined_index(&index, &checksums, &segments);
    CHECK(file_store(with_suffix(prefix, ".tmi"), joined.data, joined.n_bytes));
    free(joined.data);
    free(segments.data);
    free(checksums.data);
    free(tokens.data);
    free(index.data);
}

/* The parts named NAME-0000.bin and so on. */
static joined_part numbered[1 << 16];

static void number_parts(const char *name, size_t n_parts)
{
    CHECK(n_parts <= sizeof numbered / sizeof numbered[0]);
    for (size_t i = 0; i < n_parts; i++) {
        char *file = malloc(strlen(name) + 20);
        CHECK(file != NULL);
        sprintf(file, "%s-%04zu.bin", name, i);
        numbered[i] = (joined_part){.name = file};
    }
}

static void store_numbered(const char *flat, const char *prefix, size_t n_parts)
{
    joined_store(flat, prefix, numbered, n_parts);
    for (size_t i = 0; i < n_parts; i++)
        free((char *)numbered[i].name);
}

static uint64_t tokens_of(const char *flat, uint32_t *token_bytes)
{
    file_bytes index = file_load(with_suffix(flat, ".tmi"));
    CHECK(index.data != NULL);
    const uint64_t n_tokens = le_get64(index.data + 56);
    *token_bytes = le_get32(index.data + 80);
    free(index.data);
    return n_tokens;
}

void joined_store_even(const char *flat, const char *prefix, const char *name, uint64_t n_tokens)
{
    uint32_t token_bytes;
    const uint64_t n_all = tokens_of(flat, &token_bytes);
    const size_t n_parts = (size_t)((n_all + n_tokens - 1) / n_tokens);
    number_parts(name, n_parts);
    for (size_t i = 0; i < n_parts; i++)
        numbered[i].n_tokens = MIN(n_all - i * n_tokens, n_tokens);
    store_numbered(flat, prefix, n_parts);
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Every fourth part ends one token behind another. */
static uint64_t *choose_ends(uint64_t n_tokens, size_t n_parts)
{
    uint64_t *ends = malloc(n_parts * sizeof *ends), random = 1;
    uint8_t *taken = calloc((size_t)n_tokens + 1, 1);
    CHECK(ends && taken && n_parts >= 1 && n_parts <= n_tokens);
    ends[n_parts - 1] = n_tokens;
    taken[n_tokens] = 1;
    for (size_t i = 0; i + 1 < n_parts; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t end = (i % 4 == 3 ? ends[i - 1] : random >> 20) % n_tokens + 1;
        while (taken[end])
            end = end % n_tokens + 1;
        taken[end] = 1;
        ends[i] = end;
    }
    free(taken);
    qsort(ends, n_parts, sizeof *ends, compare_u64);
    return ends;
}

void joined_store_uneven(const char *flat, const char *prefix, const char *name, size_t n_parts)
{
    uint32_t token_bytes;
    uint64_t *ends = choose_ends(tokens_of(flat, &token_bytes), n_parts);
    number_parts(name, n_parts);
    for (size_t i = 0; i < n_parts; i++) {
        numbered[i].n_tokens = ends[i] - (i > 0 ? ends[i - 1] : 0);
        numbered[i].token_offset = i % 3 == 1 ? token_bytes * (1 + (uint32_t)i % 7) : 0;
    }
    store_numbered(flat, prefix, n_parts);
    free(ends);
}

unsigned n_entries(const char *folder)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    if (!d)
        SKIP("no /proc");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

unsigned n_open_files(void)
{
    return n_entries("/proc/self/fd");
}

unsigned n_mapped_files(const char *part_of_name)
{
    char line[1000];
    unsigned n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    if (!f)
        SKIP("no /proc");
    while (fgets(line, sizeof line, f))
        n += strstr(line, part_of_name) != NULL;
    fclose(f);
    return n;
}
