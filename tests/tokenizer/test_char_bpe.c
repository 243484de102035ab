/* SPDX-License-Identifier: Apache-2.0 */
/* test_char_bpe.c - BPE over characters, through the whole engine, against its definition. */
#include "support/check.h"

#include "tokenizer/encoder_case.h"
#include "tokenizer/split/char_words.h"
#include "tokenizer/split/splitter.h"

/* ---- sentencepiece ---- */

static void make_scored(model *m, size_t n_kinds)
{
    static const double grains[] = {1, 0.25, 1e-6};
    sentencepiece_model(m, MODEL_CHAR_BPE);
    m->rule = MERGE_SCORED;
    naive_add_pieces(m, 20 + naive_any(60), n_kinds, grains[naive_any(3)]);
    if (naive_any(3) != 0)
        naive_add_bytes(m);
}

static void make_unmerged(model *m, size_t n_kinds)
{
    make_scored(m, n_kinds);
    m->rule = MERGE_NONE;
    m->whole_word_first = naive_any(2); /* char or word */
}

/* ---- tokenizer.json ---- */

static void add_merges(model *m, size_t n)
{
    failure err;
    const uint32_t n_tokens = (uint32_t)m->n_tokens;
    for (size_t i = 0; i < n; i++) {
        const uint32_t left = naive_any(n_tokens), right = naive_any(n_tokens);
        naive_add_merge(m, 1u << TOKEN_NORMAL, left, right);
    }
    CHECK(model_keep_last_merges(m, &err));
}

static void set_step(model *m, normalize_kind kind, const char *from, const char *to)
{
    normalize_step *step = &m->steps[m->n_steps++];
    *step = (normalize_step){.kind = kind};
    model_text_set(&step->from, from, strlen(from));
    model_text_set(&step->to, to, strlen(to));
}

static void make_listed(model *m, size_t n_kinds)
{
    char text[256];
    model_init(m);
    m->kind = MODEL_CHAR_BPE;
    m->rule = MERGE_LISTED;
    naive_add(m, "<unk>", TOKEN_NORMAL, 0);
    for (size_t i = 0; i < n_kinds; i++)
        if (naive_any(12) != 0)
            naive_add(m, naive_alphabet[i], TOKEN_NORMAL, 0);
    for (size_t i = 0, n = 20 + naive_any(50); i < n; i++) {
        text[0] = 0;
        naive_letters(text, 2 + naive_any(3), n_kinds);
        naive_add(m, text, TOKEN_NORMAL, 0);
    }
    add_merges(m, 20000);
    m->unknown_id = naive_any(4) == 0 ? MODEL_NO_ID : 0;
    m->fuse_unknown = naive_any(2);
    if (naive_any(2)) {
        naive_add_bytes(m);
    } else {
        m->whole_word_first = naive_any(3) == 0;
    }
    if (naive_any(2)) {
        set_step(m, NORMALIZE_PREPEND, "", NAIVE_MARK);
        set_step(m, NORMALIZE_REPLACE, " ", NAIVE_MARK);
    } else {
        m->metaspace = true;
        m->prepend = (prepend_scheme)naive_any(3);
        m->metaspace_split = naive_any(2);
    }
}

/* ---- Chunks ---- */

TEST(ids_do_not_depend_on_chunks)
{
    static const char *const glue[] = {"a b", "1 s", "s\nb", "b\na",
                                       "\xE4\xB8\x96\xE3\x80\x82\xE4\xB8\x96"};
    char text[2 * NAIVE_MAX_BYTES];
    for (long round = 0; round < rounds(300, 3000); round++) {
        engine g = {0};
        static void (*const make[])(model *, size_t) = {make_scored, make_listed, make_unmerged};
        make[naive_any(3)](&g.m, 3 + naive_any(9));
        engine_start(&g, 1 << 14);
        for (int i = 0; i < 30; i++) {
            size_t n = 0;
            for (int k = 0; k < 5; k++) {
                n += naive_text(text + n, 12);
                n += (size_t)sprintf(text + n, "%s", glue[naive_any(NAIVE_N(glue))]);
            }
            check_chunks_of(&g, text, n);
        }
        engine_end(&g);
    }
}

/* ---- Words ---- */

static void random_words(char_words *w, bool spaces_are_marks)
{
    static const uint32_t characters[] = {'a', 'z', '0', ' ', 0x2581, '.', '\n', 0xE9, 0x4E16};
    char_words_init(w, spaces_are_marks);
    for (uint32_t i = naive_any(30); i > 0; i--)
        char_words_join(w, characters[naive_any(NAIVE_N(characters))],
                        characters[naive_any(NAIVE_N(characters))]);
}

static uint32_t code_point(const uint8_t *at)
{
    const size_t n = naive_char(at);
    uint32_t c = n == 1 ? *at : *at & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (at[i] & 0x3F);
    return c;
}

/* No cut between what is joined, nor beside a U+2581 that is written out. */
static bool starts_word(const char_words *w, const uint8_t *text, size_t at, size_t n)
{
    size_t before = at - 1;
    if (at == 0)
        return true;
    if ((text[at] & 0xC0) == 0x80)
        return false;
    while ((text[before] & 0xC0) == 0x80)
        before--;
    const uint32_t left = code_point(text + before);
    const uint32_t right = n - at >= naive_char(text + at) ? code_point(text + at) : 0;
    if (w->spaces_are_marks && (left == CHAR_WORDS_MARK || right == CHAR_WORDS_MARK))
        return false;
    return !char_words_joined(w, left, right);
}

TEST(words_start_where_nothing_is_joined_whatever_code_runs)
{
    static const simd_level engines[] = {SIMD_SCALAR, SIMD_AVX2, SIMD_AVX512, SIMD_BEST};
    static uint64_t starts[NAIVE_MAX_BYTES / 64 + 2];
    char text[NAIVE_MAX_BYTES];
    for (long round = 0; round < rounds(3000, 20000); round++) {
        char_words w;
        size_t n = 0;
        random_words(&w, naive_any(2));
        for (uint32_t parts = 1 + naive_any(6); parts > 0; parts--)
            n += naive_text(text + n, NAIVE_N(naive_alphabet));
        const size_t n_text = n;
        while (n > 1 && naive_any(2) != 0)
            n -= naive_any(3) < n ? 1 : 0;
        const size_t sizes[2] = {n, n_text};
        for (size_t e = 0; e < NAIVE_N(engines); e++) {
            if (!simd_works(engines[e]))
                continue;
            char_words_split(&w, engines[e], (const uint8_t *)text, sizes, starts);
            for (size_t i = 0; i < (n + 63) / 64 * 64; i++) {
                const bool want = i < n && starts_word(&w, (const uint8_t *)text, i, n_text);
                if ((starts[i / 64] >> i % 64 & 1) != want)
                    CHECK_FAIL("engine %zu, byte %zu of %zu", e, i, n);
            }
        }
    }
}

/* ---- Long texts ---- */

static void make_for_runs(model *m)
{
    make_scored(m, 12);
}

TEST(long_runs_end_in_time_and_give_every_byte_back)
{
    static const char *const units[] = {"a", "ab", "\xE4\xB8\x96", "~"};
    static const char *const blanks[] = {" ", "a ", NAIVE_MARK}; /* come back as other blanks */
    runs_come_back(make_for_runs, units, NAIVE_N(units), true);
    runs_come_back(make_for_runs, blanks, NAIVE_N(blanks), false);
}

/* ---- Added tokens that are looked for in normalized text ---- */

static void gives(engine *g, const char *text, specials_policy specials, const char *want)
{
    char got[256] = "";
    g->out.n = 0;
    encoder_set_specials(g->e, specials);
    encode(g, text, strlen(text));
    for (size_t i = 0; i < g->out.n; i++)
        sprintf(got + strlen(got), "%s%u", i ? " " : "", g->out.ids[i]);
    CHECK_STR(got, want);
}

TEST(added_tokens_are_found_in_normalized_text)
{
    static const char *const letters[] = {NAIVE_MARK, "a", "b", "<", "x", "y", ">"};
    engine g = {0};
    failure err;
    model_init(&g.m);
    g.m.kind = MODEL_CHAR_BPE;
    g.m.rule = MERGE_LISTED;
    for (size_t i = 0; i < NAIVE_N(letters); i++)
        naive_add(&g.m, letters[i], TOKEN_NORMAL, 0);
    set_step(&g.m, NORMALIZE_PREPEND, "", NAIVE_MARK);
    set_step(&g.m, NORMALIZE_REPLACE, " ", NAIVE_MARK);
    char plain[] = "<x>", special[] = "<y>";
    CHECK(model_add_added(&g.m, &(added_token){.id = 8, .content = {plain, 3}, .normalized = true},
                          &err));
    CHECK(model_add_added(
        &g.m, &(added_token){.id = 9, .content = {special, 3}, .normalized = true, .special = true},
        &err));
    engine_start(&g, 1 << 14);
    /* Normalizing puts U+2581 before the contents too, so it has to be there. */
    gives(&g, "a <x>b", SPECIALS_TEXT, "0 1 8 2");
    gives(&g, "a<x>b", SPECIALS_TEXT, "0 1 3 4 6 2");
    gives(&g, "<x><x>", SPECIALS_TEXT, "8 3 4 6");
    gives(&g, "a <y>b", SPECIALS_TEXT, "0 1 0 3 5 6 2");
    gives(&g, "a <y>b", SPECIALS_MATCH, "0 1 9 2");
    gives(&g, "a <y>b", SPECIALS_DROP, "0 1 2");
    CHECK_EQ(encoder_specials_seen(g.e), 3);
    engine_end(&g);
}

/* ---- Decoding ---- */

static void decodes(const engine *g, const char *ids, const char *want)
{
    uint32_t numbers[16];
    size_t n = 0, bad;
    model_text text = {0};
    for (const char *at = ids; *at; at += *at == ' ')
        numbers[n++] = (uint32_t)strtoul(at, (char **)&at, 10);
    CHECK(tokenizer_decode(g->t, numbers, n, &text, &bad));
    CHECK_STR(text.s, want);
    free(text.s);
}

/* Ids 2 to 257 are bytes. ChatGLM's decoder: bytes become text before Metaspace sees it. */
TEST(in_metaspace_a_run_of_bytes_is_a_token)
{
    engine g = {0};
    model_init(&g.m);
    g.m.kind = MODEL_CHAR_BPE;
    g.m.rule = MERGE_LISTED;
    naive_add(&g.m, "a", TOKEN_NORMAL, 0);
    naive_add(&g.m, NAIVE_MARK NAIVE_MARK "b", TOKEN_NORMAL, 0);
    naive_add_bytes(&g.m);
    g.m.decode = DECODE_METASPACE;
    g.m.decode_strips = true;
    engine_start(&g, 1 << 14);
    decodes(&g, "1 1", "b  b");
    decodes(&g, "0 1", "a  b");
    decodes(&g, "228 152 131 99 1", "a  b"); /* the first token is U+2581 and "a" */
    decodes(&g, "0 228 152 131 99", "a a");
    decodes(&g, "228 152 1 228", "\uFFFD\uFFFD  b\uFFFD");
    engine_end(&g);
}
