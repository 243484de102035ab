/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalizer_case.h"

#include "base/le.h"

const rule precompiled_rules[N_PRECOMPILED_RULES] = {
    {"a", "1"},
    {"ab", "2"},
    {"e\xCC\x81", "\xC3\xA9"},
    {"\x0D", " "},
    {"\x0A", " "},
    {"\x09", " "},
    {"\x01", ""},
    {"\xEF\xAC\x81", "fi"},
    {"\xE3\x80\x80", " "},
    {"\xCC\x81", "^"},
    {"\xC2\xA9", "(c)"},
    {"\xE0\xA4\x95", "ka"},
    {"\xEF\xBD\xB6", "\xE3\x82\xAB"},
    {"\xEF\xBD\xB6\xEF\xBE\x9E", "\xE3\x82\xAC"},
    {"\xF0\x9F\x98\x80", ":)"},
    {"\xE1\x85\xA1", "A"},
    {"\xD8\x80", "N"},
    {"\xE1\xBA\x9B\xCC\xA3", "\xE1\xB9\xA9"},
    {"\xE2\x80\x82", "\xE2\x96\x81"},
};

void make_charsmap(model_text *blob, const rule *rules, size_t n_rules)
{
    double_array trie = {0};
    double_array_key keys[256];
    char replacements[4096];
    size_t n = 0;
    for (size_t i = 0; i < n_rules; i++) {
        keys[i] = (double_array_key){(const uint8_t *)rules[i].from,
                                     (uint32_t)strlen(rules[i].from), (uint32_t)n};
        memcpy(replacements + n, rules[i].to, strlen(rules[i].to) + 1);
        n += strlen(rules[i].to) + 1;
    }
    replacements[n++] = 0;
    qsort(keys, n_rules, sizeof *keys, double_array_compare);
    CHECK(double_array_build(&trie, keys, n_rules));
    uint8_t *data = malloc(4 + 4 * trie.n_units + n);
    CHECK(data != NULL);
    le_put32(data, (uint32_t)(4 * trie.n_units));
    for (size_t i = 0; i < trie.n_units; i++)
        le_put32(data + 4 + 4 * i, trie.units[i]);
    memcpy(data + 4 + 4 * trie.n_units, replacements, n);
    const bool set = model_text_set(blob, data, 4 + 4 * trie.n_units + n);
    free(data);
    double_array_free(&trie);
    CHECK(set);
}

/* ---- sentencepiece's ---- */

void set_way(model *m, const way *w)
{
    model_init(m);
    m->kind = MODEL_CHAR_BPE;
    m->rule = MERGE_SCORED;
    m->steps[0].kind = NORMALIZE_SENTENCEPIECE;
    m->n_steps = 1;
    m->dummy_prefix = w->dummy;
    m->collapse_spaces = w->collapse;
    m->escape_spaces = w->escape;
    m->whitespace_as_suffix = w->suffix;
    if (w->n_rules > 0)
        make_charsmap(&m->charsmap, w->rules, w->n_rules);
    for (size_t i = 0; i < w->n_user; i++)
        naive_add(m, w->user[i], TOKEN_USER_DEFINED, 0);
}

size_t some_normal_text(const way *w, char *text)
{
    size_t n = 0;
    for (uint32_t parts = naive_any(8); parts > 0; parts--) {
        const uint32_t what = naive_any(4);
        const char *part = " ";
        if (what == 1 && w->n_rules > 0)
            part = w->rules[naive_any((uint32_t)w->n_rules)].from;
        else if (what == 2 && w->n_user > 0)
            part = w->user[naive_any((uint32_t)w->n_user)];
        else if (what == 3)
            n += naive_text(text + n, NAIVE_N(naive_alphabet)) % 40;
        while (n > 0 && (text[n] & 0xC0) == 0x80) /* not into a character */
            text[n--] = 0;
        n += (size_t)sprintf(text + n, "%s", part);
    }
    return n;
}

/* ---- tokenizer.json's steps ---- */

model_text text_of(const char *s)
{
    return (model_text){(char *)(uintptr_t)s, strlen(s)};
}

void add_step(model *m, const normalize_step *step)
{
    normalize_step *to = &m->steps[m->n_steps++];
    *to = *step;
    to->from = to->to = (model_text){0};
    CHECK(model_text_set(&to->from, step->from.s ? step->from.s : "", step->from.n_bytes));
    CHECK(model_text_set(&to->to, step->to.s ? step->to.s : "", step->to.n_bytes));
}
