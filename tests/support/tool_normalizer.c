/* SPDX-License-Identifier: Apache-2.0 */
/* tool_normalizer FILE - reads lines of UTF-8 in hexadecimal, lower case; writes them as the
 * normalizer of a tokenizer.json does. */
#include <stdio.h>
#include <stdlib.h>

#include "support/bad_days.h"
#include "support/pipes.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/split/splitter.h"

static bool filter(const normalizer *n)
{
    normalize_workspace workspace = {0};
    size_t n_bytes;
    bool ok = true;
    for (uint8_t *text; ok && (text = get_hex_line(&n_bytes, TEXT_PADDING));) {
        text_span span = {text, n_bytes};
        ok = normalize_text(n, &workspace, NORMALIZE_FIRST, &span);
        put_hex(span.bytes, ok ? span.n_bytes : 0);
        putchar('\n');
        free(text);
    }
    normalize_workspace_free(&workspace);
    return ok;
}

int main(int argc, char **argv)
{
    model m;
    failure err = {0};
    const file_bytes file = file_load(argc == 2 ? argv[1] : "");
    const model_source source = {.data = file.data, .n_bytes = file.n_bytes};
    model_init(&m);
    normalizer *n = NULL;
    const bool loaded = model_load(&m, &source, &err);
    if (loaded)
        n = normalizer_new(&m, true, &err);
    if (!n)
        fprintf(stderr, "%s\n", err.text);
    const bool ok = n && filter(n);
    normalizer_free(n);
    model_free(&m);
    free(file.data);
    return ok ? 0 : 1;
}
