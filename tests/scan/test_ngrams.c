/* SPDX-License-Identifier: Apache-2.0 */
/* test_ngrams - the scan against a search for every n-gram at every place. */
#include <stdlib.h>

#include "scan/ngrams.h"
#include "support/check.h"

enum {
    MOST_IDS = 60,
    MOST_EXAMPLES = 8,
    N_CASES = 4000
};

typedef struct text {
    uint32_t ids[MOST_IDS];
    uint32_t n;
} text;

static uint64_t state = 3;

static uint32_t any(uint32_t n)
{
    return (uint32_t)(check_mix(state++, 7) % n);
}

static text make(uint32_t n_letters)
{
    text t = {.n = any(MOST_IDS + 1)};
    for (uint32_t i = 0; i < t.n; i++)
        t.ids[i] = any(n_letters) * (n_letters > 100 ? 1000003u : 1);
    return t;
}

/* The number of the first example that has the n-gram at a place, from 1 on; 0: none. */
static uint32_t first_with(const text *examples, uint32_t n_examples, const uint32_t *ids,
                           uint32_t n)
{
    for (uint32_t e = 0; e < n_examples; e++)
        for (uint32_t i = 0; i + n <= examples[e].n; i++)
            if (memcmp(examples[e].ids + i, ids, n * sizeof *ids) == 0)
                return e + 1;
    return 0;
}

/* Compares what was found with a search at each place. */
static void check_found(const ngrams_found *f, const text *examples, uint32_t n_examples,
                        const text *t, uint32_t n)
{
    uint64_t n_ngrams = 0;
    size_t n_runs = 0;
    for (uint32_t at = 0, end; at + n <= t->n; at = end + 1) {
        for (end = at; end + n <= t->n && first_with(examples, n_examples, t->ids + end, n);)
            end++;
        if (end == at)
            continue;
        n_ngrams += end - at;
        CHECK(n_runs < f->n_runs);
        const ngrams_run *r = &f->runs[n_runs++];
        CHECK_EQ(r->at, at);
        CHECK_EQ(r->n_tokens, end - at + n - 1);
        CHECK_EQ(r->example, first_with(examples, n_examples, t->ids + at, n));
    }
    CHECK_EQ(f->n_ngrams, n_ngrams);
    CHECK_EQ(f->n_runs, n_runs);
}

/* Looks for n-grams of examples, some of which are pieces of the text, with tokens of either
 * size. */
static uint32_t run_case(uint32_t n, uint32_t n_letters)
{
    const uint32_t n_examples = any(MOST_EXAMPLES + 1), n_widths = n_letters > 100 ? 1 : 2;
    text examples[MOST_EXAMPLES], t = make(n_letters);
    ngrams *indexes[2] = {ngrams_open(n, 4), ngrams_open(n, 2)};
    uint16_t narrow[MOST_IDS];
    for (uint32_t i = 0; i < t.n; i++)
        narrow[i] = (uint16_t)t.ids[i];
    for (uint32_t e = 0; e < n_examples; e++) {
        examples[e] = make(n_letters);
        if (t.n > 0 && any(2) == 0) {
            const uint32_t from = any(t.n),
                           m = t.n - from < examples[e].n ? t.n - from : examples[e].n;
            memcpy(examples[e].ids, t.ids + from, m * sizeof *t.ids);
        }
        for (uint32_t i = 0; i < n_widths; i++)
            CHECK(ngrams_add(indexes[i], examples[e].ids, examples[e].n, e + 1));
    }
    uint32_t found_any = 0;
    for (uint32_t i = 0; i < n_widths; i++) {
        ngrams_found found = {0};
        CHECK(ngrams_finish(indexes[i]));
        CHECK(ngrams_scan(indexes[i], i == 0 ? (const void *)t.ids : narrow, t.n, &found));
        check_found(&found, examples, n_examples, &t, n);
        found_any = found.n_ngrams > 0;
        free(found.runs);
    }
    for (int i = 0; i < 2; i++)
        ngrams_close(indexes[i]);
    return found_any;
}

/* A document of more pieces than are hashed at once, with an n-gram at every seam. */
TEST(long_documents_are_looked_through_to_their_end)
{
    static const uint32_t lengths[] = {1, 7, 8, 9, 13, 255};
    enum {
        N_IDS = 70000
    };
    uint32_t *ids = malloc(N_IDS * sizeof *ids);
    CHECK(ids != NULL);
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = i;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const uint32_t n = lengths[k], stride = n - (n < 8 ? n : 8) + 1, every = 128 * stride;
        ngrams *x = ngrams_open(n, 4);
        ngrams_found found = {0};
        for (uint32_t at = every - 1; at + n <= N_IDS; at += every)
            CHECK(ngrams_add(x, ids + at, n, at));
        CHECK(ngrams_finish(x));
        CHECK(ngrams_scan(x, ids, N_IDS, &found));
        CHECK_EQ(found.n_ngrams, ngrams_count(x));
        CHECK_EQ(found.n_runs, ngrams_count(x));
        for (size_t i = 0; i < found.n_runs; i++)
            CHECK(found.runs[i].at == found.runs[i].example && found.runs[i].n_tokens == n);
        free(found.runs);
        ngrams_close(x);
    }
    free(ids);
}

TEST(every_ngram_of_an_example_is_found_and_nothing_else)
{
    uint32_t n_found = 0;
    for (uint32_t run = 0; run < N_CASES * (check_long() ? 20u : 1u); run++)
        n_found += run_case(1 + any(run % 2 ? 6 : 40), run % 3 ? 1 + any(4) : 4000);
    printf("note %u texts with an n-gram\n", n_found);
    CHECK(n_found > N_CASES / 8);
}
