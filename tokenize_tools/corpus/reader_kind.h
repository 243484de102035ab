/* SPDX-License-Identifier: Apache-2.0 */
/* reader_kind.h - what a kind of file has to provide to be read by reader.h. */
#ifndef TOKMAP_READER_KIND_H
#define TOKMAP_READER_KIND_H

#include "corpus/reader.h"
#include "corpus/window.h"

/* The functions have the meaning of those in reader.h with the same names. With the first text of a
 * record, `next` fills r->values and sets text->values; FIELD_ROW and options->where are the
 * business of reader.c. The records in the place that `where` returns are counted where the
 * position moves on, not where a record is handed out: pack compares the two. */
typedef struct reader_kind {
    void (*close)(reader *r); /* frees all but the reader itself and its window */
    reader_result (*next)(reader *r, reader_text *text, failure *err);
    bool (*skip)(reader *r, reader_raw *raw, failure *err);
    int (*seek)(reader *r, reader_place to, uint64_t max_bytes, failure *err);
    reader_place (*where)(const reader *r);
    input_prefix (*stored)(const reader *r);
    void (*describe)(const reader *r, reader_place place, uint64_t offset, char *text,
                     size_t text_bytes);

    uint64_t (*row)(const reader *r);       /* the value of FIELD_ROW; NULL: that of the line */
    uint64_t (*n_records)(const reader *r); /* NULL: unknown */
    void (*summarize)(const reader *r, reader_summary *summary); /* NULL: the codec is all */

    void (*note_fields)(const reader *r); /* NULL: the format says which fields there are */

    bool is_archive;

    /* NULL if documents always come in one piece: */
    void (*keep)(reader *r, size_t n_bytes);
    uint64_t (*n_begun)(const reader *r);
    void (*want)(reader *r, uint64_t n);
} reader_kind;

/* The first member of the reader of every kind. */
struct reader {
    const reader_kind *kind;
    const corpus_options *options;
    corpus_format format; /* CORPUS_AUTO: not decided yet */
    window window;        /* the plain bytes of the input */
    uint64_t n_records;   /* up to the current one; of kinds whose position is no row */
    bool resumed;         /* the beginning was not read */
    tokmap_value *values; /* of options->fields; those that `next` does not set are null */
};

#endif /* TOKMAP_READER_KIND_H */
