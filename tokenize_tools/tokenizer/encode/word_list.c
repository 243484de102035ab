/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/word_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Only the words that were used before are cleared: a text may be much longer than what is split at
 * a time. */
static bool clear_bits(word_bits *b, size_t n_bytes)
{
    const size_t n_words = n_bytes / 64 + 1;
    if (b->n_used > 0)
        memset(b->words, 0, b->n_used * sizeof *b->words);
    b->n_used = 0;
    if (n_words <= b->capacity)
        return true;
    free(b->words);
    b->capacity = n_words + n_words / 2;
    b->words = calloc(b->capacity, sizeof *b->words);
    b->capacity = b->words ? b->capacity : 0;
    return b->words != NULL;
}

bool word_list_reserve(word_list *w, const uint8_t *text, size_t n_bytes)
{
    if (!clear_bits(&w->all_starts, n_bytes))
        return false;
    w->all_starts.n_used = n_bytes / 64 + 1;
    w->starts = w->all_starts.words;
    w->removed = NULL;
    w->text = text;
    w->n_bytes = w->n_taken = n_bytes;
    return true;
}

bool word_list_find(word_list *w, const splitter *split, const uint8_t *text, size_t n_bytes,
                    size_t stop)
{
    const bool removes = splitter_removes(split);
    if (!clear_bits(&w->all_starts, n_bytes) ||
        (removes && (!clear_bits(&w->all_removed, n_bytes) ||
                     !array_reserve(&w->kept, &w->kept_capacity, n_bytes + TEXT_PADDING, 1))))
        return false;
    w->starts = w->all_starts.words;
    w->removed = removes ? w->all_removed.words : NULL;
    w->text = removes ? w->kept : text;
    if (removes) {
        w->n_bytes = splitter_kept_words(split, text, n_bytes, stop, w->kept, &w->n_taken,
                                         w->starts, w->all_removed.words);
        memset(w->kept + w->n_bytes, 0, TEXT_PADDING);
        w->all_removed.n_used = w->n_taken / 64 + 1;
    } else {
        w->n_taken = splitter_words(split, SIMD_BEST, text, n_bytes, stop, w->starts);
        w->n_bytes = w->n_taken;
    }
    w->all_starts.n_used = w->n_taken / 64 + 1;
    return true;
}

size_t word_list_kept(const word_list *w, size_t n_first)
{
    size_t n_kept = n_first;
    for (size_t i = 0; w->removed && i < n_first; i++)
        n_kept -= w->removed[i / 64] >> i % 64 & 1;
    return n_kept;
}

void word_list_skip(word_list *w, size_t n_bytes)
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

void word_list_free(word_list *w)
{
    free(w->all_starts.words);
    free(w->all_removed.words);
    free(w->kept);
}

static void free_large_bits(word_bits *b)
{
    array_free_large(&b->words, &b->capacity, sizeof *b->words);
    b->n_used = b->capacity > 0 ? b->n_used : 0;
}

void word_list_free_large(word_list *w)
{
    free_large_bits(&w->all_starts);
    free_large_bits(&w->all_removed);
    array_free_large(&w->kept, &w->kept_capacity, 1);
}
