/* SPDX-License-Identifier: Apache-2.0 */
/* unicode.h - Unicode for the tokenizers: classes and lower case of code points, NFC and NFKD.
 *
 * make_unicode_tables.py makes the tables, for the versions that the reference tokenizers use.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

#define UNICODE_VERSION "16.0.0"
/* The reference's NFC is of an older version: later marks and letters stay unchanged. */
#define NFC_UNICODE_VERSION "9.0.0"

/* A code point is in exactly one class. \s is CLASS_SPACE; \p{L} are the four letters. */
typedef enum unicode_class {
    CLASS_OTHER,       /* control, format, unassigned, private; bytes that are not UTF-8 */
    CLASS_UPPER,       /* Lu, Lt */
    CLASS_LOWER,       /* Ll */
    CLASS_LETTER,      /* Lm, Lo */
    CLASS_MARK,        /* M */
    CLASS_NUMBER,      /* N */
    CLASS_SPACE,       /* \s: 25 code points */
    CLASS_PUNCTUATION, /* P */
    CLASS_SYMBOL       /* S */
} unicode_class;

extern const uint16_t unicode_class_index[0x110000 >> 7];
extern const uint8_t unicode_class_pages[][128];
/* Returns the class of a code point up to 0x10FFFF. */
static inline unicode_class unicode_class_of(uint32_t code_point)
{
    return (
        unicode_class)unicode_class_pages[unicode_class_index[code_point >> 7]][code_point & 127];
}

enum {
    UNICODE_N_HAN = 22
};
/* \p{Han}: the first and the last of each range. */
extern const uint32_t unicode_han[UNICODE_N_HAN][2];

/* Classes of Hugging Face's components, each of its own version of Unicode. */
typedef enum hf_class {
    HF_NUMBER,      /* Digits: the numbers of Unicode 17 */
    HF_PUNCTUATION, /* Punctuation, BertPreTokenizer: ASCII's, and the punctuation of Unicode 8 */
    HF_MARK,        /* StripAccents: the marks of Unicode 9 */
    HF_NONSPACING,  /* BertNormalizer's accents: the nonspacing marks of Unicode 8 */
    HF_CONTROL      /* what BertNormalizer removes: Cc, Cf and Co of Unicode 8, and U+FFFD */
} hf_class;
bool unicode_hf_is(hf_class class, uint32_t code_point);
/* Lowercases a code point, as Unicode 17. Returns how many code points it becomes. */
size_t unicode_lowercase(uint32_t code_point, uint32_t out[2]);
/* Return where the white space before `end` begins, from `from` on; and where the white space at
 * `at` ends. */
size_t unicode_blanks_before(const uint8_t *text, size_t from, size_t end);
size_t unicode_blanks_after(const uint8_t *text, size_t n_bytes, size_t at);

/* Tables like unicode_class_index, for Whitespace and BertPreTokenizer, which split by Rust's \w
 * and by the punctuation of Punctuation. Each code point has one of these classes:  CLASS_NUMBER
 * \d, which is part of \w CLASS_LETTER       the rest of \w, if not punctuation CLASS_MARK
 * \w and punctuation: connectors such as the underscore CLASS_PUNCTUATION  punctuation and not \w
 * CLASS_SPACE        \s CLASS_OTHER        the others */
extern const uint16_t unicode_word_index[0x110000 >> 7];
extern const uint8_t unicode_word_pages[][128];
/* Whether it is in Rust's \w, which also decides where an added token is a single word. */
bool unicode_is_word(uint32_t code_point);
/* Whether it is in \d, the same in all engines. */
bool unicode_is_decimal(uint32_t code_point);

/* Tables like unicode_class_index, for DeepSeek-LLM, whose expressions name their characters:
 *
 * CLASS_UPPER        letters that are marks too: ASCII's
 * CLASS_LETTER       other letters
 * CLASS_PUNCTUATION  other marks
 * CLASS_MARK         a blank that is a mark too
 * CLASS_SPACE        other blanks
 * CLASS_NUMBER       HF_NUMBER
 * CLASS_OTHER        the others */
extern const uint16_t unicode_deepseek_index[0x110000 >> 7];
extern const uint8_t unicode_deepseek_pages[][128];

/* ---- NFC, as the reference tokenizers compute it ---- */

/* The length of a prefix that is certainly in NFC and independent of the text after it. n_bytes if
 * the whole text is in NFC, unless it has a run of more than about 90 bytes of combining
 * characters. text is UTF-8; an invalid byte counts as a character without properties. */
size_t nfc_stable_prefix(const uint8_t *text, size_t n_bytes);
size_t nfc_stable_prefix_by(simd_level e, const uint8_t *text, size_t n_bytes);
/* Writes the NFC form of the whole text: at most NFC_GROWTH * n_bytes bytes; `out` must not overlap
 * it. Linear time. workspace grows to the size of the longest segment that needs work (start with
 * {0}, free with nfc_workspace_free). false: out of memory. */
#define NFC_GROWTH 3
typedef struct nfc_workspace {
    uint32_t *code_points;
    size_t capacity;
} nfc_workspace;
bool nfc_normalize(nfc_workspace *workspace, const uint8_t *text, size_t n_bytes, uint8_t *out,
                   size_t *out_bytes);
void nfc_workspace_free(nfc_workspace *workspace);

/* ---- Decompositions, of the same version ---- */

/* Returns the full decomposition of one code point; return how many it has. */
size_t unicode_nfd(uint32_t code_point, uint32_t out[4]);
#define NFKD_LONGEST 18
size_t unicode_nfkd(uint32_t code_point, uint32_t out[NFKD_LONGEST]);
uint8_t unicode_combining_class(uint32_t code_point);
/* Makes room for n code points in the workspace. false: out of memory. */
bool nfc_reserve(nfc_workspace *workspace, size_t n);
/* Puts the first n code points of the workspace into canonical order. false: out of memory. */
bool nfc_order(nfc_workspace *workspace, size_t n);
