/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the vocabulary loaders: base64, names, GPT-2's alphabet, the list of known
 * expressions. */
#include "support/check.h"
#include "support/exact_copy.h"

#include "base/base64.h"
#include "tokenizer/model/byte_alphabet.h"
#include "tokenizer/model/bytes_tokenizer.h"
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter.h"
#include "tokenizer/model/name_table.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof *(array))

/* ---- The tokenizer of bytes ---- */

TEST(ids_of_bytes_become_text_up_to_the_first_other_id)
{
    static const uint32_t ids[] = {'a', 0, BYTES_TOKENIZER_EOD, 255, BYTES_TOKENIZER_EOD + 1, 'b'};
    static const uint8_t wanted[] = {'a', 0, 255};
    uint8_t text[N_ELEMENTS(ids)];
    size_t n_bytes = 9;
    CHECK(bytes_tokenizer_decode(ids, N_ELEMENTS(ids), text, &n_bytes) == 4);
    CHECK(n_bytes == sizeof wanted && memcmp(text, wanted, n_bytes) == 0);
    CHECK(bytes_tokenizer_decode(ids, 2, text, &n_bytes) == 2 && n_bytes == 2);
    CHECK(bytes_tokenizer_decode(ids, 0, text, &n_bytes) == 0 && n_bytes == 0);
}

/* ---- base64 ---- */

TEST(base64_of_every_length_and_byte)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[300], out[300];
    char text[400] = "";
    for (size_t n = 0; n < sizeof bytes; n++) {
        size_t n_text = 0;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(i * 37 + n);
        for (size_t i = 0; i < n; i += 3) {
            const uint32_t bits = (uint32_t)bytes[i] << 16 | (i + 1 < n ? bytes[i + 1] << 8 : 0) |
                                  (i + 2 < n ? bytes[i + 2] : 0);
            text[n_text++] = digits[bits >> 18];
            text[n_text++] = digits[bits >> 12 & 63];
            text[n_text++] = i + 1 < n ? digits[bits >> 6 & 63] : '=';
            text[n_text++] = i + 2 < n ? digits[bits & 63] : '=';
        }
        CHECK_EQ(base64_decode(text, n_text, out), n);
        CHECK(n == 0 || memcmp(bytes, out, n) == 0);
        CHECK(BASE64_ROOM(n_text) >= n);
    }
}

TEST(base64_that_is_not_is_refused)
{
    static const char *const texts[] = {"A",    "AA",   "AAA",  "====",     "A===", "=AAA", "AA=A",
                                        "AB==", "AAB=", "A-A_", "AA==AAAA", "AA A", "AAA\n"};
    uint8_t out[16];
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        if (base64_decode(texts[i], strlen(texts[i]), out) != BASE64_BAD)
            CHECK_FAIL("%s is accepted", texts[i]);
    }
}

/* ---- Names ---- */

TEST(names_keep_their_first_value)
{
    name_table t = {0};
    char name[32];
    CHECK_EQ(name_table_find(&t, "a", 1), NAME_TABLE_NONE);
    for (uint32_t i = 0; i < 50000; i++)
        CHECK_INT(name_table_add(&t, name, (size_t)sprintf(name, "name%u", i), i), NAME_ADDED);
    CHECK_INT(name_table_add(&t, "", 0, 7), NAME_ADDED);
    CHECK_INT(name_table_add(&t, "name49999", 9, 1), NAME_THERE);
    for (uint32_t i = 0; i < 50000; i++)
        CHECK_EQ(name_table_find(&t, name, (size_t)sprintf(name, "name%u", i)), i);
    CHECK_EQ(name_table_find(&t, "", 0), 7);
    CHECK_EQ(name_table_find(&t, "name50000", 9), NAME_TABLE_NONE);
    CHECK_EQ(name_table_find(&t, "name", 4), NAME_TABLE_NONE);
    name_table_free(&t);
}

/* The hash as the table itself has computed it. */
static uint32_t hash_of(const char *name, size_t n_bytes)
{
    name_table t = {0};
    uint32_t hash = 0;
    CHECK_INT(name_table_add(&t, name, n_bytes, 0), NAME_ADDED);
    for (size_t i = 0; i < t.n_entries; i++) {
        if (t.entries[i].value != NAME_TABLE_NONE)
            hash = t.entries[i].hash;
    }
    name_table_free(&t);
    return hash;
}

TEST(names_made_to_collide_are_refused_not_slow)
{
    name_table t = {0};
    name_result result = NAME_ADDED;
    char name[32];
    uint32_t n_added = 0;
    for (uint32_t i = 0; result == NAME_ADDED && n_added < 3000; i++) {
        const size_t n = (size_t)sprintf(name, "%u", i);
        if ((hash_of(name, n) & 0x1FFF) >= 400)
            continue;
        result = name_table_add(&t, name, n, i);
        n_added++;
    }
    CHECK_INT(result, NAME_CROWDED);
    CHECK(n_added > 1000);
    name_table_free(&t);
}

/* Names that differ only in their last bytes, which a weak hash gives neighbouring places. */
TEST(numbered_names_are_not_crowded)
{
    name_table items = {0}, codes = {0};
    char name[32];
    bool added = true;
    for (uint32_t i = 0; i < 50000; i++) {
        added &=
            name_table_add(&items, name, (size_t)sprintf(name, "item_%05u", i), i) == NAME_ADDED;
        added &= name_table_add(&codes, name, (size_t)sprintf(name, "%08x", i), i) == NAME_ADDED;
    }
    CHECK(added);
    name_table_free(&items);
    name_table_free(&codes);
}

/* ---- GPT-2's alphabet ---- */

static size_t put_character(uint32_t code_point, char *out)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    out[0] = (char)(0xC0 | code_point >> 6);
    out[1] = (char)(0x80 | (code_point & 63));
    return 2;
}

TEST(alphabet_has_256_characters_in_the_order_of_gpt2)
{
    uint32_t next = 256, n_letters = 0;
    for (uint32_t byte = 0; byte < 256; byte++) {
        const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                            (byte >= 0xAE && byte <= 0xFF);
        char text[2];
        uint8_t out[2];
        const size_t n = put_character(itself ? byte : next++, text);
        CHECK_EQ(byte_alphabet_decode(text, n, out), 1);
        CHECK_EQ(out[0], byte);
    }
    for (uint32_t code_point = 0; code_point < 0x800; code_point++) {
        char text[2];
        uint8_t out[2];
        n_letters += byte_alphabet_decode(text, put_character(code_point, text), out) == 1;
    }
    CHECK_EQ(n_letters, 256);
}

TEST(other_characters_have_no_byte)
{
    static const char *const texts[] = {" ",        "\xe2\x96\x81", "a b",  "\xc2\xad",
                                        "\xc5\x84", "\xff",         "\xc4", "abc\xf0\x9f\x98\x80"};
    uint8_t out[16];
    for (size_t i = 0; i < N_ELEMENTS(texts); i++)
        CHECK_EQ(byte_alphabet_decode(texts[i], strlen(texts[i]), out), SIZE_MAX);
    CHECK_EQ(byte_alphabet_decode("", 0, out), 0);
}

/* ---- Regular expressions, as in public files ---- */

static const struct {
    const char *text;
    split_stage_id stage;
} expressions[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     STAGE_GPT2},
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", STAGE_GPT2},
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s",
     STAGE_GPT2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_CL100K},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     STAGE_CL100K},
    {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     STAGE_CL100K},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_QWEN2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
     " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_QWEN35},
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
     "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_O200K},
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
     "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_TEKKEN},
    {"\\p{N}{1,3}", STAGE_NUMBERS},
    {"[一-龥぀-ゟ゠-ヿ]+", STAGE_CJK},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
     "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     STAGE_DEEPSEEK},
    {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{"
     "L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     STAGE_CL100K_08},
    {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,2}| ?[^\\s\\p{L}"
     "\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     STAGE_NANOCHAT},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{"
     "L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     STAGE_SEED},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\u200C|\\"
     "u200D)+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_K2_HORIZON},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\"
     "s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!"
     "\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{"
     "1,2}(?!\\S)|\\s{1}",
     STAGE_JAIS2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p"
     "{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     STAGE_K_EXAONE},
    {"[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}"
     "]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}"
     "\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3"
     "}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_KIMI},
    {" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+", STAGE_BLOOM},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+| ?[^\\s\\p{"
     "L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_CL100K_ANY_DIGITS},
    {"<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}"
     "\\p{N}]+",
     STAGE_CLIP},
    {"'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+", STAGE_CLIP_OLD},
    {"(?:\\r?\\n)+(?!\\r?\\n)", STAGE_LINES},
    {"\\d{1,3}(?=(?:\\d{3})*\\b)", STAGE_THOUSANDS},
    {"(?=(\\d{3})+(?!\\d))| ?\\p{L}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", STAGE_SUPERBPE},
    {"(?=(\\d{3})+(?!\\d))", STAGE_THOUSANDS_ONLY},
    {"[\uac00-\ud7a3\u3131-\u318e]+|["
     "\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|["
     "\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
     STAGE_YOUTU},
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\"
     "p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{"
     "Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)"
     "?|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     STAGE_O200K_EACH_DIGIT},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?["
     "\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\r\n]|\\s+(?!\\S)|\\s+",
     STAGE_SPARK},
    {"[\r\n]", STAGE_NEWLINE},
    {"\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
     "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-"
     "\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-"
     "\u13fd\u1c90-\u1cba"
     "\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-"
     "\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-"
     "\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-"
     "\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
     "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-"
     "\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-"
     "\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-"
     "\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-"
     "\U000104fb\U00010c80"
     "-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+",
     STAGE_DEEPSEEK_LETTERS},
    {"\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", STAGE_DEEPSEEK_MARKS},
    {"\\s+$", STAGE_LAST_BLANKS},
    {"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", STAGE_OLD_CJK},
    {"\\s?\\p{L}+", STAGE_BLANK_LETTERS},
    {"\\s?\\p{P}+", STAGE_BLANK_PUNCTUATION},
    {"[0-9][0-9][0-9]", STAGE_THREE_DIGITS},
};

TEST(expressions_of_public_files_are_known)
{
    for (size_t i = 0; i < N_ELEMENTS(expressions); i++) {
        const size_t n = strlen(expressions[i].text);
        char *copy = exact_copy(expressions[i].text, n);
        if (split_find_stage(copy, n) != expressions[i].stage)
            CHECK_FAIL("%s is not known", expressions[i].text);
        free(copy);
    }
}

/* A single different character makes it another expression. */
TEST(expressions_that_differ_anywhere_are_unknown)
{
    for (size_t i = 0; i < N_ELEMENTS(expressions); i++) {
        char text[2048];
        const size_t n = strlen(expressions[i].text);
        for (size_t at = 0; at < n; at++) {
            memcpy(text, expressions[i].text, n);
            if (at < n - 1) /* without its last +, an ending \s+ is \s, which is the same there */
                CHECK(split_find_stage(text, at) != expressions[i].stage);
            text[at] = '~' ^ (text[at] == '~');
            CHECK(split_find_stage(text, n) == STAGE_NONE);
        }
        memcpy(text, expressions[i].text, n);
        text[n] = '|';
        CHECK(split_find_stage(text, n + 1) == STAGE_NONE);
    }
}

TEST(expressions_that_look_alike_but_are_not_are_unknown)
{
    static const char *const texts[] = {
        /* no U+017F, so "'\u017f" and the text after it are one word */
        ("(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
         "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"),
        "\\p{N}",
        "\\d+",
        " ?[^(\\s|[.,!?])]+",
        "",
        "|"};
    for (size_t i = 0; i < N_ELEMENTS(texts); i++)
        CHECK(split_find_stage(texts[i], strlen(texts[i])) == STAGE_NONE);
}
