/* fuzz_charsmap.c - any bytes as a charsmap, and a text: lookups in an accepted charsmap stay
 * inside it, and the output is UTF-8.
 *
 * Two bytes: the length of the text, which comes next; the rest is the charsmap. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/chars/charsmap.h"
#include "tokenizer/chars/sp_normalize.h"
#include "tokenizer/chars/sp_steps.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void require_text(sp_span span)
{
    require(utf8_valid_prefix(span.bytes, span.n_bytes) == span.n_bytes);
}

static void normalize(const model *m, sp_span text)
{
    model_error err;
    sp_scratch scratch = {0};
    sp_normalizer *n = sp_normalizer_new(m, true, &err);
    require(n != NULL);
    char_pairs pairs = {0};
    sp_normalizer_add_pairs(n, &pairs);
    char_pairs_free(&pairs);
    require(sp_normalize(n, &scratch, NORMALIZE_FIRST, &text));
    require_text(text);
    sp_scratch_free(&scratch);
    sp_normalizer_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    model m;
    model_error err;
    charsmap map = {0};
    const size_t n_text = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
    if (size < 2 || n_text > size - 2)
        return 0;
    const sp_span text = {data + 2, utf8_valid_prefix(data + 2, n_text)};
    model_init(&m);
    require(model_text_set(&m.charsmap, data + 2 + n_text, size - 2 - n_text));
    if (charsmap_load(&map, &m.charsmap, &err)) {
        sp_text out = {0};
        require(sp_step_charsmap(text, &map, &out));
        require_text(sp_text_span(&out));
        sp_text_free(&out);
        m.n_steps = 1;
        m.steps[0].kind = NORMALIZE_SENTENCEPIECE;
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
