/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/char_pairs.h"

#include "base/utf8.h"

#define MARK 0x2581u

static uint64_t pair_of(uint32_t left, uint32_t right)
{
    left = left == ' ' ? MARK : left;
    right = right == ' ' ? MARK : right;
    return (uint64_t)left << 32 | right;
}

void char_pairs_add(char_pairs *p, uint32_t left, uint32_t right)
{
    const uint64_t pair = pair_of(left, right);
    const name_result added = name_table_add(&p->pairs, &pair, sizeof pair, 0);
    p->no_memory |= added == NAME_NO_MEMORY;
    p->all |= added == NAME_CROWDED; /* pairs can be made to have the same hash */
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

static bool has_exactly(const char_pairs *p, uint32_t left, uint32_t right)
{
    const uint64_t pair = pair_of(left, right);
    return name_table_find(&p->pairs, &pair, sizeof pair) != NAME_TABLE_NONE;
}

bool char_pairs_has(const char_pairs *p, uint32_t left, uint32_t right)
{
    return p->all || has_exactly(p, left, right) || has_exactly(p, left, CHAR_ANY) ||
           has_exactly(p, CHAR_ANY, right);
}

void char_pairs_free(char_pairs *p)
{
    name_table_free(&p->pairs);
    *p = (char_pairs){0};
}
