/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_dataset.c - makes a dataset of any size that takes no disk space: its tokens are a hole in
 * the file.
 *
 * The index is a real one, made with the library's internal index writer: the public writer would
 * have to read two terabytes of zeros. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "core/load_data.h"
#include "system/platform.h"
#include "writer/sections.h"

/* Makes a file of these bytes, or of a hole. */
static void make_file(const char *prefix, const char *suffix, const void *bytes, uint64_t n_bytes)
{
    const path_text path = path_of(prefix, suffix);
    int fd;
    bench_check_errno(tokmap_i_file_create(path.s, &fd), path.s);
    bench_check_errno(bytes ? tokmap_i_file_write(fd, bytes, n_bytes, 0)
                            : tokmap_i_file_resize(fd, n_bytes),
                      path.s);
    tokmap_i_file_close(fd);
}

static void add_blocks(tokmap_i_index_writer *w, uint64_t n_bytes)
{
    uint8_t *zeros = bench_memory(TOKMAP_I_BLOCK_BYTES);
    const uint64_t whole = tokmap_i_checksum(zeros, TOKMAP_I_BLOCK_BYTES);
    for (uint64_t done = 0; done < n_bytes; done += TOKMAP_I_BLOCK_BYTES) {
        const uint64_t left = n_bytes - done;
        const uint64_t checksum =
            left >= TOKMAP_I_BLOCK_BYTES ? whole : tokmap_i_checksum(zeros, (size_t)left);
        bench_check(tokmap_i_index_writer_block(w, checksum, &bench_error));
    }
    free(zeros);
}

/* Adds documents. Lengths are random and independent, many short and few long, so that the place of
 * a document does not follow from its number. The last one ends at the last token. */
static void add_documents(tokmap_i_index_writer *w, uint64_t n_tokens, uint64_t n_documents)
{
    uint64_t seed = 1, end = 0;
    const uint64_t mean = n_tokens / n_documents;
    for (uint64_t i = 1; i < n_documents; i++) {
        const uint64_t half = bench_random(&seed) % (2 * mean + 1); /* half of the largest length */
        const uint64_t length = bench_random(&seed) % (2 * half + 1);
        end = MIN(end + length, n_tokens);
        bench_check(tokmap_i_index_writer_document(w, end, &bench_error));
    }
    bench_check(tokmap_i_index_writer_document(w, n_tokens, &bench_error));
}

void load_data_make_sparse(const bench_options *options, size_t i, uint64_t n_tokens,
                           uint64_t n_documents)
{
    const path_text prefix = load_data_name(options, i);
    const path_text path = path_of(prefix.s, ".tmi");
    tokmap_i_index_writer *w;
    int fd;
    tokmap_i_header header = {
        .n_tokens = n_tokens, .token_bytes = 2, .vocab_size = 50257, .eod_id = TOKMAP_NO_ID};
    make_file(prefix.s, ".bin", NULL, 2 * n_tokens);
    memcpy(header.token_suffix, ".bin", sizeof ".bin");
    bench_check_errno(tokmap_i_file_create(path.s, &fd), path.s);
    bench_check(tokmap_i_index_writer_open(&w, path.s, fd, &bench_error));
    add_blocks(w, 2 * n_tokens);
    add_documents(w, n_tokens, n_documents);
    bench_check(tokmap_i_index_writer_finish(w, &header, "{}", 2, &bench_error));
    tokmap_i_index_writer_close(w);
}

void load_data_copy_sparse(const bench_options *options, size_t from, size_t to, uint64_t n_tokens)
{
    const path_text prefix = load_data_name(options, to);
    size_t n_bytes;
    const uint8_t *index = load_data_map(load_data_name(options, from).s, ".tmi", &n_bytes);
    make_file(prefix.s, ".bin", NULL, 2 * n_tokens);
    make_file(prefix.s, ".tmi", index, n_bytes);
    tokmap_i_unmap(index, n_bytes);
}
