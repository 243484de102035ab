/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/document_tokens.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"

tokmap_status document_tokens_get(document_tokens *t, uint64_t number, const void **tokens,
                                  size_t *n_tokens, tokmap_error *err)
{
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_document d;
    tokmap_dataset_get_info(t->ds, &info);
    if (tokmap_dataset_document(t->ds, number, &d) != TOKMAP_OK)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: the document index is damaged", info.index_path);
    *n_tokens = (size_t)d.n_tokens;
    if (tokmap_dataset_tokens(t->ds, d.first_token, d.n_tokens, tokens) == TOKMAP_OK)
        return TOKMAP_OK;
    if (!array_reserve(&t->copy, &t->room, *n_tokens * info.token_bytes + 1, 1))
        return FAIL_MEMORY(err);
    *tokens = t->copy;
    return tokmap_dataset_read(t->ds, d.first_token, d.n_tokens, t->copy, err);
}

void document_tokens_free(document_tokens *t)
{
    free(t->copy);
    *t = (document_tokens){0};
}
