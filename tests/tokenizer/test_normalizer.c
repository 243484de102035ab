/* SPDX-License-Identifier: Apache-2.0 */
/* test_normalizer.c - normalizing before BPE and Unigram: sentencepiece's way against its
 * definition, HuggingFace's steps, rules for characters, grapheme clusters. */
#include "support/check.h"

#include "tokenizer/normalizer_case.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/unicode/grapheme.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/split/splitter.h"
#include "base/utf8.h"

/* ---- Double arrays ---- */

/* No node has a child by the byte 0, wherever its children lie. */
static void no_nul_along(const double_array *a, const double_array_key *key)
{
    uint32_t state = double_array_root(a);
    bool has_value;
    for (uint32_t i = 0; i < key->n_bytes; i++) {
        uint32_t next = state;
        CHECK(!double_array_step(a, &next, 0, &has_value));
        CHECK(double_array_step(a, &state, key->bytes[i], &has_value));
    }
    CHECK(!double_array_step(a, &state, 0, &has_value));
}

TEST(a_double_array_finds_its_keys_and_nothing_else)
{
    for (int round = 0; round < (check_long() ? 3000 : 300); round++) {
        char texts[200][8];
        double_array_key keys[200];
        double_array a = {0};
        const size_t n = 1 + naive_any(200);
        const uint32_t n_letters = 2 + naive_any(254);
        for (size_t i = 0; i < n; i++) {
            const uint32_t length = 1 + naive_any(6);
            for (uint32_t k = 0; k < length; k++)
                texts[i][k] = (char)(1 + naive_any(n_letters - 1));
            keys[i] = (double_array_key){(const uint8_t *)texts[i], length, (uint32_t)i};
        }
        qsort(keys, n, sizeof *keys, double_array_compare);
        size_t n_keys = 0;
        for (size_t i = 0; i < n; i++)
            if (i == 0 || keys[i].n_bytes != keys[n_keys - 1].n_bytes ||
                memcmp(keys[i].bytes, keys[n_keys - 1].bytes, keys[i].n_bytes) != 0)
                keys[n_keys++] = keys[i];
        CHECK(double_array_build(&a, keys, n_keys));
        CHECK(double_array_check(&a, 200));
        for (size_t i = 0; i < n_keys; i++) {
            uint32_t value = UINT32_MAX;
            CHECK(double_array_find(&a, keys[i].bytes, keys[i].n_bytes, &value));
            CHECK_EQ(value, keys[i].value);
            no_nul_along(&a, &keys[i]);
        }
        for (int i = 0; i < 300; i++) {
            uint8_t text[6];
            uint32_t value;
            const size_t length = 1 + naive_any(6);
            bool there = false;
            for (size_t k = 0; k < length; k++)
                text[k] = (uint8_t)naive_any(n_letters);
            for (size_t k = 0; k < n_keys; k++)
                there |= keys[k].n_bytes == length && memcmp(keys[k].bytes, text, length) == 0;
            CHECK(double_array_find(&a, text, length, &value) == there);
        }
        double_array_free(&a);
    }
}

TEST(a_large_double_array_is_built_in_time)
{
    const size_t n = check_sanitized() ? 20000 : 300000;
    double_array_key *keys = malloc(n * sizeof *keys);
    char *texts = malloc(n * 12);
    double_array a = {0};
    for (size_t i = 0; i < n; i++) {
        sprintf(texts + 12 * i, "%08zx", i * 2654435761u % 4294967291u);
        keys[i] = (double_array_key){(uint8_t *)texts + 12 * i, 8, (uint32_t)i};
    }
    qsort(keys, n, sizeof *keys, double_array_compare);
    CHECK(double_array_build(&a, keys, n));
    for (size_t i = 0; i < n; i++) {
        uint32_t value;
        CHECK(double_array_find(&a, keys[i].bytes, 8, &value) && value == keys[i].value);
    }
    double_array_free(&a);
    free(keys);
    free(texts);
}

/* ---- sentencepiece ---- */

static size_t begins(const char *text, size_t n, const char *with)
{
    const size_t length = strlen(with);
    return length <= n && memcmp(text, with, length) == 0 ? length : 0;
}

/* The replacement of the beginning of the text: *to, with *n_to bytes. */
static size_t normal_prefix(const way *w, const char *text, size_t n, const char **to, size_t *n_to)
{
    size_t longest = 0;
    for (size_t i = 0; i < w->n_user; i++) {
        const size_t length = begins(text, n, w->user[i]);
        longest = length > longest ? length : longest;
    }
    *to = text;
    *n_to = longest;
    for (size_t i = 0, found = longest; i < w->n_rules && found == 0; i++) {
        const size_t length = begins(text, n, w->rules[i].from);
        if (length > longest) {
            longest = length;
            *to = w->rules[i].to;
            *n_to = strlen(*to);
        }
    }
    if (longest == 0)
        longest = *n_to = naive_char((const uint8_t *)text);
    return longest;
}

static size_t put_blank(const way *w, char *out, size_t at)
{
    const char *blank = w->escape ? NAIVE_MARK : " ";
    strcpy(out + at, blank);
    return at + strlen(blank);
}

static size_t put_text(const way *w, const char *text, size_t n, char *out, size_t at)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ')
            at = put_blank(w, out, at);
        else
            out[at++] = text[i];
    }
    return at;
}

static size_t define(const way *w, const char *text, size_t n, char *out)
{
    const char *to;
    size_t at = 0, n_to, length;
    while (w->collapse && n > 0) {
        length = normal_prefix(w, text, n, &to, &n_to);
        if (n_to != 1 || *to != ' ')
            break;
        text += length;
        n -= length;
    }
    if (n == 0)
        return 0;
    if (w->dummy && !w->suffix)
        at = put_blank(w, out, at);
    for (bool after_blank = w->collapse; n > 0; text += length, n -= length) {
        length = normal_prefix(w, text, n, &to, &n_to);
        for (; after_blank && n_to > 0 && *to == ' '; n_to--)
            to++;
        at = put_text(w, to, n_to, out, at);
        if (n_to > 0)
            after_blank = w->collapse && to[n_to - 1] == ' ';
    }
    const size_t blank = w->escape ? 3 : 1;
    while (w->collapse && at >= blank &&
           memcmp(out + at - blank, w->escape ? NAIVE_MARK : " ", blank) == 0)
        at -= blank;
    return w->dummy && w->suffix ? put_blank(w, out, at) : at;
}

/* The text as its reader must read it. */
static size_t read_normalized(const normalizer *z, text_span span, char *out)
{
    const normal_form form = normalizer_form(z);
    const way w = {.escape = form.spaces_are_marks};
    size_t at = 0;
    if ((form.prefix_first || form.prefix_all) && span.n_bytes > 0)
        at = form.blank_prefix ? put_blank(&w, out, at) : put_text(&w, NAIVE_MARK, 3, out, at);
    return put_text(&w, (const char *)span.bytes, span.n_bytes, out, at);
}

TEST(sentencepiece_normalizes_as_its_definition_says)
{
    static const rule rules[] = {
        {"a", "A"},    {"ab", "  "},          {"\xC3\xA9", " e "},   {"\n", " "},
        {"\t", ""},    {"b ", "B"},           {"  ", "_"},           {"S.", "\xE2\x96\x81"},
        {"1", "one "}, {"\xE3\x80\x82", " "}, {"-", NAIVE_MARK " "}, {"s\xCC\x81", " x"}};
    static const char *const user[] = {"ab", " a", "  ", "a b", NAIVE_MARK, "\xE4\xB8\x96", "s s "};
    char text[2 * NAIVE_MAX_BYTES], got[8 * NAIVE_MAX_BYTES], want[8 * NAIVE_MAX_BYTES];
    const long n_ways = check_sanitized() ? 100 : check_long() ? 10000 : 1000;
    for (long round = 0; round < n_ways; round++) {
        const uint32_t bits = naive_any(16);
        const way w = {rules,    naive_any(3) == 0 ? 0 : naive_any(N(rules) + 1),
                       user,     naive_any(2) ? 0 : naive_any(N(user) + 1),
                       bits & 1, bits & 2,
                       bits & 4, bits & 8};
        model m;
        failure err;
        normalize_workspace workspace = {0};
        set_way(&m, &w);
        normalizer *z = normalizer_new(&m, false, &err);
        CHECK(z != NULL);
        for (int i = 0; i < 100; i++) {
            const size_t n = some_normal_text(&w, text);
            text_span span = {(const uint8_t *)text, n};
            CHECK(normalize_text(z, &workspace, NORMALIZE_FIRST, &span));
            const size_t n_got = read_normalized(z, span, got);
            const size_t n_want = define(&w, text, n, want);
            got[n_got] = want[n_want] = 0;
            if (n_got != n_want || memcmp(got, want, n_got) != 0)
                CHECK_FAIL("\"%s\": \"%s\", not \"%s\"", text, got, want);
        }
        normalize_workspace_free(&workspace);
        normalizer_free(z);
        model_free(&m);
    }
}

/* ---- Grapheme clusters ---- */

/* %c stands for the character. */
static size_t in_context(const char *context, uint32_t c, uint8_t *out)
{
    size_t n = 0;
    for (; *context; context++) {
        if (*context == '%')
            n += utf8_encode(c, out + n);
        else
            out[n++] = (uint8_t)*context;
    }
    return n;
}

/* The lengths of the clusters around each code point there is, as one number. The numbers are of a
 * plain program over the properties of Unicode 17.0, which the reference agreed with on every code
 * point in these contexts. */
static uint64_t hash_clusters(const char *context)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t text[32];
        if (c >= 0xD800 && c < 0xE000)
            continue;
        const size_t n = in_context(context, c, text);
        for (size_t at = 0, length; at < n; at += length) {
            length = grapheme_length(text + at, n - at);
            hash = (hash ^ length) * 0x100000001B3u;
        }
        hash *= 0x100000001B3u;
    }
    return hash;
}

TEST(grapheme_clusters_of_all_code_points_are_those_of_the_reference)
{
    CHECK_EQ(hash_clusters("a%"), 0xA54632484EE75289u);
    CHECK_EQ(hash_clusters("%b\xCC\x81"), 0x2310F0645B6B4E93u);
    CHECK_EQ(hash_clusters("%\xCC\x81\xCC\x81"), 0x6DDBBAA7175D1ED7u);
    CHECK_EQ(hash_clusters("\xC2\xA9\xE2\x80\x8D%"), 0x294A28DF69BFB6C5u);
    CHECK_EQ(hash_clusters("\xE0\xA4\x95%\xE0\xA5\x8D\xE0\xA4\x95\xCC\x81"), 0xB72840825C2F0121u);
    CHECK_EQ(hash_clusters("%\xE1\x85\xA1\xCC\x81"), 0xF3A64F02F6F672D1u);
}

TEST(damaged_charsmaps_are_refused)
{
    static const rule rules[] = {{"a", "b"}, {"\xC3\xA9", "e"}};
    model_text blob = {0};
    failure err;
    charsmap c = {0};
    make_charsmap(&blob, rules, N(rules));
    for (size_t n = 0; n < blob.n_bytes; n++) { /* cut short; the last replacement is empty */
        const model_text part = {blob.s, n};
        const bool loaded = charsmap_load(&c, &part, &err);
        charsmap_free(&c);
        CHECK(!loaded || n == blob.n_bytes - 1);
    }
    for (size_t i = 0; i < blob.n_bytes; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            replacement r;
            blob.s[i] ^= (char)(1 << bit);
            if (charsmap_load(&c, &blob, &err)) { /* with any result, nothing outside is read */
                charsmap_longest(&c, (const uint8_t *)"a\xC3\xA9", 3, &r);
            }
            charsmap_free(&c);
            blob.s[i] ^= (char)(1 << bit);
        }
    }
    free(blob.s);
}

/* ---- tokenizer.json's steps ---- */

static void normalizes_to(model *m, unsigned flags, const char *text, const char *want)
{
    failure err;
    normalize_workspace workspace = {0};
    normalizer *z = normalizer_new(m, true, &err);
    text_span span = {(const uint8_t *)text, strlen(text)};
    CHECK(z != NULL);
    CHECK(normalize_text(z, &workspace, flags, &span));
    if (span.n_bytes != strlen(want) || memcmp(span.bytes, want, span.n_bytes) != 0)
        CHECK_FAIL("\"%s\" becomes \"%.*s\", not \"%s\"", text, (int)span.n_bytes,
                   (const char *)span.bytes, want);
    normalize_workspace_free(&workspace);
    normalizer_free(z);
}

TEST(steps_run_one_after_the_other)
{
    model m;
    model_init(&m);
    add_step(&m, &(normalize_step){.kind = NORMALIZE_STRIP, .left = true, .right = true});
    add_step(&m, &(normalize_step){.kind = NORMALIZE_NFC});
    add_step(&m, &(normalize_step){
                     .kind = NORMALIZE_REPLACE_RUNS, .from = text_of(" "), .to = text_of("_")});
    add_step(&m, &(normalize_step){
                     .kind = NORMALIZE_REPLACE, .from = text_of("aa"), .to = text_of("b")});
    add_step(&m, &(normalize_step){.kind = NORMALIZE_PREPEND, .to = text_of("<")});
    normalizes_to(&m, NORMALIZE_FIRST, "", "");
    normalizes_to(&m, NORMALIZE_FIRST, " \xE3\x80\x80\t ", "");
    normalizes_to(&m, NORMALIZE_FIRST, "x", "<x");
    normalizes_to(&m, 0, " aaaaa  b c   e\xCC\x81 ", "<bba_b c_\xC3\xA9");
    model_free(&m);
}

TEST(one_step_of_characters_runs_in_its_place)
{
    model m;
    model_init(&m);
    add_step(&m, &(normalize_step){.kind = NORMALIZE_LOWERCASE});
    normalizes_to(&m, NORMALIZE_FIRST, "ABC", "abc");
    add_step(
        &m, &(normalize_step){.kind = NORMALIZE_REPLACE, .from = text_of("a"), .to = text_of("X")});
    normalizes_to(&m, NORMALIZE_FIRST, "ABC", "Xbc");
    model_free(&m);
}

TEST(runs_of_white_space_are_replaced)
{
    const struct {
        normalize_kind kind;
        const char *want;
    } cases[] = {{NORMALIZE_REPLACE_BLANKS, "a_b_c_d_"},
                 {NORMALIZE_REPLACE_LONG_BLANKS, "a b_c_d\xE3\x80\x80"}};
    for (size_t i = 0; i < N(cases); i++) {
        model m;
        model_init(&m);
        add_step(&m, &(normalize_step){.kind = cases[i].kind, .to = text_of("_")});
        normalizes_to(&m, NORMALIZE_FIRST, "a b \tc\nd\xE3\x80\x80", cases[i].want);
        model_free(&m);
    }
}

TEST(the_last_steps_may_be_left_to_the_reader)
{
    static const char *const texts[] = {"", "a", " a  b ", "\xE2\x96\x81", "a b"};
    for (int order = 0; order < 3; order++) {
        model m;
        failure err;
        model_init(&m);
        const normalize_step prepend = {.kind = NORMALIZE_PREPEND, .to = text_of(NAIVE_MARK)};
        const normalize_step replace = {
            .kind = NORMALIZE_REPLACE, .from = text_of(" "), .to = text_of(NAIVE_MARK)};
        if (order < 2)
            add_step(&m, order == 0 ? &prepend : &replace);
        add_step(&m, order == 0 ? &replace : &prepend);
        normalizer *left = normalizer_new(&m, false, &err);
        normalizer *all = normalizer_new(&m, true, &err);
        CHECK(left != NULL && all != NULL);
        for (size_t i = 0; i < N(texts); i++) {
            normalize_workspace workspace = {0};
            char a[64], b[64];
            text_span x = {(const uint8_t *)texts[i], strlen(texts[i])}, y = x;
            CHECK(normalize_text(left, &workspace, NORMALIZE_FIRST, &x));
            CHECK(x.bytes == (const uint8_t *)texts[i]); /* as it was */
            a[read_normalized(left, x, a)] = 0;
            CHECK(normalize_text(all, &workspace, NORMALIZE_FIRST, &y));
            b[read_normalized(all, y, b)] = 0;
            CHECK_STR(a, b);
            normalize_workspace_free(&workspace);
        }
        normalizer_free(left);
        normalizer_free(all);
        model_free(&m);
    }
}
