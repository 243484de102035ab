/* SPDX-License-Identifier: Apache-2.0 */
/* test_char_cuts.c - where a text of characters may be cut: normalizing both parts gives the same
 * as normalizing the whole. (test_char_bpe.c and test_unigram.c compare the ids.) */
#include "base/le.h"
#include "tokenizer/normalizer_case.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/unicode/unicode.h"
#include "base/utf8.h"

static uint32_t character_at(const uint8_t *text, size_t n)
{
    uint32_t c;
    return n > 0 && utf8_decode(text, n, &c) > 0 ? c : 0;
}

static uint32_t last_character(text_span span)
{
    size_t at = span.n_bytes;
    while (at > 0 && (span.bytes[--at] & 0xC0) == 0x80)
        ;
    return character_at(span.bytes + at, span.n_bytes - at);
}

/* The two parts together must be the whole text, and the cut must be between the two characters. */
static void check_cut(const normalizer *z, const char *text, size_t n, size_t cut,
                      const uint32_t beside[2])
{
    static normalize_scratch all = {0}, left = {0}, right = {0};
    const uint8_t *bytes = (const uint8_t *)text;
    text_span whole = {bytes, n}, a = {bytes, cut}, b = {bytes + cut, n - cut};
    CHECK(normalize_text(z, &all, NORMALIZE_FIRST, &whole));
    CHECK(normalize_text(z, &left, NORMALIZE_FIRST, &a));
    CHECK(normalize_text(z, &right, NORMALIZE_CONTINUES, &b));
    const bool same = whole.n_bytes == a.n_bytes + b.n_bytes &&
                      memcmp(whole.bytes, a.bytes, a.n_bytes) == 0 &&
                      memcmp(whole.bytes + a.n_bytes, b.bytes, b.n_bytes) == 0;
    if (!same || last_character(a) != beside[0] ||
        (b.n_bytes > 0 && character_at(b.bytes, b.n_bytes) != beside[1]))
        CHECK_FAIL("\"%.*s|%.*s\"", (int)cut, text, (int)(n - cut), text + cut);
    normalize_scratch_free(&all);
    normalize_scratch_free(&left);
    normalize_scratch_free(&right);
}

/* What is farther away only forbids cuts. */
static void check_neutral(const normalizer *z, const char_pairs *pairs, uint32_t left,
                          uint32_t right, const uint32_t beside[2])
{
    const uint32_t letter = normalizer_neutral(z, pairs);
    const uint32_t around[NORMALIZER_CUT_CHARACTERS] = {letter, left, right, letter, letter};
    uint32_t same[2];
    if (letter == CHAR_ANY || left >= 128 || right >= 128)
        return;
    CHECK(normalizer_cuts(z, pairs, around, same));
    CHECK(same[0] == beside[0] && same[1] == beside[1]);
}

static long check_cuts(const normalizer *z, const char_pairs *pairs, const char *text, size_t n)
{
    uint32_t c[2 * NAIVE_MAX_BYTES], beside[2];
    size_t starts[2 * NAIVE_MAX_BYTES], n_c = 0;
    long n_cuts = 0;
    for (size_t at = 0; at < n; at += naive_char((const uint8_t *)text + at)) {
        starts[n_c] = at;
        c[n_c++] = character_at((const uint8_t *)text + at, n - at);
    }
    for (size_t i = 2; i + 2 < n_c; i++) {
        if (pairs->all || char_pairs_has(pairs, c[i - 1], c[i]) ||
            !normalizer_cuts(z, pairs, c + i - 2, beside) || beside[0] == 0x2581 ||
            unicode_class_of(beside[0]) == CLASS_SPACE)
            continue;
        check_cut(z, text, n, starts[i], beside);
        check_neutral(z, pairs, c[i - 1], c[i], beside);
        n_cuts++;
    }
    return n_cuts;
}

/* ---- Rules of a hostile file ---- */

/* The first bytes of four, then all that may follow, then one of 64 places where it begins again:
 * more ways through few units than anybody can walk. */
static void make_dense_charsmap(model_text *blob)
{
    enum {
        BLOCK = 256,
        FIRST =
            1, /* block of the first characters; then three of what may follow, and the others */
        OTHERS = FIRST + 4,
        N_UNITS = (OTHERS + 64) * BLOCK
    };
    static uint8_t data[4 + 4 * N_UNITS + 1];
    le_put32(data, 4 * N_UNITS);
    for (uint32_t i = 0; i < N_UNITS; i++)
        le_put32(data + 4 + 4 * (size_t)i, 1u << 31);
    le_put32(data + 4, (FIRST * BLOCK) << 10); /* the root */
    for (uint32_t block = FIRST; block < OTHERS + 64; block++) {
        const bool begins = block == FIRST || block >= OTHERS;
        for (uint32_t byte = begins ? 0xF1 : 0x80; byte < (begins ? 0xF4 : 0xC0); byte++) {
            const uint32_t i = block * BLOCK + byte;
            uint32_t to = begins ? FIRST + 1 : block + 1;
            to = to == OTHERS ? OTHERS + byte % 64 : to;
            le_put32(data + 4 + 4 * (size_t)i, (i ^ to * BLOCK) << 10 | byte);
        }
    }
    CHECK(model_text_set(blob, data, sizeof data));
}

TEST(rules_that_take_too_long_allow_no_cut)
{
    charsmap map = {0};
    model_text blob = {0};
    failure err;
    char_pairs pairs = {0};
    make_dense_charsmap(&blob);
    if (!charsmap_load(&map, &blob, &err))
        CHECK_FAIL("%s", err.text);
    charsmap_add_pairs(&map, &pairs);
    CHECK(pairs.all);
    char_pairs_free(&pairs);
    charsmap_free(&map);
    free(blob.s);
}

TEST(rules_that_are_not_of_characters_allow_no_cut)
{
    static const rule rules[] = {{"\xD1", "x"}, {"a\xA9", "x"}, {"\xC3\xA9\xC3", "x"}};
    for (size_t i = 0; i < N(rules); i++) {
        charsmap map = {0};
        model_text blob = {0};
        failure err;
        char_pairs pairs = {0};
        make_charsmap(&blob, &rules[i], 1);
        CHECK(charsmap_load(&map, &blob, &err));
        charsmap_add_pairs(&map, &pairs);
        CHECK(pairs.all);
        char_pairs_free(&pairs);
        charsmap_free(&map);
        free(blob.s);
    }
}

/* ---- Normalizers ---- */

TEST(cuts_are_where_sentencepiece_looks_at_both_sides_alone)
{
    static const rule rules[] = {{"a", "A"},
                                 {"ab", "  "},
                                 {"\xC3\xA9", " e "},
                                 {"\n", " "},
                                 {"\t", ""},
                                 {"b ", "B"},
                                 {"  ", "_"},
                                 {"\xE3\x80\x82", " "},
                                 {"1\xE4\xB8\x96", "x"},
                                 {"S.[", "!"}};
    static const char *const user[] = {"ab", " a", "  ", "a b", NAIVE_MARK, "\xE4\xB8\x96", "s s "};
    char text[2 * NAIVE_MAX_BYTES];
    long n_cuts = 0;
    for (long round = 0; round < (check_sanitized() ? 100 : check_long() ? 20000 : 2000); round++) {
        const uint32_t bits = naive_any(8);
        const way w = {.rules = rules,
                       .n_rules = naive_any(3) == 0 ? 0 : naive_any(N(rules) + 1),
                       .user = user,
                       .n_user = naive_any(2) ? 0 : naive_any(N(user) + 1),
                       .dummy = bits & 1,
                       .collapse = bits & 2,
                       .escape = bits & 4,
                       .suffix = naive_any(8) == 0};
        model m;
        failure err;
        char_pairs pairs = {0};
        set_way(&m, &w);
        normalizer *z = normalizer_new(&m, false, &err);
        CHECK(z != NULL);
        normalizer_add_pairs(z, &pairs);
        for (size_t i = 0; i < w.n_user; i++)
            char_pairs_add_text(&pairs, (const uint8_t *)user[i], strlen(user[i]));
        for (int i = 0; i < 20; i++)
            n_cuts += check_cuts(z, &pairs, text, some_normal_text(&w, text));
        char_pairs_free(&pairs);
        normalizer_free(z);
        model_free(&m);
    }
    CHECK(n_cuts > 1000);
}

static void add_some_step(model *m, bool *mapped)
{
    static const char *const from[] = {" ", "a", "ab", "\n", "\xC3\xA9", "  ", "``"};
    static const char *const to[] = {"", " ", NAIVE_MARK, "b", "\"", "xy"};
    const normalize_kind kinds[] = {NORMALIZE_STRIP,
                                    NORMALIZE_REPLACE,
                                    NORMALIZE_REPLACE_RUNS,
                                    NORMALIZE_PREPEND,
                                    *mapped ? NORMALIZE_NFC : NORMALIZE_CHARSMAP,
                                    NORMALIZE_NFC};
    const normalize_kind kind = kinds[naive_any(N(kinds))];
    add_step(m, &(normalize_step){.kind = kind,
                                  .left = naive_any(2),
                                  .right = naive_any(2),
                                  .from = text_of(from[naive_any(N(from))]),
                                  .to = text_of(to[naive_any(N(to))])});
    if (kind != NORMALIZE_CHARSMAP)
        return;
    *mapped = true;
    free(m->steps[m->n_steps - 1].to.s);
    m->steps[m->n_steps - 1].to = (model_text){0};
    make_charsmap(&m->steps[m->n_steps - 1].to, precompiled_rules, N(precompiled_rules));
}

TEST(cuts_are_where_steps_look_at_both_sides_alone)
{
    static const char *const characters[] = {"\xCC\x81",
                                             "\xE1\x84\x80",
                                             "\xE1\x85\xA1",
                                             "\xE1\x86\xA8",
                                             "\xEA\xB0\x80",
                                             "\xF0\x9F\x87\xA6",
                                             "\xE2\x80\x8D",
                                             "\xE0\xA4\x95",
                                             "\xE0\xA5\x8D",
                                             "\xD8\x80",
                                             "\r",
                                             "\n",
                                             "e",
                                             "`",
                                             "  "};
    const way w = {.rules = precompiled_rules, .n_rules = N(precompiled_rules)};
    char text[4 * NAIVE_MAX_BYTES];
    long n_cuts = 0;
    for (long round = 0; round < (check_sanitized() ? 100 : check_long() ? 20000 : 2000); round++) {
        model m;
        failure err;
        char_pairs pairs = {0};
        bool mapped = false;
        model_init(&m);
        for (uint32_t n = 1 + naive_any(3); n > 0; n--)
            add_some_step(&m, &mapped);
        normalizer *z = normalizer_new(&m, true, &err);
        CHECK(z != NULL);
        normalizer_add_pairs(z, &pairs);
        for (int i = 0; i < 20; i++) {
            size_t n = some_normal_text(&w, text);
            for (int k = 0; k < 30; k++)
                n += (size_t)sprintf(text + n, "%s",
                                     naive_any(3) ? characters[naive_any(N(characters))]
                                                  : naive_alphabet[naive_any(N(naive_alphabet))]);
            n_cuts += check_cuts(z, &pairs, text, n);
        }
        char_pairs_free(&pairs);
        normalizer_free(z);
        model_free(&m);
    }
    CHECK(n_cuts > 1000);
}
