/* SPDX-License-Identifier: Apache-2.0 */
#include "views/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "base/progress.h"
#include "system/platform.h"

/* ---- The file ---- */

static tokmap_status check_header(const tokmap_view *v, tokmap_error *err)
{
    const tokmap_i_header *h = &v->ds->header;
    uint8_t hash[16];
    tokmap_i_content_hash_store(&h->documents_hash, hash);
    return v->header.n_documents == h->n_documents &&
                   memcmp(hash, v->header.documents_hash, 16) == 0
               ? TOKMAP_OK
               : FAIL(err, TOKMAP_ERR_MISMATCH,
                      "%s: is a view of other documents than those of %s: make the view again",
                      v->file.path, v->ds->index_path);
}

static tokmap_status read_table(tokmap_view *v, tokmap_error *err)
{
    const size_t n_bytes = (size_t)v->header.n_chunks * TOKMAP_I_VIEW_ENTRY_BYTES;
    uint8_t *bytes = malloc(n_bytes + 1);
    v->chunks = calloc((size_t)v->header.n_chunks + 1, sizeof *v->chunks);
    const bool has_room =
        bytes && v->chunks && tokmap_i_side_expect_chunks(&v->file, v->header.n_chunks);
    tokmap_status status =
        has_room ? tokmap_i_side_read(&v->file, TOKMAP_I_SIDE_HEADER_BYTES, n_bytes, bytes, err)
                 : FAIL_MEMORY(err);
    const char *problem = status ? NULL : tokmap_i_view_table_decode(&v->header, bytes, v->chunks);
    free(bytes);
    return problem ? tokmap_i_side_fail(&v->file, problem, err) : status;
}

tokmap_status tokmap_i_view_open_file(tokmap_view *v, const char *path, bool *exists,
                                      tokmap_error *err)
{
    tokmap_status status =
        tokmap_i_side_open(&v->file, &tokmap_i_view_kind, v->ds, path, &v->header, exists, err);
    if (!status)
        status = check_header(v, err);
    return status ? status : read_table(v, err);
}

/* ---- Chunks ---- */

bool tokmap_i_view_reader_open(tokmap_i_view_reader *reader, uint64_t n_bytes)
{
    *reader = (tokmap_i_view_reader){.files = n_bytes ? tokmap_i_index_cache_open(n_bytes) : NULL};
    return n_bytes == 0 || reader->files;
}

void tokmap_i_view_reader_close(tokmap_i_view_reader *reader)
{
    tokmap_i_index_cache_close(reader->files);
    free(reader->ranges);
    *reader = (tokmap_i_view_reader){0};
}

/* Fails because a chunk is damaged, or because its file could not be read. */
static tokmap_status fail_chunk(const tokmap_view *v, const tokmap_i_view_reader *reader,
                                uint64_t number, const char *problem, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_index_cache_check(reader->files, err);
    return status ? status
                  : FAIL(err, TOKMAP_ERR_CORRUPT,
                         "%s: damaged: chunk %" PRIu64 " %s: make the view again",
                         v->file.path ? v->file.path : v->ds->index_path, number, problem);
}

/* A chunk that was checked. */
typedef struct chunk {
    const tokmap_view *v;
    tokmap_i_view_reader *reader;
    uint64_t number;
    const tokmap_i_view_chunk *at;
    tokmap_i_pieces *file; /* NULL: in memory */
} chunk;

static const char *check_bytes(void *context, const uint8_t *bytes)
{
    const chunk *c = context;
    const uint64_t first = c->number * TOKMAP_I_VIEW_CHUNK;
    const uint32_t n = (uint32_t)MIN(c->v->header.n_documents - first, TOKMAP_I_VIEW_CHUNK);
    return tokmap_i_view_chunk_check(c->at, bytes, n);
}

/* Checks a whole chunk of a file when it is first needed. */
static tokmap_status check_chunk(chunk *c, tokmap_error *err)
{
    const tokmap_i_side_chunk whole = {c->number, c->at->place,
                                       tokmap_i_view_chunk_bytes(c->at->n_kept), check_bytes, c};
    const char *problem;
    const tokmap_status status = tokmap_i_side_check(&c->v->file, &whole, &problem, err);
    return problem ? fail_chunk(c->v, c->reader, c->number, problem, err) : status;
}

static tokmap_status open_chunk(chunk *c, const tokmap_view *v, tokmap_i_view_reader *reader,
                                uint64_t number, tokmap_error *err)
{
    *c = (chunk){v, reader, number, &v->chunks[number], NULL};
    if (v->bytes)
        return TOKMAP_OK;
    const tokmap_i_cached_file file = {v, v->file.fd,        v->file.path, v->header.n_bytes,
                                       0, v->header.set_hash};
    c->file = tokmap_i_index_cache_set(reader->files, &file);
    return check_chunk(c, err);
}

/* Returns a number of 2 or 8 bytes in a chunk; 0 if it cannot be read, which the cache
 * remembers. */
static uint64_t get_number(const chunk *c, uint32_t at, uint32_t n_bytes)
{
    const uint64_t place = c->at->place + at;
    const uint8_t *p = c->file ? c->file->get(c->file, place) : c->v->bytes + place;
    if (!p)
        return 0;
    return n_bytes == 2 ? le_get16(p) : le_get64(p);
}

static bool is_listed(const chunk *c)
{
    return c->at->n_kept <= TOKMAP_I_VIEW_MOST_LISTED;
}

/* Returns the first place in a list whose document is not before this one. */
static uint32_t find_listed(const chunk *c, uint32_t document)
{
    uint32_t at = 0, n = c->at->n_kept;
    while (n > 0) {
        const bool before = get_number(c, 2 * (at + n / 2), 2) < document;
        at += before ? n / 2 + 1 : 0;
        n = before ? n - n / 2 - 1 : n / 2;
    }
    return at;
}

/* Returns the kept documents among the 64 of a group, by its number in the chunk. */
static uint64_t get_group(const chunk *c, uint32_t group)
{
    const uint32_t first = TOKMAP_I_GROUP_DOCUMENTS * group;
    uint64_t bits = 0;
    if (!is_listed(c))
        return get_number(c, 8 * group, 8);
    for (uint32_t at = find_listed(c, first); at < c->at->n_kept; at++) {
        const uint64_t d = get_number(c, 2 * at, 2);
        if (d < first || d >= first + TOKMAP_I_GROUP_DOCUMENTS)
            break;
        bits |= (uint64_t)1 << (d - first);
    }
    return bits;
}

/* Where a lookup begins: kept document number 32 * i of the chunk. */
typedef struct skip_point {
    uint32_t i, document;
    uint64_t n_before; /* tokens of kept documents of the chunk before it */
} skip_point;

/* Finds the last skip point whose tokens, or whose document, are not above `most`; if there is
 * none, the first one. */
static skip_point find_skip_point(const chunk *c, uint64_t most, bool by_tokens)
{
    const uint32_t samples_at = tokmap_i_view_samples_at(c->at->n_kept);
    uint32_t at = 0, n = tokmap_i_view_n_samples(c->at->n_kept);
    while (n > 1) {
        const uint64_t found = get_number(c, samples_at + 8 * (at + n / 2), 8);
        const bool fits = (by_tokens ? found >> 16 : found & 0xffff) <= most;
        at += fits ? n / 2 : 0;
        n = fits ? n - n / 2 : n / 2;
    }
    const uint64_t found = get_number(c, samples_at + 8 * at, 8);
    return (skip_point){at, (uint32_t)(found & 0xffff), found >> 16};
}

/* ---- Kept documents, one after another ---- */

enum {
    NO_GROUP = UINT32_MAX
};

typedef struct kept_cursor {
    chunk c;
    uint32_t i;     /* in the list of the chunk */
    uint64_t bits;  /* with a bitmap only: kept documents of the group from the current one on */
    uint32_t group; /* number in the chunk, for `bits` and `ends` */
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS];
    uint32_t n_ends;
    /* the current document: */
    uint64_t number, begin, end;
    uint64_t before; /* tokens of kept documents before it, counted in the view */
} kept_cursor;

static tokmap_status fail_index(const kept_cursor *w, tokmap_error *err)
{
    return tokmap_i_index_cache_fail(w->c.reader->index, w->c.v->ds, err);
}

/* Reads the ends of a group of the chunk. */
static tokmap_status read_group(kept_cursor *w, uint32_t group, tokmap_error *err)
{
    const tokmap_i_documents *docs = &w->c.v->ds->documents;
    const uint64_t number = w->c.number * (TOKMAP_I_VIEW_CHUNK / TOKMAP_I_GROUP_DOCUMENTS) + group;
    tokmap_i_pieces *from = tokmap_i_index_cache_of(w->c.reader->index, w->c.v->ds);
    w->group = group;
    w->n_ends =
        number < docs->layout.n_groups ? tokmap_i_documents_group(docs, from, number, w->ends) : 0;
    return w->n_ends > 0 ? TOKMAP_OK : fail_index(w, err);
}

/* Makes a document of the chunk the current one. */
static tokmap_status take_document(kept_cursor *w, uint32_t in_chunk, tokmap_error *err)
{
    const uint32_t group = in_chunk / TOKMAP_I_GROUP_DOCUMENTS,
                   i = in_chunk % TOKMAP_I_GROUP_DOCUMENTS;
    tokmap_status status = group == w->group ? TOKMAP_OK : read_group(w, group, err);
    if (status)
        return status;
    w->number = w->c.number * TOKMAP_I_VIEW_CHUNK + in_chunk;
    tokmap_document d = {.first_token = i > 0 ? w->ends[i - 1] : 0};
    tokmap_i_pieces *from = i > 0 ? NULL : tokmap_i_index_cache_of(w->c.reader->index, w->c.v->ds);
    if (i >= w->n_ends ||
        (i == 0 && tokmap_i_documents_get(&w->c.v->ds->documents, from, w->number, &d)) ||
        d.first_token > w->ends[i])
        return fail_index(w, err);
    w->begin = d.first_token;
    w->end = w->ends[i];
    return TOKMAP_OK;
}

/* Makes kept document number `i` of the chunk the current one, which is this document. */
static tokmap_status begin_at(kept_cursor *w, uint32_t i, uint32_t document, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_index_cache_check(w->c.reader->files, err);
    w->i = i;
    w->group = NO_GROUP;
    if (!status && !is_listed(&w->c))
        w->bits = get_group(&w->c, document / TOKMAP_I_GROUP_DOCUMENTS) &
                  UINT64_MAX << document % TOKMAP_I_GROUP_DOCUMENTS;
    return status ? status : take_document(w, document, err);
}

/* Goes to the first kept document of the next chunk that has one. TOKMAP_END: there is none. */
static tokmap_status next_chunk(kept_cursor *w, tokmap_error *err)
{
    const uint64_t n_chunks = w->c.v->header.n_chunks;
    uint64_t number = w->c.number + 1;
    while (number < n_chunks && w->c.v->chunks[number].n_kept == 0)
        number++;
    if (number >= n_chunks)
        return TOKMAP_END;
    const tokmap_status status = open_chunk(&w->c, w->c.v, w->c.reader, number, err);
    if (status)
        return status;
    w->before = w->c.at->tokens_before;
    return begin_at(w, 0, find_skip_point(&w->c, 0, false).document, err);
}

/* Goes to the next kept document. TOKMAP_END: there is none. */
static tokmap_status next_kept(kept_cursor *w, tokmap_error *err)
{
    uint32_t group = w->group;
    w->before += w->end - w->begin;
    w->begin = w->end;
    if (is_listed(&w->c))
        return ++w->i < w->c.at->n_kept
                   ? take_document(w, (uint32_t)get_number(&w->c, 2 * w->i, 2), err)
                   : next_chunk(w, err);
    w->bits &= w->bits - 1;
    while (w->bits == 0 && ++group < TOKMAP_I_VIEW_CHUNK / TOKMAP_I_GROUP_DOCUMENTS)
        w->bits = get_group(&w->c, group);
    return w->bits != 0
               ? take_document(
                     w, TOKMAP_I_GROUP_DOCUMENTS * group + (uint32_t)__builtin_ctzll(w->bits), err)
               : next_chunk(w, err);
}

/* ---- Lookups ---- */

tokmap_status tokmap_i_view_group(const tokmap_view *v, tokmap_i_view_reader *reader,
                                  uint64_t group, uint64_t *bits, tokmap_error *err)
{
    const uint64_t per_chunk = TOKMAP_I_VIEW_CHUNK / TOKMAP_I_GROUP_DOCUMENTS;
    chunk c;
    *bits = 0;
    if (v->chunks[group / per_chunk].n_kept == 0)
        return TOKMAP_OK;
    const tokmap_status status = open_chunk(&c, v, reader, group / per_chunk, err);
    if (status)
        return status;
    *bits = get_group(&c, (uint32_t)(group % per_chunk));
    return tokmap_i_index_cache_check(reader->files, err);
}

tokmap_status tokmap_i_view_before(const tokmap_view *v, tokmap_i_view_reader *reader,
                                   uint64_t document, uint64_t *n_tokens, tokmap_error *err)
{
    const uint64_t number = document / TOKMAP_I_VIEW_CHUNK;
    kept_cursor w = {.group = NO_GROUP};
    *n_tokens = number < v->header.n_chunks ? v->chunks[number].tokens_before : v->header.n_tokens;
    if (number >= v->header.n_chunks || v->chunks[number].n_kept == 0)
        return TOKMAP_OK;
    tokmap_status status = open_chunk(&w.c, v, reader, number, err);
    if (status)
        return status;
    const skip_point s = find_skip_point(&w.c, document % TOKMAP_I_VIEW_CHUNK, false);
    w.before = w.c.at->tokens_before + s.n_before;
    status = begin_at(&w, s.i * TOKMAP_I_VIEW_STEP, s.document, err);
    while (!status && w.number < document)
        status = next_kept(&w, err);
    *n_tokens = status == TOKMAP_END ? v->header.n_tokens : w.before;
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

/* Returns the last chunk with documents whose tokens, or whose documents, before it are not above
 * `most`. */
static uint64_t find_chunk(const tokmap_view *v, uint64_t most, bool by_tokens)
{
    uint64_t at = 0, n = v->header.n_chunks;
    while (n > 1) {
        const tokmap_i_view_chunk *c = &v->chunks[at + n / 2];
        const bool fits = (by_tokens ? c->tokens_before : c->kept_before) <= most;
        at += fits ? n / 2 : 0;
        n = fits ? n - n / 2 : n / 2;
    }
    while (at > 0 && v->chunks[at].n_kept == 0)
        at--;
    return at;
}

/* Goes to the kept document that has a token of the view. */
static tokmap_status go_to_token(kept_cursor *w, const tokmap_view *v, tokmap_i_view_reader *reader,
                                 uint64_t token, tokmap_error *err)
{
    tokmap_status status = open_chunk(&w->c, v, reader, find_chunk(v, token, true), err);
    if (status)
        return status;
    const skip_point s = find_skip_point(&w->c, token - w->c.at->tokens_before, true);
    w->before = w->c.at->tokens_before + s.n_before;
    status = begin_at(w, s.i * TOKMAP_I_VIEW_STEP, s.document, err);
    while (!status && token - w->before >= w->end - w->begin)
        status = next_kept(w, err);
    return status;
}

/* Adds tokens of the dataset to the last range, or as one more; false: out of memory. */
static bool add_range(tokmap_i_view_reader *r, uint64_t begin, uint64_t end)
{
    if (r->n_ranges > 0 && r->ranges[r->n_ranges - 1].end == begin) {
        r->ranges[r->n_ranges - 1].end = end;
        return true;
    }
    if (!array_reserve(&r->ranges, &r->capacity, r->n_ranges + 1, sizeof *r->ranges))
        return false;
    r->ranges[r->n_ranges++] = (tokmap_i_extent){begin, end};
    return true;
}

/* Adds the next n tokens of the view from `token` on to the ranges. */
static tokmap_status add_ranges(const tokmap_view *v, tokmap_i_view_reader *r, uint64_t token,
                                uint64_t n, tokmap_error *err)
{
    kept_cursor w = {.group = NO_GROUP};
    tokmap_status status = go_to_token(&w, v, r, token, err);
    uint64_t begin = w.begin + (token - w.before);
    while (!status && n > 0) {
        const uint64_t end = MIN(w.end, begin + n);
        n -= end - begin;
        if (end > begin && !add_range(r, begin, end))
            return FAIL_MEMORY(err);
        if (n > 0)
            status = next_kept(&w, err);
        begin = w.begin;
    }
    if (status == TOKMAP_END) /* the index has fewer tokens than the view counted */
        return fail_index(&w, err);
    return status ? status : tokmap_i_index_cache_check(r->files, err);
}

tokmap_status tokmap_i_view_ranges(const tokmap_view *v, tokmap_i_view_reader *reader,
                                   uint64_t first, uint64_t n_tokens, tokmap_i_extent within,
                                   tokmap_error *err)
{
    const uint64_t n_here = MIN(n_tokens, within.end - first);
    reader->n_ranges = 0;
    tokmap_status status = add_ranges(v, reader, first, n_here, err);
    if (!status && n_here < n_tokens)
        status = add_ranges(v, reader, within.begin, n_tokens - n_here, err);
    return status;
}

/* ---- Numbers of documents ---- */

/* Copies the numbers of n kept documents of a chunk, from its document number `i` on. */
static void copy_numbers(const chunk *c, uint32_t i, uint32_t n, uint64_t *documents)
{
    const uint64_t first = c->number * TOKMAP_I_VIEW_CHUNK;
    if (is_listed(c)) {
        for (uint32_t k = 0; k < n; k++)
            documents[k] = first + get_number(c, 2 * (i + k), 2);
        return;
    }
    const uint32_t sample_at =
        tokmap_i_view_samples_at(c->at->n_kept) + 8 * (i / TOKMAP_I_VIEW_STEP);
    const uint32_t document = get_number(c, sample_at, 8) & 0xffff;
    uint32_t skipped = i % TOKMAP_I_VIEW_STEP, group = document / TOKMAP_I_GROUP_DOCUMENTS, k = 0;
    uint64_t bits = get_group(c, group) & UINT64_MAX << document % TOKMAP_I_GROUP_DOCUMENTS;
    while (k < n) {
        while (bits == 0 && ++group < TOKMAP_I_VIEW_CHUNK / TOKMAP_I_GROUP_DOCUMENTS)
            bits = get_group(c, group);
        if (bits == 0)
            return; /* the file could not be read, which the cache remembers */
        if (skipped > 0)
            skipped--;
        else
            documents[k++] =
                first + group * TOKMAP_I_GROUP_DOCUMENTS + (uint32_t)__builtin_ctzll(bits);
        bits &= bits - 1;
    }
}

tokmap_status tokmap_view_documents(const tokmap_view *v, uint64_t first, uint64_t n_documents,
                                    uint64_t *documents, tokmap_error *err)
{
    tokmap_i_view_reader reader;
    tokmap_status status = TOKMAP_OK;
    tokmap_i_error_clear(err);
    if (!v || (!documents && n_documents > 0))
        return FAIL_NULL(err);
    if (first > v->header.n_kept || n_documents > v->header.n_kept - first)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "the view has %" PRIu64 " documents: no %" PRIu64 " from number %" PRIu64 " on",
                    v->header.n_kept, n_documents, first);
    if (!tokmap_i_view_reader_open(&reader, v->bytes ? 0 : v->header.n_bytes))
        return FAIL_MEMORY(err);
    while (n_documents > 0 && !status) {
        chunk c;
        status = open_chunk(&c, v, &reader, find_chunk(v, first, false), err);
        if (status)
            break;
        const uint32_t i = (uint32_t)(first - c.at->kept_before);
        const uint32_t n_here = (uint32_t)MIN(n_documents, c.at->n_kept - i);
        copy_numbers(&c, i, n_here, documents);
        status = tokmap_i_index_cache_check(reader.files, err);
        documents += n_here;
        first += n_here;
        n_documents -= n_here;
    }
    tokmap_i_view_reader_close(&reader);
    return status;
}

/* ---- Verify ---- */

/* Whether the samples and the table count the tokens before kept document number i of a chunk. */
static bool counts_agree(const kept_cursor *w, uint32_t i, uint64_t n_before)
{
    const chunk *c = &w->c;
    const uint32_t at = tokmap_i_view_samples_at(c->at->n_kept) + 8 * (i / TOKMAP_I_VIEW_STEP);
    return w->before == n_before && (i % TOKMAP_I_VIEW_STEP != 0 ||
                                     get_number(c, at, 8) >> 16 == n_before - c->at->tokens_before);
}

tokmap_status tokmap_view_verify(const tokmap_view *v, tokmap_on_progress *on_progress,
                                 void *context, tokmap_error *err)
{
    const uint64_t progress_step = 1 << 16;
    tokmap_i_view_reader reader;
    uint64_t n_tokens = 0, n_kept = 0;
    kept_cursor w = {.c = {.number = UINT64_MAX, .v = v, .reader = &reader}, .group = NO_GROUP};
    tokmap_i_error_clear(err);
    if (!v)
        return FAIL_NULL(err);
    if (!tokmap_i_view_reader_open(&reader, v->bytes ? 0 : v->header.n_bytes))
        return FAIL_MEMORY(err);
    tokmap_i_progress progress = {on_progress, context, 0, v->header.n_kept};
    tokmap_status status = next_chunk(&w, err);
    while (!status) {
        if (!counts_agree(&w, (uint32_t)(n_kept - w.c.at->kept_before), n_tokens))
            status = fail_chunk(v, &reader, w.c.number, "counts other tokens", err);
        n_tokens += w.end - w.begin;
        n_kept++;
        if (!status && n_kept % progress_step == 0)
            status = tokmap_i_progress_add(&progress, progress_step, err);
        status = status ? status : next_kept(&w, err);
    }
    if (status == TOKMAP_END && tokmap_i_progress_add(&progress, n_kept % progress_step, err))
        status = TOKMAP_ERR_STOPPED;
    if (status == TOKMAP_END)
        status = n_tokens == v->header.n_tokens
                     ? tokmap_i_index_cache_check(reader.files, err)
                     : FAIL(err, TOKMAP_ERR_CORRUPT, "%s: damaged: counts other tokens",
                            v->file.path ? v->file.path : v->ds->index_path);
    tokmap_i_view_reader_close(&reader);
    return status;
}
