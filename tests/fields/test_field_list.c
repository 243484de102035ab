/* SPDX-License-Identifier: Apache-2.0 */
/* test_field_list.c - the names of --meta: taken, or refused at which character. */
#include "fields/field_list.h"

#include "support/check.h"

static void check_refused(const char *text, size_t character, const char *reason)
{
    field_list l = {0};
    failure err = {0};
    CHECK(!field_list_parse(&l, text, &err));
    CHECK_STR(err.text, reason);
    CHECK_EQ(err.place, character);
    CHECK_EQ(l.n_fields, 0);
}

TEST(names_are_taken_in_their_order)
{
    field_list l = {0};
    failure err;
    CHECK(field_list_parse(&l, "score,meta.lang,@row,a-b c.\xc3\xa4,x:y", &err));
    CHECK_EQ(l.n_fields, 5);
    CHECK_STR(l.names[0], "score");
    CHECK_STR(l.names[1], "meta.lang");
    CHECK_STR(l.names[2], FIELD_ROW);
    CHECK_STR(l.names[3], "a-b c.\xc3\xa4");
    CHECK_STR(l.names[4], "x:y");
    CHECK_EQ(field_list_find(&l, "meta.lang", 9), 1);
    CHECK_EQ(field_list_find(&l, "meta.lan", 8), 5);
    CHECK_EQ(field_list_find(&l, "meta.langx", 10), 5);
    field_list_free(&l);
    CHECK_EQ(l.n_fields, 0);
}

TEST(wrong_names_are_refused_at_their_character)
{
    check_refused("", 1, "expected the name of a field");
    check_refused("a,,b", 3, "expected the name of a field");
    check_refused("a,", 3, "expected the name of a field");
    check_refused(",a", 1, "expected the name of a field");
    check_refused("a,.b", 3, "a part of the name is empty");
    check_refused("a,b.", 5, "a part of the name is empty");
    check_refused("a,b..c", 5, "a part of the name is empty");
    check_refused("a, b", 3, "a blank beside the name");
    check_refused("a ,b", 2, "a blank beside the name");
    check_refused("\xc3\xa4,b\nc", 4, "a control character in the name");
    check_refused("\xc3\xa4,b,\xc3\xa4", 5, "the field is already in the list");
    check_refused("\xc3\xa4,b\xff", 4, "not UTF-8");
}

TEST(a_list_has_at_most_64_fields)
{
    char text[1024] = "";
    field_list l = {0};
    failure err;
    for (int i = 0; i < 64; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%sf%02d", i ? "," : "", i);
    CHECK(field_list_parse(&l, text, &err));
    CHECK_EQ(l.n_fields, 64);
    field_list_free(&l);
    strcat(text, ",g");
    check_refused(text, 64 * 4 + 1, "more than 64 fields");
}

TEST(a_name_has_at_most_255_bytes)
{
    char text[300] = "x,";
    field_list l = {0};
    failure err;
    memset(text + 2, 'a', 255);
    CHECK(field_list_parse(&l, text, &err));
    CHECK_EQ(strlen(l.names[1]), 255);
    field_list_free(&l);
    text[257] = 'a';
    check_refused(text, 3, "the name has more than 255 bytes");
}

TEST(a_name_is_added_once)
{
    field_list l = {0};
    failure err;
    size_t index;
    CHECK(field_list_add(&l, "ab", 2, &index, &err));
    CHECK_EQ(index, 0);
    CHECK(field_list_add(&l, "abc", 3, &index, &err));
    CHECK_EQ(index, 1);
    CHECK(field_list_add(&l, "abc", 2, &index, &err));
    CHECK_EQ(index, 0);
    CHECK_EQ(l.n_fields, 2);
    field_list_free(&l);
}

static bool add_key(field_list *l, const char *name, failure *err)
{
    return field_list_add_key(l, name, strlen(name), err);
}

TEST(keys_that_cannot_be_fields_are_left_out)
{
    static const char *const left_out[] = {"", "a.b", "@row", " a", "a\n", "a\xff", "."};
    field_list l = {0};
    failure err;
    char name[300] = "";
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        CHECK(add_key(&l, left_out[i], &err));
    memset(name, 'x', sizeof name - 1);
    CHECK(add_key(&l, name, &err));
    CHECK_EQ(l.n_fields, 0);
    for (int i = 0; i < FIELD_LIST_MAX; i++) {
        snprintf(name, sizeof name, "a, %d", i);
        CHECK(add_key(&l, name, &err) && add_key(&l, name, &err));
    }
    CHECK_EQ(l.n_fields, FIELD_LIST_MAX);
    CHECK(add_key(&l, "a.b", &err) && add_key(&l, "", &err));
    CHECK(!add_key(&l, "b", &err));
    CHECK_STR(err.text, "more than 64 fields");
    field_list_free(&l);
}
