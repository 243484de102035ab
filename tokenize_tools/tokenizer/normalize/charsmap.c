/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/charsmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/utf8.h"

#define MAX_MATCHES 32 /* sentencepiece considers this many rules, the shortest ones */
#define TRIE_BLOCK 1024

/* ---- Loading ---- */

/* Checks that replacements are UTF-8, and begin where a character does. */
static bool values_are_text(const charsmap *c)
{
    const uint8_t *text = (const uint8_t *)c->replacements;
    if (utf8_valid_prefix(text, c->n_replacements) < c->n_replacements)
        return false;
    for (size_t i = 0; i < c->rules.n_units; i++) {
        const uint32_t unit = c->rules.units[i];
        if (unit >> 31 && (text[unit & DOUBLE_ARRAY_MAX_VALUE] & 0xC0) == 0x80)
            return false;
    }
    return true;
}

static void find_plain(charsmap *c)
{
    for (unsigned first = 0; first < 128; first++) {
        uint32_t state = double_array_root(&c->rules);
        bool replaced = false, longer = false;
        if (double_array_step(&c->rules, &state, (uint8_t)first, &replaced)) {
            for (unsigned second = 0; second < 128 && !longer; second++) {
                uint32_t next = state;
                bool has_value;
                longer = double_array_step(&c->rules, &next, (uint8_t)second, &has_value);
            }
        }
        c->plain[first] = !replaced && !longer;
    }
    c->regular = true;
    for (unsigned byte = 0x20; byte < 0x7F; byte++)
        c->regular &= c->plain[byte];
}

bool charsmap_load(charsmap *c, const model_text *blob, failure *err)
{
    const uint8_t *data = (const uint8_t *)blob->s;
    const size_t trie_bytes = blob->n_bytes > 4 ? le_get32(data) : 0;
    if (blob->n_bytes <= 4 || trie_bytes >= blob->n_bytes - 4)
        return model_fail(err, 0, "precompiled_charsmap: its trie is longer than the data");
    if (trie_bytes < TRIE_BLOCK || trie_bytes % TRIE_BLOCK != 0)
        return model_fail(err, 0, "precompiled_charsmap: its trie has an odd size");
    c->rules.max_keys = MAX_MATCHES;
    c->rules.n_units = trie_bytes / 4;
    c->n_replacements = blob->n_bytes - 4 - trie_bytes;
    if (c->n_replacements > DOUBLE_ARRAY_MAX_VALUE || data[blob->n_bytes - 1] != 0)
        return model_fail(err, 0, "precompiled_charsmap: the last replacement has no end");
    c->rules.units = malloc(trie_bytes);
    c->replacements = malloc(c->n_replacements);
    if (!c->rules.units || !c->replacements)
        return fail_memory(err);
    for (size_t i = 0; i < c->rules.n_units; i++)
        c->rules.units[i] = le_get32(data + 4 + 4 * i);
    memcpy(c->replacements, data + 4 + trie_bytes, c->n_replacements);
    if (!double_array_check(&c->rules, (uint32_t)c->n_replacements) || !values_are_text(c))
        return model_fail(err, 0, "precompiled_charsmap: its trie is damaged");
    find_plain(c);
    return true;
}

void charsmap_free(charsmap *c)
{
    double_array_free(&c->rules);
    free(c->replacements);
    *c = (charsmap){0};
}

/* ---- Looking up ---- */

static replacement replacement_at(const charsmap *c, uint32_t value)
{
    const char *bytes = c->replacements + value;
    return (replacement){(const uint8_t *)bytes, strlen(bytes)};
}

size_t charsmap_longest(const charsmap *c, const uint8_t *text, size_t n_bytes, replacement *r)
{
    uint32_t value = 0;
    const size_t n =
        double_array_longest(&c->rules, double_array_root(&c->rules), text, n_bytes, &value);
    if (n > 0)
        *r = replacement_at(c, value);
    return n;
}

bool charsmap_shortest(const charsmap *c, const uint8_t *text, size_t n_bytes, replacement *r)
{
    uint32_t state = double_array_root(&c->rules);
    bool has_value = false;
    for (size_t i = 0; i < n_bytes && text[i] != 0; i++) {
        if (!double_array_step(&c->rules, &state, text[i], &has_value))
            return false;
        if (has_value) {
            *r = replacement_at(c, double_array_value(&c->rules, state));
            return true;
        }
    }
    return false;
}
