/* append_dataset.c - appends a whole dataset to the output of a writer, for merging.
 *
 * The tokens are always read and checked. Where the file system can copy them itself (by sharing
 * blocks on XFS and btrfs, on the server with NFS), they are not written again. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "dataset/index_reader.h"
#include "dataset/token_files.h"
#include "system/platform.h"
#include "base/status.h"
#include "format/token_scan.h"
#include "writer/writer.h"

typedef struct append_job {
    tokmap_writer *w;
    const tokmap_dataset *ds;
    tokmap_i_index_reader reader;
    uint64_t first_document, first_token; /* where the dataset begins in the output */
    uint8_t *block;
    bool copy_in_place; /* until the file system refuses */
} append_job;

static tokmap_status check_fit(const append_job *job, tokmap_error *err)
{
    const tokmap_i_header *h = &job->ds->header;
    tokmap_writer *w = job->w;
    if (!w->names.writes_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: is adopted, so nothing can be appended to it",
                    w->names.token_path);
    if (h->token_bytes != w->header.token_bytes)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has tokens of %" PRIu32 " bytes, but the output has tokens of %" PRIu32,
                    job->ds->token_path, h->token_bytes, w->header.token_bytes);
    if (w->header.vocab_size > 0 && h->n_tokens > 0 && h->largest_id >= w->header.vocab_size)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has id %" PRIu32 ", but the vocabulary size of the output is %" PRIu64,
                    job->ds->token_path, h->largest_id, w->header.vocab_size);
    if (h->n_tokens > 0 && h->n_documents == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: its document boundaries are not known",
                    job->ds->token_path);
    if (tokmap_i_index_writer_last_end(w->index) != w->n_tokens || (w->meta && w->meta->has_row))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: a document is still open", w->names.token_path);
    if (h->n_tokens > TOKMAP_I_MAX_TOKENS - w->n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than 2^48 tokens", w->names.token_path);
    return TOKMAP_OK;
}

static bool copy_block(append_job *job, const tokmap_i_token_piece *block, uint64_t to_byte)
{
    tokmap_i_named_file from;
    if (!job->copy_in_place || tokmap_i_token_file_borrow(job->ds, block->file, &from, NULL))
        return false;
    const tokmap_i_copy copy = {from.fd, job->w->token_fd, block->first_byte, to_byte,
                                block->n_bytes};
    job->copy_in_place = tokmap_i_file_copy(&copy) == 0;
    tokmap_i_token_file_give_back(block->file, &from);
    return job->copy_in_place;
}

static tokmap_status write_block(append_job *job, const tokmap_i_token_piece *block,
                                 tokmap_error *err)
{
    tokmap_writer *w = job->w;
    const uint64_t to_byte = w->n_tokens * w->header.token_bytes;
    if (copy_block(job, block, to_byte))
        return TOKMAP_OK;
    const int error = tokmap_i_file_write(w->token_fd, job->block, (size_t)block->n_bytes, to_byte);
    return error ? FAIL_IO_AT(err, error, to_byte, "%s: cannot write", w->names.token_partial)
                 : TOKMAP_OK;
}

static tokmap_status append_block(append_job *job, uint64_t block_index, uint64_t checksum,
                                  tokmap_error *err)
{
    const tokmap_i_header *h = &job->ds->header;
    tokmap_writer *w = job->w;
    const tokmap_i_token_piece block = tokmap_i_block_piece(job->ds, block_index);
    tokmap_status status = tokmap_i_token_piece_read(job->ds, &block, job->block, err);
    if (status)
        return status;
    if (tokmap_i_checksum(job->block, (size_t)block.n_bytes) != checksum)
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
    status = write_block(job, &block, err);
    if (!status)
        status = tokmap_i_writer_hash(w, job->block, (size_t)block.n_bytes, err);
    w->n_tokens += block.n_tokens;
    return status;
}

static tokmap_status append_tokens(append_job *job, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&job->ds->header, TOKMAP_I_CHECKSUMS);
    tokmap_status status = tokmap_i_writer_flush(job->w, err);
    if (!status)
        status = tokmap_i_index_reader_checksum(&job->reader, section, err);
    uint8_t *checksums = NULL;
    if (!status)
        status = tokmap_i_index_reader_load(&job->reader, section, &checksums, err);
    tokmap_i_content_hash expected = job->w->header.tokens_hash;
    tokmap_i_content_hash_join(&expected, &job->ds->header.tokens_hash);
    for (uint64_t i = 0; !status && i < section->n_bytes / 8; i++)
        status = append_block(job, i, load_le64(checksums + 8 * i), err);
    free(checksums);
    const tokmap_i_content_hash *now = &job->w->header.tokens_hash;
    if (!status && (now->crc[0] != expected.crc[0] || now->crc[1] != expected.crc[1]))
        status = FAIL(err, TOKMAP_ERR_CORRUPT,
                      "%s: damaged: the hash of the tokens in its header is not theirs",
                      job->ds->index_path);
    return status;
}

static tokmap_status add_ends(void *context, const uint64_t *ends, uint32_t n_ends,
                              tokmap_error *err)
{
    append_job *job = context;
    for (uint32_t i = 0; i < n_ends; i++) {
        const tokmap_status status =
            tokmap_i_index_writer_document(job->w->index, job->first_token + ends[i], err);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

static tokmap_status append_documents(append_job *job, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&job->ds->header, TOKMAP_I_DOCUMENTS);
    const tokmap_status status = tokmap_i_index_reader_checksum(&job->reader, section, err);
    return status ? status : tokmap_i_index_reader_documents(&job->reader, add_ends, job, err);
}

static tokmap_status add_input(append_job *job, const tokmap_input_info *info, tokmap_error *err)
{
    const tokmap_i_new_input input = {
        .name = info->name,
        .name_bytes = info->name_bytes,
        .end_document = job->first_document + info->first_document + info->n_documents,
        .end_token = job->first_token + info->first_token + info->n_tokens,
        .input_bytes = info->input_bytes,
        .input_checksum = info->input_checksum,
    };
    return tokmap_i_writer_input(job->w, &input, err);
}

/* A dataset that names no input files still gets an entry, because the table must cover its
 * documents. So do documents before it that have none: they would otherwise count as part of its
 * first input. */
static tokmap_status append_inputs(append_job *job, tokmap_error *err)
{
    const tokmap_i_header *h = &job->ds->header;
    const tokmap_i_section *section = tokmap_i_section_find(h, TOKMAP_I_INPUTS);
    tokmap_i_inputs inputs = job->ds->inputs;
    uint8_t *bytes = NULL;
    tokmap_status status = tokmap_i_index_reader_checksum(&job->reader, section, err);
    if (!status)
        status = tokmap_i_index_reader_load(&job->reader, section, &bytes, err);
    if (status)
        return status;
    inputs.bytes = bytes;
    const char *problem = tokmap_i_inputs_check(&inputs);
    if (problem)
        status = FAIL_AT(err, TOKMAP_ERR_CORRUPT, section->offset, "%s: damaged: %s",
                         job->ds->index_path, problem);
    const tokmap_input_info unnamed_before = {.name = ""};
    if (!status && job->w->input_end_document < job->first_document)
        status = add_input(job, &unnamed_before, err);
    for (uint64_t i = 0; !status && i < inputs.n_inputs; i++) {
        tokmap_input_info input;
        status = tokmap_i_inputs_get(&inputs, i, &input);
        if (!status)
            status = add_input(job, &input, err);
    }
    const tokmap_input_info unnamed = {
        .name = "", .n_documents = h->n_documents, .n_tokens = h->n_tokens};
    if (!status && inputs.n_inputs == 0)
        status = add_input(job, &unnamed, err);
    free(bytes);
    return status;
}

static tokmap_status append_all(tokmap_writer *w, const tokmap_dataset *ds, tokmap_error *err)
{
    append_job job = {.w = w, .ds = ds, .copy_in_place = true};
    tokmap_status status = check_fit(&job, err);
    if (status)
        return status;
    status = tokmap_i_writer_fit_columns(w, ds, err);
    if (status)
        return status;
    job.first_document = tokmap_i_index_writer_n_documents(w->index);
    job.first_token = w->n_tokens;
    job.block = malloc(TOKMAP_I_BLOCK_BYTES);
    if (!job.block)
        return FAIL_MEMORY(err);
    status = tokmap_i_index_reader_open(&job.reader, ds, err);
    if (!status) {
        status = append_tokens(&job, err);
        if (!status)
            status = tokmap_i_writer_append_values(w, ds, err);
        if (!status)
            status = append_documents(&job, err);
        if (!status)
            status = append_inputs(&job, err);
        tokmap_i_index_reader_close(&job.reader);
    }
    free(job.block);
    return status;
}

tokmap_status tokmap_writer_append_dataset(tokmap_writer *w, const tokmap_dataset *ds,
                                           tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, err);
    return status ? status : tokmap_i_writer_leave(w, append_all(w, ds, &w->failure), err);
}
