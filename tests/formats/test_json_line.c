/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_line.c - the line scanner against a naive reader: every engine, every alignment. */
#include "formats/json_line.h"

#include "support/check.h"
#include "oracles/json_oracle.h"

#define PADDING 64

static const simd_level levels[] = {SIMD_SCALAR, SIMD_AVX2};
enum {
    N_LEVELS = sizeof levels / sizeof *levels
};

/* ---- One line, every way ---- */

typedef struct path_parts {
    const char *dotted;
    const char *parts[4];
    size_t n_parts;
} path_parts;

static const path_parts path_text = {"text", {"text"}, 1};
static const path_parts path_deep = {"a.b", {"a", "b"}, 2};

static void take(oracle_result got, const oracle_result *expected, const uint8_t *line,
                 size_t n_bytes)
{
    if (!oracle_agrees(expected, &got))
        CHECK_FAIL("status %d at %zu, %zu bytes; expected %d at %zu, %zu bytes: %.*s", got.status,
                   got.error_offset, got.n_bytes, expected->status, expected->error_offset,
                   expected->n_bytes, (int)n_bytes, (const char *)line);
    free(got.text);
}

/* Scans the line with every engine. Returns the status. */
static json_line_status check_line(const path_parts *path, const void *line, size_t n_bytes,
                                   size_t alignment)
{
    oracle_result expected = oracle_read(path->parts, path->n_parts, line, n_bytes);
    json_paths *p = json_paths_new(path->dotted, NULL);
    p->strict = true; /* as the oracle; test_json_line.py compares with Python */
    for (size_t i = 0; i < N_LEVELS; i++) {
        p->level = levels[i];
        if (simd_works(levels[i]))
            take(scan_line(p, line, n_bytes, alignment), &expected, line, n_bytes);
    }
    json_paths_free(p);
    free(expected.text);
    return expected.status;
}

/* `n` times `open`, the middle, `n` times `close`. */
static json_line_status check_nested(size_t n, const char *open, const char *middle,
                                     const char *close)
{
    size_t n_bytes = n * (strlen(open) + strlen(close)) + strlen(middle);
    char *line = malloc(n_bytes + 1), *at = line;
    for (size_t i = 0; i < n; i++)
        at = stpcpy(at, open);
    at = stpcpy(at, middle);
    for (size_t i = 0; i < n; i++)
        at = stpcpy(at, close);
    json_line_status status = check_line(&path_text, line, n_bytes, 0);
    free(line);
    return status;
}

TEST(depth_has_a_limit_and_costs_no_stack)
{
    CHECK_INT(check_nested(JSON_MAX_DEPTH, "[", "", "]"), JSON_LINE_NO_OBJECT);
    CHECK_INT(check_nested(JSON_MAX_DEPTH + 1, "[", "", "]"), JSON_LINE_MALFORMED);
    CHECK_INT(check_nested(JSON_MAX_DEPTH, "{\"text\":", "\"\"", "}"), JSON_LINE_NO_FIELD);
    CHECK_INT(check_nested(JSON_MAX_DEPTH + 1, "{\"text\":", "\"\"", "}"), JSON_LINE_MALFORMED);
    CHECK_INT(check_nested(1000000, "[", "", ""), JSON_LINE_MALFORMED);
}

/* ---- What the field is ---- */

typedef struct expected_line {
    const char *line;
    json_line_status status;
    const char *text; /* or the reason */
} expected_line;

static void check_expected(const path_parts *path, const expected_line *lines, size_t n_lines)
{
    for (size_t i = 0; i < n_lines; i++) {
        const expected_line *e = &lines[i];
        size_t n_bytes = strlen(e->line);
        CHECK_INT(check_line(path, e->line, n_bytes, i % 64), e->status);
        json_paths *p = json_paths_new(path->dotted, NULL);
        p->strict = true;
        json_line_result r;
        char line[256] = {0}, text[256] = {0};
        uint8_t out[256];
        memcpy(line, e->line, n_bytes);
        json_line_text(p, (const uint8_t *)line, n_bytes, out, NULL, &r);
        if (!r.reason)
            memcpy(text, r.text, r.n_bytes);
        CHECK_STR(r.reason ? r.reason : text, e->text);
        json_paths_free(p);
    }
}

TEST(field_is_the_last_of_its_name_as_in_python)
{
    static const expected_line lines[] = {
        {"{\"text\":\"a\"}", JSON_LINE_OK, "a"},
        {"{\"text\":\"\"}", JSON_LINE_OK, ""},
        {" { \"id\" : 1 , \"text\" : \"a\" } \r", JSON_LINE_OK, "a"},
        {"{\"text\":\"a\",\"text\":\"b\"}", JSON_LINE_OK, "b"},
        {"{\"text\":\"a\\n\",\"text\":\"b\"}", JSON_LINE_OK, "b"},
        {"{\"text\":\"a\",\"text\":\"b\\n\"}", JSON_LINE_OK, "b\n"},
        {"{\"text\":\"\\ud83d\",\"text\":\"b\"}", JSON_LINE_OK, "b"},
        {"{\"text\":1,\"text\":\"b\"}", JSON_LINE_OK, "b"},
        {"{\"text\":\"a\",\"text\":1}", JSON_LINE_NO_FIELD, "the field is not a string"},
        {"{\"text\":\"a\",\"text\":null}", JSON_LINE_NO_FIELD, "the field is null"},
        {"{\"text\":null,\"text\":\"a\"}", JSON_LINE_OK, "a"},
        {"{\"text\":null,\"text\":1}", JSON_LINE_NO_FIELD, "the field is not a string"},
        {"{\"text\":1,\"text\":null}", JSON_LINE_NULL, "the field is null"},
        {"{\"text\":nil}", JSON_LINE_MALFORMED, "expected a value"},
        {"{\"text\":[\"a\"]}", JSON_LINE_NO_FIELD, "the field is not a string"},
        {"{\"text\":{\"text\":\"a\"}}", JSON_LINE_NO_FIELD, "the field is not a string"},
        {"{\"x\":{\"text\":\"a\"}}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"x\":\"text\",\"y\":\"text\"}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"tex\":\"a\",\"textt\":\"b\",\"\":\"c\",\"Text\":\"d\"}", JSON_LINE_NO_FIELD,
         "the field is missing"},
        {"{}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"\\u0074\\u0065xt\":\"a\"}", JSON_LINE_OK, "a"},
        {"{\"te\\u0078t\\u0000\":\"a\"}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"[{\"text\":\"a\"}]", JSON_LINE_NO_OBJECT, "not an object"},
        {"\"text\"", JSON_LINE_NO_OBJECT, "not an object"},
        {"1", JSON_LINE_NO_OBJECT, "not an object"},
        {"null", JSON_LINE_NO_OBJECT, "not an object"},
        {"", JSON_LINE_MALFORMED, "the line ends too early"},
        {"{\"text\":\"a\"", JSON_LINE_MALFORMED, "the line ends too early"},
        {"{\"text\":\"a", JSON_LINE_MALFORMED, "the line ends too early"},
        {"{\"text\":\"a\"}}", JSON_LINE_MALFORMED, "trailing data after the value"},
        {"{\"text\":\"a\",\"x\":NaN}", JSON_LINE_MALFORMED,
         "expected a value; NaN and Infinity are not JSON"},
        {"{\"text\":\"a\",\"x\":-Infinity}", JSON_LINE_MALFORMED, "expected a digit"},
    };
    check_expected(&path_text, lines, sizeof lines / sizeof *lines);
}

TEST(constants_of_python_are_numbers_in_lines_of_one_piece_and_of_many)
{
    static const expected_line lines[] = {
        {"{\"text\":\"a\",\"x\":[NaN,Infinity, -Infinity ]}", JSON_LINE_OK, NULL},
        {"{\"x\":NaN,\"y\":-Infinity,\"text\":\"a\"}", JSON_LINE_OK, NULL},
        {"{\"text\":NaN}", JSON_LINE_NO_FIELD, "the field is not a string"},
        {"{\"text\":-Infinity}", JSON_LINE_NO_FIELD, "the field is not a string"},
        {"NaN", JSON_LINE_NO_OBJECT, "not an object"},
        {"-Infinity", JSON_LINE_NO_OBJECT, "not an object"},
        {"{\"text\":\"a\",\"x\":-NaN}", JSON_LINE_MALFORMED, "expected a digit"},
        {"{\"text\":\"a\",\"x\":1Infinity}", JSON_LINE_MALFORMED, "expected ',' or '}'"},
        {"{\"text\":\"a\",\"x\":Nan}", JSON_LINE_MALFORMED, "expected a value"},
        {"{\"text\":\"a\",\"x\":-Infinit}", JSON_LINE_MALFORMED, "expected a value"},
        {"Na", JSON_LINE_MALFORMED, "the line ends too early"},
    };
    json_paths *p = json_paths_new("text", NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const size_t n_bytes = strlen(lines[i].line);
        uint8_t line[128] = {0}, out[128];
        json_line_result r;
        memcpy(line, lines[i].line, n_bytes);
        CHECK_INT(json_line_text(p, line, n_bytes, out, NULL, &r), lines[i].status);
        CHECK_STR(r.reason ? r.reason : "", lines[i].text ? lines[i].text : "");
    }
    json_paths_free(p);
}

TEST(path_leads_through_objects_only)
{
    static const expected_line lines[] = {
        {"{\"a\":{\"b\":\"x\"}}", JSON_LINE_OK, "x"},
        {"{\"b\":\"no\",\"a\":{\"a\":{\"b\":\"no\"},\"b\":\"x\",\"c\":{\"b\":\"no\"}},\"c\":1}",
         JSON_LINE_OK, "x"},
        {"{\"a\":{\"b\":\"x\"},\"a\":{\"b\":\"y\"}}", JSON_LINE_OK, "y"},
        {"{\"a\":{\"b\":\"x\"},\"a\":{}}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"a\":{\"b\":\"x\"},\"a\":1}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"a\":{\"b\":\"x\",\"b\":[]}}", JSON_LINE_NO_FIELD, "the field is not a string"},
        {"{\"a\":{\"b\":null}}", JSON_LINE_NULL, "the field is null"},
        {"{\"a\":null}", JSON_LINE_NULL, "the field is null"},
        {"{\"a\":{\"b\":null},\"a\":{}}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"a\":{\"c\":null},\"b\":null}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"a\":[{\"b\":\"x\"}]}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"a\":\"b\",\"b\":\"x\"}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"a.b\":\"x\"}", JSON_LINE_NO_FIELD, "the field is missing"},
        {"{\"x\":{\"a\":{\"b\":\"no\"}}}", JSON_LINE_NO_FIELD, "the field is missing"},
    };
    static const path_parts empty = {"", {""}, 1}, inner = {"a..b", {"a", "", "b"}, 3},
                            replacement = {"\xef\xbf\xbd", {"\xef\xbf\xbd"}, 1};
    static const expected_line empty_lines[] = {{"{\"\":\"x\"}", JSON_LINE_OK, "x"}};
    static const expected_line inner_lines[] = {
        {"{\"a\":{\"\":{\"b\":\"x\"}}}", JSON_LINE_OK, "x"}};
    static const expected_line replacement_lines[] = {
        {"{\"\xef\xbf\xbd\":\"x\",\"\\ud800\":\"y\"}", JSON_LINE_OK, "x"},
        {"{\"\\ufffd\":\"x\"}", JSON_LINE_OK, "x"}};
    check_expected(&path_deep, lines, sizeof lines / sizeof *lines);
    check_expected(&empty, empty_lines, 1);
    check_expected(&inner, inner_lines, 1);
    check_expected(&replacement, replacement_lines, 2);
}

TEST(path_has_as_many_parts_as_a_line_may_be_deep)
{
    char dotted[JSON_MAX_DEPTH + 1] = {0};
    memset(dotted, '.', JSON_MAX_DEPTH - 1);
    json_paths *p = json_paths_new(dotted, NULL);
    CHECK(p != NULL);
    json_paths_free(p);
    dotted[JSON_MAX_DEPTH - 1] = '.';
    CHECK(json_paths_new(dotted, NULL) == NULL);
}

TEST(escapes_are_decoded)
{
    static const expected_line lines[] = {
        {"{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", JSON_LINE_OK, "\"\\/\b\f\n\r\t"},
        {"{\"text\":\"\\u0041\\u00e4\\u20AC\\uffff\"}", JSON_LINE_OK,
         "A\xc3\xa4\xe2\x82\xac\xef\xbf\xbf"},
        {"{\"text\":\"\\ud83d\\ude00\\uDBFF\\uDFFF\\uD800\\uDC00\"}", JSON_LINE_OK,
         "\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xf0\x90\x80\x80"},
        {"{\"text\":\"\\ud83d\"}", JSON_LINE_OK, "\xef\xbf\xbd"},
        {"{\"text\":\"\\ude00\\ud83d\"}", JSON_LINE_OK, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"{\"text\":\"\\ud83d\\ud83d\\ude00\"}", JSON_LINE_OK, "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"{\"text\":\"\\ud83d\\u0041\"}", JSON_LINE_OK,
         "\xef\xbf\xbd"
         "A"},
        {"{\"text\":\"\\ud83d\\n\\ude00\"}", JSON_LINE_OK, "\xef\xbf\xbd\n\xef\xbf\xbd"},
        {"{\"text\":\"\\ud83dx\\ude00\"}", JSON_LINE_OK, "\xef\xbf\xbdx\xef\xbf\xbd"},
        {"{\"text\":\"\\ud83d\xed\xb8\x80\"}", JSON_LINE_OK, "\xef\xbf\xbd\xed\xb8\x80"},
        {"{\"text\":\"\\ud83d\\ude0\"}", JSON_LINE_MALFORMED, "\\u needs four hexadecimal digits"},
        {"{\"text\":\"\\ud83d\\x\"}", JSON_LINE_MALFORMED, "unknown escape"},
    };
    check_expected(&path_text, lines, sizeof lines / sizeof *lines);
}

TEST(nul_is_ordinary)
{
    static const char line[] = "{\"text\":\"a\\u0000b\"}";
    static const uint8_t text[] = {'a', 0, 'b'};
    json_paths *p = json_paths_new("text", NULL);
    uint8_t padded[sizeof line + PADDING] = {0}, out[sizeof line];
    json_line_result r;
    memcpy(padded, line, sizeof line);
    CHECK_INT(json_line_text(p, padded, sizeof line - 1, out, NULL, &r), JSON_LINE_OK);
    CHECK(r.n_bytes == 3 && memcmp(r.text, text, 3) == 0);
    json_paths_free(p);
    CHECK_INT(check_line(&path_text, "{\"text\":\"a\0b\"}", 14, 0), JSON_LINE_MALFORMED);
}

TEST(bare_string_is_the_field_when_asked_for)
{
    static const char line[] = " \"a\\u00e4\" ";
    uint8_t padded[sizeof line + PADDING] = {0}, out[sizeof line];
    json_paths *text = json_paths_new("text", NULL), *other = json_paths_new("other", NULL);
    json_line_result r;
    memcpy(padded, line, sizeof line);
    text->bare_string = other->bare_string = true;
    CHECK_INT(json_line_text(text, padded, sizeof line - 1, out, NULL, &r), JSON_LINE_OK);
    CHECK(r.n_bytes == 3 && memcmp(r.text, "a\xc3\xa4", 3) == 0);
    CHECK_INT(json_line_text(other, padded, sizeof line - 1, out, NULL, &r), JSON_LINE_NO_OBJECT);
    json_paths_free(text);
    json_paths_free(other);
}

/* ---- Everywhere and anything ---- */

TEST(special_bytes_are_seen_at_every_place_of_every_alignment)
{
    static const char *const specials[] = {"\"",   "\\n",     "\\\"",           "\\",      "\x1f",
                                           "\x01", "\\u00e4", "\\ud83d\\ude00", "\\ud83d", "\x80"};
    for (size_t s = 0; s < sizeof specials / sizeof *specials; s++) {
        for (size_t place = 0; place < 150; place++) {
            char line[400];
            int n = snprintf(line, sizeof line, "{\"text\":\"%.*s%s%.*s\"}", (int)place,
                             "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                             specials[s], (int)(place * 7 % 90),
                             "--------------------------------------------------------------"
                             "--------------------------------------------------------------");
            check_line(&path_text, line, (size_t)n, (place * 5 + s) % 64);
        }
    }
    for (size_t alignment = 0; alignment < 128; alignment++)
        check_line(&path_text, "{\"text\":\"a\\tbcdefghijklmnopqrstuvwxyz0123456789\"}", 47,
                   alignment);
}

/* A line that is JSON, with up to two changes. */
static size_t make_line(char *line)
{
    static const char *const lines[] = {
        "{\"text\":\"x\\n\\u00e4\\ud83d\\ude00\",\"a\":[1,-2.5e+3,{\"text\":true}],\"b\":null}",
        "{\"a\":{\"c\":\"\",\"b\":\"\\ud83d y\",\"a\":{}},\"te\\u0078t\":\"\\\"\", \"text\" : "
        "\"z\"}",
        "{\"text\":null,\"a\":{\"\\u0062\":\"\\\\\"},\"a\":{\"b\":null}}",
        "[{\"text\":\"x\"}, 0]",
    };
    static const char *const pieces[] = {"\"",   "\\",   "{",    "}",         "[",       "]", ":",
                                         ",",    "0",    "-",    ".",         "e",       "+", " ",
                                         "\t",   "u",    "d",    "8",         "C",       "t", "f",
                                         "\x01", "\x80", "null", "\"text\":", "\\u0041", ""};
    size_t n_bytes = (size_t)(stpcpy(line, lines[check_below(4)]) - line);
    for (uint32_t n = check_below(3); n > 0; n--) {
        const size_t at = check_below((uint32_t)n_bytes), n_removed = check_below(2);
        const char *piece = pieces[check_below(sizeof pieces / sizeof *pieces)];
        const size_t n_added = strlen(piece);
        memmove(line + at + n_added, line + at + n_removed, n_bytes - at - n_removed);
        memcpy(line + at, piece, n_added);
        n_bytes += n_added - n_removed;
    }
    return n_bytes;
}

TEST(random_lines_agree_with_the_naive_reader)
{
    char line[300];
    uint64_t n_of[5] = {0};
    int n_lines = check_sanitized() ? 50000 : check_long() ? 500000 : 120000;
    for (int i = 0; i < n_lines; i++) {
        size_t n_bytes = make_line(line);
        n_of[check_line(i % 2 ? &path_text : &path_deep, line, n_bytes, check_below(64))]++;
    }
    printf("note %d random lines: %" PRIu64 " ok, %" PRIu64 " malformed, %" PRIu64
           " without the field, %" PRIu64 " null, %" PRIu64 " no objects\n",
           n_lines, n_of[0], n_of[1], n_of[2], n_of[3], n_of[4]);
    for (int i = 0; i < 5; i++)
        CHECK(n_of[i] > 0);
}

/* Of a key of more bytes than a suggestion has room for, nothing is kept. */
TEST(keys_that_are_too_long_are_not_suggested)
{
    for (size_t n = WORD_DISTANCE_LONGEST; n <= WORD_DISTANCE_LONGEST + 1; n++) {
        uint8_t name[WORD_DISTANCE_LONGEST + 1];
        char text[300], wanted[300];
        field_list fields = {0};
        tokmap_value values[1];
        failure err;
        CHECK(field_list_parse(&fields, "language", &err));
        json_paths *p = json_paths_new("text", &fields);
        CHECK(p != NULL);
        memset(name, 'x', sizeof name);
        memcpy(name, "language", 8);
        json_paths_begin(p, values);
        json_paths_see(p, p->keys, NULL, name, n, values);
        json_paths_end(p, values);
        bool always = false;
        CHECK(json_paths_missing(p, 0, &always, text, sizeof text));
        CHECK(always);
        snprintf(wanted, sizeof wanted, "no record of 1 has the field language%s%.*s",
                 n > WORD_DISTANCE_LONGEST ? "" : "; the nearest one is ",
                 n > WORD_DISTANCE_LONGEST ? 0 : (int)n, (const char *)name);
        CHECK_STR(text, wanted);
        json_paths_free(p);
        field_list_free(&fields);
    }
}
