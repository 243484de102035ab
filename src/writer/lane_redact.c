/* SPDX-License-Identifier: Apache-2.0 */
/* lane_redact.c - writes the lane of a redacted dataset: zeros for the tokens of some documents.
 *
 * Each file is a copy, whose blocks the file system may share. Only the blocks of these documents
 * are checked. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "dataset/lane.h"
#include "dataset/token_files.h"
#include "tokmap_writer.h"
#include "writer/lane_writer.h"

typedef struct lane_job {
    const tokmap_lane *lane;
    const tokmap_dataset *redacted;
    const uint64_t *documents;
    uint64_t n_documents, n_passed;
    tokmap_document now; /* beyond all tokens if there are no more */
    /* the file that is written: */
    tokmap_i_token_file *from;
    tokmap_i_named_file source;
    tokmap_i_lane_header header;
    char about[TOKMAP_I_LANE_ABOUT_ROOM];
    uint8_t *checksums;
    tokmap_i_side_file to;
    bool is_shared;
    uint8_t *buffer; /* TOKMAP_I_BLOCK_BYTES */
} lane_job;

/* Goes to the next document that has tokens. */
static tokmap_status next_document(lane_job *job, tokmap_error *err)
{
    const uint64_t n_tokens = job->redacted->header.n_tokens;
    do {
        const uint64_t end = job->now.first_token + job->now.n_tokens;
        job->now = (tokmap_document){.first_token = n_tokens};
        if (job->n_passed == job->n_documents)
            return TOKMAP_OK;
        const uint64_t d = job->documents[job->n_passed++];
        if (tokmap_dataset_document(job->redacted, d, &job->now) || job->now.first_token < end ||
            job->now.n_tokens > n_tokens - job->now.first_token)
            return tokmap_i_fail_damaged(job->redacted, 0, "the end of a document is wrong", err);
    } while (job->now.n_tokens == 0);
    return TOKMAP_OK;
}

/* Computes the hash of the tokens of the new token file, which the index of no dataset has. */
static tokmap_status hash_tokens(lane_job *job, tokmap_error *err)
{
    const uint32_t width = job->redacted->header.token_bytes;
    const uint64_t end = job->from->first_token + job->from->n_tokens;
    tokmap_i_content_hash hash = {0};
    tokmap_status status = TOKMAP_OK;
    for (uint64_t n, at = job->from->first_token; at < end && !status; at += n) {
        n = MIN(end - at, TOKMAP_I_BLOCK_BYTES / width);
        status = tokmap_dataset_read(job->redacted, at, n, job->buffer, err);
        if (!status)
            tokmap_i_content_hash_add_tokens(&hash, job->buffer, (size_t)n, width);
    }
    tokmap_i_content_hash_store(&hash, job->header.tokens_hash);
    return status;
}

/* ---- Values ---- */

/* Returns where the values of the document begin, counted from the first one of the file. */
static uint64_t begin_of_document(const lane_job *job)
{
    const uint64_t first = job->from->first_token;
    return (MAX(job->now.first_token, first) - first) * job->header.token_bytes;
}

/* Writes a block, with zeros for the tokens that the documents have in it. */
static tokmap_status write_block(lane_job *job, uint64_t block, tokmap_error *err)
{
    const tokmap_i_lane_header *h = &job->header;
    const uint64_t begin = block * TOKMAP_I_BLOCK_BYTES, width = h->token_bytes;
    const uint64_t end = MIN(h->n_bytes - h->offset, begin + TOKMAP_I_BLOCK_BYTES);
    const size_t n_bytes = (size_t)(end - begin);
    const uint64_t first = job->from->first_token;
    uint8_t *checksum = job->checksums + 8 * block;
    const bool is_touched = begin_of_document(job) < end;
    if (job->is_shared && !is_touched)
        return TOKMAP_OK;
    tokmap_status status =
        tokmap_i_read_exactly(job->source, h->offset + begin, n_bytes, job->buffer, err);
    if (!status && is_touched && tokmap_i_checksum(job->buffer, n_bytes) != le_get64(checksum))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, h->offset + begin,
                       "%s: damaged: a MiB of values does not match its checksum: write the lane "
                       "again",
                       job->source.name);
    while (!status && begin_of_document(job) < end) {
        const uint64_t from = MAX(begin, begin_of_document(job));
        const uint64_t all = (job->now.first_token + job->now.n_tokens - first) * width;
        memset(job->buffer + (from - begin), 0, (size_t)(MIN(all, end) - from));
        if (all > end)
            break;
        status = next_document(job, err);
    }
    if (is_touched)
        le_put64(checksum, tokmap_i_checksum(job->buffer, n_bytes));
    if (status || (!job->is_shared && is_zero(job->buffer, n_bytes)))
        return status;
    return CHECK_IO(err, tokmap_i_file_write(job->to.fd, job->buffer, n_bytes, h->offset + begin),
                    "%s: cannot write", job->to.partial);
}

static tokmap_status read_start(lane_job *job, tokmap_error *err)
{
    tokmap_i_lane_header *h = &job->header;
    tokmap_status status = tokmap_i_lane_read_header(job->lane, job->from, job->source.fd, h, err);
    if (!status)
        status = tokmap_i_lane_read_about(job->source, h, job->about, err);
    return status ? status : tokmap_i_lane_read_checksums(job->source, h, &job->checksums, err);
}

static tokmap_status copy_file(lane_job *job, const char *path, tokmap_error *err)
{
    tokmap_status status = read_start(job, err);
    if (!status && job->lane->by_file)
        status = hash_tokens(job, err);
    else
        tokmap_i_content_hash_store(&job->redacted->header.tokens_hash, job->header.tokens_hash);
    if (!status)
        status = tokmap_i_side_file_open(&job->to, &tokmap_i_lane_kind, path, err);
    if (status)
        return status;
    job->is_shared = tokmap_i_file_clone(job->source.fd, job->to.fd) == 0;
    status = CHECK_IO(err, tokmap_i_file_resize(job->to.fd, job->header.n_bytes),
                      "%s: cannot write", job->to.partial);
    for (uint64_t block = 0; block < job->header.n_blocks && !status; block++)
        status = write_block(job, block, err);
    return status ? status
                  : tokmap_i_lane_finish(&job->to, &job->header, job->about, job->checksums, err);
}

static tokmap_status redact_file(lane_job *job, const char *path, tokmap_error *err)
{
    const tokmap_dataset *wide = &job->lane->wide;
    job->to.fd = -1;
    tokmap_status status = path ? TOKMAP_OK : FAIL_MEMORY(err);
    if (!status)
        status = tokmap_i_token_file_borrow(wide, job->from, &job->source, err);
    if (status)
        return status;
    status = copy_file(job, path, err);
    tokmap_i_side_file_close(&job->to);
    tokmap_i_token_file_give_back(job->from, &job->source);
    free(job->checksums);
    job->checksums = NULL;
    return status;
}

/* Writes a lane for each token file that is a copy without some documents. */
static tokmap_status redact_files(lane_job *job, tokmap_error *err)
{
    const tokmap_dataset *wide = &job->lane->wide;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < wide->n_files && !status; i++) {
        job->from = &wide->files[i];
        if (job->now.first_token >= job->from->first_token + job->from->n_tokens)
            continue;
        const tokmap_i_token_file *copy =
            tokmap_i_file_of_token(job->redacted, job->from->first_token);
        char *path = tokmap_i_lane_path(copy->path, job->lane->name);
        status =
            copy->first_token == job->from->first_token && copy->n_tokens == job->from->n_tokens
                ? redact_file(job, path, err)
                : FAIL(err, TOKMAP_ERR_MISMATCH, "%s: has other token files than %s",
                       job->redacted->index_path, job->lane->ds->index_path);
        free(path);
    }
    return status;
}

tokmap_status tokmap_lane_redact(const tokmap_lane *lane, const tokmap_dataset *redacted,
                                 const uint64_t *documents, uint64_t n_documents, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!lane || !redacted || (!documents && n_documents > 0))
        return FAIL_NULL(err);
    const tokmap_i_header *old = &lane->ds->header, *new = &redacted->header;
    if (old->n_tokens != new->n_tokens || old->n_documents != new->n_documents ||
        memcmp(old->documents_hash.crc, new->documents_hash.crc, sizeof old->documents_hash.crc) !=
            0 ||
        (lane->by_file && !redacted->is_joined))
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: was not redacted from %s", redacted->index_path,
                    lane->ds->index_path);
    for (uint64_t i = 0; i < n_documents; i++)
        if (documents[i] >= new->n_documents || (i > 0 && documents[i] <= documents[i - 1]))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "%s: documents[%" PRIu64 "] is %" PRIu64 ": must ascend, below %" PRIu64,
                        redacted->index_path, i, documents[i], new->n_documents);
    lane_job job = {.lane = lane,
                    .redacted = redacted,
                    .documents = documents,
                    .n_documents = n_documents,
                    .buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_BLOCK_BYTES)};
    tokmap_status status = job.buffer ? next_document(&job, err) : FAIL_MEMORY(err);
    if (!status && lane->by_file) {
        status = redact_files(&job, err);
    } else if (!status) {
        char *path = tokmap_i_side_path(redacted, "%s.tml", lane->name);
        job.from = &lane->wide.files[0];
        status = redact_file(&job, path, err);
        free(path);
    }
    free(job.buffer);
    return status;
}
