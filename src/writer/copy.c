/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/copy.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/status.h"

enum {
    UNIT_BLOCKS = 16,
    UNIT_BYTES = UNIT_BLOCKS * TOKMAP_I_BLOCK_BYTES,
    /* A page of its own, so that two machines never write to the same one. */
    RECORD_BYTES = 4096,
    AT_DATASET_ID = 8,
    AT_UNIT = 24,
    AT_TOKEN_BYTES = 32,
    AT_HASH = 40,
    AT_BLOCKS = 56,
    AT_CHECKSUM = AT_BLOCKS + 8 * UNIT_BLOCKS
};

static const uint8_t magic[8] = {0x89, 'T', 'M', 'C', '\r', '\n', 0x1a, '\n'};

#define MOST_PENDING (sizeof((tokmap_i_copy_job *)0)->pending / sizeof(uint64_t))

/* ---- Open and close ---- */

uint64_t tokmap_i_copy_file_bytes(const tokmap_i_copy_job *job)
{
    return job->records_at + job->n_units * RECORD_BYTES;
}

tokmap_status tokmap_i_copy_open(tokmap_i_copy_job *job, const tokmap_dataset *ds,
                                 tokmap_i_named_file to, tokmap_error *err)
{
    const uint64_t n_bytes = ds->header.n_tokens * ds->header.token_bytes;
    tokmap_i_file_stat stat = {0};
    *job = (tokmap_i_copy_job){.ds = ds,
                               .to = to,
                               .index_fd = -1,
                               .n_bytes = n_bytes,
                               .n_units = div_up(n_bytes, UNIT_BYTES),
                               .records_at = round_up(n_bytes, RECORD_BYTES),
                               .unit = malloc(UNIT_BYTES),
                               .block = malloc(TOKMAP_I_BLOCK_BYTES),
                               .records = calloc(MOST_PENDING, RECORD_BYTES)};
    if (!job->unit || !job->block || !job->records)
        return FAIL_MEMORY(err);
    int error = tokmap_i_file_stat_fd(to.fd, &stat);
    if (!error && stat.n_bytes != tokmap_i_copy_file_bytes(job))
        error = tokmap_i_file_resize(to.fd, tokmap_i_copy_file_bytes(job));
    if (error)
        return FAIL_IO(err, error, "%s: cannot make it %" PRIu64 " bytes large", to.name,
                       tokmap_i_copy_file_bytes(job));
    return tokmap_i_dataset_open_index(ds, &job->index_fd, err);
}

void tokmap_i_copy_close(tokmap_i_copy_job *job)
{
    tokmap_i_file_close(job->index_fd);
    free(job->unit);
    free(job->block);
    free(job->records);
}

/* ---- Units ---- */

static size_t unit_bytes(const tokmap_i_copy_job *job, uint64_t unit)
{
    return (size_t)MIN(job->n_bytes - unit * UNIT_BYTES, UNIT_BYTES);
}

/* Reads and checks the whole block of the source that holds a token. */
static tokmap_status read_block(tokmap_i_copy_job *job, uint64_t token, tokmap_i_token_piece *piece,
                                tokmap_error *err)
{
    const tokmap_dataset *ds = job->ds;
    const tokmap_i_token_file *file = tokmap_i_file_of_token(ds, token);
    const uint64_t block = file->first_block + (token - file->first_token) *
                                                   ds->header.token_bytes / TOKMAP_I_BLOCK_BYTES;
    const uint64_t checksums = tokmap_i_section_find(&ds->header, TOKMAP_I_CHECKSUMS)->offset;
    uint8_t checksum[8];
    *piece = tokmap_i_block_piece(ds, block);
    tokmap_status status = tokmap_i_token_piece_read(ds, piece, job->block, err);
    if (!status)
        status = tokmap_i_read_exactly((tokmap_i_named_file){job->index_fd, ds->index_path},
                                       checksums + 8 * block, sizeof checksum, checksum, err);
    if (status || tokmap_i_checksum(job->block, (size_t)piece->n_bytes) == load_le64(checksum))
        return status;
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, piece->first_byte,
                   "%s: damaged: block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64
                   ") does not match its checksum",
                   piece->file->path, block, piece->first_byte,
                   piece->first_byte + piece->n_bytes - 1);
}

/* ---- Records ---- */

static void begin_record(const tokmap_i_copy_job *job, uint64_t unit, uint8_t *record)
{
    memset(record, 0, RECORD_BYTES);
    memcpy(record, magic, sizeof magic);
    memcpy(record + AT_DATASET_ID, job->ds->header.dataset_id, 16);
    store_le64(record + AT_UNIT, unit);
    store_le64(record + AT_TOKEN_BYTES, job->ds->header.token_bytes);
}

/* Whether the unit is done; then `record` is its record. */
static tokmap_status read_record(const tokmap_i_copy_job *job, uint64_t unit, uint8_t *record,
                                 bool *done, tokmap_error *err)
{
    uint8_t wanted[RECORD_BYTES];
    const tokmap_status status = tokmap_i_read_exactly(
        job->to, job->records_at + unit * RECORD_BYTES, RECORD_BYTES, record, err);
    begin_record(job, unit, wanted);
    *done = !status && memcmp(record, wanted, AT_HASH) == 0 &&
            load_le64(record + AT_CHECKSUM) == tokmap_i_checksum(record, AT_CHECKSUM);
    return status;
}

static tokmap_status sync_file(const tokmap_i_copy_job *job, tokmap_error *err)
{
    return CHECK_IO(err, tokmap_i_file_sync(job->to.fd), "%s: cannot write to the disk",
                    job->to.name);
}

static tokmap_status write_at(const tokmap_i_copy_job *job, const uint8_t *data, size_t n_bytes,
                              uint64_t offset, tokmap_error *err)
{
    return CHECK_IO_AT(err, tokmap_i_file_write(job->to.fd, data, n_bytes, offset), offset,
                       "%s: cannot write", job->to.name);
}

/* What a record says must be on the disk before it. */
static tokmap_status write_records(tokmap_i_copy_job *job, tokmap_error *err)
{
    if (job->n_pending == 0)
        return TOKMAP_OK;
    tokmap_status status = sync_file(job, err);
    for (size_t i = 0; !status && i < job->n_pending; i++)
        status = write_at(job, job->records + i * RECORD_BYTES, RECORD_BYTES,
                          job->records_at + job->pending[i] * RECORD_BYTES, err);
    job->n_pending = 0;
    return status ? status : sync_file(job, err);
}

/* What a record of another dataset, whose copy was not finished, says must not stay with other
 * tokens: the next copy of that dataset would take them for its own. */
static tokmap_status copy_unit(tokmap_i_copy_job *job, uint64_t unit, tokmap_error *err)
{
    static const uint8_t none[RECORD_BYTES];
    const uint32_t width = job->ds->header.token_bytes;
    const uint64_t first = unit * UNIT_BYTES / width, n = unit_bytes(job, unit) / width;
    uint8_t *record = job->records + job->n_pending * RECORD_BYTES;
    bool done;
    tokmap_status status = read_record(job, unit, record, &done, err);
    if (status || done)
        return status;
    for (uint64_t at = 0; !status && at < n;) {
        tokmap_i_token_piece piece;
        status = read_block(job, first + at, &piece, err);
        const uint64_t skip = first + at - piece.first_token;
        const uint64_t n_now = MIN(piece.n_tokens - skip, n - at);
        if (!status)
            memcpy(job->unit + at * width, job->block + skip * width, (size_t)n_now * width);
        at += n_now;
    }
    if (!status && memcmp(record, none, RECORD_BYTES) != 0) {
        status = write_at(job, none, RECORD_BYTES, job->records_at + unit * RECORD_BYTES, err);
        if (!status)
            status = sync_file(job, err);
    }
    if (!status)
        status = write_at(job, job->unit, unit_bytes(job, unit), unit * UNIT_BYTES, err);
    if (status)
        return status;
    const size_t n_bytes = unit_bytes(job, unit);
    tokmap_i_content_hash hash = {0};
    begin_record(job, unit, record);
    tokmap_i_content_hash_add_tokens(&hash, job->unit, n_bytes / width, width);
    tokmap_i_content_hash_store(&hash, record + AT_HASH);
    for (size_t at = 0; at < n_bytes; at += TOKMAP_I_BLOCK_BYTES)
        store_le64(record + AT_BLOCKS + at / TOKMAP_I_BLOCK_BYTES * 8,
                   tokmap_i_checksum(job->unit + at, MIN(n_bytes - at, TOKMAP_I_BLOCK_BYTES)));
    store_le64(record + AT_CHECKSUM, tokmap_i_checksum(record, AT_CHECKSUM));
    job->pending[job->n_pending++] = unit;
    return job->n_pending == MOST_PENDING ? write_records(job, err) : TOKMAP_OK;
}

tokmap_status tokmap_i_copy_units(tokmap_i_copy_job *job, uint64_t first, uint64_t end,
                                  tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (uint64_t unit = first; !status && unit < end; unit++)
        status = copy_unit(job, unit, err);
    return status ? status : write_records(job, err);
}

tokmap_status tokmap_i_copy_collect(tokmap_i_copy_job *job, tokmap_i_index_writer *index,
                                    tokmap_i_content_hash *hash, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (uint64_t unit = 0; !status && unit < job->n_units; unit++) {
        bool done;
        status = read_record(job, unit, job->records, &done, err);
        if (!status && !done)
            status = FAIL(err, TOKMAP_ERR_CORRUPT,
                          "%s: was changed by another process while it was written", job->to.name);
        const size_t n_bytes = unit_bytes(job, unit);
        if (!status)
            status = tokmap_i_index_writer_blocks(index, job->records + AT_BLOCKS,
                                                  8 * (size_t)div_up(n_bytes, TOKMAP_I_BLOCK_BYTES),
                                                  err);
        const tokmap_i_content_hash next = tokmap_i_content_hash_load(
            job->records + AT_HASH, n_bytes / job->ds->header.token_bytes * 4);
        tokmap_i_content_hash_join(hash, &next);
    }
    return status;
}
