/* SPDX-License-Identifier: Apache-2.0 */
#include "oracles/corpus_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/wrong_file.h"
#include "oracles/json_oracle.h"

/* ---- UTF-8: one state for each byte that may come next ---- */

/* Bytes of the character at the front; if there is none, 0, and *n_bad is what one U+FFFD stands
 * for. */
static size_t model_character(const uint8_t *text, size_t n, size_t *n_bad)
{
    static const struct {
        uint8_t first, last, second_first, second_last, n_more;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 0},       {0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2},
        {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
        {0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3},
    };
    *n_bad = 1;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (text[0] < rows[r].first || text[0] > rows[r].last)
            continue;
        size_t i = 1;
        for (; i <= rows[r].n_more && i < n; i++) {
            uint8_t low = i == 1 ? rows[r].second_first : 0x80;
            uint8_t high = i == 1 ? rows[r].second_last : 0xbf;
            if (text[i] < low || text[i] > high)
                break;
        }
        *n_bad = i;
        return i > rows[r].n_more ? i : 0;
    }
    return 0;
}

static void model_repair(model_document *d, const corpus_options *o)
{
    static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};
    uint8_t *repaired = malloc(d->n_bytes * 3 + 1);
    size_t n = 0, n_bad;
    for (size_t i = 0; i < d->n_bytes;) {
        size_t n_good = model_character(d->text + i, d->n_bytes - i, &n_bad);
        if (n_good || o->reader.utf8 == UTF8_RAW) {
            n_good = n_good ? n_good : n_bad;
            memcpy(repaired + n, d->text + i, n_good);
            n += n_good;
            i += n_good;
            continue;
        }
        memcpy(repaired + n, replacement, 3);
        n += 3;
        i += n_bad;
        d->replacements++;
    }
    free(d->text);
    d->text = repaired;
    d->n_bytes = n;
    d->bad = d->bad || (o->reader.utf8 == UTF8_ERROR && d->replacements > 0);
}

/* ---- Documents ---- */

/* A dotted path of at most 8 parts. */
static oracle_result model_json(const char *field, const uint8_t *line, size_t n_bytes)
{
    char copy[64];
    const char *parts[8];
    size_t n_parts = 0;
    snprintf(copy, sizeof copy, "%s", field ? field : "text");
    for (char *at = copy; at; n_parts++) {
        parts[n_parts] = at;
        at = strchr(at, '.');
        if (at)
            *at++ = 0;
    }
    return oracle_read(parts, n_parts, line, n_bytes);
}

/* Compares with `text` by bytes, as memcmp does. */
static int model_order(const uint8_t *bytes, size_t n_bytes, const char *text)
{
    const size_t n = n_bytes < strlen(text) ? n_bytes : strlen(text);
    const int order = memcmp(bytes, text, n);
    return order ? order : (n_bytes > n) - (strlen(text) > n);
}

/* *order is as from model_order. False: the field is not a string. */
static bool model_compare(const char *field, const uint8_t *line, size_t n_bytes, const char *text,
                          int *order)
{
    oracle_result r = model_json(field, line, n_bytes);
    bool found = r.status == JSON_LINE_OK;
    if (found)
        *order = model_order(r.text, r.n_bytes, text);
    free(r.text);
    return found;
}

static bool model_keeps(const uint8_t *line, size_t n_bytes, uint64_t row)
{
    int order;
    if (model_compare("a.b", line, n_bytes, "x", &order) && order == 0)
        return true;
    return !(model_compare("text", line, n_bytes, "m", &order) && order < 0) && row != 2;
}

static void model_add(model *m, model_document d)
{
    if (m->n_documents == m->capacity) {
        m->capacity = m->capacity ? m->capacity * 2 : 64;
        m->documents = realloc(m->documents, m->capacity * sizeof *m->documents);
    }
    m->documents[m->n_documents++] = d;
}

static void model_take(model *m, const corpus_options *o, const uint8_t *plain, model_document d)
{
    d.n_bytes = d.end - d.begin;
    if (m->format == CORPUS_JSON_LINES) {
        oracle_result r = model_json(o->reader.field, plain + d.begin, d.n_bytes);
        bool is_long = d.n_bytes > o->reader.max_document;
        bool is_object = r.status != JSON_LINE_MALFORMED && r.status != JSON_LINE_NO_OBJECT;
        d.filtered = o->reader.fields && !is_long && is_object &&
                     !model_keeps(plain + d.begin, d.n_bytes, d.line);
        d.is_null = r.status == JSON_LINE_NULL && !is_long && !d.filtered;
        d.text = r.text;
        d.n_bytes = r.status == JSON_LINE_OK ? r.n_bytes : 0;
        d.bad = r.status != JSON_LINE_OK || (o->reader.utf8 == UTF8_ERROR && r.lone_surrogates > 0);
        d.bad = (d.bad || is_long) && !d.filtered && !d.is_null;
        d.replacements = r.status == JSON_LINE_OK ? r.lone_surrogates : 0;
    } else {
        d.text = malloc(d.n_bytes + 1);
        memcpy(d.text, plain + d.begin, d.n_bytes);
    }
    d.is_long = d.end - d.begin > o->reader.max_document;
    if (!d.filtered && !d.is_null) {
        const bool was_bad = d.bad;
        model_repair(&d, o);
        d.is_long = d.is_long || (!was_bad && !d.bad && d.n_bytes > o->reader.max_document);
        d.bad = d.bad || d.is_long;
    }
    model_add(m, d);
}

static size_t model_white(const uint8_t *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] && strchr(" \t\r\n", text[i]))
        i++;
    return i;
}

static bool model_has_bom(const uint8_t *plain, size_t n)
{
    return n >= 3 && memcmp(plain, "\xef\xbb\xbf", 3) == 0;
}

/* ---- CSV and TSV: byte by byte ---- */

#define MODEL_FIELDS 16

typedef struct model_row {
    size_t end, next; /* of the row; after its line end */
    bool wrong, unclosed;
    size_t n_fields, n_newlines;
    input_bytes fields[MODEL_FIELDS];
} model_row;

static model_row model_read_row(const uint8_t *plain, size_t n, size_t at, bool tabs)
{
    enum {
        BEGIN,
        PLAIN,
        QUOTED,
        CLOSED
    } state = BEGIN;
    model_row r = {.n_fields = 1, .end = n, .next = n};
    for (; at < n; at++) {
        const uint8_t c = plain[at];
        input_bytes *field = &r.fields[r.n_fields <= MODEL_FIELDS ? r.n_fields - 1 : 0];
        const bool ends = c == '\r' && at + 1 < n && plain[at + 1] == '\n';
        if (state == QUOTED && c == '"' && at + 1 < n && plain[at + 1] == '"') {
            input_bytes_add(field, &c, 1);
            at++;
        } else if (state == QUOTED && c == '"') {
            state = CLOSED;
        } else if (state == QUOTED) {
            input_bytes_add(field, &c, 1);
            r.n_newlines += c == '\n';
        } else if (c == '\n' || ends) {
            r.end = at;
            r.next = at + 1 + ends;
            return r;
        } else if (c == (tabs ? '\t' : ',')) {
            state = BEGIN;
            r.n_fields++;
        } else if (state == BEGIN && c == '"' && !tabs) {
            state = QUOTED;
        } else {
            r.wrong |= state == CLOSED || c == '\r' || (c == '"' && !tabs);
            state = PLAIN;
            input_bytes_add(field, &c, 1);
        }
    }
    r.unclosed = state == QUOTED;
    return r;
}

static void model_free_row(model_row *r)
{
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        free(r->fields[i].bytes);
}

/* A field of the row, by the name of its column; NULL: it is null. */
static const input_bytes *model_field(const model_row *header, const model_row *row,
                                      const char *name)
{
    for (size_t i = 0; i < header->n_fields; i++)
        if (header->fields[i].n_bytes == strlen(name) &&
            memcmp(header->fields[i].bytes, name, strlen(name)) == 0)
            return row->fields[i].n_bytes ? &row->fields[i] : NULL;
    return NULL;
}

static size_t model_skip_blank(const uint8_t *plain, size_t n, size_t at, uint64_t *line)
{
    for (;; ++*line) {
        const size_t more = at < n && plain[at] == '\n'                                ? 1
                            : at + 1 < n && plain[at] == '\r' && plain[at + 1] == '\n' ? 2
                                                                                       : 0;
        if (more == 0)
            return at;
        at += more;
    }
}

/* Whether the first row is one field with the separators of another format. */
static bool model_has_other_separators(const uint8_t *row, size_t n, bool tabs, size_t n_fields)
{
    return n_fields == 1 && (memchr(row, tabs ? ',' : '\t', n) || memchr(row, ';', n));
}

static bool model_keeps_row(const model_row *header, const model_row *row, uint64_t number)
{
    const input_bytes *a = model_field(header, row, "a.b"),
                      *text = model_field(header, row, "text");
    return (a && model_order(a->bytes, a->n_bytes, "x") == 0) ||
           (!(text && model_order(text->bytes, text->n_bytes, "m") < 0) && number != 2);
}

static void model_take_row(model *m, const corpus_options *o, const model_row *header,
                           model_row *row, model_document d, uint64_t number)
{
    const char *name = o->reader.field ? o->reader.field : "text";
    const bool is_long = d.end - d.begin > o->reader.max_document;
    d.bad = is_long || row->wrong || row->n_fields != header->n_fields;
    d.is_long = is_long;
    const input_bytes *text = d.bad ? NULL : model_field(header, row, name);
    d.filtered = !d.bad && o->reader.fields && !model_keeps_row(header, row, number);
    d.is_null = !d.bad && !d.filtered && !text;
    d.n_bytes = text ? text->n_bytes : 0;
    d.text = malloc(d.n_bytes + 1);
    if (text)
        memcpy(d.text, text->bytes, d.n_bytes);
    if (text && !d.filtered) {
        model_repair(&d, o);
        d.is_long = !d.bad && d.n_bytes > o->reader.max_document;
        d.bad = d.bad || d.is_long;
    }
    model_add(m, d);
}

/* Adds the rows, or makes the format CORPUS_AUTO: refused. */
static void model_read_table(model *m, const corpus_options *o, const uint8_t *plain, size_t n)
{
    const bool tabs = m->format == CORPUS_TSV, given = o->reader.columns != NULL;
    const char *name = o->reader.field ? o->reader.field : "text", *columns = o->reader.columns;
    uint64_t line = 0;
    size_t at = model_skip_blank(plain, n, model_has_bom(plain, n) ? 3 : 0, &line);
    if (at >= n)
        return;
    model_row first = model_read_row(plain, n, at, tabs), header = first;
    if (given)
        header = model_read_row((const uint8_t *)columns, strlen(columns), 0, false);
    bool found = false;
    for (size_t i = 0; i < header.n_fields && i < MODEL_FIELDS; i++)
        found |= header.fields[i].n_bytes == strlen(name) &&
                 memcmp(header.fields[i].bytes, name, strlen(name)) == 0;
    if (!found || header.wrong || header.unclosed || header.n_fields > MODEL_FIELDS ||
        (given && !first.unclosed && header.n_fields > 1 &&
         model_has_other_separators(plain + at, first.end - at, tabs, first.n_fields)))
        m->format = CORPUS_AUTO;
    if (!given) {
        at = first.next;
        line += 1 + first.n_newlines;
    }
    for (uint64_t number = 0; m->format != CORPUS_AUTO; number++) {
        at = model_skip_blank(plain, n, at, &line);
        if (at >= n)
            break;
        model_row row = model_read_row(plain, n, at, tabs);
        const bool is_long = row.end - at > o->reader.max_document;
        const bool stops = o->reader.on_error == ON_ERROR_FAIL && !o->reader.fields;
        m->unclosed = row.unclosed && !(is_long && stops);
        if (!m->unclosed)
            model_take_row(m, o, &header, &row,
                           (model_document){.begin = at, .end = row.end, .line = line}, number);
        at = row.next;
        line += 1 + row.n_newlines;
        model_free_row(&row);
    }
    model_free_row(&first);
    if (given)
        model_free_row(&header);
}

/* Refused inputs have their own test, tests/formats/test_wrong_files.py. */
static bool model_is_refused(const corpus_options *o, const uint8_t *plain, size_t n,
                             bool compressed)
{
    failure err;
    const size_t longest = WRONG_FILE_HEAD_BYTES;
    const wrong_file_head head = {plain, n < longest ? n : longest, n <= longest, compressed, "-"};
    return !wrong_file_check(&head, &o->reader, &err);
}

/* The line from there on. */
static oracle_result model_line(const corpus_options *o, const uint8_t *plain, size_t n,
                                size_t from, size_t *to, bool *good)
{
    const uint8_t *end = memchr(plain + from, '\n', n - from);
    *to = end ? (size_t)(end - plain) : n;
    oracle_result r = model_json(o->reader.field, plain + from, *to - from);
    *good = r.status == JSON_LINE_OK || r.status == JSON_LINE_NULL;
    return r;
}

/* Text whose second line is an object with the field. */
static bool model_is_cut(const corpus_options *o, const uint8_t *plain, size_t n, size_t from)
{
    size_t to;
    bool good;
    free(model_line(o, plain, n, from, &to, &good).text);
    from = to + model_white(plain + to, n - to);
    if (from >= n || plain[from] != '{')
        return false;
    free(model_line(o, plain, n, from, &to, &good).text);
    return good;
}

static corpus_format model_format(const corpus_options *o, const uint8_t *plain, size_t n,
                                  bool compressed)
{
    size_t from = model_has_bom(plain, n) ? 3 : 0;
    if (model_is_refused(o, plain, n, compressed))
        return CORPUS_AUTO;
    if (o->reader.format == CORPUS_AUTO && n == 0)
        return CORPUS_JSON_LINES; /* any format without documents */
    if (o->reader.fields && (o->reader.format == CORPUS_TEXT || o->reader.format == CORPUS_LINES))
        return CORPUS_AUTO;
    if (o->reader.format != CORPUS_AUTO)
        return o->reader.format;
    from += model_white(plain + from, n - from);
    if (from >= n)
        return o->reader.fields ? CORPUS_AUTO : CORPUS_TEXT;
    if (plain[from] != '{')
        return o->reader.fields || model_is_cut(o, plain, n, from) ? CORPUS_AUTO : CORPUS_TEXT;
    size_t to;
    bool good;
    free(model_line(o, plain, n, from, &to, &good).text);
    return good || to > o->reader.max_document ? CORPUS_JSON_LINES : CORPUS_AUTO;
}

model corpus_model_read(const corpus_options *o, const uint8_t *plain, size_t n, bool compressed)
{
    model m = {.format = model_format(o, plain, n, compressed),
               .options = o,
               .plain = plain,
               .n_plain = n};
    bool text = m.format == CORPUS_TEXT, json = m.format == CORPUS_JSON_LINES;
    const char *terminator = text ? o->reader.separator : "\n";
    size_t n_terminator = text ? o->reader.separator_bytes : 1;
    size_t at = json && model_has_bom(plain, n) ? 3 : 0;
    if (m.format == CORPUS_AUTO)
        return m;
    if (m.format == CORPUS_CSV || m.format == CORPUS_TSV) {
        model_read_table(&m, o, plain, n);
        return m;
    }
    if (text && n_terminator == 0) {
        model_take(&m, o, plain, (model_document){.end = n});
        return m;
    }
    for (uint64_t line = 0; at < n; line++) {
        const uint8_t *found = memmem(plain + at, n - at, terminator, n_terminator);
        size_t end = found ? (size_t)(found - plain) : n;
        size_t n_white = json ? model_white(plain + at, end - at) : 0;
        if (!json || n_white < end - at)
            model_take(&m, o, plain,
                       (model_document){.begin = at + n_white, .end = end, .line = line});
        at = end + n_terminator;
    }
    return m;
}

void corpus_model_free(model *m)
{
    for (size_t i = 0; i < m->n_documents; i++)
        free(m->documents[i].text);
    free(m->documents);
}

/* ---- Comparing ---- */

size_t corpus_model_n_bad(const model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_documents; i++)
        n += m->documents[i].bad;
    return n;
}

/* Of the first n documents. */
static corpus_counts model_counts(const model *m, size_t n)
{
    corpus_counts c = {.records = n};
    for (size_t i = 0; i < n; i++) {
        const model_document *d = &m->documents[i];
        c.bad_documents += d->bad;
        c.bad_bytes += d->bad ? d->end - d->begin : 0;
        c.long_documents += d->is_long;
        c.null_documents += d->is_null;
        c.filtered_documents += d->filtered;
        if (d->bad || d->is_null || d->filtered)
            continue;
        c.documents++;
        c.empty_documents += d->n_bytes == 0;
        c.text_bytes += d->n_bytes;
        c.repaired_documents += d->replacements > 0;
        c.replacements += d->replacements;
    }
    return c;
}

static bool same_counts(const corpus_counts *a, const corpus_counts *b)
{
    return a->documents == b->documents && a->empty_documents == b->empty_documents &&
           a->null_documents == b->null_documents &&
           a->filtered_documents == b->filtered_documents && a->text_bytes == b->text_bytes &&
           a->bad_documents == b->bad_documents && a->bad_bytes == b->bad_bytes &&
           a->long_documents == b->long_documents &&
           a->repaired_documents == b->repaired_documents && a->replacements == b->replacements;
}

/* Up to the first bad one if that ends the run. */
static const char *compare_documents(const model *m, const part_reading *r)
{
    const corpus_counts *ended = (const corpus_counts *)(const void *)r->ended.bytes;
    size_t n = 0, n_bytes;
    for (size_t i = 0; i < m->n_documents; i++) {
        const model_document *d = &m->documents[i];
        if (d->bad && m->options->reader.on_error == ON_ERROR_FAIL)
            break;
        if (d->bad || d->is_null || d->filtered)
            continue;
        if (n == part_reading_n_documents(r))
            return "a document is missing";
        const uint8_t *text = part_reading_document(r, n, &n_bytes);
        if (n_bytes != d->n_bytes || (n_bytes > 0 && memcmp(text, d->text, n_bytes) != 0))
            return "another text";
        if (r->ended.n_bytes) {
            const corpus_counts counts = model_counts(m, i + 1);
            if (!same_counts(&ended[n], &counts))
                return "other counts at the end of a document";
        }
        n++;
    }
    return n == part_reading_n_documents(r) ? NULL : "more documents";
}

static bool reported_bad_documents(const model *m, const input_bytes *messages, const char *name)
{
    char begin[700];
    const char *at = (const char *)messages->bytes, *end = at + messages->n_bytes;
    for (size_t i = 0; i < m->n_documents; i++) {
        if (!m->documents[i].bad)
            continue;
        snprintf(begin, sizeof begin, "%s:%" PRIu64 ": byte ", name, m->documents[i].line + 1);
        if ((size_t)(end - at) < strlen(begin) || memcmp(at, begin, strlen(begin)) != 0)
            return false;
        at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    }
    return at == end;
}

static const char *compare_failure(const model *m, const part_reading *r)
{
    const char *text = r->err.text;
    if (r->err.status != 0)
        return "a failure of the system";
    if (m->format == CORPUS_AUTO)
        return r->text.n_bytes ? "text before a refusal" : NULL;
    const bool is_unclosed = m->unclosed && strstr(text, "within quotes that begin here");
    return strstr(text, ": byte ") && (is_unclosed || strstr(text, "--on-error skip")) ? NULL
                                                                                       : text;
}

const char *corpus_model_compare(const model *m, const part_reading *r, const char *name)
{
    const corpus_counts all = model_counts(m, m->n_documents);
    const corpus_on_error on_error = m->options->reader.on_error;
    const bool fails = m->format == CORPUS_AUTO || m->unclosed ||
                       (on_error == ON_ERROR_FAIL && all.bad_documents > 0);
    const char *why = compare_documents(m, r);
    if (why || (r->result < 0) != fails)
        return why ? why : r->result < 0 ? r->err.text : "no failure";
    if (fails)
        return compare_failure(m, r);
    if (!same_counts(&r->counts, &all) || r->counts.records != all.records ||
        r->counts.plain_bytes != m->n_plain)
        return "other counts";
    if (part_reading_n_places(r) == 0 || r->counts.text_bytes != r->text.n_bytes)
        return "no place at the end, or text that is not counted";
    return on_error == ON_ERROR_FAIL || reported_bad_documents(m, &r->messages, name)
               ? NULL
               : "other bad documents are reported";
}
