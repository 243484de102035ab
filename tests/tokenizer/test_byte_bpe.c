/* SPDX-License-Identifier: Apache-2.0 */
/* test_byte_bpe.c - byte-level BPE with random vocabularies: chunks of text and parts of long words
 * change nothing, and tokens that collide are found. test_oracles.py compares the ids of random
 * ones with the reference. */

#include "support/check.h"
#include "support/split_words.h"
#include "tokenizer/merge/byte_bpe.h"
#include "tokenizer/encoder_case.h"

enum {
    MAX_TOKENS = 900,
    PLACES = 4096,
    MAX_TOKEN_BYTES = 7, /* so that a token and its length are one number */
    MAX_TEXT = 400       /* and a piece more */
};

/* ---- A vocabulary, as plain lists ---- */

typedef struct plain_token {
    uint8_t bytes[MAX_TOKEN_BYTES];
    size_t n_bytes;
} plain_token;

static struct {
    plain_token tokens[MAX_TOKENS]; /* by id */
    size_t n_tokens;
    uint32_t by_bytes[PLACES]; /* id + 1 */
    model_merge merges[MAX_TOKENS * 2];
    size_t n_merges;
    bool listed, whole_word_first;
    bool wide;      /* tokens have the bytes of one Chinese character, mostly */
    bool gone[256]; /* bytes without a token: only a listed vocabulary may lack some */
    bool lacks, fuse_unknown;
    bool has_suffix;   /* "w": the last byte of a word and "w" are one token */
    uint32_t unknown;  /* or MODEL_NO_ID: they are left out */
    bool prefix_words; /* a blank before each word, and */
    split_pattern word_split;
} plain;

/* The place of a token in `by_bytes`, or the free one for it. */
static uint32_t *place_of(const uint8_t *bytes, size_t n_bytes)
{
    uint64_t key = n_bytes;
    for (size_t i = 0; i < n_bytes; i++)
        key = key << 8 | bytes[i];
    for (size_t i = key * 0x9E3779B97F4A7C15u >> 52;; i = (i + 1) % PLACES) {
        const uint32_t id = plain.by_bytes[i];
        if (id == 0 || (plain.tokens[id - 1].n_bytes == n_bytes &&
                        memcmp(plain.tokens[id - 1].bytes, bytes, n_bytes) == 0))
            return &plain.by_bytes[i];
    }
}

static uint32_t find_token(const uint8_t *bytes, size_t n_bytes)
{
    return *place_of(bytes, n_bytes) - 1; /* 0 - 1 is MODEL_NO_ID */
}

static uint32_t add_token(const plain_token *t)
{
    plain.tokens[plain.n_tokens++] = *t;
    *place_of(t->bytes, t->n_bytes) = (uint32_t)plain.n_tokens;
    return (uint32_t)plain.n_tokens - 1;
}

/* Joins two tokens, those of letters more often than others. */
static void add_random_token(void)
{
    uint32_t parts[2];
    plain_token t = {.n_bytes = 0};
    for (int i = 0; i < 2; i++) {
        static const char letters[] = "aabbc  '1\n\xC3\xA9\xE4\xB8\xAD";
        const uint32_t n_letters = sizeof letters - 1, skipped = plain.wide ? n_letters - 3 : 0;
        const uint8_t letter = (uint8_t)letters[skipped + check_below(n_letters - skipped)];
        parts[i] = check_below(3) ? find_token(&letter, 1) : check_below((uint32_t)plain.n_tokens);
        if (check_below(2) && plain.n_tokens > 256)
            parts[i] = 256 + check_below((uint32_t)plain.n_tokens - 256);
        const plain_token *part = &plain.tokens[parts[i]];
        if (t.n_bytes + part->n_bytes > MAX_TOKEN_BYTES)
            return;
        memcpy(t.bytes + t.n_bytes, part->bytes, part->n_bytes);
        t.n_bytes += part->n_bytes;
    }
    uint32_t id = find_token(t.bytes, t.n_bytes);
    if (id == MODEL_NO_ID)
        id = add_token(&t);
    for (size_t i = 0; i < plain.n_merges; i++)
        if (plain.merges[i].left == parts[0] && plain.merges[i].right == parts[1])
            return;
    if (plain.listed)
        plain.merges[plain.n_merges++] = (model_merge){parts[0], parts[1], id};
}

/* Tokens that no merge produces, as in Llama 3. */
static void add_unreachable_token(void)
{
    plain_token t = {.n_bytes = 2 + check_below(MAX_TOKEN_BYTES - 2)};
    const size_t wide = check_below(6); /* 0 to 2: begins at this byte of a character */
    for (size_t i = 0; i < t.n_bytes; i++)
        t.bytes[i] = (uint8_t)(wide < 3 ? "\xE4\xB8\xAD"[(wide + i) % 3] : "abc "[check_below(4)]);
    if (find_token(t.bytes, t.n_bytes) == MODEL_NO_ID)
        add_token(&t);
}

/* Bytes that take part in no merge. */
static void lose_bytes(void)
{
    memset(plain.gone, 0, sizeof plain.gone);
    plain.unknown = check_below(4) ? check_below((uint32_t)plain.n_tokens) : MODEL_NO_ID;
    plain.fuse_unknown = check_below(2);
    plain.lacks = plain.listed && check_below(plain.has_suffix ? 4 : 2) != 0;
    for (uint32_t id = 0; id < 256 && plain.lacks; id++) {
        bool merges = id == plain.unknown;
        for (size_t i = 0; i < plain.n_merges; i++)
            merges |= plain.merges[i].left == id || plain.merges[i].right == id;
        plain.gone[plain.tokens[id].bytes[0]] = !merges && check_below(3);
    }
}

static void make_vocabulary(void)
{
    plain.n_tokens = plain.n_merges = 0;
    memset(plain.by_bytes, 0, sizeof plain.by_bytes);
    plain.listed = check_below(2) != 0;
    plain.whole_word_first = check_below(2) != 0;
    const uint32_t turn = check_below(256);
    for (uint32_t i = 0; i < 256; i++)
        add_token(&(plain_token){{(uint8_t)(i + turn)}, 1});
    plain.has_suffix = plain.listed && check_below(3) == 0;
    for (uint32_t i = check_below(300); i > 0 && plain.has_suffix; i--) {
        const uint32_t byte =
            check_below(2) ? check_below(256) : (uint8_t) "abc 1\xA9\xAD"[check_below(7)];
        const plain_token t = {{(uint8_t)byte, 'w'}, 2};
        if (find_token(t.bytes, 2) == MODEL_NO_ID)
            add_token(&t);
    }
    plain.wide = check_below(3) == 0;
    const size_t n_merged = 1 + check_below(plain.wide ? 20 : 200);
    for (size_t i = 0; i < n_merged; i++)
        add_random_token();
    for (uint32_t i = check_below(10); i > 0; i--)
        add_unreachable_token();
    for (size_t i = 0; i < n_merged / 2; i++)
        add_random_token();
    lose_bytes();
}

static void make_model(model *m, split_pattern pattern)
{
    failure err;
    model_init(m);
    m->n_later = plain.prefix_words;
    m->later[0] = (piece_step){.change = CHANGE_BLANK, .split = plain.word_split};
    m->kind = MODEL_BYTE_BPE;
    m->rule = plain.listed ? MERGE_LISTED : MERGE_RANKED;
    m->whole_word_first = plain.whole_word_first;
    m->split = pattern;
    m->unknown_id = plain.unknown;
    m->fuse_unknown = plain.fuse_unknown;
    CHECK(!plain.has_suffix || model_text_set(&m->word_suffix, "w", 1));
    for (uint32_t id = 0; id < plain.n_tokens; id++) {
        const plain_token *token = &plain.tokens[id];
        const bool gone = token->n_bytes == 1 && plain.gone[token->bytes[0]];
        CHECK(model_set_token(m,
                              &(new_token){.id = id,
                                           .bytes = token->bytes,
                                           .n_bytes = token->n_bytes,
                                           .kind = gone ? TOKEN_CONTROL : TOKEN_NORMAL},
                              &err));
    }
    for (size_t i = 0; i < plain.n_merges; i++)
        CHECK(model_add_merge(m, plain.merges[i], &err));
}

/* ---- Words ---- */

TEST(chunks_change_nothing)
{
    static const char *const pieces[] = {"word",
                                         " ",
                                         " ",
                                         "a b",
                                         "ab b",
                                         "b\nb",
                                         "\n",
                                         "7",
                                         "don't",
                                         "\xE5\xAD\x97",
                                         "\xE3\x80\x82",
                                         ".",
                                         "\r\n",
                                         "  ",
                                         "X",
                                         "\xCC\x81",
                                         "\xE5\x80",
                                         "\xE5\xAD\x97\xE3\x80\x82\xE5\xAD\x97",
                                         "\xD1\x8F \xD0\xB4",
                                         "\xC3\xA9 \xC3\x89",
                                         "\xD7\x90\n\xD7\x90",
                                         "\xC2\xB2 \xD0\x90"};
    for (int round = 0; round < (check_sanitized() ? 300 : check_long() ? 8000 : 2000); round++) {
        if (round % 50 == 0)
            make_vocabulary();
        plain.prefix_words = round / 50 % 4 == 0;
        plain.word_split = round % 2 ? STAGE_GPT2 : SPLIT_NONE;
        static const split_pattern patterns[] = {STAGE_GPT2,      STAGE_CL100K, STAGE_O200K,
                                                 STAGE_QWEN2,     STAGE_TEKKEN, STAGE_QWEN35,
                                                 SPLIT_DEEPSEEK3, SPLIT_FALCON, SPLIT_STARCODER};
        engine g = {0};
        make_model(&g.m, patterns[round % 9]);
        engine_start(&g, 1);
        check_chunks(&g, pieces, sizeof pieces / sizeof *pieces, 60);
        engine_end(&g);
    }
    plain.prefix_words = false;
}

/* Encodes the words one by one; returns how many there are. */
static size_t encode_words(const byte_bpe *b, const uint8_t *text, size_t n_bytes,
                           const uint64_t *starts, id_buffer *out)
{
    merge_workspace workspace = {0};
    size_t n_words = 0;
    for (size_t at = 0, end; at < n_bytes; at = end, n_words++) {
        end = split_next_start(starts, at + 1, n_bytes);
        CHECK(byte_bpe_encode(b, &workspace, text + at, end - at, out));
    }
    merge_workspace_free(&workspace);
    return n_words;
}

TEST(parts_of_long_words_have_their_ids)
{
    enum {
        MAX_BYTES = 260
    };
    const size_t n_rounds = check_sanitized() ? 1200 : check_long() ? 40000 : 8000;
    size_t n_cut = 0;
    for (size_t round = 0; round < n_rounds; round++) {
        static const char characters[] = "\xE4\xB8\xAD\xE4\xB8\xB8\xE4\xAD\xAD";
        const size_t n_bytes = 12 + check_below(MAX_BYTES - 12);
        const uint32_t damage = 2 + check_below(60), others = 12 + check_below(60);
        uint8_t text[MAX_BYTES + TEXT_PADDING];
        uint64_t starts[MAX_BYTES / 64 + 1] = {1};
        id_buffer whole = {0}, parts = {0};
        failure err;
        model m;
        for (size_t i = 0; i < sizeof text; i++)
            text[i] =
                (uint8_t)(check_below(damage) ? (uint8_t)characters[i % 9] : check_below(256));
        for (size_t i = 0; i < n_bytes; i++)
            starts[i / 64] |= (uint64_t)(check_below(others) == 0) << i % 64;
        if (round % 2 == 0)
            make_vocabulary();
        make_model(&m, SPLIT_NONE);
        vocabulary *words = vocabulary_new(&m, &err);
        CHECK(words);
        byte_bpe *b = byte_bpe_new(&m, words, &err);
        CHECK(b);
        const size_t n_words = encode_words(b, text, n_bytes, starts, &whole);
        byte_bpe_cut_words(b, text, n_bytes, starts);
        n_cut += encode_words(b, text, n_bytes, starts, &parts) > n_words;
        CHECK(starts[n_bytes / 64] >> n_bytes % 64 == 0);
        CHECK(whole.n == parts.n && memcmp(whole.ids, parts.ids, whole.n * sizeof *whole.ids) == 0);
        byte_bpe_free(b);
        vocabulary_free(words);
        model_free(&m);
        id_buffer_free(&whole);
        id_buffer_free(&parts);
    }
    CHECK(n_cut > n_rounds / 8);
}

/* ---- Tokens that were made to collide ---- */

/* Where vocabulary.c begins to look for one of n_tokens in its table of short tokens. */
static uint64_t place_in_table(const uint8_t bytes[8], size_t n_tokens)
{
    uint64_t low;
    memcpy(&low, bytes, 8);
    const uint64_t hash = low * 0x9E3779B97F4A7C15u + (9u << 24) * 0xC2B2AE3D27D4EB4Fu;
    return (hash >> 32) * (n_tokens * 2 / 4 + 16) >> 32;
}

/* The bytes, and tokens of 8 letters that begin at place 77, all but the last n_other. */
static void make_colliding(model *m, size_t n_colliding, size_t n_other)
{
    const size_t n_tokens = 256 + n_colliding + n_other;
    failure err;
    uint8_t token[8];
    model_init(m);
    m->kind = MODEL_BYTE_BPE;
    m->rule = MERGE_LISTED;
    m->whole_word_first = true;
    m->split = SPLIT_NONE;
    for (uint32_t id = 0; id < n_tokens; id++) {
        new_token t = {.id = id, .bytes = token, .n_bytes = 1, .kind = TOKEN_NORMAL};
        token[0] = (uint8_t)id;
        for (bool found = id < 256; !found;) {
            for (size_t i = 0; i < sizeof token; i++)
                token[i] = (uint8_t)('a' + check_below(26));
            t.n_bytes = sizeof token;
            found = (place_in_table(token, n_tokens) == 77) == (id < n_tokens - n_other);
        }
        CHECK(model_set_token(m, &t, &err));
    }
}

static void find_all(engine *g)
{
    engine_start(g, 1);
    for (uint32_t id = 0; id < g->m.n_tokens; id++) {
        g->out.n = 0;
        encode(g, (const char *)model_token_bytes(&g->m, id), g->m.tokens[id].n_bytes);
        CHECK(g->out.n == 1 && g->out.ids[0] == id);
    }
    engine_end(g);
}

TEST(tokens_that_collide_are_found_up_to_a_limit_and_refused_beyond_it)
{
    engine g = {0};
    model m;
    make_colliding(&g.m, 800, 210);
    find_all(&g);
    make_colliding(&m, 1010, 0);
    refused(&m, "too many tokens have the same hash");
}

TEST(names_that_collide_are_refused_for_that_reason)
{
    model m;
    failure err;
    model_init(&m);
    m.kind = MODEL_BYTE_BPE;
    for (uint32_t id = 0; id < 1400; id++) {
        /* hash_name of name_table.c backwards, from a hash whose upper half is 0. */
        uint64_t hash = (id + 1) * 0x0BA79078168D4BAFu;
        hash ^= hash >> 32;
        hash = (hash * 0xF1DE83E19937733Du) ^ 8;
        CHECK(model_set_token(&m, &(new_token){id, &hash, sizeof hash, TOKEN_CONTROL, 0}, &err));
    }
    refused(&m, "too many tokens have the same hash");
}

TEST(scores_are_refused_by_name)
{
    model m;
    model_init(&m);
    m.kind = MODEL_BYTE_BPE;
    m.rule = MERGE_SCORED;
    refused(&m, "byte-level BPE with scores is not supported");
}
