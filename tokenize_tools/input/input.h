/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - reads one input of `tokmap pack` as a stream of plain bytes.
 *
 * Plain, gzip (several members) and zstd (several frames) are recognized by their first bytes,
 * never by the name. Damaged or truncated compressed data is an error with its place, not an early
 * end. Memory is bounded: 256 KiB, and the decompressor's window of at most 128 MiB. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "system/files.h"
#include "base/error.h"

typedef struct input input;

/* Reads up to n_bytes > 0 bytes. Returns the number read, 0 at the end, -1 on an error. */
ssize_t input_read(input *in, void *buffer, size_t n_bytes, failure *err);
/* How the input is compressed: "gzip"; NULL: it is not. */
const char *input_codec_name(const input *in);
/* The bytes that decompressing it takes. */
uint64_t input_memory(const input *in);
void input_close(input *in);

/* Identifies one state of a regular file. It does not include the inode number, because file
 * systems in user space may give the same file a new one. */
typedef struct input_version {
    bool known; /* false: not a regular file; it can be read only once */
    uint64_t n_bytes, mtime_ns, ctime_ns;
} input_version;
input_version input_version_of(const file_facts *facts);
/* Whether the open file still has this version, if that is known. */
bool input_version_check(const input_version *was, int fd, failure *err);

typedef struct input_prefix {
    uint64_t n_bytes, checksum; /* of stored bytes; XXH3-64 */
} input_prefix;

/* What was read so far; at the end, the whole input or part. */
input_prefix input_stored(const input *in);

/* A place where an input may be cut (cutter.h), and one of its parts begins. {0}: its start. */
typedef struct corpus_cut {
    uint64_t offset; /* in the stored bytes: of a line, or with Parquet of the page of `row` */
    uint64_t row;    /* with Parquet, in the file; else 0 */
} corpus_cut;

/* A part of a regular file, which is read as it is stored. */
typedef struct input_part {
    corpus_cut begin, end;
    bool has_end; /* false: up to the end of the file */
    bool joined;  /* of Parquet: the caller adds up the checksums of all parts of the file */
} input_part;

/* What to open, and which version is required: opening or reading another one fails with `changed`,
 * at the latest at the end of the prefix and of the input. */
typedef struct input_source {
    const char *path;             /* "-" is stdin */
    const input_version *version; /* NULL or not known: any */
    const input_part *part;       /* NULL: all of it */
    input_prefix prefix;          /* the file or part must begin with it; 0 bytes: none */
    /* Called before more memory is taken, to decompress or for a long record, with how much is
     * taken then in all; it may wait. False: reading fails with ECANCELED. NULL: it is not
     * called. */
    bool (*reserve)(void *context, uint64_t n_bytes);
    void *reserve_context;
} input_source;

/* Opens only the file, in the version that is required. Returns -1 on failure. */
int input_open_file(const input_source *source, failure *err);
/* The path must stay valid until the input is closed. stop_fd: opening and reading fail with
 * ECANCELED once it is readable; -1: none. NULL on failure. */
input *input_open(const input_source *source, int stop_fd, failure *err);
/* Reads a file that input_open_file opened. The input closes the file, also on failure. */
input *input_open_at(const input_source *source, int fd, int stop_fd, failure *err);

/* Whether the input is a regular file that is not compressed, and how many bytes it has. */
bool input_is_plain_file(const input *in, uint64_t *n_bytes);
/* Reads bytes of such a file, fewer only at its end, and leaves the place of input_read. Returns 0
 * or an errno value. */
int input_read_at(const input *in, void *to, size_t n_bytes, uint64_t offset, size_t *n_read);
