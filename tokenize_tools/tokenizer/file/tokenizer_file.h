/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_file.h - opens a tokenizer by name: `bytes`, or a tokenizer file and the files beside
 * it. Prints nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "system/files.h"
#include "base/error.h"
#include "tokenizer/encode/tokenizer.h"

typedef struct tokenizer_choice {
    const char *name;     /* "bytes", or the path of a file or of a folder that has it; on a
                             command line, also one of a repository (hub.h) */
    const char *pattern;  /* --pattern, or NULL */
    const char *specials; /* --specials-file, or NULL */
    bool download;        /* --download */
} tokenizer_choice;

/* The vocabulary, its merges and the specials. */
#define TOKENIZER_MAX_FILES 3

typedef struct tokenizer_file {
    tokenizer *tokenizer;
    const char *path;    /* as in the choice, or found_path */
    char *found_path;    /* in a folder or the cache of the Hub; owned, or NULL */
    char name[256];      /* "bytes", or the last part of the path */
    const char *pattern; /* as in the choice */
    bool from_file;      /* else it is built in, and the checksums are 0 */
    uint64_t file_xxh3;
    uint64_t merges_xxh3;   /* of the merges.txt beside a vocab.json, or 0 */
    uint64_t specials_xxh3; /* of the file of --specials-file, or 0 */
    file_facts read[TOKENIZER_MAX_FILES];
    size_t n_read;
    char *metadata; /* the JSON object of it in the metadata of a dataset */
    size_t metadata_bytes;
} tokenizer_file;

/* Loads the tokenizer. false: err names the file, its place is a byte or 0, and nothing is open. */
bool tokenizer_file_open(tokenizer_file *file, const tokenizer_choice *choice, failure *err);
void tokenizer_file_close(tokenizer_file *file);

/* Two names of files in one folder, as the ends of their paths. */
typedef struct name_pair {
    const char *own, *other;
} name_pair;

/* Reads the file beside `path` whose name has `other` in place of `own` at the end: for
 * x/gpt2-vocab.json, "vocab.json" and "merges.txt" that is x/gpt2-merges.txt. Reads nothing if the
 * path does not end in `own` or the file does not exist. */
bool tokenizer_file_read_beside(const char *path, name_pair names, whole_file *file, failure *err);
