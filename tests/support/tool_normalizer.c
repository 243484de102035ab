/* SPDX-License-Identifier: Apache-2.0 */
/* tool_normalizer FILE - reads lines of UTF-8 in hexadecimal, lower case; writes them as the
 * normalizer of a tokenizer.json does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/load/model_load.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/split/splitter.h"

static uint8_t *read_all(const char *path, size_t *n_bytes)
{
    static uint8_t data[1 << 22];
    FILE *file = fopen(path, "rb");
    *n_bytes = file ? fread(data, 1, sizeof data, file) : 0;
    if (file)
        fclose(file);
    return data;
}

static uint8_t digit_value(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static bool filter(const normalizer *n)
{
    normalize_scratch scratch = {0};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool ok = true;
    while (ok && (length = getline(&line, &capacity, stdin)) > 0) {
        const size_t n_bytes = (size_t)length / 2;
        uint8_t *text = calloc(n_bytes + TEXT_PADDING, 1);
        for (size_t i = 0; i < n_bytes; i++)
            text[i] = (uint8_t)(digit_value(line[2 * i]) << 4 | digit_value(line[2 * i + 1]));
        text_span span = {text, n_bytes};
        ok = normalize_text(n, &scratch, NORMALIZE_FIRST, &span);
        for (size_t i = 0; i < span.n_bytes && ok; i++)
            printf("%02x", span.bytes[i]);
        putchar('\n');
        free(text);
    }
    free(line);
    normalize_scratch_free(&scratch);
    return ok;
}

int main(int argc, char **argv)
{
    model m;
    failure err = {0};
    model_source source = {0};
    source.data = read_all(argc == 2 ? argv[1] : "", &source.n_bytes);
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
    return ok ? 0 : 1;
}
