/* input.h - one input of `tokmap pack` as a stream of plain bytes.
 *
 * Plain, gzip (several members) and zstd (several frames) are told apart by their first bytes,
 * never by the name. Damaged or truncated compressed data is an error with its place, not an
 * early end. Memory is bounded: 256 KiB and the decompressor's window of at most 128 MiB. */
#ifndef TOKMAP_INPUT_H
#define TOKMAP_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct input input;

typedef struct input_error {
    int sys_errno;   /* 0 when the data is to blame, not the system */
    bool changed;    /* the file is not the one that was asked for */
    uint64_t offset; /* in the stored bytes */
    char text[512];  /* one line; names the input */
} input_error;

/* "-" is stdin. The path must live as long as the input. NULL on failure. */
input *input_open(const char *path, input_error *err);
/* Up to n_bytes > 0 bytes: the number read, 0 at the end, -1 on an error. */
ssize_t input_read(input *in, void *buffer, size_t n_bytes, input_error *err);
/* Stored bytes read so far and their XXH3-64; after the end of the input: of all of it. */
uint64_t input_stored_bytes(const input *in);
uint64_t input_checksum(const input *in);
bool input_is_compressed(const input *in);
void input_close(input *in);

/* What tells one state of a regular file from another. The number of the inode is not part of it:
 * file systems in user space give the same file a new one. */
typedef struct input_version {
    bool known; /* false: no regular file, which can be read only once */
    uint64_t n_bytes, mtime_ns, ctime_ns;
} input_version;
input_version input_version_of(const struct stat *st);

typedef struct input_prefix {
    uint64_t n_bytes, checksum; /* of stored bytes; XXH3-64 */
} input_prefix;

/* What to open, and what it has to be: otherwise opening or reading fails with `changed`. Reading
 * reports it no later than at the end of the input, and of the prefix. */
typedef struct input_source {
    const char *path;             /* "-" is stdin */
    const input_version *version; /* NULL or not known: any */
    input_prefix prefix;          /* that the file must begin with; of 0 bytes: none */
} input_source;

struct input_codec; /* input_codec.h */
typedef struct input_options {
    const struct input_codec *codecs; /* NULL: all that this build has */
    size_t n_codecs;
    int stop_fd; /* once it can be read, opening and reading fail with ECANCELED; -1: none */
} input_options;
input *input_open_with(const input_source *source, const input_options *options, input_error *err);

#endif /* TOKMAP_INPUT_H */
