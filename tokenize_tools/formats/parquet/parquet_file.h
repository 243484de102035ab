/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_file.h - a Parquet file that is read by page: the pages of a column, in order, and their
 * decompressed bytes.
 *
 * A scan finds pages by their headers alone. A page is then read, checked and decompressed by any
 * thread. */
#pragma once

#include "formats/options.h"
#include "formats/parquet/codec.h"
#include "formats/parquet/footer.h"
#include "formats/parquet/page_header.h"

typedef struct parquet_file {
    const char *name;
    int fd;
    uint64_t n_bytes;
    uint64_t data_end; /* where the footer begins */
    input_version version;
    uint8_t *footer_bytes;
    uint64_t footer_checksum; /* like that of a page */
    parquet_footer footer;
} parquet_file;

/* fd is that of input_open_file. The file must be a regular one; fd, name and *f must stay valid.
 * Close it after a failure too. */
bool parquet_file_open(parquet_file *f, const char *name, int fd, failure *err);
void parquet_file_close(parquet_file *f);

/* ---- Pages ---- */

typedef struct parquet_page_place {
    const parquet_file *file;
    const parquet_element *column;
    size_t group;
    uint32_t page;           /* number of the data page in its column chunk, from 0 */
    uint64_t offset;         /* of its header, in the file */
    uint64_t first_row;      /* in the file; of a list, the number of its first value */
    uint64_t end_before;     /* where the data page before it in the chunk ends; 0: there is none */
    uint64_t dictionary_use; /* memory for the chunk's dictionary; 0: none */
    parquet_page_header header;
} parquet_page_place;

bool parquet_page_is_dictionary(const parquet_page_place *at);
/* Where it ends in the file. */
uint64_t parquet_page_end(const parquet_page_place *at);
/* The most memory that reading and decoding it takes. */
uint64_t parquet_page_use(const parquet_page_place *at);
/* Sets "FILE: row group 2, page 3, byte 123: column text: WHY"; returns false. */
bool parquet_page_fail(const parquet_page_place *at, const char *why, failure *err);
/* Describes a row of the file: "FILE: row 17 (row group 2, page 3, byte 123)" */
void parquet_row_describe(const parquet_page_place *at, uint64_t row, char *text, size_t n_bytes);

#define PARQUET_OTHER_ROWS "damaged: it has not as many rows as its footer says"

typedef struct parquet_rows { /* of a file, from 0 */
    uint64_t begin, end;
} parquet_rows;

/* The values of a column that a row group has. Of a column without lists, these are its rows. */
parquet_rows parquet_values_of_group(const parquet_footer *f, const parquet_element *column,
                                     size_t group);

typedef struct parquet_scan {
    parquet_page_place next; /* without header */
    uint64_t rows_left;      /* of the row group; 0: it has not begun */
    parquet_rows rows;       /* data pages without any of these are left out; of a list, values */
    uint64_t offset;         /* of the next header */
    uint64_t end;            /* of the column chunk */
    uint8_t *bytes;          /* of the file, from `begin` on */
    uint64_t begin;
    size_t n_bytes, capacity;
} parquet_scan;

/* The file and the column must stay valid. Finds the pages with these rows. */
void parquet_scan_begin(parquet_scan *s, const parquet_file *f, const parquet_element *column,
                        parquet_rows rows);
/* 1: the next data or dictionary page; 0: the end of the rows; -1: an error. A dictionary page
 * comes before the first data page of its row group that is not left out. */
int parquet_scan_next(parquet_scan *s, parquet_page_place *place, failure *err);
/* The next data page that begins at or after this byte of the file. Column chunks before it are not
 * read. */
int parquet_scan_find(parquet_scan *s, uint64_t offset, parquet_page_place *place, failure *err);
void parquet_scan_free(parquet_scan *s);

typedef struct parquet_page_reader { /* what a thread needs to read pages; start with {0} */
    parquet_codec codec;
    uint8_t *stored;
    size_t capacity;
} parquet_page_reader;
void parquet_page_reader_free(parquet_page_reader *r);

typedef struct parquet_page { /* start with {0} */
    uint8_t *memory;
    const uint8_t *bytes; /* decompressed: header.plain_bytes */
    uint64_t
        checksum; /* XXH3-64 of header and page as stored; the seed is their offset in the file */
} parquet_page;

bool parquet_page_read(parquet_page *page, const parquet_page_place *at, parquet_page_reader *r,
                       failure *err);
void parquet_page_free(parquet_page *page);
/* Only the checksum of such a page, in little memory. */
bool parquet_page_checksum(const parquet_page_place *at, uint64_t *checksum, failure *err);
