/* second_look.h - an input opened once more, to see the end of a document before its beginning is
 * handed out, and to copy what a bad one was; for corpus.c.
 *
 * Each of the two goes forward only, so that the input is read at most once more for each. */
#ifndef TOKMAP_SECOND_LOOK_H
#define TOKMAP_SECOND_LOOK_H

#include "corpus/corpus.h"
#include "corpus/reader.h"

typedef struct second_look second_look;

typedef struct second_look_report {
    bool good;
    uint64_t n_begun; /* JSON: how many strings of the field there are; the last counts */
    char reason[256];
    uint64_t bad_offset; /* in the plain bytes */
} second_look_report;

/* Opens nothing yet. The path lives as long; format: what the input has. NULL: out of memory. */
second_look *second_look_new(const input_source *source, const corpus_options *options,
                             corpus_format format, int stop_fd);
void second_look_free(second_look *s);
/* Whether the input can be opened again: no pipe, no stdin. */
bool second_look_possible(const char *name);

/* The document that begins there. false: the input cannot be read. */
bool second_look_check(second_look *s, reader_place where, second_look_report *report,
                       corpus_error *err);
/* The same of one that came whole, which takes no reading. */
bool second_look_check_whole(second_look *s, const reader_text *whole, second_look_report *report,
                             corpus_error *err);
/* The plain bytes [begin, end), to options->collect. */
bool second_look_collect(second_look *s, uint64_t begin, uint64_t end, corpus_error *err);

#endif /* TOKMAP_SECOND_LOOK_H */
