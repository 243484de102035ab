/* SPDX-License-Identifier: Apache-2.0 */
/* encode_kit.c - what threads need to encode, handed out without a lock. */
#include <stdlib.h>

#include "tokenizer/library/library.h"

#define KEPT_BYTES ((size_t)1 << 20) /* of each buffer of a kit */

void tokmap_i_free_kit(encode_kit *kit)
{
    if (!kit)
        return;
    encoder_free(kit->encoder);
    id_buffer_free(&kit->ids);
    free(kit->text);
    free(kit);
}

static encode_kit *new_kit(const tokmap_tokenizer *t)
{
    static const encoder_options options;
    encode_kit *kit = calloc(1, sizeof *kit);
    if (!kit)
        return NULL;
    kit->encoder = encoder_new(t->file.tokenizer, &options);
    if (kit->encoder)
        return kit;
    free(kit);
    return NULL;
}

/* The kits that were used last are at the beginning. */
encode_kit *tokmap_i_take_kit(tokmap_tokenizer *t)
{
    for (size_t i = 0; i < MAX_KEPT_KITS; i++) {
        encode_kit *kit = atomic_load_explicit(&t->kits[i], memory_order_relaxed);
        if (kit && (kit = atomic_exchange(&t->kits[i], NULL)) != NULL)
            return kit;
    }
    return new_kit(t);
}

void tokmap_i_return_kit(tokmap_tokenizer *t, encode_kit *kit)
{
    if (kit->capacity > KEPT_BYTES) {
        free(kit->text);
        kit->text = NULL;
        kit->capacity = 0;
    }
    if (kit->ids.capacity * sizeof *kit->ids.ids > KEPT_BYTES)
        id_buffer_free(&kit->ids);
    for (size_t i = 0; i < MAX_KEPT_KITS && !kit->broken; i++) {
        encode_kit *none = NULL;
        if (atomic_compare_exchange_strong(&t->kits[i], &none, kit))
            return;
    }
    tokmap_i_free_kit(kit);
}
