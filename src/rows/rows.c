/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"
#include "dataset/token_files.h"
#include "system/platform.h"

enum {
    CACHE_BYTES = 16 << 20,
    MOST_SLOTS = 1024
};

typedef struct tokmap_i_chunk_slot {
    const tokmap_i_rows *rows; /* NULL: the slot is empty */
    tokmap_i_chunk chunk;
} tokmap_i_chunk_slot;

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

char *tokmap_i_rows_path(const tokmap_dataset *ds, const tokmap_i_rows_kind *kind)
{
    static const char *const whole[] = {"", "-drop", "-truncate"};
    const size_t n_prefix = strlen(ds->index_names[0]) - strlen(".tmi"), n_bytes = n_prefix + 96;
    char *path = malloc(n_bytes), align[32] = "", most[32] = "";
    if (kind->align > 1)
        snprintf(align, sizeof align, "-align%" PRIu32, kind->align);
    if (kind->most > 0)
        snprintf(most, sizeof most, "-max%" PRIu32, kind->most);
    if (path)
        snprintf(path, n_bytes, "%.*s.%" PRIu32 "%s%s%s.tmr", (int)n_prefix, ds->index_names[0],
                 kind->length, align, most, whole[kind->whole]);
    return path;
}

void tokmap_i_rows_command(const tokmap_i_rows_kind *kind, char *text)
{
    static const char *const whole[] = {"", " --whole-documents drop",
                                        " --whole-documents truncate"};
    char align[32] = "", most[32] = "";
    if (kind->align > 1)
        snprintf(align, sizeof align, " --align %" PRIu32, kind->align);
    if (kind->most > 0)
        snprintf(most, sizeof most, " --max-documents %" PRIu32, kind->most);
    snprintf(text, TOKMAP_I_ROWS_COMMAND_BYTES, "tokmap rows --sequence-length %" PRIu32 "%s%s%s",
             kind->length, align, most, whole[kind->whole]);
}

static tokmap_status check_header(const tokmap_i_rows *r, const tokmap_i_rows_kind *kind,
                                  uint64_t n_bytes, tokmap_error *err)
{
    const tokmap_i_rows_header *h = &r->header;
    const tokmap_i_header *of_dataset = &r->ds->header;
    char of_file[TOKMAP_I_ROWS_COMMAND_BYTES], wanted[TOKMAP_I_ROWS_COMMAND_BYTES];
    uint8_t hash[16];
    tokmap_i_rows_command(&h->kind, of_file);
    tokmap_i_rows_command(kind, wanted);
    tokmap_i_content_hash_store(&of_dataset->documents_hash, hash);
    if (h->n_bytes != n_bytes)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: damaged: has %" PRIu64 " bytes, but its header says %" PRIu64
                    ": make it again with: %s",
                    r->path, n_bytes, h->n_bytes, wanted);
    if (h->n_tokens != of_dataset->n_tokens || h->n_documents != of_dataset->n_documents ||
        memcmp(h->documents_hash, hash, sizeof hash) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has the rows of other documents than %s: make it again with: %s", r->path,
                    r->ds->index_path, wanted);
    if (memcmp(&h->kind, kind, sizeof *kind) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: was made with: %s; make one for these options with: %s", r->path, of_file,
                    wanted);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_rows_open(tokmap_i_rows *r, const tokmap_dataset *ds,
                                 const tokmap_i_rows_kind *kind, const char *path, bool *exists,
                                 tokmap_error *err)
{
    uint8_t bytes[TOKMAP_I_ROWS_HEADER_BYTES];
    tokmap_i_file_stat stat;
    bool is_newer = false;
    *r = (tokmap_i_rows){.ds = ds, .fd = -1};
    r->path = path ? strdup(path) : tokmap_i_rows_path(ds, kind);
    if (!r->path)
        return FAIL_MEMORY(err);
    const int error = tokmap_i_file_open(r->path, &r->fd);
    *exists = error != ENOENT;
    if (!*exists && !path)
        return TOKMAP_OK;
    tokmap_status status = CHECK_IO(err, error, "%s: cannot open", r->path);
    if (!status)
        status = CHECK_IO(err, tokmap_i_file_stat_fd(r->fd, &stat), "%s: cannot open", r->path);
    if (status)
        return status;
    if (stat.n_bytes < sizeof bytes)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: not a rows file: remove it", r->path);
    status =
        tokmap_i_read_exactly((tokmap_i_named_file){r->fd, r->path}, 0, sizeof bytes, bytes, err);
    if (status)
        return status;
    const char *problem = tokmap_i_rows_header_decode(&r->header, bytes, &is_newer);
    if (problem)
        return FAIL(err, is_newer ? TOKMAP_ERR_VERSION : TOKMAP_ERR_CORRUPT, "%s: %s", r->path,
                    problem);
    r->chunk_rows = tokmap_i_chunk_rows(kind->length);
    return check_header(r, kind, stat.n_bytes, err);
}

void tokmap_i_rows_close(tokmap_i_rows *r)
{
    if (r->path && r->fd >= 0)
        tokmap_i_file_close(r->fd);
    free(r->path);
    free(r->bytes);
    *r = (tokmap_i_rows){.fd = -1};
}

/* ---- Chunks ---- */

bool tokmap_i_rows_reader_open(tokmap_i_rows_reader *reader, uint64_t largest_chunk)
{
    *reader = (tokmap_i_rows_reader){.largest_chunk = largest_chunk};
    if (largest_chunk == 0)
        return true;
    reader->n_slots = (uint32_t)MAX(1, MIN(CACHE_BYTES / largest_chunk, MOST_SLOTS));
    reader->slots = calloc(reader->n_slots, sizeof *reader->slots);
    reader->bytes = malloc(reader->n_slots * (size_t)largest_chunk);
    return reader->slots && reader->bytes;
}

void tokmap_i_rows_reader_close(tokmap_i_rows_reader *reader)
{
    free(reader->slots);
    free(reader->bytes);
    free(reader->pieces);
    *reader = (tokmap_i_rows_reader){0};
}

uint64_t tokmap_i_rows_reader_bytes(const tokmap_i_rows_reader *reader)
{
    if (!reader)
        return 0;
    return sizeof *reader + reader->n_slots * (sizeof *reader->slots + reader->largest_chunk);
}

static tokmap_status fail_chunk(const tokmap_i_rows *r, uint64_t number, const char *problem,
                                tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_CORRUPT,
                "%s: damaged: chunk %" PRIu64 " of its rows %s: make it again with tokmap rows",
                r->path ? r->path : r->ds->index_path, number, problem);
}

static tokmap_status check_chunk(const tokmap_i_rows *r, uint64_t number, const uint8_t *bytes,
                                 uint64_t n_bytes, tokmap_i_chunk *out, tokmap_error *err)
{
    const char *problem = tokmap_i_chunk_check(out, bytes, (size_t)n_bytes);
    const uint64_t n_rows = MIN(r->chunk_rows, r->header.n_rows - number * r->chunk_rows);
    if (!problem && (out->number != number || (uint64_t)out->n_alone + out->n_shared != n_rows))
        problem = "has other rows";
    return problem ? fail_chunk(r, number, problem, err) : TOKMAP_OK;
}

static uint64_t slot_of(const tokmap_i_rows *r, const tokmap_i_rows_reader *reader, uint64_t number)
{
    return (load_le64(r->ds->header.dataset_id) + number) % reader->n_slots;
}

/* Reads it where the file says that it is. */
static tokmap_status read_chunk(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                uint64_t number, tokmap_i_chunk_slot *slot, tokmap_error *err)
{
    const tokmap_i_rows_header *h = &r->header;
    const tokmap_i_named_file file = {r->fd, r->path};
    const uint64_t table = h->n_bytes - 8 * h->n_chunks, at = slot - reader->slots;
    uint8_t entries[16] = {0}, *bytes = reader->bytes + at * reader->largest_chunk;
    const size_t n_entries = number + 1 < h->n_chunks ? 2 : 1;
    tokmap_status status =
        tokmap_i_read_exactly(file, table + 8 * number, 8 * n_entries, entries, err);
    if (status)
        return status;
    const uint64_t begin = load_le64(entries),
                   end = n_entries == 2 ? load_le64(entries + 8) : table;
    if (begin % 8 != 0 || begin > end || end > table || end - begin > h->largest_chunk ||
        end - begin < TOKMAP_I_CHUNK_HEADER_BYTES || (end - begin) % 8 != 0)
        return fail_chunk(r, number, "is not where its file says", err);
    slot->rows = NULL;
    status = tokmap_i_read_exactly(file, begin, (size_t)(end - begin), bytes, err);
    if (!status)
        status = check_chunk(r, number, bytes, end - begin, &slot->chunk, err);
    if (!status)
        slot->rows = r;
    return status;
}

tokmap_status tokmap_i_rows_chunk(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                  uint64_t number, tokmap_i_chunk *out, tokmap_error *err)
{
    if (r->bytes) {
        const uint8_t *table = r->bytes + r->header.n_bytes - 8 * r->header.n_chunks;
        tokmap_i_chunk_view(out, r->bytes + load_le64(table + 8 * number));
        return TOKMAP_OK;
    }
    tokmap_i_chunk_slot *slot = &reader->slots[slot_of(r, reader, number)];
    tokmap_status status = TOKMAP_OK;
    if (slot->rows != r || slot->chunk.number != number)
        status = read_chunk(r, reader, number, slot, err);
    *out = slot->chunk;
    return status;
}

/* ---- Rows ---- */

/* Fills in a piece: part number `part` of a document, UINT64_MAX for its last one. */
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
                    "%s: document %" PRIu64 " is not as its rows say: one of them is damaged",
                    r->ds->index_path, document);
    const uint64_t skipped = part * r->header.kind.length;
    *out = (tokmap_piece){.document = document,
                          .first_token = d.first_token + skipped,
                          .n_tokens =
                              (uint32_t)MIN(d.n_tokens - skipped, r->header.kind.length + 1ull)};
    return TOKMAP_OK;
}

/* Which part of its document the piece alone in this row is: those of one document follow one
 * another. */
static uint64_t part_of(const tokmap_i_chunk *c, uint32_t row)
{
    const uint32_t document = tokmap_i_chunk_number(c, row);
    return row - tokmap_i_chunk_first(c, document) + (document == 0 ? c->first_part : 0);
}

/* Where the pieces of a shared row begin, in the list of them. */
static uint32_t start_of(const tokmap_i_chunk *c, uint32_t row)
{
    return row < c->n_shared ? tokmap_i_chunk_number(c, (uint64_t)c->n_alone + row) : c->n_pieces;
}

static bool make_room(tokmap_i_rows_reader *reader, uint32_t n)
{
    if (n <= reader->capacity)
        return true;
    tokmap_piece *larger = realloc(reader->pieces, 2 * (size_t)n * sizeof *larger);
    if (!larger)
        return false;
    reader->pieces = larger;
    reader->capacity = 2 * n;
    return true;
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
    reader->n_pieces = 1;
    if (i < c.n_alone) {
        part = part_of(&c, i);
    } else {
        const uint32_t begin = start_of(&c, i - c.n_alone), end = start_of(&c, i - c.n_alone + 1);
        if (begin >= end || end > c.n_pieces)
            return fail_chunk(r, c.number, "has a row without a piece", err);
        at = (uint64_t)c.n_alone + c.n_shared + begin;
        reader->n_pieces = end - begin;
    }
    if (!make_room(reader, reader->n_pieces))
        return FAIL_MEMORY(err);
    for (uint32_t k = 0; k < reader->n_pieces && !status; k++) {
        tokmap_piece *p = &reader->pieces[k];
        const uint64_t document = c.first_document + tokmap_i_chunk_number(&c, at + k);
        status = find_piece(r, reader, document, part, p, err);
        p->place = (uint32_t)place;
        p->n_inputs = p->n_tokens;
        if (!status && place + p->n_tokens > kind->length + 1ull)
            return fail_chunk(r, c.number, "has a row that is too long", err);
        place += status ? 0 : round_up(p->n_tokens, kind->align);
    }
    if (status)
        return status;
    tokmap_piece *last = &reader->pieces[reader->n_pieces - 1];
    last->n_inputs = MIN(last->n_tokens, tokmap_i_rows_tokens(kind, last) - 1 - last->place);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_rows_extent(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                   uint64_t number, uint64_t *begin, uint64_t *end,
                                   tokmap_error *err)
{
    uint64_t *const places[] = {begin, end};
    tokmap_status status = TOKMAP_OK;
    *end = r->header.n_tokens;
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
