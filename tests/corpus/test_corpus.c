/* SPDX-License-Identifier: Apache-2.0 */
/* test_corpus.c - the documents of inputs of every format, compression and chunk size against a
 * naive model; messages about errors. test_corpus_parts.c resumes. */
#include "corpus/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <xxhash.h>

#include "support/check.h"
#include "oracles/corpus_model.h"
#include "support/part_reading.h"
#include "support/stored.h"

static uint64_t random_state;

static bool same_bytes(const void *a, const void *b, size_t n_bytes)
{
    return n_bytes == 0 || memcmp(a, b, n_bytes) == 0;
}

static uint32_t random_below(uint32_t n)
{
    return random_input_below(&random_state, n);
}

/* ---- What reading gives ---- */

typedef struct got_document {
    size_t at, n_bytes; /* in got.text */
    uint64_t n_pieces;
    corpus_counts counts; /* when it ended */
} got_document;

typedef struct got {
    uint8_t *text; /* of all documents */
    size_t n_text, text_capacity;
    got_document *documents;
    size_t n_documents, documents_capacity;
    bool open;                    /* the last one has not ended */
    corpus_place places[3], last; /* the first three */
    size_t n_places;
    corpus_end inputs[8];
    size_t n_inputs;
    int result;
    failure err;
    uint8_t *collected;
    size_t n_collected;
    char reported[32][640];
    size_t n_reported;
    corpus_counts *ended; /* the counts at the ends of the current batch */
    size_t n_ended, ended_capacity;
} got;

static void got_free(got *g)
{
    free(g->text);
    free(g->documents);
    free(g->collected);
    free(g->ended);
}

static void *grown(void *array, size_t *capacity, size_t n, size_t size)
{
    if (n < *capacity)
        return array;
    *capacity = n * 2 + 64;
    return realloc(array, *capacity * size);
}

static void collect(void *context, const uint8_t *data, size_t n_bytes, bool last)
{
    got *g = context;
    g->collected = realloc(g->collected, g->n_collected + n_bytes + 1);
    memcpy(g->collected + g->n_collected, data, n_bytes);
    g->n_collected += n_bytes;
    if (last)
        g->collected[g->n_collected++] = '\n';
}

static void report(void *context, const char *text)
{
    got *g = context;
    if (g->n_reported < 32)
        snprintf(g->reported[g->n_reported], sizeof g->reported[0], "%s", text);
    g->n_reported++;
}

static void ended(void *context, const corpus_counts *counts)
{
    got *g = context;
    g->ended = grown(g->ended, &g->ended_capacity, g->n_ended, sizeof *g->ended);
    g->ended[g->n_ended++] = *counts;
}

static void take_piece(got *g, const uint8_t *text, size_t n_bytes)
{
    if (!g->open) {
        g->documents =
            grown(g->documents, &g->documents_capacity, g->n_documents, sizeof *g->documents);
        g->documents[g->n_documents++] = (got_document){.at = g->n_text};
    }
    g->open = true;
    g->text = grown(g->text, &g->text_capacity, g->n_text + n_bytes, 1);
    memcpy(g->text + g->n_text, text, n_bytes);
    g->n_text += n_bytes;
    g->documents[g->n_documents - 1].n_bytes += n_bytes;
    g->documents[g->n_documents - 1].n_pieces++;
}

static void take_batch(got *g, const corpus_batch *b)
{
    size_t at = 0;
    CHECK(g->n_ended == b->n_ends || g->n_ended == 0);
    for (size_t i = 0; i < b->n_ends; i++) {
        const corpus_end *end = &b->ends[i];
        CHECK(end->at >= at && end->at <= b->n_bytes);
        if (end->input) {
            CHECK(end->at == at && !g->open && g->n_inputs < 8);
            g->inputs[g->n_inputs++] = *end;
            continue;
        }
        take_piece(g, b->text + at, end->at - at);
        if (g->n_ended)
            g->documents[g->n_documents - 1].counts = g->ended[i];
        g->open = false;
        at = end->at;
    }
    g->n_ended = 0;
    if (b->n_bytes > at)
        take_piece(g, b->text + at, b->n_bytes - at);
    for (size_t i = 0; i < 64; i++)
        CHECK_EQ(b->text[b->n_bytes + i], 0);
}

/* Reads all batches, alternating between two of them. */
static got read_corpus(const char *const *names, size_t n_names, corpus_options options,
                       const corpus_place *from)
{
    got g = {.open = from && from->piece_offset > 0};
    corpus_batch batches[2] = {{0}};
    options.context = &g;
    if (g.open) { /* a document that began in an earlier batch */
        g.open = false;
        take_piece(&g, (const uint8_t *)"", 0);
    }
    corpus *c = corpus_open(names, n_names, &options, from, &g.err);
    if (!c) {
        g.result = -1;
        return g;
    }
    for (int i = 0;; i ^= 1) {
        bool open = g.open;
        g.result = corpus_read(c, &batches[i], &g.err);
        if (g.result <= 0)
            break;
        CHECK_INT(batches[i].continues, open);
        CHECK(batches[i].n_bytes <= options.batch_bytes ||
              batches[i].n_bytes <= options.max_piece_bytes);
        take_batch(&g, &batches[i]);
        g.last = batches[i].after;
        if (g.n_places < 3)
            g.places[g.n_places] = g.last;
        g.n_places++;
        CHECK_INT(batches[i].after.piece_offset > 0, g.open);
    }
    if (g.result < 0) {
        failure again;
        CHECK_INT(corpus_read(c, &batches[0], &again), -1);
        CHECK_STR(again.text, g.err.text);
    } else {
        CHECK_INT(corpus_read(c, &batches[0], &g.err), 0);
    }
    corpus_close(c);
    corpus_batch_free(&batches[0]);
    corpus_batch_free(&batches[1]);
    return g;
}

/* ---- Against the model ---- */

/* stops: at a bad document. */
static const model_document *next_good(const model *m, size_t *i, bool stops)
{
    for (; *i < m->n_documents && (m->documents[*i].bad || m->documents[*i].is_null); ++*i) {
        if (stops && m->documents[*i].bad)
            return NULL;
    }
    return *i < m->n_documents ? &m->documents[(*i)++] : NULL;
}

/* For a corpus of one input: the place where the last of its first n documents ends. */
static void check_counts_at(const corpus_counts *c, const model *m, size_t n)
{
    corpus_counts want = {0};
    if (c->documents == 0)
        return; /* it was not asked for */
    for (size_t i = 0; i < n; i++) {
        const model_document *d = &m->documents[i];
        const bool good = !d->bad && !d->is_null;
        want.documents += good;
        want.bad_documents += d->bad;
        want.null_documents += d->is_null;
        want.text_bytes += good ? d->n_bytes : 0;
        want.replacements += good ? d->replacements : 0;
    }
    CHECK_EQ(c->documents, want.documents);
    CHECK_EQ(c->null_documents, want.null_documents);
    CHECK_EQ(c->bad_documents, want.bad_documents);
    CHECK_EQ(c->text_bytes, want.text_bytes);
    CHECK_EQ(c->replacements, want.replacements);
}

/* Checks the documents, up to the first bad one if that ends the run; returns how many there should
 * be. */
static size_t check_documents(const got *g, const model *m, bool stops)
{
    size_t n = 0, i = 0;
    for (const model_document *d; (d = next_good(m, &i, stops)) != NULL; n++) {
        if (n >= g->n_documents)
            CHECK_FAIL("only %zu documents", g->n_documents);
        CHECK_EQ(g->documents[n].n_bytes, d->n_bytes);
        CHECK(same_bytes(g->text + g->documents[n].at, d->text, d->n_bytes));
        check_counts_at(&g->documents[n].counts, m, i);
    }
    return n;
}

static void check_counts(const corpus_counts *c, const model *m, size_t n_plain, size_t n_stored)
{
    corpus_counts e = {.plain_bytes = n_plain, .stored_bytes = n_stored};
    for (size_t i = 0; i < m->n_documents; i++) {
        const model_document *d = &m->documents[i];
        e.bad_documents += d->bad;
        e.bad_bytes += d->bad ? d->end - d->begin : 0;
        e.null_documents += d->is_null;
        if (d->bad || d->is_null)
            continue;
        e.documents++;
        e.empty_documents += d->n_bytes == 0;
        e.text_bytes += d->n_bytes;
        e.repaired_documents += d->replacements > 0;
        e.replacements += d->replacements;
    }
    CHECK_EQ(c->documents, e.documents);
    CHECK_EQ(c->empty_documents, e.empty_documents);
    CHECK_EQ(c->null_documents, e.null_documents);
    CHECK_EQ(c->records, m->n_documents);
    CHECK_EQ(c->text_bytes, e.text_bytes);
    CHECK_EQ(c->stored_bytes, e.stored_bytes);
    CHECK_EQ(c->plain_bytes, e.plain_bytes);
    CHECK_EQ(c->bad_documents, e.bad_documents);
    CHECK_EQ(c->bad_bytes, e.bad_bytes);
    CHECK_EQ(c->repaired_documents, e.repaired_documents);
    CHECK_EQ(c->replacements, e.replacements);
}

static void check_collected(const got *g, const model *m, const uint8_t *plain)
{
    size_t at = 0;
    for (size_t i = 0; i < m->n_documents; i++) {
        const model_document *d = &m->documents[i];
        size_t n = d->end - d->begin;
        if (!d->bad)
            continue;
        CHECK(at + n < g->n_collected);
        CHECK(same_bytes(g->collected + at, plain + d->begin, n));
        CHECK_EQ(g->collected[at + n], '\n');
        at += n + 1;
    }
    CHECK_EQ(g->n_collected, at);
}

static void check_told(const got *g, const model *m, const char *name)
{
    char begin[700];
    size_t n = 0;
    for (size_t i = 0; i < m->n_documents && n < 10; i++) {
        if (!m->documents[i].bad)
            continue;
        snprintf(begin, sizeof begin, "%s:%" PRIu64 ": byte ", name, m->documents[i].line + 1);
        CHECK(n < g->n_reported && strncmp(g->reported[n], begin, strlen(begin)) == 0);
        n++;
    }
    CHECK_EQ(g->n_reported, n);
}

static void check_all(const got *g, const model *m, const char *name, const stored *s,
                      const corpus_options *o)
{
    CHECK_EQ(check_documents(g, m, false), g->n_documents);
    CHECK(!g->open);
    CHECK_EQ(g->n_inputs, 1);
    CHECK_EQ(g->inputs[0].stored_bytes, s->n_bytes);
    CHECK_EQ(g->inputs[0].checksum, XXH3_64bits(s->bytes, s->n_bytes));
    CHECK(g->n_places > 0);
    if (o->on_error != ON_ERROR_FAIL)
        check_told(g, m, name);
}

/* ---- Random inputs ---- */

static corpus_options random_options(void)
{
    static const size_t batches[] = {4, 5, 16, 64, 1000, 1 << 16};
    static const size_t pieces[] = {4, 20, 33, 100, 1000, 1 << 16};
    static const size_t reads[] = {1, 2, 3, 7, 64, 4096};
    corpus_options o = {
        .format = (corpus_format)random_below(4),
        .separator = random_below(2)   ? "--|"
                     : random_below(2) ? "\n"
                                       : NULL,
        .utf8 = (corpus_utf8)random_below(3),
        .utf8_given = random_below(4) > 0,
        .on_error = (corpus_on_error)random_below(3),
        .batch_bytes = batches[random_below(6)],
        .max_piece_bytes = pieces[random_below(6)],
        .read_bytes = reads[random_below(6)],
        .read_ahead = random_below(8) == 0,
        .safe_cut = random_below(2) ? cut_before_space : NULL,
        .collect = collect,
        .report = report,
        .ended = random_below(2) ? ended : NULL,
    };
    o.separator_bytes = o.separator ? strlen(o.separator) : 0;
    if (o.max_piece_bytes < o.batch_bytes)
        o.max_piece_bytes = o.batch_bytes;
    return o;
}

static size_t n_bad(const model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_documents; i++)
        n += m->documents[i].bad;
    return n;
}

typedef struct tally {
    uint64_t inputs, documents, bad, pieces, refused;
} tally;

static void check_failed(const got *g, const model *m, const corpus_options *o)
{
    CHECK_INT(g->err.status, 0);
    if (m->format == CORPUS_AUTO) {
        CHECK(strstr(g->err.text, "name the field") || strstr(g->err.text, "to pack it"));
        CHECK_EQ(g->n_documents, 0);
        return;
    }
    CHECK(o->on_error == ON_ERROR_FAIL && n_bad(m) > 0);
    CHECK(strstr(g->err.text, ": byte ") != NULL);
    CHECK(strstr(g->err.text, "--on-error skip") != NULL);
    CHECK_EQ(g->n_documents - g->open, check_documents(g, m, true));
}

static void check_random_input(tally *t)
{
    char path[64];
    const char *name = path;
    corpus_options o = random_options();
    input_bytes plain = random_input(&random_state, o.format);
    stored_form form = (stored_form)random_below(STORED_FORMS);
    stored s = stored_make(form, plain.bytes, plain.n_bytes, 1 + random_below(3));
    if (!s.bytes) {
        form = STORED_PLAIN;
        s = stored_make(form, plain.bytes, plain.n_bytes, 1);
    }
    int fd = input_file(path, s.bytes, s.n_bytes);
    model m = corpus_model_read(&o, plain.bytes, plain.n_bytes, form != STORED_PLAIN);
    got g = read_corpus(&name, 1, o, NULL);
    bool fails = m.format == CORPUS_AUTO || (o.on_error == ON_ERROR_FAIL && n_bad(&m) > 0);
    if ((g.result < 0) != fails)
        CHECK_FAIL("result %d: %s", g.result, g.err.text);
    if (fails) {
        check_failed(&g, &m, &o);
        t->refused++;
    } else {
        check_all(&g, &m, name, &s, &o);
        check_counts(&g.last.counts, &m, plain.n_bytes, s.n_bytes);
        if (o.on_error == ON_ERROR_COLLECT)
            check_collected(&g, &m, plain.bytes);
    }
    t->inputs++;
    t->documents += g.n_documents;
    t->bad += n_bad(&m);
    t->pieces += g.n_places;
    close(fd);
    got_free(&g);
    corpus_model_free(&m);
    free(plain.bytes);
    free(s.bytes);
}

TEST(documents_are_those_of_the_model_whatever_the_format_the_storage_and_the_sizes)
{
    tally t = {0};
    int n = check_sanitized() ? 800 : check_long() ? 8000 : 3000;
    random_state = 3;
    for (int i = 0; i < n; i++)
        check_random_input(&t);
    printf("note %" PRIu64 " inputs, %" PRIu64 " documents, %" PRIu64 " bad ones, %" PRIu64
           " batches, %" PRIu64 " inputs refused\n",
           t.inputs, t.documents, t.bad, t.pieces, t.refused);
    CHECK(t.bad > 100 && t.refused > 100);
}

/* ---- What can be read only once ---- */

/* A pipe into which a child writes all bytes; returns its reading end. */
static int make_pipe(char name[64], const void *data, size_t n_bytes, pid_t *writer)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && (*writer = fork()) >= 0);
    if (*writer == 0) {
        close(ends[0]);
        _exit(write(ends[1], data, n_bytes) != (ssize_t)n_bytes);
    }
    close(ends[1]);
    snprintf(name, 64, "/proc/self/fd/%d", ends[0]);
    return ends[0];
}

/* Too long for memory, and bad, or with a repeated key. */
static bool needs_second_look(const model *m, size_t max_piece_bytes)
{
    bool needs = false;
    for (size_t i = 0; i < m->n_documents; i++) {
        const model_document *d = &m->documents[i];
        bool is_long = d->end - d->begin > max_piece_bytes || d->n_bytes > max_piece_bytes;
        needs = needs || (is_long && (d->bad || d->again));
    }
    return needs;
}

static bool check_random_pipe(void)
{
    char path[64];
    const char *name = path;
    corpus_options o = random_options();
    input_bytes plain = random_input(&random_state, o.format);
    model m = corpus_model_read(&o, plain.bytes, plain.n_bytes, false);
    pid_t writer;
    int fd = make_pipe(path, plain.bytes, plain.n_bytes, &writer);
    got g = read_corpus(&name, 1, o, NULL);
    bool fails = m.format == CORPUS_AUTO || (o.on_error == ON_ERROR_FAIL && n_bad(&m) > 0);
    bool once = g.result < 0 && strstr(g.err.text, "can be read only once");
    if (once) {
        CHECK(needs_second_look(&m, o.max_piece_bytes));
    } else {
        CHECK_INT(g.result < 0, fails);
        if (!fails)
            CHECK_EQ(check_documents(&g, &m, false), g.n_documents);
    }
    close(fd);
    CHECK_INT(waitpid(writer, NULL, 0), writer);
    got_free(&g);
    corpus_model_free(&m);
    free(plain.bytes);
    return once;
}

TEST(pipes_give_the_same_or_say_that_they_cannot_be_read_twice)
{
    int n = check_sanitized() ? 500 : check_long() ? 8000 : 2000, n_once = 0;
    random_state = 4;
    for (int i = 0; i < n; i++)
        n_once += check_random_pipe();
    printf("note %d pipes, %d of them with a document that would have to be read twice\n", n,
           n_once);
    CHECK(n_once > 0 && n_once < n / 4);
}

/* ---- Several inputs ---- */

static corpus_options plain_options(void)
{
    return (corpus_options){.report = report, .collect = collect};
}

static void check_document_text(const got *g, size_t i, const char *text)
{
    CHECK(i < g->n_documents);
    CHECK_EQ(g->documents[i].n_bytes, strlen(text));
    CHECK(memcmp(g->text + g->documents[i].at, text, strlen(text)) == 0);
}

TEST(inputs_follow_one_another_each_with_its_own_format_and_end)
{
    static const char two_lines[] = "\xef\xbb\xbf\n{\"text\":\"one\"}\n{\"text\":\"\"}";
    static const char *const plains[] = {"just text\n", two_lines, "", "{\"text\":\"three\"}\r\n",
                                         "\n [text too"};
    static const char *const documents[] = {"just text\n", "one", "", "three", "\n [text too"};
    char paths[5][64];
    const char *names[5];
    int fds[5];
    stored s[5];
    for (size_t i = 0; i < 5; i++) {
        s[i] = stored_make(i == 1   ? STORED_GZIP
                           : i == 3 ? STORED_ZSTD
                                    : STORED_PLAIN,
                           (const uint8_t *)plains[i], strlen(plains[i]), 1);
        if (!s[i].bytes)
            SKIP("this build has no zlib or no zstd");
        fds[i] = input_file(paths[i], s[i].bytes, s[i].n_bytes);
        names[i] = paths[i];
    }
    corpus_options o = plain_options();
    o.batch_bytes = 4;
    got g = read_corpus(names, 5, o, NULL);
    CHECK_INT(g.result, 0);
    CHECK_EQ(g.n_documents, 5);
    CHECK_EQ(g.n_inputs, 5);
    for (size_t i = 0; i < 5; i++)
        check_document_text(&g, i, documents[i]);
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(g.inputs[i].stored_bytes, s[i].n_bytes);
        CHECK_EQ(g.inputs[i].checksum, XXH3_64bits(s[i].bytes, s[i].n_bytes));
    }
    part_reading all;
    const char *why = part_reading_compare(&all, names, 5, &o, &random_state);
    if (why)
        CHECK_FAIL("%s", why);
    part_reading_free(&all);
    CHECK_EQ(g.last.counts.empty_documents, 1);
    got_free(&g);
    for (size_t i = 0; i < 5; i++) {
        close(fds[i]);
        free(s[i].bytes);
    }
}

TEST(progress_counts_stored_bytes_while_an_input_is_read)
{
    char path[64];
    const char *name = path;
    static uint8_t text[1 << 20];
    memset(text, 'x', sizeof text);
    int fd = input_file(path, text, sizeof text);
    corpus_options o = plain_options();
    corpus_batch b = {0};
    failure err;
    o.format = CORPUS_TEXT;
    o.batch_bytes = 1000;
    o.max_piece_bytes = 5000;
    corpus *c = corpus_open(&name, 1, &o, NULL, &err);
    CHECK(c != NULL);
    CHECK_EQ(corpus_stored_bytes(c), 0);
    CHECK_INT(corpus_read(c, &b, &err), 1);
    CHECK(corpus_stored_bytes(c) > 0 && corpus_stored_bytes(c) < sizeof text);
    CHECK_EQ(b.after.counts.stored_bytes, 0);
    while (corpus_read(c, &b, &err) > 0)
        CHECK(corpus_stored_bytes(c) <= sizeof text);
    CHECK_EQ(corpus_stored_bytes(c), sizeof text);
    corpus_close(c);
    corpus_batch_free(&b);
    close(fd);
}

/* ---- What is said ---- */

typedef struct saying {
    corpus_format format;
    const char *plain, *said; /* after the name of the input */
} saying;

TEST(bad_documents_are_refused_with_their_place_and_reason)
{
    static const saying sayings[] = {
        {CORPUS_JSON_LINES, "{\"text\":\"a\"}\n{\"text\":\"b\",}\n",
         ":2: byte 25: not JSON: expected a key in quotes (use --on-error skip to leave out "
         "such documents)"},
        {CORPUS_JSON_LINES, "\n\n {\"id\":1}",
         ":3: byte 2: the field is missing: \"text\" (use --on-error skip to leave out such "
         "documents)"},
        {CORPUS_JSON_LINES, "{\"text\":7}",
         ":1: byte 8: the field is not a string: \"text\" (use --on-error skip to leave out such "
         "documents)"},
        {CORPUS_JSON_LINES, "[1]",
         ":1: byte 0: not an object (use --on-error skip to leave out such documents)"},
        {CORPUS_JSON_LINES, "{\"text\":\"\xc3\"}",
         ":1: byte 0: the document is not valid UTF-8 at its byte 0 (use --on-error skip to leave "
         "out such "
         "documents)"},
        {CORPUS_JSON_LINES, "{\"text\":\"\\ud800\"}",
         ":1: byte 0: a lone surrogate in the text (use --on-error skip to leave out such "
         "documents)"},
        {CORPUS_LINES, "fine\nnot \xff fine\n",
         ":2: byte 9: the document is not valid UTF-8 at its byte 4 (use --on-error skip to leave "
         "out such "
         "documents)"},
        {CORPUS_TEXT, "more than 32 bytes without anything",
         ":1: byte 0: more than 32 bytes without a place to cut; raise --memory (use --on-error "
         "skip to leave out such documents)"},
        {CORPUS_AUTO, "{\"text\": 1}",
         ": byte 9: the first line begins with { but has no text in the expected field (the field "
         "is not a string: \"text\"): use --field to name the field, or --format to name the "
         "format"},
        {CORPUS_AUTO, " \n{\n \"text\": \"x\"\n}\n",
         ": byte 3: the first line begins with { but has no text in the expected field (not JSON: "
         "the line ends too early): use --field to name the field, or --format to name the "
         "format"},
    };
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++) {
        char path[64], said[700];
        const char *name = path;
        int fd = input_file(path, sayings[i].plain, strlen(sayings[i].plain));
        corpus_options o = plain_options();
        o.format = sayings[i].format;
        o.utf8 = UTF8_ERROR;
        o.batch_bytes = 8;
        o.max_piece_bytes = 32;
        o.safe_cut = cut_nowhere;
        got g = read_corpus(&name, 1, o, NULL);
        snprintf(said, sizeof said, "%s%s", path, sayings[i].said);
        CHECK_INT(g.result, -1);
        CHECK_STR(g.err.text, said);
        got_free(&g);
        close(fd);
    }
}

TEST(only_the_first_ten_bad_lines_of_an_input_are_told_and_all_are_counted)
{
    char paths[2][64];
    const char *names[2] = {paths[0], paths[1]};
    input_bytes b = {0};
    for (int i = 0; i < 15; i++)
        input_bytes_add_text(&b, "{\"text\":}\n");
    int fds[2] = {input_file(paths[0], b.bytes, b.n_bytes),
                  input_file(paths[1], b.bytes, b.n_bytes)};
    corpus_options o = plain_options();
    o.format = CORPUS_JSON_LINES;
    o.on_error = ON_ERROR_SKIP;
    got g = read_corpus(names, 2, o, NULL);
    CHECK_INT(g.result, 0);
    CHECK_EQ(g.n_reported, 20);
    CHECK(strstr(g.reported[9], ":10: byte 98: not JSON: expected a value") != NULL);
    CHECK(strstr(g.reported[10], ":1: byte 8: ") != NULL);
    CHECK_EQ(g.last.counts.bad_documents, 30);
    CHECK_EQ(g.last.counts.bad_bytes, 30 * 9);
    got_free(&g);
    free(b.bytes);
    close(fds[0]);
    close(fds[1]);
}

TEST(broken_inputs_are_errors_after_the_documents_before_them)
{
    input_bytes b = {0};
    for (int i = 0; i < 3000; i++) {
        char line[64];
        snprintf(line, sizeof line, "{\"text\":\"%d %u\"}\n", i, random_below(1u << 30));
        input_bytes_add_text(&b, line);
    }
    for (int form = STORED_GZIP; form <= STORED_ZSTD; form++) {
        for (int what = 0; what < 2; what++) {
            stored s = stored_make((stored_form)form, b.bytes, b.n_bytes, 1);
            if (!s.bytes)
                SKIP("this build has no zlib or no zstd");
            if (what)
                stored_add(&s, STORED_PLAIN, (const uint8_t *)"and more", 8);
            char path[64];
            const char *name = path;
            int fd = input_file(path, s.bytes, what ? s.n_bytes : s.n_bytes - s.n_bytes / 3);
            corpus_options o = plain_options();
            o.on_error = ON_ERROR_SKIP;
            o.batch_bytes = 100;
            got g = read_corpus(&name, 1, o, NULL);
            CHECK_INT(g.result, -1);
            CHECK_INT(g.err.status, 0);
            CHECK(strncmp(g.err.text, path, strlen(path)) == 0);
            CHECK(strstr(g.err.text, what ? "trailing data that is not" : "truncated") != NULL);
            uint64_t n = g.n_places ? g.last.counts.documents : 0;
            char fine[64];
            snprintf(fine, sizeof fine, "; documents read before it: %" PRIu64, n);
            CHECK(n == 0 || strstr(g.err.text, fine) != NULL);
            CHECK_EQ(g.n_documents, n);
            CHECK(what == 0 ? n < 3000 : n == 3000);
            for (size_t i = 0; i < n; i++)
                CHECK_INT(atoi((const char *)g.text + g.documents[i].at), (int)i);
            got_free(&g);
            close(fd);
            free(s.bytes);
        }
    }
    free(b.bytes);
}

TEST(missing_files_and_folders_are_system_errors)
{
    const char *missing = check_path("missing"), *folder = check_dir();
    corpus_options o = plain_options();
    got g = read_corpus(&missing, 1, o, NULL);
    CHECK(g.result == -1 && g.err.status == ENOENT && strstr(g.err.text, missing));
    got_free(&g);
    g = read_corpus(&folder, 1, o, NULL);
    CHECK(g.result == -1 && g.err.status == EISDIR && strstr(g.err.text, folder));
    got_free(&g);
}

TEST(an_input_that_became_shorter_cannot_be_gone_on_with)
{
    char path[64];
    const char *name = path;
    int fd = input_file(path, "one\ntwo\nthree\nfour\n", 19);
    corpus_options o = plain_options();
    o.format = CORPUS_LINES;
    o.batch_bytes = 4;
    got g = read_corpus(&name, 1, o, NULL);
    CHECK(g.n_places >= 4);
    const corpus_place whole = g.places[2], part = {.plain_offset = 8, .piece_offset = 4};
    CHECK_EQ(whole.plain_offset, 8);
    CHECK(ftruncate(fd, 6) == 0);
    got short_of = read_corpus(&name, 1, o, &whole);
    CHECK(short_of.result == -1 && short_of.err.status == FAILURE_CHANGED);
    CHECK(strstr(short_of.err.text, "has changed") != NULL);
    CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, "one\ntwo\nthe\n", 12, 0) == 12);
    got other = read_corpus(&name, 1, o, &part);
    CHECK(other.result == -1 && strstr(other.err.text, "has changed"));
    CHECK(ftruncate(fd, 8) == 0);
    got gone = read_corpus(&name, 1, o, &part);
    CHECK(gone.result == -1 && strstr(gone.err.text, "has changed"));
    o.format = CORPUS_JSON_LINES;
    CHECK(pwrite(fd, "{\"text\":null}\n{\"text\":\"abcdefgh\"}\n", 34, 0) == 34);
    got null = read_corpus(&name, 1, o, &(corpus_place){.piece_offset = 4});
    CHECK(null.result == -1 && null.err.status == FAILURE_CHANGED);
    got_free(&null);
    got_free(&g);
    got_free(&short_of);
    got_free(&other);
    got_free(&gone);
    close(fd);
}

TEST(options_that_make_no_sense_are_refused)
{
    const char *name = "-";
    failure err;
    corpus_options o = plain_options();
    o.separator = "";
    CHECK(corpus_open(&name, 1, &o, NULL, &err) == NULL);
    CHECK_INT(err.status, FAILURE_CONTENT);
    o = plain_options();
    o.on_error = ON_ERROR_COLLECT;
    o.collect = NULL;
    CHECK(corpus_open(&name, 1, &o, NULL, &err) == NULL);
    o = (corpus_options){.field = "a.b"};
    corpus *c = corpus_open(&name, 1, &o, NULL, &err);
    CHECK(c != NULL);
    corpus_close(c);
}
