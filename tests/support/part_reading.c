/* SPDX-License-Identifier: Apache-2.0 */
#include "support/part_reading.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/cutter.h"

#define MAX_INPUTS 8

static const uint64_t *ends_of(const part_reading *r)
{
    return (const uint64_t *)(const void *)r->ends.bytes;
}

size_t part_reading_n_documents(const part_reading *r)
{
    return r->ends.n_bytes / sizeof(uint64_t);
}

/* Of complete documents. */
static size_t complete_bytes(const part_reading *r)
{
    const size_t n = part_reading_n_documents(r);
    return n ? (size_t)ends_of(r)[n - 1] : 0;
}

const uint8_t *part_reading_document(const part_reading *r, size_t i, size_t *n_bytes)
{
    const size_t begin = i ? (size_t)ends_of(r)[i - 1] : 0;
    *n_bytes = (size_t)ends_of(r)[i] - begin;
    return r->text.bytes + begin;
}

size_t part_reading_n_places(const part_reading *r)
{
    return r->places.n_bytes / sizeof(part_place);
}

const part_place *part_reading_place(const part_reading *r, size_t i)
{
    return (const part_place *)(const void *)r->places.bytes + i;
}

const char *part_reading_text(const part_reading *r)
{
    static input_bytes said;
    said.n_bytes = 0;
    for (size_t i = 0, n; r->result == 0 && i < part_reading_n_documents(r); i++) {
        const uint8_t *text = part_reading_document(r, i, &n);
        input_bytes_add(&said, text, n);
        input_bytes_add_text(&said, "|");
    }
    if (r->result < 0)
        input_bytes_add_text(&said, r->err.text);
    input_bytes_add(&said, "", 1);
    return (const char *)said.bytes;
}

void part_reading_free(part_reading *r)
{
    input_bytes *const parts[] = {&r->text,   &r->ends,   &r->ended,    &r->inputs, &r->places,
                                  &r->values, &r->ranges, &r->messages, &r->reports};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]->bytes);
}

/* ---- One part ---- */

typedef struct part {
    const char *const *names; /* of all inputs */
    size_t begin, n;          /* those of the part */
    corpus_options options;
} part;

typedef struct one_reading {
    part_reading r;
    input_bytes ended; /* corpus_counts: at all ends of the batch */
    const char *cut;   /* the name of the input that is entered in its middle */
    const char *why;   /* not NULL: what is wrong */
} one_reading;

/* Removes the number of the line from "NAME:7: byte". */
static bool remove_line(char *text)
{
    char *at = strstr(text, ": byte ");
    if (!at)
        return false;
    char *digits = at;
    while (digits > text && isdigit((unsigned char)digits[-1]))
        digits--;
    if (digits == at || digits == text || digits[-1] != ':')
        return false;
    memmove(digits - 1, at, strlen(at) + 1);
    return true;
}

static void take_message(one_reading *o, char *text)
{
    const size_t n = o->cut ? strlen(o->cut) : 0;
    const bool here = o->cut && strncmp(text, o->cut, n) == 0 && text[n] == ':';
    if (remove_line(text) && here)
        o->why = "a message names a line of a part of which the beginning was not read";
}

static void report(void *context, const char *text)
{
    one_reading *o = context;
    char copy[700];
    snprintf(copy, sizeof copy, "%s", text);
    if (!*text || strchr(text, '\n'))
        o->why = "a message is not one line";
    if (!strstr(copy, ": byte "))
        return; /* about the whole input */
    input_bytes_add_text(&o->r.messages, copy);
    input_bytes_add_text(&o->r.messages, "\n");
    take_message(o, copy);
    input_bytes_add_text(&o->r.reports, copy);
    input_bytes_add_text(&o->r.reports, "\n");
}

static void take_bad(void *context, const corpus_bad *bad)
{
    char text[700];
    snprintf(text, sizeof text, "%s: %s", bad->place, bad->reason);
    report(context, text);
}

static void ended(void *context, const corpus_counts *counts)
{
    one_reading *o = context;
    input_bytes_add(&o->ended, counts, sizeof *counts);
}

/* What does not hold for any batch, or NULL. */
static const char *check_batch(const corpus_batch *b, const corpus_options *options)
{
    static const uint8_t zeros[64];
    size_t at = 0, n_documents = 0;
    for (size_t i = 0; i < b->n_ends; i++) {
        if (b->ends[i].at < at || b->ends[i].at > b->n_bytes)
            return "the ends of a batch are not in order";
        if (b->ends[i].input && b->ends[i].at != at)
            return "an input ends within a document";
        n_documents += !b->ends[i].input && b->ends[i].at > at;
        at = b->ends[i].at;
    }
    if (at != b->n_bytes)
        return "a batch ends within a document";
    if (options->batch_bytes && b->n_bytes > options->batch_bytes && n_documents > 1)
        return "a batch is too large";
    return memcmp(b->text + b->n_bytes, zeros, 64) != 0 ? "no zeros follow a batch" : NULL;
}

static void take_batch(one_reading *o, const corpus_batch *b)
{
    part_reading *r = &o->r;
    const bool asked = o->ended.n_bytes > 0;
    if (asked && o->ended.n_bytes != b->n_ends * sizeof(corpus_counts))
        o->why = "not every end has its counts";
    for (size_t i = 0; i < b->n_ends && !o->why; i++) {
        const uint64_t end = r->text.n_bytes + b->ends[i].at;
        if (b->ends[i].input) {
            corpus_end end_of_input; /* in which batch does not matter */
            memset(&end_of_input, 0, sizeof end_of_input);
            end_of_input.input = true;
            end_of_input.stored_bytes = b->ends[i].stored_bytes;
            end_of_input.checksum = b->ends[i].checksum;
            input_bytes_add(&r->inputs, &end_of_input, sizeof end_of_input);
            continue;
        }
        input_bytes_add(&r->ends, &end, sizeof end);
        if (asked)
            input_bytes_add(&r->ended, (const corpus_counts *)(const void *)o->ended.bytes + i,
                            sizeof(corpus_counts));
    }
    o->ended.n_bytes = 0;
    input_bytes_add(&r->text, b->text, b->n_bytes);
    if (b->values_bytes)
        input_bytes_add(&r->values, b->values, b->values_bytes);
    if (b->n_ranges)
        input_bytes_add(&r->ranges, b->ranges, b->n_ranges * sizeof *b->ranges);
    r->counts = b->after.counts;
    const part_place place = {.place = b->after,
                              .text = r->text.n_bytes,
                              .ends = part_reading_n_documents(r),
                              .values = r->values.n_bytes,
                              .ranges = r->ranges.n_bytes};
    input_bytes_add(&r->places, &place, sizeof place);
}

/* Alternates between two batches. */
static void read_batches(one_reading *o, corpus *c, const corpus_options *options)
{
    corpus_batch batches[2] = {{0}};
    part_reading *r = &o->r;
    failure again;
    for (int i = 0; (r->result = corpus_read(c, &batches[i], &r->err)) > 0; i ^= 1) {
        const char *why = check_batch(&batches[i], options);
        take_batch(o, &batches[i]);
        o->why = o->why ? o->why : why;
    }
    if (corpus_read(c, &batches[0], &again) != r->result ||
        (r->result < 0 && strcmp(again.text, r->err.text) != 0))
        o->why = "the end or the failure does not stay";
    corpus_batch_free(&batches[0]);
    corpus_batch_free(&batches[1]);
}

static void read_one(one_reading *o, const part *p, const corpus_place *from)
{
    corpus_options options = p->options;
    memset(o, 0, sizeof *o);
    input_bytes_add_text(&o->r.text, ""); /* allocates */
    input_bytes_add_text(&o->r.reports, "");
    input_bytes_add_text(&o->r.messages, "");
    options.reader.context = o;
    options.reader.report = report;
    options.bad = take_bad;
    options.ended = options.ended ? ended : NULL;
    if (options.begin.offset && !options.begin.row)
        o->cut = p->names[p->begin];
    corpus *c = corpus_open(p->names + p->begin, p->n, &options, from, &o->r.err);
    o->r.result = -1;
    if (c)
        read_batches(o, c, &options);
    if (o->r.result < 0 && (!*o->r.err.text || strchr(o->r.err.text, '\n')))
        o->why = "a message of failure is not one line";
    failure copy = o->r.err;
    take_message(o, copy.text);
    corpus_close(c);
    free(o->ended.bytes);
}

const char *part_reading_read(part_reading *r, const char *const *names, size_t n_names,
                              const corpus_options *options, const corpus_place *from)
{
    static one_reading o;
    read_one(&o, &(part){.names = names, .n = n_names, .options = *options}, from);
    *r = o.r;
    return o.why;
}

/* ---- Comparing ---- */

static bool same(const input_bytes *a, size_t from, const input_bytes *b)
{
    const size_t n = a->n_bytes - from;
    return n == b->n_bytes && (n == 0 || memcmp(a->bytes + from, b->bytes, n) == 0);
}

const char *part_reading_compare_rest(const part_reading *whole, const part_place *place,
                                      const part_reading *rest)
{
    const size_t n = part_reading_n_documents(rest), n_places = part_reading_n_places(rest);
    if (rest->result != 0)
        return "a part cannot be resumed";
    if (!same(&whole->text, place->text, &rest->text) ||
        !same(&whole->values, place->values, &rest->values) ||
        !same(&whole->ranges, place->ranges, &rest->ranges) ||
        part_reading_n_documents(whole) - place->ends != n)
        return "a part that is resumed gives other documents";
    for (size_t i = 0; i < n; i++) {
        if (ends_of(rest)[i] + place->text != ends_of(whole)[place->ends + i])
            return "a part that is resumed gives other ends";
    }
    if (n_places && memcmp(&part_reading_place(rest, n_places - 1)->place,
                           &part_reading_place(whole, part_reading_n_places(whole) - 1)->place,
                           sizeof place->place) != 0)
        return "a part that is resumed ends at another place";
    const size_t n_before = whole->inputs.n_bytes - rest->inputs.n_bytes;
    return same(&whole->inputs, n_before, &rest->inputs)
               ? NULL
               : "a part that is resumed gives other ends of inputs";
}

/* Reads the rest of a part from a random place on. */
static const char *read_rest(const one_reading *o, const part *p, uint64_t *random)
{
    static one_reading rest;
    const size_t n = part_reading_n_places(&o->r);
    if (o->r.result < 0 || n == 0)
        return NULL;
    const part_place *place = part_reading_place(&o->r, random_input_below(random, (uint32_t)n));
    read_one(&rest, p, &place->place);
    const char *why = part_reading_compare_rest(&o->r, place, &rest.r);
    part_reading_free(&rest.r);
    return why ? why : rest.why;
}

const char *part_reading_resume(part_reading *r, const char *name, const corpus_options *options,
                                uint64_t *random)
{
    static one_reading o;
    const part p = {.names = &name, .n = 1, .options = *options};
    read_one(&o, &p, NULL);
    const char *why = o.why ? o.why : read_rest(&o, &p, random);
    *r = o.r;
    return why;
}

/* Appends a part. Of a failed one, only complete documents are compared. */
static void append(part_reading *all, const part_reading *r)
{
    const uint64_t before = all->text.n_bytes;
    const size_t n = r->result < 0 ? complete_bytes(r) : r->text.n_bytes;
    for (size_t i = 0; i < part_reading_n_documents(r); i++) {
        const uint64_t end = before + ends_of(r)[i];
        input_bytes_add(&all->ends, &end, sizeof end);
    }
    input_bytes_add(&all->text, r->text.bytes, n);
    input_bytes_add(&all->inputs, r->inputs.bytes, r->inputs.n_bytes);
    input_bytes_add(&all->values, r->values.bytes, r->values.n_bytes);
    input_bytes_add(&all->ranges, r->ranges.bytes, r->ranges.n_bytes);
    input_bytes_add(&all->reports, r->reports.bytes, r->reports.n_bytes);
    all->result = r->result;
    all->err = r->err;
    corpus_counts *sum = &all->counts;
    const corpus_counts *c = &r->counts;
    sum->documents += c->documents;
    sum->empty_documents += c->empty_documents;
    sum->text_bytes += c->text_bytes;
    sum->stored_bytes += c->stored_bytes;
    sum->plain_bytes += c->plain_bytes;
    sum->records += c->records;
    sum->null_documents += c->null_documents;
    sum->filtered_documents += c->filtered_documents;
    sum->bad_documents += c->bad_documents;
    sum->bad_bytes += c->bad_bytes;
    sum->long_documents += c->long_documents;
    sum->repaired_documents += c->repaired_documents;
    sum->replacements += c->replacements;
}

/* Each part reports the end of the inputs that it reads. */
static bool same_inputs(const part_reading *whole, const part_reading *all, const size_t *n_parts)
{
    const corpus_end *want = (const corpus_end *)(const void *)whole->inputs.bytes;
    const corpus_end *got = (const corpus_end *)(const void *)all->inputs.bytes;
    const corpus_end *end = got + all->inputs.n_bytes / sizeof *got;
    for (size_t i = 0; i < whole->inputs.n_bytes / sizeof *want; i++) {
        for (size_t p = 0; p < n_parts[i]; p++, got++) {
            const uint64_t checksum = n_parts[i] > 1 ? 0 : want[i].checksum;
            if (got >= end || got->stored_bytes != want[i].stored_bytes ||
                got->checksum != checksum)
                return false;
        }
    }
    return got == end;
}

/* Lists may have two columns. If both are damaged, a part may find the other one first. */
static const char *compare(const part_reading *whole, const part_reading *all,
                           const size_t *n_parts, corpus_list list)
{
    corpus_counts counts = whole->counts;
    counts.input_records = 0;
    if (whole->result != all->result)
        return "the whole or a part fails";
    failure a = whole->err, b = all->err;
    remove_line(a.text);
    remove_line(b.text);
    if (whole->result < 0 && list == LIST_NONE && strcmp(a.text, b.text) != 0)
        return "other messages of failure";
    if (!same(&whole->ends, 0, &all->ends))
        return "other ends of documents";
    if (complete_bytes(whole) &&
        memcmp(whole->text.bytes, all->text.bytes, complete_bytes(whole)) != 0)
        return "other text";
    if (!same(&whole->values, 0, &all->values))
        return "other values";
    if (!same(&whole->ranges, 0, &all->ranges))
        return "other ranges";
    if (whole->result >= 0 && !same(&whole->reports, 0, &all->reports))
        return "other bad documents are reported";
    if (whole->result < 0)
        return NULL;
    if (memcmp(&counts, &all->counts, sizeof counts) != 0)
        return "other counts";
    return same_inputs(whole, all, n_parts) ? NULL : "other ends of inputs";
}

/* ---- Parts ---- */

typedef struct cuts {
    uint64_t *random;
    input_bytes starts;         /* cut_place: of parts */
    size_t n_parts[MAX_INPUTS]; /* that read some of each input */
    corpus_format formats[MAX_INPUTS];
} cuts;

typedef struct cut_place {
    size_t input;
    corpus_cut cut;
} cut_place;

/* Finds the places in an input; some of them begin parts. */
static const char *cut_input(cuts *c, const char *name, size_t which, const corpus_options *options,
                             failure *err)
{
    static const uint32_t limits[] = {1, 2, 10, 100, 1000, 100000};
    const uint32_t limit = limits[random_input_below(c->random, 6)];
    cut_place place = {.input = which};
    corpus_cut before = {0};
    int result = 0;
    corpus_cutter *cutter = corpus_cutter_open(name, NULL, &options->reader, err);
    if (!cutter)
        return "it cannot be opened to be cut";
    const corpus_cutter_info info = corpus_cutter_describe(cutter);
    c->formats[which] = info.format;
    c->n_parts[which] = 1;
    for (;;) {
        const uint64_t at_least = before.offset + random_input_below(c->random, limit);
        result = corpus_cutter_next(cutter, at_least, &place.cut, err);
        if (result <= 0)
            break;
        if (!info.can_be_cut || place.cut.offset < at_least || place.cut.offset <= before.offset ||
            (place.cut.row > before.row) != (info.format == CORPUS_PARQUET))
            break;
        before = place.cut;
        if (random_input_below(c->random, 3) == 0)
            continue;
        input_bytes_add(&c->starts, &place, sizeof place);
        c->n_parts[which]++;
    }
    corpus_cutter_close(cutter);
    return result > 0   ? "a place to cut is not where it was asked for"
           : result < 0 ? "places to cut cannot be found"
                        : NULL;
}

static part make_part(const cuts *c, size_t n_names, const corpus_options *options,
                      const cut_place *begin, const cut_place *end)
{
    part p = {.begin = begin->input, .options = *options};
    p.options.begin = begin->cut;
    p.options.formats = c->formats + begin->input;
    p.n = n_names - begin->input;
    if (end) {
        p.options.has_end = end->cut.offset > 0;
        p.options.end = end->cut;
        p.n = end->input - begin->input + p.options.has_end;
    }
    return p;
}

static const char *read_parts(part_reading *all, const cuts *c, const char *const *names,
                              size_t n_names, const corpus_options *options)
{
    static one_reading o;
    const cut_place *starts = (const cut_place *)(const void *)c->starts.bytes;
    const size_t n = c->starts.n_bytes / sizeof *starts;
    const char *why = NULL;
    for (size_t i = 0; !why && i < n && all->result == 0; i++) {
        part p = make_part(c, n_names, options, &starts[i], i + 1 < n ? &starts[i + 1] : NULL);
        p.names = names;
        read_one(&o, &p, NULL);
        append(all, &o.r);
        all->n_parts++;
        all->n_cut += starts[i].cut.offset > 0;
        all->n_resumed += part_reading_n_places(&o.r) > 0;
        why = o.why ? o.why : read_rest(&o, &p, c->random);
        part_reading_free(&o.r);
    }
    return why;
}

const char *part_reading_compare(part_reading *all, const char *const *names, size_t n_names,
                                 const corpus_options *options, uint64_t *random)
{
    static one_reading whole;
    cuts c = {.random = random};
    failure err;
    const char *why = NULL;
    memset(all, 0, sizeof *all);
    if (n_names > MAX_INPUTS)
        return "too many inputs";
    read_one(&whole, &(part){.names = names, .n = n_names, .options = *options}, NULL);
    for (size_t i = 0; i < n_names && !why; i++) {
        const cut_place start = {.input = i};
        if (i == 0 || random_input_below(random, 2))
            input_bytes_add(&c.starts, &start, sizeof start);
        why = cut_input(&c, names[i], i, options, &err);
    }
    if (why && whole.r.result < 0)
        why = NULL; /* neither can be read */
    else if (!why)
        why = read_parts(all, &c, names, n_names, options);
    if (!why && all->n_parts)
        why = compare(&whole.r, all, c.n_parts, options->reader.list);
    why = why ? why : whole.why;
    part_reading_free(&whole.r);
    free(c.starts.bytes);
    return why;
}
