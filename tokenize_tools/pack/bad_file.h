/* SPDX-License-Identifier: Apache-2.0 */
/* bad_file.h - the file with copies of the bad documents: --on-error collect.
 *
 * The reader writes it as FILE.partial, ahead of packing; a run that resumes cuts it to where
 * packing was. It gets its name at the end. A file without documents is not created. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/error.h"
#include "pack/options.h"
#include "system/output_file.h"

struct XXH3_state_s;

/* How much was written. */
typedef struct pack_bad_mark {
    uint64_t n_bytes, checksum; /* XXH3-64 of these bytes */
} pack_bad_mark;

#define PACK_BAD_FILE_BUFFER ((size_t)64 * 1024)

typedef struct pack_bad_file {
    output_file out;
    int sys_errno;                 /* of the first failed write */
    uint64_t n_bytes;              /* written and buffered */
    struct XXH3_state_s *checksum; /* of these bytes */
    size_t n_buffered;
    uint8_t buffer[PACK_BAD_FILE_BUFFER];
} pack_bad_file;

/* *f is zeros. keep: what an earlier run wrote, which may have given the file its name already, if
 * it was finishing. Returns an exit code, and prints the error. */
int pack_bad_file_open(pack_bad_file *f, const pack_options *options, const pack_bad_mark *keep,
                       bool finishing);
/* Called by the reader. A failure is stored in sys_errno. */
void pack_bad_file_write(pack_bad_file *f, const void *data, size_t n_bytes);
void pack_bad_file_flush(pack_bad_file *f);
/* f NULL: nothing. */
pack_bad_mark pack_bad_file_mark(const pack_bad_file *f);
/* May be called from any thread: makes what was flushed durable. */
int pack_bad_file_sync(pack_bad_file *f, pack_error *err);
/* After the reader has ended: keeps n_bytes and gives the file its name; if n_bytes is 0, removes
 * it and the file that it would have replaced. */
int pack_bad_file_place(pack_bad_file *f, uint64_t n_bytes, pack_error *err);
/* keep: the file stays, for another run. */
void pack_bad_file_close(pack_bad_file *f, bool keep);
