/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_cases - where the readers of JSON agree and where they differ, in one table: metadata
 * of a dataset (json_text.h), a tokenizer file (json_reader.h), and a line of `tokmap pack`, also
 * with --strict-json (json_line.h). */
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "formats/json_line.h"
#include "support/check.h"

#define NESTED(n) "{\"text\":\"a\",\"x\":%" #n "}" /* the % stands for so many [ and ] */
#define REFUSED NULL

/* The text that each finds, REFUSED, or "" if it finds none. */
typedef struct json_case {
    const char *json;
    const char *metadata; /* the value of "text", as it stands there */
    const char *fields;   /* json_read_fields of "text" and "x" */
    const char *line, *strict;
} json_case;

static const json_case CASES[] = {
    {"{\"text\":\"a\"}", "\"a\"", "a", "a", "a"},
    {" { \"text\" :\t\"a\" }\n", "\"a\"", "a", "a", "a"},
    {"{\"x\":1}", "", REFUSED, "", ""},
    {"[\"a\"]", REFUSED, REFUSED, REFUSED, REFUSED},
    {"", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"a\"} 1", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"a\",}", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":'a'}", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"a\x01\"}", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"\\x41\"}", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"\\u0041\\n\\/\"}", "\"\\u0041\\n\\/\"", "A\n/", "A\n/", "A\n/"},
    /* A key that is there twice: the first one, an error, the last one. */
    {"{\"text\":\"a\",\"text\":\"b\"}", "\"a\"", REFUSED, "b", "b"},
    /* A key with escapes is the key that they stand for. */
    {"{\"\\u0074ext\":\"a\"}", "\"a\"", "a", "a", "a"},
    /* Surrogates: a pair is a character; a lone one is an error, or U+FFFD. */
    {"{\"text\":\"\\ud83d\\ude00\"}", "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80",
     "\xf0\x9f\x98\x80"},
    {"{\"text\":\"\\ud800\"}", REFUSED, REFUSED, "\xef\xbf\xbd", "\xef\xbf\xbd"},
    {"{\"text\":\"\\udc00\\ud800\"}", REFUSED, REFUSED, "\xef\xbf\xbd\xef\xbf\xbd",
     "\xef\xbf\xbd\xef\xbf\xbd"},
    /* Bytes that are not UTF-8: lines leave them to --utf8. */
    {"{\"text\":\"\xff\"}", REFUSED, REFUSED, "\xff", "\xff"},
    {"{\"text\":\"\xc3\xa4\"}", "\"\xc3\xa4\"", "\xc3\xa4", "\xc3\xa4", "\xc3\xa4"},
    /* What Python writes for floats without a number. */
    {"{\"text\":\"a\",\"x\":NaN}", REFUSED, REFUSED, "a", REFUSED},
    {"{\"text\":\"a\",\"x\":-Infinity}", REFUSED, REFUSED, "a", REFUSED},
    {"{\"text\":\"a\",\"x\":nan}", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"a\",\"x\":01}", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"a\",\"x\":1.}", REFUSED, REFUSED, REFUSED, REFUSED},
    {"{\"text\":\"a\",\"x\":-0.5e+3}", "\"a\"", "a", "a", "a"},
    {"{\"text\":\"a\",\"x\":1e999}", "\"a\"", "a", "a", "a"},
    /* As deep as JSON_MAX_DEPTH, and one deeper. */
    {NESTED(127), "\"a\"", "a", "a", "a"},
    {NESTED(128), REFUSED, REFUSED, REFUSED, REFUSED},
};

/* Returns the text with what % stands for, malloced, with 64 readable bytes after it. */
static char *expand(const char *json, size_t *n_bytes)
{
    const char *percent = strchr(json, '%');
    const size_t n = percent ? strtoul(percent + 1, NULL, 10) : 0;
    char *text = calloc(1, strlen(json) + 2 * n + 64);
    CHECK(text);
    *n_bytes = strlen(json);
    memcpy(text, json, *n_bytes);
    if (percent) {
        const size_t at = (size_t)(percent - json);
        memset(text + at, '[', n);
        memset(text + at + n, ']', n);
        memcpy(text + at + 2 * n, "}", 2);
        *n_bytes = at + 2 * n + 1;
    }
    return text;
}

static void expect(const char *who, const char *json, const char *wanted, const char *found,
                   size_t n_bytes)
{
    const bool same = wanted ? found && strlen(wanted) == n_bytes && !memcmp(wanted, found, n_bytes)
                             : found == NULL;
    if (!same)
        CHECK_FAIL("%s, %s: found %.*s, wanted %s", json, who, found ? (int)n_bytes : 7,
                   found ? found : "REFUSED", wanted ? wanted : "REFUSED");
}

static void read_metadata(const json_case *c, const char *text, size_t n_bytes)
{
    const json_text_span object = {text, n_bytes};
    json_text_span value = {"", 0};
    if (!json_text_check_object(object, NULL))
        value.text = NULL;
    else
        json_text_find(object, "text", &value);
    expect("metadata", c->json, c->metadata, value.text, value.n_bytes);
}

static void read_fields(const json_case *c, const char *text, size_t n_bytes)
{
    json_reader r;
    json_string found = {"", 0};
    json_field fields[] = {{"text", .kind = JSON_STRING, .text = &found},
                           {"x", .kind = JSON_NONE, .optional = true}};
    json_reader_init(&r, text, n_bytes);
    const bool read = json_read_fields(&r, "the file", fields, 2) && json_end(&r);
    expect("fields", c->json, c->fields, read ? found.s : NULL, found.n_bytes);
    json_reader_free(&r);
}

static void read_line(const json_case *c, const char *text, size_t n_bytes, bool strict)
{
    json_paths *paths = json_paths_new("text", NULL);
    uint8_t *out = malloc(n_bytes + 1);
    json_line_result found;
    CHECK(paths && out);
    paths->strict = strict;
    const json_line_status status =
        json_line_text(paths, (const uint8_t *)text, n_bytes, out, NULL, &found);
    const bool none = status == JSON_LINE_NO_FIELD;
    expect(strict ? "strict line" : "line", c->json, strict ? c->strict : c->line,
           none                     ? ""
           : status == JSON_LINE_OK ? (const char *)found.text
                                    : NULL,
           none ? 0 : found.n_bytes);
    json_paths_free(paths);
    free(out);
}

TEST(the_readers_of_json_differ_only_where_the_table_says)
{
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t n_bytes;
        char *text = expand(CASES[i].json, &n_bytes);
        read_metadata(&CASES[i], text, n_bytes);
        read_fields(&CASES[i], text, n_bytes);
        read_line(&CASES[i], text, n_bytes, false);
        read_line(&CASES[i], text, n_bytes, true);
        free(text);
    }
}
