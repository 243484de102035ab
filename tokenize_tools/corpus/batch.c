/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/batch.h"

#include <stdlib.h>
#include <string.h>

#include "text/value_bytes.h"

static bool reserve(uint8_t **bytes, size_t *capacity, size_t n_bytes)
{
    if (n_bytes <= *capacity)
        return true;
    uint8_t *grown = realloc(*bytes, 2 * n_bytes);
    if (!grown)
        return false;
    *bytes = grown;
    *capacity = 2 * n_bytes;
    return true;
}

bool document_values_set(document_values *v, const tokmap_value *values, size_t n)
{
    v->n_bytes = value_bytes_size(values, n);
    if (!reserve(&v->bytes, &v->capacity, v->n_bytes))
        return false;
    value_bytes_put(v->bytes, values, n);
    return true;
}

void document_values_free(document_values *v)
{
    free(v->bytes);
}

bool batch_add_end(corpus_batch *batch, corpus_end end)
{
    if (batch->n_ends == batch->ends_capacity) {
        const size_t capacity = batch->ends_capacity ? batch->ends_capacity * 2 : 64;
        corpus_end *ends = realloc(batch->ends, capacity * sizeof *ends);
        if (!ends)
            return false;
        batch->ends = ends;
        batch->ends_capacity = capacity;
    }
    end.at = batch->n_bytes;
    batch->ends[batch->n_ends++] = end;
    return true;
}

bool batch_add_values(corpus_batch *batch, const document_values *v)
{
    if (v->n_bytes == 0)
        return true;
    if (!reserve(&batch->values, &batch->values_capacity, batch->values_bytes + v->n_bytes))
        return false;
    memcpy(batch->values + batch->values_bytes, v->bytes, v->n_bytes);
    batch->values_bytes += v->n_bytes;
    return true;
}

void corpus_batch_free(corpus_batch *b)
{
    free(b->text);
    free(b->ends);
    free(b->values);
    *b = (corpus_batch){0};
}
