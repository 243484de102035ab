/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "dataset/token_files.h"
#include "system/platform.h"

/* ---- Files ---- */

tokmap_status tokmap_i_rows_check(const tokmap_i_rows_kind *kind, tokmap_error *err)
{
    if (kind->length == 0 || kind->length > 1 << 24)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "sequence_length is %" PRIu32 ": must be 1 to 2^24",
                    kind->length);
    if (kind->length % kind->align != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "align is %" PRIu32 ": must divide sequence_length, which is %" PRIu32,
                    kind->align, kind->length);
    if (kind->whole > TOKMAP_WHOLE_TRUNCATE)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "whole_documents is %" PRIu32 ": must be 0 to 2",
                    kind->whole);
    return TOKMAP_OK;
}

char *tokmap_i_rows_path(const tokmap_dataset *ds, const tokmap_i_rows_kind *kind,
                         const tokmap_view *view)
{
    static const char *const whole[] = {"", "-drop", "-truncate"};
    char align[32] = "", most[32] = "", set[32] = "";
    if (view)
        snprintf(set, sizeof set, "-v%016" PRIx64, view->header.set_hash);
    if (kind->align > 1)
        snprintf(align, sizeof align, "-align%" PRIu32, kind->align);
    if (kind->most > 0)
        snprintf(most, sizeof most, "-max%" PRIu32, kind->most);
    return tokmap_i_side_path(ds, "%" PRIu32 "%s%s%s%s.tmr", kind->length, align, most,
                              whole[kind->whole], set);
}

void tokmap_i_rows_command(const tokmap_i_rows_kind *kind, bool of_view, char *text)
{
    static const char *const whole[] = {"", " --whole-documents drop",
                                        " --whole-documents truncate"};
    char align[32] = "", most[32] = "";
    if (kind->align > 1)
        snprintf(align, sizeof align, " --align %" PRIu32, kind->align);
    if (kind->most > 0)
        snprintf(most, sizeof most, " --max-documents %" PRIu32, kind->most);
    snprintf(text, TOKMAP_I_ROWS_COMMAND_BYTES, "tokmap rows --sequence-length %" PRIu32 "%s%s%s%s",
             kind->length, align, most, whole[kind->whole], of_view ? " --view FILE" : "");
}

static tokmap_status check_header(const tokmap_i_rows *r, const tokmap_i_rows_kind *kind,
                                  tokmap_error *err)
{
    const tokmap_i_rows_header *h = &r->header;
    const tokmap_i_header *of_dataset = &r->ds->header;
    char of_file[TOKMAP_I_ROWS_COMMAND_BYTES], wanted[TOKMAP_I_ROWS_COMMAND_BYTES];
    uint8_t hash[16];
    tokmap_i_rows_command(&h->kind, h->set_hash != 0, of_file);
    tokmap_i_rows_command(kind, r->view != NULL, wanted);
    tokmap_i_content_hash_store(&of_dataset->documents_hash, hash);
    if (h->n_tokens != of_dataset->n_tokens || h->n_documents != of_dataset->n_documents ||
        memcmp(h->documents_hash, hash, sizeof hash) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has the rows of other documents than %s: make it again with: %s",
                    r->file.path, r->ds->index_path, wanted);
    if (h->set_hash != (r->view ? r->view->header.set_hash : 0))
        return FAIL(
            err, TOKMAP_ERR_MISMATCH,
            "%s: has the rows of another view of the documents of %s: make it again with: %s",
            r->file.path, r->ds->index_path, wanted);
    if (memcmp(&h->kind, kind, sizeof *kind) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: was made with: %s; make one for these options with: %s", r->file.path,
                    of_file, wanted);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_rows_open(tokmap_i_rows *r, const tokmap_i_rows_kind *kind, const char *path,
                                 bool *exists, tokmap_error *err)
{
    char *beside = path ? NULL : tokmap_i_rows_path(r->ds, kind, r->view);
    if (!path && !beside)
        return FAIL_MEMORY(err);
    tokmap_status status = tokmap_i_side_open(&r->file, &tokmap_i_rows_file_kind, r->ds,
                                              path ? path : beside, &r->header, exists, err);
    free(beside);
    if (status)
        return !*exists && !path && status != TOKMAP_ERR_MEMORY ? TOKMAP_OK : status;
    r->chunk_rows = tokmap_i_chunk_rows(kind->length);
    status = check_header(r, kind, err);
    return status || tokmap_i_side_expect_chunks(&r->file, r->header.n_chunks) ? status
                                                                               : FAIL_MEMORY(err);
}

void tokmap_i_rows_close(tokmap_i_rows *r)
{
    tokmap_i_side_close(&r->file);
    free(r->bytes);
    *r = (tokmap_i_rows){.file.fd = -1};
}

/* ---- Chunks ---- */

bool tokmap_i_rows_reader_open(tokmap_i_rows_reader *reader, uint64_t n_bytes)
{
    *reader = (tokmap_i_rows_reader){.files = n_bytes ? tokmap_i_index_cache_open(n_bytes) : NULL};
    return n_bytes == 0 || reader->files;
}

void tokmap_i_rows_reader_close(tokmap_i_rows_reader *reader)
{
    tokmap_i_index_cache_close(reader->files);
    free(reader->pieces);
    *reader = (tokmap_i_rows_reader){0};
}

uint64_t tokmap_i_rows_reader_bytes(const tokmap_i_rows_reader *reader)
{
    return reader ? sizeof *reader + tokmap_i_index_cache_bytes(reader->files) : 0;
}

/* Fails because a chunk is damaged, or because its file could not be read. */
static tokmap_status fail_chunk(const tokmap_i_rows *r, const tokmap_i_rows_reader *reader,
                                uint64_t number, const char *problem, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_index_cache_check(reader->files, err);
    return status ? status
                  : FAIL(err, TOKMAP_ERR_CORRUPT,
                         "%s: damaged: chunk %" PRIu64
                         " of its rows %s: make it again with tokmap rows",
                         r->file.path ? r->file.path : r->ds->index_path, number, problem);
}

typedef struct checked_chunk {
    const tokmap_i_rows *r;
    uint64_t number;
    size_t n_bytes;
} checked_chunk;

static const char *check_bytes(void *context, const uint8_t *bytes)
{
    const checked_chunk *k = context;
    const uint64_t first = k->number * k->r->chunk_rows;
    tokmap_i_chunk c;
    const char *problem = tokmap_i_chunk_check(&c, bytes, k->n_bytes);
    const bool fits =
        !problem && c.number == k->number &&
        (uint64_t)c.n_alone + c.n_shared == MIN(k->r->chunk_rows, k->r->header.n_rows - first);
    return problem || fits ? problem : "has other rows";
}

/* Checks a whole chunk when it is first needed. */
static tokmap_status check_chunk(const tokmap_i_rows *r, const tokmap_i_rows_reader *reader,
                                 uint64_t number, uint64_t begin, uint64_t end, tokmap_error *err)
{
    const char *problem = "is not where its file states";
    tokmap_status status = TOKMAP_OK;
    if (begin % 8 == 0 && begin <= end && end - begin <= r->header.largest_chunk &&
        end - begin >= TOKMAP_I_CHUNK_HEADER_BYTES && (end - begin) % 8 == 0) {
        checked_chunk k = {r, number, (size_t)(end - begin)};
        const tokmap_i_side_chunk chunk = {number, begin, k.n_bytes, check_bytes, &k};
        status = tokmap_i_side_check(&r->file, &chunk, &problem, err);
    }
    return problem ? fail_chunk(r, reader, number, problem, err) : status;
}

/* Returns where a chunk is; 0 if that cannot be read. */
static uint64_t offset_of_chunk(const tokmap_i_rows *r, tokmap_i_pieces *file, uint64_t number)
{
    const uint64_t table = r->header.n_bytes - 8 * r->header.n_chunks;
    if (number == r->header.n_chunks)
        return table;
    const uint8_t *entry =
        file ? file->get(file, table + 8 * number) : r->bytes + table + 8 * number;
    return entry ? le_get64(entry) : 0;
}

tokmap_status tokmap_i_rows_chunk(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                  uint64_t number, tokmap_i_chunk *out, tokmap_error *err)
{
    if (r->bytes) {
        tokmap_i_chunk_view(out, r->bytes + offset_of_chunk(r, NULL, number));
        return TOKMAP_OK;
    }
    const tokmap_i_cached_file of_rows = {
        r, r->file.fd, r->file.path, r->header.n_bytes, 0, le_get64(r->ds->header.dataset_id)};
    tokmap_i_pieces *file = tokmap_i_index_cache_set(reader->files, &of_rows);
    const uint64_t begin = offset_of_chunk(r, file, number),
                   end = offset_of_chunk(r, file, number + 1);
    tokmap_status status = tokmap_i_index_cache_check(reader->files, err);
    if (!status)
        status = check_chunk(r, reader, number, begin, end, err);
    const uint8_t *bytes = status ? NULL : file->get(file, begin);
    if (!bytes)
        return status ? status : fail_chunk(r, reader, number, "cannot be read", err);
    tokmap_i_chunk_view(out, bytes);
    out->numbers = NULL;
    out->file = file;
    out->at = begin + TOKMAP_I_CHUNK_HEADER_BYTES;
    return TOKMAP_OK;
}

/* ---- Rows ---- */

/* Fills in a piece: part number `part` of a document; UINT64_MAX means its last part. */
static tokmap_status find_piece(const tokmap_i_rows *r, const tokmap_i_rows_reader *reader,
                                uint64_t document, uint64_t part, tokmap_piece *out,
                                tokmap_error *err)
{
    tokmap_i_pieces *from = tokmap_i_index_cache_of(reader->index, r->ds);
    tokmap_document d = {0};
    if (document < r->header.n_documents &&
        tokmap_i_documents_get(&r->ds->documents, from, document, &d))
        return tokmap_i_index_cache_fail(reader->index, r->ds, err);
    const uint64_t n_parts = tokmap_i_rows_pieces(&r->header.kind, d.n_tokens);
    part = part == UINT64_MAX ? n_parts - 1 : part;
    if (n_parts == 0 || part >= n_parts)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: document %" PRIu64 " does not match its rows: one of them is damaged",
                    r->ds->index_path, document);
    const uint64_t skipped = part * r->header.kind.length;
    *out = (tokmap_piece){.document = document,
                          .first_token = d.first_token + skipped,
                          .n_tokens =
                              (uint32_t)MIN(d.n_tokens - skipped, r->header.kind.length + 1ull)};
    return TOKMAP_OK;
}

/* Returns which part of its document the piece alone in this row is: the parts of a document follow
 * one another. */
static uint64_t part_of(const tokmap_i_chunk *c, uint32_t row)
{
    const uint32_t document = tokmap_i_chunk_number(c, row);
    return row - tokmap_i_chunk_first(c, document) + (document == 0 ? c->first_part : 0);
}

/* Returns where the pieces of a shared row begin in the list of pieces. */
static uint32_t start_of(const tokmap_i_chunk *c, uint32_t row)
{
    return row < c->n_shared ? tokmap_i_chunk_number(c, (uint64_t)c->n_alone + row) : c->n_pieces;
}

uint32_t tokmap_i_rows_tokens(const tokmap_i_rows_kind *kind, const tokmap_piece *last)
{
    return (uint32_t)round_up(last->place + last->n_tokens - 1, kind->align) + 1;
}

tokmap_status tokmap_i_rows_get(const tokmap_i_rows *r, tokmap_i_rows_reader *reader, uint64_t row,
                                tokmap_error *err)
{
    const tokmap_i_rows_kind *kind = &r->header.kind;
    tokmap_i_chunk c;
    tokmap_status status = tokmap_i_rows_chunk(r, reader, row / r->chunk_rows, &c, err);
    if (status)
        return status;
    const uint32_t i = row % r->chunk_rows;
    uint64_t at = i, part = UINT64_MAX, place = 0;
    uint32_t n_pieces = 1;
    if (i < c.n_alone) {
        part = part_of(&c, i);
    } else {
        const uint32_t begin = start_of(&c, i - c.n_alone), end = start_of(&c, i - c.n_alone + 1);
        if (begin >= end || end > c.n_pieces)
            return fail_chunk(r, reader, c.number, "has a row without a piece", err);
        at = (uint64_t)c.n_alone + c.n_shared + begin;
        n_pieces = end - begin;
    }
    if (!array_reserve(&reader->pieces, &reader->capacity, n_pieces, sizeof(tokmap_piece)))
        return FAIL_MEMORY(err);
    reader->n_pieces = n_pieces;
    uint32_t k = 0; /* there is at least one piece */
    do {
        tokmap_piece *p = &reader->pieces[k];
        *p = (tokmap_piece){0};
        const uint64_t document = c.first_document + tokmap_i_chunk_number(&c, at + k);
        status = find_piece(r, reader, document, part, p, err);
        p->place = (uint32_t)place;
        p->n_inputs = p->n_tokens;
        if (!status && place + p->n_tokens > kind->length + 1ull)
            return fail_chunk(r, reader, c.number, "has a row that is too long", err);
        place += status ? 0 : round_up(p->n_tokens, kind->align);
    } while (++k < n_pieces && !status);
    if (!status)
        status = tokmap_i_index_cache_check(reader->files, err);
    if (status)
        return status;
    tokmap_piece *last = &reader->pieces[k - 1];
    last->n_inputs = MIN(last->n_tokens, tokmap_i_rows_tokens(kind, last) - 1 - last->place);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_rows_extent(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                   uint64_t number, uint64_t *begin, uint64_t *end,
                                   tokmap_error *err)
{
    uint64_t *const places[] = {begin, end};
    tokmap_status status = TOKMAP_OK;
    *end = r->bytes ? r->end_token : r->header.n_tokens;
    for (uint32_t i = 0; i < 2 && number + i < r->header.n_chunks && !status; i++) {
        tokmap_i_chunk c;
        tokmap_piece piece = {0};
        status = tokmap_i_rows_chunk(r, reader, number + i, &c, err);
        if (!status)
            status = find_piece(r, reader, c.first_document, c.first_part, &piece, err);
        if (!status)
            *places[i] = piece.first_token;
    }
    return status;
}
