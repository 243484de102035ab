/* reader.h - the documents of one input, one after the other, as they stand; for corpus.c.
 *
 * A document of at most max_piece_bytes bytes comes whole, after all of it was looked at. A longer
 * one comes in pieces, so that memory stays bounded, and what is wrong with it may show after some
 * of its text has been handed out. */
#ifndef TOKMAP_READER_H
#define TOKMAP_READER_H

#include "corpus/corpus.h"

typedef enum reader_result {
    READER_FAILED = -1, /* the input cannot be read further */
    READER_END,
    READER_TEXT,
    READER_BAD /* not a document: skip it */
} reader_result;

typedef struct reader_text {
    const uint8_t *bytes;
    size_t n_bytes;
    bool first;      /* the document begins */
    bool last;       /* and here it ends */
    bool drop;       /* what came before of its text does not count: its key came again */
    uint64_t offset; /* where the document begins, in the plain bytes */
    uint64_t line;
    uint64_t lone_surrogates; /* with `last`: in the text each stands as U+FFFD */
    const char *reason;       /* READER_BAD; good until the next call */
    uint64_t bad_offset;
} reader_text;

typedef struct reader_place { /* where the next document begins, or the white space before it */
    uint64_t offset, line;
} reader_place;

typedef struct reader_raw { /* a document as it stood */
    const uint8_t *bytes;   /* good until the next call; NULL if it came in pieces */
    uint64_t begin, end;    /* in the plain bytes */
} reader_raw;

typedef struct reader reader;

/* The path and the options live as long. stop_fd: see stream.h. */
reader *reader_open(const input_source *source, const corpus_options *options, int stop_fd,
                    corpus_error *err);
void reader_close(reader *r);

/* What comes next. The text is good until the next call. */
reader_result reader_next(reader *r, reader_text *text, corpus_error *err);
/* The last n_bytes of the text, 3 at most, come again with more behind them. */
void reader_keep(reader *r, size_t n_bytes);
/* Leaves out what is left of the document. */
bool reader_skip(reader *r, reader_raw *raw, corpus_error *err);

/* Between documents, forward only. Goes on for max_bytes at most: 1 when there, 0 when not yet. */
int reader_seek(reader *r, reader_place to, uint64_t max_bytes, corpus_error *err);
reader_place reader_where(const reader *r);

/* JSON lines in pieces: how many strings of the field have begun in the document at hand, and to
 * be given no text but that of the n-th; 0: of each. */
uint64_t reader_n_begun(const reader *r);
void reader_want(reader *r, uint64_t n);

corpus_format reader_format(const reader *r); /* CORPUS_AUTO until the first call */
/* As stream_stored. */
input_prefix reader_stored(const reader *r);

#endif /* TOKMAP_READER_H */
