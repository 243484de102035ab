/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_dataset.c - makes a dataset of any size that takes no disk space: its tokens are a hole in
 * the file.
 *
 * The index is a real one, made with the library's internal index writer: the public writer would
 * have to read two terabytes of zeros. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "writer/index_writer.h"
#include "core/bench.h"
#include "core/plain_map.h"
#include "cli/cli.h"

static void path_of(char *path, size_t n_bytes, const char *prefix, const char *suffix)
{
    snprintf(path, n_bytes, "%s%s", prefix, suffix);
}

/* Of these bytes, or a hole. */
static int make_file(const char *prefix, const char *suffix, const void *bytes, uint64_t n_bytes)
{
    char path[4096];
    path_of(path, sizeof path, prefix, suffix);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const int failed = fd < 0 || ftruncate(fd, (off_t)n_bytes) ||
                       (bytes && pwrite(fd, bytes, n_bytes, 0) != (ssize_t)n_bytes);
    if (failed)
        cli_warn("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return failed;
}

static tokmap_status add_blocks(tokmap_i_index_writer *w, uint64_t n_bytes, tokmap_error *err)
{
    uint8_t *zeros = calloc(1, TOKMAP_I_BLOCK_BYTES);
    if (!zeros)
        return TOKMAP_ERR_MEMORY;
    const uint64_t whole = tokmap_i_checksum(zeros, TOKMAP_I_BLOCK_BYTES);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; !status && done < n_bytes; done += TOKMAP_I_BLOCK_BYTES) {
        const uint64_t left = n_bytes - done;
        status = tokmap_i_index_writer_block(
            w, left >= TOKMAP_I_BLOCK_BYTES ? whole : tokmap_i_checksum(zeros, (size_t)left), err);
    }
    free(zeros);
    return status;
}

/* Lengths are random around the mean. The end of each document is within one mean of where equal
 * lengths would put it: so no two stretches look alike, and the last document ends at the last
 * token. */
static tokmap_status add_documents(tokmap_i_index_writer *w, uint64_t n_tokens,
                                   uint64_t n_documents, tokmap_error *err)
{
    uint64_t seed = 1;
    const uint64_t mean = n_tokens / n_documents;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 1; !status && i < n_documents; i++)
        status = tokmap_i_index_writer_document(
            w, i * mean + (mean ? bench_random(&seed) % mean : 0), err);
    return status ? status : tokmap_i_index_writer_document(w, n_tokens, err);
}

int bench_make_sparse(const char *prefix, uint64_t n_tokens, uint64_t n_documents)
{
    char path[4096];
    tokmap_error err = {0};
    tokmap_i_index_writer *w = NULL;
    tokmap_i_header header = {
        .n_tokens = n_tokens, .token_bytes = 2, .vocab_size = 50257, .eod_id = TOKMAP_NO_ID};
    if (make_file(prefix, ".bin", NULL, 2 * n_tokens))
        return 1;
    memcpy(header.token_suffix, ".bin", sizeof ".bin");
    path_of(path, sizeof path, prefix, ".tmi");
    tokmap_status status = tokmap_i_index_writer_open(&w, path, &err);
    if (!status)
        status = add_blocks(w, 2 * n_tokens, &err);
    if (!status)
        status = add_documents(w, n_tokens, n_documents, &err);
    if (!status)
        status = tokmap_i_index_writer_finish(w, &header, "{}", 2, &err);
    tokmap_i_index_writer_close(w);
    if (status)
        cli_warn("%s", err.text);
    return status != 0;
}

int bench_copy_sparse(const char *from, const char *to)
{
    plain_map map;
    const bool copied = plain_map_open(&map, from) &&
                        !make_file(to, ".bin", NULL, map.token_bytes) &&
                        !make_file(to, ".tmi", map.index, map.index_bytes);
    plain_map_close(&map);
    return !copied;
}

void bench_remove(const char *prefix)
{
    char path[4096];
    path_of(path, sizeof path, prefix, ".bin");
    unlink(path);
    path_of(path, sizeof path, prefix, ".tmi");
    unlink(path);
}
