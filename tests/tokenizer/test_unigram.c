/* SPDX-License-Identifier: Apache-2.0 */
/* test_unigram.c - Unigram, through the whole engine, against its definition: sentencepiece's in
 * floats and HuggingFace's in doubles, with ties everywhere. */

#include "support/check.h"

#include "tokenizer/encoder_case.h"
#include "tokenizer/split/splitter.h"
#include "tokenizer/merge/unigram.h"

/* ---- Models ---- */

static double some_grain(void)
{
    static const double grains[] = {1, 0.25, 0.1, 1e-3, 40};
    return grains[naive_any(NAIVE_N(grains))];
}

static void make_sentencepiece(model *m, size_t n_kinds, double grain)
{
    sentencepiece_model(m, MODEL_UNIGRAM);
    naive_add_pieces(m, 20 + naive_any(60), n_kinds, grain);
    if (naive_any(3) == 0)
        naive_add_bytes(m);
}

/* HuggingFace's: with bits that no float has; what text says <unk> or <0x41> matches. */
static void make_huggingface(model *m, size_t n_kinds)
{
    char text[256];
    const double grain = some_grain();
    model_init(m);
    m->kind = MODEL_UNIGRAM;
    m->unknown_id = naive_any(2);
    naive_add(m, "<unk>", TOKEN_NORMAL, 0);
    naive_add(m, "ab", TOKEN_NORMAL, 0);
    for (size_t i = 0, n = 20 + naive_any(60); i < n; i++) {
        text[0] = 0;
        naive_letters(text, naive_any(3) == 0 ? 1 : 2 + naive_any(4), n_kinds);
        naive_add(m, text, TOKEN_NORMAL, -grain * (1 + naive_any(20)));
    }
    if (naive_any(3) == 0)
        naive_add_bytes(m);
    if (naive_any(2)) {
        m->metaspace = true;
        m->prepend = (prepend_scheme)naive_any(3);
        m->metaspace_split = naive_any(2);
    }
    if (naive_any(3) == 0) {
        m->split = m->metaspace && naive_any(2) ? STAGE_EACH_PUNCTUATION : STAGE_WHITESPACE_SPLIT;
        m->prepend = m->prepend == PREPEND_FIRST ? PREPEND_ALWAYS : m->prepend;
    }
}

/* ---- What they give ---- */

static void sentencepiece_ids(const model *m, const char *text, size_t n, naive_ids *want)
{
    static char marked[4 * NAIVE_MAX_BYTES];
    n = sentencepiece_text(m, text, n, marked);
    want->n = 0;
    naive_unigram(m, true, (const uint8_t *)marked, n, want);
}

/* ---- Long sentences: sums grow until sentencepiece takes something off all of them ---- */

static size_t long_text(char *text, size_t n_kinds)
{
    size_t n = 0;
    while (n < NAIVE_MAX_BYTES / 4)
        n += naive_text(text + n, n_kinds);
    text[n] = 0;
    return n;
}

TEST(sums_of_floats_are_right_up_to_where_they_are_reset_and_beyond)
{
    static naive_ids want;
    static char text[2 * NAIVE_MAX_BYTES];
    for (long round = 0; round < rounds(150, 300); round++) {
        engine g = {0};
        const size_t n_kinds = 3 + naive_any(6);
        make_sentencepiece(&g.m, n_kinds, 25 + naive_any(40));
        g.m.escape_spaces = true;
        engine_start(&g, 1 << 18);
        for (int i = 0; i < 4; i++) {
            const size_t n = long_text(text, n_kinds);
            sentencepiece_ids(&g.m, text, n, &want);
            g.out.n = 0;
            encode(&g, text, n);
            expect_ids(&g, &want, text);
        }
        engine_end(&g);
    }
}

TEST(ids_do_not_depend_on_chunks)
{
    static char text[2 * NAIVE_MAX_BYTES];
    for (long round = 0; round < rounds(300, 800); round++) {
        engine g = {0};
        if (naive_any(2))
            make_sentencepiece(&g.m, 8, 30);
        else
            make_huggingface(&g.m, 8);
        engine_start(&g, 1 << 16);
        for (int i = 0; i < 4; i++) {
            const size_t n = long_text(text, 8);
            check_chunks_of(&g, text, n);
        }
        engine_end(&g);
    }
}

static void encode_after(unigram_workspace *s, double score, const char *text, size_t n,
                         const uint64_t *starts, id_buffer *ids)
{
    const uint8_t *bytes = (const uint8_t *)text;
    ids->n = 0;
    unigram_begin(s);
    unigram_workspace_state(s)->score = score;
    CHECK(starts ? unigram_words(s, bytes, n, starts, ids) : unigram_word(s, bytes, n, ids));
    CHECK(unigram_end(s, bytes + n, ids));
}

/* A cached word must have the same result after any sum. */
TEST(words_that_are_kept_do_not_depend_on_the_sum_before_them)
{
    static char text[NAIVE_MAX_BYTES + TEXT_PADDING];
    const uint64_t starts[NAIVE_MAX_BYTES / 64 + 1] = {1};
    id_buffer kept = {0}, ids = {0};
    for (long round = 0; round < rounds(400, 800); round++) {
        model m;
        failure err;
        make_sentencepiece(&m, 6, some_grain());
        unigram *u = unigram_new(&m, true, &err);
        CHECK(u != NULL);
        unigram_workspace *caching = unigram_workspace_new(u, 1 << 16);
        unigram_workspace *plain = unigram_workspace_new(u, 0);
        CHECK(caching && plain);
        for (int i = 0; i < 40; i++) {
            const size_t n = naive_text(text, 6);
            for (int k = 0; k < 20 && n > 0; k++) {
                const double score = (float)(98000 * (naive_any(2001) / 1000.0 - 1));
                encode_after(caching, score, text, n, starts, &kept);
                encode_after(plain, score, text, n, NULL, &ids);
                CHECK(ids.n == kept.n && memcmp(ids.ids, kept.ids, ids.n * 4) == 0);
            }
        }
        unigram_workspace_free(caching);
        unigram_workspace_free(plain);
        unigram_free(u);
        model_free(&m);
    }
    id_buffer_free(&kept);
    id_buffer_free(&ids);
}

/* Their ids leave no bit for the mark of the cache. */
TEST(a_vocabulary_of_more_than_2_20_pieces_has_the_same_ids_with_a_cache)
{
    const uint64_t starts[1] = {1};
    const uint32_t n_ids = (1 << 20) + 2;
    char text[8 + TEXT_PADDING] = "";
    id_buffer kept = {0}, ids = {0};
    model m;
    failure err;
    sentencepiece_model(&m, MODEL_UNIGRAM);
    for (uint32_t id = (uint32_t)m.n_tokens; id < n_ids; id++) {
        const int n = snprintf(text, 8, "%x", id);
        CHECK(model_set_token(&m, &(new_token){id, text, (size_t)n, TOKEN_NORMAL, -1}, &err));
    }
    unigram *u = unigram_new(&m, true, &err);
    unigram_workspace *caching = unigram_workspace_new(u, 1 << 16);
    unigram_workspace *plain = unigram_workspace_new(u, 0);
    CHECK(u && caching && plain);
    for (uint32_t id = n_ids - 4; id < n_ids; id++) {
        const size_t n = (size_t)snprintf(text, 8, "%x", id);
        encode_after(caching, 0, text, n, starts, &kept);
        encode_after(plain, 0, text, n, NULL, &ids);
        CHECK(ids.n == 1 && ids.ids[0] == id && kept.n == 1 && kept.ids[0] == id);
    }
    unigram_workspace_free(caching);
    unigram_workspace_free(plain);
    unigram_free(u);
    model_free(&m);
    id_buffer_free(&kept);
    id_buffer_free(&ids);
}

/* ---- Long texts ---- */

static void make_for_runs(model *m)
{
    make_sentencepiece(m, 12, 1);
}

TEST(long_runs_end_in_time_and_give_every_byte_back)
{
    static const char *const units[] = {"a", "ab", "\xE4\xB8\x96", "~", "a.", "s\n"};
    runs_come_back(make_for_runs, units, NAIVE_N(units), true);
}
