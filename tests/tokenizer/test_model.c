/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json: what the loader reads from it, and what it refuses by name. */
#include "support/check.h"
#include "support/split_words.h"
#include "tokenizer/load_model.h"

/* ---- tokenizer.json ---- */

/* Parts of a file as JSON; NULL: a default. */
typedef struct hf_parts {
    const char *normalizer, *pre_tokenizer, *post_processor, *added, *model, *more, *padding,
        *decoder;
} hf_parts;

#define SMALL_VOCABULARY                                                                           \
    "{\"a\": 0, \"b\": 1, \"c\": 2, \"ab\": 3, \"bc\": 4, \"abc\": 5, \"<unk>\": 6}"
#define SMALL_BPE                                                                                  \
    "{\"type\": \"BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", \"fuse_unk\": true, "        \
    "\"vocab\": " SMALL_VOCABULARY ", \"merges\": [\"a b\", \"ab c\"]}"
#define BYTE_LEVEL                                                                                 \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "              \
    "\"use_regex\": true}"
#define BYTE_LEVEL_BARE                                                                            \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "              \
    "\"use_regex\": false}"

static const char *or_else(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static blob hf_file(const hf_parts *p)
{
    blob b = {0};
    put_text(&b,
             "{\"version\": \"1.0\", \"truncation\": null, \"padding\": %s, %s"
             "\"added_tokens\": %s, \"normalizer\": %s, \"pre_tokenizer\": %s, "
             "\"post_processor\": %s, \"decoder\": %s, \"model\": %s}",
             or_else(p->padding, "null"), or_else(p->more, ""), or_else(p->added, "[]"),
             or_else(p->normalizer, "null"), or_else(p->pre_tokenizer, "null"),
             or_else(p->post_processor, "null"), or_else(p->decoder, "null"),
             or_else(p->model, SMALL_BPE));
    return b;
}

static void expect_hf(const hf_parts *p)
{
    blob b = hf_file(p);
    expect_blob(&b, NULL);
    blob_free(&b);
}

static void refuse_hf(const hf_parts *p, const char *why)
{
    blob b = hf_file(p);
    expect_refusal(&b, NULL, why);
    blob_free(&b);
}

/* A run of unknown characters may hold the text of the unknown token, so even the byte of "A" is
 * needed. */
TEST(byte_fallback_of_unigram)
{
    static const int left_out[] = {-1, 'A', 0xE2, 0xC0};
    for (size_t k = 0; k < N_ELEMENTS(left_out); k++) {
        char why[32];
        blob b = {0};
        put_text(&b, "{\"type\": \"Unigram\", \"unk_id\": 1, \"byte_fallback\": true, "
                     "\"vocab\": [[\"A\", -1], [\"<unk>\", 0]");
        for (int i = 0; i < 256; i++) {
            if (i != left_out[k])
                put_text(&b, ", [\"<0x%02X>\", -2.5]", (unsigned)i);
        }
        put_text(&b, "]}");
        put(&b, "", 1);
        snprintf(why, sizeof why, "no <0x%02X>", (unsigned)left_out[k]);
        if (left_out[k] == 'A' || left_out[k] == 0xE2)
            refuse_hf(&(hf_parts){.model = (char *)b.data}, why);
        else
            expect_hf(&(hf_parts){.model = (char *)b.data}); /* 0xC0 never occurs */
        blob_free(&b);
    }
    CHECK(m.byte_fallback);
    CHECK(token_is(2 + 0x0A, TOKEN_BYTE, "\n") && m.tokens[2].score == -2.5);
}

/* Names in GPT-2's alphabet become bytes; a name outside it is never a word's. */
TEST(bpe_of_bytes)
{
    expect_hf(&(hf_parts){
        .pre_tokenizer = BYTE_LEVEL,
        .model = "{\"vocab\": {\"\\u0120\": 0, \"a\": 1, \"\\u0120a\": 3, \"\u00e9\": 2, "
                 "\"\uff5c\": 7, \"\uff5ca\": 6, \"\": 5}, \"merges\": [[\"\u0120\", \"a\"], "
                 "[\"\uff5c\", \"a\"]], \"ignore_merges\": true, \"byte_fallback\": true}"});
    CHECK_INT(m.kind, MODEL_BYTE_BPE);
    CHECK_INT(m.split, STAGE_GPT2);
    CHECK(token_is(0, TOKEN_NORMAL, " ") && token_is(3, TOKEN_NORMAL, " a"));
    CHECK(token_is(2, TOKEN_NORMAL, "\xe9"));
    CHECK(token_is(7, TOKEN_CONTROL, "\uff5c") && token_is(6, TOKEN_CONTROL, "\uff5ca"));
    CHECK_INT(m.tokens[5].kind, TOKEN_CONTROL);
    CHECK_INT(m.tokens[4].kind, TOKEN_ABSENT);
    CHECK_EQ(m.n_merges, 1); /* the other one can never happen */
    CHECK(merge_is(0, 0, 1, 3));
    CHECK(m.whole_word_first);
}

#define OF_BYTES(more)                                                                             \
    (hf_parts)                                                                                     \
    {                                                                                              \
        .pre_tokenizer = BYTE_LEVEL, .model = "{\"vocab\": {\"a\": 0, \"<u>\": 1, \"<0xC4>\": 2, " \
                                              "\"<0x80>\": 3}, \"merges\": []" more "}"            \
    }

TEST(bpe_of_bytes_that_lacks_some)
{
    expect_hf(&OF_BYTES(", \"unk_token\": \"<u>\", \"fuse_unk\": true"));
    CHECK(m.unknown_id == 1 && m.fuse_unknown);
    expect_hf(&OF_BYTES(""));
    CHECK_EQ(m.unknown_id, MODEL_NO_ID);
    refuse_hf(&OF_BYTES(", \"unk_token\": \"<v>\""), "neither the byte 0x00 nor the unk_token");
    expect_hf(&OF_BYTES(", \"end_of_word_suffix\": \"\u0120/\""));
    CHECK(text_is(&m.word_suffix, " /"));
    refuse_hf(&OF_BYTES(", \"end_of_word_suffix\": \" /\""), "not in the alphabet of ByteLevel");
    refuse_hf(&OF_BYTES(", \"end_of_word_suffix\": \"u>\", \"unk_token\": \"x\""), "0x00 nor the");
    /* The byte 0 is written U+0100, which is the bytes C4 80. */
    refuse_hf(&OF_BYTES(", \"byte_fallback\": true"), "byte_fallback of byte-level BPE (0x00)");
}

static blob fallback_model(int without, const char *more)
{
    blob b = {0};
    put_text(&b, "{\"type\": \"BPE\", \"byte_fallback\": true, %s\"vocab\": {\"<unk>\": 256", more);
    for (int i = 0; i < 256; i++) {
        if (i != without)
            put_text(&b, ", \"<0x%02X>\": %d", (unsigned)i, i);
    }
    put_text(&b, ", \"A\": 257, \"<0x0a>\": 258, \"<0x0AA>\": 259}, \"merges\": "
                 "[[\"<0x41>\", \"A\"]]}");
    put(&b, "", 1);
    return b;
}

TEST(byte_fallback_needs_every_byte_that_may_be_needed)
{
    char why[64];
    blob b = fallback_model(-1, "");
    refuse_hf(&(hf_parts){.model = (char *)b.data}, "no \"<0x41>A\"");
    blob_free(&b);
    b = fallback_model(0x41, "\"merges2\": 0, ");
    refuse_hf(&(hf_parts){.model = (char *)b.data}, "the field \"merges2\" is not supported");
    blob_free(&b);
    b = fallback_model(-1, "\"ignore_merges\": true, ");
    refuse_hf(&(hf_parts){.model = (char *)b.data}, "ignore_merges together with byte_fallback");
    blob_free(&b);
    for (int i = 0; i < 256; i++) {
        b = fallback_model(i, "");
        char *merges = strstr((char *)b.data, "[[\"<0x41>\"");
        CHECK(merges != NULL);
        memcpy(merges, "[]}", 4);
        snprintf(why, sizeof why, "no <0x%02X>", (unsigned)i);
        if (i == 'A' || i == 0xC0 || i == 0xC1 || i > 0xF4)
            expect_hf(&(hf_parts){.model = (char *)b.data}); /* A exists; the others never occur */
        else
            refuse_hf(&(hf_parts){.model = (char *)b.data}, why);
        blob_free(&b);
    }
    CHECK(m.byte_fallback);
    CHECK(token_is(0x0A, TOKEN_BYTE, "\n") && token_is(0x80, TOKEN_BYTE, "\x80"));
    CHECK(token_is(258, TOKEN_NORMAL, "<0x0a>") && token_is(259, TOKEN_NORMAL, "<0x0AA>"));
}

#define WITH_MERGES(merges)                                                                        \
    (hf_parts)                                                                                     \
    {                                                                                              \
        .model = "{\"type\": \"BPE\", \"vocab\": " SMALL_VOCABULARY ", \"merges\": " merges "}"    \
    }

TEST(of_a_merge_that_comes_twice_the_last_counts)
{
    expect_hf(&WITH_MERGES("[\"a b\", \"b c\", \"ab c\", \"a b\", \"a b\"]"));
    CHECK_EQ(m.n_merges, 3);
    CHECK(merge_is(0, 1, 2, 4) && merge_is(1, 3, 2, 5) && merge_is(2, 0, 1, 3));
}

TEST(merges_have_two_forms)
{
    expect_hf(&WITH_MERGES("[\"#version: 0.2\", \"a b\"]"));
    CHECK_EQ(m.n_merges, 1);
    expect_hf(&WITH_MERGES("[[\"a\", \"b\"], [\"\\u0061b\", \"\\u0063\"]]"));
    CHECK(merge_is(0, 0, 1, 3) && merge_is(1, 3, 2, 5));
    expect_hf(&WITH_MERGES("[]"));
    CHECK_EQ(m.n_merges, 0);
    refuse_hf(&WITH_MERGES("[\"a b\", [\"b\", \"c\"]]"), "merges in two different forms");
    refuse_hf(&WITH_MERGES("[[\"#version\", \"a\"]]"), "no \"#version\"");
    refuse_hf(&WITH_MERGES("[[]]"), "a merge must be two tokens");
    refuse_hf(&WITH_MERGES("[[\"a\"]]"), "a merge must be two tokens");
    refuse_hf(&WITH_MERGES("[[\"a\", \"b\", \"c\"]]"), "a merge must be two tokens");
    refuse_hf(&WITH_MERGES("[1]"), "expected a string");
}

TEST(merges_of_what_is_no_token_are_refused)
{
    refuse_hf(&WITH_MERGES("[\"a b\", \"a x\"]"), "merge 1: the vocabulary has no \"x\"");
    refuse_hf(&WITH_MERGES("[\"x a\"]"), "merge 0: the vocabulary has no \"x\"");
    refuse_hf(&WITH_MERGES("[\"c a\"]"), "merge 0: the vocabulary has no \"ca\"");
    refuse_hf(&WITH_MERGES("[\"a\"]"), "\"a\" is not two tokens separated by a space");
    refuse_hf(&WITH_MERGES("[\"a b c\"]"), "\"a b c\" is not two tokens");
    refuse_hf(&WITH_MERGES("[\"   \"]"), "\"   \" is not two tokens");
    refuse_hf(&WITH_MERGES("[\"a \"]"), "no \"\"");
}

TEST(of_a_long_name_360_bytes_are_shown)
{
    char text[600];
    for (int n = 359; n <= 362; n++) {
        blob b = {0};
        snprintf(text, sizeof text,
                 "{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], "
                 "\"continuing_subword_prefix\": \"%0*d\"}}",
                 n, 0);
        put_text(&b, "%s", text);
        expect_refusal(&b, NULL, "continuing_subword_prefix");
        CHECK_EQ(strspn(strchr(err.text, '0'), "0"), n < 360 ? n : 360);
        blob_free(&b);
    }
}

TEST(parts_of_a_model_that_are_not_supported_are_named)
{
    static const struct {
        const char *model, *why;
    } cases[] = {
        {"{\"type\": \"WordPiece\", \"unk_token\": \"u\", \"vocab\": {}}",
         "WordPiece without continuing_subword_prefix"},
        {"{\"type\": \"WordPiece\", \"unk_token\": \"u\", \"continuing_subword_prefix\": \"\", "
         "\"vocab\": {}}",
         "WordPiece without max_input_chars_per_word"},
        {"{\"type\": \"WordLevel\", \"unk_token\": \"u\"}", "WordLevel without a vocabulary"},
        {"{\"type\": \"CharLevel\", \"vocab\": {}}", "model CharLevel"},
        {"{\"type\": \"\", \"vocab\": {}}", "without type and without merges"},
        {"{\"vocab\": {\"a\": 0}}", "without type and without merges"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": 0}}", "BPE without merges"},
        {"{\"type\": \"BPE\", \"merges\": []}", "BPE without a vocabulary"},
        {"{\"type\": \"BPE\", \"vocab\": [], \"merges\": []}", "BPE without a vocabulary"},
        {"{\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"dropout\": 0.1}", "dropout 0.1"},
        {"{\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"continuing_subword_prefix\": "
         "\"##\"}",
         "continuing_subword_prefix \"##\""},
        {"{\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"end_of_word_suffix\": \"</w>\", "
         "\"byte_fallback\": true}",
         "end_of_word_suffix \"</w>\" is not supported together with byte_fallback"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [], \"unk_token\": \"u\"}",
         "unk_token \"u\" is not in the vocabulary"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"a\": 1}, \"merges\": []}",
         "the token \"a\" appears twice"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"b\": 1}, \"merges\": []}",
         "two tokens have the id 1"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": 2097152}, \"merges\": []}", "ids must be below"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}", "a whole number"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": 0.5}, \"merges\": []}", "a whole number"},
        {"{\"type\": \"BPE\", \"vocab\": {\"a\": \"b\"}, \"merges\": []}", "expected a number"},
        {"{\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"bos\": 1}",
         "\"bos\" is not supported"},
        {"{\"type\": 1}", "expected a string"},
        {"{\"type\": \"B\\u0000\", \"vocab\": {}}", "a type contains a NUL"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        refuse_hf(&(hf_parts){.model = cases[i].model}, cases[i].why);
    expect_hf(&(hf_parts){.model = "{\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [], "
                                   "\"dropout\": 0.0, \"continuing_subword_prefix\": \"\", "
                                   "\"end_of_word_suffix\": null, \"unk_token\": null}"});
    CHECK_EQ(m.unknown_id, MODEL_NO_ID);
}

#define PADDING(strategy, multiple)                                                                \
    "{\"strategy\": " strategy ", \"direction\": \"Right\", \"pad_to_multiple_of\": " multiple     \
    ", \"pad_id\": 0, \"pad_type_id\": 0, \"pad_token\": \"[PAD]\"}"

TEST(parts_of_a_file_that_are_not_supported_are_named)
{
    refuse_hf(&(hf_parts){.more = "\"foo\": 1, "}, "\"foo\" is not supported");
    blob b = {0};
    put_text(&b, "{\"version\": \"2.0\", \"model\": " SMALL_BPE "}");
    expect_refusal(&b, NULL, "version 2.0");
    blob_free(&b);
    put_text(&b, "{\"truncation\": {\"max_length\": 512}, \"model\": " SMALL_BPE "}");
    expect_refusal(&b, NULL, "truncation");
    blob_free(&b);
    put_text(&b,
             "{\"padding\": " PADDING("\"BatchLongest\"", "null") ", \"model\": " SMALL_BPE "}");
    expect_blob(&b, NULL); /* says nothing about one text */
    blob_free(&b);
    put_text(&b, "{\"model\": " SMALL_BPE "} x");
    expect_refusal(&b, NULL, "trailing data after the value");
    expect_refusal(&b, "gpt2", "--pattern gpt2: a tokenizer.json has its own pattern");
    blob_free(&b);
}

TEST(unigram)
{
    expect_hf(&(hf_parts){
        .model = "{\"unk_id\": 1, \"vocab\": [[\"a\", -10.443400382995605], [\"<unk>\", 0], "
                 "[\"" MARK "b\", -2.5e-1]]}"});
    CHECK_INT(m.kind, MODEL_UNIGRAM);
    CHECK_EQ(m.n_tokens, 3);
    CHECK(m.tokens[0].score == -10.443400382995604); /* as tokenizers has it */
    CHECK(m.tokens[2].score == -0.25 && token_is(2, TOKEN_NORMAL, MARK "b"));
    CHECK_EQ(m.unknown_id, 1);
    CHECK(token_is(1, TOKEN_NORMAL, "<unk>")); /* its text matches, as in tokenizers */
    static const struct {
        const char *model, *why;
    } cases[] = {
        {"{\"type\": \"Unigram\", \"unk_id\": null, \"vocab\": [[\"a\", 0]]}", "needs an unk_id"},
        {"{\"type\": \"Unigram\", \"unk_id\": 1, \"vocab\": [[\"a\", 0]]}", "in the vocab"},
        {"{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": {\"a\": 0}}", "list of pieces"},
        {"{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\", 0], [\"a\", 1]]}", "twice"},
        {"{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"\", 0]]}", "piece 0 is empty"},
        {"{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\"]]}", "piece and its score"},
        {"{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\", 0, 0]]}", "piece and its"},
        {"{\"type\": \"Unigram\", \"unk_id\": 0, \"byte_fallback\": true, \"vocab\": [[\"a\", 0]]}",
         "the vocabulary has no <0x00>"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        refuse_hf(&(hf_parts){.model = cases[i].model}, cases[i].why);
}

TEST(before_other_models_than_bpe_a_byte_level_makes_characters)
{
    expect_hf(&(hf_parts){.pre_tokenizer = BYTE_LEVEL,
                          .model = "{\"unk_id\": 0, \"vocab\": [[\"a\", 0]]}"});
    CHECK_INT(m.kind, MODEL_UNIGRAM);
    CHECK_EQ(m.split, STAGE_GPT2);
    CHECK_INT(m.n_later, 1);
    CHECK_INT(m.later[0].change, CHANGE_BYTES);
}

/* ---- Normalizers ---- */

TEST(normalizers_that_are_not_supported_are_named)
{
    static const char *const names[] = {"ByteLevel", "Bert", "Foo"};
    static const struct {
        const char *normalizer, *why;
    } cases[] = {
        {"{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"\\\\w+\"}, \"content\": \"\"}",
         "Replace: the regex \\w+ is not supported"},
        {"{\"type\": \"Replace\", \"pattern\": {\"String\": \"\"}, \"content\": \"\"}",
         "an empty pattern"},
        {"{\"type\": \"Replace\", \"pattern\": {}, \"content\": \"\"}", "a String or a Regex"},
        {"{\"type\": \"Replace\", \"content\": \"\"}", "Replace without pattern"},
        {"{\"type\": \"Prepend\", \"prepend\": \"\"}", "Prepend of an empty text"},
        {"{\"type\": \"Strip\", \"strip_left\": true}", "Strip without strip_right"},
        {"{\"type\": \"NFC\", \"form\": 1}", "NFC: the field \"form\" is not supported"},
        {"{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"A\"}", "is not base64"},
        {"{\"type\": \"Sequence\"}", "a Sequence without normalizers"},
        {"{}", "without a type"},
        {"[]", "expected an object"},
    };
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        char json[64], why[64];
        snprintf(json, sizeof json, "{\"type\": \"%s\"}", names[i]);
        snprintf(why, sizeof why, "normalizer %s is not supported", names[i]);
        refuse_hf(&(hf_parts){.normalizer = json}, why);
    }
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        refuse_hf(&(hf_parts){.normalizer = cases[i].normalizer}, cases[i].why);
    blob b = {0};
    put_text(&b, "{\"type\": \"Sequence\", \"normalizers\": [");
    for (int i = 0; i < MODEL_MAX_STEPS + 1; i++)
        put_text(&b, "%s{\"type\": \"NFC\"}", i ? ", " : "");
    put(&b, "]}", 3);
    refuse_hf(&(hf_parts){.normalizer = (char *)b.data}, "more than 8 normalizers");
    blob_free(&b);
    for (int i = 0; i < 12; i++)
        put_text(&b, "{\"type\": \"Sequence\", \"normalizers\": [");
    for (int i = 0; i < 12; i++)
        put_text(&b, "]}");
    put(&b, "", 1);
    refuse_hf(&(hf_parts){.normalizer = (char *)b.data}, "sequences nested more than");
    blob_free(&b);
}

/* ---- Pre-tokenizers ---- */

#define SEQUENCE(parts) "{\"type\": \"Sequence\", \"pretokenizers\": [" parts "]}"
#define SPLIT(regex, behavior, invert)                                                             \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex "\"}, \"behavior\": \"" behavior     \
    "\", \"invert\": " invert "}"
#define CL100K                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"          \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define QWEN2                                                                                      \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|"               \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define DEEPSEEK_WORDS                                                                             \
    "[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|"                           \
    "[^\\r\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|"        \
    "\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define NUMBERS SPLIT("\\\\p{N}{1,3}", "Isolated", "false")
#define CJK SPLIT("[一-龥぀-ゟ゠-ヿ]+", "Isolated", "false")
#define LINES(behavior) SPLIT("(?:\\\\r?\\\\n)+(?!\\\\r?\\\\n)", behavior, "false")
#define DIGITS(individual) "{\"type\": \"Digits\", \"individual_digits\": " individual "}"
#define PUNCTUATION(behavior) "{\"type\": \"Punctuation\", \"behavior\": \"" behavior "\"}"

TEST(pre_tokenizers_of_bytes_become_patterns)
{
    static const struct {
        const char *pre_tokenizer;
        split_pattern split;
    } cases[] = {
        {BYTE_LEVEL, STAGE_GPT2},
        {"{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false}",
         STAGE_GPT2},
        {SEQUENCE(BYTE_LEVEL), STAGE_GPT2},
        {SEQUENCE(SEQUENCE(BYTE_LEVEL)), STAGE_GPT2},
        {BYTE_LEVEL_BARE, SPLIT_NONE},
        {SEQUENCE(SPLIT(CL100K, "Isolated", "false") "," BYTE_LEVEL_BARE), STAGE_CL100K},
        {SEQUENCE(SPLIT(CL100K, "Isolated", "true") "," BYTE_LEVEL_BARE), STAGE_CL100K},
        {SEQUENCE(SPLIT(CL100K, "Removed", "true") "," BYTE_LEVEL_BARE), STAGE_CL100K},
        {SEQUENCE(SPLIT(QWEN2, "Isolated", "false") "," BYTE_LEVEL_BARE), STAGE_QWEN2},
        {SEQUENCE(DIGITS("true") "," BYTE_LEVEL), SPLIT_STARCODER},
        {SEQUENCE(NUMBERS "," CJK
                          "," SPLIT(DEEPSEEK_WORDS, "Isolated", "false") "," BYTE_LEVEL_BARE),
         SPLIT_DEEPSEEK3},
        {SEQUENCE(PUNCTUATION("Contiguous") "," BYTE_LEVEL "," DIGITS("false") "," SPLIT(
             "[0-9][0-9][0-9]", "Isolated", "false")),
         SPLIT_FALCON},
        {SEQUENCE(
             LINES("MergedWithNext") "," SPLIT(QWEN2, "Isolated", "false") "," BYTE_LEVEL_BARE),
         SPLIT_LAGUNA},
        {SEQUENCE(CJK "," SPLIT(QWEN2, "Removed", "true") "," BYTE_LEVEL_BARE), SPLIT_AX_K2},
        /* lists without a name */
        {SEQUENCE(SPLIT(CL100K, "Isolated", "false") "," BYTE_LEVEL),
         SPLIT_LIST(STAGE_CL100K, STAGE_GPT2, STAGE_NONE, STAGE_NONE)},
        {SEQUENCE(DIGITS("false") "," BYTE_LEVEL),
         SPLIT_LIST(STAGE_DIGITS, STAGE_GPT2, STAGE_NONE, STAGE_NONE)},
        {SEQUENCE(DIGITS("true") "," BYTE_LEVEL_BARE), STAGE_EACH_DIGIT},
        {SEQUENCE(NUMBERS "," SPLIT(DEEPSEEK_WORDS, "Isolated", "false") "," BYTE_LEVEL_BARE),
         SPLIT_LIST(STAGE_NUMBERS, STAGE_DEEPSEEK, STAGE_NONE, STAGE_NONE)},
        {SEQUENCE(DIGITS("true") "," PUNCTUATION("Isolated") "," BYTE_LEVEL),
         SPLIT_LIST(STAGE_EACH_DIGIT, STAGE_EACH_PUNCTUATION, STAGE_GPT2, STAGE_NONE)},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        expect_hf(&(hf_parts){.pre_tokenizer = cases[i].pre_tokenizer});
        CHECK_INT(m.kind, MODEL_BYTE_BPE);
        CHECK_EQ(m.split, cases[i].split);
        CHECK(!m.prefix_space);
    }
    expect_hf(&(hf_parts){.pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                                           "\"trim_offsets\": true}"});
    CHECK(m.prefix_space);
}

#define CLIP "'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+"

#define PREFIXED(use_regex)                                                                        \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, "               \
    "\"use_regex\": " use_regex "}"

TEST(a_blank_goes_before_the_text_or_before_each_piece_of_a_split)
{
    static const struct {
        const char *pre_tokenizer;
        split_pattern split, later;
        size_t n_later;
    } cases[] = {
        {PREFIXED("true"), STAGE_GPT2, SPLIT_NONE, 0},
        {PREFIXED("false"), SPLIT_NONE, SPLIT_NONE, 0},
        {SEQUENCE(SPLIT(CL100K, "Isolated", "false") "," PREFIXED("false")), STAGE_CL100K,
         SPLIT_NONE, 1},
        {SEQUENCE(DIGITS("true") "," PREFIXED("true")), STAGE_EACH_DIGIT, STAGE_GPT2, 1},
        {SEQUENCE(PREFIXED("true") "," DIGITS("false")),
         SPLIT_LIST(STAGE_BYTE_LEVEL, STAGE_DIGITS, STAGE_NONE, STAGE_NONE), SPLIT_NONE, 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        expect_hf(&(hf_parts){.pre_tokenizer = cases[i].pre_tokenizer});
        CHECK_EQ(m.split, cases[i].split);
        CHECK_EQ(m.later[0].split, cases[i].later);
        CHECK_INT(m.n_later, cases[i].n_later);
        CHECK(m.prefix_space == !cases[i].n_later);
        CHECK_INT(m.kind, MODEL_BYTE_BPE);
    }
}

TEST(pre_tokenizers_that_are_not_known_are_named)
{
    static const struct {
        const char *pre_tokenizer, *why;
    } cases[] = {
        {"{\"type\": \"UnicodeScripts\"}", "pre_tokenizer UnicodeScripts"},
        {"{\"type\": \"CharDelimiterSplit\", \"delimiter\": \"ab\"}", "is not one character"},
        {"{\"type\": \"FixedLength\", \"length\": 0}", "unknown bounds of a repeat"},
        {"{\"foo\": 1}", "without a type"},
        {SPLIT("a(?<=b)", "Isolated", "false"),
         "Split: an unknown kind of group at byte 2 in the regex a(?<=b) is not supported"},
        {SPLIT(CL100K "|", "Isolated", "false"), "it may match nothing"},
        {SEQUENCE(LINES("Isolated") "," SPLIT(QWEN2, "Isolated", "false") "," BYTE_LEVEL_BARE),
         "a look-ahead of more than one character"},
        {SPLIT("a(?=b|cd)", "Isolated", "false"), "a look-ahead of more than one character"},
        {SPLIT("a(?=cd|b)", "Isolated", "false"), "a look-ahead of more than one character"},
        {SPLIT("a(?=(?!b))", "Isolated", "false"), "a look-ahead of more than one character"},
        {SPLIT(CL100K, "Sideways", "false"), "the behavior Sideways is not supported"},
        {"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[0-9][0-9][0-9]\"}, \"behavior\": "
         "\"Isolated\"}",
         "Split without invert"},
        {"{\"type\": \"ByteLevel\"}", "ByteLevel without add_prefix_space"},
        {"{\"type\": \"Digits\"}", "Digits without individual_digits"},
        {SEQUENCE(BYTE_LEVEL "," BYTE_LEVEL "," BYTE_LEVEL "," BYTE_LEVEL "," BYTE_LEVEL
                             "," BYTE_LEVEL "," BYTE_LEVEL "," BYTE_LEVEL "," BYTE_LEVEL),
         "more than 8 pre_tokenizers"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        refuse_hf(&(hf_parts){.pre_tokenizer = cases[i].pre_tokenizer}, cases[i].why);
}

#define METASPACE(more) "{\"type\": \"Metaspace\", \"replacement\": \"" MARK "\"" more "}"
#define SPACES_TO(text)                                                                            \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" text "\"}"

TEST(metaspace)
{
    static const struct {
        const char *pre_tokenizer;
        prepend_scheme prepend;
        bool metaspace_split;
        split_pattern split;
    } cases[] = {
        {METASPACE(""), PREPEND_ALWAYS, true, SPLIT_NONE},
        {METASPACE(", \"add_prefix_space\": true, \"str_rep\": \"" MARK "\""), PREPEND_ALWAYS, true,
         SPLIT_NONE},
        {METASPACE(", \"prepend_scheme\": \"first\", \"split\": false"), PREPEND_FIRST, false,
         SPLIT_NONE},
        {METASPACE(", \"prepend_scheme\": \"never\", \"add_prefix_space\": false"), PREPEND_NEVER,
         true, SPLIT_NONE},
        {SEQUENCE("{\"type\": \"WhitespaceSplit\"}," METASPACE("")), PREPEND_ALWAYS, true,
         STAGE_WHITESPACE_SPLIT},
        {SEQUENCE(PUNCTUATION("Isolated") "," METASPACE("")), PREPEND_ALWAYS, true,
         STAGE_EACH_PUNCTUATION},
        {SEQUENCE(PUNCTUATION("Contiguous") "," METASPACE("")), PREPEND_ALWAYS, true,
         STAGE_PUNCTUATION},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        expect_hf(&(hf_parts){.pre_tokenizer = cases[i].pre_tokenizer});
        CHECK_INT(m.kind, MODEL_CHAR_BPE);
        CHECK(m.metaspace);
        CHECK_INT(m.prepend, cases[i].prepend);
        CHECK(m.metaspace_split == cases[i].metaspace_split);
        CHECK_EQ(m.split, cases[i].split);
    }
    refuse_hf(&(hf_parts){.pre_tokenizer = "{\"type\": \"Metaspace\", \"replacement\": \"_\"}"},
              "the replacement is \"_\", not U+2581");
    refuse_hf(&(hf_parts){.pre_tokenizer = METASPACE(", \"prepend_scheme\": \"last\"")},
              "the prepend_scheme last is not supported");
    refuse_hf(&(hf_parts){.pre_tokenizer = METASPACE(", \"add_prefix_space\": false")},
              "does not match prepend_scheme");
}

#define STEPS(list) "{\"type\": \"Sequence\", \"normalizers\": [" list "]}"
#define NFD "{\"type\": \"NFD\"}"
#define STRIP_LEFT "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": false}"
#define FIRST METASPACE(", \"prepend_scheme\": \"first\"")

TEST(metaspace_before_what_is_first_needs_a_normalizer_that_knows_it)
{
    static const struct {
        const char *normalizer;
        bool alone, after_others;
    } cases[] = {
        {STRIP_LEFT, true, true},
        {"{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"}", true,
         true},
        {"{\"type\": \"Replace\", \"pattern\": {\"String\": \"ab\"}, \"content\": \"c\"}", true,
         true},
        {SPACES_TO(""), true, true},
        {"{\"type\": \"Prepend\", \"prepend\": \"x\"}", true, true},
        {STEPS(NFD ", {\"type\": \"Lowercase\"}, {\"type\": \"StripAccents\"}"), true, true},
        {NFD, true, false},
        {"{\"type\": \"NFC\"}", true, false},
        {STEPS("{\"type\": \"NFC\"}," SPACES_TO(MARK)), true, false},
        {STEPS(NFD "," STRIP_LEFT), false, false},
        {STEPS("{\"type\": \"NFKC\"}," SPACES_TO("")), false, false},
        {STEPS(NFD "," SPACES_TO(MARK) ", {\"type\": \"StripAccents\"}"), false, false},
        {"{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
         "\"strip_accents\": null, \"lowercase\": true}",
         false, false},
        {"{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
         "\"strip_accents\": false, \"lowercase\": true}",
         true, true},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        for (int after_others = 0; after_others < 2; after_others++) {
            const hf_parts parts = {.normalizer = cases[i].normalizer,
                                    .pre_tokenizer =
                                        after_others ? SEQUENCE(DIGITS("true") "," FIRST) : FIRST};
            if (after_others ? cases[i].after_others : cases[i].alone)
                expect_hf(&parts);
            else
                refuse_hf(&parts, "prepend_scheme first is not supported after a normalizer");
        }
    }
}

#define ADDED(id, content, flags) "{\"id\": " #id ", \"content\": \"" content "\", " flags "}"
#define PLAIN                                                                                      \
    "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "        \
    "\"special\": true"
#define NOT_SPECIAL                                                                                \
    "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": true, "         \
    "\"special\": false"
#define SPLIT_AT(text, invert)                                                                     \
    "{\"type\": \"Split\", \"pattern\": {\"String\": \"" text                                      \
    "\"}, \"behavior\": \"Contiguous\", "                                                          \
    "\"invert\": " invert "}"
#define REPLACES(from, to)                                                                         \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"" from "\"}, \"content\": \"" to "\"}"
#define NEWLINE(more)                                                                              \
    "{\"id\": 7, \"content\": \"\\n\", \"single_word\": false, \"lstrip\": false, \"rstrip\": "    \
    "false, "                                                                                      \
    "\"normalized\": false, " more "}"

TEST(splitting_at_a_text_that_is_never_there_is_nothing)
{
    static const struct {
        const char *normalizer, *text, *added;
        bool absent;
    } cases[] = {
        {SPACES_TO(MARK), " ", "[]", true},
        {SPACES_TO(""), " ", "[]", true},
        {STEPS(REPLACES("<!x!>", MARK) "," SPACES_TO(MARK)), "<!x!>", "[]", true},
        {STEPS(REPLACES("<!x!>", MARK) "," SPACES_TO("<")), "<!x!>", "[]", false},
        {STEPS(REPLACES("<!x!>", MARK) "," SPACES_TO("")), "<!x!>", "[]", false},
        {STEPS(REPLACES("<!x!>", MARK) ",{\"type\": \"NFC\"}"), "<!x!>", "[]", false},
        {REPLACES("<!x!>", ""), "<!x!>", "[]", false},
        {REPLACES("<!x!>", "x"), "<!x!>", "[]", false},
        {SPACES_TO("a b"), " ", "[]", false},
        {STEPS(SPACES_TO(MARK) ",{\"type\": \"Prepend\", \"prepend\": \" \"}"), " ", "[]", false},
        {"null", " ", "[]", false},
        {SPACES_TO(MARK), "\\n", "[" NEWLINE("\"special\": false") "]", true},
        {SPACES_TO("\\n"), "\\n", "[" NEWLINE("\"special\": false") "]", false},
        {SPACES_TO(MARK), "\\n", "[" NEWLINE("\"special\": true") "]", false},
        {SPACES_TO(MARK), "\\n",
         "[" NEWLINE("\"special\": false") "," ADDED(8, "<x>\\n", PLAIN) "]", false},
        {SPACES_TO(MARK), "\\n\\n", "[" NEWLINE("\"special\": false") "]", false},
    };
    char split[200];
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        snprintf(split, sizeof split, SPLIT_AT("%s", "false"), cases[i].text);
        const hf_parts parts = {
            .normalizer = cases[i].normalizer, .pre_tokenizer = split, .added = cases[i].added};
        expect_hf(&parts);
        CHECK(m.kind == MODEL_CHAR_BPE && !m.metaspace && cases[i].absent == !m.split);
    }
    expect_hf(&(hf_parts){.normalizer = SPACES_TO(MARK),
                          .pre_tokenizer = SPLIT(" ", "MergedWithPrevious", "false")});
    refuse_hf(&(hf_parts){.pre_tokenizer = SPLIT_AT("", "false")}, "Split with an empty pattern");
}

/* ---- Added tokens ---- */

TEST(added_tokens_keep_their_flags_and_get_entries)
{
    expect_hf(&(hf_parts){
        .added = "[" ADDED(6, "<unk>", PLAIN) ", " ADDED(7, "<a>", PLAIN) ", " ADDED(
            8, "  ",
            "\"single_word\": true, \"lstrip\": true, \"rstrip\": true, \"normalized\": true, "
            "\"special\": false") ", " ADDED(99, "", PLAIN) "]"});
    CHECK_EQ(m.n_added, 3); /* one without content is ignored, as tokenizers does */
    CHECK_EQ(m.n_tokens, 9);
    CHECK(token_is(6, TOKEN_NORMAL, "<unk>")); /* of the vocabulary, and stays so */
    CHECK(token_is(7, TOKEN_CONTROL, "<a>") && token_is(8, TOKEN_CONTROL, "  "));
    const added_token *a = &m.added[1], *b = &m.added[2];
    CHECK(a->id == 7 && a->special && !a->normalized && !a->lstrip && !a->rstrip);
    CHECK(b->id == 8 && !b->special && b->normalized && b->lstrip && b->rstrip && b->single_word);
}

/* In a byte-level vocabulary it is the written name that counts: \u00e9 names the byte E9. */
TEST(added_tokens_have_the_id_of_their_name)
{
    expect_hf(&(hf_parts){.pre_tokenizer = BYTE_LEVEL,
                          .added = "[" ADDED(0, "\u00e9", PLAIN) ", " ADDED(2, " ", PLAIN) "]",
                          .model = "{\"vocab\": {\"\u00e9\": 0, \"\u0120\": 1}, \"merges\": []}"});
    CHECK(token_is(0, TOKEN_NORMAL, "\xe9") && token_is(1, TOKEN_NORMAL, " "));
    CHECK(token_is(2, TOKEN_CONTROL, " "));
    CHECK(text_is(&m.added[0].content, "\u00e9"));
}

TEST(added_tokens_that_would_mean_two_things_are_refused)
{
    static const struct {
        const char *added, *why;
    } cases[] = {
        {"[" ADDED(9, "<a>", PLAIN) "]", "\"<a>\" has the id 9, but tokenizers gives it 7"},
        {"[" ADDED(7, "abc", PLAIN) "]", "\"abc\" has the id 7, but tokenizers gives it 5"},
        {"[" ADDED(7, "x", PLAIN) "," ADDED(7, "x", PLAIN) "]", "the token \"x\" appears twice"},
        {"[{\"id\": 7, \"content\": \"x\"}]", "an added token without single_word"},
        {"[" ADDED(7, "x", PLAIN ", \"foo\": 1") "]", "\"foo\" is not supported"},
        {"[" ADDED(18446744073709551615, "x", PLAIN) "]", "has the id 18446744073709551615"},
        {"{}", "\"added_tokens\" has a wrong type"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        refuse_hf(&(hf_parts){.added = cases[i].added}, cases[i].why);
    refuse_hf(&(hf_parts){.added = "[" ADDED(2, "x", PLAIN) "]",
                          .model = "{\"vocab\": {\"a\": 0, \"b\": 2}, \"merges\": []}"},
              "would get the id 2, which another token has");
}

/* ---- Padding and decoder ---- */

TEST(padding_that_adds_tokens_to_one_text_is_refused)
{
    static const char *const refused[] = {PADDING("{\"Fixed\": 8}", "null"),
                                          PADDING("\"BatchLongest\"", "8"),
                                          PADDING("\"Foo\"", "null"), PADDING("null", "null")};
    expect_hf(&(hf_parts){.padding = PADDING("\"BatchLongest\"", "null")});
    expect_hf(&(hf_parts){.padding = PADDING("\"BatchLongest\"", "1")});
    for (size_t i = 0; i < N_ELEMENTS(refused); i++)
        refuse_hf(&(hf_parts){.padding = refused[i]}, "padding is supported only to the longest");
    refuse_hf(&(hf_parts){.padding = "{\"strategy\": \"BatchLongest\", \"direction\": \"x\", "
                                     "\"pad_id\": 0, \"pad_type_id\": 0, \"pad_token\": \"\"}"},
              "the direction is not Left or Right");
    refuse_hf(&(hf_parts){.padding = "5"}, "expected an object");
    refuse_hf(&(hf_parts){.padding = PADDING("\"BatchLongest\"", "-8")}, "a whole number");
}

TEST(dropout_of_unigram_is_refused)
{
    static const char unigram[] = "{\"type\": \"Unigram\", \"unk_id\": 0, \"dropout\": %s, "
                                  "\"vocab\": [[\"<unk>\", 0], [\"a\", -1]]}";
    char text[200];
    snprintf(text, sizeof text, unigram, "null");
    expect_hf(&(hf_parts){.model = text});
    snprintf(text, sizeof text, unigram, "0.25");
    refuse_hf(&(hf_parts){.model = text}, "dropout 0.25 is not supported");
    snprintf(text, sizeof text, unigram, "\"x\"");
    refuse_hf(&(hf_parts){.model = text}, "a number");
}

#define STRIP(start) "{\"type\": \"Strip\", \"content\": \" \", \"start\": " start ", \"stop\": 0}"
#define DECODERS(list) "{\"type\": \"Sequence\", \"decoders\": [" list "]}"
#define SCHEME(scheme) METASPACE(", \"prepend_scheme\": \"" scheme "\", \"split\": true")
#define FUSE "{\"type\": \"Fuse\"}"
#define FALLBACK "{\"type\": \"ByteFallback\"}"

TEST(decoders_are_known_or_decoding_is_not_supported)
{
    static const struct {
        const char *decoder;
        decode_rule rule;
        bool strips;
    } cases[] = {
        {"null", DECODE_BLANKS, false},
        {REPLACES("\u2581", " "), DECODE_MARKS, false},
        {DECODERS(REPLACES("\u2581", " ") "," FUSE), DECODE_MARKS, false},
        {DECODERS(REPLACES("\u2581", " ") "," DECODERS(FUSE "," STRIP("1"))), DECODE_MARKS, true},
        {DECODERS(REPLACES("\u2581", " ") "," FUSE "," STRIP("2")), DECODE_UNKNOWN, false},
        {DECODERS(REPLACES("\u2581", " ") "," STRIP("1")), DECODE_UNKNOWN, false},
        {DECODERS(REPLACES("\u2581", " ") "," FALLBACK "," FUSE), DECODE_UNKNOWN, false},
        {REPLACES("x", " "), DECODE_UNKNOWN, false},
        {SCHEME("always"), DECODE_METASPACE, true},
        {SCHEME("never"), DECODE_METASPACE, false},
        {DECODERS(FALLBACK "," SCHEME("always")), DECODE_UNKNOWN, false},
        {DECODERS(""), DECODE_UNKNOWN, false},
        {BYTE_LEVEL, DECODE_UNKNOWN, false},
        {"{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}", DECODE_WORDPIECE,
         false},
        {"{\"type\": \"BPEDecoder\", \"suffix\": \"</w>\"}", DECODE_SUFFIX, false},
        {"{\"type\": \"BPEDecoder\", \"suffix\": \"\"}", DECODE_UNKNOWN, false},
        {"{\"type\": \"CTC\", \"pad_token\": \"\", \"word_delimiter_token\": \"\", \"cleanup\": "
         "true}",
         DECODE_UNKNOWN, false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        expect_hf(&(hf_parts){.decoder = cases[i].decoder});
        if (m.decode != cases[i].rule || m.decode_strips != cases[i].strips)
            CHECK_FAIL("%s: rule %d", cases[i].decoder, (int)m.decode);
    }
    blob without = {0};
    put_text(&without, "{\"model\": " SMALL_BPE "}");
    expect_blob(&without, NULL);
    CHECK_INT(m.decode, DECODE_BLANKS);
    blob_free(&without);
    refuse_hf(&(hf_parts){.decoder = "5"}, "expected an object");
    refuse_hf(&(hf_parts){.decoder = "{}"}, "decoder without a type");
    refuse_hf(&(hf_parts){.decoder = "{\"type\": \"Nope\"}"}, "decoder Nope");
    refuse_hf(&(hf_parts){.decoder = SCHEME("foo")}, "prepend_scheme foo");
    refuse_hf(&(hf_parts){.decoder = "{\"type\": \"Strip\", \"start\": \"x\"}"}, "wrong type");
}

/* ---- The ends of a text ---- */

#define TEMPLATE(single)                                                                           \
    "{\"type\": \"TemplateProcessing\", \"single\": [" single "], \"pair\": [], "                  \
    "\"special_tokens\": {\"a\": {\"id\": \"a\", \"ids\": [0], \"tokens\": [\"a\"]}, "             \
    "\"two\": {\"id\": \"two\", \"ids\": [0, 1], \"tokens\": [\"a\", \"b\"]}, "                    \
    "\"c\": {\"id\": \"c\", \"ids\": [2], \"tokens\": [\"c\"]}, "                                  \
    "\"far\": {\"id\": \"far\", \"ids\": [77], \"tokens\": [\"far\"]}}}"
#define THE_TEXT "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"
#define THE_TOKEN(name) "{\"SpecialToken\": {\"id\": \"" name "\", \"type_id\": 0}}"
#define ROBERTA                                                                                    \
    "{\"type\": \"RobertaProcessing\", \"sep\": [\"c\", 2], \"cls\": [\"b\", 1], "                 \
    "\"trim_offsets\": true, \"add_prefix_space\": false}"

TEST(ends_are_what_the_post_processor_puts_there)
{
    static const struct {
        const char *post_processor;
        uint32_t bos, eos;
    } cases[] = {
        {"null", MODEL_NO_ID, MODEL_NO_ID},
        {TEMPLATE(THE_TOKEN("a") "," THE_TEXT), 0, MODEL_NO_ID},
        {TEMPLATE(THE_TEXT "," THE_TOKEN("c")), MODEL_NO_ID, 2},
        {TEMPLATE(THE_TOKEN("c") "," THE_TEXT "," THE_TOKEN("a")), 2, 0},
        {TEMPLATE(THE_TOKEN("a") "," THE_TOKEN("c") "," THE_TEXT), MODEL_NO_ID, MODEL_NO_ID},
        {TEMPLATE(THE_TOKEN("two") "," THE_TEXT), MODEL_NO_ID, MODEL_NO_ID},
        {TEMPLATE(THE_TEXT), MODEL_NO_ID, MODEL_NO_ID},
        {ROBERTA, 1, 2},
        {"{\"type\": \"BertProcessing\", \"sep\": [\"a\", 0], \"cls\": [\"b\", 1]}", 1, 0},
        {BYTE_LEVEL, MODEL_NO_ID, MODEL_NO_ID},
        {"{\"type\": \"Sequence\", \"processors\": [" BYTE_LEVEL
         "," TEMPLATE(THE_TOKEN("a") "," THE_TEXT) "]}",
         0, MODEL_NO_ID},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        expect_hf(&(hf_parts){.post_processor = cases[i].post_processor});
        CHECK_EQ(m.bos_id, cases[i].bos);
        CHECK_EQ(m.eos_id, cases[i].eos);
    }
    refuse_hf(&(hf_parts){.post_processor = "{\"type\": \"Foo\"}"}, "post_processor Foo");
    refuse_hf(&(hf_parts){.post_processor = TEMPLATE(THE_TEXT ", {}")},
              "expected a Sequence or a SpecialToken");
    refuse_hf(&(hf_parts){.post_processor = TEMPLATE(THE_TEXT "," THE_TOKEN("far"))},
              "the token after a text has the id 77, but there is no such token");
    refuse_hf(&(hf_parts){.post_processor =
                              "{\"type\": \"BertProcessing\", \"sep\": [\"a\"], \"cls\": []}"},
              "a token and its id");
}

TEST(end_of_a_text_is_guessed_in_the_stated_order)
{
    static const char *const names[] = {"<|endoftext|>",         "<|end_of_text|>", "</s>", "<eos>",
                                        "<｜end▁of▁sentence｜>", "<|im_end|>",      "[EOS]"};
    for (size_t first = 0; first < N_ELEMENTS(names); first++) {
        blob b = {0};
        put_text(&b, "[" ADDED(7, "x", PLAIN));
        for (size_t i = N_ELEMENTS(names); i-- > first;)
            put_text(&b, ", {\"id\": %zu, \"content\": \"%s\", " PLAIN "}",
                     7 + N_ELEMENTS(names) - i, names[i]);
        put(&b, "]", 2);
        expect_hf(&(hf_parts){.added = (char *)b.data});
        CHECK_EQ(m.eos_id, 7 + N_ELEMENTS(names) - first);
        const bool last = first + 1 == N_ELEMENTS(names);
        CHECK_EQ(m.eos_rival, last ? MODEL_NO_ID : 6 + N_ELEMENTS(names) - first);
        CHECK(m.eos_guessed);
        expect_hf(&(hf_parts){.added = (char *)b.data, .post_processor = ROBERTA});
        CHECK_EQ(m.eos_id, 2);
        CHECK_EQ(m.eos_rival, MODEL_NO_ID);
        CHECK(!m.eos_guessed);
        blob_free(&b);
    }
    expect_hf(&(hf_parts){.added = "[" ADDED(7, "x", PLAIN) "]"});
    CHECK_EQ(m.eos_id, MODEL_NO_ID);
    CHECK(!m.eos_guessed);
}

/* Gemma: </s> strikes text out in HTML, and <eos> ends a document. */
TEST(only_special_tokens_are_guessed_to_end_a_text)
{
    expect_hf(
        &(hf_parts){.added = "[" ADDED(7, "</s>", NOT_SPECIAL) ", " ADDED(8, "<eos>", PLAIN) "]"});
    CHECK_EQ(m.eos_id, 8);
    CHECK_EQ(m.eos_rival, MODEL_NO_ID);
    expect_hf(&(hf_parts){.added = "[" ADDED(7, "</s>", NOT_SPECIAL) "]"});
    CHECK_EQ(m.eos_id, MODEL_NO_ID);
}
