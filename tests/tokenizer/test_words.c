/* SPDX-License-Identifier: Apache-2.0 */
/* test_words.c - WordPiece, WordLevel and BPE over characters, with words of a pattern: the whole
 * tokenizer. test_oracles.py compares random ones with the reference. */
#include "tokenizer/encoder_case.h"
#include "tokenizer/load_model.h"

/* ---- Tokenizers ---- */

enum {
    MAX_TOKENS = 64,
    MAX_TOKEN_BYTES = 64
};

typedef struct vocabulary_case {
    char tokens[MAX_TOKENS][MAX_TOKEN_BYTES]; /* token 0 is the unknown one */
    size_t n;
} vocabulary_case;

#define WORDPIECE_FIELDS                                                                           \
    "\"type\": \"WordPiece\", \"unk_token\": \"[U]\", \"continuing_subword_prefix\": \"##\", "     \
    "\"max_input_chars_per_word\": 7"
#define WORDLEVEL_FIELDS "\"type\": \"WordLevel\", \"unk_token\": \"[U]\""

/* pre_tokenizer: its type and the fields after it; decoder: all of it. Both are JSON. */
static tokenizer *make_tokenizer(const char *fields, const vocabulary_case *v,
                                 const char *pre_tokenizer, const char *decoder)
{
    blob b = {0};
    put_text(&b, "{\"added_tokens\": [], \"pre_tokenizer\": {\"type\": %s}, \"decoder\": %s, ",
             pre_tokenizer, decoder);
    put_text(&b, "\"model\": {%s, \"vocab\": {", fields);
    for (size_t i = 0; i < v->n; i++)
        put_text(&b, "%s\"%s\": %zu", i ? ", " : "", v->tokens[i], i);
    put_text(&b, "}}}");
    expect_blob(&b, NULL);
    blob_free(&b);
    tokenizer *t = tokenizer_new(&m, &err);
    if (!t)
        CHECK_FAIL("%s", err.text);
    return t;
}

/* ---- Particular cases ---- */

static void encodes_to(const tokenizer *t, const char *text, const uint32_t *wanted, size_t n)
{
    engine g = {.e = encoder_new(t, &(encoder_options){.cache_bytes = 1})};
    encode(&g, text, strlen(text));
    if (g.out.n != n || (n > 0 && memcmp(g.out.ids, wanted, n * sizeof *wanted) != 0))
        CHECK_FAIL("\"%s\": %zu ids, not %zu, or others", text, g.out.n, n);
    engine_end(&g);
}

#define IDS(...) (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4

TEST(pieces_are_the_longest_from_left_to_right_or_the_word_is_unknown)
{
    static const vocabulary_case v = {{"[U]", "un", "una", "##ble", "##able", "##b", "##", "a"}, 8};
    tokenizer *t = make_tokenizer(WORDPIECE_FIELDS, &v, "\"WhitespaceSplit\"", "null");
    CHECK_STR(tokenizer_get_info(t)->family, "WordPiece");
    encodes_to(t, "unable", IDS(2, 3));
    encodes_to(t, "  unb  a\n", IDS(1, 5, 7));
    encodes_to(t, "unx", IDS(0));
    encodes_to(t, "aaaaaaaa ##", IDS(0, 6));
    encodes_to(t, "abbbbbb", IDS(7, 5, 5, 5, 5, 5, 5));
    encodes_to(t, "abbbbbbb", IDS(0));
    encodes_to(t, " \n", NULL, 0);
    tokenizer_free(t);
}

/* The cache is emptied by the second word after some number of others, and its store is filled
 * again from where the first word was. */
TEST(words_of_an_emptied_cache_are_not_found)
{
    static const vocabulary_case v = {
        {"[U]", "word_of_twenty_bytes", "word_of_twenty_bytes_and_others"}, 3};
    tokenizer *t = make_tokenizer(WORDLEVEL_FIELDS, &v, "\"WhitespaceSplit\"", "null");
    for (uint32_t n = 0; n < 100; n++) {
        uint32_t ids[103] = {1};
        char text[4000], *at = text + sprintf(text, " %s", v.tokens[1]);
        for (uint32_t i = 0; i < n; i++)
            at += sprintf(at, " %u_other_word_of_many_bytes", i);
        sprintf(at, " %s %s", v.tokens[2], v.tokens[1]);
        ids[n + 1] = 2;
        ids[n + 2] = 1;
        encodes_to(t, text, ids, n + 3);
    }
    tokenizer_free(t);
}

TEST(the_prefix_of_pieces_may_be_a_nul)
{
    static const vocabulary_case v = {{"[U]", "a", "\\u0000b"}, 3};
    tokenizer *t = make_tokenizer("\"type\": \"WordPiece\", \"unk_token\": \"[U]\", "
                                  "\"continuing_subword_prefix\": \"\\u0000\", "
                                  "\"max_input_chars_per_word\": 7",
                                  &v, "\"WhitespaceSplit\"", "null");
    encodes_to(t, "abb b", IDS(1, 2, 2, 0));
    tokenizer_free(t);
}

static void decodes_to(const tokenizer *t, const uint32_t *ids, size_t n, const char *wanted)
{
    model_text text = {0};
    size_t bad;
    CHECK(tokenizer_get_info(t)->decodes && tokenizer_decode(t, ids, n, &text, &bad));
    CHECK_STR(text.s, wanted);
    free(text.s);
}

TEST(last_character_of_a_word_has_a_suffix)
{
    static const vocabulary_case v = {{"[U]", "a", "a</w>", "b", "ab</w>", "aa", "\u00e9</w>"}, 7};
    static const char fields[] = "\"type\": \"BPE\", \"unk_token\": \"[U]\", "
                                 "\"end_of_word_suffix\": \"</w>\", "
                                 "\"merges\": [[\"a\", \"a\"]]";
    tokenizer *t = make_tokenizer(fields, &v, "\"Whitespace\"",
                                  "{\"type\": \"BPEDecoder\", \"suffix\": \"</w>\"}");
    encodes_to(t, "a ba aaa", IDS(2, 3, 2, 5, 2));
    encodes_to(t, "b a\u00e9 \u00e9a", IDS(0, 1, 6, 0, 2));
    decodes_to(t, IDS(2, 3, 4, 6, 0), "a bab \u00e9 [U]");
    decodes_to(t, IDS(1, 2, 4), "aa ab");
    decodes_to(t, NULL, 0, "");
    tokenizer_free(t);
}

TEST(words_are_split_again_and_their_last_bytes_have_a_suffix)
{
    static const vocabulary_case v = {{"[U]", "a", "bw", "\u0120", "1w"}, 5};
    tokenizer *t =
        make_tokenizer("\"type\": \"BPE\", \"unk_token\": \"[U]\", \"merges\": [], "
                       "\"end_of_word_suffix\": \"w\"",
                       &v,
                       "\"Sequence\", \"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, "
                       "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                       "\"use_regex\": true, \"trim_offsets\": true}]",
                       "null");
    encodes_to(t, "ab1 b", IDS(3, 1, 2, 4, 3, 2));
    tokenizer_free(t);
}

TEST(numbers_that_are_word_characters_only_for_oniguruma)
{
    static const vocabulary_case v = {
        {"[U]", "\u00B2\u00B3\u00B9\u00BC\u00BD\u00BE", "a", "\u00B7", "b"}, 5};
    tokenizer *t = make_tokenizer(WORDLEVEL_FIELDS, &v,
                                  "\"Split\", \"pattern\": {\"Regex\": \"\\\\w+\"}, "
                                  "\"behavior\": \"Isolated\", \"invert\": false",
                                  "null");
    encodes_to(t, "\u00B2\u00B3\u00B9\u00BC\u00BD\u00BE\u00B7a\u00B7b", IDS(1, 3, 2, 3, 4));
    tokenizer_free(t);
}

TEST(decoders_put_blanks_between_words)
{
    static const vocabulary_case v = {
        {"[U]", "a", "##b", ".", "'", "s", "'s", "do not", "n't", "##", "## ."}, 11};
    tokenizer *t =
        make_tokenizer(WORDPIECE_FIELDS, &v, "\"Whitespace\"",
                       "{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}");
    decodes_to(t, NULL, 0, "");
    decodes_to(t, IDS(1, 2, 1, 3, 0), "ab a. [U]");
    decodes_to(t, IDS(2, 1, 4, 5, 6), "##b a ' s's");
    decodes_to(t, IDS(1, 7, 8, 9, 1, 10), "a don'tn't a.");
    tokenizer_free(t);
    t = make_tokenizer(WORDPIECE_FIELDS, &v, "\"Whitespace\"",
                       "{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": false}");
    decodes_to(t, IDS(1, 2, 3, 10), "ab . .");
    tokenizer_free(t);
    t = make_tokenizer(WORDLEVEL_FIELDS, &v, "\"Whitespace\"", "null");
    CHECK_STR(tokenizer_get_info(t)->family, "WordLevel");
    decodes_to(t, IDS(1, 2, 3), "a ##b .");
    tokenizer_free(t);
}

/* ---- Normalizers ---- */

#define BERT_NORMALIZER                                                                            \
    "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "        \
    "\"strip_accents\": null, \"lowercase\": true}"
#define ADDED(id, content, special)                                                                \
    "{\"id\": " id ", \"content\": \"" content "\", \"single_word\": false, \"lstrip\": false, "   \
    "\"rstrip\": false, \"normalized\": true, \"special\": " special "}"

static tokenizer *make_bert(const char *added, const char *special)
{
    blob b = {0};
    put_text(&b, "{\"normalizer\": %s, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, ",
             BERT_NORMALIZER);
    put_text(&b, "\"decoder\": null, \"added_tokens\": [" ADDED("6", "%s", "%s") "], ", added,
             special);
    put_text(&b,
             "\"model\": {%s, \"vocab\": {\"[U]\": 0, \"caf\": 1, \"##e\": 2, "
             "\"\u4e00\": 3, \".\": 4, \"a\": 5}}}",
             WORDPIECE_FIELDS);
    expect_blob(&b, NULL);
    blob_free(&b);
    tokenizer *t = tokenizer_new(&m, &err);
    if (!t)
        CHECK_FAIL("%s", err.text);
    return t;
}

TEST(words_of_bert_are_normalized)
{
    tokenizer *t = make_bert("New X", "false");
    encodes_to(t, "CAF\u00c9.caf\u00ade\u0301\u4e00a", IDS(1, 2, 4, 1, 2, 3, 5));
    encodes_to(t,
               "a\va A\xC2\x85"
               "A",
               IDS(0, 0));
    encodes_to(t, "a NEW x a new\tX", IDS(5, 6, 5, 6));
    CHECK(!tokenizer_get_info(t)->takes_bytes);
    tokenizer_free(t);
}

TEST(the_place_of_a_special_in_normalized_text_is_one_of_the_text)
{
    static const struct {
        const char *text;
        size_t at; /* of the content, or where the text begins */
    } cases[] = {{"\u00c9a New X", 4}, {"\u00c9a NEW X", 0}};
    engine g = {.t = make_bert("New X", "true")};
    g.e = encoder_new(g.t, &(encoder_options){.specials = SPECIALS_ERROR});
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        uint8_t text[16 + TEXT_PADDING] = {0};
        const size_t n = strlen(cases[i].text);
        memcpy(text, cases[i].text, n);
        CHECK_INT(encoder_encode(g.e, text, n, &g.out), TOKENIZE_SPECIAL);
        const special_match match = encoder_refused_special(g.e, text, n);
        CHECK_EQ(match.at, cases[i].at);
        CHECK(match.n_bytes == 5 && memcmp(match.bytes, "New X", 5) == 0);
    }
    engine_end(&g);
}

TEST(chunks_do_not_change_normalized_words)
{
    static const char *const pieces[] = {"a ",           "a+",
                                         "1/A",          "A\n",
                                         "1a",           "\u00c9 \u00e9",
                                         "e\u0301",      ".",
                                         "\u4e00\u3002", "\u5b57\uff0c\u5b57",
                                         "\u00ad",       "\u0301",
                                         "  ",           "CAF\u00c9"};
    engine g = {.t = make_bert("NewX", "false")};
    g.e = encoder_new(g.t, &(encoder_options){.cache_bytes = 1});
    for (int round = 0; round < (check_long() ? 200000 : 20000); round++)
        check_chunks(&g, pieces, N_ELEMENTS(pieces), 25);
    engine_end(&g);
}

static void refuse(const char *fields, const char *why)
{
    blob b = {0};
    put_text(&b, "{\"model\": {%s, \"vocab\": {\"a\": 0}}}", fields);
    expect_blob(&b, NULL);
    blob_free(&b);
    CHECK(!tokenizer_new(&m, &err));
    CHECK_STR(err.text, why);
}

TEST(words_without_an_unknown_token_are_refused)
{
    refuse("\"type\": \"WordLevel\", \"unk_token\": \"[U]\"",
           "WordLevel without an unk_token in the vocabulary is not supported");
    refuse(WORDPIECE_FIELDS, "WordPiece without an unk_token in the vocabulary is not supported");
}
