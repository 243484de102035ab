/* pattern_pieces.c - splits at classes of characters, which come before or after others.
 *
 * numbers, cjk                         before DeepSeek's words, and others
 * newline, blank_letters, blank_punctuation, deepseek_letters, deepseek_marks, last_blanks, old_cjk
 *                                      DeepSeek-LLM and Coder
 * lines                                Laguna
 * youtu                                Youtu-LLM
 * digits, each_digit, three_digits, punctuation, each_punctuation
 *                                      Digits and Punctuation, with ByteLevel */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/text_cut.h"

typedef uint32_t range[2];

static bool is_in(const range *ranges, size_t n, uint32_t code_point)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (code_point > ranges[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && code_point >= ranges[low][0];
}
#define IS_IN(ranges, code_point) is_in(ranges, sizeof(ranges) / sizeof *(ranges), code_point)

/* ---- Runs ---- */

typedef bool is_in_class(character c);

/* [X]+ */
static size_t run_end(const view *v, size_t i, is_in_class *is_x)
{
    for (character c = char_at(v, i); c.n_bytes > 0 && is_x(c); c = char_at(v, i))
        i += c.n_bytes;
    return i;
}

static size_t run_match(const view *v, size_t i, is_in_class *is_x)
{
    return is_x(char_at(v, i)) ? run_end(v, i, is_x) : 0;
}

/* [X] */
static size_t one_match(const view *v, size_t i, is_in_class *is_x)
{
    const character c = char_at(v, i);
    return is_x(c) ? i + c.n_bytes : 0;
}

/* \s?[X]+ */
static size_t blank_run_match(const view *v, size_t i, is_in_class *is_x)
{
    const character c = char_at(v, i), next = char_at(v, i + c.n_bytes);
    if (is_of(c, BLANKS) && next.n_bytes > 0 && is_x(next))
        return run_end(v, i + c.n_bytes, is_x);
    return run_match(v, i, is_x);
}

/* ---- Classes ---- */

static bool is_letter(character c)
{
    return is_of(c, LETTERS);
}

static bool is_unicode_punctuation(character c)
{
    return is_of(c, 1 << CLASS_PUNCTUATION);
}

static bool is_in_cjk(character c)
{
    return is_cjk(c.code_point);
}

static bool is_in_old_cjk(character c)
{
    return (c.code_point >= 0x800 && c.code_point <= 0x9FA5) ||
           (c.code_point >= 0xAC00 && c.code_point <= 0xD7FF);
}

static bool is_numeric(character c)
{
    if (c.code_point < 0x80)
        return c.code_point >= '0' && c.code_point <= '9';
    return c.code_point != UINT32_MAX && unicode_hf_numeric(c.code_point);
}

static bool is_punctuation(character c)
{
    if (c.code_point < 0x80)
        return is_of(c, VISIBLE);
    return c.code_point != UINT32_MAX && unicode_hf_punctuation(c.code_point);
}

static bool is_deepseek_mark(character c)
{
    static const range ranges[] = {{0x21, 0x2F},     {0x3A, 0x7E},     {0x2018, 0x201F},
                                   {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
    return IS_IN(ranges, c.code_point);
}

static bool is_deepseek_letter(character c)
{
    static const range ranges[] = {
        {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},
        {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},
        {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x377},     {0x37B, 0x37D},
        {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},
        {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
        {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
        {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},
        {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},
        {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
        {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
        {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},
        {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
        {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},
        {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
        {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
        {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},
        {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},
        {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
        {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},
        {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
        {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943}};
    if (c.code_point < 0x80)
        return is_of(c, LETTERS);
    return IS_IN(ranges, c.code_point);
}

static bool is_ascii_digit(character c)
{
    return c.code_point >= '0' && c.code_point <= '9';
}

int split_youtu_class(uint32_t code_point)
{
    static const range marks[] = {{0x2014, 0x2014}, {0x2018, 0x2019}, {0x201C, 0x201D},
                                  {0x2026, 0x2026}, {0x3001, 0x303F}, {0xFE30, 0xFE4F},
                                  {0xFF01, 0xFF01}, {0xFF0C, 0xFF0C}, {0xFF1A, 0xFF1B}};
    if (is_cjk(code_point))
        return 4;
    if ((code_point >= 0xAC00 && code_point <= 0xD7A3) ||
        (code_point >= 0x3131 && code_point <= 0x318E))
        return 1;
    if (code_point >= 0x3105 && code_point <= 0x312F)
        return 3;
    return IS_IN(marks, code_point) ? 2 : 0;
}

/* ---- Matches ---- */

static size_t numbers_match(view *v, size_t i)
{
    return is_of(char_at(v, i), NUMBERS) ? digits_end(v, i, 3) : 0;
}

static size_t cjk_match(view *v, size_t i)
{
    return run_match(v, i, is_in_cjk);
}

static size_t old_cjk_match(view *v, size_t i)
{
    return run_match(v, i, is_in_old_cjk);
}

static size_t youtu_match(view *v, size_t i)
{
    character c = char_at(v, i);
    const int class = split_youtu_class(c.code_point);
    size_t end = i;
    for (; class > 0 && split_youtu_class(c.code_point) == class; c = char_at(v, end))
        end += c.n_bytes;
    return class > 0 ? end : 0;
}

static size_t newline_match(view *v, size_t i)
{
    return one_match(v, i, is_newline);
}

static size_t lines_match(view *v, size_t i)
{
    size_t end = 0;
    for (;;) {
        const character c = char_at(v, i), next = char_at(v, i + c.n_bytes);
        if (c.code_point != '\n' && (c.code_point != '\r' || next.code_point != '\n'))
            return end;
        end = i = i + 1 + (c.code_point == '\r');
    }
}

/* Of a run of blanks the first one decides. */
static size_t last_blanks_match(view *v, size_t i)
{
    if (!is_of(char_at(v, i), BLANKS) || i < v->no_newline_before)
        return 0;
    const size_t end = skip_classes(v, i, BLANKS);
    v->no_newline_before = end;
    return end == v->n_bytes ? end : 0;
}

static size_t blank_letters_match(view *v, size_t i)
{
    return blank_run_match(v, i, is_letter);
}

static size_t blank_punctuation_match(view *v, size_t i)
{
    return blank_run_match(v, i, is_unicode_punctuation);
}

static size_t deepseek_letters_match(view *v, size_t i)
{
    return blank_run_match(v, i, is_deepseek_letter);
}

static size_t deepseek_marks_match(view *v, size_t i)
{
    return blank_run_match(v, i, is_deepseek_mark);
}

static size_t digits_match(view *v, size_t i)
{
    return run_match(v, i, is_numeric);
}

static size_t each_digit_match(view *v, size_t i)
{
    return one_match(v, i, is_numeric);
}

static size_t three_digits_match(view *v, size_t i)
{
    const bool three = is_ascii_digit(char_at(v, i)) && is_ascii_digit(char_at(v, i + 1)) &&
                       is_ascii_digit(char_at(v, i + 2));
    return three ? i + 3 : 0;
}

static size_t punctuation_match(view *v, size_t i)
{
    return run_match(v, i, is_punctuation);
}

static size_t each_punctuation_match(view *v, size_t i)
{
    return one_match(v, i, is_punctuation);
}

/* ---- The rows ---- */

/* `places`: see text_cut.h. */
#define STAGE(x, places) .name = #x, .cuts = (places), .match = x##_match

const split_stage stage_numbers = {STAGE(numbers, CUT_AT_DIGIT), .alternatives = {"\\p{N}{1,3}"}};
const split_stage stage_cjk = {STAGE(cjk, CUT_AT_STOP),
                               .alternatives = {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}};
const split_stage stage_old_cjk = {STAGE(old_cjk, 0),
                                   .alternatives = {"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"}};
const split_stage stage_youtu = {
    STAGE(youtu, CUT_AT_STOP),
    .alternatives = {"[\uac00-\ud7a3\u3131-\u318e]+",
                     "[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-"
                     "\u303f\ufe30-\ufe4f]+",
                     "[\u3105-\u312f]+", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}};
const split_stage stage_newline = {STAGE(newline, CUT_AT_NEWLINE), .alternatives = {"[\\r\\n]"}};
const split_stage stage_lines = {STAGE(lines, 0), .merges_next = true,
                                 .alternatives = {"(?:\\r?\\n)+(?!\\r?\\n)"}};
const split_stage stage_last_blanks = {STAGE(last_blanks, 0), .alternatives = {"\\s+$"}};
const split_stage stage_blank_letters = {
    STAGE(blank_letters, CUT_AT_SPACE | CUT_AT_WIDE | CUT_AT_DIGIT),
    .alternatives = {"\\s?\\p{L}+"}};
const split_stage stage_blank_punctuation = {STAGE(blank_punctuation, CUT_AT_STOP),
                                             .alternatives = {"\\s?\\p{P}+"}};
const split_stage stage_deepseek_letters = {
    STAGE(deepseek_letters, CUT_AT_SPACE | CUT_AT_DIGIT),
    .alternatives = {
        "\\s?["
        "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
        "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-"
        "\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
        "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00"
        "-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-"
        "\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-"
        "\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-"
        "\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
        "\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
        "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13"
        "-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
        "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
        "\U0001e900-\U0001e943"
        "]+"}};
const split_stage stage_deepseek_marks = {
    STAGE(deepseek_marks, CUT_AT_STOP),
    .alternatives = {"\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"}};

const split_stage stage_digits = {STAGE(digits, CUT_AT_DIGIT), .component = COMPONENT_DIGITS,
                                  .of_bytes = true};
const split_stage stage_each_digit = {STAGE(each_digit, CUT_AT_DIGIT),
                                      .component = COMPONENT_EACH_DIGIT, .of_bytes = true};
const split_stage stage_three_digits = {STAGE(three_digits, 0), .of_bytes = true,
                                        .alternatives = {"[0-9][0-9][0-9]"}};
const split_stage stage_punctuation = {STAGE(punctuation, CUT_AT_SIGN),
                                       .component = COMPONENT_PUNCTUATION};
const split_stage stage_each_punctuation = {STAGE(each_punctuation, CUT_AT_SIGN),
                                            .component = COMPONENT_EACH_PUNCTUATION};

const split_list list_deepseek_llm = {.name = "deepseek_llm", .pattern = SPLIT_DEEPSEEK_LLM};
const split_list list_deepseek_coder = {.name = "deepseek_coder", .pattern = SPLIT_DEEPSEEK_CODER};
