/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_charsmap.c - any bytes as a charsmap, and a text: lookups in an accepted charsmap stay
 * inside it, and the output is UTF-8.
 *
 * Two bytes: the length of the text, which comes next; the rest is the charsmap. */
#include "fuzz/fuzz.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/normalizer.h"
#include "base/utf8.h"

static void require_text(text_span span)
{
    require(utf8_valid_prefix(span.bytes, span.n_bytes) == span.n_bytes);
}

static void normalize(const model *m, text_span text)
{
    failure err;
    normalize_workspace workspace = {0};
    normalizer *n = normalizer_new(m, true, &err);
    require(n != NULL);
    require(normalize_text(n, &workspace, NORMALIZE_FIRST, &text));
    require_text(text);
    normalize_workspace_free(&workspace);
    normalizer_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    model m;
    failure err;
    charsmap map = {0};
    const size_t n_text = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
    if (size < 2 || n_text > size - 2)
        return 0;
    const text_span text = {data + 2, utf8_valid_prefix(data + 2, n_text)};
    model_init(&m);
    require(model_text_set(&m.charsmap, data + 2 + n_text, size - 2 - n_text));
    if (charsmap_load(&map, &m.charsmap, &err)) {
        m.n_steps = 1;
        m.steps[0] = (normalize_step){.kind = NORMALIZE_CHARSMAP, .to = m.charsmap};
        normalize(&m, text);
        m.steps[0] = (normalize_step){.kind = NORMALIZE_SENTENCEPIECE};
        m.dummy_prefix = m.escape_spaces = true;
        for (int collapse = 0; collapse < 2; collapse++) {
            m.collapse_spaces = collapse;
            normalize(&m, text);
        }
    }
    charsmap_free(&map);
    model_free(&m);
    return 0;
}
