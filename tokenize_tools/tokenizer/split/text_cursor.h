/* SPDX-License-Identifier: Apache-2.0 */
/* text_cursor.h - a piece of a text, one character at a time: for expressions and the definitions
 * of stages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/utf8.h"
#include "tokenizer/unicode/unicode.h"

/* Sets of classes. CLASS_END is in none of them, so every loop over a set stops at the end of the
 * text. */
enum {
    CLASS_END = 15,
    UPPER = 1 << CLASS_UPPER,
    LOWER = 1 << CLASS_LOWER,
    LETTERS = UPPER | LOWER | 1 << CLASS_LETTER,
    MARKS = 1 << CLASS_MARK,
    NUMBERS = 1 << CLASS_NUMBER,
    BLANKS = 1 << CLASS_SPACE,
    VISIBLE = 1 << CLASS_PUNCTUATION | 1 << CLASS_SYMBOL,
    OTHERS = VISIBLE | MARKS | 1 << CLASS_OTHER /* [^\s\p{L}\p{N}] */
};

typedef struct character {
    uint32_t code_point; /* UINT32_MAX: not UTF-8, or the end */
    uint8_t class;
    uint8_t n_bytes;
} character;

/* A piece of the text: bytes begin to n_bytes. A character outside reads as the end of the text. */
typedef struct text_cursor {
    const uint8_t *text;
    size_t begin, n_bytes;
    size_t piece_end; /* of a range: where a piece ends that was searched for; 0: none was */
    /* What matches remember, so that time stays linear in a long run. */
    size_t run_end, run_left; /* of a run of digits: its end, and how many are left in it */
    bool run_grouped;
    uint32_t vain_row; /* expression.c: at these bytes, this state leads to no match */
    size_t vain_from, vain_to;
    bool vectors;      /* AVX2 may be used; bytes are readable as splitter_words() wants them */
    bool as_bytes;     /* each byte is the character that stands for it in ByteLevel */
    uint64_t *removed; /* a bit for each byte of text that a stage removes */
} text_cursor;

/* ---- Characters ---- */

static inline character decode_char(const text_cursor *v, size_t i)
{
    uint32_t code_point;
    size_t n_bytes = utf8_decode(v->text + i, v->n_bytes - i, &code_point);
    if (n_bytes == 0)
        return (character){UINT32_MAX, CLASS_OTHER, 1};
    return (character){code_point, unicode_class_of(code_point), (uint8_t)n_bytes};
}

/* Returns the character of GPT-2's alphabet: bytes that are visible in Latin-1 stand for
 * themselves. */
static inline character byte_char(uint8_t byte)
{
    uint32_t code_point = byte;
    if (byte <= ' ')
        code_point = 0x100U + byte;
    else if (byte >= 0x7F && byte <= 0xA0)
        code_point = 0x121U + byte - 0x7F;
    else if (byte == 0xAD)
        code_point = 0x143;
    return (character){code_point, unicode_class_of(code_point), 1};
}

static inline bool is_cjk(uint32_t code_point)
{
    return (code_point >= 0x3040 && code_point <= 0x30FF) ||
           (code_point >= 0x4E00 && code_point <= 0x9FA5);
}

static inline character char_at(const text_cursor *v, size_t i)
{
    const character end = {UINT32_MAX, CLASS_END, 0};
    if (i >= v->n_bytes)
        return end;
    const uint8_t byte = v->text[i];
    if (v->as_bytes)
        return byte_char(byte);
    return byte < 0x80 ? (character){byte, unicode_class_of(byte), 1} : decode_char(v, i);
}

static inline bool is_of(character c, unsigned classes)
{
    return classes >> c.class & 1;
}
