/* input.h - one input of `tokmap pack` as a stream of plain bytes.
 *
 * Plain, gzip (several members) and zstd (several frames) are told apart by their first bytes,
 * never by the name. Damaged or truncated compressed data is an error with its place, not an
 * early end. Memory is bounded: 256 KiB and the decompressor's window of at most 128 MiB. */
#ifndef TOKMAP_INPUT_H
#define TOKMAP_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct input input;

typedef struct input_error {
    int sys_errno;   /* 0 when the data is to blame, not the system */
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
void input_close(input *in);

struct input_codec; /* input_codec.h */
typedef struct input_options {
    const struct input_codec *codecs; /* NULL: all that this build has */
    size_t n_codecs;
    int stop_fd; /* once it can be read, opening and reading fail with ECANCELED; -1: none */
} input_options;
input *input_open_with(const char *path, const input_options *options, input_error *err);

#endif /* TOKMAP_INPUT_H */
