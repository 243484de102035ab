/* SPDX-License-Identifier: Apache-2.0 */
/* corpus.h - reads the documents of all inputs, in order, as batches of text.
 *
 * Compressed inputs (input.h), tar archives, Parquet and Arrow are recognized by their first bytes.
 * The format is an option or, with CORPUS_AUTO, follows from these bytes, from a name that ends in
 * .csv or .tsv, or from the first line of each input. Inputs are read in the given order, documents
 * in the order of the input. A batch has whole documents. Nothing is dropped silently: everything
 * that is left out or repaired is counted and reported.
 *
 * What a document is: with CORPUS_TEXT, the whole input, even if it is empty (with CORPUS_AUTO, an
 * empty input has no documents); with a separator, the text before each separator, and the text
 * after the last one unless it is empty. With CORPUS_LINES, a line without its newline; a carriage
 * return is kept, an empty line is an empty document, and the last line needs no newline. With
 * CORPUS_JSON_LINES, a string in the object on a line; blank lines, white space before a line and a
 * byte order mark at the start of the input are skipped. With CORPUS_CSV, CORPUS_TSV (format.h),
 * CORPUS_PARQUET and CORPUS_ARROW, the value of a column in a row. In a tar archive, each member
 * whose name ends like that of text or JSON is an input. A document whose record or text is larger
 * than max_document is bad.
 *
 * An input can be read in parts, even by several processes: together these give the documents,
 * values and counts of the whole. A part is read without what lies before it, so messages about
 * lines in it give only their bytes.
 *
 * The documents do not depend on batch_bytes, read_bytes, read_ahead or the place where reading
 * resumed. Memory: the batches, and the record that is read, whole. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/options.h"
#include "input/window.h"

/* Counts of documents that are complete or were left out. A checkpoint of pack has them: one more
 * means that what an older version has begun cannot be resumed. */
typedef struct corpus_counts {
    uint64_t documents, empty_documents;
    uint64_t text_bytes;   /* of documents, decoded and repaired */
    uint64_t stored_bytes; /* of finished inputs and parts of inputs, as stored */
    uint64_t plain_bytes;  /* decompressed bytes before the current place */
    /* All records before the current place, as the reader of the input counts them where its
     * position moves on. The other counts grow where a record is handed out or left out. So one
     * that the position passes, but nobody gets, is in this count only. */
    uint64_t records;
    uint64_t input_records;                    /* those of the current input */
    uint64_t null_documents;                   /* records whose text is null */
    uint64_t filtered_documents;               /* left out by `where` */
    uint64_t bad_documents;                    /* left out with ON_ERROR_SKIP, */
    uint64_t long_documents;                   /* those of them that are larger than max_document */
    uint64_t bad_bytes;                        /* of the lines of bad documents */
    uint64_t repaired_documents, replacements; /* UTF8_REPLACE; lone surrogates too */
} corpus_counts;

/* Whether `where` has left out all that there was. */
static inline bool corpus_kept_none(const corpus_counts *c)
{
    return c->filtered_documents > 0 && c->filtered_documents + c->bad_documents == c->records;
}
#define CORPUS_KEPT_NONE "--where kept no document of %" PRIu64 "; nothing is written"

/* A place between two batches, from which another process can continue reading. */
typedef struct corpus_place {
    uint64_t input;        /* index */
    uint64_t plain_offset; /* in the decompressed input: start of the next document; with
                              CORPUS_PARQUET, in the texts of all rows */
    uint64_t line;         /* of plain_offset, from 0 in the input or its part; with CORPUS_TEXT
                              the number of the document, with CORPUS_PARQUET of the row */
    input_prefix stored;   /* the part of this input that was read: it must begin with it again */
    corpus_counts counts;
} corpus_place;

/* Whether something of its input was read. */
bool corpus_place_is_begun(const corpus_place *place);

typedef struct corpus_end {          /* the end of a document or of an input */
    size_t at;                       /* offset in the batch's text */
    corpus_record record;            /* of the document */
    size_t n_ranges;                 /* of the document */
    bool input;                      /* an input ends, with the values below */
    uint64_t stored_bytes, checksum; /* of the whole input; docs/FORMAT.md section 3.5. checksum
                                        is 0 if only a part of it was read */
    uint64_t n_repaired;             /* documents of the input with U+FFFD in place of bytes */
    bool knows_fields;               /* of the input, with: */
    uint64_t lacking;                /* bits of the fields that it lacks */
} corpus_end;

typedef struct corpus_batch { /* start with {0}; reused for each read; corpus_batch_free frees it */
    uint8_t *text;            /* INPUT_PADDING readable bytes follow */
    size_t n_bytes, capacity;
    corpus_end *ends; /* in order; several may have the same `at` */
    size_t n_ends, ends_capacity;
    uint64_t fields_seen; /* bits of the fields that the input that goes on has, as far as it was
                             read here */
    /* The values of the first n_kept fields of each document that ends here, as value_bytes.h
     * writes them. */
    uint8_t *values;
    size_t values_bytes, values_capacity;
    text_range *ranges; /* those of all documents; each counts in its document */
    size_t n_ranges, ranges_capacity;
    bool failed;        /* the next call returns an error: `after` has counts, but not a place */
    corpus_place after; /* where this batch ends */
} corpus_batch;

typedef struct corpus corpus;

typedef struct corpus_bad { /* a bad document; valid during the call */
    uint64_t input;         /* index */
    corpus_record at;
    const char *place; /* "FILE:LINE: byte N"; lines count from 1, bytes from 0 */
    const char *reason;
} corpus_bad;

#define CORPUS_BATCH_BYTES ((size_t)1024 * 1024)

typedef struct corpus_options {
    reader_options reader;
    size_t batch_bytes;            /* usual size of a batch's text; 0: CORPUS_BATCH_BYTES */
    const input_version *versions; /* the inputs must have these; NULL: any */
    /* A part of the inputs: `begin` is in the first one, and `end`, where the next part begins, in
     * the last one. For an input of which a part is read, formats[i] must be its format, as
     * cutter.h tells it. An input is cut only where cutter.h allows it. */
    corpus_cut begin, end;
    bool has_end; /* false: up to the end of the last input */
    /* All parts of an input of Parquet are read by the caller, which joins them: checksums, offsets
     * and counts are those of the part, and only the last part has the end of the input. */
    bool joined;
    const corpus_format *formats; /* of all inputs; NULL: no input is cut */
    /* Called with reader.context. For each bad document, with ON_ERROR_SKIP; and after each end in
     * a batch, with the counts up to it. May be NULL. */
    void (*bad)(void *context, const corpus_bad *bad);
    void (*ended)(void *context, const corpus_counts *counts);
    /* As in input_source, of each input. */
    bool (*reserve)(void *context, uint64_t n_bytes);
} corpus_options;

/* Opens the inputs. names, and what the options point to, must stay valid until the corpus is
 * closed. from: where to begin, NULL for the start; the inputs and the options that the documents
 * depend on must then be the same. On failure returns NULL and sets *err. */
corpus *corpus_open(const char *const *names, size_t n_names, const corpus_options *options,
                    const corpus_place *from, failure *err);
/* Fills the batch. 1: it was filled, possibly with nothing; 0: the end of all inputs; -1: an error,
 * after the documents before it were handed out. */
int corpus_read(corpus *c, corpus_batch *batch, failure *err);
/* Whether corpus_read failed because an input cannot be read to its end: then it helps to know how
 * many documents were read before. */
bool corpus_failed_within(const corpus *c);
/* Adds the counts of what was read before. */
void corpus_counts_add(corpus_counts *counts, const corpus_counts *before);
/* Calls options->note for what was read so far of the current input. */
void corpus_note_fields(const corpus *c);
/* May be called from a signal handler or another thread: reading and waiting fail soon, with
 * ECANCELED. */
void corpus_interrupt(corpus *c);
void corpus_close(corpus *c);
void corpus_batch_free(corpus_batch *b);
