/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - the records of one input, one after another; for corpus.c. Each kind of file has a
 * reader of its own (format.h), chosen by the first bytes of the input or, of CSV and TSV, by its
 * name. */
#pragma once

#include "formats/options.h"
#include "tokmap.h"

typedef enum reader_result {
    READER_FAILED = false, /* the input cannot be read */
    READER_END,
    READER_DOCUMENT,
    READER_NULL,     /* a record without a text */
    READER_FILTERED, /* options->where does not hold */
    READER_BAD       /* not a document, for a reason */
} reader_result;

/* A record; its pointers are valid until the next call. */
typedef struct document {
    const uint8_t *text;
    size_t n_bytes;
    bool is_stored;  /* lists are as parquet_list.h gives them; else JSON */
    uint64_t offset; /* start of the record, in the plain bytes */
    uint64_t line;
    uint64_t record_bytes; /* in the plain bytes */
    /* The values of options->fields. NULL: the record is too bad to have values. */
    const tokmap_value *values;
    tokmap_value marks; /* with options->marks, or if is_stored: the list of marks */
    /* LIST_PARTS: the bytes of parts that count or have a role; none of the ranges is empty, and
     * they are in order. */
    const text_range *ranges;
    size_t n_ranges;
    uint64_t lone_surrogates; /* how many were replaced by U+FFFD */
    const char *reason;       /* READER_BAD */
    uint64_t bad_offset;
    bool is_long; /* the reason: the record or its text is larger than options->max_document */
} document;

/* The start of a record, or of the white space before it. What the numbers mean depends on the
 * kind of file: text has its plain bytes and lines. */
typedef struct reader_place {
    uint64_t offset, line;
    uint64_t n_records; /* of the input or part before it */
} reader_place;

typedef struct reader reader;

void reader_close(reader *r);

/* Reads the next record. */
reader_result reader_next(reader *r, document *d, failure *err);
/* Adds the names of the fields that a record can have at its top level, which are numbers, strings
 * or truth values: those of the columns, or of the first object of JSON lines. With
 * options->fields_only and without fields, before the first record; the reader can then only be
 * closed. */
bool reader_list_fields(reader *r, field_list *fields, failure *err);
/* Makes of the record a bad one that is too long. Returns READER_BAD. */
reader_result reader_refuse_long(const reader *r, document *d);

/* Moves forward to a place; only between documents. Skips at most max_bytes: 1 when there, 0 when
 * not yet. */
int reader_seek(reader *r, reader_place to, uint64_t max_bytes, failure *err);
reader_place reader_where(const reader *r);

/* Describes a byte of the record at `place`, for messages: "FILE:3: byte 17". */
void reader_describe(const reader *r, reader_place place, uint64_t offset, char *text,
                     size_t text_bytes);

corpus_format reader_format(const reader *r); /* CORPUS_AUTO until the first call, or empty */
bool reader_is_table(const reader *r);        /* CSV or TSV */
bool reader_is_archive(const reader *r);      /* its members have this format */
/* How many records the input or part says that it has; READER_UNKNOWN: it does not say. */
uint64_t reader_n_records(const reader *r);
#define READER_UNKNOWN UINT64_MAX
/* Calls options->note for what is remarkable about the fields of the records so far, unless the
 * beginning of the input was not read. */
void reader_note_fields(const reader *r);
/* The fields that the input lacks: bit i is set if there is no column for field i, or, in JSON
 * lines, no record that was read here had a value for it. False: it is not known, or there are no
 * fields. */
bool reader_lacking(const reader *r, uint64_t *fields);
/* Whether the input has columns, so that this is known before the first record. */
bool reader_has_columns(const reader *r);
/* What --dry-run shows of an input. Empty and NULL members: there is nothing to say. */
typedef struct reader_summary {
    char codec[64], encodings[128], column[256];
    const char *why_column; /* "named by --field" */
    uint64_t n_records;     /* as reader_n_records */
    uint64_t n_groups;      /* row groups; 0: the file has none */
    bool is_array;          /* a JSON array, read as JSON lines */
    uint64_t header; /* CSV and TSV: a hash of the names of the columns in any order; else 0 */
    uint64_t text_fields, number_fields; /* CSV and TSV: bits of the fields that are such */
} reader_summary;
/* After the first call of reader_next. */
void reader_summarize(const reader *r, reader_summary *summary);
/* NULL: of Parquet. */
const input *reader_input(const reader *r);
/* As window_stored. */
input_prefix reader_stored(const reader *r);
