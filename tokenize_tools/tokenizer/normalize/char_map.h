/* SPDX-License-Identifier: Apache-2.0 */
/* char_map.h - steps of a normalizer that look at one character at a time, as one table: code point
 * to text. Canonical order, which looks at neighbours, may be one of the steps. Pure. */
#pragma once

#include "tokenizer/normalize/text_buffer.h"
#include "tokenizer/unicode/unicode.h"

typedef enum char_step {
    CHAR_NFD,
    CHAR_NFKD,
    CHAR_ORDER,            /* canonical order: after CHAR_NFD and CHAR_NFKD */
    CHAR_COMPATIBLE,       /* NFKC before NFC: only what NFKD decomposes further than NFD */
    CHAR_STRIP_MARKS,      /* StripAccents */
    CHAR_STRIP_NONSPACING, /* BertNormalizer's strip_accents, after NFD */
    CHAR_LOWERCASE,
    CHAR_NMT,
    CHAR_CLEAN,      /* BertNormalizer's clean_text */
    CHAR_IDEOGRAPHS, /* its handle_chinese_chars */
} char_step;

typedef struct char_map char_map;

/* Makes a table. `steps` has at most CHAR_MAP_STEPS; at most one of them is CHAR_ORDER. NULL: out
 * of memory. */
#define CHAR_MAP_STEPS 32
char_map *char_map_new(const char_step *steps, size_t n_steps);
void char_map_free(char_map *m);

/* Appends the mapped text, which is UTF-8; TEXT_PADDING bytes after it are readable. false: out of
 * memory. */
bool char_map_run(const char_map *m, nfc_workspace *workspace, text_span text, text_buffer *out);
