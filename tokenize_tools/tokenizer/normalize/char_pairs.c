#include "tokenizer/normalize/char_pairs.h"

#include <stdlib.h>

#include "text/utf8.h"

#define MARK 0x2581u

static uint64_t pair_of(uint32_t left, uint32_t right)
{
    left = left == ' ' ? MARK : left;
    right = right == ' ' ? MARK : right;
    return (uint64_t)left << 32 | right;
}

void char_pairs_add(char_pairs *p, uint32_t left, uint32_t right)
{
    if (p->n == p->capacity) {
        const size_t capacity = p->capacity * 2 + 1024;
        uint64_t *pairs = realloc(p->pairs, capacity * sizeof *pairs);
        p->no_memory |= !pairs;
        if (!pairs)
            return;
        p->pairs = pairs;
        p->capacity = capacity;
    }
    p->pairs[p->n++] = pair_of(left, right);
}

void char_pairs_add_text(char_pairs *p, const uint8_t *text, size_t n_bytes)
{
    uint32_t before = 0, c;
    for (size_t at = 0, length; at < n_bytes; at += length) {
        length = utf8_decode(text + at, n_bytes - at, &c);
        if (length == 0) {
            p->all = true;
            return;
        }
        if (at > 0)
            char_pairs_add(p, before, c);
        before = c;
    }
}

static int compare_pairs(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void char_pairs_sort(char_pairs *p)
{
    size_t n = 0;
    if (p->n == 0)
        return;
    qsort(p->pairs, p->n, sizeof *p->pairs, compare_pairs);
    for (size_t i = 0; i < p->n; i++)
        if (n == 0 || p->pairs[i] != p->pairs[n - 1])
            p->pairs[n++] = p->pairs[i];
    p->n = n;
}

static bool has_exactly(const char_pairs *p, uint32_t left, uint32_t right)
{
    const uint64_t pair = pair_of(left, right);
    return p->n > 0 && bsearch(&pair, p->pairs, p->n, sizeof pair, compare_pairs) != NULL;
}

bool char_pairs_has(const char_pairs *p, uint32_t left, uint32_t right)
{
    return p->all || has_exactly(p, left, right) || has_exactly(p, left, CHAR_ANY) ||
           has_exactly(p, CHAR_ANY, right);
}

void char_pairs_free(char_pairs *p)
{
    free(p->pairs);
    *p = (char_pairs){0};
}
