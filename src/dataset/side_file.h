/* SPDX-License-Identifier: Apache-2.0 */
/* side_file.h - reads and writes files beside a dataset: rows, views, columns, lanes. */
#pragma once

#include <stdbool.h>

#include "format/side_header.h"
#include "system/platform.h"
#include "tokmap.h"

/* ---- Reading ---- */

/* An open file. */
typedef struct tokmap_i_side {
    const tokmap_i_side_kind *kind;
    int fd;     /* -1: not open */
    char *path; /* or NULL */
    tokmap_i_file_stat stat;
    const void *map;  /* or NULL */
    uint8_t *checked; /* a bit for each chunk that has been checked; readers set them */
} tokmap_i_side;

/* Opens a file beside `ds`, and decodes its header. *exists: there is such a file.
 * TOKMAP_ERR_CORRUPT, TOKMAP_ERR_VERSION: it is damaged, or newer. Close it after a failure too. */
tokmap_status tokmap_i_side_open(tokmap_i_side *s, const tokmap_i_side_kind *kind,
                                 const tokmap_dataset *ds, const char *path, void *header,
                                 bool *exists, tokmap_error *err);
/* Decodes the header of an open file, whose kind, descriptor, path and stat are set. */
tokmap_status tokmap_i_side_read_header(const tokmap_i_side *s, void *header, tokmap_error *err);
/* Closes a file that was opened, or whose fd is -1. */
void tokmap_i_side_close(tokmap_i_side *s);
tokmap_status tokmap_i_side_read(const tokmap_i_side *s, uint64_t at, size_t n_bytes, void *to,
                                 tokmap_error *err);
/* Fails with TOKMAP_ERR_CORRUPT, because of what is wrong with the file. */
tokmap_status tokmap_i_side_fail(const tokmap_i_side *s, const char *problem, tokmap_error *err);
/* Maps the whole file until close. */
tokmap_status tokmap_i_side_map(tokmap_i_side *s, const void **map, tokmap_error *err);

/* A part of a file that is checked when it is first needed. check: returns what is wrong with its
 * bytes, or NULL. */
typedef struct tokmap_i_side_chunk {
    uint64_t number, begin;
    size_t n_bytes;
    const char *(*check)(void *context, const uint8_t *bytes);
    void *context;
} tokmap_i_side_chunk;

/* Makes room to remember which of n chunks were checked. Returns false when out of memory. */
bool tokmap_i_side_expect_chunks(tokmap_i_side *s, uint64_t n);
static inline bool tokmap_i_side_is_checked(const tokmap_i_side *s, uint64_t chunk)
{
    return __atomic_load_n(&s->checked[chunk / 8], __ATOMIC_RELAXED) >> chunk % 8 & 1;
}
/* Reads a chunk, checks it, and remembers that it is sound. *problem: what is wrong with it, if it
 * could be read; else NULL. Any thread may call it. */
tokmap_status tokmap_i_side_check(const tokmap_i_side *s, const tokmap_i_side_chunk *c,
                                  const char **problem, tokmap_error *err);

/* ---- Writing: a file is complete or absent. An older one stays until the new one is complete. It
 *      is written under its name and .partial, whose lock excludes a second writer. ---- */

typedef struct tokmap_i_side_file {
    int fd;        /* -1: not open */
    char *partial; /* its name while it is written */
    char *path;
    bool is_locked;
} tokmap_i_side_file;

/* Opens an empty file, which may replace one of this kind. TOKMAP_ERR_EXISTS: there is another
 * file. TOKMAP_ERR_LOCKED: another process is writing it. Close it after a failure too. */
tokmap_status tokmap_i_side_file_open(tokmap_i_side_file *f, const tokmap_i_side_kind *kind,
                                      const char *path, tokmap_error *err);
/* Flushes the file and gives it its name, in place of an older one. */
tokmap_status tokmap_i_side_file_finish(tokmap_i_side_file *f, tokmap_error *err);
/* Removes the file unless it is finished. */
void tokmap_i_side_file_close(tokmap_i_side_file *f);

/* Returns "P.NAME" for a dataset P, with room for what `name` says; the caller frees it. NULL: out
 * of memory. */
char *tokmap_i_side_path(const tokmap_dataset *ds, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
