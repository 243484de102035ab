/* SPDX-License-Identifier: Apache-2.0 */
/* append_dataset.c - appends a whole dataset to the output of a writer, for merging.
 *
 * The tokens are always read and checked. Where the file system can copy them itself (by sharing
 * blocks on XFS and btrfs, on the server with NFS), they are not written again. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"
#include "dataset/token_files.h"
#include "format/token_scan.h"
#include "system/platform.h"
#include "writer/writer.h"

typedef struct append_job {
    tokmap_i_append a;
    uint8_t *block;
    bool copy_in_place; /* until the file system refuses */
} append_job;

static bool copy_block(append_job *job, const tokmap_i_token_piece *block, uint64_t to_byte)
{
    tokmap_i_named_file from;
    if (!job->copy_in_place || tokmap_i_token_file_borrow(job->a.ds, block->file, &from, NULL))
        return false;
    const tokmap_i_copy copy = {from.fd, job->a.w->token_fd, block->first_byte, to_byte,
                                block->n_bytes};
    job->copy_in_place = tokmap_i_file_copy(&copy) == 0;
    tokmap_i_token_file_give_back(block->file, &from);
    return job->copy_in_place;
}

static tokmap_status append_block(append_job *job, uint64_t block_index, tokmap_error *err)
{
    const tokmap_i_header *h = &job->a.ds->header;
    tokmap_writer *w = job->a.w;
    const tokmap_i_token_piece block = tokmap_i_block_piece(job->a.ds, block_index);
    tokmap_status status = tokmap_i_token_piece_read(job->a.ds, &block, job->block, err);
    if (status)
        return status;
    if (tokmap_i_checksum(job->block, (size_t)block.n_bytes) !=
        load_le64(job->a.checksums + 8 * block_index))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, block.first_byte,
                       "%s: damaged: block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64
                       ") does not match its checksum",
                       block.file->path, block_index, block.first_byte,
                       block.first_byte + block.n_bytes - 1);
    const uint32_t largest =
        tokmap_i_largest_id(job->block, (size_t)block.n_tokens, h->token_bytes);
    if (largest > h->largest_id)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, block.first_byte,
                       "%s: damaged: block %" PRIu64 " has id %" PRIu32
                       ", above the largest id in its header",
                       block.file->path, block_index, largest);
    w->header.largest_id = MAX(w->header.largest_id, largest);
    const uint64_t to_byte = w->n_tokens * w->header.token_bytes;
    if (!copy_block(job, &block, to_byte))
        status = CHECK_IO_AT(
            err, tokmap_i_file_write(w->token_fd, job->block, (size_t)block.n_bytes, to_byte),
            to_byte, "%s: cannot write", w->names.token_partial);
    if (!status)
        status = tokmap_i_writer_hash(w, job->block, (size_t)block.n_bytes, err);
    w->n_tokens += block.n_tokens;
    return status;
}

static tokmap_status append_all(append_job *job, tokmap_error *err)
{
    tokmap_i_append *a = &job->a;
    const tokmap_i_content_hash *now = &a->w->header.tokens_hash;
    tokmap_status status = tokmap_i_append_open(a, err);
    if (status)
        return status;
    job->block = malloc(TOKMAP_I_BLOCK_BYTES);
    if (!job->block)
        return FAIL_MEMORY(err);
    tokmap_i_content_hash expected = *now;
    tokmap_i_content_hash_join(&expected, &a->ds->header.tokens_hash);
    status = tokmap_i_writer_flush(a->w, err);
    for (uint64_t i = 0; !status && i < a->checksums_bytes / 8; i++)
        status = append_block(job, i, err);
    if (!status && (now->crc[0] != expected.crc[0] || now->crc[1] != expected.crc[1]))
        status = tokmap_i_fail_tokens_hash(a->ds, err);
    return status ? status : tokmap_i_append_index(a, err);
}

tokmap_status tokmap_writer_append_dataset(tokmap_writer *w, const tokmap_dataset *ds,
                                           tokmap_error *err)
{
    tokmap_status status = tokmap_i_writer_enter(w, ds, TOKMAP_I_OUTPUT_NEW, __func__, err);
    if (status)
        return status;
    append_job job = {.a = {.w = w, .ds = ds}, .copy_in_place = true};
    status = append_all(&job, &w->failure);
    tokmap_i_append_close(&job.a);
    free(job.block);
    return tokmap_i_writer_leave(w, status, err);
}
