/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_corpus.c - any bytes as an input of any format and compression, in batches and pieces of any
 * size: the documents are those of the naive model, and from any place on they are the same. If the
 * input can be cut, its parts give what the whole gives. */
#include "fuzz/fuzz.h"

#include <unistd.h>

#include "corpus/reader_kind.h"
#include "corpus/input.h"
#include "corpus/tar_header.h"
#include "oracles/corpus_model.h"
#include "support/part_reading.h"

#define OPTION_BYTES 6
#define MAX_PLAIN ((size_t)1 << 18)

static void collect(void *context, const uint8_t *data, size_t n_bytes, bool last)
{
    (void)context;
    (void)last;
    if (n_bytes)
        (void)*(volatile const uint8_t *)(data + n_bytes - 1);
}

static void report(void *context, const char *text)
{
    (void)context;
    require(strlen(text) > 0 && strlen(text) < 640);
}

/* The fields and the expression of MODEL_WHERE. */
static void choose_where(corpus_options *o)
{
    static field_list fields;
    static where *w;
    failure err;
    if (!w)
        w = where_compile(MODEL_WHERE, &fields, &err);
    require(w != NULL);
    o->fields = &fields;
    o->where = w;
    o->n_kept = 1;
}

static corpus_options choose_options(const uint8_t *d)
{
    static const size_t sizes[] = {4, 7, 16, 50, 200, 1000, 1 << 15, 1 << 20};
    static const char *const separators[] = {NULL, "\n", "--", "ab\xff"};
    corpus_options o = {
        .format = (corpus_format)(d[0] & 3),
        .utf8 = (corpus_utf8)((d[0] >> 2 & 3) % 3),
        .utf8_given = !(d[1] & 8),
        .on_error = (corpus_on_error)((d[0] >> 4 & 3) % 3),
        .field = d[0] & 64 ? "a.b" : NULL,
        .read_ahead = d[5] > 250,
        .separator = separators[d[1] & 3],
        .batch_bytes = sizes[d[2] & 7],
        .max_piece_bytes = sizes[d[2] >> 4 & 7],
        .read_bytes = d[4] ? d[4] : 4096,
        .safe_cut = d[1] & 4 ? cut_before_space : NULL,
        .collect = collect,
        .report = report,
    };
    o.separator_bytes = o.separator ? strlen(o.separator) : 0;
    if (o.max_piece_bytes < o.batch_bytes)
        o.max_piece_bytes = o.batch_bytes;
    if (d[1] & 64)
        choose_where(&o);
    return o;
}

/* What the input holds. Returns false when it cannot be read to its end. */
static bool read_plain(const char *name, uint8_t *plain, size_t *n_plain)
{
    failure err;
    ssize_t n = -1;
    input *in = input_open(name, &err);
    *n_plain = 0;
    while (in && *n_plain < MAX_PLAIN &&
           (n = input_read(in, plain + *n_plain, MAX_PLAIN - *n_plain, &err)) > 0)
        *n_plain += (size_t)n;
    input_close(in);
    return n == 0;
}

/* The model knows only text. */
static bool is_of_another_target(const uint8_t *plain, size_t n_plain)
{
    return arrow_is_magic(plain, n_plain) || (n_plain >= 4 && memcmp(plain, "PAR1", 4) == 0) ||
           (n_plain >= TAR_BLOCK_BYTES && tar_is_header(plain));
}

typedef struct reading {
    int result;
    bool stops;             /* at a bad document, of which some may have been handed out */
    size_t n_documents, at; /* at: in the text of the document at hand */
    corpus_place places[64], last;
    size_t n_places;
} reading;

static bool is_left_out(const model_document *d)
{
    return d->filtered || d->is_null;
}

static const model_document *good_document(const model *m, size_t n)
{
    for (size_t i = 0; i < m->n_documents; i++) {
        if (!m->documents[i].bad && !is_left_out(&m->documents[i]) && n-- == 0)
            return &m->documents[i];
    }
    return NULL;
}

/* Whether the document after the first n, those aside that are left out, is bad. */
static bool is_bad(const model *m, size_t n)
{
    for (size_t i = 0; i < m->n_documents; i++) {
        if (!is_left_out(&m->documents[i]) && n-- == 0)
            return m->documents[i].bad;
    }
    return false;
}

/* The next n_bytes of text belong to the n-th good document, and end it or not. */
static void compare(reading *r, const model *m, const uint8_t *text, size_t n_bytes, bool ends)
{
    const model_document *d = good_document(m, r->n_documents);
    if (r->stops && !ends && is_bad(m, r->n_documents))
        return;
    require(d && r->at + n_bytes <= d->n_bytes);
    require(n_bytes == 0 || memcmp(d->text + r->at, text, n_bytes) == 0);
    r->at += n_bytes;
    require(!ends || r->at == d->n_bytes);
    if (ends) {
        r->n_documents++;
        r->at = 0;
    }
}

static void take_batch(reading *r, const model *m, const corpus_batch *b)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n_ends; i++) {
        if (!b->ends[i].input)
            compare(r, m, b->text + at, b->ends[i].at - at, true);
        at = b->ends[i].at;
    }
    if (b->n_bytes > at)
        compare(r, m, b->text + at, b->n_bytes - at, false);
    r->last = b->after;
    if (r->n_places < 64)
        r->places[r->n_places++] = b->after;
}

static void read_documents(reading *r, const char *name, const corpus_options *o, const model *m,
                           const corpus_place *from)
{
    corpus_batch b = {0};
    failure err;
    corpus *c = corpus_open(&name, 1, o, from, &err);
    require(c != NULL);
    r->stops = o->on_error == ON_ERROR_FAIL;
    if (from) {
        r->n_documents = (size_t)from->counts.documents;
        r->at = (size_t)from->piece_offset;
    }
    while ((r->result = corpus_read(c, &b, &err)) > 0)
        take_batch(r, m, &b);
    require(r->result == 0 || strlen(err.text) > 0);
    corpus_close(c);
    corpus_batch_free(&b);
}

static void check_counts(const corpus_counts *c, const model *m, size_t n_plain)
{
    corpus_counts e = {0};
    for (size_t i = 0; i < m->n_documents; i++) {
        const model_document *d = &m->documents[i];
        e.bad_documents += d->bad;
        e.bad_bytes += d->bad ? d->end - d->begin : 0;
        e.filtered_documents += d->filtered;
        e.null_documents += d->is_null;
        if (d->bad || is_left_out(d))
            continue;
        e.documents++;
        e.text_bytes += d->n_bytes;
        e.replacements += d->replacements;
    }
    require(c->filtered_documents == e.filtered_documents);
    require(c->null_documents == e.null_documents);
    require(c->records == m->n_documents);
    require(c->bad_documents == e.bad_documents && c->bad_bytes == e.bad_bytes);
    require(c->documents == e.documents && c->text_bytes == e.text_bytes);
    require(c->replacements == e.replacements && c->plain_bytes == n_plain);
}

/* The first bytes choose the places. */
static void check_parts(const char *name, const corpus_options *o, const uint8_t *data)
{
    part_reading all;
    uint64_t random = 0;
    memcpy(&random, data, OPTION_BYTES);
    require(part_reading_compare(&all, &name, 1, o, &random) == NULL);
    part_reading_free(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t plain[MAX_PLAIN];
    char name[64];
    size_t n_plain;
    if (size < OPTION_BYTES)
        return 0;
    corpus_options o = choose_options(data);
    const int fd = input_file(name, data + OPTION_BYTES, size - OPTION_BYTES);
    bool readable = read_plain(name, plain, &n_plain);
    if (is_of_another_target(plain, n_plain)) {
        close(fd);
        return 0;
    }
    if (readable) {
        size_t n_stored = size - OPTION_BYTES;
        bool compressed = n_stored != n_plain || memcmp(plain, data + OPTION_BYTES, n_plain) != 0;
        model m = corpus_model_read(&o, plain, n_plain, compressed);
        size_t n_bad = 0, n_left_out = 0;
        for (size_t i = 0; i < m.n_documents; i++) {
            n_bad += m.documents[i].bad;
            n_left_out += is_left_out(&m.documents[i]);
        }
        reading all = {0}, rest = {0};
        read_documents(&all, name, &o, &m, NULL);
        bool fails = m.format == CORPUS_AUTO || (o.on_error == ON_ERROR_FAIL && n_bad > 0);
        require((all.result < 0) == fails);
        require(fails || all.n_documents + n_bad + n_left_out == m.n_documents);
        if (!fails) {
            check_counts(&all.last.counts, &m, n_plain);
            read_documents(&rest, name, &o, &m, &all.places[data[5] % all.n_places]);
            require(rest.result == 0 && rest.n_documents == all.n_documents);
            require(rest.n_places == 0 || memcmp(&rest.last, &all.last, sizeof all.last) == 0);
        }
        if (!compressed && m.format != CORPUS_TEXT)
            check_parts(name, &o, data);
        corpus_model_free(&m);
    } else if (n_plain < MAX_PLAIN) {
        corpus_batch b = {0};
        failure err;
        const char *names = name;
        corpus *c = corpus_open(&names, 1, &o, NULL, &err);
        int result;
        while ((result = corpus_read(c, &b, &err)) > 0)
            ;
        require(result < 0);
        corpus_close(c);
        corpus_batch_free(&b);
    }
    close(fd);
    return 0;
}
