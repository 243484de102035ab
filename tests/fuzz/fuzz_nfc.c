/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nfc.c - any text: NFC equals the result of the naive implementation, normalizing again
 * changes nothing, the engines agree on the stable prefix, and the text may be cut there. If it is
 * UTF-8, normalizers of a tokenizer.json give UTF-8: NFD and NFKD once and for all, and NFC of NFD
 * is NFC of the text.
 *
 * The first byte decides: if even, the rest is the text; if odd, each two bytes are a code point of
 * the decompositions, so that most of the text changes. */
#include "fuzz/fuzz.h"
#include "oracles/unicode_naive.h"

#include "base/utf8.h"
#include "tokenizer/normalize/normalizer.h"

/* The bubble sort bears no more. */
enum {
    MAX_BYTES = 2000
};

static size_t text_of(const uint8_t *data, size_t n_bytes, uint8_t *text)
{
    size_t n = 0;
    if (n_bytes > 0 && data[0] % 2 == 0) {
        memcpy(text, data + 1, n_bytes - 1);
        return n_bytes - 1;
    }
    for (size_t i = 1; i + 1 < n_bytes; i += 2) {
        const uint32_t choice = data[i] | (uint32_t)data[i + 1] << 8;
        const nfc_decomposition *d = nfc_decompositions + choice / 4 % NFC_N_DECOMPOSITIONS;
        const uint32_t c[] = {d->code_point, d->first, d->second, choice >> 9};
        n += utf8_encode(c[choice % 4], text + n);
    }
    return n;
}

/* ---- Normalizers ---- */

typedef enum pipeline {
    FORM_NFC,
    FORM_NFD,
    FORM_NFKD,
    ALBERT,
    BERT,
    N_PIPELINES
} pipeline;

static const normalize_step pipelines[N_PIPELINES][5] = {
    [FORM_NFC] = {{.kind = NORMALIZE_NFC}},
    [FORM_NFD] = {{.kind = NORMALIZE_NFD}},
    [FORM_NFKD] = {{.kind = NORMALIZE_NFKD}},
    [ALBERT] = {{.kind = NORMALIZE_NFKD},
                {.kind = NORMALIZE_STRIP_ACCENTS},
                {.kind = NORMALIZE_LOWERCASE},
                {.kind = NORMALIZE_NFKC},
                {.kind = NORMALIZE_REPLACE_LONG_BLANKS}},
    [BERT] = {{.kind = NORMALIZE_BERT,
               .clean_text = true,
               .ideographs = true,
               .strip_accents = true,
               .lowercase = true},
              {.kind = NORMALIZE_NFD},
              {.kind = NORMALIZE_STRIP, .left = true, .right = true}}};
static const size_t n_steps[N_PIPELINES] = {1, 1, 1, 5, 3};

/* Made once, because their tables take time. */
static const normalizer *normalizer_of(pipeline p)
{
    static normalizer *made[N_PIPELINES];
    model m;
    failure err;
    if (made[p])
        return made[p];
    model_init(&m);
    memcpy(m.steps, pipelines[p], sizeof pipelines[p]);
    m.n_steps = n_steps[p];
    made[p] = normalizer_new(&m, true, &err);
    require(made[p] != NULL);
    return made[p];
}

static text_span run(pipeline p, normalize_workspace *workspace, text_span text)
{
    require(normalize_text(normalizer_of(p), workspace, NORMALIZE_FIRST, &text));
    require(utf8_valid_prefix(text.bytes, text.n_bytes) == text.n_bytes);
    return text;
}

static bool same(text_span a, text_span b)
{
    return a.n_bytes == b.n_bytes && memcmp(a.bytes, b.bytes, a.n_bytes) == 0;
}

static void check_normalizers(const uint8_t *text, size_t n_bytes)
{
    normalize_workspace workspace[4];
    text_buffer padded = {0};
    memset(workspace, 0, sizeof workspace);
    require(text_buffer_append(&padded, text, n_bytes));
    const text_span all = text_buffer_span(&padded);
    const text_span nfd = run(FORM_NFD, &workspace[0], all);
    require(same(nfd, run(FORM_NFD, &workspace[1], nfd)));
    require(same(run(FORM_NFC, &workspace[1], nfd), run(FORM_NFC, &workspace[2], all)));
    const text_span nfkd = run(FORM_NFKD, &workspace[1], all);
    require(same(nfkd, run(FORM_NFKD, &workspace[2], nfkd)));
    require(same(nfkd, run(FORM_NFKD, &workspace[2], nfd)));
    run(ALBERT, &workspace[3], all);
    run(BERT, &workspace[3], all);
    for (size_t i = 0; i < 4; i++)
        normalize_workspace_free(&workspace[i]);
    text_buffer_free(&padded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes > MAX_BYTES)
        return 0;
    uint8_t *room = malloc(n_bytes * 2 + 4);
    const size_t n = text_of(data, n_bytes, room);
    uint8_t *text = exact_copy(room, n);
    require(naive_nfc_compare(text, n) == NULL);
    if (utf8_valid_prefix(text, n) == n)
        check_normalizers(text, n);
    free(room);
    free(text);
    return 0;
}
