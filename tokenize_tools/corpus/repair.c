/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/repair.h"

#include <string.h>

#include "base/utf8.h"

static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};

/* Returns the length of the invalid bytes at the start of the text, which the end may cut off. */
static size_t bad_length(const uint8_t *text, size_t n_bytes)
{
    const size_t n_bad = utf8_bad_bytes(text, n_bytes);
    return n_bad ? n_bad : n_bytes;
}

size_t repair_size(const uint8_t *text, size_t n_bytes, corpus_utf8 how, size_t *n_valid)
{
    size_t at = how == UTF8_RAW ? n_bytes : utf8_valid_prefix(text, n_bytes), size = n_bytes;
    *n_valid = at;
    while (at < n_bytes) {
        const size_t n_bad = bad_length(text + at, n_bytes - at);
        size += sizeof replacement - n_bad;
        at += n_bad;
        at += utf8_valid_prefix(text + at, n_bytes - at);
    }
    return size;
}

uint64_t repair_copy(uint8_t *dst, const uint8_t *text, size_t n_bytes, size_t n_valid)
{
    for (uint64_t n_replaced = 0;; n_replaced++) {
        if (n_valid > 0)
            memcpy(dst, text, n_valid);
        dst += n_valid;
        text += n_valid;
        n_bytes -= n_valid;
        if (n_bytes == 0)
            return n_replaced;
        const size_t n_bad = bad_length(text, n_bytes);
        memcpy(dst, replacement, sizeof replacement);
        dst += sizeof replacement;
        text += n_bad;
        n_bytes -= n_bad;
        n_valid = utf8_valid_prefix(text, n_bytes);
    }
}
