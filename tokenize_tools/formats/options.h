/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - how inputs become documents: what the readers of all formats have to know. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fields/where.h"
#include "input/window.h"

typedef enum corpus_format {
    CORPUS_AUTO, /* Parquet or Arrow by the first bytes; CSV or TSV by the name; JSON lines if the
                    first line is an object that has the field; else text. Refused are a first line
                    that begins with { but is not such an object, input that does not look like
                    text, and text whose name says something else: wrong_file.h */
    CORPUS_TEXT, /* an input is one document, or several separated by `separator` */
    CORPUS_LINES,
    CORPUS_JSON_LINES,
    CORPUS_CSV,
    CORPUS_TSV,
    CORPUS_ARROW,
    CORPUS_PARQUET,
    CORPUS_N_FORMATS /* how many there are */
} corpus_format;

typedef enum corpus_utf8 {
    UTF8_REPLACE, /* U+FFFD for each maximal invalid part; counted */
    UTF8_ERROR,   /* a bad document, for on_error; so is a lone surrogate in JSON */
    UTF8_RAW      /* bytes unchanged; lone surrogates in JSON become U+FFFD, counted */
} corpus_utf8;

typedef enum corpus_on_error { /* a bad document: malformed JSON, no field, not UTF-8, too long */
    ON_ERROR_FAIL,
    ON_ERROR_SKIP /* counted and reported */
} corpus_on_error;

typedef enum corpus_list { /* the text of a record is a list, and is read as marked_text.h says */
    LIST_NONE,
    LIST_TOKENS, /* of ids */
    LIST_PARTS   /* of texts, each with whether it counts in the loss */
} corpus_list;

typedef enum corpus_marks { /* which tokens of LIST_TOKENS count, as the last of the fields says */
    MARKS_NONE,             /* all */
    MARKS_LABELS,           /* a list of the ids, with -100 for those that do not count */
    MARKS_LOSS_MASK         /* a list of 1 and 0, or of true and false */
} corpus_marks;

/* Where a record is in the plain bytes of its input. */
typedef struct corpus_record {
    uint64_t offset, n_bytes;
    uint64_t line;  /* from 0; of columns the row */
    bool is_row;    /* of columns: the offset is not that of the record */
    bool no_number; /* the line is not known */
} corpus_record;

typedef struct text_range { /* bytes of a text */
    size_t begin, end;
    uint64_t mark; /* of their tokens, as marked_text.h says; no padding follows it */
} text_range;

#define CORPUS_MAX_DOCUMENT ((size_t)1 << 30)

typedef struct reader_options {
    corpus_format format;
    const char *field;     /* dotted path; NULL: "text" */
    const char *columns;   /* CSV and TSV: their names, as a row of CSV; NULL: the first row */
    const char *separator; /* CORPUS_TEXT: between documents; NULL: none */
    size_t separator_bytes;
    corpus_utf8 utf8;
    bool utf8_given;  /* CORPUS_AUTO accepts input that is hardly UTF-8 */
    bool only_text;   /* bytes that are not text are refused even if the format is given */
    corpus_list list; /* not LIST_NONE: of JSON lines and Parquet */
    corpus_marks marks;
    const char *roles;   /* LIST_PARTS: the names that a part may have as its role; or NULL */
    uint64_t vocab_size; /* LIST_TOKENS: ids are below it */
    bool strict_json;    /* NaN, Infinity and -Infinity make a line malformed */
    corpus_on_error on_error;
    bool fixed;          /* on_error was chosen: messages do not advise another one */
    size_t max_document; /* bytes of a record and of its text; 0: CORPUS_MAX_DOCUMENT */
    size_t head_bytes;   /* not 0: CORPUS_TEXT ends a larger document after about so many bytes, at
                            a line end; for estimates */
    const field_list *fields; /* to be read beside the text; NULL: none */
    /* CSV and TSV: bit i says that fields->names[i] is a column of strings. */
    uint64_t text_fields;
    bool types_known; /* other columns are of numbers; else format.h says which */
    bool fields_only; /* records have no text: each is a document with an empty text and its values;
                         one of the fields must not be FIELD_ROW. CORPUS_AUTO: what is not Parquet,
                         Arrow, tar, CSV or TSV is JSON lines */
    size_t n_kept;    /* so many of them, the first, are handed out with documents */
    uint64_t
        may_lack; /* bits of the fields for which an input need not have a column: then they are
                          null, and reader_lacking says so */
    const where *where; /* decides by them which records are documents; NULL: all */
    window_options window;
    /* For files that are read in pages: the memory for pages (0: 64 MiB), which follows from this
     * value of --memory and is proportional to it. */
    uint64_t page_memory, memory_option;
    /* Called with a line for the user, for what is left out or remarkable. */
    void (*report)(void *context, const char *text);
    /* Called at the end of each input with what is remarkable about its fields: no record of JSON
     * lines has it, it is never of the type that it is compared with, or its decimals are kept as
     * doubles. May be NULL. */
    void (*note)(void *context, const char *text);
    /* Called in place of `note` if an input has no column for this field, or records of JSON lines
     * never have a value for it. NULL: `note` is called. */
    void (*missing)(void *context, size_t field, const char *text);
    void *context;
} reader_options;

/* Replaces zeros by the defaults. */
reader_options reader_options_complete(const reader_options *options);
/* Whether FIELD_ROW is wanted. */
bool reader_options_want_row(const reader_options *o);
