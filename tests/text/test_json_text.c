#include "support/check.h"

#include "cli/cli.h"
#include "text/json_text.h"

static json_text_span span(const char *text)
{
    return (json_text_span){text, strlen(text)};
}

/* A span in memory of exactly its size, so that a sanitizer sees every read behind it. */
static bool is_json(const char *text, size_t n_bytes)
{
    char *copy = malloc(n_bytes ? n_bytes : 1);
    memcpy(copy, text, n_bytes);
    bool ok = json_text_check((json_text_span){copy, n_bytes}, NULL);
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

static char printed_text[256];

static FILE *open_text(void)
{
    memset(printed_text, 0, sizeof printed_text);
    FILE *out = fmemopen(printed_text, sizeof printed_text - 1, "w");
    CHECK(out);
    return out;
}

static const char *printed(const char *value)
{
    FILE *out = open_text();
    json_text_print(out, span(value));
    fclose(out);
    return printed_text;
}

static const char *printed_string(const char *s, size_t n_bytes)
{
    FILE *out = open_text();
    json_text_print_string(out, s, n_bytes);
    fclose(out);
    return printed_text;
}

TEST(accepts_every_kind_of_value)
{
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "\"\"",
                                        "0",
                                        "-0",
                                        "-1",
                                        "10",
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
                                        "{\"a\":1,\"a\":2}",
                                        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\ude00\"",
                                        "\"\xc3\xa4\"",
                                        "\"\xe2\x82\xac\"",
                                        "\"\xf0\x9f\x98\x80\"",
                                        "\"\xed\x9f\xbf\"",
                                        "\"\xf4\x8f\xbf\xbf\"",
                                        "\"\x7f\"",
                                        NULL};
    all_are(true, texts);
}

TEST(refuses_what_is_not_json)
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
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{a:1}",
                                        "{'a':1}",
                                        "{1:2}",
                                        "{\"a\":1 \"b\":2}",
                                        "01",
                                        "-",
                                        "+1",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "1e+",
                                        "0x10",
                                        "NaN",
                                        "Infinity",
                                        "-Infinity",
                                        "tru",
                                        "True",
                                        "nul",
                                        "nullx",
                                        "1 2",
                                        "{} {}",
                                        "[] ,",
                                        "\"",
                                        "\"a",
                                        "\"\\\"",
                                        "\"\\x41\"",
                                        "\"\\u12\"",
                                        "\"\\u12g4\"",
                                        "\"a\nb\"",
                                        "\"a\tb\"",
                                        "// x\n1",
                                        "/* */ 1",
                                        "\xef\xbb\xbf{}",
                                        NULL};
    all_are(false, texts);
}

TEST(refuses_strings_that_are_not_utf8)
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

TEST(refuses_a_zero_byte_anywhere)
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

TEST(refuses_every_proper_prefix_of_an_object)
{
    static const char text[] = "{\"a\\u00e4\xc3\xa4\": [1.5e3, true, null, {\"b\": \"c\"}]}";
    CHECK(is_json(text, sizeof text - 1));
    for (size_t n = 0; n < sizeof text - 1; n++) {
        if (is_json(text, n))
            CHECK_FAIL("the first %zu bytes were accepted", n);
    }
}

TEST(nesting_ends_at_the_limit)
{
    char text[2 * (JSON_TEXT_MAX_DEPTH + 1)];
    for (size_t depth = JSON_TEXT_MAX_DEPTH; depth <= JSON_TEXT_MAX_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        CHECK_INT(is_json(text, 2 * depth), depth == JSON_TEXT_MAX_DEPTH);
    }
}

TEST(errors_name_the_byte)
{
    json_text_error err;
    CHECK(!json_text_check(span("{\"a\": tru}"), &err));
    CHECK_EQ(err.offset, 6);
    CHECK(!json_text_check(span("[1, 2} "), &err));
    CHECK_EQ(err.offset, 5);
    CHECK(!json_text_check_object(span(" [1]"), &err));
    CHECK_EQ(err.offset, 1);
    CHECK_STR(err.reason, "not an object");
    CHECK(!json_text_check_object(span("{} x"), &err));
    CHECK_EQ(err.offset, 3);
}

TEST(finds_members_of_the_outer_object_only)
{
    json_text_span value, object = span(" {\"x\": {\"name\": 1}, \"y\" : [ \"name\" ],"
                                        " \"name\" :  \"n\\\"}\"  , \"z\": 7 , \"z\": 8} ");
    CHECK(json_text_check_object(object, NULL));
    CHECK(json_text_find(object, "name", &value));
    CHECK_EQ(value.n_bytes, strlen("\"n\\\"}\""));
    CHECK(memcmp(value.text, "\"n\\\"}\"", value.n_bytes) == 0);
    CHECK(json_text_find(object, "z", &value));
    CHECK(value.n_bytes == 1 && *value.text == '7');
    CHECK(json_text_find(object, "x", &value));
    CHECK(json_text_find(value, "name", &value));
    CHECK(value.n_bytes == 1 && *value.text == '1');
    value = (json_text_span){0};
    CHECK(!json_text_find(object, "nam", &value));
    CHECK(value.text == NULL && value.n_bytes == 0);
    CHECK(!json_text_find(object, "names", &value));
    CHECK(!json_text_find(span("{}"), "a", &value));
    CHECK(!json_text_find(span("[\"a\"]"), "a", &value));
    CHECK(!json_text_find(span("\"a\""), "a", &value));
}

TEST(compares_strings_as_written)
{
    CHECK(json_text_is_string(span("\"bytes\""), "bytes"));
    CHECK(json_text_is_string(span("\"\""), ""));
    CHECK(!json_text_is_string(span("\"bytes2\""), "bytes"));
    CHECK(!json_text_is_string(span("\"byte\""), "bytes"));
    CHECK(!json_text_is_string(span("1234567"), "23456"));
    CHECK(!json_text_is_string(span(""), ""));
}

TEST(white_space_between_parts_does_not_count)
{
    CHECK(json_text_same(span("{\"a\": [1, 2]}"), span("{ \"a\":\n[1,2] }")));
    CHECK(!json_text_same(span("{\"a b\": 1}"), span("{\"ab\": 1}")));
    CHECK(!json_text_same(span("{\"a\": 1}"), span("{\"a\": 12}")));
    CHECK(!json_text_same(span("\"\\\" a\""), span("\"\\\"a\"")));
    CHECK_STR(printed("{ \"a \\\" b\" :\n [ 1 ,\t\"x y\" ] }\n"), "{\"a \\\" b\":[1,\"x y\"]}");
}

TEST(strings_are_escaped)
{
    CHECK_STR(printed_string("a\"b\\c\n\t\x01\x7f", 9), "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"");
    CHECK_STR(printed_string("\0", 1), "\"\\u0000\"");
    CHECK_STR(printed_string("\xc3\xa4", 2), "\"\xc3\xa4\"");
    CHECK_STR(printed_string("a\xff\xc3z", 4), "\"a\\ufffd\\ufffdz\"");
    CHECK_STR(printed_string("\xc3\xa4", 1), "\"\\ufffd\""); /* must not read the byte behind */
    CHECK_STR(printed_string("", 0), "\"\"");
    CHECK_STR(printed_string("\xc2\x9b\xe2\x80\xae\xe2\x80\x9c", 8),
              "\"\\u009b\\u202e\xe2\x80\x9c\"");
}

TEST(what_terminals_obey_is_escaped_in_text_that_is_passed_on)
{
    CHECK_STR(printed("{\"\xc2\x9b\": \"\x7f\xe2\x80\xae \xc3\xa4\"}"),
              "{\"\\u009b\":\"\\u007f\\u202e \xc3\xa4\"}");
}

TEST(each_maximal_part_that_is_not_utf8_is_one_replacement_character)
{
    CHECK_STR(printed_string("\xe2\x82z", 3), "\"\\ufffdz\"");
    CHECK_STR(printed_string("\xf0\x9f\x98", 3), "\"\\ufffd\"");
    CHECK_STR(printed_string("\xf0\x9f\xf0\x9f\x98\x80", 6), "\"\\ufffd\xf0\x9f\x98\x80\"");
    CHECK_STR(printed_string("\xed\xa0\x80", 3), "\"\\ufffd\\ufffd\\ufffd\"");
    CHECK_STR(printed_string("\xe0\x80", 2), "\"\\ufffd\\ufffd\"");
    CHECK_STR(printed_string("\x80\xbf", 2), "\"\\ufffd\\ufffd\"");
}

TEST(every_printed_string_is_json)
{
    char bytes[3];
    for (unsigned i = 0; i < 256 * 256; i++) {
        bytes[0] = (char)(i & 255);
        bytes[1] = (char)(i >> 8);
        bytes[2] = 'x';
        const char *text = printed_string(bytes, 3);
        if (!is_json(text, strlen(text)))
            CHECK_FAIL("bytes %u %u: %s", i & 255, i >> 8, text);
    }
}
