/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_encode.c - any bytes to ids and back, with every pattern: nothing is lost except blanks that
 * the pattern removes, neither the cache nor a safe cut changes an id, and the ranges of the ids
 * follow each other from the beginning of the text to its end.
 *
 * Byte 0 chooses the pattern and whether merges are listed, the rest is text. The vocabulary is
 * made of common English and UTF-8 pieces. */
#include "fuzz/fuzz.h"
#include "support/split_words.h"
#include "tokenizer/encode/tokenizer.h"
#include "tokenizer/unicode/unicode.h"

static const char *const pieces[] = {
    "th",
    "the",
    "he",
    " t",
    " the",
    "in",
    "ing",
    "er",
    "an",
    " a",
    "  ",
    "    ",
    "\n\n",
    "\r\n",
    "'s",
    "n't",
    "aa",
    "aaaa",
    "12",
    "123",
    "..",
    "...",
    "\xC3\xA9",
    "\xE4\xB8",
    "\xE4\xB8\xAD",
    "\xF0\x9F",
    "\xF0\x9F\x98",
    "\xF0\x9F\x98\x80",
    " \xE4\xB8\xAD",
    "ab",
    "ba",
    "aba",
    "bab",
};

enum {
    N_PIECES = sizeof pieces / sizeof *pieces
};

static tokenizer *make(split_pattern pattern, bool whole_word_first)
{
    model m;
    failure err;
    model_init(&m);
    m.kind = MODEL_BYTE_BPE;
    m.rule = MERGE_RANKED;
    m.split = pattern;
    m.whole_word_first = whole_word_first;
    for (uint32_t id = 0; id < 256 + N_PIECES; id++) {
        const uint8_t byte = (uint8_t)id;
        const bool single = id < 256;
        require(
            model_set_token(&m,
                            &(new_token){.id = id,
                                         .bytes = single ? &byte : (const void *)pieces[id - 256],
                                         .n_bytes = single ? 1 : strlen(pieces[id - 256]),
                                         .kind = TOKEN_NORMAL},
                            &err));
    }
    tokenizer *t = tokenizer_new(&m, &err);
    require(t != NULL);
    model_free(&m);
    return t;
}

typedef struct subject {
    split_pattern pattern;
    tokenizer *tokenizer;
    encoder *encoder, *forgetful;
} subject;

static subject *choose(uint8_t byte)
{
    static subject subjects[128][2];
    size_t n_known = 0;
    while (split_known(n_known) != SPLIT_UNKNOWN)
        n_known++;
    const split_pattern pattern = split_known(byte / 2 % n_known);
    subject *s = &subjects[byte / 2 % n_known][byte & 1];
    if (!s->tokenizer) {
        s->pattern = pattern;
        s->tokenizer = make(pattern, byte & 1);
        s->encoder = encoder_new(s->tokenizer, &(encoder_options){.cache_bytes = 1 << 20});
        s->forgetful = encoder_new(s->tokenizer, &(encoder_options){.cache_bytes = 1});
        require(s->encoder && s->forgetful);
    }
    return s;
}

static bool same(const id_buffer *a, const id_buffer *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0);
}

/* What is left of the text, in place. */
static size_t remove_blanks(uint8_t *text, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes;) {
        const size_t n_blanks = unicode_blanks_after(text, n_bytes, i) - i;
        if (n_blanks == 0)
            text[n++] = text[i];
        i += n_blanks > 0 ? n_blanks : 1;
    }
    return n;
}

static void check_ranges(const subject *s, const uint8_t *text, size_t n_bytes,
                         const id_buffer *ids)
{
    const encoded_text e = {.text = text, .n_bytes = n_bytes, .ids = ids->ids, .n_ids = ids->n};
    byte_range *ranges = calloc(ids->n + 1, sizeof *ranges);
    size_t place, n_token;
    require(ranges != NULL);
    const char *why = tokenizer_find_ranges(s->tokenizer, &e, ranges, &place);
    require(why == tokenizer_get_info(s->tokenizer)->no_ranges);
    require((why != NULL) == split_drops_blanks(s->pattern));
    for (size_t i = 0; i < ids->n && !why; i++) {
        require(ranges[i].begin == (i > 0 ? ranges[i - 1].end : 0) && ranges[i].end <= n_bytes);
        const uint8_t *token = tokenizer_token_bytes(s->tokenizer, ids->ids[i], &n_token);
        require(ranges[i].end - ranges[i].begin == n_token);
        require(memcmp(text + ranges[i].begin, token, n_token) == 0);
    }
    require(why || ids->n == 0 || ranges[ids->n - 1].end == n_bytes);
    free(ranges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    const subject *s = choose(data[0]);
    size_t n = n_bytes - 1;
    uint8_t *text = calloc(n + TEXT_PADDING, 1);
    id_buffer ids = {0}, others = {0};
    model_text decoded = {0};
    size_t bad;
    require(text != NULL);
    memcpy(text, data + 1, n);
    require(encoder_encode(s->encoder, text, n, &ids) == TOKENIZE_OK);
    require(encoder_encode(s->forgetful, text, n, &others) == TOKENIZE_OK);
    require(same(&ids, &others));
    check_ranges(s, text, n, &ids);
    require(tokenizer_decode(s->tokenizer, ids.ids, ids.n, &decoded, &bad));
    if (split_drops_blanks(s->pattern))
        n = remove_blanks(text, n);
    require(decoded.n_bytes == n && (n == 0 || memcmp(decoded.s, text, n) == 0));
    free(decoded.s);
    id_buffer_free(&ids);
    id_buffer_free(&others);
    free(text);
    return 0;
}
