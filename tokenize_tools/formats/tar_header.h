/* SPDX-License-Identifier: Apache-2.0 */
/* tar_header.h - decodes the headers of tar archives: v7, ustar, pax and GNU. Pure: blocks in, the
 * next member out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK_BYTES 512
#define TAR_NAME_BYTES 4096 /* of the longest name that is read, with its NUL */
/* The largest data of a member that describes the next one. */
#define TAR_EXTRA_BYTES ((uint64_t)1024 * 1024)

typedef enum tar_kind {
    TAR_ZEROS, /* no header: two such blocks end the archive */
    TAR_FILE,
    TAR_OTHER, /* a link, a device, a folder, or of a type that is not known */
    TAR_SPARSE,
    TAR_EXTRA /* its data describes the next member: pass it to tar_add_extra */
} tar_kind;

typedef struct tar_values { /* what pax records say about members */
    bool has_name, has_size, sparse;
    char name[TAR_NAME_BYTES];
    uint64_t size;
} tar_values;

typedef struct tar_member {
    tar_kind kind;
    char type;                 /* as in the header */
    char name[TAR_NAME_BYTES]; /* control characters are replaced by ? */
    uint64_t data_bytes;       /* after the header, without the padding to whole blocks */

    /* For the next member, and for all: */
    tar_values next, all;
} tar_member;

/* Whether the block has the checksum of a header. */
bool tar_is_header(const uint8_t *block);
/* Reads the next header; *m begins with {0}. NULL, or why it cannot be read. */
const char *tar_read_header(tar_member *m, const uint8_t *block);
/* After TAR_EXTRA: its data. NULL, or what is wrong with it. */
const char *tar_add_extra(tar_member *m, const uint8_t *data, size_t n_bytes);
/* The bytes from the end of the data to the next header. */
static inline uint64_t tar_padding(uint64_t data_bytes)
{
    return -data_bytes % TAR_BLOCK_BYTES;
}

typedef enum tar_document { /* what a file holds, by its name */
    TAR_NO_DOCUMENT,
    TAR_TEXT,
    TAR_JSON, /* one value */
    TAR_JSON_LINES
} tar_document;
tar_document tar_document_kind(const char *name);
