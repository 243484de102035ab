#include "added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "unicode.h"

/* A text is looked through for the first two bytes of the tokens, 64 places at once, when there are
 * few such beginnings; else byte by byte. */
#define MAX_PAIRS 8
#define BLOCK 64

typedef struct token {
    const uint8_t *bytes;
    size_t n_bytes;
    uint32_t id;
    bool special, lstrip, rstrip;
} token;

typedef bool find_pair_fn(const uint8_t pairs[MAX_PAIRS][2], size_t n_pairs, const uint8_t *text);

struct added_tokens {
    find_pair_fn *block_has_pair;
    token *tokens; /* by their first byte, then the longest first */
    size_t n_tokens;
    uint8_t *bytes;
    uint32_t first_of[257]; /* tokens that begin with byte b: first_of[b] .. first_of[b + 1] */
    uint8_t pairs[MAX_PAIRS][2];
    size_t n_pairs; /* 0: too many, or a token of one byte */
};

static int by_first_byte_then_longest(const void *a, const void *b)
{
    const token *s = a, *t = b;
    if (s->bytes[0] != t->bytes[0])
        return s->bytes[0] < t->bytes[0] ? -1 : 1;
    if (s->n_bytes != t->n_bytes)
        return s->n_bytes > t->n_bytes ? -1 : 1;
    const int order = memcmp(s->bytes, t->bytes, s->n_bytes);
    return order ? order : (s->id > t->id) - (s->id < t->id);
}

static void find_pairs(added_tokens *a)
{
    for (size_t i = 0; i < a->n_tokens; i++) {
        const token *t = &a->tokens[i];
        size_t k = 0;
        while (t->n_bytes >= 2 && k < a->n_pairs && memcmp(a->pairs[k], t->bytes, 2) != 0)
            k++;
        if (t->n_bytes < 2 || k == MAX_PAIRS) {
            a->n_pairs = 0;
            return;
        }
        if (k == a->n_pairs)
            memcpy(a->pairs[a->n_pairs++], t->bytes, 2);
    }
}

static bool fill(added_tokens *a, const model *m, bool normalized, model_error *err)
{
    size_t used = 0;
    for (size_t i = 0; i < m->n_added; i++) {
        const added_token *t = &m->added[i];
        if (t->normalized != normalized || t->content.n_bytes == 0)
            continue;
        if (t->single_word)
            return model_fail(err, 0, "added token \"%.100s\": single_word", t->content.s);
        memcpy(a->bytes + used, t->content.s, t->content.n_bytes);
        a->tokens[a->n_tokens++] =
            (token){a->bytes + used, t->content.n_bytes, t->id, t->special, t->lstrip, t->rstrip};
        used += t->content.n_bytes;
    }
    qsort(a->tokens, a->n_tokens, sizeof *a->tokens, by_first_byte_then_longest);
    for (size_t i = 0; i < a->n_tokens; i++)
        a->first_of[a->tokens[i].bytes[0] + 1]++;
    for (size_t b = 0; b < 256; b++)
        a->first_of[b + 1] += a->first_of[b];
    find_pairs(a);
    return true;
}

/* ---- Search ---- */

/* Whether one of the pairs may begin in text[0 .. BLOCK). All are compared, so that the compiler
 * can make vectors of it. */
__attribute__((always_inline)) static inline bool find_pair(const uint8_t pairs[MAX_PAIRS][2],
                                                            size_t n_pairs, const uint8_t *text)
{
    uint8_t seen[BLOCK] = {0};
    for (size_t k = 0; k < n_pairs; k++) {
        const uint8_t first = pairs[k][0], second = pairs[k][1];
        for (size_t i = 0; i < BLOCK; i++)
            seen[i] |= (uint8_t)((text[i] == first) & (text[i + 1] == second));
    }
    uint64_t any = 0, part;
    for (size_t i = 0; i < BLOCK; i += 8) {
        memcpy(&part, seen + i, 8);
        any |= part;
    }
    return any != 0;
}

static bool find_pair_plain(const uint8_t pairs[MAX_PAIRS][2], size_t n_pairs, const uint8_t *text)
{
    return find_pair(pairs, n_pairs, text);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static bool find_pair_avx2(const uint8_t pairs[MAX_PAIRS][2],
                                                           size_t n_pairs, const uint8_t *text)
{
    return find_pair(pairs, n_pairs, text);
}

static find_pair_fn *best_find_pair(void)
{
    return simd_works(SIMD_AVX2) ? find_pair_avx2 : find_pair_plain;
}
#else
static find_pair_fn *best_find_pair(void)
{
    return find_pair_plain;
}
#endif

static const token *token_at(const added_tokens *a, const uint8_t *text, size_t n_bytes)
{
    const uint32_t end = a->first_of[text[0] + 1];
    for (uint32_t i = a->first_of[text[0]]; i < end; i++) {
        const token *t = &a->tokens[i];
        if (t->n_bytes <= n_bytes && memcmp(t->bytes, text, t->n_bytes) == 0)
            return t;
    }
    return NULL;
}

static size_t blanks_before(const uint8_t *text, size_t taken, size_t end)
{
    size_t start = end;
    while (start > taken) {
        size_t at = start - 1;
        uint32_t c;
        while (at > taken && (text[at] & 0xC0) == 0x80)
            at--;
        if (utf8_decode(text + at, start - at, &c) != start - at ||
            unicode_class_of(c) != CLASS_SPACE)
            break;
        start = at;
    }
    return start;
}

static size_t blanks_after(const uint8_t *text, size_t n_bytes, size_t end)
{
    uint32_t c;
    for (size_t n; end < n_bytes; end += n) {
        n = utf8_decode(text + end, n_bytes - end, &c);
        if (n == 0 || unicode_class_of(c) != CLASS_SPACE)
            break;
    }
    return end;
}

/* The first token at or after *at, whose place *at then is; NULL: none. */
static const token *find_token(const added_tokens *a, const uint8_t *text, size_t n_bytes,
                               size_t *from)
{
    size_t at = *from, looked = at;
    for (; at < n_bytes; at++) {
        while (at == looked && a->n_pairs && at + BLOCK <= n_bytes &&
               !a->block_has_pair(a->pairs, a->n_pairs, text + at))
            looked = at += BLOCK;
        if (at == looked)
            looked += BLOCK;
        const token *t = at < n_bytes ? token_at(a, text + at, n_bytes - at) : NULL;
        if (t) {
            *from = at;
            return t;
        }
    }
    return NULL;
}

bool added_tokens_next(const added_tokens *a, const uint8_t *text, size_t n_bytes, size_t from,
                       added_match *match)
{
    size_t at = from;
    const token *t;
    while (a->n_tokens > 0 && (t = find_token(a, text, n_bytes, &at)) != NULL) {
        match->next = at + t->n_bytes;
        match->end = t->rstrip ? blanks_after(text, n_bytes, match->next) : match->next;
        if (t->lstrip && match->end <= match->taken) { /* blanks, and the token before has them */
            at = match->next;
            continue;
        }
        match->start = t->lstrip ? blanks_before(text, match->taken, at) : at;
        match->id = t->id;
        match->special = t->special;
        return true;
    }
    return false;
}

/* ---- New and free ---- */

added_tokens *added_tokens_new(const model *m, bool normalized, model_error *err)
{
    added_tokens *a = calloc(1, sizeof *a);
    size_t n_bytes = 0;
    for (size_t i = 0; i < m->n_added; i++)
        n_bytes += m->added[i].content.n_bytes;
    if (a) {
        a->bytes = malloc(n_bytes + 1);
        a->tokens = malloc((m->n_added + 1) * sizeof *a->tokens);
    }
    if (!a || !a->bytes || !a->tokens)
        model_no_memory(err);
    else if (fill(a, m, normalized, err)) {
        a->block_has_pair = best_find_pair();
        return a;
    }
    added_tokens_free(a);
    return NULL;
}

void added_tokens_free(added_tokens *a)
{
    if (!a)
        return;
    free(a->bytes);
    free(a->tokens);
    free(a);
}

bool added_tokens_none(const added_tokens *a)
{
    return a->n_tokens == 0;
}
