/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - reads every byte of a dataset, without its maps, and checks it.
 *
 * First it checks the index, then the token blocks, in parallel, and then the documents, to find
 * those in bad blocks. Damage is reported at the end and in order, so that the report does not
 * depend on the number of threads. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "dataset/token_files.h"
#include "dataset/verify_meta.h"
#include "base/status.h"
#include "format/token_scan.h"
#include "system/platform_thread.h"

/* A piece is read at once and stays in the second-level cache until it is checked. Each slice of it
 * is checksummed and then scanned in the first-level cache. */
enum {
    PIECE_BYTES = 256 << 10,
    SLICE_BYTES = 16 << 10,
    DEFAULT_MAX_THREADS = 16
};

/* A block with a problem, or all blocks of a file that cannot be opened. */
typedef struct bad_block {
    uint64_t index;
    tokmap_i_token_piece piece;
    tokmap_damage_kind kind;
    int sys_errno;
    uint64_t at_byte; /* of the token file, where reading failed */
    uint64_t first_document, end_document;
    tokmap_error *err; /* NULL, or why the file cannot be opened */
} bad_block;

typedef struct verify_job {
    const tokmap_dataset *ds;
    tokmap_verify_options options;
    tokmap_i_index_reader reader;
    uint8_t *checksums;                  /* as stored; NULL if their section is damaged */
    bool *missing;                       /* which files cannot be opened */
    tokmap_i_content_hash *block_hashes; /* NULL: not all blocks are checked */
    uint64_t n_blocks;
    atomic_uint_fast64_t next_block;
    tokmap_i_mutex mutex; /* for all below */
    bad_block *bad;
    size_t n_bad, bad_capacity;
    size_t n_first_found, n_end_found; /* of bad, found so far in the pass over the documents */
    uint64_t n_documents_passed;
    uint64_t last_end;                    /* of the documents that were passed, */
    tokmap_i_content_hash documents_hash; /* and the hash of their lengths */
    uint32_t largest_id;
    uint64_t bytes_done, bytes_total;
    tokmap_status failure; /* an error that ended the check */
    tokmap_verify_report report;
    tokmap_error first;
    bool corrupt;
} verify_job;

static void report_damage(verify_job *job, tokmap_damage *damage)
{
    damage->struct_size = sizeof *damage;
    if (job->report.n_damages++ == 0)
        job->first = damage->error;
    if (damage->kind != TOKMAP_DAMAGE_UNREADABLE)
        job->corrupt = true;
    if (job->options.on_damage)
        job->options.on_damage(job->options.context, damage);
}

/* Reports a problem of the index. False if the file is not to blame, as when out of memory. */
static bool report_index(verify_job *job, const tokmap_i_section *section, tokmap_damage_kind kind,
                         const tokmap_error *error)
{
    if (error->status != TOKMAP_ERR_CORRUPT && error->status != TOKMAP_ERR_IO)
        return false;
    tokmap_damage damage = {
        .kind = error->status == TOKMAP_ERR_IO ? TOKMAP_DAMAGE_UNREADABLE : kind,
        .first_byte = section->offset,
        .n_bytes = section->n_bytes,
        .error = *error,
    };
    report_damage(job, &damage);
    return true;
}

static void report_progress(verify_job *job, uint64_t n_bytes)
{
    job->bytes_done += n_bytes;
    if (job->options.on_progress)
        job->options.on_progress(job->options.context, job->bytes_done, job->bytes_total);
}

/* ---- Token blocks ---- */

typedef struct block_reader {
    uint8_t *buffer; /* PIECE_BYTES */
    tokmap_i_hasher *hasher;
    uint32_t largest_id;
    tokmap_i_content_hash hash;
} block_reader;

static void check_piece(block_reader *r, size_t n_bytes, uint32_t token_bytes)
{
    for (size_t done = 0; done < n_bytes; done += SLICE_BYTES) {
        const size_t n = MIN(n_bytes - done, SLICE_BYTES);
        tokmap_i_hasher_add(r->hasher, r->buffer + done, n);
        tokmap_i_content_hash_add_tokens(&r->hash, r->buffer + done, n / token_bytes, token_bytes);
        const uint32_t largest =
            tokmap_i_largest_id(r->buffer + done, n / token_bytes, token_bytes);
        r->largest_id = MAX(r->largest_id, largest);
    }
}

static tokmap_status read_pieces(block_reader *r, tokmap_i_named_file file,
                                 const tokmap_i_token_piece *block, uint32_t token_bytes,
                                 tokmap_error *err)
{
    for (uint64_t done = 0; done < block->n_bytes;) {
        const size_t n = (size_t)MIN(block->n_bytes - done, PIECE_BYTES);
        const tokmap_status status =
            tokmap_i_read_exactly(file, block->first_byte + done, n, r->buffer, err);
        if (status)
            return status;
        check_piece(r, n, token_bytes);
        done += n;
    }
    return TOKMAP_OK;
}

static tokmap_status read_block(const verify_job *job, block_reader *r,
                                const tokmap_i_token_piece *block, tokmap_error *err)
{
    tokmap_i_named_file file;
    tokmap_i_hasher_reset(r->hasher);
    r->largest_id = 0;
    r->hash = (tokmap_i_content_hash){0};
    tokmap_status status = tokmap_i_token_file_borrow(job->ds, block->file, &file, err);
    if (status)
        return status;
    status = read_pieces(r, file, block, job->ds->header.token_bytes, err);
    tokmap_i_token_file_give_back(block->file, &file);
    return status;
}

/* False: out of memory. */
static bool note_bad(verify_job *job, const bad_block *bad)
{
    if (job->n_bad == job->bad_capacity) {
        const size_t capacity = MAX(job->bad_capacity * 2, 64);
        bad_block *more = realloc(job->bad, capacity * sizeof *more);
        if (!more) {
            job->failure = TOKMAP_ERR_MEMORY;
            return false;
        }
        job->bad = more;
        job->bad_capacity = capacity;
    }
    job->bad[job->n_bad++] = *bad;
    return true;
}

static void skip_block(verify_job *job, const tokmap_i_token_piece *block)
{
    tokmap_i_mutex_lock(&job->mutex);
    report_progress(job, block->n_bytes);
    tokmap_i_mutex_unlock(&job->mutex);
}

static void check_block(verify_job *job, block_reader *r, uint64_t block)
{
    tokmap_error err;
    const tokmap_i_token_piece piece = tokmap_i_block_piece(job->ds, block);
    if (job->missing[piece.file - job->ds->files]) {
        skip_block(job, &piece);
        return;
    }
    const tokmap_status status = read_block(job, r, &piece, &err);
    bad_block bad = {.index = block, .piece = piece};
    bool sound = false;
    if (status) {
        bad.kind = TOKMAP_DAMAGE_UNREADABLE;
        bad.sys_errno = err.sys_errno;
        bad.at_byte = err.file_offset;
    } else if (tokmap_i_hasher_get(r->hasher) != load_le64(job->checksums + 8 * block)) {
        bad.kind = TOKMAP_DAMAGE_BLOCK;
    } else if (r->largest_id > job->ds->header.largest_id) {
        bad.kind = TOKMAP_DAMAGE_CONTENT;
    } else {
        sound = true;
    }
    if (job->block_hashes)
        job->block_hashes[block] = r->hash;
    tokmap_i_mutex_lock(&job->mutex);
    if (!sound)
        note_bad(job, &bad);
    job->largest_id = MAX(job->largest_id, r->largest_id);
    job->report.n_blocks_checked++;
    job->report.bytes_read += status ? 0 : piece.n_bytes;
    report_progress(job, piece.n_bytes);
    tokmap_i_mutex_unlock(&job->mutex);
}

static void note_missing(verify_job *job, uint64_t i, const tokmap_error *err)
{
    tokmap_i_token_file *file = &job->ds->files[i];
    const bad_block bad = {
        .index = file->first_block,
        .piece = tokmap_i_first_piece(job->ds, file->first_token, file->n_tokens),
        .kind =
            err->status == TOKMAP_ERR_CORRUPT ? TOKMAP_DAMAGE_CONTENT : TOKMAP_DAMAGE_UNREADABLE,
        .err = malloc(sizeof *err),
    };
    if (!bad.err || err->status == TOKMAP_ERR_MEMORY) {
        free(bad.err);
        job->failure = TOKMAP_ERR_MEMORY;
        return;
    }
    *bad.err = *err;
    job->missing[i] = true;
    if (!note_bad(job, &bad))
        free(bad.err);
}

/* Opens each token file that is not open, so that one which is missing is one damage, and not one
 * for each of its blocks. */
static void check_files(verify_job *job)
{
    const tokmap_dataset *ds = job->ds;
    job->missing = calloc((size_t)MAX(ds->n_files, 1), sizeof *job->missing);
    if (!job->missing)
        job->failure = TOKMAP_ERR_MEMORY;
    for (uint64_t i = 0; i < ds->n_files && !job->failure; i++) {
        tokmap_i_named_file file;
        tokmap_error err;
        if (tokmap_i_token_file_borrow(ds, &ds->files[i], &file, &err))
            note_missing(job, i, &err);
        else
            tokmap_i_token_file_give_back(&ds->files[i], &file);
    }
}

/* The first block is always sampled, so that no sample is empty. */
static bool is_sampled(const verify_job *job, uint64_t block)
{
    if (job->options.sample >= 1 || block == 0)
        return true;
    uint8_t key[16];
    store_le64(key, job->options.seed);
    store_le64(key + 8, block);
    return (double)tokmap_i_checksum(key, sizeof key) < job->options.sample * 0x1p64;
}

static void check_blocks(void *context)
{
    verify_job *job = context;
    block_reader r = {malloc(PIECE_BYTES), tokmap_i_hasher_open(), 0, {{0, 0}, 0}};
    if (r.buffer && r.hasher) {
        uint64_t block;
        while ((block = atomic_fetch_add(&job->next_block, 1)) < job->n_blocks)
            if (is_sampled(job, block))
                check_block(job, &r, block);
    } else {
        tokmap_i_mutex_lock(&job->mutex);
        job->failure = TOKMAP_ERR_MEMORY;
        tokmap_i_mutex_unlock(&job->mutex);
    }
    free(r.buffer);
    tokmap_i_hasher_close(r.hasher);
}

static int by_index(const void *a, const void *b)
{
    const uint64_t x = ((const bad_block *)a)->index, y = ((const bad_block *)b)->index;
    return x < y ? -1 : x > y;
}

/* ---- The documents in bad blocks ---- */

static void hash_lengths(verify_job *job, const uint64_t *ends, uint32_t n_ends)
{
    uint8_t lengths[8 * TOKMAP_I_GROUP_DOCUMENTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_ends; i++) {
        store_le64(lengths + 8 * (size_t)n++, ends[i] - job->last_end);
        job->last_end = ends[i];
        if (n == TOKMAP_I_GROUP_DOCUMENTS || i + 1 == n_ends) {
            tokmap_i_content_hash_add(&job->documents_hash, lengths, 8 * (size_t)n);
            n = 0;
        }
    }
}

static uint64_t end_token_of(const bad_block *bad)
{
    return bad->piece.first_token + bad->piece.n_tokens;
}

static tokmap_status pass_documents(void *context, const uint64_t *ends, uint32_t n_ends,
                                    tokmap_error *err)
{
    (void)err;
    verify_job *job = context;
    for (uint32_t i = 0; i < n_ends; i++) {
        const uint64_t document = job->n_documents_passed + i;
        while (job->n_first_found < job->n_bad &&
               ends[i] > job->bad[job->n_first_found].piece.first_token)
            job->bad[job->n_first_found++].first_document = document;
        while (job->n_end_found < job->n_first_found &&
               ends[i] >= end_token_of(&job->bad[job->n_end_found]))
            job->bad[job->n_end_found++].end_document = document + 1;
    }
    hash_lengths(job, ends, n_ends);
    job->n_documents_passed += n_ends;
    return TOKMAP_OK;
}

static const char *what_is_bad(const bad_block *bad)
{
    if (bad->kind == TOKMAP_DAMAGE_BLOCK)
        return "does not match its checksum";
    if (bad->kind == TOKMAP_DAMAGE_CONTENT)
        return "has an id above the largest id in the header";
    return bad->sys_errno ? "cannot be read" : "is missing: the file was shortened";
}

static void report_block(verify_job *job, const bad_block *bad)
{
    const tokmap_i_token_piece *piece = &bad->piece;
    tokmap_damage damage = {
        .kind = bad->kind,
        .block_index = bad->index,
        .first_byte = piece->first_byte,
        .n_bytes = piece->n_bytes,
        .first_token = piece->first_token,
        .n_tokens = piece->n_tokens,
        .first_document = bad->first_document,
        .n_documents = bad->end_document - bad->first_document,
    };
    if (bad->err) {
        damage.error = *bad->err;
        report_damage(job, &damage);
        return;
    }
    const bool unreadable = bad->kind == TOKMAP_DAMAGE_UNREADABLE;
    tokmap_i_fail(&damage.error,
                  (tokmap_i_cause){unreadable ? TOKMAP_ERR_IO : TOKMAP_ERR_CORRUPT, bad->sys_errno,
                                   unreadable ? bad->at_byte : piece->first_byte},
                  "%s: block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64 ") %s", piece->file->path,
                  bad->index, piece->first_byte, piece->first_byte + piece->n_bytes - 1,
                  what_is_bad(bad));
    report_damage(job, &damage);
}

/* ---- The whole ---- */

/* sound: of each section, by its kind. */
static bool check_sections(verify_job *job, bool sound[TOKMAP_I_SEGMENTS + 1])
{
    const tokmap_i_header *h = &job->ds->header;
    for (uint32_t i = 0; i < h->n_sections; i++) {
        const tokmap_i_section *section = &h->sections[i];
        tokmap_error err;
        if (tokmap_i_index_reader_checksum(&job->reader, section, &err) == TOKMAP_OK) {
            if (section->kind <= TOKMAP_I_SEGMENTS)
                sound[section->kind] = true;
            job->report.bytes_read += section->n_bytes;
            if (section->kind == TOKMAP_I_CHECKSUMS &&
                tokmap_i_index_reader_load(&job->reader, section, &job->checksums, &err) &&
                !report_index(job, section, TOKMAP_DAMAGE_SECTION, &err))
                return false;
        } else if (!report_index(job, section, TOKMAP_DAMAGE_SECTION, &err)) {
            return false;
        }
        report_progress(job, section->n_bytes);
    }
    return true;
}

static bool check_inputs(verify_job *job)
{
    const tokmap_i_section *section = tokmap_i_section_find(&job->ds->header, TOKMAP_I_INPUTS);
    tokmap_i_inputs inputs = job->ds->inputs;
    tokmap_error err;
    uint8_t *bytes = NULL;
    if (tokmap_i_index_reader_load(&job->reader, section, &bytes, &err))
        return report_index(job, section, TOKMAP_DAMAGE_SECTION, &err);
    inputs.bytes = bytes;
    const char *problem = tokmap_i_inputs_check(&inputs);
    free(bytes);
    if (!problem)
        return true;
    FAIL_AT(&err, TOKMAP_ERR_CORRUPT, section->offset, "%s: damaged: %s", job->ds->index_path,
            problem);
    return report_index(job, section, TOKMAP_DAMAGE_CONTENT, &err);
}

static bool check_values(verify_job *job)
{
    tokmap_error err;
    if (tokmap_i_verify_meta(&job->reader, &err) == TOKMAP_OK)
        return true;
    return report_index(job, tokmap_i_section_find(&job->ds->header, TOKMAP_I_META),
                        TOKMAP_DAMAGE_CONTENT, &err);
}

static bool check_documents(verify_job *job)
{
    tokmap_error err;
    if (tokmap_i_index_reader_documents(&job->reader, pass_documents, job, &err) == TOKMAP_OK)
        return true;
    return report_index(job, tokmap_i_section_find(&job->ds->header, TOKMAP_I_DOCUMENTS),
                        TOKMAP_DAMAGE_CONTENT, &err);
}

static void check_largest(verify_job *job)
{
    const tokmap_i_header *h = &job->ds->header;
    if (job->report.n_damages > 0 || job->report.n_blocks_checked < job->n_blocks ||
        job->largest_id == h->largest_id)
        return;
    tokmap_damage damage = {.kind = TOKMAP_DAMAGE_CONTENT};
    FAIL(&damage.error, TOKMAP_ERR_CORRUPT,
         "%s: damaged: the largest id is %" PRIu32 " by its header, %" PRIu32 " in the tokens",
         job->ds->index_path, h->largest_id, job->largest_id);
    report_damage(job, &damage);
}

static bool same_hash(const tokmap_i_content_hash *a, const tokmap_i_content_hash *b)
{
    return a->crc[0] == b->crc[0] && a->crc[1] == b->crc[1];
}

/* The hashes of which the dataset id is made. */
static void check_hashes(verify_job *job)
{
    const tokmap_i_header *h = &job->ds->header;
    tokmap_i_content_hash tokens = {0};
    if (job->report.n_damages > 0 || !job->block_hashes)
        return;
    for (uint64_t i = 0; i < job->n_blocks; i++)
        tokmap_i_content_hash_join(&tokens, &job->block_hashes[i]);
    const bool tokens_differ = !same_hash(&tokens, &h->tokens_hash);
    if (!tokens_differ && same_hash(&job->documents_hash, &h->documents_hash))
        return;
    tokmap_damage damage = {.kind = TOKMAP_DAMAGE_CONTENT};
    FAIL(&damage.error, TOKMAP_ERR_CORRUPT,
         "%s: damaged: the hash of the %s in its header is not theirs", job->ds->index_path,
         tokens_differ ? "tokens" : "document lengths");
    report_damage(job, &damage);
}

static void check_all(verify_job *job)
{
    bool sound[TOKMAP_I_SEGMENTS + 1] = {false};
    if (!check_sections(job, sound) || !check_inputs(job) ||
        (sound[TOKMAP_I_META] && !check_values(job))) {
        job->failure = TOKMAP_ERR_MEMORY;
        return;
    }
    check_files(job);
    if (job->checksums && !job->failure)
        tokmap_i_run_threads(job->options.n_threads, check_blocks, job);
    if (job->failure)
        return;
    if (job->n_bad > 1)
        qsort(job->bad, job->n_bad, sizeof *job->bad, by_index);
    if (sound[TOKMAP_I_DOCUMENTS] && !check_documents(job))
        job->failure = TOKMAP_ERR_MEMORY;
    for (size_t i = job->n_end_found; i < job->n_bad; i++)
        job->bad[i].first_document = 0; /* not known: the documents end before their block */
    for (size_t i = 0; i < job->n_bad; i++)
        report_block(job, &job->bad[i]);
    check_largest(job);
    check_hashes(job);
}

static tokmap_status take_options(verify_job *job, const tokmap_verify_options *options,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_verify_options, on_damage)};
    const tokmap_status status =
        options ? tokmap_i_take_options(&job->options, options, &kind, err) : TOKMAP_OK;
    if (status)
        return status;
    if (job->options.sample == 0)
        job->options.sample = 1;
    if (!(job->options.sample > 0 && job->options.sample <= 1))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "sample is %g: must be above 0 and at most 1, or 0 for 1", job->options.sample);
    if (job->options.n_threads > TOKMAP_I_MAX_THREADS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_threads is %" PRIu32 ": at most %d",
                    job->options.n_threads, TOKMAP_I_MAX_THREADS);
    if (job->options.n_threads == 0)
        job->options.n_threads = MIN(tokmap_i_n_processors(), DEFAULT_MAX_THREADS);
    return TOKMAP_OK;
}

static uint64_t section_bytes(const verify_job *job)
{
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < job->ds->header.n_sections; i++)
        n_bytes += job->ds->header.sections[i].n_bytes;
    return n_bytes;
}

static uint64_t bytes_to_read(const verify_job *job)
{
    uint64_t n_bytes = job->ds->header.index_bytes;
    for (uint64_t block = 0; block < job->n_blocks; block++)
        n_bytes += is_sampled(job, block) ? tokmap_i_block_piece(job->ds, block).n_bytes : 0;
    return n_bytes;
}

static const tokmap_i_struct_kind report_kind = {STRUCT_KIND(tokmap_verify_report, n_blocks)};

tokmap_status tokmap_dataset_verify(const tokmap_dataset *ds, const tokmap_verify_options *options,
                                    tokmap_verify_report *report, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!ds)
        return FAIL_NULL(err);
    verify_job job = {.ds = ds};
    tokmap_status status = take_options(&job, options, err);
    if (!status && report)
        status = tokmap_i_check_struct(report, &report_kind, err);
    if (!status)
        status = tokmap_i_index_reader_open(&job.reader, ds, err);
    if (status)
        return status;
    job.n_blocks = job.report.n_blocks = tokmap_i_n_blocks(&ds->header);
    job.bytes_total = bytes_to_read(&job);
    /* tokmap_dataset_open has read and checked the header, the table and the zeros between
     * sections. */
    job.bytes_done = job.report.bytes_read = ds->header.index_bytes - section_bytes(&job);
    if (job.options.sample >= 1) {
        job.block_hashes = calloc(MAX(job.n_blocks, 1), sizeof *job.block_hashes);
        if (!job.block_hashes) {
            tokmap_i_index_reader_close(&job.reader);
            return FAIL_MEMORY(err);
        }
    }
    tokmap_i_mutex_init(&job.mutex);
    check_all(&job);
    tokmap_i_mutex_free(&job.mutex);
    if (report)
        tokmap_i_give_struct(report, &job.report, &report_kind, NULL);
    if (job.failure)
        status = FAIL_MEMORY(err);
    else if (job.report.n_damages > 0)
        status = job.corrupt ? TOKMAP_ERR_CORRUPT : TOKMAP_ERR_IO;
    if (job.report.n_damages > 0 && !job.failure && err) {
        *err = job.first;
        err->status = status;
    }
    tokmap_i_index_reader_close(&job.reader);
    for (size_t i = 0; i < job.n_bad; i++)
        free(job.bad[i].err);
    free(job.missing);
    free(job.checksums);
    free(job.block_hashes);
    free(job.bad);
    return status;
}
