/* SPDX-License-Identifier: Apache-2.0 */
/* tool_make_sparse - makes a joined dataset of any size that takes almost no room on the disk:
 * tool_make_sparse P N_PARTS N_TOKENS N_DOCUMENTS. P.0 to P.(N_PARTS - 1) have so many tokens of 4
 * bytes and so many documents each; their tokens are holes. P joins them. The index writer is that
 * of the library, because the public writer would have to read all the zeros. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "format/format.h"
#include "system/platform.h"
#include "tokmap_writer.h"
#include "writer/sections.h"

enum {
    TOKEN_BYTES = 4
};

static tokmap_error err;

static void check(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "tool_make_sparse: %s: %s\n", what, err.status ? err.text : strerror(error));
    exit(1);
}

static void add_blocks(tokmap_i_index_writer *w, uint64_t n_bytes)
{
    uint8_t *zeros = calloc(1, TOKMAP_I_BLOCK_BYTES);
    check(!zeros, "out of memory");
    const uint64_t whole = tokmap_i_checksum(zeros, TOKMAP_I_BLOCK_BYTES);
    for (uint64_t left = n_bytes; left > 0; left -= MIN(left, TOKMAP_I_BLOCK_BYTES)) {
        const uint64_t checksum =
            left >= TOKMAP_I_BLOCK_BYTES ? whole : tokmap_i_checksum(zeros, (size_t)left);
        check(tokmap_i_index_writer_block(w, checksum, &err), "a block");
    }
    free(zeros);
}

/* Documents of one and a half or of half the mean length, in turns, so that places do not follow
 * from numbers. */
static void add_documents(tokmap_i_index_writer *w, uint64_t n_tokens, uint64_t n_documents)
{
    const uint64_t mean = n_tokens / n_documents;
    for (uint64_t i = 1; i < n_documents; i++)
        check(tokmap_i_index_writer_document(w, i * mean + (i % 2) * mean / 2, &err), "a document");
    check(tokmap_i_index_writer_document(w, n_tokens, &err), "a document");
}

static void make_part(const char *prefix, uint64_t n_tokens, uint64_t n_documents)
{
    char path[4096];
    tokmap_i_index_writer *w;
    int fd;
    tokmap_i_header header = {
        .n_tokens = n_tokens, .token_bytes = TOKEN_BYTES, .eod_id = TOKMAP_NO_ID};
    memcpy(header.token_suffix, ".bin", sizeof ".bin");
    snprintf(path, sizeof path, "%s.bin", prefix);
    check(tokmap_i_file_create(path, &fd), path);
    check(tokmap_i_file_resize(fd, TOKEN_BYTES * n_tokens), path);
    tokmap_i_file_close(fd);
    snprintf(path, sizeof path, "%s.tmi", prefix);
    check(tokmap_i_file_create(path, &fd), path);
    check(tokmap_i_index_writer_open(&w, path, fd, &err), path);
    add_blocks(w, TOKEN_BYTES * n_tokens);
    add_documents(w, n_tokens, n_documents);
    check(tokmap_i_index_writer_finish(w, &header, "{}", 2, &err), path);
    tokmap_i_index_writer_close(w);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .token_bytes = TOKEN_BYTES};
    const uint64_t n_parts = strtoull(argv[2], NULL, 10);
    tokmap_writer *w;
    check(tokmap_writer_open_joined(&w, argv[1], &options, &err), argv[1]);
    for (uint64_t i = 0; i < n_parts; i++) {
        char prefix[4000];
        tokmap_dataset *part;
        snprintf(prefix, sizeof prefix, "%s.%" PRIu64, argv[1], i);
        make_part(prefix, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
        check(tokmap_dataset_open_index(&part, prefix, &err), prefix);
        check(tokmap_writer_join(w, part, NULL, &err), prefix);
        tokmap_dataset_close(part);
    }
    check(tokmap_writer_finish(w, &err), argv[1]);
    tokmap_writer_close(w);
    return 0;
}
