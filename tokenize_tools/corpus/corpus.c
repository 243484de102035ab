/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/corpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/assembler.h"
#include "corpus/reader.h"
#include "corpus/second_look.h"
#include "system/files.h"
#include "system/input_file.h"
#include "system/platform.h"
#include "base/array.h"
#include "base/utf8.h"
#include "base/value_bytes.h"

#define MAX_REPORTED 10 /* bad documents of an input */

/* ---- Options ---- */

/* Whether only a part of an input is read, and which. */
static bool corpus_options_part(const corpus_options *o, size_t n_names, size_t which,
                                input_part *part)
{
    *part = (input_part){0};
    if (which == 0)
        part->begin = o->begin;
    part->has_end = o->has_end && which == n_names - 1;
    if (part->has_end)
        part->end = o->end;
    return part->has_end || part->begin.offset || part->begin.row;
}

bool corpus_options_want_row(const corpus_options *o)
{
    return o->fields &&
           field_list_find(o->fields, FIELD_ROW, strlen(FIELD_ROW)) < o->fields->n_fields;
}

static const char *wrong_part(const corpus_options *o, size_t n_names, size_t which)
{
    input_part part;
    const corpus_format format = o->formats ? o->formats[which] : CORPUS_AUTO;
    if (!corpus_options_part(o, n_names, which, &part))
        return NULL;
    if (part.has_end && (part.end.offset < part.begin.offset || part.end.row < part.begin.row))
        return "the part of an input ends before it begins";
    if (format == CORPUS_PARQUET)
        return NULL;
    if (format != CORPUS_LINES && format != CORPUS_JSON_LINES)
        return "an input of this format cannot be read in parts";
    return corpus_options_want_row(o) ? "the numbers of rows are not known in a part of a text file"
                                      : NULL;
}

/* NULL, or why the options make no sense for this number of inputs. */
static const char *corpus_options_wrong(const corpus_options *o, size_t n_names)
{
    if (o->on_error == ON_ERROR_COLLECT && !o->collect)
        return "there is no collect function";
    if (o->separator && o->separator_bytes == 0)
        return "the separator is empty";
    const char *wrong = n_names ? wrong_part(o, n_names, 0) : NULL;
    return wrong || n_names < 2 ? wrong : wrong_part(o, n_names, n_names - 1);
}

corpus_options corpus_options_complete(const corpus_options *options)
{
    corpus_options o = *options;
    o.separator_bytes = o.separator ? o.separator_bytes : 0;
    o.batch_bytes = o.batch_bytes ? o.batch_bytes : (size_t)1024 * 1024;
    o.max_piece_bytes = o.max_piece_bytes ? o.max_piece_bytes : (size_t)16 * 1024 * 1024;
    /* One character must fit. */
    o.batch_bytes = o.batch_bytes < 4 ? 4 : o.batch_bytes;
    if (o.max_piece_bytes < o.batch_bytes)
        o.max_piece_bytes = o.batch_bytes;
    if (o.max_piece_bytes > SIZE_MAX / 8) /* so that sums with it do not overflow */
        o.max_piece_bytes = SIZE_MAX / 8;
    return o;
}

/* ---- Batches ---- */

void corpus_batch_free(corpus_batch *b)
{
    free(b->text);
    free(b->ends);
    free(b->values);
    *b = (corpus_batch){0};
}

/* After so many records that are not documents, a batch is handed out even if it is empty, so that
 * the caller can save the place. */
#define MAX_LEFT_OUT 16384
/* How much one call skips on the way to the place where reading resumes. */
#define SEEK_BYTES ((uint64_t)64 * 1024 * 1024)

typedef enum corpus_state {
    SEEKING, /* the place `from` */
    BETWEEN, /* documents */
    WAITING, /* for the next text of the document */
    ADDING,  /* `text` to the document */
    FAILED   /* for good, with `error` */
} corpus_state;

struct corpus {
    corpus_state state;
    const char *const *names;
    size_t n_names;
    corpus_options options; /* format: of the current input, if a part of it is read */
    corpus_format format;   /* as asked for */
    int stop_fd;            /* ends all reading */

    size_t input;
    reader *reader;    /* NULL: not open */
    input_part part;   /* that is read of it */
    bool is_part;      /* false: all of it */
    second_look *look; /* NULL: not needed so far */
    corpus_place from;
    unsigned n_reported;

    assembler assembler;
    reader_text text;
    reader_place place; /* of the current document */
    reader_text begin;  /* its first text; the whole, if that is the last */
    bool spoiled;       /* its text is bad, unless its key appears again */
    bool resumes;       /* the first document began in another process */

    uint8_t *values; /* of the current document, as in a batch */
    size_t values_bytes, values_capacity;
    unsigned n_left_out; /* records in a row that were not documents */

    corpus_counts counts;
    uint64_t plain_bytes; /* of the inputs that have ended */
    uint64_t n_records;   /* of these, by the positions of their readers */
    failure error;
};

/* The result of one step of reading. */
typedef enum step {
    STEP_FAILED = false, /* c->error */
    STEP_END,
    STEP_FULL,
    STEP_ON
} step;

/* ---- Open, close ---- */

bool corpus_place_is_begun(const corpus_place *p)
{
    return p->plain_offset || p->line || p->piece_offset || p->stored.n_bytes || p->stored.checksum;
}

corpus *corpus_open(const char *const *names, size_t n_names, const corpus_options *options,
                    const corpus_place *from, failure *err)
{
    corpus *c = calloc(1, sizeof *c);
    const char *wrong = corpus_options_wrong(options, n_names);
    if (c)
        c->stop_fd = wrong ? -1 : input_stop_open();
    if (wrong)
        fail(err, "%s", wrong);
    else if (!c)
        fail_memory(err);
    else if (c->stop_fd < 0)
        fail_system(err, errno, "eventfd");
    if (wrong || !c || c->stop_fd < 0) {
        free(c);
        return NULL;
    }
    c->names = names;
    c->n_names = n_names;
    c->options = corpus_options_complete(options);
    c->format = options->format;
    c->state = BETWEEN;
    c->assembler.options = &c->options;
    if (from) {
        c->from = *from;
        c->input = from->input < n_names ? (size_t)from->input : n_names;
        c->counts = from->counts;
        c->plain_bytes = from->counts.plain_bytes - from->plain_offset;
        c->n_records = from->counts.records - from->counts.input_records;
        if (c->input < n_names && corpus_place_is_begun(from))
            c->state = SEEKING;
        c->resumes = from->piece_offset > 0;
    }
    *err = (failure){0};
    return c;
}

void corpus_interrupt(corpus *c)
{
    input_stop_raise(c->stop_fd);
}

void corpus_close(corpus *c)
{
    if (!c)
        return;
    corpus_interrupt(c);
    reader_close(c->reader);
    second_look_free(c->look);
    assembler_free(&c->assembler);
    free(c->values);
    tokmap_i_file_close(c->stop_fd);
    free(c);
}

/* ---- The batch ---- */

/* Whether a document is unfinished. */
static bool is_open(const corpus *c)
{
    return c->state == WAITING || c->state == ADDING;
}

static corpus_place place_now(const corpus *c)
{
    corpus_place place = {.input = c->input, .counts = c->counts};
    reader_place at = {0};
    if (c->state == SEEKING) {
        at = (reader_place){.offset = c->from.plain_offset, .line = c->from.line};
        place.stored = c->from.stored;
        place.piece_offset = c->from.piece_offset;
    } else {
        place.counts.records = c->n_records;
        if (c->reader) {
            at = reader_where(c->reader);
            place.stored = reader_stored(c->reader);
            /* For the balance. The unfinished document is not in it. */
            place.counts.records += at.n_records - is_open(c);
        }
        if (is_open(c)) {
            at = c->place;
            place.piece_offset = c->assembler.n_before + c->assembler.n_discard;
        }
    }
    place.plain_offset = at.offset;
    place.line = at.line;
    place.counts.plain_bytes = c->plain_bytes + at.offset;
    return place;
}

static int hand_out(corpus *c, corpus_batch *batch)
{
    memset(batch->text + batch->n_bytes, 0, CORPUS_PADDING);
    batch->after = place_now(c);
    return 1;
}

static step add_end(corpus *c, corpus_end end)
{
    corpus_batch *batch = c->assembler.batch;
    if (!array_reserve(&batch->ends, &batch->ends_capacity, batch->n_ends + 1, sizeof *batch->ends))
        return fail_memory(&c->error);
    end.at = batch->n_bytes;
    batch->ends[batch->n_ends++] = end;
    if (c->options.ended) {
        const corpus_place now = place_now(c);
        c->options.ended(c->options.context, &now.counts);
    }
    /* Limits the memory for empty documents and for values too. */
    const size_t n_bytes = batch->n_ends * sizeof(corpus_end) + batch->values_bytes;
    return n_bytes > c->options.batch_bytes ? STEP_FULL : STEP_ON;
}

/* ---- Bad documents ---- */

#define SPOT_BYTES 320

/* Describes a byte of the current document. */
static const char *describe(const corpus *c, uint64_t offset, char spot[SPOT_BYTES])
{
    reader_describe(c->reader, c->place, offset, spot, SPOT_BYTES);
    return spot;
}

/* Puts the byte before c->error. */
static step fail_at_byte(corpus *c, uint64_t offset)
{
    char spot[SPOT_BYTES];
    return fail_at(&c->error, "%s: ", describe(c, offset, spot));
}

static step fail_half_packed(corpus *c, const char *reason, uint64_t offset)
{
    fail(&c->error,
         "%s; part of this document is already packed, because it is longer than %zu bytes and the "
         "input can be read only once; copy the input to a file or raise --memory",
         reason, c->options.max_piece_bytes);
    return fail_at_byte(c, offset);
}

/* The current input. */
static input_source source_now(const corpus *c)
{
    const input_version *versions = c->options.versions;
    return (input_source){.path = c->names[c->input],
                          .part = c->is_part ? &c->part : NULL,
                          .version = versions ? &versions[c->input] : NULL};
}

static second_look *open_second_look(corpus *c)
{
    const input_source source = source_now(c);
    if (!c->look)
        c->look = second_look_new(&source, &c->options, reader_format(c->reader), c->stop_fd);
    if (!c->look)
        fail_memory(&c->error);
    return c->look;
}

static bool collect_document(corpus *c, const reader_raw *raw)
{
    if (raw->bytes) {
        c->options.collect(c->options.context, raw->bytes, (size_t)(raw->end - raw->begin), true);
        return true;
    }
    if (!second_look_possible(c->names[c->input])) {
        fail(&c->error,
             "a bad document of more than %zu bytes cannot be collected from an input that can be "
             "read only once; copy the input to a file or raise --memory",
             c->options.max_piece_bytes);
        return fail_at_byte(c, raw->begin);
    }
    return open_second_look(c) && second_look_collect(c->look, raw->begin, raw->end, &c->error);
}

/* The current record is not a document. */
static step leave_out(corpus *c, uint64_t *count)
{
    ++*count;
    c->counts.input_records++;
    c->state = BETWEEN;
    return ++c->n_left_out % MAX_LEFT_OUT ? STEP_ON : STEP_FULL;
}

static step bad_document(corpus *c, const char *reason, uint64_t offset)
{
    reader_raw raw;
    char spot[SPOT_BYTES], text[2 * SPOT_BYTES + 2];
    char copy[320]; /* `reason` may point into the reader, which goes on */
    snprintf(copy, sizeof copy, "%s", reason);
    if (c->options.on_error == ON_ERROR_FAIL) {
        fail(&c->error, "%s%s", copy,
             c->options.fixed ? "" : " (use --on-error skip to leave out such documents)");
        return fail_at_byte(c, offset);
    }
    if (c->assembler.n_before + c->assembler.n_discard > 0)
        return fail_half_packed(c, copy, offset);
    assembler_drop(&c->assembler);
    if (!reader_skip(c->reader, &raw, &c->error))
        return STEP_FAILED;
    if (c->options.on_error == ON_ERROR_COLLECT && !collect_document(c, &raw))
        return STEP_FAILED;
    if (c->options.report && c->n_reported++ < MAX_REPORTED) {
        snprintf(text, sizeof text, "%s: %s", describe(c, offset, spot), copy);
        c->options.report(c->options.context, text);
    }
    c->counts.bad_bytes += raw.end - raw.begin;
    return leave_out(c, &c->counts.bad_documents);
}

/* ---- Documents ---- */

static bool is_json(const corpus *c)
{
    return reader_format(c->reader) == CORPUS_JSON_LINES;
}

/* false: out of memory. */
static bool begin_document(corpus *c)
{
    assembler *a = &c->assembler;
    assembler_begin_document(a);
    c->state = WAITING;
    c->spoiled = false;
    c->place = (reader_place){.offset = c->text.offset, .line = c->text.line};
    c->begin = c->text;
    a->n_discard = c->resumes ? c->from.piece_offset : 0;
    /* A document that may turn out bad and have to be left out is checked before it is cut. */
    a->may_cut =
        c->resumes || (c->options.on_error == ON_ERROR_FAIL && (c->text.last || !is_json(c)));
    if (!c->text.values)
        return true;
    c->values_bytes = value_bytes_size(c->text.values, c->options.n_kept);
    if (!array_reserve(&c->values, &c->values_capacity, c->values_bytes, 1))
        return false;
    value_bytes_put(c->values, c->text.values, c->options.n_kept);
    return true;
}

static step check_whole(corpus *c)
{
    second_look_report report;
    const reader_text *whole = &c->begin;
    /* A fast check that nearly all documents pass. */
    const corpus_options *o = &c->options;
    if (whole->n_bytes <= o->max_piece_bytes &&
        !(o->utf8 == UTF8_ERROR && whole->lone_surrogates) &&
        (o->utf8 == UTF8_RAW || utf8_valid_prefix(whole->bytes, whole->n_bytes) == whole->n_bytes))
        return STEP_ON;
    if (!open_second_look(c) || !second_look_check_whole(c->look, whole, &report, &c->error))
        return STEP_FAILED;
    return report.good ? STEP_ON : bad_document(c, report.reason, report.bad_offset);
}

/* Called before the document is cut for the first time. */
static step check_document(corpus *c)
{
    second_look_report report;
    c->assembler.may_cut = true;
    if (c->begin.last)
        return check_whole(c);
    if (!second_look_possible(c->names[c->input]))
        return STEP_ON;
    if (!open_second_look(c) || !second_look_check(c->look, c->place, &report, &c->error))
        return STEP_FAILED;
    if (!report.good)
        return bad_document(c, report.reason, report.bad_offset);
    if (!is_json(c))
        return STEP_ON;
    if (c->text.n_begun != report.n_begun) {
        assembler_drop(&c->assembler);
        c->state = WAITING;
    }
    reader_want(c->reader, report.n_begun);
    return STEP_ON;
}

static step end_document(corpus *c)
{
    assembler *a = &c->assembler;
    uint64_t n_bytes = assembler_document_bytes(a);
    if (a->n_discard > 0) {
        fail_changed(&c->error, "has changed: the document is shorter than in the earlier run");
        return fail_at_byte(c, c->place.offset);
    }
    if (c->values_bytes > 0) {
        corpus_batch *batch = a->batch;
        if (!array_reserve(&batch->values, &batch->values_capacity,
                           batch->values_bytes + c->values_bytes, 1))
            return fail_memory(&c->error);
        memcpy(batch->values + batch->values_bytes, c->values, c->values_bytes);
        batch->values_bytes += c->values_bytes;
    }
    c->n_left_out = 0;
    c->counts.input_records++;
    c->counts.documents++;
    c->counts.empty_documents += n_bytes == 0;
    c->counts.text_bytes += n_bytes;
    c->counts.repaired_documents += a->replacements > 0;
    c->counts.replacements += a->replacements;
    a->begin = a->batch->n_bytes;
    c->resumes = false;
    c->state = BETWEEN;
    return add_end(c, (corpus_end){0});
}

static step bad_text(corpus *c)
{
    const assembler *a = &c->assembler;
    c->spoiled = is_json(c) && !c->text.last && a->n_before + a->n_discard == 0;
    c->state = WAITING;
    if (c->spoiled)
        return STEP_ON;
    /* Its key may appear again, with another text. */
    if (is_json(c) && !c->text.last && !second_look_possible(c->names[c->input]))
        return fail_half_packed(c, a->reason, c->place.offset);
    return bad_document(c, a->reason, c->place.offset + (is_json(c) ? 0 : a->bad_at));
}

static step add_text(corpus *c)
{
    assembler *a = &c->assembler;
    /* A document in one piece is not cut because of the text before it. */
    bool untouched = c->begin.last && c->text.n_bytes == c->begin.n_bytes;
    if (untouched && a->begin > 0 && c->text.n_bytes > a->limit - a->begin)
        return STEP_FULL;
    switch (c->spoiled ? ADD_BAD : assembler_add(a, &c->text)) {
    case ADD_DONE:
        c->state = WAITING;
        if (c->text.last)
            return end_document(c);
        reader_keep(c->reader, c->text.n_bytes);
        return STEP_ON;
    case ADD_FULL:
        return STEP_FULL;
    case ADD_FIRST_CUT:
        return check_document(c);
    case ADD_BAD:
        return bad_text(c);
    case ADD_NO_MEMORY:
        break;
    }
    return fail_memory(&c->error);
}

/* ---- Inputs ---- */

static step input_failed(corpus *c)
{
    size_t n = strlen(c->error.text);
    if (c->counts.documents > 0 && c->error.status != ECANCELED &&
        c->error.status != FAILURE_CHANGED)
        snprintf(c->error.text + n, sizeof c->error.text - n,
                 "; documents read before it: %" PRIu64, c->counts.documents);
    return STEP_FAILED;
}

/* The document that an earlier run has packed in part is not there. */
static step fail_resumed(corpus *c, const char *how)
{
    return fail_changed(&c->error, "has changed: the document that was being packed %s", how);
}

void corpus_note_fields(const corpus *c)
{
    if (c->reader)
        reader_note_fields(c->reader);
}

static step end_input(corpus *c)
{
    const input_prefix stored = reader_stored(c->reader);
    corpus_end end = {.input = true, .stored_bytes = stored.n_bytes, .checksum = stored.checksum};
    if (c->resumes)
        return fail_resumed(c, "is missing");
    const uint64_t n = reader_n_records(c->reader); /* as the input itself says */
    if (n != READER_UNKNOWN && n != c->counts.input_records)
        return fail(&c->error,
                    "has %" PRIu64 " records by its own account, but %" PRIu64
                    " were read; the file is damaged, or this is a bug in tokmap",
                    n, c->counts.input_records);
    c->n_records += reader_where(c->reader).n_records;
    c->counts.input_records = 0;
    if (c->is_part) { /* what is known of the whole input */
        file_facts facts;
        const int sys_errno = file_describe_input(c->names[c->input], &facts);
        if (sys_errno)
            return fail_system(&c->error, sys_errno, "cannot read");
        end.stored_bytes = facts.n_bytes;
        end.checksum = 0;
    }
    corpus_note_fields(c);
    c->counts.stored_bytes += stored.n_bytes;
    c->plain_bytes += reader_where(c->reader).offset;
    reader_close(c->reader);
    second_look_free(c->look);
    c->reader = NULL;
    c->look = NULL;
    c->n_reported = 0;
    c->input++;
    const step added = add_end(c, end);
    return added == STEP_FAILED ? fail_at(&c->error, "%.200s: ", c->names[c->input - 1]) : added;
}

static step open_input(corpus *c)
{
    c->is_part = corpus_options_part(&c->options, c->n_names, c->input, &c->part);
    c->options.format = c->is_part ? c->options.formats[c->input] : c->format;
    input_source source = source_now(c);
    if (c->state == SEEKING)
        source.prefix = c->from.stored;
    c->reader = reader_open(&source, &c->options, c->stop_fd, &c->error);
    if (!c->reader)
        return input_failed(c);
    /* The bytes before a part are in its offsets, and were not read. */
    if (c->is_part && c->state != SEEKING)
        c->plain_bytes -= reader_where(c->reader).offset;
    return STEP_ON;
}

static step seek_place(corpus *c)
{
    reader_place to = {c->from.plain_offset, c->from.line, c->from.counts.input_records};
    int there = reader_seek(c->reader, to, SEEK_BYTES, &c->error);
    if (there < 0)
        return input_failed(c);
    c->state = there ? BETWEEN : SEEKING;
    return there ? STEP_ON : STEP_FULL;
}

static step next_text(corpus *c)
{
    reader_result result = reader_next(c->reader, &c->text, &c->error);
    if (result == READER_FAILED)
        return input_failed(c);
    if (result == READER_END)
        return end_input(c);
    if (c->resumes && (result == READER_NULL || result == READER_FILTERED))
        return fail_resumed(c, "is not one any more");
    if (result == READER_NULL)
        return leave_out(c, &c->counts.null_documents);
    if (result == READER_FILTERED)
        return leave_out(c, &c->counts.filtered_documents);
    if (c->text.first && !begin_document(c))
        return fail_memory(&c->error);
    if (result == READER_BAD)
        return bad_document(c, c->text.reason, c->text.bad_offset);
    if (c->text.drop && c->assembler.n_before > 0)
        return fail_half_packed(c, "its key appears again", c->place.offset);
    if (c->text.drop) {
        assembler_drop(&c->assembler);
        c->spoiled = false;
    }
    c->state = ADDING;
    return c->text.first && c->resumes && is_json(c) ? check_document(c) : STEP_ON;
}

static step take_step(corpus *c)
{
    if (c->input == c->n_names)
        return STEP_END;
    if (!c->reader)
        return open_input(c);
    if (c->state == SEEKING)
        return seek_place(c);
    return c->state == ADDING ? add_text(c) : next_text(c);
}

int corpus_read(corpus *c, corpus_batch *batch, failure *err)
{
    assembler *a = &c->assembler;
    if (c->state == FAILED) {
        *err = c->error;
        return -1;
    }
    step s = assembler_next_batch(a, batch) ? STEP_ON : fail_memory(&c->error);
    batch->continues = is_open(c) ? a->n_before + a->n_discard > 0 : c->resumes;
    while (s == STEP_ON)
        s = take_step(c);
    batch->failed = s == STEP_FAILED;
    if (!batch->failed)
        return s == STEP_END && batch->n_ends == 0 ? 0 : hand_out(c, batch);
    /* Maybe in the middle of a record, so no place can be told. */
    if (c->input < c->n_names)
        fail_at(&c->error, "%.200s: ", c->names[c->input]);
    batch->n_bytes = a->begin;
    const int result = batch->n_ends > 0 ? hand_out(c, batch) : -1;
    c->state = FAILED;
    *err = c->error;
    return result;
}
