/* SPDX-License-Identifier: Apache-2.0 */
/* adoption.h - makes an index for one file of another program, without copying a token. */
#pragma once

#include "foreign/foreign.h"

/* --eod and --bos: not given, "none", or an id. */
typedef struct adopt_id {
    bool is_given, is_none;
    uint32_t id;
} adopt_id;

typedef struct adopt_request {
    const foreign_reader *reader; /* NULL: recognise it */
    uint32_t token_bytes;         /* 0: take it from the file */
    adopt_id eod, bos;            /* at most one of them is an id */
    uint64_t vocab_size;          /* 0: unknown */
    bool replace, quiet;
} adopt_request;

typedef struct adopt_result {
    const foreign_reader *reader;
    char prefix[4096]; /* the index is prefix.tmi */
} adopt_result;

/* Prints the error and returns an exit code. */
int adopt_file(const char *path, const adopt_request *request, adopt_result *result);
