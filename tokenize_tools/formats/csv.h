/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - the rows of CSV and TSV, and the names of their columns. Pure.
 *
 * CSV is that of RFC 4180: commas, and fields in quotes, in which a quote is written twice, and
 * which may have commas and line ends. In TSV, fields are separated by tabs, and a quote is a byte
 * as any other. A row ends at LF or CR LF; another CR is allowed only in quotes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* ---- Rows ---- */

typedef struct csv_field {
    size_t begin, end; /* in the bytes of the row; without the quotes around it */
    bool doubled;      /* quotes in it are written twice */
} csv_field;

/* Where the next byte of a kind is, found once and kept. */
typedef struct csv_finder {
    size_t at; /* of the byte; else it is not in the bytes before `at` */
    bool found;
} csv_finder;

typedef enum csv_status {
    CSV_MORE, /* the bytes end before the row does */
    CSV_ROW,
    CSV_UNCLOSED /* the input ends within quotes */
} csv_status;

typedef struct csv_scanner {
    bool tabs;         /* TSV */
    csv_field *fields; /* of the row, the first `most` of them */
    size_t most;

    /* The current row: */
    size_t n_fields, n_bytes, end_bytes; /* n_bytes: without the line end of end_bytes */
    uint64_t n_newlines;                 /* within it */
    const char *wrong;                   /* what RFC 4180 does not allow; NULL: nothing */
    uint64_t wrong_at;                   /* in the row */
    uint64_t open_at, open_newlines; /* the last quote that opens a field, and n_newlines there */

    /* How far the scan has come, in the bytes that are shown. `passed` were shown before. */
    enum {
        CSV_BEGINS, /* a field */
        CSV_PLAIN,
        CSV_QUOTED,
        CSV_CLOSED /* the byte after the quote */
    } state;
    size_t at, plain_at, counted_at;
    uint64_t passed;
    csv_field field;
    csv_finder newline, quote, carriage_return;
} csv_scanner;

/* Reads on in the row that begins at `bytes`, in which more bytes may be shown than before. */
csv_status csv_scan(csv_scanner *s, const uint8_t *bytes, size_t n_bytes, bool at_end);
/* Leaves out the first n_bytes of those that are shown: they end before a row (at_row), or are a
 * part of one that is too long, whose fields are not known then, nor what is wrong in it. */
void csv_pass(csv_scanner *s, size_t n_bytes, bool at_row);

/* Copies a field, with each pair of quotes as one. Returns the size. */
size_t csv_copy_field(uint8_t *to, const uint8_t *bytes, const csv_field *f);

/* ---- Columns ---- */

#define CSV_NO_COLUMN SIZE_MAX

typedef struct csv_name {
    const uint8_t *text;
    size_t n_bytes, column;
} csv_name;

typedef struct csv_columns {  /* starts as {0}; csv_columns_free frees it, also after a failure */
    csv_field *fields;        /* room for those of a row */
    csv_name *names, *sorted; /* in the order of the columns, and of their bytes */
    size_t n;
    uint8_t *bytes; /* of the names */
} csv_columns;

/* Takes the names from a row that was scanned without room for its fields, and has nothing wrong.
 * No two columns may have the same name, but several may have none: nothing can ask for these. */
bool csv_columns_read(csv_columns *c, const uint8_t *bytes, const csv_scanner *row, failure *err);
/* Takes them from the value of --columns, a row of CSV. */
bool csv_columns_given(csv_columns *c, const char *columns, failure *err);
void csv_columns_free(csv_columns *c);
/* Returns the number of the column with the name, or CSV_NO_COLUMN. */
size_t csv_columns_find(const csv_columns *c, const char *name);
/* Whether a message of one line can have the name. */
bool csv_name_is_plain(const csv_name *name);
