#include "tokenizer/unicode/unicode.h"

extern const uint8_t unicode_hf_index[0x110000 >> 7];
/* For 128 code points: two words of bits for numbers, then two for punctuation. */
extern const uint64_t unicode_hf_pages[][4];

unicode_class unicode_class_of(uint32_t code_point)
{
    const uint16_t page = unicode_class_index[code_point >> 7];
    return (unicode_class)unicode_class_pages[page][code_point & 127];
}

bool unicode_is_word(uint32_t code_point)
{
    const uint8_t *page = unicode_word_pages[unicode_word_index[code_point >> 7]];
    const uint8_t class = page[code_point & 127];
    return class == CLASS_LETTER || class == CLASS_MARK;
}

bool unicode_hf_numeric(uint32_t code_point)
{
    const uint64_t *page = unicode_hf_pages[unicode_hf_index[code_point >> 7]];
    return page[code_point >> 6 & 1] >> (code_point & 63) & 1;
}

bool unicode_hf_punctuation(uint32_t code_point)
{
    const uint64_t *page = unicode_hf_pages[unicode_hf_index[code_point >> 7]];
    return page[2 + (code_point >> 6 & 1)] >> (code_point & 63) & 1;
}
