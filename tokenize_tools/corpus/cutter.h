/* SPDX-License-Identifier: Apache-2.0 */
/* cutter.h - finds the places where an input can be cut, so that its parts can be read apart
 * (corpus.h).
 *
 * A file of lines or of JSON lines can be cut after each newline, if it is not compressed and the
 * fields that are wanted do not include FIELD_ROW. A Parquet file can be cut where a page of its
 * text column begins. No other input can be cut. Only the beginning of a file and what is near the
 * places is read, and memory is bounded. */
#pragma once

#include "corpus/corpus.h"

typedef struct corpus_cutter corpus_cutter;

typedef struct corpus_cutter_info {
    corpus_format format; /* CORPUS_AUTO: of an archive, by the names of its members */
    bool is_array;        /* a JSON array */
    bool is_archive;      /* tar: its members have this format */
    bool can_be_cut;
    char codec[64]; /* how the input or its pages are compressed: "gzip"; "": they are not. Of an
                       archive "tar" or "tar, gzip" */
} corpus_cutter_info;

/* Opens an input and finds its format, as corpus.h does, or fails as reading it would. The name and
 * what the options point to must stay valid. version: NULL or not known: any. */
corpus_cutter *corpus_cutter_open(const char *name, const input_version *version,
                                  const reader_options *options, failure *err);
corpus_cutter_info corpus_cutter_describe(const corpus_cutter *c);
/* Finds the first place after the one before that is at or behind `at_least` stored bytes; never
 * the start. 1: found; 0: there is none before the end of the input; -1: an error. */
int corpus_cutter_next(corpus_cutter *c, uint64_t at_least, corpus_cut *cut, failure *err);
void corpus_cutter_close(corpus_cutter *c);
