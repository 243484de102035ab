/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing that a terminal interprets is plain, and everything else is: for all code points, and for
 * bytes that are not UTF-8. */
#include "support/check.h"

#include "base/plain_text.h"
#include "base/utf8.h"

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> n) | c);
    return n;
}

static bool is_obeyed(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                  {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].from && c <= ranges[i].to)
            return true;
    return false;
}

TEST(every_code_point_is_plain_or_obeyed)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[4];
        uint32_t found = 0;
        size_t n = encode(c, s);
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        if (utf8_decode((const uint8_t *)s, n, &found) != (surrogate ? 0 : n) ||
            (!surrogate && found != c) ||
            plain_text_length(s, n) != (surrogate || is_obeyed(c) ? 0 : n))
            CHECK_FAIL("U+%04X", (unsigned)c);
        for (size_t k = 1; k < n; k++) {
            CHECK_EQ(plain_text_length(s, k), 0);
            CHECK_EQ(plain_text_unfinished(s, k), surrogate && k > 1 ? 0 : k);
        }
        CHECK_EQ(plain_text_unfinished(s, n), 0);
    }
}

TEST(bytes_that_are_not_utf8_are_not_plain)
{
    static const char *const malformed[] = {
        "\x80",
        "\x9b[2J",
        "\xbf",
        "\xc0\xaf",
        "\xc1\xbf",
        "\xe0\x80\xaf",
        "\xed\xa0\x80",
        "\xf0\x80\x80\xaf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3(",
        "\xe2\x82(",
    };
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        CHECK_EQ(plain_text_length(malformed[i], strlen(malformed[i])), 0);
    CHECK_EQ(plain_text_unfinished("a\x80", 2), 0);
    CHECK_EQ(plain_text_unfinished("\x80\x80\x80\x80", 4), 0);
    CHECK_EQ(plain_text_unfinished("a", 1), 0);
    CHECK_EQ(plain_text_unfinished("", 0), 0);
}
