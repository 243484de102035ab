/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unicode/unicode.h"

#include "base/utf8.h"
#include "tokenizer/unicode/hf_tables.h"
#include "tokenizer/unicode/table_rows.h"

const uint32_t unicode_han[UNICODE_N_HAN][2] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF}};

static uint8_t word_class_of(uint32_t code_point)
{
    return unicode_word_pages[unicode_word_index[code_point >> 7]][code_point & 127];
}

bool unicode_is_word(uint32_t code_point)
{
    const uint8_t class = word_class_of(code_point);
    return class == CLASS_LETTER || class == CLASS_MARK || class == CLASS_NUMBER;
}

bool unicode_is_decimal(uint32_t code_point)
{
    return word_class_of(code_point) == CLASS_NUMBER;
}

bool unicode_hf_is(hf_class class, uint32_t code_point)
{
    const uint64_t *page = unicode_hf_pages[unicode_hf_index[code_point >> 7]];
    return page[2 * class + (code_point >> 6 & 1)] >> (code_point & 63) & 1;
}

size_t unicode_lowercase(uint32_t code_point, uint32_t out[2])
{
    const lower_run *low = find_row(lower_runs, LOWER_N_RUNS, sizeof *low, code_point);
    out[0] = code_point;
    if (code_point == 0x130) { /* the only one that becomes two */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    if (code_point >= low->first && code_point <= low->last &&
        (code_point - low->first) % low->step == 0)
        out[0] = (uint32_t)((int32_t)code_point + low->distance);
    return 1;
}

size_t unicode_blanks_before(const uint8_t *text, size_t from, size_t end)
{
    uint32_t c;
    for (size_t n; end > from; end -= n) {
        n = utf8_decode_last(text + from, end - from, &c);
        if (n == 0 || unicode_class_of(c) != CLASS_SPACE)
            break;
    }
    return end;
}

size_t unicode_blanks_after(const uint8_t *text, size_t n_bytes, size_t at)
{
    uint32_t c;
    for (size_t n; at < n_bytes; at += n) {
        n = utf8_decode(text + at, n_bytes - at, &c);
        if (n == 0 || unicode_class_of(c) != CLASS_SPACE)
            break;
    }
    return at;
}
