/* SPDX-License-Identifier: Apache-2.0 */
/* redact.c - writes a dataset with a filler in place of the tokens of some documents. Its token
 * files are copies, whose blocks the file system may share; only the blocks of these documents are
 * read and checked, and only these tokens are written. docs/FORMAT.md section 7.1. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "base/options.h"
#include "base/token_scan.h"
#include "dataset/token_files.h"
#include "writer/writer.h"

typedef struct redact_job {
    tokmap_i_append a;
    tokmap_redact_info counts;
    const uint64_t *left; /* the documents after `now`, then UINT64_MAX */
    tokmap_document now;  /* the rest of a document; beyond all tokens if there are no more */
    uint32_t filler;
    tokmap_i_content_hash change; /* of the tokens up to `hashed`: each XOR its old value */
    uint64_t hashed;
} redact_job;

/* Goes to the next document that has tokens. */
static tokmap_status next_document(redact_job *job, tokmap_error *err)
{
    const uint64_t n_tokens = job->a.ds->header.n_tokens;
    do {
        const uint64_t end = job->now.first_token + job->now.n_tokens;
        job->now = (tokmap_document){.first_token = n_tokens};
        if (*job->left == UINT64_MAX)
            return TOKMAP_OK;
        if (tokmap_dataset_document(job->a.ds, *job->left++, &job->now) ||
            job->now.first_token < end || job->now.n_tokens > n_tokens - job->now.first_token)
            return tokmap_i_fail_damaged(job->a.ds, 0, "the end of a document is wrong", err);
    } while (job->now.n_tokens == 0);
    return TOKMAP_OK;
}

/* Replaces the tokens that the document has in a block, also in the copy. The hash is linear, so it
 * changes by the hash of the difference. */
static tokmap_status fill(redact_job *job, const tokmap_i_token_piece *p, tokmap_error *err)
{
    const tokmap_i_header *h = &job->a.ds->header;
    const uint32_t width = h->token_bytes;
    const uint64_t first = job->now.first_token, end = first + job->now.n_tokens;
    const uint64_t stop = MIN(end, p->first_token + p->n_tokens);
    const size_t at = (size_t)(first - p->first_token) * width;
    uint8_t *ids = job->a.w->buffer + at;
    size_t n = (size_t)(stop - first);
    n -= stop == end && tokmap_i_largest_id(ids + (n - 1) * width, 1, width) == h->eod_id;
    for (size_t i = 0; i < n * width; i++)
        ids[i] ^= (uint8_t)(job->filler >> 8 * (i % width));
    tokmap_i_content_hash_join(&job->change,
                               &(tokmap_i_content_hash){.n_bytes = 4 * (first - job->hashed)});
    tokmap_i_content_hash_add_tokens(&job->change, ids, n, width);
    job->hashed = first + n;
    for (size_t i = 0; i < n; i++)
        tokmap_i_store_ids(ids + i * width, &job->filler, 1, width);
    job->counts.n_tokens += n;
    job->counts.bytes_written += n * width;
    job->now = (tokmap_document){.first_token = stop, .n_tokens = end - stop};
    const tokmap_status status = CHECK_IO_AT(
        err, tokmap_i_file_write(job->a.w->token_fd, ids, n * width, p->first_byte + at),
        p->first_byte + at, "%s: cannot write", job->a.w->names.token_partial);
    return status || stop < end ? status : next_document(job, err);
}

/* Reads a block, and replaces what it has of the documents from `now` on. */
static tokmap_status redact_block(redact_job *job, uint64_t block, tokmap_error *err)
{
    tokmap_i_header *h = &job->a.w->header;
    const tokmap_i_token_piece p = tokmap_i_block_piece(job->a.ds, block);
    uint8_t *checksum = job->a.checksums + 8 * block, *tokens = job->a.w->buffer;
    tokmap_status status =
        tokmap_i_append_read_block(job->a.ds, block, le_get64(checksum), tokens, err);
    while (!status && job->now.first_token < p.first_token + p.n_tokens)
        status = fill(job, &p, err);
    const uint32_t largest = tokmap_i_largest_id(tokens, (size_t)p.n_tokens, h->token_bytes);
    h->largest_id = MAX(h->largest_id, largest);
    le_put64(checksum, tokmap_i_checksum(tokens, (size_t)p.n_bytes));
    job->counts.bytes_read += p.n_bytes;
    return status ? status : tokmap_i_progress_add(&job->a.progress, 0, err);
}

/* Makes w->token_fd a copy of the file without these tokens. */
static tokmap_status redact_file(redact_job *job, tokmap_i_token_file *file, uint64_t n_blocks,
                                 tokmap_error *err)
{
    tokmap_writer *w = job->a.w;
    const uint64_t n_bytes = tokmap_i_token_file_bytes(job->a.ds, file);
    tokmap_i_named_file from;
    tokmap_status status = tokmap_i_token_file_borrow(job->a.ds, file, &from, err);
    if (status)
        return status;
    const bool is_shared = tokmap_i_file_clone(from.fd, w->token_fd) == 0;
    *(is_shared ? &job->counts.bytes_shared : &job->counts.bytes_copied) += n_bytes;
    for (uint64_t at = is_shared ? n_bytes : 0; !status && at < n_bytes;) {
        const size_t n = (size_t)MIN(n_bytes - at, TOKMAP_I_WRITE_BYTES);
        status = tokmap_i_read_exactly(from, at, n, w->buffer, err);
        if (!status)
            status = CHECK_IO_AT(err, tokmap_i_file_write(w->token_fd, w->buffer, n, at), at,
                                 "%s: cannot write", w->names.token_partial);
        if (!status)
            status = tokmap_i_progress_add(&job->a.progress, n, err);
        at += n;
    }
    tokmap_i_token_file_give_back(file, &from);
    if (!status && is_shared)
        status = tokmap_i_progress_add(&job->a.progress, n_bytes, err);
    for (uint64_t b = file->first_block; !status && b < file->first_block + n_blocks; b++) {
        const tokmap_i_token_piece p = tokmap_i_block_piece(job->a.ds, b);
        if (job->now.first_token < p.first_token + p.n_tokens)
            status = redact_block(job, b, err);
    }
    return status;
}

/* Writes a file for a joined dataset. Its name determines its content, so it replaces an existing
 * file of that name, which may be damaged. */
static tokmap_status redact_segment(redact_job *job, tokmap_i_token_file *file, uint64_t n_blocks,
                                    tokmap_error *err)
{
    tokmap_writer *w = job->a.w;
    const char *prefix = w->names.index_path;
    char *path = NULL;
    tokmap_status status = CHECK_IO(err, tokmap_i_file_create(w->names.token_partial, &w->token_fd),
                                    "%s: cannot create", w->names.token_partial);
    if (!status)
        status = redact_file(job, file, n_blocks, err);
    if (!status)
        status = tokmap_i_writer_sync(w, err);
    tokmap_i_file_close(w->token_fd);
    w->token_fd = -1;
    const uint64_t id =
        file->token_offset +
        tokmap_i_checksum(job->a.checksums + 8 * file->first_block, 8 * (size_t)n_blocks);
    if (!status && asprintf(&path, "%.*s.%016" PRIx64 ".redacted",
                            (int)tokmap_i_prefix_bytes(prefix), prefix, id) < 0)
        return FAIL_MEMORY(err);
    const int error = status ? 0 : tokmap_i_file_rename_over(w->names.token_partial, path);
    if (error)
        status = FAIL_IO(err, error, "%s: cannot give the finished file this name", path);
    const tokmap_i_token_file copy = {
        .path = path, .n_tokens = file->n_tokens, .token_offset = file->token_offset};
    if (!status)
        status = tokmap_i_append_segment(w, &copy, err);
    free(path);
    return status;
}

/* ---- Files of a dataset that is replaced ---- */

/* Whether a file of the old dataset is used by nothing else: redact_segment wrote it beside the
 * output, and neither the new dataset nor the source uses it, under any name. False if this cannot
 * be decided. */
static bool is_unused(const redact_job *job, const char *path, uint64_t n_bytes)
{
    const tokmap_writer *w = job->a.w;
    const tokmap_i_bytes *new_names = &w->index->segment_names;
    const char *prefix = w->names.index_path, *name = name_in_path(path);
    const size_t n = tokmap_i_prefix_bytes(prefix);
    bool is_unused =
        strncmp(path, prefix, n) == 0 && path[n] == '.' &&
        strspn(path + n + 1, "0123456789abcdef") == 16 &&
        strcmp(path + n + 1 + 16, ".redacted") == 0 &&
        !(new_names->n_bytes && memmem(new_names->data, new_names->n_bytes, name, strlen(name)));
    for (uint64_t i = 0; is_unused && i < job->a.ds->n_files; i++) {
        tokmap_i_token_file *file = &job->a.ds->files[i];
        tokmap_i_named_file opened;
        tokmap_i_file_stat stat;
        if (tokmap_i_token_file_bytes(job->a.ds, file) != n_bytes)
            continue;
        if (tokmap_i_token_file_borrow(job->a.ds, file, &opened, NULL))
            return false;
        is_unused = !tokmap_i_file_stat_fd(opened.fd, &stat) && !tokmap_i_file_is(path, &stat);
        tokmap_i_token_file_give_back(file, &opened);
    }
    return is_unused;
}

/* Lists the files of the old dataset that are removed after it is replaced: they have the tokens of
 * documents that are redacted now. */
static tokmap_status find_unused(redact_job *job, tokmap_error *err)
{
    tokmap_i_names *names = &job->a.w->names;
    tokmap_dataset *old = NULL;
    tokmap_status status = TOKMAP_OK;
    if (!names->replace || tokmap_dataset_open_index(&old, names->index_path, NULL))
        return TOKMAP_OK;
    for (uint64_t i = 0; !status && i < old->n_files; i++) {
        const char *path = old->files[i].path;
        if (is_unused(job, path, tokmap_i_token_file_bytes(old, &old->files[i])) &&
            !tokmap_i_bytes_append(&names->unused, path, strlen(path) + 1))
            status = FAIL_MEMORY(err);
    }
    tokmap_dataset_close(old);
    return status;
}

/* ---- All token files ---- */

static tokmap_status write_tokens(redact_job *job, tokmap_error *err)
{
    const tokmap_dataset *ds = job->a.ds;
    const tokmap_i_header *h = &ds->header;
    tokmap_writer *w = job->a.w;
    const uint8_t *old = ds->index_map + tokmap_i_section_find(h, TOKMAP_I_CHECKSUMS)->offset;
    tokmap_status status = next_document(job, err);
    for (tokmap_i_token_file *file = ds->files; !status && file < ds->files + ds->n_files; file++) {
        const uint64_t n_blocks = div_up(file->n_tokens * h->token_bytes, TOKMAP_I_BLOCK_BYTES);
        const bool stays = job->now.first_token >= file->first_token + file->n_tokens;
        if (!ds->is_joined)
            status = redact_file(job, file, n_blocks, err);
        else if (!stays)
            status = redact_segment(job, file, n_blocks, err);
        else if (file->n_tokens > 0)
            status = tokmap_i_append_segment(w, file, err);
        if (!status && ds->is_joined && stays)
            status =
                tokmap_i_progress_add(&job->a.progress, tokmap_i_token_file_bytes(ds, file), err);
        job->counts.n_linked += ds->is_joined && stays && file->n_tokens > 0;
    }
    if (!status)
        status = tokmap_i_index_writer_blocks(w->index, job->a.checksums,
                                              (size_t)job->a.checksums_bytes, err);
    /* If the largest id ends documents, it may be in other blocks only. */
    for (uint64_t b = 0; !status && b < job->a.checksums_bytes / 8; b++)
        if (w->header.largest_id < h->largest_id &&
            !memcmp(old + 8 * b, job->a.checksums + 8 * b, 8))
            status = redact_block(job, b, err);
    w->header.token_offset = h->token_offset;
    w->n_tokens = h->n_tokens;
    tokmap_i_content_hash_join(
        &job->change, &(tokmap_i_content_hash){.n_bytes = 4 * (h->n_tokens - job->hashed)});
    for (int k = 0; k < 2; k++)
        w->header.tokens_hash.crc[k] = h->tokens_hash.crc[k] ^ job->change.crc[k];
    return status;
}

tokmap_status tokmap_writer_redact(tokmap_writer *w, const tokmap_dataset *ds,
                                   const uint64_t *documents, uint64_t n_documents,
                                   tokmap_redact_info *info, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_redact_info, bytes_written)};
    const bool complete = ds && info && (documents || n_documents == 0);
    const bool is_joined = ds && ds->is_joined;
    tokmap_status status = tokmap_i_writer_enter(
        w, complete, is_joined ? TOKMAP_I_OUTPUT_JOINED : TOKMAP_I_OUTPUT_NEW, __func__, err);
    if (status || !complete)
        return status;
    const tokmap_i_header *h = &ds->header;
    uint64_t *list = calloc((size_t)n_documents + 1, sizeof *list);
    redact_job job = {
        .a = {.w = w,
              .ds = ds,
              .redacted = list,
              .reader.file.fd = -1,
              .progress = tokmap_i_writer_progress(w, ds->token_file_bytes, h->n_documents)},
        .left = list,
        .filler = h->largest_id - (h->largest_id == h->eod_id && h->eod_id > 0)};
    status = list ? tokmap_i_check_struct(info, &kind, &w->failure) : FAIL_MEMORY(&w->failure);
    if (!status && (w->n_tokens > 0 || w->index->n_documents > 0 || w->options.resumable))
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: must be empty, and not resumable",
                      w->names.index_path);
    for (uint64_t i = 0; !status && i < n_documents; i++) {
        list[i] = documents[i];
        if (list[i] >= h->n_documents || (i > 0 && list[i] <= list[i - 1]))
            status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                          "%s: documents[%" PRIu64 "] is %" PRIu64 ": must ascend, below %" PRIu64,
                          ds->index_path, i, list[i], h->n_documents);
    }
    if (!status) {
        list[n_documents] = UINT64_MAX;
        status = tokmap_i_append_open(&job.a, &w->failure);
    }
    if (!status)
        status = write_tokens(&job, &w->failure);
    if (!status)
        status = find_unused(&job, &w->failure);
    if (!status)
        status = tokmap_i_append_index(&job.a, &w->failure);
    if (!status)
        status = tokmap_i_give_struct(info, &job.counts, &kind, &w->failure);
    w->is_whole = true;
    tokmap_i_append_close(&job.a);
    free(list);
    return tokmap_i_writer_leave(w, status, err);
}
