/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
/* tiktoken, SentencePiece, tekken.json, vocab.json, and recognising them: what the loaders read
 * from a file, and what they refuse by name. */
#include "support/check.h"
#include "tokenizer/load_model.h"
#include "tokenizer/load/model_load.h"

/* ---- .tiktoken ---- */

/* The i-th of a row of different tokens: first the 256 bytes, then three bytes each. */
static void put_word(blob *b, uint32_t i)
{
    const uint8_t word[3] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
    if (i < 256)
        put_base64(b, word + 2, 1);
    else
        put_base64(b, word, 3);
}

/* Ranks from `first` on, without `gap`. */
static blob rank_file(uint32_t first, uint32_t n_ranks, uint32_t gap)
{
    blob b = {0};
    for (uint32_t i = 0; i < n_ranks; i++) {
        put_word(&b, i);
        put_text(&b, " %u\n", first + i + (first + i >= gap));
    }
    return b;
}

static uint32_t id_of(const char *content)
{
    for (size_t i = 0; i < m.n_added; i++) {
        if (strcmp(m.added[i].content.s, content) == 0)
            return m.added[i].id;
    }
    return MODEL_NO_ID;
}

TEST(ranks_are_ids_and_merge_by_their_order)
{
    blob b = rank_file(0, 300, UINT32_MAX);
    expect_blob(&b, "cl100k:any");
    CHECK_INT(m.kind, MODEL_BYTE_BPE);
    CHECK_INT(m.rule, MERGE_RANKED);
    CHECK_INT(m.split, STAGE_CL100K);
    CHECK(m.whole_word_first);
    CHECK_EQ(m.n_tokens, 300);
    for (uint32_t id = 0; id < 256; id++)
        CHECK(m.tokens[id].n_bytes == 1 && *model_token_bytes(&m, id) == id);
    CHECK(m.tokens[299].n_bytes == 3 && model_token_bytes(&m, 299)[2] == 299 - 256);
    CHECK_EQ(m.n_added, 0); /* tiktoken's specials go with tiktoken's 100,256 ranks */
    CHECK_EQ(m.eos_id, MODEL_NO_ID);
    blob_free(&b);
}

typedef struct preset_case {
    const char *name;
    uint32_t n_ranks, gap, first;
    split_pattern split;
    size_t n_added, n_tokens;
    uint32_t bos, eos;
    const char *content; /* of an added token */
    uint32_t id;
} preset_case;

TEST(presets_bring_the_specials_of_their_files)
{
    static const preset_case cases[] = {
        {"gpt2", 50256, 99999, 0, STAGE_GPT2, 1, 50257, MODEL_NO_ID, 50256, "<|endoftext|>", 50256},
        {"gpt2", 50280, 50256, 0, STAGE_GPT2, 1, 50281, MODEL_NO_ID, 50256, "<|endoftext|>", 50256},
        {"p50k", 50280, 50256, 0, STAGE_GPT2, 1, 50281, MODEL_NO_ID, 50256, "<|endoftext|>", 50256},
        {"p50k_edit", 50280, 50256, 0, STAGE_GPT2, 4, 50284, MODEL_NO_ID, 50256, "<|fim_suffix|>",
         50283},
        {"cl100k", 100256, 999999, 0, STAGE_CL100K, 5, 100277, MODEL_NO_ID, 100257,
         "<|endofprompt|>", 100276},
        {"o200k", 199998, 999999, 0, STAGE_O200K, 2, 200019, MODEL_NO_ID, 199999, "<|endofprompt|>",
         200018},
        {"o200k_harmony", 199998, 999999, 0, STAGE_O200K, 1091, 201088, 199998, 199999,
         "<|reserved_201087|>", 201087},
        {"o200k_harmony", 199998, 999999, 0, STAGE_O200K, 1091, 201088, 199998, 199999,
         "<|reserved_200018|>", 200018},
        {"llama3", 128000, 999999, 0, STAGE_CL100K, 256, 128256, 128000, 128001,
         "<|reserved_special_token_245|>", 128255},
        {"llama4", 200000, 999999, 0, STAGE_O200K, 2048, 202048, 200000, 200001,
         "<|reasoning_thinking_end|>", 201143},
        {"qwen2", 151643, 999999, 0, STAGE_QWEN2, 3, 151646, MODEL_NO_ID, 151643, "<|im_end|>",
         151645},
        {"qwen2.5", 151643, 999999, 0, STAGE_QWEN2, 22, 151665, MODEL_NO_ID, 151643, "<|file_sep|>",
         151664},
        {"qwen3", 151643, 999999, 0, STAGE_QWEN2, 26, 151669, MODEL_NO_ID, 151643, "</think>",
         151668},
        {"deepseek3", 127997, 999999, 3, SPLIT_DEEPSEEK3, 818, 128815, 0, 1, "<｜tool▁sep｜>",
         128814},
        {"tekken", 130072, 999999, 1000, STAGE_TEKKEN, 1000, 131072, 1, 2, "<SPECIAL_999>", 999},
        {"tekken", 130072, 999999, 0, STAGE_TEKKEN, 1000, 131072, 1, 2, "[TOOL_CONTENT]", 19},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const preset_case *c = &cases[i];
        blob b = rank_file(c->first, c->n_ranks, c->gap);
        expect_blob(&b, c->name);
        blob_free(&b);
        CHECK_EQ(m.split, c->split);
        CHECK_EQ(m.n_added, c->n_added);
        CHECK_EQ(m.n_tokens, c->n_tokens);
        CHECK_EQ(m.bos_id, c->bos);
        CHECK_EQ(m.eos_id, c->eos);
        CHECK_EQ(id_of(c->content), c->id);
        CHECK_INT(m.tokens[c->id].kind, TOKEN_CONTROL);
        CHECK_EQ(m.n_steps, c->split == STAGE_QWEN2); /* NFC */
    }
}

TEST(presets_are_refused_for_files_with_another_number_of_ranks)
{
    static const char *const names[] = {
        "gpt2",   "p50k",  "p50k_edit", "cl100k", "o200k",     "o200k_harmony", "llama3",
        "llama4", "qwen2", "qwen2.5",   "qwen3",  "deepseek3", "tekken"};
    blob b = rank_file(0, 300, UINT32_MAX);
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        char any[32];
        snprintf(any, sizeof any, "%s:any", names[i]);
        expect_refusal(&b, names[i], "ranks, but this one has 300; for another vocabulary");
        CHECK_SAYS(err.text, any);
        expect_blob(&b, any);
        CHECK_EQ(m.n_added, 0);
        CHECK_EQ(m.eos_id, MODEL_NO_ID);
        CHECK_EQ(m.n_steps, m.split == STAGE_QWEN2); /* NFC */
    }
    expect_refusal(&b, "gpt2", "--pattern gpt2 is for files of 50256 or 50280 ranks");
    expect_refusal(&b, ":any", "--pattern :any is unknown");
    blob_free(&b);
    b = rank_file(0, 151643 + 1, UINT32_MAX);
    expect_refusal(&b, "qwen3", "--pattern qwen3 is for files of 151643 ranks");
    blob_free(&b);
    b = rank_file(0, 200000, UINT32_MAX);
    expect_refusal(&b, "o200k", "has 200000; that is the number of llama4; for another");
    blob_free(&b);
}

TEST(preset_tokens_that_are_not_special_say_so)
{
    blob b = rank_file(0, 151643, UINT32_MAX);
    expect_blob(&b, "qwen3");
    for (size_t i = 0; i < m.n_added; i++)
        CHECK(m.added[i].special == (m.added[i].id < 151643 + 14));
    CHECK_INT(m.steps[0].kind, NORMALIZE_NFC);
    blob_free(&b);
    b = rank_file(3, 127997, UINT32_MAX);
    expect_blob(&b, "deepseek3");
    size_t n_special = 0;
    for (size_t i = 0; i < m.n_added; i++)
        n_special += m.added[i].special;
    CHECK_EQ(n_special, 804);
    blob_free(&b);
}

TEST(lines_of_ranks_may_end_in_crlf_or_not_at_all)
{
    blob b = {0};
    for (uint32_t i = 0; i < 256; i++) {
        put_word(&b, i);
        put_text(&b, " %u%s", i, i == 255 ? "" : i % 2 ? "\r\n\n" : "\n");
    }
    expect_blob(&b, "gpt2:any");
    CHECK_EQ(m.n_tokens, 256);
    blob_free(&b);
}

TEST(a_token_of_no_bytes_is_read_as_python_does)
{
    blob b = rank_file(0, 256, UINT32_MAX);
    put_text(&b, "= 300\n"); /* the last line of Whisper's file */
    expect_blob(&b, "gpt2:any");
    CHECK_EQ(m.n_tokens, 301);
    CHECK(token_is(300, TOKEN_CONTROL, ""));
    blob_free(&b);
}

TEST(ranks_without_a_pattern_are_refused_with_the_list)
{
    blob b = rank_file(0, 256, UINT32_MAX);
    expect_refusal(&b, NULL, "name one with --pattern (gpt2, p50k, p50k_edit, cl100k, cl100k_08, ");
    expect_refusal(&b, "gpt5", "--pattern gpt5 is unknown; the names are gpt2, ");
    blob_free(&b);
}

TEST(damaged_ranks_are_refused)
{
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"AAA=", "line 257 is not"},
        {"AAA= ", "line 257 is not"},
        {" 300", "line 257 is not"},
        {"AAA= 300 x", "line 257 is not"},
        {"AAA= 3x0", "line 257 is not"},
        {"AAA= -1", "line 257 is not"},
        {"AAA=  300", "line 257 is not"},
        {"AAA= 2097152", "line 257 is not"},
        {"AAA= 99999999999999999999", "line 257 is not"},
        {"A 300", "is not valid base64"},
        {"A-A= 300", "is not valid base64"},
        {"AA== 300", "appears twice"},
        {"AAA= 7", "two tokens have the id 7"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        blob b = rank_file(0, 256, UINT32_MAX);
        const size_t offset = b.n_bytes;
        put_text(&b, "%s\n", cases[i].line);
        expect_refusal(&b, "gpt2", cases[i].why);
        CHECK_EQ(err.place, offset);
        blob_free(&b);
    }
    blob b = rank_file(0, 255, UINT32_MAX);
    expect_refusal(&b, "gpt2", "no token for the byte 0xFF");
    blob_free(&b);
    b = rank_file(0, 50256, UINT32_MAX);
    put_text(&b, "AAAA 60000\nAAAB 60001\n");
    for (uint32_t i = 0; i < 22; i++)
        put_text(&b, "AAA%c %u\n", (char)('C' + i), i == 0 ? 50256 : 60002 + i);
    expect_refusal(&b, "p50k", "\"<|endoftext|>\": another token has the id 50256");
    blob_free(&b);
}

/* ---- --specials-file ---- */

static bool load_with_specials(const blob *b, const char *pattern, const char *specials)
{
    return load_source((model_source){.data = b->data,
                                      .n_bytes = b->n_bytes,
                                      .pattern = pattern,
                                      .specials = (const uint8_t *)specials,
                                      .specials_bytes = strlen(specials)});
}

TEST(specials_file_adds_and_overrides)
{
    blob b = rank_file(0, 300, UINT32_MAX);
    CHECK(load_with_specials(&b, "cl100k:any", "{\"<x>\": 310, \"305\": \"</s>\", \"7\": 311}"));
    CHECK_EQ(m.n_added, 3);
    CHECK_EQ(m.n_tokens, 312);
    CHECK(token_is(310, TOKEN_CONTROL, "<x>") && token_is(305, TOKEN_CONTROL, "</s>"));
    CHECK(token_is(311, TOKEN_CONTROL, "7"));
    CHECK_INT(m.tokens[306].kind, TOKEN_ABSENT);
    CHECK(m.added[0].special && !m.added[0].normalized);
    CHECK_EQ(m.eos_id, 305);
    blob_free(&b);
    /* <|im_end|> moves from 151645 to 151646; what was at 151643 is replaced. */
    b = rank_file(0, 151643, UINT32_MAX);
    CHECK(load_with_specials(&b, "qwen2", "{\"<|im_end|>\": 151646, \"151643\": \"new\"}"));
    CHECK_EQ(m.n_added, 3);
    CHECK_EQ(id_of("<|im_end|>"), 151646);
    CHECK_EQ(id_of("<|endoftext|>"), MODEL_NO_ID);
    CHECK(token_is(151643, TOKEN_CONTROL, "new") &&
          token_is(151644, TOKEN_CONTROL, "<|im_start|>"));
    CHECK_INT(m.tokens[151645].kind, TOKEN_ABSENT);
    blob_free(&b);
}

TEST(specials_file_that_is_damaged_is_refused)
{
    static const struct {
        const char *specials, *why;
    } cases[] = {
        {"", "expected an object"},
        {"[]", "expected an object"},
        {"{\"a\": 1.5}", "a whole number"},
        {"{\"a\": \"b\"}", "expected an id"},
        {"{\"\": 400}", "an empty token"},
        {"{\"400\": \"\"}", "an empty token"},
        {"{\"a\": 2097152}", "too large"},
        {"{\"999999999\": \"a\"}", "expected an id"},
        {"{\"a\": 400, \"a\": 401}", "\"a\" appears twice"},
        {"{\"a\": 5}", "\"a\": another token has the id 5"},
        {"{\"a\": null}", "expected an id"},
        {"{\"a\": 400} x", "trailing data after the value"},
    };
    blob b = rank_file(0, 300, UINT32_MAX);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CHECK(!load_with_specials(&b, "gpt2:any", cases[i].specials) &&
              err.status == FAILURE_BESIDE);
        if (!strstr(err.text, cases[i].why))
            CHECK_FAIL("%s: refused for \"%s\"", cases[i].specials, err.text);
    }
    CHECK(load_with_specials(&b, "gpt2:any", "{\"a\": 97}")); /* it is that token */
    CHECK(load_with_specials(&b, "gpt2:any", "{}"));
    blob_free(&b);
}

/* ---- SentencePiece ---- */

static void put_varint(blob *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; value > 0x7F; value >>= 7)
        bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    put(b, bytes, n);
}

static void put_tagged(blob *b, unsigned field, const void *data, size_t n_bytes)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n_bytes);
    put(b, data, n_bytes);
}

static void put_number(blob *b, unsigned field, uint64_t value)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, value);
}

/* type 0: the field is left out. */
static void put_piece_bytes(blob *b, const char *text, size_t n_bytes, float score, unsigned type)
{
    blob p = {0};
    uint8_t bits[5] = {2 << 3 | 5};
    memcpy(bits + 1, &score, 4);
    put_tagged(&p, 1, text, n_bytes);
    put(&p, bits, 5);
    if (type)
        put_number(&p, 3, type);
    put_tagged(b, 1, p.data, p.n_bytes);
    blob_free(&p);
}

static void put_piece(blob *b, const char *text, float score, unsigned type)
{
    put_piece_bytes(b, text, strlen(text), score, type);
}

static void put_specials(blob *b)
{
    put_piece(b, "<unk>", 0, 2);
    put_piece(b, "<s>", 0, 3);
    put_piece(b, "</s>", 0, 3);
}

/* trainer_spec with one number; field 0: none. */
static void put_trainer(blob *b, uint64_t model_type, unsigned field, uint64_t value)
{
    blob t = {0};
    put_number(&t, 3, model_type);
    if (field)
        put_number(&t, field, value);
    put_tagged(b, 2, t.data, t.n_bytes);
    blob_free(&t);
}

TEST(sentencepiece_defaults_are_those_of_the_format)
{
    blob b = {0};
    put_specials(&b);
    put_piece(&b, MARK "a", -1.5f, 0);
    expect_blob(&b, NULL);
    CHECK_INT(m.kind, MODEL_UNIGRAM);
    CHECK(m.dummy_prefix && m.collapse_spaces && m.escape_spaces);
    CHECK(!m.byte_fallback && !m.whitespace_as_suffix);
    CHECK_EQ(m.charsmap.n_bytes, 0);
    CHECK_EQ(m.n_steps, 1);
    CHECK_INT(m.steps[0].kind, NORMALIZE_SENTENCEPIECE);
    CHECK_INT(m.decode, DECODE_AS_MODEL);
    CHECK_EQ(m.n_tokens, 4);
    CHECK(token_is(0, TOKEN_UNKNOWN, "<unk>") && token_is(1, TOKEN_CONTROL, "<s>"));
    CHECK(token_is(3, TOKEN_NORMAL, MARK "a"));
    CHECK(m.tokens[3].score == -1.5);
    CHECK(m.unknown_id == 0 && m.bos_id == 1 && m.eos_id == 2);
    CHECK_EQ(m.n_added, 0);
    blob_free(&b);
}

TEST(sentencepiece_fields_are_read)
{
    blob b = {0}, spec = {0};
    static const char charsmap[] = "\4\0\0\0\1\0\0\0a";
    put_number(&spec, 3, 2);
    put_number(&spec, 24, 1);
    put_tagged(&spec, 44, "<?>", 3);
    put_tagged(&spec, 47, "[E]", 3);
    put_tagged(&b, 2, spec.data, spec.n_bytes);
    blob_free(&spec);
    put_tagged(&spec, 46, "[B]", 3); /* a part of the same message */
    put_tagged(&spec, 99, "unknown fields are skipped", 26);
    put_tagged(&b, 2, spec.data, spec.n_bytes);
    blob_free(&spec);
    put_tagged(&spec, 1, "nmt_nfkc", 8);
    put_tagged(&spec, 2, charsmap, sizeof charsmap);
    put_number(&spec, 3, 0);
    put_number(&spec, 4, 0);
    put_number(&spec, 5, 0);
    put_tagged(&b, 3, spec.data, spec.n_bytes);
    blob_free(&spec);
    put_tagged(&b, 4, "self test", 9);
    put_tagged(&spec, 2, charsmap, sizeof charsmap);
    put_tagged(&b, 5, spec.data, spec.n_bytes);
    blob_free(&spec);
    put_piece(&b, "</s>", 0, 3);
    put_piece(&b, "[E]", 0, 3);
    put_piece(&b, "[B]", 0, 3);
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "user", 0, 4);
    put_piece(&b, "unused", -2, 5);
    /* A .model begins with its pieces: so does this one, when its parts change places. */
    blob file = {0};
    put_piece(&file, "a", -1, 1);
    put(&file, b.data, b.n_bytes);
    expect_blob(&file, NULL);
    CHECK_INT(m.kind, MODEL_CHAR_BPE);
    CHECK_INT(m.rule, MERGE_SCORED);
    CHECK(!m.dummy_prefix && !m.collapse_spaces && !m.escape_spaces && m.whitespace_as_suffix);
    CHECK_EQ(m.charsmap.n_bytes, sizeof charsmap);
    CHECK(memcmp(m.charsmap.s, charsmap, sizeof charsmap) == 0);
    CHECK(m.bos_id == 3 && m.eos_id == 2 && m.unknown_id == 4);
    CHECK_STR(m.decode_affix.s, "<?>");
    CHECK_INT(m.decode, DECODE_UNKNOWN); /* its denormalizer */
    CHECK(token_is(5, TOKEN_USER_DEFINED, "user") && token_is(6, TOKEN_UNUSED, "unused"));
    blob_free(&b);
    blob_free(&file);
}

static blob byte_pieces(int without)
{
    blob b = {0};
    put_specials(&b);
    for (int i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        if (i != without)
            put_piece(&b, name, 0, 6);
    }
    return b;
}

TEST(sentencepiece_byte_fallback_has_all_256)
{
    blob b = byte_pieces(-1);
    expect_refusal(&b, NULL, "piece 3 is a byte, but byte_fallback is off");
    put_trainer(&b, 2, 35, 1);
    put_piece_bytes(&b, "\0", 1, 0, 1);
    expect_blob(&b, NULL);
    CHECK(m.byte_fallback);
    CHECK(token_is(3 + 0x80, TOKEN_BYTE, "\x80"));
    CHECK(m.tokens[3].kind == TOKEN_BYTE && m.tokens[3].n_bytes == 1);
    CHECK_INT(m.tokens[259].kind, TOKEN_CONTROL); /* the NUL that some converters add */
    blob_free(&b);
    b = byte_pieces(0x80);
    put_trainer(&b, 2, 35, 1);
    expect_refusal(&b, NULL, "there is no piece <0x80>");
    put_piece(&b, "<0x8g>", 0, 6);
    expect_refusal(&b, NULL, "not written <0xNN>");
    blob_free(&b);
}

/* Unigram keeps reserved names apart, BPE does not. */
TEST(sentencepiece_names_come_once)
{
    blob b = {0};
    put_specials(&b);
    put_piece(&b, "<s>", -1, 1);
    expect_blob(&b, NULL);
    CHECK_EQ(m.bos_id, 1);
    put_trainer(&b, 2, 0, 0);
    expect_refusal(&b, NULL, "the piece \"<s>\" appears twice");
    blob_free(&b);
    put_specials(&b);
    put_piece(&b, "a", -1, 1);
    put_piece(&b, "a", -2, 4);
    expect_refusal(&b, NULL, "the piece \"a\" appears twice");
    blob_free(&b);
}

TEST(sentencepiece_models_of_characters_and_words)
{
    for (unsigned i = 0; i < 2; i++) {
        blob b = {0};
        put_specials(&b);
        put_piece(&b, "a", 0, 4);
        put_piece(&b, "b", -INFINITY, 1); /* of required_chars, and not in the training text */
        put_trainer(&b, 3 + i, 0, 0);
        expect_blob(&b, NULL);
        CHECK_INT(m.kind, MODEL_CHAR_BPE);
        CHECK_INT(m.rule, MERGE_NONE);
        CHECK(m.whole_word_first == (i == 0));
        CHECK_STR(m.family, i ? "SentencePiece char" : "SentencePiece word");
        blob_free(&b);
    }
}

TEST(sentencepiece_models_that_are_not_supported_are_refused)
{
    static const struct {
        uint64_t type;
        const char *why;
    } types[] = {{0, "the model type 0 is"}, {5, "the model type 5 is"}};
    blob b = {0};
    for (size_t i = 0; i < N_ELEMENTS(types); i++) {
        put_specials(&b);
        put_trainer(&b, types[i].type, 0, 0);
        expect_refusal(&b, NULL, types[i].why);
        blob_free(&b);
    }
    put_specials(&b);
    expect_refusal(&b, "gpt2", "cannot be used with --pattern");
    CHECK(!load_with_specials(&b, NULL, "{}"));
    CHECK_SAYS(err.text, "cannot be used with --specials-file");
    blob_free(&b);
    put_piece(&b, "a", 0, 1);
    expect_refusal(&b, NULL, "no piece for unknown characters");
    blob_free(&b);
}

TEST(sentencepiece_pieces_that_are_damaged_are_refused)
{
    static const struct {
        const char *text;
        size_t n_bytes;
        float score;
        unsigned type;
        const char *why;
    } cases[] = {{"", 0, 0, 1, "piece 3 is empty"},
                 {"\xff", 1, 0, 1, "piece 3 is not UTF-8"},
                 {"a\0b", 3, 0, 1, "piece 3 contains a NUL"},
                 {"a", 1, (float)(1e38 * 1e38), 1, "the score of piece 3"},
                 {"a", 1, 0, 7, "piece 3: the type 7 is not supported"},
                 {"a", 1, 0, 2, "two pieces of type unknown"}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        blob b = {0};
        put_specials(&b);
        put_piece_bytes(&b, cases[i].text, cases[i].n_bytes, cases[i].score, cases[i].type);
        expect_refusal(&b, NULL, cases[i].why);
        blob_free(&b);
    }
    char *large = calloc(1, 8001);
    memset(large, 'a', 8000);
    blob b = {0};
    put_specials(&b);
    put_piece(&b, large, 0, 1);
    expect_refusal(&b, NULL, "piece 3 has 8000 bytes; the limit is 7999");
    blob_free(&b);
    free(large);
}

TEST(protocol_buffers_with_hostile_lengths_are_refused)
{
    static const struct {
        const char *tail;
        size_t n_bytes;
    } cases[] = {{"\x0a", 1},
                 {"\x0a\x05"
                  "abcd",
                  6},
                 {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
                 {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11},
                 {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12},
                 {"\x0b", 1},
                 {"\x0f", 1},
                 {"\x02\x00", 2},
                 {"\x08\x01", 2},         /* pieces as a number */
                 {"\x12\x02\x1a\x00", 4}, /* model_type as bytes */
                 {"\x35\x00\x00\x00", 4},
                 {"\x31\x00\x00\x00\x00\x00\x00\x00", 8}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        blob b = {0};
        put_specials(&b);
        put(&b, cases[i].tail, cases[i].n_bytes);
        expect_refusal(&b, NULL, "damaged, or not a SentencePiece model");
        blob_free(&b);
    }
}

/* ---- tekken.json ---- */

#define TEKKEN_PATTERN                                                                             \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*"                \
    "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"                        \
    "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*|"       \
    "\\\\p{N}| "                                                                                   \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

typedef struct tekken_parts {
    const char *pattern, *version, *specials; /* specials: "\"special_tokens\": [...], " */
    uint32_t vocab_size, n_specials, n_words;
} tekken_parts;

static blob tekken_file(const tekken_parts *p)
{
    blob b = {0};
    put_text(&b,
             "{\"config\": {\"pattern\": \"%s\", \"num_vocab_tokens\": %u, "
             "\"default_vocab_size\": %u, \"default_num_special_tokens\": %u, \"version\": "
             "\"%s\"}, %s\"type\": \"Tekken\", \"version\": 1, \"image\": {\"a\": [1]}, "
             "\"vocab\": [",
             p->pattern ? p->pattern : TEKKEN_PATTERN, p->n_words, p->vocab_size, p->n_specials,
             p->version ? p->version : "v3", p->specials ? p->specials : "");
    for (uint32_t i = 0; i < p->n_words; i++) {
        put_text(&b, "%s{\"rank\": %u, \"token_bytes\": \"", i ? ", " : "", i);
        put_word(&b, i);
        put_text(&b, "\", \"token_str\": null}");
    }
    put_text(&b, "]}");
    return b;
}

static void refuse_tekken(const tekken_parts *p, const char *why)
{
    blob b = tekken_file(p);
    expect_refusal(&b, NULL, why);
    blob_free(&b);
}

#define SPECIAL(rank, text)                                                                        \
    "{\"rank\": " #rank ", \"token_str\": \"" text "\", \"is_control\": true}"

TEST(tekken_ids_follow_the_specials)
{
    blob b = tekken_file(&(tekken_parts){.vocab_size = 300, .n_specials = 30, .n_words = 400});
    expect_blob(&b, NULL);
    expect_blob(&b, "tekken");
    expect_refusal(&b, "gpt2", "--pattern gpt2: a tekken.json has its own");
    expect_blob(&b, NULL);
    CHECK_INT(m.split, STAGE_TEKKEN);
    CHECK_INT(m.rule, MERGE_RANKED);
    CHECK(m.whole_word_first);
    CHECK_EQ(m.n_tokens, 300); /* of the 400, those that the model uses */
    CHECK(*model_token_bytes(&m, 30 + 65) == 'A');
    CHECK_EQ(m.n_added, 30);
    CHECK(m.bos_id == 1 && m.eos_id == 2);
    CHECK(token_is(19, TOKEN_CONTROL, "[TOOL_CONTENT]") && id_of("<SPECIAL_29>") == 29);
    blob_free(&b);
}

TEST(tekken_lists_its_specials_from_version_11_on)
{
    static const char listed[] = "\"special_tokens\": [" SPECIAL(0, "<unk>") ", " SPECIAL(
        1, "<s>") ", " SPECIAL(2, "</s>") ", " SPECIAL(3, "[THINK]") "], ";
    tekken_parts p = {.vocab_size = 276, .n_specials = 20, .n_words = 256};
    p.version = "v11";
    refuse_tekken(&p, "no special_tokens, but version 11 needs them");
    p.specials = "\"special_tokens\": null, ";
    refuse_tekken(&p, "no special_tokens, but version 11 needs them");
    p.specials = listed;
    p.version = "v13";
    blob b = tekken_file(&p);
    expect_blob(&b, NULL);
    blob_free(&b);
    CHECK_EQ(m.n_added, 20);
    CHECK(id_of("[THINK]") == 3 && id_of("<SPECIAL_4>") == 4 && id_of("<SPECIAL_19>") == 19);
    p.n_specials = 3;
    p.vocab_size = 259;
    refuse_tekken(&p, "special_tokens: more than 3");
    p.n_specials = 20;
    p.vocab_size = 276;
    p.specials = "\"special_tokens\": [" SPECIAL(1, "a") "], ";
    refuse_tekken(&p, "special_tokens: the rank is 1, expected 0");
    p.specials = "\"special_tokens\": [" SPECIAL(0, "a") "," SPECIAL(1, "a") "], ";
    refuse_tekken(&p, "\"a\" appears twice");
    p.specials = "\"special_tokens\": [" SPECIAL(0, "<SPECIAL_7>") "], ";
    refuse_tekken(&p, "\"<SPECIAL_7>\" appears twice");
    p.specials = "\"foo\": 1, ";
    refuse_tekken(&p, "\"foo\" is not supported");
}

TEST(tekken_that_is_damaged_is_refused)
{
    const tekken_parts good = {.vocab_size = 300, .n_specials = 30, .n_words = 300};
    tekken_parts p = good;
    p.pattern = "\\\\w+";
    refuse_tekken(&p, "config: the pattern \\w+ is not supported");
    p = good;
    p.version = "3";
    refuse_tekken(&p, "config: the version 3 is not supported");
    p = good;
    p.n_words = 269;
    refuse_tekken(&p, "vocab: 269 tokens, expected 270");
    p.n_words = 300;
    p.vocab_size = 285;
    refuse_tekken(&p, "no token for the byte 0xFF");
    p.vocab_size = 30;
    refuse_tekken(&p, "config: 30 tokens with 30 specials");
    p = good;
    p.n_specials = 19;
    refuse_tekken(&p, "config: fewer than 20 specials");
    p = good;
    p.vocab_size = 99999999;
    refuse_tekken(&p, "99999999 tokens");
    blob b = tekken_file(&good);
    put_text(&b, " {}");
    expect_refusal(&b, NULL, "trailing data after the value");
    blob_free(&b);
}

/* ---- vocab.json and merges.txt ---- */

static bool load_vocab(const char *vocab, const char *merges, const char *pattern)
{
    return load_source((model_source){.data = (const uint8_t *)vocab,
                                      .n_bytes = strlen(vocab),
                                      .merges = (const uint8_t *)merges,
                                      .merges_bytes = merges ? strlen(merges) : 0,
                                      .pattern = pattern});
}

TEST(vocab_json_goes_with_merges_txt)
{
    static const char vocab[] =
        "{\"\u0120\": 0, \"model\": 1, \"a\": 2, \"\u0120a\": 3, \"<|endoftext|>\": 4}";
    CHECK(load_vocab(vocab, "#version: 0.2\n\u0120 a\n", NULL));
    CHECK_INT(m.kind, MODEL_BYTE_BPE);
    CHECK_INT(m.rule, MERGE_LISTED);
    CHECK_INT(m.split, STAGE_GPT2);
    CHECK(token_is(3, TOKEN_NORMAL, " a") && merge_is(0, 0, 2, 3));
    CHECK_EQ(m.eos_id, 4);
    CHECK(m.n_added == 1 && m.added[0].special);
    CHECK(load_vocab(vocab, "\u0120 a\r\n#version", "qwen2:any"));
    CHECK_INT(m.split, STAGE_QWEN2);
    CHECK(m.n_steps == 1 && m.n_merges == 1);
    CHECK_EQ(m.eos_id, 4);
    CHECK(!load_vocab(vocab, "\u0120 a\n", "qwen2"));
    CHECK_SAYS(err.text, "151643 ranks, but this one has 4");
    CHECK(load_vocab(vocab, "", NULL));
    /* tokens with the names of members of other files */
    CHECK(load_vocab("{\"config\": 0, \"vocab\": 1, \"model\": 2}", "", NULL));
    CHECK(token_is(1, TOKEN_NORMAL, "vocab"));
    CHECK(!load_vocab(vocab, NULL, NULL));
    CHECK_SAYS(err.text, "needs its merges.txt");
    CHECK(!load_vocab(vocab, "\u0120 a\n\n", NULL));
    CHECK_SAYS(err.text, "merge 1: \"\" is not two tokens");
    CHECK(!load_vocab(vocab, "a x\n", NULL));
    CHECK_SAYS(err.text, "the vocabulary has no \"x\"");
    CHECK(!load_vocab(vocab, "", "foo"));
    CHECK_SAYS(err.text, "--pattern foo is unknown");
}

/* ---- Telling them apart ---- */

TEST(files_of_no_known_kind_are_refused)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "the file is empty"},
        {"hello",
         "not a tokenizer.json, tekken.json, vocab.json, .tiktoken or SentencePiece model"},
        {"\xff\xfe", "not a tokenizer.json"},
        {"[]", "not a tokenizer.json"},
        {"{}", "JSON, but not a tokenizer.json, tekken.json or vocab.json"},
        {"{\"a\": \"b\"}", "JSON, but no"},
        {"{\"add_bos_token\": true, \"model_max_length\": 1}", "JSON, but no"},
        {"{\"model\": \"gpt\"}", "JSON, but no"},
        {"{\"config\": {}, \"vocab\": {}}", "JSON, but no"},
        {"{\"a\": 1", "JSON: the text ends too early"},
        {" \n{\"a\" 1}", "JSON: expected ':'"},
        {"{\"a\xff\": 1}", "JSON: not UTF-8"},
        {"#version: 0.2\na b\n", "these are merges; name the vocab.json"},
        {"\n", "no pieces"},
        {"\n\n\n", "damaged, or not a SentencePiece model"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        blob b = {0};
        put_text(&b, "%s", cases[i].text);
        if (strcmp(cases[i].text, "\n") == 0)
            put(&b, "\0", 1); /* a piece without fields */
        expect_refusal(&b, NULL,
                       strcmp(cases[i].text, "\n") == 0 ? "piece 0 is empty" : cases[i].why);
        blob_free(&b);
    }
}

/* If a file is truncated, the loaders refuse it, unless the rest is a valid file. */
TEST(files_that_end_early_are_never_read_beyond)
{
    blob spm = byte_pieces(-1), ranks = rank_file(0, 258, UINT32_MAX);
    blob tekken = tekken_file(&(tekken_parts){.vocab_size = 276, .n_specials = 20, .n_words = 256});
    put_trainer(&spm, 2, 35, 1);
    for (size_t n = 0; n < spm.n_bytes; n++)
        CHECK(!load_blob(&(blob){spm.data, n, n}, NULL) || m.n_tokens <= 3);
    CHECK(load_blob(&spm, NULL));
    for (size_t n = 0; n < tekken.n_bytes; n += 7)
        CHECK(!load_blob(&(blob){tekken.data, n, n}, NULL));
    for (size_t n = 0; n < ranks.n_bytes; n++)
        load_blob(&(blob){ranks.data, n, n}, "gpt2:any");
    blob_free(&spm);
    blob_free(&ranks);
    blob_free(&tekken);
}
