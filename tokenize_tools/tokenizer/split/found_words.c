/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/found_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

bool found_words_find(found_words *w, const splitter *split, const uint8_t *text, size_t n_bytes)
{
    const size_t n_words = n_bytes / 64 + 1;
    const bool removes = splitter_removes(split);
    if (!array_reserve(&w->starts, &w->starts_capacity, (removes ? 2 : 1) * n_words,
                       sizeof *w->starts) ||
        (removes && !array_reserve(&w->kept, &w->kept_capacity, n_bytes + TEXT_PADDING, 1)))
        return false;
    w->text = removes ? w->kept : text;
    w->n_bytes = n_bytes;
    w->removed = removes ? w->starts + n_words : NULL;
    if (removes) {
        w->n_bytes =
            splitter_kept_words(split, text, n_bytes, w->kept, w->starts, w->starts + n_words);
        memset(w->kept + w->n_bytes, 0, TEXT_PADDING);
    } else {
        splitter_words(split, SIMD_BEST, text, n_bytes, w->starts);
    }
    return true;
}

size_t found_words_kept(const found_words *w, size_t n_first)
{
    size_t n_kept = n_first;
    for (size_t i = 0; w->removed && i < n_first; i++)
        n_kept -= w->removed[i / 64] >> i % 64 & 1;
    return n_kept;
}

void found_words_skip(found_words *w, size_t n_bytes)
{
    const size_t from = n_bytes / 64, n = w->n_bytes / 64 + 1;
    const unsigned shift = n_bytes % 64;
    for (size_t i = from; i < n; i++) {
        const uint64_t next = i + 1 < n && shift > 0 ? w->starts[i + 1] << (64 - shift) : 0;
        w->starts[i - from] = w->starts[i] >> shift | next;
    }
    w->text += n_bytes;
    w->n_bytes -= n_bytes;
}

void found_words_free(found_words *w)
{
    free(w->starts);
    free(w->kept);
}
