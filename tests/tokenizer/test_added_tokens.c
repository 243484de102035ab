/* SPDX-License-Identifier: Apache-2.0 */
/* test_added_tokens.c - added tokens in a text: found leftmost and longest, and encoded
 * correctly. */
#include "tokenizer/encoder_case.h"
#include "tokenizer/encode/added_tokens.h"
#include "tokenizer/merge/pair_filter.h"
#include "tokenizer/load/model_load.h"

static void add(model *m, const char *content, added_token how)
{
    failure err;
    how.content = (model_text){(char *)(uintptr_t)content, strlen(content)};
    CHECK(model_add_added(m, &how, &err));
}

/* ---- Search ---- */

/* The definition: at each place, the longest token that begins there. */
static bool plain_next(const model *m, const uint8_t *text, size_t n_bytes, size_t from,
                       added_match *match)
{
    for (size_t at = from; at < n_bytes; at++) {
        size_t longest = 0;
        for (size_t i = 0; i < m->n_added; i++) {
            const model_text *c = &m->added[i].content;
            if (c->n_bytes > longest && c->n_bytes <= n_bytes - at &&
                memcmp(c->s, text + at, c->n_bytes) == 0) {
                longest = c->n_bytes;
                *match = (added_match){
                    .start = at, .end = at + longest, .next = at + longest, .id = m->added[i].id};
            }
        }
        if (longest > 0)
            return true;
    }
    return false;
}

static void compare_all(const model *m, const added_tokens *a, const uint8_t *text, size_t n_bytes)
{
    added_match found = {0}, expected;
    for (size_t at = 0;; at = found.next) {
        const bool is = added_tokens_next(a, text, n_bytes, at, &found);
        CHECK(is == plain_next(m, text, n_bytes, at, &expected));
        if (!is)
            return;
        CHECK_EQ(found.start, expected.start);
        CHECK_EQ(found.end, expected.end);
        CHECK_EQ(found.next, expected.next);
        CHECK_EQ(found.id, expected.id);
    }
}

TEST(the_leftmost_and_longest_token_is_found_at_every_place)
{
    static uint8_t text[700 + TEXT_PADDING];
    for (int round = 0; round < (check_sanitized() ? 80 : check_long() ? 4000 : 400); round++) {
        model m;
        failure err;
        model_init(&m);
        /* Few beginnings have groups of their own in the filter, many share them. */
        const uint32_t n_tokens = 1 + check_below(round % 2 ? 4 : 30),
                       n_letters = 2 + check_below(4);
        const uint32_t shortest = round % 3 ? 2 : 1;
        for (uint32_t id = 0; id < n_tokens; id++) {
            char content[12] = {0};
            const uint32_t n = shortest + check_below(8);
            for (uint32_t i = 0; i < n; i++)
                content[i] = (char)('a' + check_below(n_letters));
            bool known = false;
            for (size_t i = 0; i < m.n_added; i++)
                known = known || strcmp(m.added[i].content.s, content) == 0;
            if (!known)
                add(&m, content, (added_token){.id = id});
        }
        added_tokens *a = added_tokens_new(&m, false, &err);
        CHECK(a != NULL);
        for (int i = 0; i < 20; i++) {
            const size_t n = check_below(700);
            for (size_t k = 0; k < n; k++)
                text[k] = (uint8_t)('a' + check_below(n_letters + (i % 2 ? 20 : 1)));
            memset(text + n, 'a', TEXT_PADDING); /* must not be taken for text */
            compare_all(&m, a, text, n);
        }
        added_tokens_free(a);
        model_free(&m);
    }
}

TEST(a_token_may_have_a_nul)
{
    static const uint8_t text[5 + TEXT_PADDING] = {'x', 0xFF, 'a', 0, 'b'};
    model m;
    failure err;
    model_init(&m);
    CHECK(model_add_added(&m, &(added_token){.id = 5, .content = {(char[]){0, 'b', 0}, 2}}, &err));
    CHECK(model_add_added(&m, &(added_token){.id = 6, .content = {(char[]){0, 0}, 1}}, &err));
    added_tokens *a = added_tokens_new(&m, false, &err);
    added_match match = {0};
    CHECK(added_tokens_next(a, text, 5, 0, &match));
    CHECK(match.id == 5 && match.start == 3 && match.next == 5);
    CHECK(added_tokens_next(a, text, 4, 0, &match));
    CHECK(match.id == 6 && match.next == 4);
    added_tokens_free(a);
    model_free(&m);
}

/* ---- The filter ---- */

TEST(filter_leaves_all_places_where_a_string_begins)
{
    static uint8_t text[PAIR_FILTER_BLOCK + 1];
    for (int round = 0; round < 3000; round++) {
        uint8_t strings[40][2];
        const uint32_t n_strings = 1 + check_below(40);
        const bool single = check_below(4) == 0;
        pair_filter plain, best;
        pair_filter_init(&plain, SIMD_SCALAR);
        pair_filter_init(&best, SIMD_BEST);
        for (uint32_t i = 0; i < n_strings; i++) {
            strings[i][0] = (uint8_t)check_below(256);
            strings[i][1] = (uint8_t)check_below(256);
            pair_filter_add(&plain, strings[i], single ? 1 : 2, i % PAIR_FILTER_GROUPS);
            pair_filter_add(&best, strings[i], single ? 1 : 2, i % PAIR_FILTER_GROUPS);
        }
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = check_below(2) ? (uint8_t)check_below(256)
                                     : strings[check_below(n_strings)][check_below(2)];
        uint64_t expected = 0;
        for (size_t i = 0; i < PAIR_FILTER_BLOCK; i++) {
            for (uint32_t k = 0; k < n_strings; k++)
                if (text[i] == strings[k][0] && (single || text[i + 1] == strings[k][1]))
                    expected |= (uint64_t)1 << i;
        }
        const uint64_t found = pair_filter_find(&plain, text);
        CHECK_EQ(found & expected, expected);
        CHECK_EQ(pair_filter_find(&best, text), found);
    }
}

/* Of the beginnings of tekken's thousand tokens, only those of closing tags occur in HTML. */
TEST(filter_leaves_few_places_of_ordinary_text)
{
    static const char *const tokens[] = {"</s>", "<SP",  "<pad>", "<s>",  "<unk>", "[/INST]",
                                         "[AV",  "[IMG", "[MID",  "[PRE", "[SUF",  "[TOOL"};
    static const uint8_t text[] =
        "<div class=\"a [b]\"> <b>Some</b> text, <i>more</i> text; x < y [1] ";
    pair_filter f;
    pair_filter_init(&f, SIMD_BEST);
    for (unsigned i = 0; i < 12; i++)
        pair_filter_add(&f, (const uint8_t *)tokens[i], strlen(tokens[i]),
                        i * PAIR_FILTER_GROUPS / 12);
    CHECK_EQ(__builtin_popcountll(pair_filter_find(&f, text)), 2);
}

/* Frees the model. */
static void expect_matches(model *m, const char *text, const added_match *expected, size_t n)
{
    uint8_t bytes[128] = {0}; /* some bytes after the end are read */
    const size_t n_bytes = strlen(text);
    failure err;
    added_tokens *a = added_tokens_new(m, false, &err);
    added_match match = {0};
    memcpy(bytes, text, n_bytes);
    for (size_t i = 0; i < n; i++) {
        CHECK(added_tokens_next(a, bytes, n_bytes, match.next, &match));
        CHECK_EQ(match.start, expected[i].start);
        CHECK_EQ(match.end, expected[i].end);
        CHECK_EQ(match.next, expected[i].next);
        CHECK_EQ(match.id, expected[i].id);
        match.taken = match.end;
    }
    CHECK(!added_tokens_next(a, bytes, n_bytes, match.next, &match));
    added_tokens_free(a);
    model_free(m);
}

TEST(strip_takes_blanks_of_unicode_on_its_side)
{
    static const added_match expected[] = {{.start = 1, .end = 9, .next = 9, .id = 1},
                                           {.start = 13, .end = 20, .next = 16, .id = 2},
                                           {.start = 21, .end = 24, .next = 24, .id = 2}};
    model m;
    model_init(&m);
    add(&m, "<l>", (added_token){.id = 1, .lstrip = true});
    add(&m, "<r>", (added_token){.id = 2, .rstrip = true});
    expect_matches(&m, "x \xE3\x80\x80\t<l>\n y <r> \xC2\xA0 z<r>", expected, 3);
}

/* What a match remembers of a run of blanks changes no match; the caller takes every third token as
 * text. */
TEST(blanks_are_found_again_where_they_were_found_before)
{
    static const char *const units[] = {" ", "\n", "\t", "\xE3\x80\x80", "x", "<r>", "<l>"};
    model m;
    failure err;
    model_init(&m);
    add(&m, "<l>", (added_token){.id = 1, .lstrip = true});
    add(&m, "<r>", (added_token){.id = 2, .rstrip = true});
    add(&m, "\n", (added_token){.id = 3, .lstrip = true});
    add(&m, "\t", (added_token){.id = 4, .rstrip = true});
    add(&m, " ", (added_token){.id = 5, .lstrip = true, .rstrip = true});
    added_tokens *a = added_tokens_new(&m, false, &err);
    CHECK(a != NULL);
    for (int i = 0; i < 5000; i++) {
        uint8_t text[200 + TEXT_PADDING] = {0};
        size_t n = 0;
        while (n < 100 + check_below(90)) {
            const char *unit = units[check_below(7)];
            memcpy(text + n, unit, strlen(unit));
            n += strlen(unit);
        }
        added_match kept = {0}, fresh;
        for (unsigned k = 0;; k++) {
            fresh = (added_match){.taken = kept.taken};
            const bool is = added_tokens_next(a, text, n, kept.next, &fresh);
            CHECK(added_tokens_next(a, text, n, kept.next, &kept) == is);
            if (!is)
                break;
            CHECK(kept.at == fresh.at && kept.start == fresh.start && kept.end == fresh.end);
            kept.taken = k % 3 ? kept.end : kept.taken;
        }
    }
    added_tokens_free(a);
    model_free(&m);
}

/* In steps of the search, not in time: 4 MB would take hours if each token looked again. */
TEST(a_long_run_of_blanks_that_are_tokens_is_searched_once)
{
    const size_t n = check_sanitized() ? 1 << 19 : 1 << 22;
    uint8_t *text = malloc(n + TEXT_PADDING);
    failure err;
    memset(text, '\n', n);
    memset(text + n, 0, TEXT_PADDING);
    for (int strips = 1; strips < 4; strips++) {
        model m;
        model_init(&m);
        add(&m, "\n", (added_token){.id = 1, .lstrip = strips & 1, .rstrip = strips & 2});
        added_tokens *a = added_tokens_new(&m, false, &err);
        added_match match = {0};
        size_t n_matches = 0;
        while (added_tokens_next(a, text, n, match.next, &match))
            n_matches++;
        CHECK_EQ(n_matches, n);
        added_tokens_free(a);
        model_free(&m);
    }
    free(text);
}

/* tokenizers: the rest of such a token is empty, and left out. */
TEST(a_blank_token_whose_blanks_are_taken_is_none)
{
    static const added_match expected[] = {{.start = 1, .end = 7, .next = 4, .id = 1},
                                           {.start = 8, .end = 9, .next = 9, .id = 2},
                                           {.start = 9, .end = 13, .next = 12, .id = 1},
                                           {.start = 13, .end = 16, .next = 16, .id = 4}};
    model m;
    model_init(&m);
    add(&m, "<r>", (added_token){.id = 1, .rstrip = true});
    add(&m, "\t", (added_token){.id = 2, .lstrip = true});
    add(&m, "\n", (added_token){.id = 3, .lstrip = true, .rstrip = true});
    add(&m, "<w>", (added_token){.id = 4});
    expect_matches(&m, "x<r> \t\ny\t<r>\t<w>", expected, 4);
}

/* U+203F is \w, U+00B2 is a number but not \w. A token that is no single word hides those in it. */
TEST(a_single_word_has_no_word_beside_it)
{
    static const added_match expected[] = {{.start = 0, .end = 4, .next = 4, .id = 1},
                                           {.start = 18, .end = 22, .next = 22, .id = 1},
                                           {.start = 31, .end = 33, .next = 33, .id = 2},
                                           {.start = 33, .end = 38, .next = 38, .id = 1}};
    model m;
    model_init(&m);
    add(&m, "word", (added_token){.id = 1, .single_word = true, .lstrip = true});
    add(&m, "or", (added_token){.id = 2});
    expect_matches(&m, "word words_word \xC2\xB2word \xE2\x80\xBFword or word", expected, 4);
    uint8_t text[8 + TEXT_PADDING] = "wordwor";
    failure err;
    added_match match = {0};
    model_init(&m);
    add(&m, "word", (added_token){.id = 1, .single_word = true});
    added_tokens *a = added_tokens_new(&m, false, &err);
    CHECK(!added_tokens_next(a, text, 7, 0, &match));
    CHECK(added_tokens_next(a, text, 4, 0, &match)); /* the text ends there */
    added_tokens_free(a);
    model_free(&m);
}

TEST(tokens_that_match_the_same_text_are_refused)
{
    model m;
    failure err;
    model_init(&m);
    add(&m, "ab", (added_token){.id = 1, .normalized = true});
    add(&m, "ab", (added_token){.id = 2, .normalized = true});
    CHECK(!added_tokens_new(&m, true, &err));
    CHECK_STR(err.text, "two added tokens match the same text: \"ab\"");
    model_free(&m);
}

/* ---- Policies ---- */

enum {
    END = 300,
    RUN,
    NEW
};

/* Bytes, "ab" = 256, the special "<end>" and the ordinary added token "--". */
/* more: the content of another added token, or NULL. */
static void make_with(model *m, bool prefix_space, const char *more, bool single_word)
{
    failure err;
    model_init(m);
    m->kind = MODEL_BYTE_BPE;
    m->rule = MERGE_RANKED;
    m->split = STAGE_GPT2;
    m->prefix_space = prefix_space;
    for (uint32_t id = 0; id < 257; id++) {
        const uint8_t byte = (uint8_t)id;
        CHECK(model_set_token(m,
                              &(new_token){.id = id,
                                           .bytes = id < 256 ? (const void *)&byte : "ab",
                                           .n_bytes = id < 256 ? 1 : 2,
                                           .kind = TOKEN_NORMAL},
                              &err));
    }
    add(m, "<end>", (added_token){.id = END, .special = true});
    add(m, "--", (added_token){.id = RUN});
    add(m, "<new>", (added_token){.id = NEW, .special = true, .normalized = true});
    if (more)
        add(m, more, (added_token){.id = NEW + 1, .single_word = single_word});
    CHECK(model_finish(m, &(model_source){0}, &err));
}

static void start(engine *g)
{
    make_with(&g->m, false, NULL, false);
    engine_start(g, 0);
}

static void expect(specials_policy policy, const char *text, const uint32_t *ids, size_t n_ids)
{
    engine g = {.specials = policy};
    start(&g);
    encode(&g, text, strlen(text));
    CHECK_EQ(g.out.n, n_ids);
    for (size_t i = 0; i < n_ids; i++)
        CHECK_EQ(g.out.ids[i], ids[i]);
    CHECK_EQ(encoder_specials_seen(g.e), 2);
    engine_end(&g);
}

TEST(specials_are_text_or_ids_or_left_out_and_always_counted)
{
    static const char text[] = "ab<end>ab--a<new>b";
    static const uint32_t as_text[] = {256, '<', 'e', 'n', 'd', '>', 256, RUN,
                                       'a', '<', 'n', 'e', 'w', '>', 'b'};
    static const uint32_t matched[] = {256, END, 256, RUN, 'a', NEW, 'b'};
    static const uint32_t dropped[] = {256, 256, RUN, 'a', 'b'}; /* its sides do not merge */
    expect(SPECIALS_TEXT, text, as_text, 15);
    expect(SPECIALS_MATCH, text, matched, 7);
    expect(SPECIALS_DROP, text, dropped, 5);
}

#define STOP "\xE3\x80\x82" /* U+3002 */

TEST(chunks_beside_added_tokens_change_nothing)
{
    static const char *const tokens[] = {"x",  "a\n",       "\xD1\x8F", "7",  "1a", "b ", " b",
                                         "-x", " \xD1\x8F", STOP,       "+1", "a/", "+"};
    static const char *const pieces[] = {"x",   "1",
                                         " ",   "a",
                                         "\n",  "\xD1\x8F",
                                         "ab",  "b\na",
                                         "a b", "\xD1\x8F \xD1\x8F",
                                         "7",   "+1",
                                         "a/b", "x+",
                                         "--",  "\xE8\xAA\x9E" STOP "\xE8\xAA\x9E"};
    for (int round = 0; round < 4000; round++) {
        engine g = {.specials = SPECIALS_MATCH};
        make_with(&g.m, round % 2, tokens[check_below(13)], check_below(2));
        engine_start(&g, 0);
        check_chunks(&g, pieces, 16, 20);
        engine_end(&g);
    }
}

TEST(a_special_that_matches_raw_or_normalized_text_is_an_error)
{
    static const struct {
        const char *text;
        size_t at;
        const char *token;
    } cases[] = {
        {"ab ab<end>", 5, "<end>"}, {"ab<new>", 2, "<new>"}, {"--ab<new><end>", 9, "<end>"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        engine g = {.specials = SPECIALS_ERROR};
        uint8_t text[100] = {0};
        const size_t n = strlen(cases[i].text);
        memcpy(text, cases[i].text, n);
        start(&g);
        CHECK_INT(encoder_encode(g.e, text, n, &g.out), TOKENIZE_SPECIAL);
        const special_match match = encoder_refused_special(g.e, text, n);
        CHECK_EQ(match.at, cases[i].at);
        CHECK_EQ(match.n_bytes, strlen(cases[i].token));
        CHECK(memcmp(match.bytes, cases[i].token, match.n_bytes) == 0);
        engine_end(&g);
    }
}

TEST(tokens_are_found_by_their_text)
{
    engine g = {0};
    start(&g);
    CHECK_EQ(tokenizer_find(g.t, "<end>", 5), END);
    CHECK_EQ(tokenizer_find(g.t, "ab", 2), 256);
    CHECK_EQ(tokenizer_find(g.t, "abc", 3), MODEL_NO_ID);
    CHECK_EQ(tokenizer_get_info(g.t)->vocab_size, NEW + 1);
    engine_end(&g);
}
