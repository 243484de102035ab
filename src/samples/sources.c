/* SPDX-License-Identifier: Apache-2.0 */
/* sources.c - the sources of a loader: the documents of their datasets, and their ids. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "dataset/store.h"
#include "samples/samples.h"

#define GROUP_TOKENS ((uint64_t)1 << 27) /* for best fit; so two groups have at most 1 GiB */

/* Refuses different tokenizers: their ids would be trained on as if they meant the same. */
static tokmap_status check_tokenizers(const tokmap_loader_options *o, tokmap_error *err)
{
    const tokmap_dataset *first = NULL;
    tokmap_status status = TOKMAP_OK;
    if (o->mixed_tokenizers || (o->n_sources == 1 && o->sources[0].n_datasets == 1))
        return TOKMAP_OK;
    for (uint32_t k = 0; k < o->n_sources; k++)
        for (uint32_t d = 0; d < o->sources[k].n_datasets && !status; d++)
            status = tokmap_i_check_tokenizer(&first, o->sources[k].datasets[d],
                                              ": set mixed_tokenizers to use both", err);
    return status;
}

uint64_t tokmap_i_source_add_id(uint64_t h, const tokmap_i_source *s, uint32_t d,
                                const uint8_t order_id[16])
{
    const tokmap_i_range *range = &s->windows.ranges[d];
    h = tokmap_i_hash_add(tokmap_i_hash_add(h, le_get64(order_id)), le_get64(order_id + 8));
    if (range->is_part)
        h = tokmap_i_hash_add(tokmap_i_hash_add(h, range->first_document), range->end_document);
    if (range->view)
        h = tokmap_i_hash_add(tokmap_i_hash_add(h, UINT64_MAX), range->view->header.set_hash);
    if (range->list)
        h = tokmap_i_hash_add(tokmap_i_hash_add(h, UINT64_MAX - 1), range->list->hash);
    if (s->window_list.bytes && d + 1 == s->windows.n_datasets) {
        h = tokmap_i_hash_add(tokmap_i_hash_add(h, UINT64_MAX - 2), s->window_list.n);
        h = tokmap_i_hash_add(h, s->window_list_hash);
    }
    return h;
}

bool tokmap_i_source_has_list(const tokmap_i_source *s)
{
    return s->windows.has_lists || s->window_list.bytes;
}

/* Numbers equal order ids: sets `copy` to the number of earlier sources with the same id. Uses an
 * open-addressing hash table. */
static tokmap_status set_order_ids(tokmap_i_samples *samples, tokmap_error *err)
{
    uint32_t n_places = 2;
    while (n_places < 2 * samples->n_sources)
        n_places *= 2;
    tokmap_i_order_id *ids = calloc(n_places, sizeof *ids); /* copy: how many have this id */
    if (!ids)
        return FAIL_MEMORY(err);
    for (uint32_t k = 0; k < samples->n_sources; k++) {
        tokmap_i_source *s = &samples->sources[k];
        tokmap_i_order_id id = {.seed = samples->o.seed, .source_id = TOKMAP_I_HASH_START};
        for (uint32_t d = 0; d < s->windows.n_datasets; d++)
            id.source_id = tokmap_i_source_add_id(id.source_id, s, d, s->order_ids[d]);
        uint32_t at = (uint32_t)id.source_id & (n_places - 1);
        while (ids[at].copy > 0 && ids[at].source_id != id.source_id)
            at = (at + 1) & (n_places - 1);
        ids[at].source_id = id.source_id;
        id.copy = ids[at].copy++;
        s->shuffle.id = s->windows.id = id;
    }
    free(ids);
    return TOKMAP_OK;
}

/* Reads the index of a dataset in a store, if documents are looked up in it. */
static tokmap_status read_index(const tokmap_loader_options *o, const tokmap_loader_source *s,
                                uint32_t d, tokmap_error *err)
{
    const bool looks_up = o->windows != TOKMAP_WINDOWS_CONCAT || s->documents || s->views ||
                          s->document_lists || o->row_parts;
    return looks_up ? tokmap_i_need_index(s->datasets[d], err) : TOKMAP_OK;
}

/* Finds the part of a dataset that is used. wanted: the first document and the end, or NULL. */
static tokmap_status find_range(const tokmap_dataset *ds, const uint64_t *wanted,
                                tokmap_i_range *range, tokmap_error *err)
{
    const uint64_t n = ds->header.n_documents, n_tokens = ds->header.n_tokens;
    *range = (tokmap_i_range){
        .end_document = n, .tokens = {0, n_tokens}, .window_tokens = {0, n_tokens}};
    if (!wanted || (wanted[0] == 0 && wanted[1] == UINT64_MAX))
        return TOKMAP_OK;
    if (n == 0 && n_tokens > 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its document boundaries are not known; a range of documents needs them",
                    ds->index_path);
    const uint64_t part[2] = {wanted[0], wanted[1] == UINT64_MAX ? n : wanted[1]};
    if (part[0] > part[1] || part[1] > n)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: documents %" PRIu64 " to %" PRIu64 ": must be a range within its %" PRIu64
                    " documents",
                    ds->index_path, wanted[0], wanted[1], n);
    uint64_t places[2] = {n_tokens, n_tokens};
    bool sound = true;
    for (uint32_t i = 0; i < 2 && part[i] < n; i++) {
        tokmap_document d = {0};
        sound &= !tokmap_i_documents_get(&ds->documents, NULL, part[i], &d);
        places[i] = d.first_token;
    }
    if (!sound || places[0] > places[1])
        return tokmap_i_index_cache_fail(NULL, ds, err);
    range->first_document = part[0];
    range->end_document = part[1];
    range->tokens = range->window_tokens = (tokmap_i_extent){places[0], places[1]};
    range->is_part = part[0] > 0 || part[1] < n;
    return TOKMAP_OK;
}

/* Applies a view to the range. A view of all documents is treated as no view. */
static tokmap_status apply_view(tokmap_i_windows *w, uint32_t d, const tokmap_view *view,
                                tokmap_i_view_reader *views, tokmap_error *err)
{
    tokmap_i_range *range = &w->ranges[d];
    const tokmap_dataset *ds = w->datasets[d];
    if (!view)
        return TOKMAP_OK;
    if (view->header.n_documents != ds->header.n_documents ||
        memcmp(&view->ds->header.documents_hash, &ds->header.documents_hash,
               sizeof ds->header.documents_hash) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: its view is of the documents of %s",
                    ds->index_path, view->ds->index_path);
    if (view->header.n_kept == view->header.n_documents)
        return TOKMAP_OK;
    range->view = view;
    w->has_views = true;
    tokmap_status status =
        tokmap_i_view_before(view, views, range->first_document, &range->window_tokens.begin, err);
    if (!status)
        status =
            tokmap_i_view_before(view, views, range->end_document, &range->window_tokens.end, err);
    return status;
}

/* Applies the order of documents that the caller gives. */
static tokmap_status apply_document_list(tokmap_i_windows *w, uint32_t d,
                                         const tokmap_document_list *given,
                                         const tokmap_loader_options *o, tokmap_error *err)
{
    tokmap_i_range *range = &w->ranges[d];
    const char *refused = w->kind != TOKMAP_WINDOWS_CONCAT ? "windows of another kind than concat"
                          : o->random_offset               ? "random_offset"
                          : o->weigh_tokens                ? "weights that are shares of tokens"
                          : range->is_part                 ? "a range of documents"
                          : range->view                    ? "a view"
                                                           : NULL;
    if (given->n_documents == 0)
        return TOKMAP_OK;
    if (refused)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: a list of documents does not work with %s",
                    w->datasets[d]->index_path, refused);
    w->has_lists = true;
    return tokmap_i_document_list_open(&range->list, w->datasets[d], given, w->length, err);
}

/* Applies the order of windows that the caller gives, to a source whose windows are open. */
static tokmap_status apply_window_list(tokmap_i_source *s, const tokmap_loader_source *given,
                                       const tokmap_loader_options *o, tokmap_error *err)
{
    const char *refused = o->shuffle == TOKMAP_SHUFFLE_BLOCK ? "shuffle in blocks"
                          : o->weigh_tokens                  ? "weights that are shares of tokens"
                                                             : NULL;
    if (!given->window_list && given->n_window_list == 0 && given->window_list_bytes == 0)
        return TOKMAP_OK;
    if (refused)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: a list of windows does not work with %s",
                    s->windows.datasets[0]->index_path, refused);
    if (given->window_list_bytes != 4 && given->window_list_bytes != 8)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "window_list_bytes is %" PRIu32 ": must be 4 or 8",
                    given->window_list_bytes);
    s->shuffle.mode = TOKMAP_SHUFFLE_NONE;
    s->shuffle.n_windows = given->n_window_list;
    s->window_list =
        (tokmap_i_numbers){given->window_list, given->n_window_list, given->window_list_bytes};
    return tokmap_i_numbers_take(&s->window_list, &s->own_window_list, s->windows.n_windows, false,
                                 "windows", s->windows.datasets[0], &s->window_list_hash, err);
}

typedef struct used_range {
    const uint8_t *order_id;
    const tokmap_i_range *range;
    const tokmap_dataset *ds;
} used_range;

static int compare_used(const void *a, const void *b)
{
    const used_range *x = a, *y = b;
    const int by_id = memcmp(x->order_id, y->order_id, 16);
    const uint64_t i = x->range->first_document, k = y->range->first_document;
    return by_id ? by_id : (i > k) - (i < k);
}

/* Refuses a document that comes from two sources, unless both have the whole dataset. */
static tokmap_status check_ranges(const tokmap_i_samples *samples, tokmap_error *err)
{
    size_t n = 0;
    used_range *all = malloc(samples->n_datasets * sizeof *all), *last = all;
    if (!all)
        return FAIL_MEMORY(err);
    for (uint32_t k = 0; k < samples->n_sources; k++)
        for (uint32_t d = 0; d < samples->sources[k].windows.n_datasets; d++) {
            const tokmap_i_source *s = &samples->sources[k];
            /* views and lists may have documents in common */
            if (!s->windows.ranges[d].view && !s->windows.ranges[d].list)
                all[n++] =
                    (used_range){s->order_ids[d], &s->windows.ranges[d], s->windows.datasets[d]};
        }
    qsort(all, n, sizeof *all, compare_used);
    tokmap_status status = TOKMAP_OK;
    for (used_range *one = all + 1; one < all + n && !status; one++) {
        const tokmap_i_range *a = last->range, *b = one->range;
        if (memcmp(last->order_id, one->order_id, 16) == 0 && (a->is_part || b->is_part) &&
            MAX(a->first_document, b->first_document) < MIN(a->end_document, b->end_document))
            status = FAIL(err, TOKMAP_ERR_MISMATCH,
                          "%s: document %" PRIu64
                          " is in two ranges of the mixture, which may not overlap",
                          one->ds->index_path, b->first_document);
        if (memcmp(last->order_id, one->order_id, 16) != 0 || a->end_document < b->end_document)
            last = one;
    }
    free(all);
    return status;
}

static int compare_index(const void *a, const void *b)
{
    const used_range *x = a, *y = b;
    const tokmap_i_file_stat *s = &x->ds->index_stat, *t = &y->ds->index_stat;
    return s->device != t->device ? (s->device > t->device) - (s->device < t->device)
                                  : (s->inode > t->inode) - (s->inode < t->inode);
}

/* Whether two entries for one dataset give the same documents, or one gives all of them, without a
 * list. Ranges are for check_ranges. */
static bool is_twice(const tokmap_i_range *a, const tokmap_i_range *b)
{
    if (a->window_tokens.begin == a->window_tokens.end ||
        b->window_tokens.begin == b->window_tokens.end)
        return false;
    if (a->list || b->list)
        return a->list && b->list && a->list->hash == b->list->hash;
    if (a->view && b->view)
        return a->view->header.set_hash == b->view->header.set_hash &&
               MAX(a->first_document, b->first_document) < MIN(a->end_document, b->end_document);
    return !(a->is_part && !a->view) && !(b->is_part && !b->view);
}

/* Refuses a dataset, or a view of it, that a source has twice: its documents would come twice as
 * often as others. The same list twice is for a list of windows to decide. */
static tokmap_status check_twice(const tokmap_i_source *s, bool has_window_list, tokmap_error *err)
{
    const size_t n = s->windows.n_datasets;
    used_range *all = malloc(n * sizeof *all);
    if (!all)
        return FAIL_MEMORY(err);
    for (size_t d = 0; d < n; d++)
        all[d] = (used_range){s->order_ids[d], &s->windows.ranges[d], s->windows.datasets[d]};
    qsort(all, n, sizeof *all, compare_index);
    tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < n && !status; i++)
        for (size_t k = i + 1; k < n && !status && compare_index(&all[i], &all[k]) == 0; k++)
            if (is_twice(all[i].range, all[k].range) && !(all[i].range->list && has_window_list))
                status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                              "%s: it, or a view of it, is named twice in a source; to train on a "
                              "dataset more often than on others, give a source that has a weight",
                              all[i].ds->index_path);
    free(all);
    return status;
}

/* Finds the order id: the id of the dataset, or the given id, if the dataset has had it. */
static tokmap_status find_order_id(const tokmap_dataset *ds, const char *order_of, uint8_t id[16],
                                   tokmap_error *err)
{
    if (!order_of)
        memcpy(id, ds->header.dataset_id, 16);
    else if (!tokmap_i_id_of_hex(order_of, id) || order_of[32])
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: order_of is \"%.40s\": must be the 32 hex digits of a dataset id",
                    ds->index_path, order_of);
    else if (memcmp(id, ds->header.dataset_id, 16) != 0 &&
             !tokmap_i_was_redacted_from(ds, order_of))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: order_of is %s: that is neither its id nor one that it had before it was "
                    "redacted (redacted_from of tokmap info)",
                    ds->index_path, order_of);
    return TOKMAP_OK;
}

/* Takes the roles that the caller gives, unless they are the usual ones. Returns false when out of
 * memory. */
static bool choose_roles(tokmap_i_source *s, const uint8_t *given)
{
    tokmap_i_roles roles = {{0}};
    for (uint32_t role = 0; given && role < TOKMAP_I_OWN_ROLES; role++)
        roles.bits[role / 64] |= (uint64_t)given[role] << role % 64;
    if (!given || memcmp(&roles, &tokmap_i_usual_roles, sizeof roles) == 0)
        return true;
    s->own_roles = malloc(sizeof *s->own_roles);
    if (!s->own_roles)
        return false;
    *s->own_roles = roles;
    return true;
}

static tokmap_status set_datasets(tokmap_i_samples *samples, uint32_t k, tokmap_error *err)
{
    const tokmap_loader_options *o = &samples->o;
    const tokmap_loader_source *from = &o->sources[k];
    const tokmap_dataset *first = from->datasets[0];
    tokmap_i_source *s = &samples->sources[k];
    s->masked = from->masked != 0;
    if (!choose_roles(s, from->train_roles))
        return FAIL_MEMORY(err);
    s->token_bytes = first->header.token_bytes;
    s->first_dataset = k ? s[-1].first_dataset + s[-1].windows.n_datasets : 0;
    s->order_ids = malloc(from->n_datasets * sizeof *s->order_ids);
    s->windows = (tokmap_i_windows){.kind = o->windows,
                                    .length = samples->length,
                                    .random_offset = o->random_offset,
                                    .rows_kind = samples->rows_kind,
                                    .datasets = samples->datasets + s->first_dataset,
                                    .ranges = calloc(from->n_datasets, sizeof(tokmap_i_range))};
    if (!s->order_ids || !s->windows.ranges)
        return FAIL_MEMORY(err);
    s->windows.n_datasets = from->n_datasets;
    for (size_t d = 0; d < from->n_datasets; d++) {
        const tokmap_dataset *ds = s->windows.datasets[d] = from->datasets[d];
        if (ds->header.token_bytes != first->header.token_bytes)
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: has tokens of %" PRIu32 " bytes, %s of the same source has tokens of "
                        "%" PRIu32,
                        ds->token_path, ds->header.token_bytes, first->token_path,
                        first->header.token_bytes);
        if (o->row_parts && ds->header.n_documents == 0 && ds->header.n_tokens > 0)
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: its document boundaries are not known; row_parts needs them",
                        ds->index_path);
        if (tokmap_i_spans_may_mask(&ds->spans, tokmap_i_source_roles(s)) &&
            !(o->row_parts & TOKMAP_ROW_LOSS_MASK))
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: has tokens whose labels must not count: open the loader with "
                        "row_parts = TOKMAP_ROW_LOSS_MASK or TOKMAP_ROW_SPAN_MASK",
                        ds->index_path);
        const char *order_of = from->order_of ? from->order_of[d] : NULL;
        const uint64_t *documents = from->documents ? &from->documents[2 * d] : NULL;
        tokmap_i_view_reader views = {0};
        tokmap_status status = read_index(o, from, (uint32_t)d, err);
        if (!status)
            status = find_order_id(ds, order_of, s->order_ids[d], err);
        if (!status)
            status = find_range(ds, documents, &s->windows.ranges[d], err);
        const tokmap_view *view = from->views ? from->views[d] : NULL;
        if (!status && view &&
            !tokmap_i_view_reader_open(&views, view->bytes ? 0 : view->header.n_bytes))
            status = FAIL_MEMORY(err);
        if (!status)
            status = apply_view(&s->windows, (uint32_t)d, view, &views, err);
        tokmap_i_view_reader_close(&views);
        if (!status && from->document_lists)
            status =
                apply_document_list(&s->windows, (uint32_t)d, &from->document_lists[d], o, err);
        samples->has_views |= s->windows.has_views;
        samples->has_document_lists |= s->windows.has_lists;
        if (status)
            return status;
        samples->largest_id = MAX(samples->largest_id, ds->header.largest_id);
        samples->has_joined |= ds->is_joined;
    }
    return check_twice(s, from->window_list != NULL, err);
}

uint64_t tokmap_i_samples_default_block(uint32_t length, uint32_t token_bytes)
{
    return MAX(TOKMAP_I_SHUFFLE_BYTES / ((uint64_t)length * token_bytes), 1);
}

tokmap_status tokmap_i_sources_open(tokmap_i_samples *samples, tokmap_error *err)
{
    const tokmap_loader_options *o = &samples->o;
    tokmap_status status = check_tokenizers(o, err);
    if (status)
        return status;
    samples->sources = calloc(o->n_sources, sizeof *samples->sources);
    for (size_t k = 0; k < o->n_sources; k++) {
        samples->token_bytes =
            MAX(samples->token_bytes, o->sources[k].datasets[0]->header.token_bytes);
        samples->n_datasets += o->sources[k].n_datasets;
    }
    samples->datasets = malloc(samples->n_datasets * sizeof *samples->datasets);
    if (!samples->sources || !samples->datasets)
        return FAIL_MEMORY(err);
    if (o->shuffle == TOKMAP_SHUFFLE_BLOCK && o->windows == TOKMAP_WINDOWS_BEST_FIT) {
        samples->block_windows = tokmap_i_chunk_rows(samples->length);
        samples->group_blocks = MAX(GROUP_TOKENS / (samples->block_windows * samples->length), 1);
    } else if (o->shuffle == TOKMAP_SHUFFLE_BLOCK) {
        samples->block_windows =
            o->block_windows
                ? o->block_windows
                : tokmap_i_samples_default_block(samples->length, samples->token_bytes);
        samples->group_blocks = TOKMAP_I_GROUP_BLOCKS;
    }
    samples->group_blocks = o->group_blocks ? o->group_blocks : samples->group_blocks;
    while (samples->n_sources < o->n_sources && !status)
        status = set_datasets(samples, samples->n_sources++, err);
    if (!status)
        status = tokmap_dataset_check_files(samples->datasets, samples->n_datasets, err);
    if (!status)
        status = check_ranges(samples, err);
    uint64_t n_packed = 0;
    for (uint32_t k = 0; k < samples->n_sources && !status; k++) {
        tokmap_i_source *s = &samples->sources[k];
        tokmap_i_view_reader views;
        status = tokmap_i_view_reader_open(&views, tokmap_i_windows_view_bytes(&s->windows))
                     ? tokmap_i_windows_open(&s->windows, o->sources[k].rows_files, &views,
                                             &n_packed, err)
                     : FAIL_MEMORY(err);
        tokmap_i_view_reader_close(&views);
        s->shuffle.by_chunks = s->windows.rows && samples->o.shuffle == TOKMAP_SHUFFLE_BLOCK;
        s->shuffle.n_chunks = s->windows.n_whole;
        s->shuffle.mode = samples->o.shuffle;
        s->shuffle.n_windows = s->windows.n_windows;
        s->shuffle.block_windows = samples->block_windows;
        s->shuffle.group_blocks = samples->group_blocks;
        if (!status)
            status = apply_window_list(s, &o->sources[k], o, err);
        s->looks_up = s->windows.rows || tokmap_i_source_has_list(s);
        tokmap_i_shuffle_init(&s->shuffle);
    }
    return status ? status : set_order_ids(samples, err);
}

void tokmap_i_sources_close(tokmap_i_samples *samples)
{
    for (uint32_t k = 0; k < samples->n_sources; k++) {
        tokmap_i_windows *w = &samples->sources[k].windows;
        for (uint32_t d = 0; d < w->n_datasets; d++)
            tokmap_i_document_list_close(w->ranges[d].list);
        tokmap_i_windows_close(w);
        free(samples->sources[k].order_ids);
        free(samples->sources[k].own_window_list);
        free(samples->sources[k].own_roles);
        free(w->ranges);
    }
    free(samples->sources);
    free(samples->datasets);
}
