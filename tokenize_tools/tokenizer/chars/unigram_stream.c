/* SPDX-License-Identifier: Apache-2.0 */
/* unigram_stream.c - encodes a sentence of Unigram with a cache of words.
 *
 * The cache gives the ids of a word, with the first one marked, or OPEN for a word whose ids depend
 * on the text before it. So the ids of many words come at once; then their scores are added up, one
 * addition for each id, and the open words are encoded in their places. */
#include "tokenizer/chars/unigram_stream.h"

#include <math.h>
#include <stdlib.h>

#include "tokenizer/chars/unigram_parts.h"
#include "tokenizer/words/word_cache.h"

#define WORD_BEGINS ((uint32_t)1 << 20)
#define OPEN (WORD_BEGINS - 1)

struct unigram_stream {
    const unigram *u;
    unigram_scratch *scratch;
    unigram_state state;
    word_cache *cache; /* NULL: too many ids for the marks */
    id_buffer found;
};

static bool encode_word(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    unigram_stream *s = context;
    const size_t first = out->n;
    bool fixed;
    if (!unigram_encode_fixed(s->scratch, word, n_bytes, &fixed, out))
        return false;
    if (!fixed)
        return id_buffer_append(out, WORD_BEGINS | OPEN);
    out->ids[first] |= WORD_BEGINS;
    return true;
}

unigram_stream *unigram_stream_new(const unigram *u, size_t cache_bytes)
{
    unigram_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->u = u;
    s->scratch = unigram_scratch_new(u);
    const bool cached = u->n_ids <= OPEN;
    if (cached)
        s->cache = word_cache_new(cache_bytes, (word_source){encode_word, s});
    if (!s->scratch || (cached && !s->cache)) {
        unigram_stream_free(s);
        return NULL;
    }
    return s;
}

void unigram_stream_free(unigram_stream *s)
{
    if (!s)
        return;
    unigram_scratch_free(s->scratch);
    word_cache_free(s->cache);
    id_buffer_free(&s->found);
    free(s);
}

void unigram_stream_begin(unigram_stream *s)
{
    s->state = (unigram_state){0};
}

bool unigram_stream_word(unigram_stream *s, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    return unigram_encode(s->scratch, &s->state, text, n_bytes, out);
}

bool unigram_stream_end(unigram_stream *s, const uint8_t *end, id_buffer *out)
{
    return s->u->single || unigram_finish(s->u, &s->state, end, out);
}

unigram_state *unigram_stream_state(unigram_stream *s)
{
    return &s->state;
}

/* ---- Many words ---- */

/* Finds the words of a bitmap by increasing numbers. */
typedef struct word_finder {
    const uint64_t *starts;
    size_t n_bytes;
    size_t block, n_before; /* words that start before this block */
} word_finder;

static size_t start_of(word_finder *f, size_t number)
{
    const size_t n_blocks = (f->n_bytes + 63) / 64;
    while (f->block < n_blocks) {
        const size_t n_here = (size_t)__builtin_popcountll(f->starts[f->block]);
        if (f->n_before + n_here > number)
            break;
        f->n_before += n_here;
        f->block++;
    }
    if (f->block == n_blocks)
        return f->n_bytes;
    uint64_t bits = f->starts[f->block];
    for (size_t i = f->n_before; i < number; i++)
        bits &= bits - 1;
    return f->block * 64 + (size_t)__builtin_ctzll(bits);
}

static bool encode_open(unigram_stream *s, word_finder *f, const uint8_t *text, size_t number,
                        id_buffer *out)
{
    const size_t start = start_of(f, number);
    const size_t end = start_of(f, number + 1);
    return unigram_stream_word(s, text + start, end - start, out);
}

/* Ids of consecutive words, and the number of the next word. */
typedef struct found_ids {
    const uint32_t *at, *end;
    size_t word;
} found_ids;

/* Appends ids of words up to the first open one, or until the score is not usual. There is room for
 * them. */
static inline void append_usual(unigram_stream *s, found_ids *found, bool single, id_buffer *out)
{
    const double *scores = s->u->scores, limit = unigram_usual_limit(s->u);
    double score = s->state.score;
    uint32_t *to = out->ids + out->n;
    for (; found->at < found->end; found->at++) {
        const uint32_t id = *found->at & OPEN;
        if (*found->at >= WORD_BEGINS) {
            if (id == OPEN || !(fabs(score) < limit))
                break;
            found->word++;
        }
        score = unigram_sum(single, score, scores[id]);
        *to++ = id;
    }
    s->state.score = score;
    out->n = (size_t)(to - out->ids);
}

/* Ends a run of unknown characters if the next word has none. */
static bool end_unknown(unigram_stream *s, word_finder *f, const uint8_t *text,
                        const found_ids *found, id_buffer *out)
{
    const bool usual = fabs(s->state.score) < unigram_usual_limit(s->u);
    if (!s->state.unknown || !usual || *found->at == (WORD_BEGINS | OPEN))
        return true;
    return unigram_finish(s->u, &s->state, text + start_of(f, found->word), out);
}

static bool append_found(unigram_stream *s, word_finder *f, const uint8_t *text, id_buffer *out)
{
    found_ids found = {s->found.ids, s->found.ids + s->found.n, 0};
    while (found.at < found.end) {
        if (!end_unknown(s, f, text, &found, out) ||
            !id_buffer_reserve(out, (size_t)(found.end - found.at)))
            return false;
        if (s->u->single)
            append_usual(s, &found, true, out);
        else
            append_usual(s, &found, false, out);
        if (found.at == found.end)
            break;
        if (!encode_open(s, f, text, found.word++, out))
            return false;
        do
            found.at++;
        while (found.at < found.end && *found.at < WORD_BEGINS);
    }
    return true;
}

bool unigram_stream_words(unigram_stream *s, const uint8_t *text, size_t n_bytes,
                          const uint64_t *starts, id_buffer *out)
{
    word_finder f = {.starts = starts, .n_bytes = n_bytes};
    s->found.n = 0;
    if (s->cache)
        return word_cache_encode(s->cache, text, n_bytes, starts, &s->found) &&
               append_found(s, &f, text, out);
    size_t number = 0;
    for (size_t at = 0; at < n_bytes; at = start_of(&f, number))
        if (!encode_open(s, &f, text, number++, out))
            return false;
    return true;
}
