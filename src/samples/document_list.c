/* SPDX-License-Identifier: Apache-2.0 */
#include "samples/document_list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/options.h"

#define MOST_NUMBERS ((uint64_t)1 << 48)
#define AHEAD 16       /* documents that are fetched before they are looked up */
#define START_BYTES 16 /* of those that are found here */
#define COPIED_BYTES ((uint64_t)64 << 20)

/* Copies an array that is small enough, so that what the caller does with it changes no row. */
static tokmap_status copy_numbers(tokmap_i_numbers *numbers, void **own, tokmap_error *err)
{
    const uint64_t n_bytes = numbers->n * numbers->number_bytes; /* checked by the callers */
    *own = NULL;
    if (n_bytes == 0 || n_bytes >= COPIED_BYTES)
        return TOKMAP_OK;
    *own = malloc(n_bytes);
    if (!*own)
        return FAIL_MEMORY(err);
    numbers->bytes = memcpy(*own, numbers->bytes, n_bytes);
    return TOKMAP_OK;
}

uint64_t tokmap_i_numbers_bytes(const tokmap_i_numbers *numbers, const void *own)
{
    return own ? numbers->n * numbers->number_bytes : 0;
}

tokmap_status tokmap_i_numbers_take(tokmap_i_numbers *numbers, void **own, uint64_t end,
                                    bool ends_with_1, const char *what, const tokmap_dataset *ds,
                                    uint64_t *hash, tokmap_error *err)
{
    uint64_t run[512];
    if (!numbers->bytes || (numbers->number_bytes != 4 && numbers->number_bytes != 8) ||
        numbers->n == 0 || numbers->n > MOST_NUMBERS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: its list of %s must have 1 to 2^48 numbers of 4 or 8 bytes",
                    ds->index_path, what);
    const tokmap_status status = copy_numbers(numbers, own, err);
    if (status)
        return status;
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    if (!hasher)
        return FAIL_MEMORY(err);
    uint64_t i = 0, largest = 0;
    while (i < numbers->n && largest < end) {
        size_t k = 0;
        for (; k < sizeof run / sizeof *run && i < numbers->n; k++, i++) {
            run[k] = tokmap_i_number_at(numbers, i);
            largest = MAX(largest, run[k]);
        }
        tokmap_i_hasher_add(hasher, run, k * sizeof *run);
    }
    const uint64_t one = 1;
    if (ends_with_1)
        tokmap_i_hasher_add(hasher, &one, sizeof one);
    *hash = tokmap_i_hasher_get(hasher);
    tokmap_i_hasher_close(hasher);
    if (largest < end)
        return TOKMAP_OK;
    for (i = (i - 1) / (sizeof run / sizeof *run) * (sizeof run / sizeof *run);
         tokmap_i_number_at(numbers, i) < end;)
        i++;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: its list of %s has %" PRIu64 " at place %" PRIu64 ", but there are %" PRIu64
                " %s",
                ds->index_path, what, tokmap_i_number_at(numbers, i), i, end, what);
}

/* ---- The tokens of a list ---- */

/* A token by the place of its document in the list, and its number in the document. */
typedef struct position {
    uint64_t place, token;
} position;

static bool is_before(position a, position b)
{
    return a.place != b.place ? a.place < b.place : a.token < b.token;
}

/* Returns where a window begins. */
static position start_of(const tokmap_i_document_list *l, uint64_t window)
{
    if (window == 0)
        return (position){0, 0};
    return (position){tokmap_i_number_at(&l->starts, 2 * window),
                      tokmap_i_number_at(&l->starts, 2 * window + 1)};
}

static tokmap_status fail_starts(const tokmap_i_document_list *l, uint64_t window,
                                 tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_MISMATCH,
                "%s: its list of documents does not go with its starts at window %" PRIu64
                ": they are of other documents or of another sequence_length, or were changed",
                l->ds->index_path, window);
}

typedef struct list_cursor {
    tokmap_i_extent *ranges; /* filled in unless it is NULL: tokens of the dataset, in order */
    size_t n_ranges;
    uint64_t n_tokens;
    position last;       /* the last token */
    uint64_t likely_end; /* documents before this place are fetched ahead */
} list_cursor;

/* Fetches what read_from needs of the document at a place before `end`. */
static void fetch_ahead(const tokmap_i_document_list *l, uint64_t place, uint64_t end)
{
    const uint64_t document =
        place < MIN(end, l->documents.n) ? tokmap_i_number_at(&l->documents, place) : UINT64_MAX;
    if (document < l->ds->header.n_documents)
        tokmap_i_documents_prefetch_get(&l->ds->documents, document);
}

/* Goes over most_tokens from a position on, or fewer where the list ends. No tokens: there is no
 * such position, or the list was changed. */
static tokmap_status read_from(const tokmap_i_document_list *l, tokmap_i_index_cache *index,
                               position from, uint64_t most_tokens, list_cursor *w,
                               tokmap_error *err)
{
    uint64_t at = from.token;
    const uint64_t end = index ? 0 : w->likely_end;
    for (uint64_t place = from.place; place < MIN(end, from.place + AHEAD); place++)
        fetch_ahead(l, place, end);
    w->n_tokens = w->n_ranges = 0;
    for (uint64_t place = from.place; place < l->documents.n && w->n_tokens < most_tokens;
         place++) {
        const uint64_t document = tokmap_i_number_at(&l->documents, place);
        tokmap_document d;
        fetch_ahead(l, place + AHEAD, end);
        const bool exists = document < l->ds->header.n_documents;
        if (exists && tokmap_i_documents_get(&l->ds->documents,
                                             tokmap_i_index_cache_of(index, l->ds), document, &d))
            return tokmap_i_index_cache_fail(index, l->ds, err);
        if (!exists || (at > 0 && at >= d.n_tokens)) {
            w->n_tokens = 0;
            return TOKMAP_OK;
        }
        const uint64_t n = MIN(d.n_tokens - at, most_tokens - w->n_tokens);
        const uint64_t first = d.first_token + at;
        if (n > 0 && w->ranges && w->n_ranges > 0 && w->ranges[w->n_ranges - 1].end == first)
            w->ranges[w->n_ranges - 1].end += n;
        else if (n > 0 && w->ranges)
            w->ranges[w->n_ranges++] = (tokmap_i_extent){first, first + n};
        if (n > 0)
            w->last = (position){place, at + n - 1};
        w->n_tokens += n;
        at = 0;
    }
    return TOKMAP_OK;
}

/* Reads the ranges of a window. It must have all its tokens, and the last of them must be the first
 * of the next window. */
static tokmap_status read_window(const tokmap_i_document_list *l, tokmap_i_index_cache *index,
                                 uint64_t window, list_cursor *w, tokmap_error *err)
{
    const bool is_last = window + 1 == l->n_windows;
    const position start = start_of(l, window);
    const position next = is_last ? (position){l->documents.n, 0} : start_of(l, window + 1);
    w->likely_end = next.place + 1;
    const tokmap_status status = read_from(l, index, start, l->length + 1ull, w, err);
    if (status)
        return status;
    bool fits = w->n_tokens == l->length + 1ull || (is_last && l->keeps_rest && w->n_tokens > 1);
    if (!is_last)
        fits &= w->last.place == next.place && w->last.token == next.token;
    return fits ? TOKMAP_OK : fail_starts(l, window, err);
}

tokmap_status tokmap_i_document_list_window(const tokmap_i_document_list *l,
                                            tokmap_i_index_cache *index, uint64_t window,
                                            tokmap_i_extent *ranges, size_t *n, tokmap_error *err)
{
    list_cursor w = {.ranges = ranges};
    const tokmap_status status = read_window(l, index, window, &w, err);
    *n = w.n_ranges;
    return status;
}

/* ---- Open ---- */

/* Finds where the windows begin. */
static tokmap_status find_starts(tokmap_i_document_list *l, tokmap_error *err)
{
    uint64_t n_tokens = 0, n = 0; /* n: windows of which the first token was found */
    for (uint64_t place = 0; place < l->documents.n; place++) {
        tokmap_document d;
        if (tokmap_i_documents_get(&l->ds->documents, NULL,
                                   tokmap_i_number_at(&l->documents, place), &d))
            return tokmap_i_index_cache_fail(NULL, l->ds, err);
        for (; n * l->length < n_tokens + d.n_tokens; n++) {
            if (!array_grow(&l->own_starts, n, START_BYTES))
                return FAIL_MEMORY(err);
            uint8_t *start = (uint8_t *)l->own_starts + START_BYTES * n;
            le_put64(start, place);
            le_put64(start + 8, n * l->length - n_tokens);
        }
        n_tokens += d.n_tokens;
    }
    if (n > 0 && !array_resize(&l->own_starts, n, START_BYTES))
        return FAIL_MEMORY(err);
    const uint64_t n_labels = n_tokens - MIN(n_tokens, 1);
    l->n_windows = l->keeps_rest ? div_up(n_labels, l->length) : n_labels / l->length;
    l->starts = (tokmap_i_numbers){l->own_starts, 2 * l->n_windows, START_BYTES / 2};
    return TOKMAP_OK;
}

/* Checks that the last window follows the one before it, and that no window is missing after it. */
static tokmap_status check_end(const tokmap_i_document_list *l, tokmap_error *err)
{
    const uint64_t n = l->n_windows, length = l->length;
    list_cursor w = {0};
    tokmap_status status = n > 1 ? read_window(l, NULL, n - 2, &w, err) : TOKMAP_OK;
    if (!status && n > 0)
        status = read_window(l, NULL, n - 1, &w, err);
    const uint64_t most = (n > 0 ? length : 0) + (l->keeps_rest ? 1 : length);
    if (!status)
        status = read_from(l, NULL, start_of(l, n - MIN(n, 1)), most + 1, &w, err);
    return status || w.n_tokens <= most ? status : fail_starts(l, n, err);
}

tokmap_status tokmap_i_document_list_open(tokmap_i_document_list **out, const tokmap_dataset *ds,
                                          const tokmap_document_list *given, uint32_t length,
                                          tokmap_error *err)
{
    tokmap_i_document_list *l = *out = malloc(sizeof *l);
    if (!l)
        return FAIL_MEMORY(err);
    *l = (tokmap_i_document_list){
        .ds = ds,
        .length = length,
        .keeps_rest = given->keeps_rest != 0,
        .documents = {given->documents, given->n_documents, given->document_bytes},
        .starts = {given->starts, 2 * given->n_windows, given->start_bytes},
        .n_windows = given->n_windows};
    if (given->keeps_rest != 0 && given->keeps_rest != 1)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "keeps_rest is %" PRId32 ": must be 0 or 1",
                    given->keeps_rest);
    if (given->reserved != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "reserved of a list of documents is %" PRId32 ": must be 0", given->reserved);
    if (given->starts ? (given->start_bytes != 4 && given->start_bytes != 8) ||
                            given->n_windows > MOST_NUMBERS
                      : given->start_bytes != 0 || given->n_windows != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: the starts of its list of documents must be at most 2^48 pairs of numbers "
                    "of 4 or 8 bytes",
                    ds->index_path);
    if (ds->header.n_documents == 0 && ds->header.n_tokens > 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its document boundaries are not known; a list of documents needs them",
                    ds->index_path);
    tokmap_status status =
        tokmap_i_numbers_take(&l->documents, &l->own_documents, ds->header.n_documents,
                              l->keeps_rest, "documents", ds, &l->hash, err);
    if (!status && given->starts)
        status = copy_numbers(&l->starts, &l->own_starts, err);
    return status ? status : given->starts ? check_end(l, err) : find_starts(l, err);
}

void tokmap_i_document_list_close(tokmap_i_document_list *l)
{
    if (!l)
        return;
    free(l->own_documents);
    free(l->own_starts);
    free(l);
}

uint64_t tokmap_i_document_list_bytes(const tokmap_i_document_list *l)
{
    return sizeof *l + tokmap_i_numbers_bytes(&l->documents, l->own_documents) +
           tokmap_i_numbers_bytes(&l->starts, l->own_starts);
}

/* ---- From tokens to windows ---- */

/* Returns the first of the windows first .. n_windows that does not begin before a token, or, with
 * `after`, that begins after it. */
static uint64_t find_start(const tokmap_i_document_list *l, uint64_t first, position token,
                           bool after)
{
    uint64_t end = l->n_windows;
    while (first < end) {
        const uint64_t half = first + (end - first) / 2;
        const position start = start_of(l, half);
        if (after ? is_before(token, start) : !is_before(start, token))
            end = half;
        else
            first = half + 1;
    }
    return first;
}

tokmap_status tokmap_i_document_list_search(const tokmap_i_document_list *l,
                                            tokmap_i_index_cache *index, uint64_t place,
                                            uint64_t from, uint64_t to, tokmap_i_extent *windows,
                                            tokmap_error *err)
{
    const position first = {place, from}, last = {place, to - 1};
    list_cursor w = {0};
    *windows = (tokmap_i_extent){0, 0};
    if (l->n_windows == 0)
        return TOKMAP_OK;
    /* A window ends with the first token of the next one, so the first window that has the token is
     * the one before the first that begins there or after it. */
    windows->begin = find_start(l, 1, first, false) - 1;
    windows->end = find_start(l, windows->begin, last, true);
    if (windows->begin + 1 < l->n_windows)
        return TOKMAP_OK;
    const tokmap_status status = read_window(l, index, windows->begin, &w, err);
    if (!status && is_before(w.last, first)) /* the token is after the last window */
        *windows = (tokmap_i_extent){0, 0};
    return status;
}
