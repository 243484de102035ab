/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/corpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/open_input.h"
#include "corpus/repair.h"
#include "system/files.h"
#include "system/input_file.h"
#include "system/platform.h"
#include "base/array.h"
#include "base/value_bytes.h"

/* ---- Options ---- */

/* Whether only a part of an input is read, and which. */
static bool corpus_options_part(const corpus_options *o, size_t n_names, size_t which,
                                input_part *part)
{
    *part = (input_part){.joined = o->joined};
    if (which == 0)
        part->begin = o->begin;
    part->has_end = o->has_end && which == n_names - 1;
    if (part->has_end)
        part->end = o->end;
    return part->has_end || part->begin.offset || part->begin.row;
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
    return reader_options_want_row(&o->reader)
               ? "the numbers of rows are not known in a part of a text file"
               : NULL;
}

/* NULL, or why the options make no sense for this number of inputs. */
static const char *corpus_options_wrong(const corpus_options *o, size_t n_names)
{
    if (o->reader.separator && o->reader.separator_bytes == 0)
        return "the separator is empty";
    const char *wrong = n_names ? wrong_part(o, n_names, 0) : NULL;
    return wrong || n_names < 2 ? wrong : wrong_part(o, n_names, n_names - 1);
}

/* ---- Batches ---- */

void corpus_batch_free(corpus_batch *b)
{
    free(b->text);
    free(b->ends);
    free(b->values);
    free(b->ranges);
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
    HOLDING, /* a document that the last batch had no room for */
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
    reader *reader;  /* NULL: not open */
    input_part part; /* that is read of it */
    bool is_part;    /* false: all of it */
    bool is_over;    /* the part was read, and another one follows */
    corpus_place from;

    corpus_batch *batch;
    document document;   /* the last record */
    unsigned n_left_out; /* records in a row that were not documents */

    corpus_counts counts;
    uint64_t plain_bytes;     /* of the inputs that have ended */
    uint64_t n_records;       /* of these, by the positions of their readers */
    uint64_t repaired_before; /* documents of the inputs before this one */
    failure error;
    bool failed_within; /* corpus_failed_within */
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
    return p->plain_offset || p->line || p->stored.n_bytes || p->stored.checksum;
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
    c->options = *options;
    c->options.reader = reader_options_complete(&options->reader);
    c->options.batch_bytes = options->batch_bytes ? options->batch_bytes : CORPUS_BATCH_BYTES;
    c->format = options->reader.format;
    c->state = BETWEEN;
    if (from) {
        c->from = *from;
        c->input = from->input < n_names ? (size_t)from->input : n_names;
        c->counts = from->counts;
        c->plain_bytes = from->counts.plain_bytes - from->plain_offset;
        c->n_records = from->counts.records - from->counts.input_records;
        if (c->input < n_names && corpus_place_is_begun(from))
            c->state = SEEKING;
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
    tokmap_i_file_close(c->stop_fd);
    free(c);
}

/* ---- The batch ---- */

/* Frees what a long document has left, and reserves what a usual batch needs. */
static bool begin_batch(const corpus *c, corpus_batch *batch)
{
    const size_t usual = c->options.batch_bytes + INPUT_PADDING;
    if (batch->capacity / 4 > usual) {
        free(batch->text);
        batch->text = NULL;
        batch->capacity = 0;
    }
    batch->n_bytes = batch->n_ends = batch->values_bytes = batch->n_ranges = 0;
    return array_reserve(&batch->text, &batch->capacity, usual, 1);
}

/* Where the current record begins. */
static reader_place place_of(const document *d)
{
    return (reader_place){.offset = d->offset, .line = d->line};
}

static corpus_place place_now(const corpus *c)
{
    corpus_place place = {.input = c->input, .counts = c->counts};
    reader_place at = {0};
    if (c->state == SEEKING) {
        at = (reader_place){.offset = c->from.plain_offset, .line = c->from.line};
        place.stored = c->from.stored;
    } else {
        place.counts.records = c->n_records;
        if (c->reader) {
            at = reader_where(c->reader);
            place.stored = reader_stored(c->reader);
            /* For the balance. The document that waits is not in it. */
            place.counts.records += at.n_records - (c->state == HOLDING);
        }
        if (c->state == HOLDING)
            at = place_of(&c->document);
    }
    place.plain_offset = at.offset;
    place.line = at.line;
    place.counts.plain_bytes = c->plain_bytes + at.offset;
    return place;
}

static int hand_out(corpus *c, corpus_batch *batch)
{
    memset(batch->text + batch->n_bytes, 0, INPUT_PADDING);
    batch->after = place_now(c);
    return 1;
}

static step add_end(corpus *c, corpus_end end)
{
    corpus_batch *batch = c->batch;
    if (!array_reserve(&batch->ends, &batch->ends_capacity, batch->n_ends + 1, sizeof *batch->ends))
        return fail_memory(&c->error);
    end.at = batch->n_bytes;
    batch->ends[batch->n_ends++] = end;
    if (c->options.ended) {
        const corpus_place now = place_now(c);
        c->options.ended(c->options.reader.context, &now.counts);
    }
    /* Limits the memory for empty documents, values and ranges too. */
    const size_t n_bytes = batch->n_ends * sizeof(corpus_end) + batch->values_bytes +
                           batch->n_ranges * sizeof(text_range);
    const size_t full = c->options.batch_bytes;
    return n_bytes > full || batch->n_bytes >= full ? STEP_FULL : STEP_ON;
}

/* ---- Bad documents ---- */

#define SPOT_BYTES 320

static corpus_record record_of(const corpus *c)
{
    const document *d = &c->document;
    const corpus_format format = reader_format(c->reader);
    const bool is_row = format == CORPUS_PARQUET || format == CORPUS_ARROW;
    return (corpus_record){.offset = d->offset,
                           .n_bytes = d->record_bytes,
                           .line = d->line,
                           .is_row = is_row,
                           .no_number =
                               format == CORPUS_TEXT || (!is_row && c->part.begin.offset > 0)};
}

/* Describes a byte of the current record. */
static const char *describe(const corpus *c, uint64_t offset, char spot[SPOT_BYTES])
{
    reader_describe(c->reader, place_of(&c->document), offset, spot, SPOT_BYTES);
    return spot;
}

/* Skips the current record, which is not a document. */
static step leave_out(corpus *c, uint64_t *count)
{
    ++*count;
    c->counts.input_records++;
    c->state = BETWEEN;
    return ++c->n_left_out % MAX_LEFT_OUT ? STEP_ON : STEP_FULL;
}

static step bad_document(corpus *c, const char *reason, uint64_t offset)
{
    char spot[SPOT_BYTES];
    const document *d = &c->document;
    if (c->options.reader.on_error == ON_ERROR_FAIL) {
        fail(&c->error, "%s%s", reason,
             c->options.reader.fixed ? "" : " (use --on-error skip to leave out such documents)");
        return fail_at(&c->error, "%s: ", describe(c, offset, spot));
    }
    if (c->options.bad)
        c->options.bad(c->options.reader.context, &(corpus_bad){.input = c->input,
                                                                .at = record_of(c),
                                                                .place = describe(c, offset, spot),
                                                                .reason = reason});
    c->counts.bad_bytes += d->record_bytes;
    c->counts.long_documents += d->is_long;
    return leave_out(c, &c->counts.bad_documents);
}

/* ---- Documents ---- */

/* Puts the values of the current document into the batch. */
static bool add_values(corpus *c)
{
    corpus_batch *batch = c->batch;
    const tokmap_value *values = c->document.values;
    const size_t n_bytes = values ? value_bytes_size(values, c->options.reader.n_kept) : 0;
    if (n_bytes == 0)
        return true;
    if (!array_reserve(&batch->values, &batch->values_capacity, batch->values_bytes + n_bytes, 1))
        return false;
    value_bytes_put(batch->values + batch->values_bytes, values, c->options.reader.n_kept);
    batch->values_bytes += n_bytes;
    return true;
}

/* Puts the ranges of the current document into the batch. */
static bool add_ranges(corpus *c)
{
    corpus_batch *batch = c->batch;
    const document *d = &c->document;
    if (d->n_ranges == 0)
        return true;
    if (!array_reserve(&batch->ranges, &batch->ranges_capacity, batch->n_ranges + d->n_ranges,
                       sizeof *batch->ranges))
        return false;
    memcpy(batch->ranges + batch->n_ranges, d->ranges, d->n_ranges * sizeof *d->ranges);
    batch->n_ranges += d->n_ranges;
    return true;
}

static step add_document(corpus *c)
{
    document *d = &c->document;
    corpus_batch *batch = c->batch;
    char reason[128];
    size_t n_valid;
    const corpus_utf8 utf8 = c->options.reader.list ? UTF8_RAW : c->options.reader.utf8;
    const size_t n_bytes = repair_size(d->text, d->n_bytes, utf8, &n_valid);
    const corpus_format format = reader_format(c->reader);
    const bool is_in_record =
        format == CORPUS_JSON_LINES || format == CORPUS_CSV || format == CORPUS_TSV;
    if (utf8 == UTF8_ERROR && n_valid < d->n_bytes) {
        snprintf(reason, sizeof reason, "the document is not valid UTF-8 at its byte %zu", n_valid);
        return bad_document(c, reason, d->offset + (is_in_record ? 0 : n_valid));
    }
    if (utf8 == UTF8_ERROR && d->lone_surrogates)
        return bad_document(c, "a lone surrogate in the text", d->offset);
    if (n_bytes > c->options.reader.max_document) {
        reader_refuse_long(c->reader, d);
        return bad_document(c, d->reason, d->bad_offset);
    }
    if (batch->n_bytes > 0 && batch->n_bytes + n_bytes > c->options.batch_bytes) {
        c->state = HOLDING;
        return STEP_FULL;
    }
    if (!array_reserve(&batch->text, &batch->capacity, batch->n_bytes + n_bytes + INPUT_PADDING,
                       1) ||
        !add_values(c) || !add_ranges(c))
        return fail_memory(&c->error);
    const uint64_t n_replaced = d->lone_surrogates + repair_copy(batch->text + batch->n_bytes,
                                                                 d->text, d->n_bytes, n_valid);
    batch->n_bytes += n_bytes;
    c->state = BETWEEN;
    c->n_left_out = 0;
    c->counts.input_records++;
    c->counts.documents++;
    c->counts.empty_documents += n_bytes == 0;
    c->counts.text_bytes += n_bytes;
    c->counts.repaired_documents += n_replaced > 0;
    c->counts.replacements += n_replaced;
    return add_end(c, (corpus_end){.record = record_of(c), .n_ranges = d->n_ranges});
}

/* ---- Inputs ---- */

static step input_failed(corpus *c)
{
    c->failed_within = c->error.status != ECANCELED && c->error.status != FAILURE_CHANGED;
    return STEP_FAILED;
}

bool corpus_failed_within(const corpus *c)
{
    return c->failed_within;
}

void corpus_counts_add(corpus_counts *counts, const corpus_counts *before)
{
    counts->documents += before->documents;
    counts->empty_documents += before->empty_documents;
    counts->text_bytes += before->text_bytes;
    counts->stored_bytes += before->stored_bytes;
    counts->plain_bytes += before->plain_bytes;
    counts->records += before->records;
    counts->null_documents += before->null_documents;
    counts->filtered_documents += before->filtered_documents;
    counts->bad_documents += before->bad_documents;
    counts->long_documents += before->long_documents;
    counts->bad_bytes += before->bad_bytes;
    counts->repaired_documents += before->repaired_documents;
    counts->replacements += before->replacements;
}

void corpus_note_fields(const corpus *c)
{
    if (c->reader)
        reader_note_fields(c->reader);
}

/* Compares the number of records with what the input itself says. */
static bool check_records(corpus *c)
{
    const uint64_t n = reader_n_records(c->reader);
    return n == READER_UNKNOWN || n == c->counts.input_records ||
           fail(&c->error,
                "states %" PRIu64 " records, but %" PRIu64
                " were read; the file is damaged, or this is a bug in tokmap",
                n, c->counts.input_records);
}

static step end_input(corpus *c)
{
    const input_prefix stored = reader_stored(c->reader);
    corpus_end end = {.input = true, .stored_bytes = stored.n_bytes, .checksum = stored.checksum};
    end.n_repaired = c->counts.repaired_documents - c->repaired_before;
    end.knows_fields = reader_lacking(c->reader, &end.lacking);
    if (!check_records(c))
        return STEP_FAILED;
    if (c->part.joined && c->part.has_end) {
        c->is_over = true;
        return STEP_FULL; /* for the place, and the counts of what is not a document */
    }
    c->n_records += reader_where(c->reader).n_records;
    c->counts.input_records = 0;
    if (c->is_part && !c->part.joined) { /* what is known of the whole input */
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
    c->reader = NULL;
    c->input++;
    const step added = add_end(c, end);
    return added == STEP_FAILED ? fail_in_file(&c->error, c->names[c->input - 1]) : added;
}

static step open_input(corpus *c)
{
    c->is_part = corpus_options_part(&c->options, c->n_names, c->input, &c->part);
    c->options.reader.format = c->is_part ? c->options.formats[c->input] : c->format;
    const input_version *versions = c->options.versions;
    const input_source source = {
        .path = c->names[c->input],
        .part = c->is_part ? &c->part : NULL,
        .version = versions ? &versions[c->input] : NULL,
        .prefix = c->state == SEEKING ? c->from.stored : (input_prefix){0},
        .reserve = c->options.reserve,
        .reserve_context = c->options.reader.context,
    };
    c->reader = reader_open(&source, &c->options.reader, c->stop_fd, &c->error);
    c->repaired_before = c->counts.repaired_documents;
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

static step next_record(corpus *c)
{
    switch (reader_next(c->reader, &c->document, &c->error)) {
    case READER_FAILED:
        break;
    case READER_END:
        return end_input(c);
    case READER_NULL:
        return leave_out(c, &c->counts.null_documents);
    case READER_FILTERED:
        return leave_out(c, &c->counts.filtered_documents);
    case READER_BAD:
        return bad_document(c, c->document.reason, c->document.bad_offset);
    case READER_DOCUMENT:
        return add_document(c);
    }
    return input_failed(c);
}

static step take_step(corpus *c)
{
    if (c->input == c->n_names || c->is_over)
        return STEP_END;
    if (!c->reader)
        return open_input(c);
    if (c->state == SEEKING)
        return seek_place(c);
    return c->state == HOLDING ? add_document(c) : next_record(c);
}

int corpus_read(corpus *c, corpus_batch *batch, failure *err)
{
    if (c->state == FAILED) {
        *err = c->error;
        return -1;
    }
    c->batch = batch;
    step s = begin_batch(c, batch) ? STEP_ON : fail_memory(&c->error);
    while (s == STEP_ON)
        s = take_step(c);
    batch->failed = s == STEP_FAILED;
    uint64_t lacking;
    batch->fields_seen = c->reader && reader_lacking(c->reader, &lacking) ? ~lacking : 0;
    if (!batch->failed)
        return s == STEP_END && batch->n_ends == 0 ? 0 : hand_out(c, batch);
    /* Maybe in the middle of a record, so the place is not known. */
    if (c->input < c->n_names)
        fail_in_file(&c->error, c->names[c->input]);
    const int result = batch->n_ends > 0 ? hand_out(c, batch) : -1;
    c->state = FAILED;
    *err = c->error;
    return result;
}
