/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - reads every byte of a dataset or of a lane, without maps, and checks it.
 *
 * First it checks the index, then the token blocks, in parallel, and then the documents, to find
 * those in bad blocks. Damage is reported at the end and in order, so that the report does not
 * depend on the number of threads. A lane is a dataset with wider tokens that has only blocks. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/options.h"
#include "base/token_scan.h"
#include "dataset/index_cache.h"
#include "dataset/index_reader.h"
#include "dataset/lane.h"
#include "dataset/token_files.h"
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
    tokmap_i_cause cause;
    uint64_t first_document, end_document;
    tokmap_error *err; /* why the file cannot be opened; NULL: it can */
} bad_block;

typedef struct verify_job {
    const tokmap_dataset *ds;
    const tokmap_lane *lane; /* whose values are the tokens of `ds`; NULL: a dataset is checked */
    tokmap_verify_options options;
    tokmap_i_index_reader reader;
    uint8_t *checksums;                  /* as stored; NULL if their section is damaged */
    bool *missing;                       /* for each file: it cannot be opened */
    tokmap_i_content_hash *block_hashes; /* NULL: not all blocks are checked */
    uint64_t n_blocks;
    uint64_t first_file, end_file;   /* the token files that are read */
    uint64_t first_block, end_block; /* and their blocks */
    atomic_uint_fast64_t next_block;
    tokmap_i_mutex mutex; /* for all fields below */
    bad_block *bad;
    size_t n_bad;
    /* blocks of `bad` whose first and whose last document were found so far */
    size_t n_first_found, n_end_found;
    uint64_t n_documents_passed;
    uint64_t last_end;                    /* where the last document that was passed ends */
    tokmap_i_content_hash documents_hash; /* the hash of the lengths of these documents */
    tokmap_i_index_cache *cache;          /* NULL: spans are not checked */
    tokmap_i_span_cursor span_at;
    tokmap_span span, next_span;
    bool has_next;
    tokmap_i_span_hash span_hash;
    const char *bad_span; /* what is wrong with a span; NULL: nothing */
    uint32_t largest_id;
    uint64_t bytes_done, bytes_total;
    bool failed;  /* the check has ended: out of memory, or stopped */
    bool stopped; /* by on_progress */
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

/* Reports a problem of the index, unless the cause is that memory ran out. */
static void report_index(verify_job *job, const tokmap_i_section *section, tokmap_damage_kind kind,
                         const tokmap_error *error)
{
    if (error->status != TOKMAP_ERR_CORRUPT && error->status != TOKMAP_ERR_IO) {
        job->failed = true;
        return;
    }
    tokmap_damage damage = {
        .kind = error->status == TOKMAP_ERR_IO ? TOKMAP_DAMAGE_UNREADABLE : kind,
        .first_byte = section->offset,
        .n_bytes = section->n_bytes,
        .error = *error,
    };
    report_damage(job, &damage);
}

static void report_progress(verify_job *job, uint64_t n_bytes)
{
    const tokmap_verify_options *o = &job->options;
    job->bytes_done += n_bytes;
    if (job->stopped || !o->on_progress ||
        o->on_progress(o->context, job->bytes_done, job->bytes_total) == 0)
        return;
    job->stopped = job->failed = true;
    atomic_store(&job->next_block, job->end_block);
}

/* ---- Token blocks ---- */

typedef struct block_reader {
    uint8_t *buffer; /* PIECE_BYTES */
    tokmap_i_hasher *hasher;
    uint32_t largest_id;
    tokmap_i_content_hash hash;
} block_reader;

/* Adds a bad block to the list. Returns false when out of memory. */
static bool note_bad(verify_job *job, const bad_block *bad)
{
    if (!array_grow(&job->bad, job->n_bad, sizeof *bad)) {
        job->failed = true;
        return false;
    }
    job->bad[job->n_bad++] = *bad;
    return true;
}

/* Reads a block, and computes what is checked. */
static tokmap_status read_block(const verify_job *job, block_reader *r,
                                const tokmap_i_token_piece *block, tokmap_error *err)
{
    const uint32_t width = job->ds->header.token_bytes;
    tokmap_i_named_file file;
    tokmap_i_hasher_reset(r->hasher);
    r->largest_id = 0;
    r->hash = (tokmap_i_content_hash){0};
    tokmap_status status = tokmap_i_token_file_borrow(job->ds, block->file, &file, err);
    if (status)
        return status;
    for (uint64_t done = 0; !status && done < block->n_bytes; done += PIECE_BYTES) {
        const size_t n_bytes = (size_t)MIN(block->n_bytes - done, PIECE_BYTES);
        status = tokmap_i_read_exactly(file, block->first_byte + done, n_bytes, r->buffer, err);
        for (size_t at = 0; !status && at < n_bytes; at += SLICE_BYTES) {
            const uint8_t *slice = r->buffer + at;
            const size_t n = MIN(n_bytes - at, SLICE_BYTES);
            tokmap_i_hasher_add(r->hasher, slice, n);
            if (job->lane)
                continue;
            tokmap_i_content_hash_add_tokens(&r->hash, slice, n / width, width);
            const uint32_t largest = tokmap_i_largest_id(slice, n / width, width);
            r->largest_id = MAX(r->largest_id, largest);
        }
    }
    tokmap_i_token_file_give_back(block->file, &file);
    return status;
}

static void check_block(verify_job *job, block_reader *r, uint64_t block)
{
    tokmap_error err;
    bad_block bad = {.index = block, .piece = tokmap_i_block_piece(job->ds, block)};
    bad.cause = (tokmap_i_cause){TOKMAP_ERR_CORRUPT, 0, bad.piece.first_byte, 0};
    const bool is_missing = job->missing[bad.piece.file - job->ds->files];
    const tokmap_status status = is_missing ? TOKMAP_OK : read_block(job, r, &bad.piece, &err);
    bool sound = false; /* a missing file is a damage of its own */
    if (status) {
        bad.kind = TOKMAP_DAMAGE_UNREADABLE;
        bad.cause = (tokmap_i_cause){TOKMAP_ERR_IO, err.sys_errno, err.file_offset, 0};
    } else if (!is_missing &&
               tokmap_i_hasher_get(r->hasher) != le_get64(job->checksums + 8 * block)) {
        bad.kind = TOKMAP_DAMAGE_BLOCK;
    } else if (!is_missing && r->largest_id > job->ds->header.largest_id) {
        bad.kind = TOKMAP_DAMAGE_CONTENT;
    } else {
        sound = true;
    }
    if (job->block_hashes && !is_missing)
        job->block_hashes[block] = r->hash;
    tokmap_i_mutex_lock(&job->mutex);
    if (!sound)
        note_bad(job, &bad);
    if (!is_missing) {
        job->largest_id = MAX(job->largest_id, r->largest_id);
        job->report.n_blocks_checked++;
        job->report.bytes_read += status ? 0 : bad.piece.n_bytes;
    }
    report_progress(job, bad.piece.n_bytes);
    tokmap_i_mutex_unlock(&job->mutex);
}

/* Opens each token file that is not open, so that a missing file is reported once, not once for
 * each of its blocks. */
static void check_files(verify_job *job)
{
    const tokmap_dataset *ds = job->ds;
    job->missing = calloc((size_t)MAX(ds->n_files, 1), sizeof *job->missing);
    job->failed = !job->missing;
    for (uint64_t i = job->first_file; i < job->end_file && !job->failed; i++) {
        tokmap_i_token_file *file = &ds->files[i];
        tokmap_i_named_file opened;
        tokmap_error err;
        if (job->lane && file->n_tokens == 0)
            continue;
        const tokmap_status status = tokmap_i_token_file_borrow(ds, file, &opened, &err);
        if (!status) {
            tokmap_i_token_file_give_back(file, &opened);
            continue;
        }
        bad_block bad = {
            .index = file->first_block,
            .piece = tokmap_i_first_piece(ds, file->first_token, file->n_tokens),
            .kind = status == TOKMAP_ERR_IO ? TOKMAP_DAMAGE_UNREADABLE : TOKMAP_DAMAGE_CONTENT,
            .err = status == TOKMAP_ERR_MEMORY ? NULL : malloc(sizeof err),
        };
        if (bad.err)
            *bad.err = err;
        job->failed = !bad.err;
        if (!bad.err || !note_bad(job, &bad))
            free(bad.err);
        job->missing[i] = true;
    }
}

/* Whether the block belongs to the fraction that is read. The first one that may be read always
 * does, so that one is read. */
static bool is_chosen(const verify_job *job, uint64_t block)
{
    if (job->options.fraction >= 1 || block == job->first_block)
        return true;
    uint8_t key[16];
    le_put64(key, job->options.seed);
    le_put64(key + 8, block);
    return (double)tokmap_i_checksum(key, sizeof key) < job->options.fraction * 0x1p64;
}

static int by_index(const void *a, const void *b)
{
    const uint64_t x = ((const bad_block *)a)->index, y = ((const bad_block *)b)->index;
    return x < y ? -1 : x > y;
}

static void *check_blocks(void *context)
{
    verify_job *job = context;
    uint8_t *buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, PIECE_BYTES);
    block_reader r = {buffer, tokmap_i_hasher_open(), 0, {{0, 0}, 0}};
    if (r.buffer && r.hasher) {
        uint64_t block;
        while ((block = atomic_fetch_add(&job->next_block, 1)) < job->end_block)
            if (is_chosen(job, block))
                check_block(job, &r, block);
    } else {
        tokmap_i_mutex_lock(&job->mutex);
        job->failed = true;
        tokmap_i_mutex_unlock(&job->mutex);
    }
    free(r.buffer);
    tokmap_i_hasher_close(r.hasher);
    return NULL;
}

/* ---- Spans ---- */

static void next_span(verify_job *job)
{
    const tokmap_status status = tokmap_i_spans_next(&job->span_at, &job->next_span);
    job->has_next = !status;
    if (status && status != TOKMAP_END)
        job->bad_span = "its spans are not in order";
}

/* Counts the spans of a document, and checks their order. */
static void pass_spans(verify_job *job, uint64_t begin, uint64_t end)
{
    const uint64_t page = UINT64_C(1) << TOKMAP_I_SPANS_PAGE_BITS;
    for (; job->has_next && job->next_span.first_token < end && !job->bad_span; next_span(job)) {
        const tokmap_span s = job->next_span, last = job->span;
        const uint64_t last_end = last.first_token + last.n_tokens;
        const bool touches = s.first_token == last_end && last_end > begin;
        if (s.first_token < MAX(begin, last_end) || s.n_tokens > end - s.first_token)
            job->bad_span = "a span overlaps another one, or is not inside a document";
        else if (touches && s.role == last.role && last.n_tokens > 0 && s.first_token % page != 0)
            job->bad_span = "two spans that touch have the same role";
        tokmap_i_span_hash_add(&job->span_hash, &s);
        job->span = s;
    }
}

/* Prepares for checking spans, which is done together with the documents. */
static void open_spans(verify_job *job)
{
    const tokmap_dataset *ds = job->ds;
    const tokmap_i_section *section = tokmap_i_section_find(&ds->header, TOKMAP_I_SPANS);
    job->cache = tokmap_i_index_cache_open(section->n_bytes);
    job->span_hash.hasher = tokmap_i_hasher_open();
    job->failed = !job->cache || !job->span_hash.hasher;
    if (job->failed)
        return;
    const tokmap_i_cached_file file = {
        ds, job->reader.file.fd, ds->index_path, ds->header.index_bytes, section->offset, 0};
    job->span_at = (tokmap_i_span_cursor){.spans = &ds->spans,
                                          .from = tokmap_i_index_cache_set(job->cache, &file),
                                          .page = TOKMAP_I_BEFORE_SPANS};
    next_span(job);
}

/* Compares the counts and the hash of spans with the section, after all documents. */
static void check_spans(verify_job *job)
{
    tokmap_error err;
    tokmap_status status = tokmap_i_index_cache_check(job->cache, &err);
    const tokmap_i_section *section = tokmap_i_section_find(&job->ds->header, TOKMAP_I_SPANS);
    if (!job->bad_span && job->has_next)
        job->bad_span = "a span overlaps another one, or is not inside a document";
    if (!job->bad_span && tokmap_i_span_hash_get(&job->span_hash) != job->ds->spans.hash)
        job->bad_span = "the hash of its spans does not match them";
    if (!status && job->bad_span)
        status = tokmap_i_fail_damaged(job->ds, section->offset, job->bad_span, &err);
    if (status)
        report_index(job, section, TOKMAP_DAMAGE_CONTENT, &err);
}

/* ---- The documents in bad blocks ---- */

/* Handles one group of ends, and hashes its lengths. */
static tokmap_status pass_documents(void *context, const uint64_t *ends, uint32_t n_ends,
                                    tokmap_error *err)
{
    (void)err;
    verify_job *job = context;
    uint8_t lengths[8 * TOKMAP_I_GROUP_DOCUMENTS];
    for (uint32_t i = 0; i < n_ends; i++) {
        const uint64_t document = job->n_documents_passed + i;
        while (job->n_first_found < job->n_bad &&
               ends[i] > job->bad[job->n_first_found].piece.first_token)
            job->bad[job->n_first_found++].first_document = document;
        while (job->n_end_found < job->n_first_found &&
               ends[i] >= job->bad[job->n_end_found].piece.first_token +
                              job->bad[job->n_end_found].piece.n_tokens)
            job->bad[job->n_end_found++].end_document = document + 1;
        if (job->cache)
            pass_spans(job, job->last_end, ends[i]);
        le_put64(lengths + 8 * (size_t)i, ends[i] - job->last_end);
        job->last_end = ends[i];
    }
    tokmap_i_content_hash_add(&job->documents_hash, lengths, 8 * (size_t)n_ends);
    job->n_documents_passed += n_ends;
    return TOKMAP_OK;
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
    const char *problem =
        bad->cause.sys_errno ? "cannot be read" : "is missing: the file was shortened";
    if (bad->kind == TOKMAP_DAMAGE_BLOCK)
        problem = "does not match its checksum";
    if (bad->kind == TOKMAP_DAMAGE_CONTENT)
        problem = "has an id above the largest id in the header";
    tokmap_i_fail(&damage.error, bad->cause,
                  "%s: block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64 ") %s", piece->file->path,
                  bad->index, piece->first_byte, piece->first_byte + piece->n_bytes - 1, problem);
    report_damage(job, &damage);
}

/* Reports the bad blocks in their order. */
static void report_blocks(verify_job *job)
{
    if (job->n_bad > 1)
        qsort(job->bad, job->n_bad, sizeof *job->bad, by_index);
    for (size_t i = 0; i < job->n_bad; i++)
        report_block(job, &job->bad[i]);
}

/* ---- The whole ---- */

/* Checks the checksums of all sections. sound: the result, indexed by their kinds. */
static void check_sections(verify_job *job, bool sound[TOKMAP_I_LAST_SECTION + 1])
{
    const tokmap_i_header *h = &job->ds->header;
    for (uint32_t i = 0; i < h->n_sections && !job->failed; i++) {
        const tokmap_i_section *section = &h->sections[i];
        tokmap_error err;
        tokmap_status status = tokmap_i_index_reader_checksum(&job->reader, section, &err);
        if (!status) {
            if (section->kind <= TOKMAP_I_LAST_SECTION)
                sound[section->kind] = true;
            job->report.bytes_read += section->n_bytes;
            if (section->kind == TOKMAP_I_CHECKSUMS)
                status = tokmap_i_index_reader_load(&job->reader, section, &job->checksums, &err);
        }
        if (status)
            report_index(job, section, TOKMAP_DAMAGE_SECTION, &err);
        report_progress(job, section->n_bytes);
    }
}

static void check_inputs(verify_job *job)
{
    const tokmap_i_section *section = tokmap_i_section_find(&job->ds->header, TOKMAP_I_INPUTS);
    tokmap_i_inputs inputs = job->ds->inputs;
    tokmap_error err;
    uint8_t *bytes = NULL;
    tokmap_status status = tokmap_i_index_reader_load(&job->reader, section, &bytes, &err);
    inputs.bytes = bytes;
    const char *problem = status ? NULL : tokmap_i_inputs_check(&inputs);
    free(bytes);
    if (problem)
        status = tokmap_i_fail_damaged(job->ds, section->offset, problem, &err);
    if (status)
        report_index(job, section, problem ? TOKMAP_DAMAGE_CONTENT : TOKMAP_DAMAGE_SECTION, &err);
}

/* Checks the largest id, and the hashes from which the dataset id is made, if nothing else is
 * wrong. */
static void check_header(verify_job *job)
{
    const tokmap_i_header *h = &job->ds->header;
    tokmap_damage damage = {.kind = TOKMAP_DAMAGE_CONTENT};
    tokmap_i_content_hash tokens = {0};
    char largest[100];
    const char *problem = NULL;
    if (job->report.n_damages > 0)
        return;
    for (uint64_t i = 0; job->block_hashes && i < job->n_blocks; i++)
        tokmap_i_content_hash_join(&tokens, &job->block_hashes[i]);
    if (job->report.n_blocks_checked == job->n_blocks && job->largest_id != h->largest_id) {
        snprintf(largest, sizeof largest,
                 "the largest id is %" PRIu32 " in its header, but %" PRIu32 " in the tokens",
                 h->largest_id, job->largest_id);
        problem = largest;
    } else if (!job->block_hashes) {
        return;
    } else if (memcmp(tokens.crc, h->tokens_hash.crc, sizeof tokens.crc) != 0) {
        problem = TOKMAP_I_WRONG_TOKENS_HASH;
    } else if (memcmp(job->documents_hash.crc, h->documents_hash.crc, sizeof tokens.crc) != 0) {
        problem = "the hash of the document lengths in its header does not match them";
    }
    if (!problem)
        return;
    tokmap_i_fail_damaged(job->ds, 0, problem, &damage.error);
    report_damage(job, &damage);
}

static void check_all(verify_job *job)
{
    const tokmap_i_header *h = &job->ds->header;
    bool sound[TOKMAP_I_LAST_SECTION + 1] = {false};
    tokmap_error err;
    if (!job->failed)
        check_sections(job, sound);
    if (!job->failed)
        check_inputs(job);
    if (!job->failed && sound[TOKMAP_I_META] && tokmap_i_verify_meta(&job->reader, &err))
        report_index(job, tokmap_i_section_find(h, TOKMAP_I_META), TOKMAP_DAMAGE_CONTENT, &err);
    if (!job->failed)
        check_files(job);
    if (!job->failed && job->checksums)
        tokmap_i_run_threads(job->options.n_threads, check_blocks, job);
    if (job->stopped) /* their documents are not known */
        report_blocks(job);
    if (job->failed)
        return;
    if (job->n_bad > 1)
        qsort(job->bad, job->n_bad, sizeof *job->bad, by_index);
    if (sound[TOKMAP_I_DOCUMENTS] && sound[TOKMAP_I_SPANS])
        open_spans(job);
    if (!job->failed && sound[TOKMAP_I_DOCUMENTS] &&
        tokmap_i_index_reader_documents(&job->reader, pass_documents, job, &err))
        report_index(job, tokmap_i_section_find(h, TOKMAP_I_DOCUMENTS), TOKMAP_DAMAGE_CONTENT,
                     &err);
    if (!job->failed && job->cache && job->n_documents_passed == h->n_documents)
        check_spans(job);
    for (size_t i = job->n_end_found; i < job->n_bad; i++)
        job->bad[i].first_document = 0; /* not known */
    report_blocks(job);
    check_header(job);
}

static tokmap_status take_options(verify_job *job, const tokmap_verify_options *options,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_verify_options, on_damage)};
    tokmap_verify_options *o = &job->options;
    const tokmap_status status =
        options ? tokmap_i_take_options(o, options, &kind, err) : TOKMAP_OK;
    if (status)
        return status;
    if (o->fraction == 0)
        o->fraction = 1;
    if (!(o->fraction > 0 && o->fraction <= 1))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "fraction is %g: must be above 0 and at most 1, or 0 for 1", o->fraction);
    if (o->n_threads > TOKMAP_I_MAX_THREADS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_threads is %" PRIu32 ": at most %d", o->n_threads,
                    TOKMAP_I_MAX_THREADS);
    if (o->n_threads == 0)
        o->n_threads = MIN(tokmap_i_n_processors(), DEFAULT_MAX_THREADS);
    return TOKMAP_OK;
}

/* Finds the token files that are read. A lane over all tokens is one file, which is read as a
 * whole. */
static tokmap_status take_segments(verify_job *job, tokmap_error *err)
{
    const uint64_t n_files = job->ds->n_files, first = job->options.first_segment;
    const uint64_t n = job->options.n_segments;
    const bool all = n == 0 || (job->lane && !job->lane->by_file);
    if (n == 0 && first > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "first_segment is %" PRIu64 ", but n_segments is 0, which means all", first);
    if (!all && (first > n_files || n > n_files - first))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: there are no segments %" PRIu64 "-%" PRIu64 ": it has %" PRIu64
                    " token file%s",
                    job->ds->index_path, first, first + n - 1, n_files, n_files == 1 ? "" : "s");
    job->first_file = all ? 0 : first;
    job->end_file = all ? n_files : first + n;
    return TOKMAP_OK;
}

static bool is_all_read(const verify_job *job)
{
    return job->first_file == 0 && job->end_file == job->ds->n_files;
}

/* Counts the blocks, and the bytes of those that are read. */
static void count_blocks(verify_job *job, uint64_t n_blocks)
{
    const tokmap_i_token_file *files = job->ds->files;
    job->n_blocks = job->report.n_blocks = n_blocks;
    job->first_block = job->first_file > 0 ? files[job->first_file].first_block : 0;
    job->end_block = job->end_file < job->ds->n_files ? files[job->end_file].first_block : n_blocks;
    job->next_block = job->first_block;
    for (uint64_t block = job->first_block; block < job->end_block; block++)
        job->bytes_total +=
            is_chosen(job, block) ? tokmap_i_block_piece(job->ds, block).n_bytes : 0;
}

/* Returns the result, and frees what both kinds of jobs have. */
static tokmap_status end_job(verify_job *job, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    tokmap_i_mutex_free(&job->mutex);
    if (job->stopped) {
        status = FAIL(err, TOKMAP_ERR_STOPPED, "stopped by on_progress");
    } else if (job->failed) {
        status = FAIL_MEMORY(err);
    } else if (job->report.n_damages > 0) {
        status = job->first.status = job->corrupt ? TOKMAP_ERR_CORRUPT : TOKMAP_ERR_IO;
        if (err)
            *err = job->first;
    }
    for (size_t i = 0; i < job->n_bad; i++)
        free(job->bad[i].err);
    free(job->missing);
    free(job->checksums);
    free(job->block_hashes);
    free(job->bad);
    return status;
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
        status = take_segments(&job, err);
    if (!status)
        status = tokmap_i_index_reader_open(&job.reader, ds, err);
    if (status)
        return status;
    job.bytes_total = job.bytes_done = ds->header.index_bytes;
    count_blocks(&job, tokmap_i_n_blocks(&ds->header));
    /* tokmap_dataset_open has checked the header, the table and the zeros between sections. */
    for (uint32_t i = 0; i < ds->header.n_sections; i++)
        job.bytes_done -= ds->header.sections[i].n_bytes;
    job.report.bytes_read = job.bytes_done;
    if (job.options.fraction >= 1 && is_all_read(&job)) {
        job.block_hashes = calloc(MAX(job.n_blocks, 1), sizeof *job.block_hashes);
        job.failed = !job.block_hashes;
    }
    tokmap_i_mutex_init(&job.mutex);
    check_all(&job);
    if (report)
        tokmap_i_give_struct(report, &job.report, &report_kind, NULL);
    tokmap_i_index_reader_close(&job.reader);
    tokmap_i_index_cache_close(job.cache);
    tokmap_i_hasher_close(job.span_hash.hasher);
    return end_job(&job, err);
}

/* ---- Lanes ---- */

/* Checks what comes before the values of a file, and takes its checksums and the hash of its
 * tokens. */
static tokmap_status check_start(verify_job *job, tokmap_i_token_file *file,
                                 tokmap_i_content_hash *tokens, tokmap_error *err)
{
    char about[TOKMAP_I_LANE_ABOUT_ROOM];
    uint8_t *checksums = NULL;
    tokmap_i_lane_header h;
    tokmap_i_named_file opened;
    tokmap_status status = tokmap_i_token_file_borrow(job->ds, file, &opened, err);
    if (status)
        return status;
    status = tokmap_i_lane_read_header(job->lane, file, opened.fd, &h, err);
    if (!status)
        status = tokmap_i_lane_read_about(opened, &h, about, err);
    if (!status)
        status = tokmap_i_lane_read_checksums(opened, &h, &checksums, err);
    tokmap_i_token_file_give_back(file, &opened);
    if (status)
        return status;
    memcpy(job->checksums + 8 * file->first_block, checksums, (size_t)(8 * h.n_blocks));
    free(checksums);
    const tokmap_i_content_hash part = {
        .crc = {le_get64(h.tokens_hash), le_get64(h.tokens_hash + 8)}, .n_bytes = 4 * h.n_tokens};
    tokmap_i_content_hash_join(tokens, &part);
    job->report.bytes_read += h.offset;
    return TOKMAP_OK;
}

/* Reports that what comes before the values of a file is damaged, once for all its blocks. */
static void report_start(verify_job *job, const tokmap_i_token_file *file, const tokmap_error *err)
{
    tokmap_damage damage = {.kind = err->status == TOKMAP_ERR_IO ? TOKMAP_DAMAGE_UNREADABLE
                                                                 : TOKMAP_DAMAGE_SECTION,
                            .n_bytes = file->token_offset,
                            .error = *err};
    job->failed |= err->status == TOKMAP_ERR_MEMORY;
    if (!job->failed)
        report_damage(job, &damage);
}

static void check_lane(verify_job *job)
{
    const tokmap_dataset *ds = job->ds;
    tokmap_i_content_hash tokens = {0};
    tokmap_error err;
    check_files(job);
    for (uint64_t i = job->first_file; i < job->end_file && !job->failed; i++) {
        tokmap_i_token_file *file = &ds->files[i];
        const bool is_there = !job->missing[i] && (file->n_tokens > 0 || !job->lane->by_file);
        if (is_there && check_start(job, file, &tokens, &err)) {
            report_start(job, file, &err);
            job->missing[i] = true;
        }
    }
    if (!job->failed)
        tokmap_i_run_threads(job->options.n_threads, check_blocks, job);
    if (!job->failed || job->stopped)
        report_blocks(job);
    if (job->failed)
        return;
    const tokmap_i_content_hash *of_all = &job->lane->ds->header.tokens_hash;
    if (job->report.n_damages > 0 || !is_all_read(job) ||
        !memcmp(tokens.crc, of_all->crc, sizeof tokens.crc))
        return;
    tokmap_damage damage = {.kind = TOKMAP_DAMAGE_CONTENT};
    FAIL(&damage.error, TOKMAP_ERR_CORRUPT,
         "%s: the lanes '%s' of its token files are of other tokens: write them again",
         job->lane->ds->index_path, job->lane->name);
    report_damage(job, &damage);
}

tokmap_status tokmap_lane_verify(const tokmap_lane *lane, const tokmap_verify_options *options,
                                 tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!lane)
        return FAIL_NULL(err);
    const tokmap_dataset *wide = &lane->wide;
    verify_job job = {.ds = wide, .lane = lane};
    tokmap_status status = take_options(&job, options, err);
    if (!status)
        status = take_segments(&job, err);
    if (status)
        return status;
    uint64_t n_blocks = 0;
    for (uint64_t i = 0; i < wide->n_files; i++)
        n_blocks +=
            div_up(wide->files[i].n_tokens * wide->header.token_bytes, TOKMAP_I_BLOCK_BYTES);
    count_blocks(&job, n_blocks);
    job.checksums = malloc((size_t)(8 * n_blocks) + 1);
    job.failed = !job.checksums;
    tokmap_i_mutex_init(&job.mutex);
    if (!job.failed)
        check_lane(&job);
    return end_job(&job, err);
}
