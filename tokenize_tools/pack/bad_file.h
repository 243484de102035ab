/* bad_file.h - the file with the bad documents as they stood: --on-error collect.
 *
 * Written by the reader as FILE.partial, ahead of what is packed, and cut where packing is when
 * another run goes on. Gets its name at the end; a file without documents is not made. */
#ifndef TOKMAP_PACK_BAD_FILE_H
#define TOKMAP_PACK_BAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/error.h"

struct XXH3_state_s;

/* How far the file had come. */
typedef struct pack_bad_mark {
    uint64_t n_bytes, checksum; /* XXH3-64 of these bytes */
} pack_bad_mark;

#define PACK_BAD_FILE_BUFFER ((size_t)64 * 1024)

typedef struct pack_bad_file {
    char path[4096], partial[4096 + 16];
    int fd; /* -1: not open */
    bool replace;
    int sys_errno;                 /* of the first write that failed */
    uint64_t n_bytes;              /* written and buffered */
    struct XXH3_state_s *checksum; /* of these */
    size_t n_buffered;
    uint8_t buffer[PACK_BAD_FILE_BUFFER];
} pack_bad_file;

typedef struct pack_bad_file_options {
    const char *path;
    pack_bad_mark keep; /* of what an earlier run wrote; of 0 bytes: nothing */
    bool replace;       /* a file that already exists */
    bool may_be_placed; /* the earlier run may have given it its name */
} pack_bad_file_options;

/* Returns an exit code, with a message. */
int pack_bad_file_open(pack_bad_file *f, const pack_bad_file_options *options);
/* For the reader. A failure shows in sys_errno. */
void pack_bad_file_write(pack_bad_file *f, const void *data, size_t n_bytes);
void pack_bad_file_flush(pack_bad_file *f);
pack_bad_mark pack_bad_file_mark(const pack_bad_file *f);
/* From any thread: what was flushed reaches the disk. */
int pack_bad_file_sync(pack_bad_file *f, pack_error *err);
/* When the reader has ended: keeps n_bytes, and gives the file its name or, without bytes, removes
 * it, and one that it would have replaced. */
int pack_bad_file_place(pack_bad_file *f, uint64_t n_bytes, pack_error *err);
/* keep: what is written stays for another run. */
void pack_bad_file_close(pack_bad_file *f, bool keep);

#endif /* TOKMAP_PACK_BAD_FILE_H */
