/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c - how long it takes to find the document of a token, in a mapped index. It takes at
 * least one read at a random place of the index, which is measured too. */
#include <assert.h>
#include <string.h>

#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 11,
    LOOKUPS = 1000000,
    MEAN_LENGTH = 1000
};

enum {
    READ,
    READ_MANY,
    FIND,
    FIND_MANY,
    DOCUMENT,
    N_KINDS
};
static const char *const names[N_KINDS] = {
    "random read, one by one", "random read, many at once", "find by token, one by one",
    "find by token, many at once", "document by number, many at once"};

typedef struct subject {
    tokmap_dataset *ds;
    uint64_t n_documents;
    const uint8_t *index; /* mapped without the library */
    size_t index_bytes;
} subject;

/* Answers one question about a random place, and returns part of the answer. */
static uint64_t answer(const subject *s, int kind, uint64_t random, uint64_t n)
{
    tokmap_document doc;
    uint64_t word;
    const uint64_t at = random % n;
    if (kind <= READ_MANY) {
        memcpy(&word, s->index + at * sizeof word, sizeof word);
        return word;
    }
    if (kind == DOCUMENT ? tokmap_dataset_document(s->ds, at, &doc) != TOKMAP_OK
                         : tokmap_dataset_find_document(s->ds, at, &doc) || at < doc.first_token)
        bench_fail("a document could not be looked up");
    return kind == DOCUMENT ? doc.first_token : doc.index;
}

/* Measures the time for a question. One by one, each question depends on the answer before it, so
 * that nothing overlaps: the latency for one caller. Many at once: the time for each of many
 * independent questions. */
static double measure_ns(const subject *s, int kind, uint64_t seed)
{
    const bool chained = kind == READ || kind == FIND;
    const uint64_t n = kind <= READ_MANY  ? s->index_bytes / sizeof(uint64_t)
                       : kind == DOCUMENT ? s->n_documents
                                          : s->n_documents * MEAN_LENGTH;
    uint64_t sum = 0;
    assert(n > 0); /* --documents is at least 1 */
    const uint64_t start = tokmap_i_now_ns();
    for (int i = 0; i < LOOKUPS; i++)
        sum += answer(s, kind, bench_random(&seed) + (chained ? sum & 1 : 0), n);
    bench_keep(sum);
    return bench_ns_since(start) / LOOKUPS;
}

/* Maps every page of both maps of the index, so that lookups are measured and not the disk. */
static void touch_all(const subject *s)
{
    for (uint64_t i = 0; i < s->n_documents; i += 64)
        answer(s, DOCUMENT, i, s->n_documents);
    for (size_t i = 0; i < s->index_bytes; i += 4096)
        bench_keep(((const volatile uint8_t *)s->index)[i]);
}

static void measure_size(const bench_options *options, uint64_t n_documents, bench_row *const *rows)
{
    subject s = {.n_documents = n_documents};
    load_data_make_sparse(options, 0, n_documents * MEAN_LENGTH, n_documents);
    load_data_open_made(options, 0, &s.ds, 1);
    s.index = load_data_map(load_data_name(options, 0).s, ".tmi", &s.index_bytes);
    touch_all(&s);
    for (uint32_t i = 0; i < N_KINDS * bench_rounds(options, ROUNDS); i++)
        bench_add_value(rows[i % N_KINDS], measure_ns(&s, (int)i % N_KINDS, i));
    tokmap_i_unmap(s.index, s.index_bytes);
    load_data_close_made(&s.ds, 1);
    bench_set_goal(rows[FIND], BENCH_AT_MOST, 1000);
    bench_set_limit(rows[FIND], rows[READ], 1);
    bench_set_limit(rows[FIND_MANY], rows[READ_MANY], 1);
    bench_set_limit(rows[DOCUMENT], rows[READ_MANY], 1);
}

void bench_lookup(const bench_options *options, bench_report *report)
{
    const uint64_t large = options->n_documents ? options->n_documents : 1000000000;
    const uint64_t sizes[] = {large / 1000 ? large / 1000 : 1, large};
    bench_row *rows[2][N_KINDS];
    char column[16];
    for (int i = 0; i < 2 * N_KINDS; i++) {
        snprintf(column, sizeof column, "%.0e docs", (double)sizes[i % 2]);
        rows[i % 2][i / 2] =
            bench_add_cell(report, (const char *const[]){column, "ns"}, "%s", names[i / 2]);
    }
    for (int i = 0; i < 2; i++)
        measure_size(options, sizes[i], rows[i]);
}
