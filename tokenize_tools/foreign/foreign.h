/* foreign.h - what other programs' flat token files say about themselves.
 *
 * Pure: bytes in, a description out. No file is opened here and nothing is allocated, so a hostile
 * file can do no more than be refused. The commands bring the bytes; the fuzz targets bring
 * noise. */
#ifndef TOKMAP_FOREIGN_H
#define TOKMAP_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/little_endian.h"

/* Why a file is refused: a part of a sentence that follows the file's name. */
typedef struct foreign_error {
    char text[320];
} foreign_error;

/* Sets the text; always false, so that a check can end in `return foreign_refuse(...)`. */
bool foreign_refuse(foreign_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Bytes of known size, from a file or from memory. read is false when they cannot be had (it is
 * only asked for bytes below size). */
typedef struct foreign_bytes {
    uint64_t size;
    bool (*read)(void *user, uint64_t offset, void *dst, size_t n_bytes);
    void *user;
} foreign_bytes;

/* n_bytes at offset. False with a reason when they reach over the end or cannot be read. */
bool foreign_read(const foreign_bytes *bytes, uint64_t offset, void *dst, size_t n_bytes,
                  foreign_error *err);

/* How documents are told apart. */
typedef enum foreign_borders {
    FOREIGN_BORDERS_UNKNOWN, /* the format does not say: the user has to */
    FOREIGN_BORDERS_NONE,
    FOREIGN_BORDERS_BEGIN, /* a document begins at each border_id (the first one at token 0) */
    FOREIGN_BORDERS_END,   /* a document ends after each border_id (the last one with the tokens) */
    FOREIGN_BORDERS_LISTED /* a table beside the tokens */
} foreign_borders;

typedef struct foreign_layout {
    uint32_t token_bytes; /* 2 or 4 */
    bool is_signed;       /* int32: ids from 2^31 on stand for negative numbers */
    uint64_t token_offset;
    uint64_t n_tokens;
    foreign_borders borders;
    uint32_t border_id;   /* of FOREIGN_BORDERS_BEGIN and _END */
    uint64_t n_sequences; /* Megatron: sequences in the table */
    uint64_t
        n_table_items; /* entries of the table: Megatron's document indices, datatrove's ends */
} foreign_layout;

/* Receives documents in order. False ends the walk: the receiver keeps the reason. */
typedef struct foreign_sink {
    bool (*document)(void *user, uint64_t n_tokens);
    void *user;
} foreign_sink;

/* ---- The formats ---- */

/* Enough of a file's beginning for all magic numbers. */
#define FOREIGN_HEAD_BYTES 1024

/* What a reader decodes. */
typedef struct foreign_files {
    const foreign_bytes *tokens;
    const foreign_bytes *table;    /* of a format with a table_suffix */
    const foreign_bytes *metadata; /* of one with a metadata_suffix, or NULL */
    uint32_t token_bytes;          /* what the user says, or 0 */
} foreign_files;

/* One format. The tokens are in a file X + tokens_suffix; the other files stand beside it and
 * begin with the same X. Fields that are left out are NULL or false. */
typedef struct foreign_reader {
    const char *name; /* the word of --format, and in the metadata of an index */
    const char *help; /* for --help */
    const char *kind; /* what messages call a file that `recognise` knows: "a NumPy .npy file" */
    const char *tokens_suffix;   /* NULL: any name */
    const char *table_suffix;    /* lists the documents; the user may name this file, too */
    const char *metadata_suffix; /* may be missing */
    const char *loss_suffix;     /* a loss mask, which is left behind with a warning */
    bool table_is_refused;       /* messages name the table, not the file of the tokens */
    /* Whether these are the first bytes of the table or, of a format without one, of the tokens.
     * NULL: the names of the files decide. */
    bool (*recognise)(const uint8_t *head, size_t n_head, uint64_t file_bytes);
    bool (*decode)(foreign_layout *out, const foreign_files *files, foreign_error *err);
    /* For FOREIGN_BORDERS_LISTED: walks the whole table; false when it does not cover the tokens
     * in order and without gaps. */
    bool (*documents)(const foreign_layout *layout, const foreign_bytes *table,
                      const foreign_sink *sink, foreign_error *err);
} foreign_reader;

/* Every format, in the order in which a file is compared with them; row(x) stands for foreign_x,
 * in x.c. raw takes what is left. */
#define FOREIGN_READERS(row) row(megatron) row(numpy) row(llmc) row(datatrove) row(raw)

#define DECLARE_READER(x) extern const foreign_reader foreign_##x;
FOREIGN_READERS(DECLARE_READER)
#undef DECLARE_READER

/* The same as an array, which ends with NULL. */
extern const foreign_reader *const foreign_readers[];

/* What a file is that certainly holds no raw tokens ("a gzip file", ...), or NULL. */
const char *foreign_other_kind(const uint8_t *head, size_t n_head, uint64_t file_bytes);

/* The table beside an OLMo file: CSV lines `start,end[,...]`, fed in pieces of any size. */
typedef struct foreign_csv {
    uint64_t n_tokens, end; /* documents so far reach up to `end` */
    uint64_t row_start, number;
    uint64_t line; /* from 1 */
    uint32_t column;
    bool has_digits, in_quotes, at_line_start;
} foreign_csv;
void foreign_csv_begin(foreign_csv *csv, uint64_t n_tokens);
bool foreign_csv_feed(foreign_csv *csv, const char *text, size_t n_bytes, const foreign_sink *sink,
                      foreign_error *err);
bool foreign_csv_end(foreign_csv *csv, const foreign_sink *sink, foreign_error *err);

/* ---- Looking at the tokens, in order ---- */

typedef struct foreign_scan {
    foreign_layout layout;
    uint64_t done;   /* tokens seen */
    uint64_t n_open; /* of them, in the document that has not ended */
} foreign_scan;
void foreign_scan_begin(foreign_scan *scan, const foreign_layout *layout);
/* The next tokens at their stored width, aligned. Where borders stand in the tokens, the
 * documents go to sink. Of the ids only the sign is looked at: the writer knows the vocabulary. */
bool foreign_scan_feed(foreign_scan *scan, const void *tokens, size_t n_tokens,
                       const foreign_sink *sink, foreign_error *err);
bool foreign_scan_end(foreign_scan *scan, const foreign_sink *sink);
/* Refuses token `token` of a file with negative ids, which is `id` as it is stored. */
bool foreign_refuse_negative(const foreign_layout *layout, uint64_t token, uint32_t id,
                             foreign_error *err);

/* ---- For the decoders ---- */

/* Reads a table from first to last byte with one small buffer. */
typedef struct foreign_cursor {
    const foreign_bytes *bytes;
    uint64_t next_offset, end_offset;
    size_t at, filled;
    uint8_t buffer[8192];
} foreign_cursor;
/* The table is [offset, end_offset) and lies inside bytes. */
void foreign_cursor_begin(foreign_cursor *cursor, const foreign_bytes *bytes, uint64_t offset,
                          uint64_t end_offset);
/* The next n_bytes (8 at most) of the table, which must have them; NULL when they cannot be
 * read. */
const uint8_t *foreign_cursor_next(foreign_cursor *cursor, size_t n_bytes, foreign_error *err);

#endif /* TOKMAP_FOREIGN_H */
