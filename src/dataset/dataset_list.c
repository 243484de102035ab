/* dataset_list.c - several datasets as one, in the order given. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "dataset/dataset.h"
#include "base/hash.h"
#include "base/status.h"

struct tokmap_list {
    tokmap_dataset **datasets;
    uint64_t *token_ends, *document_ends; /* sums up to and with each dataset */
    uint64_t n_datasets;
    const tokmap_dataset *vocab_from; /* the first whose vocabulary is known; NULL: none so far */
    tokmap_list_info info;
};

static tokmap_status check_same(const tokmap_list *list, const tokmap_dataset *ds,
                                tokmap_error *err)
{
    const tokmap_dataset *first = list->datasets[0], *named = list->vocab_from;
    if (ds->header.token_bytes != first->header.token_bytes)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has tokens of %" PRIu32 " bytes, %s has tokens of %" PRIu32,
                    ds->token_path, ds->header.token_bytes, first->token_path,
                    first->header.token_bytes);
    if (named && ds->header.vocab_size != 0 && ds->header.vocab_size != named->header.vocab_size)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its vocabulary has %" PRIu64 " ids, that of %s has %" PRIu64,
                    ds->token_path, ds->header.vocab_size, named->token_path,
                    named->header.vocab_size);
    return TOKMAP_OK;
}

static tokmap_status add(tokmap_list *list, const char *path, tokmap_error *err)
{
    tokmap_dataset *ds = NULL;
    tokmap_status status = tokmap_dataset_open(&ds, path, err);
    if (status)
        return status;
    const uint64_t i = list->n_datasets++;
    list->datasets[i] = ds;
    status = check_same(list, ds, err);
    if (list->vocab_from == NULL && ds->header.vocab_size != 0)
        list->vocab_from = ds;
    list->info.n_tokens += ds->header.n_tokens;
    list->info.n_documents += ds->header.n_documents;
    list->info.largest_id = MAX(list->info.largest_id, ds->header.largest_id);
    list->token_ends[i] = list->info.n_tokens;
    list->document_ends[i] = list->info.n_documents;
    return status;
}

static tokmap_status name_list(tokmap_list *list, tokmap_error *err)
{
    list->info.n_datasets = list->n_datasets;
    list->info.token_bytes = list->datasets[0]->header.token_bytes;
    memcpy(list->info.list_id, list->datasets[0]->header.dataset_id, 16);
    if (list->n_datasets == 1)
        return TOKMAP_OK;
    uint8_t *ids = malloc((size_t)list->n_datasets * 16);
    if (!ids)
        return FAIL_MEMORY(err);
    for (uint64_t i = 0; i < list->n_datasets; i++)
        memcpy(ids + 16 * i, list->datasets[i]->header.dataset_id, 16);
    tokmap_i_id128(ids, (size_t)list->n_datasets * 16, list->info.list_id);
    free(ids);
    return TOKMAP_OK;
}

tokmap_status tokmap_list_open(tokmap_list **out, const char *const *paths, size_t n_paths,
                               tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!out || !paths || n_paths == 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "tokmap_list_open: no paths");
    *out = NULL;
    tokmap_list *list = calloc(1, sizeof *list);
    if (!list)
        return FAIL_MEMORY(err);
    list->datasets = calloc(n_paths, sizeof *list->datasets);
    list->token_ends = calloc(n_paths, sizeof *list->token_ends);
    list->document_ends = calloc(n_paths, sizeof *list->document_ends);
    tokmap_status status = TOKMAP_OK;
    if (!list->datasets || !list->token_ends || !list->document_ends)
        status = FAIL_MEMORY(err);
    for (size_t i = 0; !status && i < n_paths; i++)
        status = add(list, paths[i], err);
    if (!status)
        status = name_list(list, err);
    if (status) {
        tokmap_list_close(list);
        return status;
    }
    *out = list;
    return TOKMAP_OK;
}

void tokmap_list_close(tokmap_list *list)
{
    if (!list)
        return;
    for (uint64_t i = 0; i < list->n_datasets; i++)
        tokmap_dataset_close(list->datasets[i]);
    free(list->datasets);
    free(list->token_ends);
    free(list->document_ends);
    free(list);
}

void tokmap_list_get_info(const tokmap_list *list, tokmap_list_info *info)
{
    tokmap_list_info full = list->info;
    full.struct_size = MIN(info->struct_size, sizeof full);
    memcpy(info, &full, full.struct_size);
}

const tokmap_dataset *tokmap_list_dataset(const tokmap_list *list, uint64_t index)
{
    return index < list->n_datasets ? list->datasets[index] : NULL;
}

/* The first dataset whose end is above `position`; those without tokens or documents are passed
 * over. */
static tokmap_status find(const tokmap_list *list, const uint64_t *ends, uint64_t position,
                          uint64_t *dataset_index, uint64_t *local)
{
    uint64_t low = 0, high = list->n_datasets;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (ends[middle] > position)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == list->n_datasets)
        return TOKMAP_ERR_ARGUMENT;
    *dataset_index = low;
    *local = position - (low == 0 ? 0 : ends[low - 1]);
    return TOKMAP_OK;
}

tokmap_status tokmap_list_find_token(const tokmap_list *list, uint64_t token,
                                     uint64_t *dataset_index, uint64_t *local_token)
{
    return find(list, list->token_ends, token, dataset_index, local_token);
}

tokmap_status tokmap_list_find_document(const tokmap_list *list, uint64_t document,
                                        uint64_t *dataset_index, uint64_t *local_document)
{
    return find(list, list->document_ends, document, dataset_index, local_document);
}
