/* lookup_page.c - which document holds this token: how many answers a second, straight from the
 * map. */
#include <stdlib.h>

#include "bench.h"
#include "tokmap.h"

enum {
    ROUNDS = 11,
    LOOKUPS = 1000000,
    MEAN_LENGTH = 1000
};
static const uint64_t default_documents = 1000000000;

/* Random tokens. With `chained` each depends on the answer before it, so that nothing overlaps:
 * the time one caller waits; without, the time a caller with many questions pays for each. */
static double lookup_ns(const tokmap_dataset *ds, uint64_t n_tokens, bool chained, uint64_t seed)
{
    uint64_t sum = 0;
    const uint64_t start = bench_now_ns();
    for (int i = 0; i < LOOKUPS; i++) {
        tokmap_document doc;
        const uint64_t token = (bench_random(&seed) + (chained ? sum & 1 : 0)) % n_tokens;
        if (tokmap_dataset_find_document(ds, token, &doc) || token < doc.first_token)
            return -1;
        sum += doc.index;
    }
    const double ns = (double)(bench_now_ns() - start) / LOOKUPS;
    return sum == 1 ? -1 : ns; /* keeps the sum alive */
}

static double by_index_ns(const tokmap_dataset *ds, uint64_t n_documents, uint64_t seed)
{
    uint64_t sum = 0;
    const uint64_t start = bench_now_ns();
    for (int i = 0; i < LOOKUPS; i++) {
        tokmap_document doc;
        if (tokmap_dataset_document(ds, bench_random(&seed) % n_documents, &doc))
            return -1;
        sum += doc.first_token;
    }
    const double ns = (double)(bench_now_ns() - start) / LOOKUPS;
    return sum == 1 ? -1 : ns;
}

/* Brings every page of the index into the map: a lookup is to be measured, not the disk. */
static int touch_all(const tokmap_dataset *ds, uint64_t n_documents)
{
    tokmap_document doc;
    for (uint64_t i = 0; i < n_documents; i += 64)
        if (tokmap_dataset_document(ds, i, &doc))
            return 1;
    return 0;
}

static int measure(const bench_options *options, bench_report *report, uint64_t n_documents)
{
    char prefix[4096], name[80];
    snprintf(prefix, sizeof prefix, "%s/lookup", options->dir);
    const uint64_t n_tokens = n_documents * MEAN_LENGTH;
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    int code = bench_make_sparse(prefix, n_tokens, n_documents);
    if (!code && tokmap_dataset_open(&ds, prefix, &err)) {
        fprintf(stderr, "tokbench: %s\n", err.text);
        code = 1;
    }
    bench_row *rows[3];
    const char *names[3] = {"find by token, one after another", "find by token, many at once",
                            "document by number, many at once"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s, %.0e documents", names[i], (double)n_documents);
        rows[i] = bench_add_row(report, "lookup", name, "ns");
    }
    bench_set_goal(rows[0], BENCH_AT_MOST, 1000);
    if (!code)
        code = touch_all(ds, n_documents);
    const uint32_t n_rounds = options->n_rounds ? options->n_rounds : ROUNDS;
    for (uint32_t i = 0; !code && i < n_rounds; i++) {
        const double x = lookup_ns(ds, n_tokens, true, i), y = lookup_ns(ds, n_tokens, false, ~i),
                     z = by_index_ns(ds, n_documents, i + 1);
        code = x < 0 || y < 0 || z < 0;
        bench_add_value(rows[0], x);
        bench_add_value(rows[1], y);
        bench_add_value(rows[2], z);
    }
    snprintf(name, sizeof name, "lookups a second, one thread, %.0e documents",
             (double)n_documents);
    bench_row *rate = bench_add_row(report, "lookup", name, "M/s");
    for (uint32_t i = 0; i < rows[1]->n_values; i++)
        bench_add_value(rate, 1e3 / rows[1]->values[i]);
    tokmap_dataset_close(ds);
    bench_remove(prefix);
    return code;
}

int lookup_page(const bench_options *options, bench_report *report)
{
    const uint64_t large = options->n_documents ? options->n_documents : default_documents;
    const int code = measure(options, report, large / 1000 ? large / 1000 : 1);
    return code ? code : measure(options, report, large);
}
