/* corpus.h - the documents of the inputs, in order, in batches of text.
 *
 * Plain, gzip and zstd are told by their first bytes (input.h); text, lines and JSON lines by
 * option or, with CORPUS_AUTO, by the first line of each input. Order: inputs as given, documents
 * as they stand. Where a document does not fit into a batch it is cut where the caller allows.
 * Nothing is dropped silently: everything that was left out or mended is counted and told.
 *
 * What a document is: with CORPUS_TEXT all of an input, an empty one too, or what stands before
 * each separator and behind the last one, if that is not empty. With CORPUS_LINES a line without
 * its newline; a carriage return stays, an empty line is an empty document, a last line needs no
 * newline. With CORPUS_JSON_LINES a string of the object on a line; passed over are blank lines, a
 * byte order mark before the first one, and max_piece_bytes or more of white space before a line.
 *
 * The documents do not depend on batch_bytes, read_bytes or read_ahead, nor on where reading was
 * taken up again, and on max_piece_bytes only in what is refused. Memory: batches, and up to four
 * times max_piece_bytes; twice that once a document is longer than max_piece_bytes and has to be
 * read twice: before the first part of it is handed out it is checked to its end, by opening the
 * input again. Of an input that cannot be opened again (a pipe) such a document is taken as it
 * comes, and it is an error when it turns out bad after a part of it was handed out. */
#ifndef TOKMAP_CORPUS_H
#define TOKMAP_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/input.h"

typedef enum corpus_format {
    CORPUS_AUTO, /* JSON lines if the first line is an object that has the field, else text; a
                    first line that begins with { and is no such object is refused, not guessed,
                    and so is what looks like no text at all: see wrong_file.h */
    CORPUS_TEXT, /* an input is a document, or several with `separator` between them */
    CORPUS_LINES,
    CORPUS_JSON_LINES
} corpus_format;

typedef enum corpus_utf8 {
    UTF8_REPLACE, /* U+FFFD for each maximal part that is not UTF-8; counted */
    UTF8_ERROR,   /* a bad document: on_error decides; lone surrogates in JSON too */
    UTF8_RAW      /* bytes as they are; lone surrogates in JSON become U+FFFD, counted */
} corpus_utf8;

typedef enum corpus_on_error { /* a bad document: malformed JSON, no field, not UTF-8, too long */
    ON_ERROR_FAIL,
    ON_ERROR_SKIP,   /* counted, the first ten of an input told */
    ON_ERROR_COLLECT /* the same, and the line as it stood goes to collect() */
} corpus_on_error;

typedef struct corpus_counts { /* of documents that are complete, or left out */
    uint64_t documents, empty_documents;
    uint64_t text_bytes;                       /* of documents, after decoding and mending */
    uint64_t stored_bytes;                     /* of the inputs that have ended, as stored */
    uint64_t plain_bytes;                      /* decompressed, before the place they belong to */
    uint64_t bad_documents;                    /* skipped or collected */
    uint64_t bad_bytes;                        /* of the lines that these stood on */
    uint64_t repaired_documents, replacements; /* UTF8_REPLACE; lone surrogates too */
} corpus_counts;

typedef struct corpus_options {
    corpus_format format;
    const char *field;     /* dotted path; NULL: "text" */
    const char *separator; /* CORPUS_TEXT: ends a document; NULL: none */
    size_t separator_bytes;
    corpus_utf8 utf8;
    bool utf8_given; /* CORPUS_AUTO takes an input that is hardly UTF-8 */
    corpus_on_error on_error;
    size_t batch_bytes;            /* text that a batch holds as a rule; 0: 1 MiB */
    size_t max_piece_bytes;        /* that it may grow to where no cut is possible; 0: 16 MiB */
    uint64_t max_document_bytes;   /* of text; longer is a bad document; 0: no limit */
    const input_version *versions; /* that the inputs must have; NULL: any */
    bool read_ahead;               /* read and decompress in a thread of its own */
    size_t read_bytes;             /* at a time; 0: 256 KiB */
    /* The largest place at which text[0 .. n_bytes) may be cut, or 0. The text ends with a whole
     * character. NULL: anywhere between characters. */
    size_t (*safe_cut)(void *context, const uint8_t *text, size_t n_bytes);
    /* ON_ERROR_COLLECT: a bad line or document, in pieces; last: it ends here. */
    void (*collect)(void *context, const uint8_t *data, size_t n_bytes, bool last);
    /* Told once for each bad document, the first ten of an input: "FILE:LINE: byte N: reason";
     * lines from 1, bytes from 0 in the decompressed input. */
    void (*report)(void *context, const char *text);
    /* After each of a batch's ends, with the counts up to it. NULL: nobody asks. */
    void (*ended)(void *context, const corpus_counts *counts);
    void *context;
} corpus_options;

/* A place between two batches at which reading can go on in another process. */
typedef struct corpus_place {
    uint64_t input;        /* index */
    uint64_t plain_offset; /* in the decompressed input: where the document at hand begins, or
                              the next one */
    uint64_t line;         /* of that place, from 0; with CORPUS_TEXT documents are counted */
    uint64_t piece_offset; /* text bytes of the document at hand that came before; 0: none */
    input_prefix stored;   /* of this input, as far as it was read: it must begin with it again */
    corpus_counts counts;
} corpus_place;

typedef struct corpus_end {          /* where a document, or an input, ends */
    size_t at;                       /* offset in the batch's text */
    bool input;                      /* not a document: the input ends, with what stands below */
    uint64_t stored_bytes, checksum; /* of the input; XXH3-64 */
} corpus_end;

typedef struct corpus_batch { /* {0}; freed by corpus_batch_free; used again and again */
    uint8_t *text;            /* 64 readable bytes after n_bytes */
    size_t n_bytes, capacity;
    corpus_end *ends; /* in order; several may have the same `at` */
    size_t n_ends, ends_capacity;
    bool continues;     /* the first document began in the batch before */
    corpus_place after; /* the place behind this batch */
} corpus_batch;

typedef struct corpus_error {
    int sys_errno;  /* 0 when the data is to blame */
    bool changed;   /* an input is not what it was, when the work began or in an earlier run */
    char text[640]; /* one line: file, line, byte offset, what is wrong, what to do */
} corpus_error;

typedef struct corpus corpus;

/* names live as long as the corpus; so does what the options point to. NULL: err. from: where to
 * begin, or NULL for the start; the inputs and options must be the same, those aside on which the
 * documents do not depend. */
corpus *corpus_open(const char *const *names, size_t n_names, const corpus_options *options,
                    const corpus_place *from, corpus_error *err);
/* Fills the batch: 1, and it may have nothing in it; 0 at the end of all inputs; -1 on an error,
 * after the documents before it have been handed out. */
int corpus_read(corpus *c, corpus_batch *batch, corpus_error *err);
/* Of all inputs, read so far, as stored: for a progress line. */
uint64_t corpus_stored_bytes(const corpus *c);
/* From a signal handler or another thread: what reads or waits fails soon, with ECANCELED. */
void corpus_interrupt(corpus *c);
void corpus_close(corpus *c);
void corpus_batch_free(corpus_batch *b);

#endif /* TOKMAP_CORPUS_H */
