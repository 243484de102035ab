/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unicode/unicode.h"

#include "tokenizer/unicode/hf_tables.h"

unicode_class unicode_class_of(uint32_t code_point)
{
    const uint16_t page = unicode_class_index[code_point >> 7];
    return (unicode_class)unicode_class_pages[page][code_point & 127];
}

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
    const lower_run *low = lower_runs;
    size_t n = LOWER_N_RUNS;
    out[0] = code_point;
    if (code_point == 0x130) { /* the only one that becomes two */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    while (n > 1) {
        const size_t half = n / 2;
        low += low[half].first <= code_point ? half : 0;
        n -= half;
    }
    if (code_point >= low->first && code_point <= low->last &&
        (code_point - low->first) % low->step == 0)
        out[0] = (uint32_t)((int32_t)code_point + low->distance);
    return 1;
}
