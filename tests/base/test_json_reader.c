/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of JSON: what it accepts, where it stops, and what strings and numbers are. */
#include "support/check.h"
#include "support/exact_copy.h"

#include <math.h>

#include "base/json_reader.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof *(array))

static bool is_json(const char *text, size_t n_bytes)
{
    json_reader r;
    char *copy = exact_copy(text, n_bytes);
    json_reader_init(&r, copy, n_bytes);
    const bool ok = json_skip(&r) && json_end(&r);
    CHECK(ok == (r.failure[0] == '\0'));
    CHECK(r.failure_at <= n_bytes);
    CHECK(r.buffer == NULL); /* what is skipped is not copied */
    json_reader_free(&r);
    free(copy);
    return ok;
}

static void all_are(bool expected, const char *const *texts)
{
    for (; *texts; texts++) {
        if (is_json(*texts, strlen(*texts)) != expected)
            CHECK_FAIL("%s: taken for %s", *texts, expected ? "something else" : "JSON");
    }
}

TEST(json_of_every_kind_is_accepted)
{
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "\"\"",
                                        "0",
                                        "-0",
                                        "-1",
                                        "1.5",
                                        "1e9",
                                        "1E+09",
                                        "1.25e-3",
                                        "true",
                                        "false",
                                        "null",
                                        " { } ",
                                        "\t[\n1 ,\r2 ] ",
                                        "{\"a\":1,\"b\":[{\"c\":null}]}",
                                        "[[],{},[{}]]",
                                        "{\"a\":1,\"a\":2}",
                                        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\ude00\"",
                                        "\"\x7f\"",
                                        "\"\xf4\x8f\xbf\xbf\"",
                                        "123456789012345678901234567890",
                                        "[1,2,3]",
                                        "10",
                                        "\"\xc3\xa4\"",
                                        "\"\xe2\x82\xac\"",
                                        "\"\xf0\x9f\x98\x80\"",
                                        "\"\xed\x9f\xbf\"",
                                        NULL};
    all_are(true, texts);
}

TEST(what_is_not_json_is_refused)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        "[1",
                                        "[1,",
                                        "[1,]",
                                        "[,1]",
                                        "[1 2]",
                                        "[1}",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{,}",
                                        "{a:1}",
                                        "{1:2}",
                                        "{\"a\":1 \"b\":2}",
                                        "{\"a\":1]",
                                        "01",
                                        "-",
                                        "+1",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "1e+",
                                        "0x10",
                                        "NaN",
                                        "-Infinity",
                                        "tru",
                                        "True",
                                        "nul",
                                        "truefalse",
                                        "1 2",
                                        "\"",
                                        "\"\\\"",
                                        "\"\\x\"",
                                        "\"\\u12\"",
                                        "\"\\u12g4\"",
                                        "\"\\ud83d\"",
                                        "\"\\ude00\"",
                                        "\"\\ud83d\\u0041\"",
                                        "\"\\ud83dx\"",
                                        "\"a\nb\"",
                                        "\"\xc0\x80\"",
                                        "'a'",
                                        "\xef\xbb\xbf{}",
                                        "{'a':1}",
                                        "Infinity",
                                        "nullx",
                                        "{} {}",
                                        "[] ,",
                                        "\"a",
                                        "\"\\x41\"",
                                        "\"a\tb\"",
                                        "// x\n1",
                                        "/* */ 1",
                                        NULL};
    all_are(false, texts);
}

TEST(strings_that_are_not_utf8_are_refused)
{
    static const char *const texts[] = {"\"\x80\"",             /* a continuation byte alone */
                                        "\"\xc3\"",             /* cut off */
                                        "\"\xe2\x82\"",         /* cut off */
                                        "\"\xf0\x9f\x98\"",     /* cut off */
                                        "\"\xc0\xaf\"",         /* overlong */
                                        "\"\xe0\x9f\xbf\"",     /* overlong */
                                        "\"\xf0\x8f\xbf\xbf\"", /* overlong */
                                        "\"\xed\xa0\x80\"",     /* a surrogate */
                                        "\"\xf4\x90\x80\x80\"", /* above U+10FFFF */
                                        "\"\xff\"",
                                        "\"\\ud800\"",
                                        "\"\\udc00\"",
                                        "\"\\ud800\\u0041\"",
                                        "\"\\ud800x\"",
                                        NULL};
    all_are(false, texts);
}

TEST(a_zero_byte_is_refused_anywhere)
{
    static const char text[] = "{\"a\": [1, \"b\"]}";
    for (size_t i = 0; i <= sizeof text - 1; i++) {
        char copy[sizeof text + 1];
        memcpy(copy, text, i);
        copy[i] = '\0';
        memcpy(copy + i + 1, text + i, sizeof text - 1 - i);
        if (is_json(copy, sizeof text))
            CHECK_FAIL("a zero byte at %zu was accepted", i);
    }
}

TEST(json_ends_early_at_every_byte)
{
    static const char text[] =
        "{\"a\\u00e4\xc3\xa4\": [1.5e3, -2, true, null, \"\\ud83d\\ude00 x\"],"
        " \"b\": {\"c\": false}}";
    for (size_t n = 0; n < sizeof text - 1; n++)
        CHECK(!is_json(text, n));
    CHECK(is_json(text, sizeof text - 1));
}

TEST(json_nests_128_deep_and_no_deeper)
{
    for (size_t depth = 1; depth < 400; depth++) {
        char text[1024];
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        CHECK(is_json(text, depth * 2) == (depth <= JSON_MAX_DEPTH));
    }
}

TEST(failures_say_where_and_what_is_needed)
{
    static const struct {
        const char *json, *reason;
        size_t at;
    } cases[] = {
        {"{\"a\": tru}", "expected a value", 6},
        {"[1, 2} ", "expected ',' or ']'", 5},
        {"{\"a\": 1 2}", "expected ',' or '}'", 8},
        {"{\"a\" 1}", "expected ':'", 5},
        {"{\"a\": 1,}", "expected a key in quotes", 8},
        {"[1,]", "expected a value", 3},
        {"[01]", "expected ',' or ']'", 2},
        {"[-]", "expected a digit", 2},
        {"[1.]", "expected a digit", 3},
        {"[1e+]", "expected a digit", 4},
        {"\"a\\x41\"", "unknown escape", 3},
        {"\"\\u12g4\"", "\\u needs four hexadecimal digits", 5},
        {"\"\\ud83d\\u12g4\"", "\\u needs four hexadecimal digits", 11},
        {"\"\\ud83d\\x\"", "a lone surrogate", 7},
        {"\"\\ud83d\\u0041\"", "a lone surrogate", 13},
        {"\"\\ude00\"", "a lone surrogate", 7},
        {"\"a\nb\"", "a control character in a string", 2},
        {"{\"a\": \"\xff\"}", "not UTF-8", 7},
        {"{} x", "trailing data after the value", 3},
        {" ", "the text ends too early", 1},
        {"{\"a", "the text ends too early", 3},
        {"{\"a\": 1", "the text ends too early", 7},
        {"[1.", "the text ends too early", 3},
        {"\"\\u1", "the text ends too early", 4},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        json_reader r;
        json_reader_init(&r, cases[i].json, strlen(cases[i].json));
        CHECK(!(json_skip(&r) && json_end(&r)));
        CHECK_STR(r.failure, cases[i].reason);
        CHECK_EQ(r.failure_at, cases[i].at);
        json_reader_free(&r);
    }
}

TEST(strings_are_decoded)
{
    static const struct {
        const char *json, *text;
        size_t n_bytes;
    } cases[] = {{"\"plain\"", "plain", 5},
                 {"\"\"", "", 0},
                 {"\"\\u0000\"", "\0", 1},
                 {"\"a\\tb\\\\c\"", "a\tb\\c", 5},
                 {"\"\\b\\f\\n\\r\\/\\\"\"", "\b\f\n\r/\"", 6},
                 {"\"\\u0120x\\uD83D\\uDE00\"", "\xc4\xa0x\xf0\x9f\x98\x80", 7},
                 {"\"\\uffff\\ud7ff\\ue000\"", "\xef\xbf\xbf\xed\x9f\xbf\xee\x80\x80", 9},
                 {"\"\xe2\x96\x81\\u2581\"", "\xe2\x96\x81\xe2\x96\x81", 6}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        json_reader r;
        json_string s;
        json_reader_init(&r, cases[i].json, strlen(cases[i].json));
        CHECK(json_read_string(&r, &s));
        CHECK_EQ(s.n_bytes, cases[i].n_bytes);
        CHECK(memcmp(s.s, cases[i].text, s.n_bytes) == 0);
        CHECK(json_end(&r));
        json_reader_free(&r);
    }
}

static double number_of(const char *text)
{
    json_reader r;
    double x = 0;
    json_reader_init(&r, text, strlen(text));
    if (!json_read_number(&r, &x) || !json_end(&r))
        CHECK_FAIL("%s: %s", text, r.failure);
    json_reader_free(&r);
    return x;
}

/* The values are what Tokenizer.from_str of tokenizers 0.23.3 makes of a piece's score. */
TEST(numbers_are_those_of_tokenizers_also_where_not_the_nearest)
{
    CHECK(number_of("-9.210340371976182") == -9.210340371976182);
    CHECK(number_of("-10.443400382995605") == -10.443400382995604); /* one unit off */
    CHECK(number_of("-12.345678901234567") == -12.345678901234567);
    CHECK(number_of("0.1234567890123456789012345") == 0.12345678901234568);
    CHECK(number_of("123456789012345678901234567890.5") == 1.2345678901234568e+29);
    CHECK(number_of("1e-5") == 1e-05);
    CHECK(number_of("5e-324") == 5e-324);
    CHECK(number_of("1.7976931348623157e308") == 1.7976931348623157e308);
    CHECK(number_of("4.35e-300") == 4.35e-300);
    CHECK(number_of("0e999999999999") == 0);
    CHECK(number_of("1e-999999999999") == 0);
    CHECK(number_of("18446744073709551615") == 18446744073709551615.0);
    CHECK(number_of("18446744073709551616") == 18446744073709551616.0);
    CHECK(signbit(number_of("-0.0")) && signbit(number_of("-0")));
    CHECK(number_of("-5") == -5);
}

TEST(numbers_that_are_too_large_are_refused)
{
    static const char *const texts[] = {"1e309", "-1e309", "1e99999999999999999999", "123e307"};
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        json_reader r;
        double x;
        json_reader_init(&r, texts[i], strlen(texts[i]));
        CHECK(!json_read_number(&r, &x));
        CHECK_STR(r.failure, "a number that is too large");
        json_reader_free(&r);
    }
}

TEST(ids_are_whole_numbers)
{
    static const char *const bad[] = {"-1", "1.0", "1e2", "18446744073709551616", "\"1\"", "null"};
    json_reader r;
    uint64_t id = 0;
    json_reader_init(&r, "18446744073709551615", 20);
    CHECK(json_read_uint(&r, &id));
    CHECK_EQ(id, UINT64_MAX);
    json_reader_free(&r);
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        json_reader_init(&r, bad[i], strlen(bad[i]));
        CHECK(!json_read_uint(&r, &id));
        json_reader_free(&r);
    }
}

TEST(fields_are_found_and_unknown_ones_named)
{
    static const char text[] = "{\"b\": [1, {\"c\": 2}], \"a\": \"x\\n\", \"d\": null} ";
    json_string s = {"default", 7};
    bool flag = true;
    json_field fields[] = {{"a", .text = &s}, {"b", 0}, {"d", .flag = &flag}, {"e", .flag = &flag}};
    json_reader r;
    json_reader_init(&r, text, sizeof text - 1);
    CHECK(json_read_fields(&r, "thing", fields, 4));
    CHECK(json_string_is(s, "x\n") && flag);
    CHECK(json_field_string(&r, &fields[0], &s) && json_string_is(s, "x\n"));
    CHECK_INT(json_field_kind(&r, &fields[1]), JSON_ARRAY);
    CHECK_INT(json_field_kind(&r, &fields[3]), JSON_NONE);
    CHECK(json_field_given(&r, &fields[0]) && !json_field_given(&r, &fields[2]));
    CHECK(json_end(&r)); /* looking at fields has not moved it */
    json_reader_free(&r);

    json_field one[] = {{"a", .flag = &flag}};
    json_reader_init(&r, "{\"a\": 1}", 8);
    CHECK(!json_read_fields(&r, "thing", one, 1));
    json_reader_free(&r);
    one[0].at = 0;
    json_reader_init(&r, "{\"a\": 1, \"zz\": 2}", 17);
    CHECK(!json_read_fields(&r, "thing", one, 1));
    CHECK_STR(r.failure, "thing: the field \"zz\" is not supported");
    json_reader_free(&r);
    one[0].at = 0;
    json_reader_init(&r, "{\"a\": 1, \"a\": 2}", 16);
    CHECK(!json_read_fields(&r, "thing", one, 1));
    CHECK_STR(r.failure, "thing: the field \"a\" appears twice");
    json_reader_free(&r);
}
