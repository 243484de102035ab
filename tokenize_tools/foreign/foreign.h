/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.h - decodes the headers and tables of other programs' flat token files.
 *
 * Pure: bytes in, a description out. It opens no file and allocates nothing, so a hostile file can
 * only be refused. The commands supply bytes of files, the fuzz targets random ones. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/le.h"

/* Bytes of known size, of a file or in memory. read returns false if they cannot be read, with
 * errno, which is 0 if they are missing; it is only called for bytes below size. */
typedef struct foreign_bytes {
    uint64_t size;
    bool (*read)(void *user, uint64_t offset, void *dst, size_t n_bytes);
    void *user;
} foreign_bytes;

/* Reads n_bytes at offset. False, with the reason, if they are beyond the end or cannot be read. */
bool foreign_read(const foreign_bytes *bytes, uint64_t offset, void *dst, size_t n_bytes,
                  failure *err);

/* How the file separates documents. */
typedef enum foreign_boundaries {
    FOREIGN_BOUNDARIES_UNKNOWN, /* the format does not state it: the user must */
    FOREIGN_BOUNDARIES_NONE,
    FOREIGN_BOUNDARIES_BEGIN, /* a document begins at each boundary_id (the first one at token 0) */
    FOREIGN_BOUNDARIES_END,   /* a document ends after each boundary_id (the last one at the end) */
    FOREIGN_BOUNDARIES_LISTED /* a table beside the tokens */
} foreign_boundaries;

typedef struct foreign_layout {
    uint32_t token_bytes; /* 2 or 4 */
    bool is_signed;       /* int32: ids from 2^31 on are negative numbers */
    uint64_t token_offset;
    uint64_t n_tokens;
    foreign_boundaries boundaries;
    uint32_t boundary_id; /* for FOREIGN_BOUNDARIES_BEGIN and _END */
    uint64_t n_sequences; /* Megatron: sequences in the table */
    uint64_t
        n_table_items; /* entries of the table: Megatron's document indices, datatrove's ends */
} foreign_layout;

/* Receives documents in order. False stops the walk; the receiver keeps the reason. */
typedef struct foreign_sink {
    bool (*document)(void *user, uint64_t n_tokens);
    void *user;
} foreign_sink;

/* ---- The formats ---- */

/* Enough bytes of a file for all magic numbers. */
#define FOREIGN_HEAD_BYTES 1024

/* The input of a reader. */
typedef struct foreign_files {
    const foreign_bytes *tokens;
    const foreign_bytes *table;    /* if the format has a table_suffix */
    const foreign_bytes *metadata; /* if it has a metadata_suffix, or NULL */
    uint32_t token_bytes;          /* as the user says, or 0 */
} foreign_files;

/* One format. The tokens are in a file X + tokens_suffix; the other files are beside it, with the
 * same X. Members that do not apply are NULL or false. */
typedef struct foreign_reader {
    const char *name; /* the word in --format and in the metadata of an index */
    const char *help; /* for --help */
    const char *kind; /* what messages call a file that `recognise` accepts: "a NumPy .npy file" */
    const char *tokens_suffix;   /* NULL: any name */
    const char *table_suffix;    /* lists the documents; the user may also name this file */
    const char *metadata_suffix; /* may be missing */
    const char *loss_suffix;     /* a loss mask, which is not read; a warning says so */
    bool table_is_refused;       /* messages name the table instead of the file with the tokens */
    /* Whether these are the first bytes of the table or, if the format has none, of the tokens.
     * NULL: only the names of the files decide. */
    bool (*recognise)(const uint8_t *head, size_t n_head, uint64_t file_bytes);
    bool (*decode)(foreign_layout *out, const foreign_files *files, failure *err);
    /* For FOREIGN_BOUNDARIES_LISTED: walks the whole table; false: it does not cover the tokens in
     * order and without gaps. */
    bool (*documents)(const foreign_layout *layout, const foreign_bytes *table,
                      const foreign_sink *sink, failure *err);
} foreign_reader;

/* All formats, in the order in which they are tried; row(x) means foreign_x, in x.c. raw accepts
 * everything. */
#define FOREIGN_READERS(row) row(megatron) row(numpy) row(llmc) row(datatrove) row(raw)

#define DECLARE_READER(x) extern const foreign_reader foreign_##x;
FOREIGN_READERS(DECLARE_READER)
#undef DECLARE_READER

/* The table beside an OLMo file: CSV lines `start,end[,...]`. Start with {n_tokens}. */
typedef struct foreign_csv {
    uint64_t n_tokens, end; /* `end`: where the last document ended */
    uint64_t n_rows;        /* so far */
    bool in_quotes;         /* the row goes on in the next line */
} foreign_csv;
/* Reads a line without its newline. */
bool foreign_csv_line(foreign_csv *csv, const char *line, size_t n_bytes, const foreign_sink *sink,
                      failure *err);
bool foreign_csv_end(const foreign_csv *csv, failure *err);

/* ---- Looking at the tokens, in order ---- */

typedef struct foreign_scan {
    foreign_layout layout;
    uint64_t done;   /* tokens so far */
    uint64_t n_open; /* those in the unfinished document */
} foreign_scan;
void foreign_scan_begin(foreign_scan *scan, const foreign_layout *layout);
/* Scans the next tokens, aligned and at their stored width. If boundaries are in the tokens, passes
 * the documents to sink. Checks only the sign of ids: the writer knows the vocabulary. */
bool foreign_scan_feed(foreign_scan *scan, const void *tokens, size_t n_tokens,
                       const foreign_sink *sink, failure *err);
bool foreign_scan_end(foreign_scan *scan, const foreign_sink *sink);
/* Refuses token `token`, whose stored id is `id`, of a file with negative ids. */
bool foreign_refuse_negative(const foreign_layout *layout, uint64_t token, uint32_t id,
                             failure *err);

/* ---- For the decoders ---- */

/* Reads a table sequentially with one small buffer. Start with the first members. */
typedef struct foreign_cursor {
    const foreign_bytes *bytes;
    uint64_t next_offset, end_offset; /* what is left of the table, which must be inside bytes */
    size_t at, filled;
    uint8_t buffer[8192];
} foreign_cursor;
/* Returns the next n_bytes (at most 8) of the table, which must exist; NULL if they cannot be
 * read. */
const uint8_t *foreign_cursor_next(foreign_cursor *cursor, size_t n_bytes, failure *err);
