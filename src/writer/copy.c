/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - a flat dataset from a joined one, by many processes: each copies a share of the tokens
 * to P.bin.partial, and the last one writes the index and gives the names.
 *
 * The file has the tokens, at their places, and after them a record for each unit of 16 MiB, which
 * is written when the unit is on the disk. docs/FORMAT.md section 11. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/status.h"
#include "dataset/token_files.h"
#include "writer/writer.h"

#define MOST_PARTS (UINT64_C(1) << 32)

enum {
    UNIT_BLOCKS = 16,
    UNIT_BYTES = UNIT_BLOCKS * TOKMAP_I_BLOCK_BYTES,
    MOST_PENDING = 16,
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

typedef struct copy_job {
    const tokmap_dataset *ds;
    tokmap_i_named_file to;
    int index_fd; /* of ds */
    uint64_t n_bytes, n_units, records_at, file_bytes;
    uint8_t *unit, *block, *records;
    uint64_t pending[MOST_PENDING]; /* units that have been written, but not flushed */
    size_t n_pending;
} copy_job;

/* Opens the file of the tokens and gives it its size. A second name would be another file that we
 * would write to. Close the job in any case; that does not close *fd. */
static tokmap_status open_job(copy_job *job, const tokmap_dataset *ds, const char *path, int *fd,
                              tokmap_error *err)
{
    const uint64_t n_bytes = ds->header.n_tokens * ds->header.token_bytes;
    tokmap_i_file_stat stat = {0};
    int error = tokmap_i_file_open_or_create(path, fd);
    if (!error)
        error = tokmap_i_file_stat_fd(*fd, &stat);
    if (error)
        return FAIL_IO(err, error, "%s: cannot create", path);
    if (stat.n_names > 1)
        return FAIL(err, TOKMAP_ERR_EXISTS, "%s: has a second name (a hard link); remove it", path);
    *job = (copy_job){.ds = ds,
                      .to = {*fd, path},
                      .index_fd = -1,
                      .n_bytes = n_bytes,
                      .n_units = div_up(n_bytes, UNIT_BYTES),
                      .records_at = round_up(n_bytes, RECORD_BYTES),
                      .unit = malloc(UNIT_BYTES),
                      .block = malloc(TOKMAP_I_BLOCK_BYTES),
                      .records = calloc(MOST_PENDING, RECORD_BYTES)};
    job->file_bytes = job->records_at + job->n_units * RECORD_BYTES;
    if (!job->unit || !job->block || !job->records)
        return FAIL_MEMORY(err);
    if (stat.n_bytes != job->file_bytes)
        error = tokmap_i_file_resize(*fd, job->file_bytes);
    if (error)
        return FAIL_IO(err, error, "%s: cannot make it %" PRIu64 " bytes large", path,
                       job->file_bytes);
    return tokmap_i_dataset_open_index(ds, &job->index_fd, err);
}

static void close_job(copy_job *job)
{
    tokmap_i_file_close(job->index_fd);
    free(job->unit);
    free(job->block);
    free(job->records);
}

/* ---- Units ---- */

static size_t unit_bytes(const copy_job *job, uint64_t unit)
{
    return (size_t)MIN(job->n_bytes - unit * UNIT_BYTES, UNIT_BYTES);
}

/* Reads and checks the whole block of the source that holds a token. */
static tokmap_status read_block(copy_job *job, uint64_t token, tokmap_i_token_piece *piece,
                                tokmap_error *err)
{
    const tokmap_dataset *ds = job->ds;
    const tokmap_i_token_file *file = tokmap_i_file_of_token(ds, token);
    const uint64_t block = file->first_block + (token - file->first_token) *
                                                   ds->header.token_bytes / TOKMAP_I_BLOCK_BYTES;
    const uint64_t checksums = tokmap_i_section_find(&ds->header, TOKMAP_I_CHECKSUMS)->offset;
    uint8_t checksum[8];
    *piece = tokmap_i_block_piece(ds, block);
    const tokmap_status status =
        tokmap_i_read_exactly((tokmap_i_named_file){job->index_fd, ds->index_path},
                              checksums + 8 * block, sizeof checksum, checksum, err);
    return status ? status
                  : tokmap_i_append_read_block(ds, block, load_le64(checksum), job->block, err);
}

/* ---- Records ---- */

static void begin_record(const copy_job *job, uint64_t unit, uint8_t *record)
{
    memset(record, 0, RECORD_BYTES);
    memcpy(record, magic, sizeof magic);
    memcpy(record + AT_DATASET_ID, job->ds->header.dataset_id, 16);
    store_le64(record + AT_UNIT, unit);
    store_le64(record + AT_TOKEN_BYTES, job->ds->header.token_bytes);
}

/* Whether the unit is done; then `record` is its record. */
static tokmap_status read_record(const copy_job *job, uint64_t unit, uint8_t *record, bool *done,
                                 tokmap_error *err)
{
    uint8_t wanted[RECORD_BYTES];
    const tokmap_status status = tokmap_i_read_exactly(
        job->to, job->records_at + unit * RECORD_BYTES, RECORD_BYTES, record, err);
    begin_record(job, unit, wanted);
    *done = !status && memcmp(record, wanted, AT_HASH) == 0 &&
            load_le64(record + AT_CHECKSUM) == tokmap_i_checksum(record, AT_CHECKSUM);
    return status;
}

static tokmap_status sync_file(const copy_job *job, tokmap_error *err)
{
    return CHECK_IO(err, tokmap_i_file_sync(job->to.fd), "%s: cannot write to the disk",
                    job->to.name);
}

static tokmap_status write_at(const copy_job *job, const uint8_t *data, size_t n_bytes,
                              uint64_t offset, tokmap_error *err)
{
    return CHECK_IO_AT(err, tokmap_i_file_write(job->to.fd, data, n_bytes, offset), offset,
                       "%s: cannot write", job->to.name);
}

/* What a record says must be on the disk before it. */
static tokmap_status write_records(copy_job *job, tokmap_error *err)
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
static tokmap_status copy_unit(copy_job *job, uint64_t unit, tokmap_error *err)
{
    static const uint8_t none[RECORD_BYTES];
    const uint32_t width = job->ds->header.token_bytes;
    const size_t n_bytes = unit_bytes(job, unit);
    const uint64_t first = unit * UNIT_BYTES / width, n = n_bytes / width;
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
        status = write_at(job, job->unit, n_bytes, unit * UNIT_BYTES, err);
    if (status)
        return status;
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

/* Copies the units of [first, end) that are not done, checks them, and makes them durable. */
static tokmap_status copy_units(copy_job *job, uint64_t first, uint64_t end, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (uint64_t unit = first; !status && unit < end; unit++)
        status = copy_unit(job, unit, err);
    return status ? status : write_records(job, err);
}

/* All units are done: adds their block checksums to the index, and their tokens to the hash. */
static tokmap_status collect_units(copy_job *job, tokmap_i_index_writer *index,
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

/* ---- The calls ---- */

static tokmap_status take_options(tokmap_copy_options *o, const tokmap_copy_options *options,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_copy_options, replace)};
    *o = (tokmap_copy_options){0};
    tokmap_status status = options ? tokmap_i_take_options(o, options, &kind, err) : TOKMAP_OK;
    if (!status)
        status = tokmap_i_check_flag("replace", o->replace, err);
    o->n_parts = MAX(o->n_parts, 1);
    if (!status && (o->part >= o->n_parts || o->n_parts > MOST_PARTS))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "part is %" PRIu64 " of %" PRIu64 " parts: must be below, at most 2^32",
                      o->part, o->n_parts);
    return status;
}

/* ---- A part ---- */

/* The first of several processes removes what was left of other writers, with the lock for itself;
 * if it must not copy, it removes the file of the lock too. Then it shares the lock. In between
 * another process may have it for itself, so what is copied is compared in any case. */
static tokmap_status share_lock(tokmap_i_names *n, const tokmap_dataset *ds, int *fd,
                                tokmap_error *err)
{
    uint8_t mine[24], theirs[24]; /* what is copied: dataset_id, u64 token_bytes */
    size_t n_read = 0;
    memcpy(mine, ds->header.dataset_id, 16);
    store_le64(mine + 16, ds->header.token_bytes);
    tokmap_status status = tokmap_i_names_lock(n, fd, err);
    if (!status && n->has_journal)
        status = FAIL(err, TOKMAP_ERR_EXISTS,
                      "%s: is the journal of an unfinished run that can be resumed", n->journal);
    if (!status)
        status = tokmap_i_names_claim(n, err);
    int error = status ? 0 : tokmap_i_file_write(*fd, mine, sizeof mine, 0);
    if (error)
        return FAIL_IO(err, error, "%s: cannot write", n->index_partial);
    if (status && status != TOKMAP_ERR_LOCKED)
        return status;
    n->owns_partials = false; /* they stay, for the other parts */
    tokmap_i_error_clear(err);
    error = tokmap_i_file_lock_shared(n->index_partial, fd);
    if (error == EWOULDBLOCK)
        return FAIL(err, TOKMAP_ERR_LOCKED, "%s: another writer has this output open",
                    n->index_partial);
    if (error)
        return FAIL_IO(err, error, "%s: %s", n->index_partial, tokmap_i_file_lock_text(error));
    error = tokmap_i_file_read(*fd, theirs, sizeof theirs, 0, &n_read);
    if (error)
        return FAIL_IO(err, error, "%s: cannot read", n->index_partial);
    if (n_read == sizeof theirs && memcmp(theirs, mine, sizeof mine) == 0)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_LOCKED,
                "%s: another dataset is being copied to this output; wait for it, or choose "
                "another name",
                n->index_partial);
}

tokmap_status tokmap_writer_copy_part(const tokmap_dataset *ds, const char *prefix,
                                      const tokmap_copy_options *options, tokmap_error *err)
{
    tokmap_copy_options o;
    tokmap_i_names names = {.output = TOKMAP_I_OUTPUT_NEW, .keep_tokens = true};
    copy_job job = {.index_fd = -1};
    int lock_fd = -1, fd = -1;
    tokmap_i_error_clear(err);
    if (!ds || !prefix)
        return FAIL_NULL(err);
    tokmap_status status = take_options(&o, options, err);
    if (status)
        return status;
    names.replace = o.replace != 0;
    status = tokmap_i_names_open(&names, prefix, tokmap_i_prefix_bytes(prefix), ".bin", err);
    if (!status)
        status = share_lock(&names, ds, &lock_fd, err);
    if (!status)
        status = open_job(&job, ds, names.token_partial, &fd, err);
    if (!status)
        status = copy_units(&job, job.n_units * o.part / o.n_parts,
                            job.n_units * (o.part + 1) / o.n_parts, err);
    close_job(&job);
    tokmap_i_file_close(fd);
    tokmap_i_names_close(&names);
    tokmap_i_file_close(lock_fd);
    return status;
}

/* ---- The end ---- */

tokmap_status tokmap_writer_copy_finish(const tokmap_dataset *ds, const char *prefix,
                                        const tokmap_copy_options *options, tokmap_error *err)
{
    tokmap_copy_options o;
    copy_job job = {.index_fd = -1};
    tokmap_i_error_clear(err);
    if (!ds || !prefix)
        return FAIL_NULL(err);
    const tokmap_i_content_hash *hash = &ds->header.tokens_hash;
    size_t n_bytes;
    const char *json = tokmap_dataset_metadata(ds, &n_bytes);
    tokmap_status status = take_options(&o, options, err);
    tokmap_writer *w = status ? NULL : tokmap_i_writer_new();
    if (status || !w)
        return status ? status : FAIL_MEMORY(err);
    w->names.replace = o.replace != 0;
    w->names.keep_tokens = true;
    w->header.vocab_size = ds->header.vocab_size;
    w->header.token_bytes = ds->header.token_bytes;
    w->header.eod_id = ds->header.eod_id;
    status = tokmap_i_writer_begin(w, prefix, tokmap_i_prefix_bytes(prefix), ".bin", err);
    tokmap_i_append a = {.w = w, .ds = ds, .reader.file.fd = -1};
    if (!status)
        status = tokmap_i_append_open(&a, err);
    if (!status)
        status = open_job(&job, ds, w->names.token_partial, &w->token_fd, err);
    if (!status)
        status = copy_units(&job, 0, job.n_units, err);
    if (!status)
        status = collect_units(&job, w->index, &w->header.tokens_hash, err);
    if (!status && memcmp(w->header.tokens_hash.crc, hash->crc, sizeof hash->crc) != 0)
        status = tokmap_i_fail_damaged(ds, 0, TOKMAP_I_WRONG_TOKENS_HASH, err);
    w->n_tokens = ds->header.n_tokens;
    w->header.largest_id = ds->header.largest_id;
    w->token_tail = job.file_bytes - job.n_bytes;
    if (!status)
        status = tokmap_i_append_index(&a, err);
    if (!status)
        status = tokmap_writer_set_metadata(w, json, n_bytes, err);
    if (!status)
        status = tokmap_writer_finish(w, err);
    close_job(&job);
    tokmap_i_append_close(&a);
    tokmap_writer_close(w);
    return status;
}
