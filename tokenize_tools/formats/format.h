/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - what a format has to provide to be read by reader.h. */
#pragma once

#include "formats/marked_text.h"
#include "formats/reader.h"
#include "input/window.h"

/* The functions have the meaning of those in reader.h with the same names. `next` fills r->values
 * and sets d->values; with options->fields_only, each record that is not bad is READER_NULL.
 * FIELD_ROW and options->where are the business of format.c, and so is the name of the input in a
 * failure. The records in the place that `where` returns are counted where the
 * position moves on, not where a record is handed out: pack compares the two. */
typedef struct reader_kind {
    size_t reader_bytes; /* of a structure that begins with a `reader` */
    /* Begins at the window, which r->window has, or opens r->source itself; all else is 0. After a
     * failure, `close` is called; the window still belongs to the caller. */
    bool (*open)(reader *r, failure *err);
    void (*close)(reader *r); /* frees all but the reader itself, its window and its inner reader */
    reader_result (*next)(reader *r, document *d, failure *err);
    int (*seek)(reader *r, reader_place to, uint64_t max_bytes, failure *err);
    reader_place (*where)(const reader *r);
    void (*describe)(const reader *r, reader_place place, uint64_t offset, char *text,
                     size_t text_bytes);

    input_prefix (*stored)(const reader *r);                     /* NULL: of the window's stream */
    void (*summarize)(const reader *r, reader_summary *summary); /* NULL: the codec is all */
    void (*note_fields)(const reader *r);                        /* NULL: nothing is remarkable */
    bool has_columns;                     /* so `lacking` is known before the first record */
    uint64_t (*lacking)(const reader *r); /* NULL: it has no fields; UINT64_MAX: not known */
    bool (*list_fields)(reader *r, field_list *fields, failure *err); /* NULL: of tar */
} reader_kind;

/* The first member of the reader of every kind. */
struct reader {
    const reader_kind *kind;
    const reader_options *options;
    const input_source *source; /* for `open` */
    int fd;                     /* of the input, for Parquet; else -1 */
    int stop_fd;
    corpus_format format; /* CORPUS_AUTO: not decided yet */
    window window;        /* the plain bytes of the input; of Parquet only its name */
    bool names_byte;      /* a failure is told with the place of the window */
    uint64_t n_records;   /* up to the current one; of kinds whose position is not a row */
    uint64_t n_in_all;    /* as the input says, or READER_UNKNOWN */
    bool resumed;         /* the beginning was not read */
    uint64_t lacking;     /* bits of the fields that have no column */
    tokmap_value *values; /* of options->fields; those that `next` does not set are null */
    marked_text marked;   /* of the last record, if it is a list */
    /* The reader of an archive's members, with the window and the values; else this reader. The
     * functions that an archive does not provide are those of this one. */
    reader *inner;
};

/* From the kind, the options, the window or the fd, and what else `open` needs. Takes over both,
 * except on failure. */
reader *reader_new(const reader *begin, failure *err);
/* Where the text of a record is. */
static inline const char *corpus_field(const reader_options *o)
{
    return o->field ? o->field : "text";
}
/* For inputs that know the types of their fields: what where_check_types finds is a failure. */
bool reader_check_where(const reader_options *o, const tokmap_value_type *types, failure *err);

/* Whether the input may lack this field; then sets the bit of r->lacking. */
bool reader_may_lack(reader *r, size_t field);
/* Calls options->missing or options->note for a field that the input lacks. why: as of a
 * failure. */
void reader_note_lacking(const reader *r, size_t field, const char *why);
/* `lacking` of all kinds with columns. */
uint64_t reader_lacking_columns(const reader *r);

/* Calls options->note if the decimals of a field, of this scale, are kept as doubles. */
void reader_note_decimal(const reader *r, size_t field, int32_t scale);

/* Calls options->report. */
void reader_report(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- The kinds ---- */

/* Text, lines and JSON lines. The format is an option, or is decided by the first line. */
extern const reader_kind text_reader_kind;
/* Reads what follows in the window as if it were another input. one_record: all of it is one,
 * JSON over any number of lines. */
void text_reader_restart(reader *r, corpus_format format, bool one_record);

/* CSV and TSV (csv.h): each row is a record, except the first one, which names the columns unless
 * options->columns does. Rows without a byte are skipped, and a field without a byte is null. The
 * values of a column are strings if options->text_fields has it, else numbers. Without
 * options->types_known, the rows in the first MiB decide: a column with a value that is not a
 * number of JSON is one of strings. */
extern const reader_kind csv_reader_kind;

/* The members of a tar archive: a layer over the reader of text, which reads each member that holds
 * documents as if it were an input. Other members are named and left out. With CORPUS_AUTO, the
 * first member that is text or JSON decides which of the two is read. */
extern const reader_kind tar_reader_kind;
