/* SPDX-License-Identifier: Apache-2.0 */
/* adoption.h - makes an index for one file of another program, without copying a token. */
#pragma once

#include "foreign/readers.h"

/* --eod and --bos */
typedef struct adopt_id {
    bool is_given;
    uint32_t id; /* TOKMAP_NO_ID: none, or not given */
} adopt_id;

typedef struct adopt_request {
    const foreign_reader *reader; /* NULL: recognise it */
    uint32_t token_bytes;         /* 0: take it from the file */
    adopt_id eod, bos;            /* at most one of them is an id */
    uint64_t vocab_size;          /* 0: unknown */
    bool replace, json, quiet;
} adopt_request;

/* Prints the result or the error, and returns an exit code. */
int adopt_file(const char *path, const adopt_request *request);
