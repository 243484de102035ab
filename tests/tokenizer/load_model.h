/* SPDX-License-Identifier: Apache-2.0 */
/* load_model.h - for tests of vocabulary files: makes them in memory, loads them, and checks the
 * result. */
#pragma once

#include "support/check.h"

#include "tokenizer/load/model_load.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof *(array))
#define MARK "\xe2\x96\x81" /* U+2581 */

typedef struct blob { /* starts as {0} */
    uint8_t *data;
    size_t n_bytes, capacity;
} blob;

void put(blob *b, const void *data, size_t n_bytes);
__attribute__((format(printf, 2, 3))) void put_text(blob *b, const char *format, ...);
void put_base64(blob *b, const uint8_t *bytes, size_t n_bytes);
void blob_free(blob *b);

extern model m; /* of the last load */
extern failure err;

/* The data is in memory of exactly its size, so that a sanitizer detects every read beyond it. */
bool load_source(model_source source);
bool load_blob(const blob *b, const char *pattern);
void expect_blob(const blob *b, const char *pattern);
void expect_refusal(const blob *b, const char *pattern, const char *why);
bool token_is(uint32_t id, token_kind kind, const char *text);
bool merge_is(size_t i, uint32_t left, uint32_t right, uint32_t result);
bool text_is(const model_text *text, const char *s);
