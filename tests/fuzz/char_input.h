/* SPDX-License-Identifier: Apache-2.0 */
/* char_input.h - pieces and a text of a tokenizer over characters, taken from the bytes of an
 * input: a piece is a byte for its kind and score, then letters up to one that says so. */
#pragma once

#include "fuzz/fuzz.h"
#include "oracles/char_naive.h"
#include "tokenizer/encode/tokenizer.h"

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t next(input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* One letter, or a stranger. */
static const char *letter(uint8_t byte)
{
    const size_t n = NAIVE_N(naive_alphabet);
    return byte % 32 < n ? naive_alphabet[byte % 32]
                         : naive_strangers[byte % NAIVE_N(naive_strangers)];
}

/* How many is the first byte. */
static void add_pieces(input *in, model *m, bool kinds_matter, double grain)
{
    static const token_kind kinds[] = {TOKEN_NORMAL, TOKEN_NORMAL, TOKEN_USER_DEFINED,
                                       TOKEN_UNUSED};
    for (uint8_t n = next(in) % 64; n > 0; n--) {
        char text[64] = "";
        const uint8_t how = next(in);
        uint8_t byte;
        do {
            byte = next(in);
            strcat(text, letter(byte));
        } while (byte >= 0x80 && strlen(text) < sizeof text - 8);
        naive_add(m, text, kinds_matter ? kinds[how % 4] : TOKEN_NORMAL,
                  -grain * 0.25 * (how & ~3));
    }
}

/* The rest, up to n_bytes and a letter more. */
static size_t take_text(input *in, char *text, size_t n_bytes)
{
    size_t n = 0;
    while (in->at < in->end && n < n_bytes) {
        const uint8_t byte = next(in);
        const char *c = byte % 8 == 7 ? " " : letter(byte / 8);
        strcpy(text + n, c);
        n += strlen(c);
    }
    return n;
}

/* If there are ranges, they follow each other through the text, and each is what its token says. */
static void require_ranges(const tokenizer *t, const uint8_t *text, size_t n, const id_buffer *ids)
{
    static char marked[4 * NAIVE_MAX_BYTES];
    const encoded_text e = {.text = text, .n_bytes = n, .ids = ids->ids, .n_ids = ids->n};
    byte_range *ranges = calloc(ids->n + 1, sizeof *ranges);
    size_t place, n_token, at = 0;
    require(ranges != NULL);
    const char *why = tokenizer_find_ranges(t, &e, ranges, &place);
    for (size_t i = 0; i < ids->n && !why; at = ranges[i++].end) {
        require(ranges[i].begin == at && ranges[i].end >= at && ranges[i].end <= n);
        const uint8_t *token = tokenizer_token_bytes(t, ids->ids[i], &n_token);
        const char *own = (const char *)text + at;
        const size_t n_marked = naive_marked(own, ranges[i].end - at, marked);
        require(n_token == 1 ? ranges[i].end == at + 1 && *own == (char)*token
                             : n_token == n_marked && memcmp(marked, token, n_token) == 0);
    }
    require(why || at == n);
    free(ranges);
}

/* The ids are those that the definition wants, from the merges and then from the cache; and they
 * can be decoded. */
static void require_ids(const model *m, const char *text, size_t n, const naive_ids *want)
{
    static uint8_t padded[2 * NAIVE_MAX_BYTES];
    failure err;
    id_buffer out = {0};
    model_text back = {0};
    size_t bad;
    tokenizer *t = tokenizer_new(m, &err);
    require(t != NULL);
    encoder *e = encoder_new(t, &(encoder_options){.cache_bytes = 1 << 14});
    require(e != NULL);
    memcpy(padded, text, n);
    for (int again = 0; again < 2; again++) {
        out.n = 0;
        require(encoder_encode(e, padded, n, &out) == TOKENIZE_OK);
        require(out.n == want->n && (out.n == 0 || memcmp(out.ids, want->ids, 4 * out.n) == 0));
    }
    require_ranges(t, padded, n, &out);
    require(tokenizer_decode(t, out.ids, out.n, &back, &bad));
    free(back.s);
    id_buffer_free(&out);
    encoder_free(e);
    tokenizer_free(t);
}
