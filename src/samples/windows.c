/* SPDX-License-Identifier: Apache-2.0 */
#include "samples/windows.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"

#define MOST_PACKED 10000000u /* documents */

/* ---- Within documents ---- */

uint64_t tokmap_i_windows_in(uint64_t n_tokens, uint32_t length)
{
    return n_tokens < 2 ? 0 : (n_tokens - 2) / length + 1;
}

/* Counts the windows of dataset d, when windows stay within documents. */
static tokmap_status count_within(tokmap_i_windows *w, uint32_t d, tokmap_i_view_reader *views,
                                  uint64_t *n_windows, tokmap_error *err)
{
    const tokmap_dataset *ds = w->datasets[d];
    const uint64_t n_groups = ds->documents.layout.n_groups;
    const uint64_t n_counts = MAX(div_up(n_groups, TOKMAP_I_GROUPS_PER_COUNT), 1);
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS], end = 0, used;
    tokmap_status status = TOKMAP_OK;
    if (ds->header.n_tokens > 0 && ds->header.n_documents == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its document boundaries are not known; windows within documents need them",
                    ds->index_path);
    w->within[d] = malloc(n_counts * sizeof *w->within[d]);
    if (!w->within[d])
        return FAIL_MEMORY(err);
    *n_windows = 0;
    for (uint64_t g = 0; g < n_groups && !status; g++) {
        if (g % TOKMAP_I_GROUPS_PER_COUNT == 0)
            w->within[d][g / TOKMAP_I_GROUPS_PER_COUNT] = *n_windows;
        const uint32_t n = tokmap_i_documents_group(&ds->documents, NULL, g, ends);
        bool sound = n > 0;
        status = tokmap_i_range_group(&w->ranges[d], views, g, &used, err);
        for (uint32_t j = 0; sound && j < n; j++) {
            sound = ends[j] >= end;
            if (sound && ends[j] > end && (used >> j & 1)) {
                *n_windows += tokmap_i_windows_in(ends[j] - end, w->length);
                w->n_labels += ends[j] - end - 1;
            }
            end = ends[j];
        }
        if (!sound)
            return tokmap_i_index_cache_fail(NULL, ds, err);
    }
    return status;
}

/* Returns the index of the last of the ascending counts that is not above x; the first count is
 * 0. */
static uint64_t find_count(const uint64_t *counts, uint64_t n, uint64_t x)
{
    uint64_t at = 0;
    while (n > 1) {
        const uint64_t half = n / 2;
        at += counts[at + half] <= x ? half : 0;
        n -= half;
    }
    return at;
}

static tokmap_status span_within(const tokmap_i_windows *w, tokmap_i_view_reader *views,
                                 uint64_t window, tokmap_sample *out, tokmap_error *err)
{
    const uint32_t d = out->dataset;
    const tokmap_i_documents *docs = &w->datasets[d]->documents;
    tokmap_i_pieces *from = tokmap_i_index_cache_of(views->index, w->datasets[d]);
    const uint64_t *counts = w->within[d];
    const tokmap_i_range *range = &w->ranges[d];
    const uint64_t n_counts = div_up(docs->layout.n_groups, TOKMAP_I_GROUPS_PER_COUNT);
    const uint64_t at = find_count(counts, n_counts, window);
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS], begin = 0, group = at * TOKMAP_I_GROUPS_PER_COUNT;
    uint64_t n_left = window - counts[at], used;
    if (group > 0) {
        const uint32_t n_before = tokmap_i_documents_group(docs, from, group - 1, ends);
        if (n_before == 0)
            return tokmap_i_index_cache_fail(views->index, w->datasets[d], err);
        begin = ends[n_before - 1];
    }
    for (; group < docs->layout.n_groups; group++) {
        const uint32_t n = tokmap_i_documents_group(docs, from, group, ends);
        const tokmap_status status = tokmap_i_range_group(range, views, group, &used, err);
        if (status)
            return status;
        for (uint32_t j = 0; j < n; j++) {
            const bool is_served = ends[j] > begin && (used >> j & 1);
            const uint64_t n_here = is_served ? tokmap_i_windows_in(ends[j] - begin, w->length) : 0;
            if (n_left < n_here) {
                out->first_token = begin + n_left * w->length;
                out->n_tokens = (uint32_t)MIN(w->length + 1ull, ends[j] - out->first_token);
                return TOKMAP_OK;
            }
            n_left -= n_here;
            begin = ends[j];
        }
        if (n == 0)
            break;
    }
    /* the index has changed since its windows were counted */
    return tokmap_i_index_cache_fail(views->index, w->datasets[d], err);
}

/* ---- Best fit ---- */

/* Counts the rows of dataset d, from its rows file, or packed here. */
static tokmap_status open_rows(tokmap_i_windows *w, uint32_t d, const char *path,
                               uint64_t *n_packed, uint64_t *n_rows, tokmap_error *err)
{
    const tokmap_i_range *range = &w->ranges[d];
    tokmap_i_rows *rows = &w->rows[d];
    bool exists = false;
    if (range->is_part && path)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: a rows file is of all documents, not of a range",
                    path);
    *rows = (tokmap_i_rows){.ds = w->datasets[d], .file.fd = -1, .view = range->view};
    tokmap_status status = TOKMAP_OK;
    if (!range->is_part)
        status = tokmap_i_rows_open(rows, &w->rows_kind, path, &exists, err);
    if (!status && !exists) {
        *n_packed += range->end_document - range->first_document;
        if (*n_packed > MOST_PACKED && range->is_part)
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: ranges of documents have no rows files, and those here have more than "
                        "10,000,000 documents: pack them as datasets of their own",
                        rows->ds->index_path);
        if (*n_packed > MOST_PACKED) {
            char command[TOKMAP_I_ROWS_COMMAND_BYTES];
            tokmap_i_rows_command(&w->rows_kind, rows->view != NULL, command);
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: does not exist: the datasets without a rows file have more than "
                        "10,000,000 documents, so make it with: %s",
                        rows->file.path, command);
        }
        rows->first_document = range->first_document;
        rows->end_document = range->end_document;
        rows->end_token = range->tokens.end;
        status = tokmap_i_rows_make(rows, &w->rows_kind, NULL, err);
    }
    if (status)
        return status;
    w->chunk_rows = rows->chunk_rows;
    *n_rows = rows->header.n_rows;
    w->n_labels += rows->header.n_labels;
    w->whole_before[d] = w->n_whole;
    w->short_before[d] = w->n_windows - w->n_whole * w->chunk_rows;
    w->n_whole += *n_rows / w->chunk_rows;
    return TOKMAP_OK;
}

uint64_t tokmap_i_windows_of_block(const tokmap_i_windows *w, uint64_t x)
{
    const uint64_t n_of_whole = w->n_whole * w->chunk_rows;
    if (x < n_of_whole) {
        const uint64_t chunk = x / w->chunk_rows;
        const uint64_t d = find_count(w->whole_before, w->n_datasets, chunk);
        return w->before[d] + (chunk - w->whole_before[d]) * w->chunk_rows + x % w->chunk_rows;
    }
    const uint64_t d = find_count(w->short_before, w->n_datasets, x - n_of_whole);
    const uint64_t n_rows = w->rows[d].header.n_rows;
    return w->before[d] + n_rows / w->chunk_rows * w->chunk_rows +
           (x - n_of_whole - w->short_before[d]);
}

uint64_t tokmap_i_windows_in_block(const tokmap_i_windows *w, uint64_t window)
{
    const uint32_t d = tokmap_i_windows_dataset(w, window);
    const uint64_t row = window - w->before[d], n_whole = w->rows[d].header.n_rows / w->chunk_rows;
    if (row < n_whole * w->chunk_rows)
        return w->whole_before[d] * w->chunk_rows + row;
    return w->n_whole * w->chunk_rows + w->short_before[d] + (row - n_whole * w->chunk_rows);
}

/* ---- Windows of any kind ---- */

static tokmap_status count_windows(tokmap_i_windows *w, uint32_t d, tokmap_i_view_reader *views,
                                   uint64_t *n, tokmap_error *err)
{
    const uint64_t n_tokens = w->ranges[d].window_tokens.end - w->ranges[d].window_tokens.begin;
    if (w->within)
        return count_within(w, d, views, n, err);
    if (w->ranges[d].list) { /* its labels are not counted */
        *n = w->ranges[d].list->n_windows;
        return TOKMAP_OK;
    }
    *n = n_tokens == 0 ? 0 : (n_tokens - 1) / w->length;
    w->n_labels += *n * w->length;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_windows_open(tokmap_i_windows *w, const char *const *rows_files,
                                    tokmap_i_view_reader *views, uint64_t *n_packed,
                                    tokmap_error *err)
{
    const bool by_rows = w->kind == TOKMAP_WINDOWS_BEST_FIT;
    const bool by_documents = w->kind == TOKMAP_WINDOWS_WITHIN_DOCUMENT;
    w->n_windows = w->n_labels = 0;
    w->before = calloc(w->n_datasets * (by_rows ? 3ull : 1), sizeof *w->before);
    w->within = by_documents ? calloc(w->n_datasets, sizeof *w->within) : NULL;
    w->rows = by_rows ? calloc(w->n_datasets, sizeof *w->rows) : NULL;
    if (!w->before || (by_rows && !w->rows) || (by_documents && !w->within))
        return FAIL_MEMORY(err);
    w->whole_before = by_rows ? w->before + w->n_datasets : NULL;
    w->short_before = by_rows ? w->whole_before + w->n_datasets : NULL;
    for (uint32_t d = 0; d < w->n_datasets; d++) {
        uint64_t n = 0;
        const tokmap_status status =
            by_rows ? open_rows(w, d, rows_files ? rows_files[d] : NULL, n_packed, &n, err)
                    : count_windows(w, d, views, &n, err);
        if (status)
            return status;
        w->before[d] = w->n_windows;
        w->n_windows += n; /* cannot overflow: at most 2^48 each, and less than 2^16 datasets */
    }
    if (w->n_windows > (uint64_t)1 << 48)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: its source has more than 2^48 windows",
                    w->datasets[0]->index_path);
    if (w->n_windows == 0 && (w->within || w->rows))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: no document %s two tokens, which a row needs: an input and its label",
                    w->datasets[0]->token_path,
                    w->rows_kind.whole == TOKMAP_WHOLE_DROP ? "fits into a row and has" : "has");
    if (w->n_windows == 0 && w->ranges[0].list)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its list of documents has too few tokens for sequence_length %" PRIu32
                    " and one label more",
                    w->datasets[0]->index_path, w->length);
    if (w->n_windows == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: %" PRIu64 " tokens%s are too few for sequence_length %" PRIu32
                    " and one label more",
                    w->datasets[0]->token_path,
                    w->ranges[0].window_tokens.end - w->ranges[0].window_tokens.begin,
                    w->ranges[0].view      ? " of its view"
                    : w->ranges[0].is_part ? " of its range of documents"
                                           : "",
                    w->length);
    return TOKMAP_OK;
}

void tokmap_i_windows_close(tokmap_i_windows *w)
{
    for (uint32_t d = 0; w->within && d < w->n_datasets; d++)
        free(w->within[d]);
    for (uint32_t d = 0; w->rows && d < w->n_datasets; d++)
        tokmap_i_rows_close(&w->rows[d]);
    free(w->rows);
    free(w->within);
    free(w->before);
}

uint64_t tokmap_i_windows_offset(const tokmap_i_windows *w, uint64_t epoch, uint32_t dataset)
{
    if (!w->random_offset)
        return 0;
    return tokmap_i_scale(tokmap_i_order_key(&w->id, TOKMAP_I_KEY_OFFSET, epoch, dataset),
                          w->length);
}

uint32_t tokmap_i_windows_dataset(const tokmap_i_windows *w, uint64_t window)
{
    return (uint32_t)find_count(w->before, w->n_datasets, window);
}

tokmap_status tokmap_i_windows_span(const tokmap_i_windows *w, tokmap_i_view_reader *views,
                                    uint64_t epoch, uint64_t window, tokmap_sample *out,
                                    tokmap_error *err)
{
    out->dataset = tokmap_i_windows_dataset(w, window);
    window -= w->before[out->dataset];
    if (w->within)
        return span_within(w, views, window, out, err);
    const uint64_t offset = tokmap_i_windows_offset(w, epoch, out->dataset);
    /* inside the range, as offset < length */
    out->first_token = w->ranges[out->dataset].window_tokens.begin + offset + window * w->length;
    out->n_tokens = w->length + 1;
    return TOKMAP_OK;
}

uint64_t tokmap_i_windows_view_bytes(const tokmap_i_windows *w)
{
    uint64_t n_bytes = 0;
    for (uint32_t d = 0; d < w->n_datasets; d++)
        if (w->ranges[d].view && !w->ranges[d].view->bytes)
            n_bytes += w->ranges[d].view->header.n_bytes;
    return n_bytes;
}
