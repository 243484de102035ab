/* SPDX-License-Identifier: Apache-2.0 */
/* wrong_file.h - refuses files that are not meant to be packed as text, by their first bytes, and
 * text by the name of its file; pure.
 *
 * With CORPUS_AUTO: files with a known magic number, a JSON array, UTF-16 and UTF-32, NUL bytes,
 * and data that is not UTF-8. If the user named the format, only Parquet and Arrow of another
 * format, archives (both unless --utf8 is raw), and data that was compressed twice; but with
 * options->only_text all that is not text. */
#pragma once

#include "formats/options.h"

#define WRONG_FILE_HEAD_BYTES ((size_t)64 * 1024)
/* Enough to recognize archives. */
#define WRONG_FILE_ARCHIVE_BYTES ((size_t)512)
/* How many bytes of an input the check needs. */
size_t wrong_file_head_bytes(const reader_options *options);

typedef struct wrong_file_head { /* the first bytes of an input, decompressed */
    const uint8_t *bytes;
    size_t n_bytes;    /* WRONG_FILE_HEAD_BYTES, fewer if memory does not allow more */
    bool whole;        /* this is the whole input */
    bool decompressed; /* it was compressed, in a form that is read here */
    const char *name;  /* of the input */
} wrong_file_head;

wrong_file_head wrong_file_head_of(const window *w, const reader_options *options);

/* Whether the input may be packed; if not, the text says why, and what to do, without the name of
 * the input. */
bool wrong_file_check(const wrong_file_head *head, const reader_options *options, failure *err);
/* Takes from a failure the advice to pack the bytes as they are, where records have no text or only
 * text is wanted. Returns false. */
bool wrong_file_strip(const reader_options *options, failure *err);
/* Whether an input whose bytes are text has a name that fits; if not, the text says what the name
 * means. */
bool wrong_name_check(const wrong_file_head *head, failure *err);
/* Returns CORPUS_CSV or CORPUS_TSV if the name ends in .csv or .tsv, before .gz and .zst; else
 * CORPUS_AUTO. No other name decides what an input is taken for: these formats have no bytes of
 * their own. */
corpus_format wrong_name_table(const char *name);
/* Whether a file of this name may hold JSON, perhaps malformed: it ends in .json,
 * .jsonl or .ndjson, or has no ending, before .gz and .zst. Archives may, too. */
bool wrong_name_may_be_json(const char *name);
/* Whether it ends in .json, before .gz and .zst: then it may be one JSON text over all lines. */
bool wrong_name_is_whole_json(const char *name);
/* Whether it ends in .json or .jsonc, before .gz and .zst; .jsonc is JSON with comments. */
bool wrong_name_is_one_json(const char *name);
/* Whether it ends as that of a file of records: then other content means that it is damaged. */
bool wrong_name_promises_records(const char *name);
/* Whether the bytes begin a JSON array of objects, and its name says that it is one JSON text. */
bool wrong_file_is_array(const wrong_file_head *head);
/* Whether it ends in .gz or .zst. */
bool wrong_name_is_compressed(const char *name);
/* What a file that begins with these bytes is, such as "a tar archive"; NULL: unknown. */
const char *wrong_file_name(const uint8_t *bytes, size_t n_bytes);
/* Returns what a file that tokmap writes is, except a token file; NULL for all others. */
const char *wrong_file_own_name(const uint8_t *bytes, size_t n_bytes);
