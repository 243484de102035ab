/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load_model.h"

#include <stdarg.h>
#include "support/exact_copy.h"

void put(blob *b, const void *data, size_t n_bytes)
{
    if (b->n_bytes + n_bytes > b->capacity) {
        b->capacity = (b->n_bytes + n_bytes) * 2;
        b->data = realloc(b->data, b->capacity);
        CHECK(b->data != NULL);
    }
    if (n_bytes > 0)
        memcpy(b->data + b->n_bytes, data, n_bytes);
    b->n_bytes += n_bytes;
}

void put_text(blob *b, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    CHECK(n >= 0);
    put(b, text, (size_t)n);
    free(text);
}

void put_base64(blob *b, const uint8_t *bytes, size_t n_bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n_bytes; i += 3) {
        const uint32_t bits = (uint32_t)bytes[i] << 16 |
                              (i + 1 < n_bytes ? (uint32_t)bytes[i + 1] << 8 : 0) |
                              (i + 2 < n_bytes ? bytes[i + 2] : 0);
        const char text[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                              i + 1 < n_bytes ? digits[bits >> 6 & 63] : '=',
                              i + 2 < n_bytes ? digits[bits & 63] : '='};
        put(b, text, 4);
    }
}

void blob_free(blob *b)
{
    free(b->data);
    *b = (blob){0};
}

model m; /* of the last load */
failure err;

bool load_source(model_source source)
{
    uint8_t *copy = exact_copy(source.data, source.n_bytes);
    source.data = copy;
    err = (failure){0};
    model_free(&m);
    const bool loaded = model_load(&m, &source, &err);
    free(copy);
    CHECK(loaded == (err.text[0] == '\0'));
    CHECK(err.place <= source.n_bytes);
    return loaded;
}

bool load_blob(const blob *b, const char *pattern)
{
    return load_source((model_source){.data = b->data, .n_bytes = b->n_bytes, .pattern = pattern});
}

void expect_blob(const blob *b, const char *pattern)
{
    if (!load_blob(b, pattern))
        CHECK_FAIL("refused: %s", err.text);
}

void expect_refusal(const blob *b, const char *pattern, const char *why)
{
    if (load_blob(b, pattern))
        CHECK_FAIL("accepted, not refused for: %s", why);
    if (!strstr(err.text, why))
        CHECK_FAIL("refused for \"%s\", not for: %s", err.text, why);
}

bool token_is(uint32_t id, token_kind kind, const char *text)
{
    return id < m.n_tokens && m.tokens[id].kind == kind && m.tokens[id].n_bytes == strlen(text) &&
           memcmp(model_token_bytes(&m, id), text, strlen(text)) == 0;
}

bool merge_is(size_t i, uint32_t left, uint32_t right, uint32_t result)
{
    return i < m.n_merges && m.merges[i].left == left && m.merges[i].right == right &&
           m.merges[i].result == result;
}

bool text_is(const model_text *text, const char *s)
{
    return text->n_bytes == strlen(s) && memcmp(text->s, s, text->n_bytes) == 0;
}
