/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/json_reader.h"
#include "cli/json_out.h"

static json_text_span span(const char *text)
{
    return (json_text_span){text, strlen(text)};
}

static bool is_json(const char *text)
{
    json_reader r;
    json_reader_init(&r, text, strlen(text));
    const bool ok = json_skip(&r) && json_end(&r);
    json_reader_free(&r);
    return ok;
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

TEST(only_an_object_is_an_object)
{
    failure err;
    CHECK(json_text_check_object(span(" {\"a\": \"\\n\"} "), NULL));
    CHECK(!json_text_check_object(span(" [1]"), &err));
    CHECK_EQ(err.place, 1);
    CHECK_STR(err.text, "not an object");
    CHECK(!json_text_check_object(span(""), &err));
    CHECK_STR(err.text, "not an object");
    CHECK(!json_text_check_object(span("{\"a\": tru}"), &err));
    CHECK_EQ(err.place, 6);
    CHECK_STR(err.text, "expected a value");
    CHECK(!json_text_check_object(span("{} x"), &err));
    CHECK_EQ(err.place, 3);
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

TEST(keys_and_strings_may_be_written_with_escapes)
{
    json_text_span value;
    CHECK(json_text_find(span("{\"na\\u006de\": \"\\u0062ytes\" }"), "name", &value));
    CHECK_EQ(value.n_bytes, strlen("\"\\u0062ytes\""));
    CHECK(json_text_is_string(value, "bytes"));
}

TEST(strings_are_compared)
{
    CHECK(json_text_is_string(span("\"bytes\""), "bytes"));
    CHECK(json_text_is_string(span("\"\""), ""));
    CHECK(!json_text_is_string(span("\"bytes2\""), "bytes"));
    CHECK(!json_text_is_string(span("\"byte\""), "bytes"));
    CHECK(!json_text_is_string(span("1234567"), "23456"));
    CHECK(!json_text_is_string(span(""), ""));
}

TEST(white_space_between_parts_is_not_printed)
{
    CHECK_STR(printed("{ \"a \\\" b\" :\n [ 1 ,\t\"x y\" ] }\n"), "{\"a \\\" b\":[1,\"x y\"]}");
}

TEST(strings_are_escaped)
{
    CHECK_STR(printed_string("a\"b\\c\n\t\x01\x7f", 9), "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"");
    CHECK_STR(printed_string("\0", 1), "\"\\u0000\"");
    CHECK_STR(printed_string("\xc3\xa4", 2), "\"\xc3\xa4\"");
    CHECK_STR(printed_string("a\xff\xc3z", 4), "\"a\\ufffd\\ufffdz\"");
    CHECK_STR(printed_string("\xc3\xa4", 1), "\"\\ufffd\""); /* must not read the next byte */
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
        if (!is_json(text))
            CHECK_FAIL("bytes %u %u: %s", i & 255, i >> 8, text);
    }
}
