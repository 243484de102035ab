/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encoder_case.h"

void engine_start(engine *g, size_t cache_bytes)
{
    failure err;
    g->t = tokenizer_new(&g->m, &err);
    if (!g->t)
        CHECK_FAIL("%s", err.text);
    g->e =
        encoder_new(g->t, &(encoder_options){.cache_bytes = cache_bytes, .specials = g->specials});
    CHECK(g->e != NULL);
}

void engine_end(engine *g)
{
    encoder_free(g->e);
    tokenizer_free(g->t);
    id_buffer_free(&g->out);
    model_free(&g->m);
}

void encode(engine *g, const char *text, size_t n)
{
    uint8_t *copy = malloc(n + TEXT_PADDING);
    CHECK(copy != NULL);
    memcpy(copy, text, n);
    memset(copy + n, 0x81, TEXT_PADDING);
    const tokenize_status status = encoder_encode(g->e, copy, n, &g->out);
    free(copy);
    CHECK_EQ(status, TOKENIZE_OK);
}

void check_chunks_of(engine *g, const char *text, size_t n)
{
    const encoder_options options = {
        .cache_bytes = 1, .chunk_bytes = 1 + check_below(80), .specials = g->specials};
    engine chunked = {.e = encoder_new(g->t, &options)};
    CHECK(chunked.e != NULL);
    g->out.n = 0;
    encode(g, text, n);
    encode(&chunked, text, n);
    if (g->out.n != chunked.out.n ||
        (g->out.n > 0 && memcmp(g->out.ids, chunked.out.ids, g->out.n * sizeof *g->out.ids) != 0))
        CHECK_FAIL("\"%.*s\" in chunks of %zu", (int)n, text, options.chunk_bytes);
    encoder_free(chunked.e);
    id_buffer_free(&chunked.out);
}

void check_chunks(engine *g, const char *const *pieces, size_t n_kinds, size_t n_pieces)
{
    char text[2000];
    size_t n = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        const char *piece = pieces[check_below((uint32_t)n_kinds)];
        CHECK(n + strlen(piece) < sizeof text);
        n += (size_t)(stpcpy(text + n, piece) - (text + n));
    }
    check_chunks_of(g, text, n);
}

void expect_ids(const engine *g, const naive_ids *want, const char *text)
{
    if (g->out.n == want->n && memcmp(g->out.ids, want->ids, want->n * sizeof *want->ids) == 0)
        return;
    size_t i = 0;
    while (i < g->out.n && i < want->n && g->out.ids[i] == want->ids[i])
        i++;
    CHECK_FAIL("\"%.200s\": %zu ids, not %zu; id %zu is %u, not %u", text, g->out.n, want->n, i,
               i < g->out.n ? g->out.ids[i] : 0, i < want->n ? want->ids[i] : 0);
}

long rounds(long in_check, long in_long)
{
    const long n = check_long() ? in_long : in_check;
    return check_sanitized() ? n / 20 + 1 : n;
}

void refused(model *m, const char *why)
{
    failure err;
    tokenizer *t = tokenizer_new(m, &err);
    tokenizer_free(t);
    model_free(m);
    if (t || !strstr(err.text, why))
        CHECK_FAIL("refused because of \"%s\", not \"%s\"", t ? "nothing" : err.text, why);
}

void runs_come_back(void (*make)(model *), const char *const *units, size_t n_units, bool equal)
{
    const size_t n = check_sanitized() ? 200000 : check_long() ? 4000000 : 1000000;
    char *text = malloc(n);
    for (size_t u = 0; u < n_units; u++) {
        engine g = {0};
        model_text back = {0};
        size_t bad;
        make(&g.m);
        g.m.dummy_prefix = false;
        if (!g.m.byte_fallback)
            naive_add_bytes(&g.m);
        engine_start(&g, 1 << 20);
        const size_t unit = strlen(units[u]), n_text = n / unit * unit;
        for (size_t i = 0; i < n_text; i++)
            text[i] = units[u][i % unit];
        encode(&g, text, n_text);
        CHECK(tokenizer_decode(g.t, g.out.ids, g.out.n, &back, &bad));
        CHECK(!equal || (back.n_bytes == n_text && memcmp(back.s, text, n_text) == 0));
        free(back.s);
        engine_end(&g);
    }
    free(text);
}

/* ---- sentencepiece ---- */

void sentencepiece_model(model *m, model_kind kind)
{
    model_init(m);
    m->kind = kind;
    m->unknown_id = 0;
    m->steps[0].kind = NORMALIZE_SENTENCEPIECE;
    m->n_steps = 1;
    m->dummy_prefix = naive_any(2);
    m->escape_spaces = naive_any(8) != 0;
    naive_add(m, "<unk>", TOKEN_UNKNOWN, 0);
    naive_add(m, "s", naive_any(6) == 0 ? TOKEN_CONTROL : TOKEN_NORMAL, -1);
}

size_t sentencepiece_text(const model *m, const char *text, size_t n, char *marked)
{
    const size_t n_prefix = !m->dummy_prefix || n == 0 ? 0 : m->escape_spaces ? 3 : 1;
    memcpy(marked, n_prefix == 3 ? NAIVE_MARK : " ", n_prefix);
    if (m->escape_spaces)
        return n_prefix + naive_marked(text, n, marked + n_prefix);
    memcpy(marked + n_prefix, text, n);
    return n_prefix + n;
}
