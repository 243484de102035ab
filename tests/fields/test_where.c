/* SPDX-License-Identifier: Apache-2.0 */
/* test_where.c - expressions of --where: what holds, what is refused at which character, and the
 * limits. tests/fields/test_where.py compares random expressions with Python. */
#include "fields/where.h"

#include <float.h>
#include <math.h>

#include "support/check.h"

static tokmap_value integer(int64_t i)
{
    return (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = i};
}

static tokmap_value real(double x)
{
    return (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = x};
}

static tokmap_value string(const char *s)
{
    return (tokmap_value){.type = TOKMAP_VALUE_STRING, .text = s, .text_bytes = strlen(s)};
}

static const tokmap_value null_value;

/* With the value of x; y is null. */
static bool holds(const char *text, tokmap_value x)
{
    field_list l = {0};
    failure err;
    size_t index;
    CHECK(field_list_add(&l, "x", 1, &index, &err) && field_list_add(&l, "y", 1, &index, &err));
    where *w = where_compile(text, &l, &err);
    if (!w)
        CHECK_FAIL("%s: character %" PRIu64 ": %s", text, err.place, err.text);
    CHECK_EQ(l.n_fields, 2);
    const tokmap_value values[] = {x, null_value};
    const bool result = where_holds(w, values);
    where_free(w);
    field_list_free(&l);
    return result;
}

static void check_refused(const char *text, size_t character, const char *reason)
{
    field_list l = {0};
    failure err = {0};
    CHECK(!where_compile(text, &l, &err));
    CHECK_STR(err.text, reason);
    CHECK_EQ(err.place, character);
    field_list_free(&l);
}

TEST(numbers_and_strings_are_compared)
{
    CHECK(holds("x == 3", integer(3)) && !holds("x == 3", integer(4)));
    CHECK(holds("x != 3", integer(4)) && !holds("x != 3", integer(3)));
    CHECK(holds("3<x", integer(4)) && !holds("3<x", integer(3)));
    CHECK(holds("x<=3", integer(3)) && !holds("x<=3", integer(4)));
    CHECK(holds("x>=-3.5e0", real(-3.5)) && !holds("x>-3.5e0", real(-3.5)));
    CHECK(holds("x > -1e999", real(-1e308)) && holds("x < -1e999", real(-INFINITY)));
    CHECK(holds("x == true", integer(1)) && holds("x == false", integer(0)));
    CHECK(holds("x == \"en\"", string("en")) && !holds("x == 'en'", string("e")));
    CHECK(holds("x < 'b'", string("abc")) && holds("x < 'ab'", string("a")));
    CHECK(holds("x > '\\u00e4'", string("\xff")) && holds("x == ''", string("")));
    CHECK(holds("`x` == x", integer(7)));
}

TEST(null_nan_and_other_types_compare_false)
{
    static const char *const comparisons[] = {"x == 1",   "x != 1",   "x < 1",   "x <= 1", "x > 1",
                                              "x >= 1",   "1 == x",   "x == y",  "x != y", "y != x",
                                              "x == 'a'", "x != 'a'", "x < 'a'", "x > 'a'"};
    char text[64];
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        const bool text_literal = strchr(comparisons[i], '\'') != NULL;
        snprintf(text, sizeof text, "not (%s)", comparisons[i]);
        const tokmap_value not_comparable[] = {null_value, real(NAN),
                                               text_literal ? integer(0) : string("0")};
        for (size_t k = 0; k < 3; k++)
            CHECK(!holds(comparisons[i], not_comparable[k]) && holds(text, not_comparable[k]));
    }
    CHECK(holds("x is null", null_value) && !holds("x is not null", null_value));
    CHECK(!holds("x is null", real(NAN)) && holds("x is not null", integer(0)));
    CHECK(holds("x is not null and y is null", string("")));
    CHECK(holds("not x is null", string("")));
    CHECK(holds("x in (1, 2.5)", integer(1)) && holds("not x in (1, 'b')", integer(2)));
    CHECK(holds("x in ('a') and x == 'a' or y in (1)", string("a")));
    CHECK(!holds("x in (1, 2) or x == 'a' and y in (1)", string("a")));
}

TEST(or_binds_weaker_than_and_and_that_weaker_than_not)
{
    CHECK(holds("x == 1 or x == 2 and x == 3", integer(1)));
    CHECK(!holds("(x == 1 or x == 2) and x == 3", integer(1)));
    CHECK(holds("not x == 1 or x == 1", integer(1)) &&
          !holds("not (x == 1 or x == 1)", integer(1)));
    CHECK(!holds("not x == 1 and x == 1", integer(1)));
    CHECK(holds("not not x == 1 and not(x == 2 or not(x > 0))", integer(1)));
}

/* The hash names the file of a view: two expressions of the same tests must not share one. */
static uint64_t hash_of(const char *text)
{
    field_list l = {0};
    failure err;
    where *w = where_compile(text, &l, &err);
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    CHECK(w && hasher);
    where_hash(w, hasher);
    const uint64_t hash = tokmap_i_hasher_get(hasher);
    tokmap_i_hasher_close(hasher);
    where_free(w);
    field_list_free(&l);
    return hash;
}

TEST(expressions_of_the_same_tests_in_another_tree_have_other_hashes)
{
    static const char *const texts[] = {
        "(a == 1 and b == 1) or c == 1", "a == 1 and (b == 1 or c == 1)",
        "(a == 1 or b == 1) and c == 1", "a == 1 or (b == 1 and c == 1)",
        "a == 1 and b == 1 and c == 1",  "a == 1 or b == 1 or c == 1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t k = 0; k < i; k++)
            if (hash_of(texts[i]) == hash_of(texts[k]))
                CHECK_FAIL("%s and %s have the same hash", texts[k], texts[i]);
    CHECK_EQ(hash_of("a == 1 and b == 1 or c == 1"), hash_of(texts[0]));
}

/* A long double of x86 holds every int64 and every double. */
TEST(integers_and_doubles_compare_exactly)
{
    if (LDBL_MANT_DIG < 64)
        SKIP("long double has only %d bits", LDBL_MANT_DIG);
    static const int64_t integers[] = {0,
                                       1,
                                       -1,
                                       3,
                                       INT64_MAX,
                                       INT64_MAX - 1,
                                       INT64_MAX - 511,
                                       INT64_MAX - 512,
                                       INT64_MIN,
                                       INT64_MIN + 1,
                                       ((int64_t)1 << 53),
                                       ((int64_t)1 << 53) + 1,
                                       -((int64_t)1 << 53) - 1};
    static const double reals[] = {0.0,
                                   -0.0,
                                   0.5,
                                   -0.5,
                                   1.0,
                                   -1.0,
                                   1.5,
                                   3.0,
                                   0x1p53,
                                   -0x1p53,
                                   0x1p63,
                                   -0x1p63,
                                   0x1p64,
                                   -0x1p64,
                                   1e300,
                                   -1e300,
                                   INFINITY,
                                   -INFINITY,
                                   0x1.fffffffffffffp62,
                                   -0x1.0000000000001p63,
                                   0x1.0000000000001p53,
                                   5e-324,
                                   -5e-324};
    static const char *const signs[] = {"<", "==", ">", "<=", "!=", ">="};
    field_list l = {0};
    failure err;
    where *w[6];
    for (int s = 0; s < 6; s++) {
        char text[16];
        snprintf(text, sizeof text, "a %s b", signs[s]);
        w[s] = where_compile(text, &l, &err);
        CHECK(w[s] != NULL);
    }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        for (size_t k = 0; k < sizeof reals / sizeof *reals; k++) {
            const long double a = integers[i], b = reals[k];
            const bool expected[] = {a<b, a == b, a> b, a <= b, a != b, a >= b};
            const bool turned[] = {b<a, a == b, b> a, b <= a, a != b, b >= a};
            const tokmap_value values[] = {integer(integers[i]), real(reals[k])};
            const tokmap_value swapped[] = {values[1], values[0]};
            for (int s = 0; s < 6; s++) {
                CHECK(where_holds(w[s], values) == expected[s]);
                CHECK(where_holds(w[s], swapped) == turned[s]);
            }
        }
    }
    for (int s = 0; s < 6; s++)
        where_free(w[s]);
    field_list_free(&l);
    CHECK(holds("x == 9223372036854775807", integer(INT64_MAX)));
    CHECK(holds("x < 9223372036854775808", integer(INT64_MAX)));
    CHECK(holds("x == -9223372036854775808", integer(INT64_MIN)));
    CHECK(holds("x > -9223372036854775809.5e1", integer(INT64_MIN)));
}

TEST(strings_have_the_escapes_of_json)
{
    CHECK(holds("x == \"\\\"\\\\\\/\\b\\f\\n\\r\\t'\"", string("\"\\/\b\f\n\r\t'")));
    CHECK(holds("x == '\\'\"'", string("'\"")));
    CHECK(holds("x == '\\u00e4\\u20AC\\ud83d\\ude00'",
                string("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")));
    const tokmap_value zero = {.type = TOKMAP_VALUE_STRING, .text = "a\0b", .text_bytes = 3};
    CHECK(holds("x == 'a\\u0000b'", zero) && !holds("x == 'a'", zero));
}

TEST(a_field_alone_is_a_number_other_than_0)
{
    const tokmap_value text = {.type = TOKMAP_VALUE_STRING, .text = "a", .text_bytes = 1};
    const tokmap_value real = {.type = TOKMAP_VALUE_FLOAT64, .real = 0.5};
    CHECK(holds("x", integer(-1)) && holds("x", real) && !holds("not x", integer(1)));
    CHECK(!holds("x", integer(0)) && !holds("x", text) && !holds("x", null_value));
    CHECK(holds("not x", integer(0)) && holds("not x", text) && holds("not x", null_value));
    CHECK(holds("(x) and x or y", integer(1)) && !holds("x and y", integer(1)));
}

TEST(wrong_expressions_are_refused_at_their_character)
{
    check_refused("", 1, "expected a field, a number or a string");
    check_refused("1", 2, "expected a comparison: == != < <= > >= `in` or `is`");
    check_refused("x >= 3 and 'a'", 15, "expected a comparison: == != < <= > >= `in` or `is`");
    check_refused("x 1", 3, "expected a comparison: == != < <= > >= `in` or `is`");
    check_refused("(x) == 1", 5, "expected `and`, `or` or the end");
    check_refused("x ==", 5, "expected a field, a number or a string");
    check_refused("x == (1)", 6, "expected a field, a number or a string");
    check_refused("x == 1 == 2", 8, "expected `and`, `or` or the end");
    check_refused("x == 1 y == 2", 8, "expected `and`, `or` or the end");
    check_refused("x == 1 AND y == 2", 8, "expected `and`, `or` or the end");
    check_refused("(x == 1", 8, "expected `and`, `or` or )");
    check_refused("x == 1)", 7, "expected `and`, `or` or the end");
    check_refused("()", 2, "expected a field, a number or a string");
    check_refused("\xc3\xa4 = 1", 3, "unknown sign; equal is ==");
    check_refused("x == 1 && y == 2", 8, "unknown sign");
    check_refused("x ! 1", 3, "unknown sign");
    check_refused("x == .5", 6, "unknown sign");
    check_refused("x == 01", 7, "expected the end of the number");
    check_refused("x == 1.5.2", 9, "expected the end of the number");
    check_refused("x == 3abc", 7, "expected the end of the number");
    check_refused("x == -", 7, "expected a digit");
    check_refused("x == 1.", 8, "expected a digit");
    check_refused("x == null", 6, "null is not a value; use `is null`");
    check_refused("1 in (1)", 1, "expected a field before `in`");
    check_refused("x in 1", 6, "expected ( and a list of values after `in`");
    check_refused("x in ()", 7, "expected a number or a string");
    check_refused("x in (1,)", 9, "expected a number or a string");
    check_refused("x in (y)", 7, "expected a number or a string");
    check_refused("x in (1 2)", 9, "expected , or )");
    check_refused("x in (1", 8, "expected , or )");
    check_refused("x == 1, y == 2", 7, "expected `and`, `or` or the end");
    check_refused("1 is null", 1, "expected a field before `is`");
    check_refused("x is 3", 6, "expected `null`");
    check_refused("x is not 3", 10, "expected `null`");
    check_refused("x == 1 or 1 == 'x'", 11, "a comparison of two values; one side is a field");
    check_refused("x == 'abc", 6, "a string without its closing '");
    check_refused("x == \"\xc3\xa4\n\"", 8, "a control character in a string");
    check_refused("x == '\\x41'", 7, "unknown escape");
    check_refused("x == '\\u00g0'", 7, "\\u needs four hexadecimal digits");
    check_refused("x == '\\ud800\\u0041'", 7, "a lone surrogate");
    check_refused("x == '\\udc00'", 7, "a lone surrogate");
    check_refused("x == '\\", 7, "unknown escape");
    check_refused("`a == 1", 1, "a name without its closing `");
    check_refused("x == ``", 7, "expected the name of a field");
    check_refused("`a..b` == 1", 4, "a part of the name is empty");
    check_refused("a. == 1", 2, "unknown sign");
    check_refused("x == 'a\xff'", 8, "not UTF-8");
    check_refused("not", 4, "expected a field, a number or a string");
}

TEST(fields_are_added_behind_those_of_the_list)
{
    field_list l = {0};
    failure err;
    CHECK(field_list_parse(&l, "b,c.d", &err));
    where *w =
        where_compile("a.x_1 == 1 or c.d > `b` or `y z.\xc3\xa4` < @row or _is is null", &l, &err);
    CHECK(w != NULL);
    CHECK_EQ(l.n_fields, 6);
    CHECK_STR(l.names[2], "a.x_1");
    CHECK_STR(l.names[3], "y z.\xc3\xa4");
    CHECK_STR(l.names[4], "@row");
    CHECK_STR(l.names[5], "_is");
    where_free(w);
    field_list_free(&l);
}

/* n times `part`, and then `rest`. */
static char *repeat(const char *part, size_t n, const char *rest)
{
    const size_t n_bytes = strlen(part);
    char *text = malloc(n * n_bytes + strlen(rest) + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * n_bytes, part, n_bytes);
    strcpy(text + n * n_bytes, rest);
    return text;
}

TEST(length_depth_and_fields_are_limited)
{
    char *text = repeat(" ", WHERE_MAX_BYTES - 4, "x==1");
    CHECK(holds(text, integer(1)));
    free(text);
    text = repeat(" ", WHERE_MAX_BYTES - 3, "x==1");
    check_refused(text, 1, "longer than 16384 bytes");
    free(text);
    text = repeat("not ", WHERE_MAX_DEPTH, "x==1");
    CHECK(holds(text, integer(1)));
    free(text);
    text = repeat("not ", WHERE_MAX_DEPTH + 1, "x==1");
    check_refused(text, WHERE_MAX_DEPTH * 4 + 1, "nested more than 64 levels deep");
    free(text);
    text = repeat("(", WHERE_MAX_DEPTH + 1, "x==1");
    check_refused(text, WHERE_MAX_DEPTH + 1, "nested more than 64 levels deep");
    free(text);
    text = repeat("x==1 or ", 2000, "x==2");
    CHECK(holds(text, integer(2)) && !holds(text, integer(3)));
    free(text);
    char many[1024] = "";
    for (int i = 0; i <= 64; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sf%02d==1", i ? " or " : "", i);
    check_refused(many, 64 * 10 + 1, "more than 64 fields");
}

TEST(known_types_are_checked)
{
    field_list l = {0};
    failure err;
    const char *text = "s == 'x' and (1 <= n or r < n) or s is null or n != s";
    where *w = where_compile(text, &l, &err);
    CHECK(w != NULL);
    const tokmap_value_type unknown[] = {TOKMAP_VALUE_NULL, TOKMAP_VALUE_NULL, TOKMAP_VALUE_NULL};
    const tokmap_value_type right[] = {TOKMAP_VALUE_STRING, TOKMAP_VALUE_NULL, TOKMAP_VALUE_INT64};
    const tokmap_value_type last[] = {TOKMAP_VALUE_STRING, TOKMAP_VALUE_INT64,
                                      TOKMAP_VALUE_FLOAT64};
    const tokmap_value_type first[] = {TOKMAP_VALUE_INT64, TOKMAP_VALUE_NULL, TOKMAP_VALUE_NULL};
    CHECK(where_check_types(w, unknown, &err));
    CHECK(where_check_types(w, right, &err));
    CHECK(!where_check_types(w, last, &err));
    CHECK_STR(err.text, "compares a number with a string");
    CHECK_EQ(err.place, 48);
    CHECK(!where_check_types(w, first, &err));
    CHECK_EQ(err.place, 1);
    where_free(w);
    field_list_free(&l);
}
