/* pattern_thousands.c - numbers in groups of three, counted from their right:
 *
 * thousands        before o200k: tiny-aya
 * thousands_only   words run over blanks: SuperBPE
 * superbpe         and words: SuperBPE's first step */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/text_cut.h"
#include "tokenizer/unicode/unicode.h"

/* \d */
static bool is_decimal(character c)
{
    static const uint32_t ranges[][2] = {
        {0x660, 0x669},     {0x6F0, 0x6F9},     {0x7C0, 0x7C9},     {0x966, 0x96F},
        {0x9E6, 0x9EF},     {0xA66, 0xA6F},     {0xAE6, 0xAEF},     {0xB66, 0xB6F},
        {0xBE6, 0xBEF},     {0xC66, 0xC6F},     {0xCE6, 0xCEF},     {0xD66, 0xD6F},
        {0xDE6, 0xDEF},     {0xE50, 0xE59},     {0xED0, 0xED9},     {0xF20, 0xF29},
        {0x1040, 0x1049},   {0x1090, 0x1099},   {0x17E0, 0x17E9},   {0x1810, 0x1819},
        {0x1946, 0x194F},   {0x19D0, 0x19D9},   {0x1A80, 0x1A89},   {0x1A90, 0x1A99},
        {0x1B50, 0x1B59},   {0x1BB0, 0x1BB9},   {0x1C40, 0x1C49},   {0x1C50, 0x1C59},
        {0xA620, 0xA629},   {0xA8D0, 0xA8D9},   {0xA900, 0xA909},   {0xA9D0, 0xA9D9},
        {0xA9F0, 0xA9F9},   {0xAA50, 0xAA59},   {0xABF0, 0xABF9},   {0xFF10, 0xFF19},
        {0x104A0, 0x104A9}, {0x10D30, 0x10D39}, {0x10D40, 0x10D49}, {0x11066, 0x1106F},
        {0x110F0, 0x110F9}, {0x11136, 0x1113F}, {0x111D0, 0x111D9}, {0x112F0, 0x112F9},
        {0x11450, 0x11459}, {0x114D0, 0x114D9}, {0x11650, 0x11659}, {0x116C0, 0x116C9},
        {0x116D0, 0x116E3}, {0x11730, 0x11739}, {0x118E0, 0x118E9}, {0x11950, 0x11959},
        {0x11BF0, 0x11BF9}, {0x11C50, 0x11C59}, {0x11D50, 0x11D59}, {0x11DA0, 0x11DA9},
        {0x11F50, 0x11F59}, {0x16130, 0x16139}, {0x16A60, 0x16A69}, {0x16AC0, 0x16AC9},
        {0x16B50, 0x16B59}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1D7CE, 0x1D7FF},
        {0x1E140, 0x1E149}, {0x1E2F0, 0x1E2F9}, {0x1E4F0, 0x1E4F9}, {0x1E5F1, 0x1E5FA},
        {0x1E950, 0x1E959}, {0x1FBF0, 0x1FBF9}};
    if (c.code_point < 0x80 || !is_of(c, NUMBERS))
        return c.code_point >= '0' && c.code_point <= '9';
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && ranges[i][0] <= c.code_point; i++) {
        if (c.code_point <= ranges[i][1])
            return true;
    }
    return false;
}

/* Oniguruma's \w. It has six numbers that Rust's lacks, and not the two joiners of Rust's. */
bool split_is_word(character c)
{
    switch (c.code_point) {
    case 0xB2:
    case 0xB3:
    case 0xB9:
    case 0xBC:
    case 0xBD:
    case 0xBE:
        return true;
    case 0x200C:
    case 0x200D:
    case UINT32_MAX:
        return false;
    default:
        return unicode_is_word(c.code_point);
    }
}

/* The end of the run of decimal digits at i; *n is their number. A long run is counted once. */
static size_t decimals_end(view *v, size_t i, size_t *n)
{
    size_t end = i;
    *n = 0;
    for (character c = char_at(v, end); is_decimal(c); c = char_at(v, end)) {
        end += c.n_bytes;
        ++*n;
    }
    return end;
}

static size_t skip_decimals(const view *v, size_t i, size_t n)
{
    for (; n > 0; n--)
        i += char_at(v, i).n_bytes;
    return i;
}

/* \d{1,3}(?=(?:\d{3})*\b): a run that no word character follows. */
static size_t thousands_match(view *v, size_t i)
{
    if (v->run_end <= i) {
        v->run_end = decimals_end(v, i, &v->run_left);
        v->run_grouped = !split_is_word(char_at(v, v->run_end));
    }
    if (v->run_end == i || !v->run_grouped)
        return 0;
    const size_t n = v->run_left % 3 == 0 ? 3 : v->run_left % 3;
    v->run_left -= n;
    return skip_decimals(v, i, n);
}

/* (?=(\d{3})+(?!\d)): matches of nothing. */
static bool is_before_thousands(view *v, size_t i)
{
    if (!is_decimal(char_at(v, i)))
        return false;
    if (v->run_end <= i)
        v->run_end = decimals_end(v, i, &v->run_left);
    return v->run_left-- % 3 == 0;
}

static size_t thousands_only_match(view *v, size_t i)
{
    return is_before_thousands(v, i) ? i : 0;
}

/* Where nothing is matched, no other alternative is tried. */
static size_t superbpe_match(view *v, size_t i)
{
    if (is_before_thousands(v, i))
        return i;
    character c = char_at(v, i);
    const size_t body = i + (c.code_point == ' ');
    const character first = char_at(v, body);
    if (is_of(first, LETTERS))
        return skip_classes(v, body, LETTERS);
    if (is_of(first, OTHERS))
        return skip_classes(v, body, OTHERS);
    return is_of(c, BLANKS) ? blanks_end(v, i, false) : 0;
}

const split_stage stage_thousands = {
    .name = "thousands",
    .alternatives = {"\\d{1,3}(?=(?:\\d{3})*\\b)"},
    .match = thousands_match,
};

const split_stage stage_thousands_only = {
    .name = "thousands_only",
    .alternatives = {"(?=(\\d{3})+(?!\\d))"},
    .match = thousands_only_match,
};

const split_stage stage_superbpe = {
    .name = "superbpe",
    .alternatives = {"(?=(\\d{3})+(?!\\d))", "\\x20?\\p{L}+", "\\x20?[^\\s\\p{L}\\p{N}]+",
                     "\\s+(?!\\S)|\\s+"},
    .cuts = CUT_ANYWHERE,
    .match = superbpe_match,
};

const split_list list_superbpe_1 = {.name = "superbpe_1", .pattern = SPLIT_SUPERBPE_1};
const split_list list_superbpe_2 = {.name = "superbpe_2", .pattern = SPLIT_SUPERBPE_2};
