/* SPDX-License-Identifier: Apache-2.0 */
/* The plan file: what is printed is parsed back, and what is wrong is refused with its line. */
#include "support/check.h"

#include <xxhash.h>

#include "plan/plan_file.h"

static const char header[] = "tokmap plan 1\nfolder /data\ncells out/cells\ncell-size 1000\n";
static const char body[] = "option field text\noption lines\noption split valid=0.5\n"
                           "fact --eod 256\nfact --separator \\x0a \n"
                           "input 2500 17 jsonl a b.jsonl\ninput 0 0 auto c\n"
                           "input 70 5 parquet \\x20\n";
static const char cells[] = "cell 0 0 0\ncell 0 1000 0\ncell 0 2000 0\ncell 2 4 7\ncell 2 50 9\n";

/* A plan of these lines with the right checksum. */
static char *with_checksum(const char *lines, size_t *n_bytes)
{
    char *text = malloc(strlen(lines) + 64);
    CHECK(text != NULL);
    int n = sprintf(text, "%schecksum %016llx\n", lines,
                    (unsigned long long)XXH3_64bits(lines, strlen(lines)));
    *n_bytes = (size_t)n;
    return text;
}

static char *join(const char *a, const char *b, const char *c)
{
    char *text = malloc(strlen(a) + strlen(b) + strlen(c) + 1);
    CHECK(text != NULL);
    stpcpy(stpcpy(stpcpy(text, a), b), c);
    return text;
}

static bool parses(const char *lines, plan_file *plan, failure *err)
{
    size_t n;
    char *text = with_checksum(lines, &n);
    *plan = (plan_file){0};
    bool ok = plan_file_parse(plan, text, n, err);
    free(text);
    return ok;
}

static plan_file parse_lines(const char *more, const char *its_cells)
{
    plan_file plan;
    failure err;
    char *lines = join(header, more, its_cells);
    CHECK(parses(lines, &plan, &err));
    free(lines);
    return plan;
}

static plan_file parse_example(void)
{
    return parse_lines(body, cells);
}

TEST(a_plan_is_parsed)
{
    plan_file plan = parse_example();
    CHECK_STR(plan.folder, "/data");
    CHECK_STR(plan.cells_folder, "out/cells");
    CHECK_EQ(plan.cell_bytes, 1000);
    CHECK_EQ(plan.n_options, 3);
    CHECK_STR(plan_file_option(&plan, "field"), "text");
    CHECK(plan_file_option(&plan, "lines") == NULL);
    CHECK_STR(plan_file_option(&plan, "split"), "valid=0.5");
    CHECK(plan_file_option(&plan, "meta") == NULL);
    const char facts[] = "--eod 256\n--separator \\x0a \n";
    CHECK_EQ(plan.fingerprint_bytes, strlen(facts));
    CHECK(memcmp(plan.fingerprint, facts, plan.fingerprint_bytes) == 0);
    CHECK_EQ(plan.n_inputs, 3);
    CHECK_STR(plan.inputs[0].name, "a b.jsonl");
    CHECK_STR(plan.inputs[0].format, "jsonl");
    CHECK_EQ(plan.inputs[0].mtime_ns, 17);
    CHECK_STR(plan.inputs[2].name, " ");
    CHECK_EQ(plan.n_cells, 5);
    plan_file_free(&plan);
}

TEST(a_plan_that_was_parsed_prints_as_it_was)
{
    size_t n, n_printed;
    char *lines = join(header, body, cells), *text = with_checksum(lines, &n);
    plan_file plan = parse_example();
    const uint64_t hash = plan.hash;
    char *printed = plan_file_print(&plan, &n_printed);
    CHECK(printed && n_printed == n && memcmp(printed, text, n) == 0);
    CHECK_EQ(plan.hash, hash);
    free(printed);
    free(text);
    free(lines);
    plan_file_free(&plan);
}

TEST(cells_cover_the_inputs)
{
    plan_file plan = parse_example();
    plan_part part = plan_file_part(&plan, 0);
    CHECK(part.first_input == 0 && part.end_input == 1 && part.end_offset == 1000);
    part = plan_file_part(&plan, 2);
    CHECK(part.first_input == 0 && part.begin_offset == 2000 && part.end_input == 3 &&
          part.end_offset == 4 && part.end_row == 7);
    part = plan_file_part(&plan, 3);
    CHECK(part.first_input == 2 && part.begin_row == 7 && part.end_input == 3 && part.end_row == 9);
    part = plan_file_part(&plan, 4);
    CHECK(part.begin_row == 9 && part.end_input == 3 && part.end_row == 0 && part.end_offset == 0);
    plan_file_free(&plan);
}

TEST(cells_that_end_where_they_begin_are_empty)
{
    plan_file plan = parse_lines(body, "cell 0 0 0\ncell 0 0 0\ncell 0 9 0\ncell 0 9 0\n"
                                       "cell 3 0 0\ncell 3 0 0\n");
    static const size_t n_inputs[] = {0, 1, 0, 3, 0, 0};
    for (size_t i = 0; i < plan.n_cells; i++) {
        const plan_part part = plan_file_part(&plan, i);
        CHECK_EQ(part.end_input - part.first_input, n_inputs[i]);
        CHECK_EQ(plan_file_cell_bytes(&plan, i) > 0, n_inputs[i] > 0);
        if (n_inputs[i] == 0)
            CHECK(part.begin_offset == 0 && part.end_offset == 0);
    }
    CHECK_EQ(plan_file_part(&plan, 1).end_offset, 9);
    CHECK_EQ(plan_file_part(&plan, 3).begin_offset, 9);
    plan_file_free(&plan);
}

TEST(the_hash_of_a_cell_is_that_of_what_is_packed_into_it)
{
    static const struct {
        const char *body, *cells;
        bool same[3];
    } changes[] = {
        {"option a\nfact b\ninput 9 1 text c\ninput 9 1 text d\n",
         "cell 0 0 0\ncell 0 5 0\ncell 1 0 0\norigin 0123456789abcdef\n",
         {true, true, true}},
        {"option a x\nfact b\ninput 9 1 text c\ninput 9 1 text d\n",
         "cell 0 0 0\ncell 0 5 0\ncell 1 0 0\n",
         {false, false, false}},
        {"option a\nfact c\ninput 9 1 text c\ninput 9 1 text d\n",
         "cell 0 0 0\ncell 0 5 0\ncell 1 0 0\n",
         {false, false, false}},
        {"option a\nfact b\ninput 9 2 text c\ninput 9 1 text d\n",
         "cell 0 0 0\ncell 0 5 0\ncell 1 0 0\n",
         {false, false, true}},
        {"option a\nfact b\ninput 9 1 text c\ninput 9 1 lines d\n",
         "cell 0 0 0\ncell 0 5 0\ncell 1 0 0\n",
         {true, true, false}},
        {"option a\nfact b\ninput 9 1 text c\ninput 9 1 text d\n",
         "cell 0 0 0\ncell 0 6 0\ncell 1 0 0\n",
         {false, false, true}},
        {"option a\nfact b\ninput 9 1 text c\ninput 9 1 text d\n",
         "cell 0 0 0\ncell 0 5 2\ncell 1 0 0\n",
         {false, false, true}},
        {"option a\nfact b\ninput 9 1 text c\n",
         "cell 0 0 0\ncell 0 5 0\ncell 1 0 0\n",
         {true, true, false}},
    };
    plan_file was = parse_lines(changes[0].body, "cell 0 0 0\ncell 0 5 0\ncell 1 0 0\n");
    CHECK_EQ(was.origin, was.hash);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        plan_file now = parse_lines(changes[i].body, changes[i].cells);
        CHECK_EQ(now.origin == UINT64_C(0x0123456789abcdef), i == 0);
        for (size_t k = 0; k < 3; k++)
            CHECK_EQ(now.cells[k].hash == was.cells[k].hash, changes[i].same[k]);
        plan_file_free(&now);
    }
    plan_file_free(&was);
}

TEST(cells_have_names)
{
    plan_file plan = parse_example();
    CHECK_STR(plan_file_cell_path(&plan, 42, "", "").s, "/data/out/cells/000042");
    CHECK_STR(plan_file_cell_path(&plan, 1048575, "valid", ".bin").s,
              "/data/out/cells/1048575-valid.bin");
    plan.cells_folder = "/cells";
    CHECK_STR(plan_file_cell_path(&plan, 0, "", "").s, "/cells/000000");
    plan_file_free(&plan);
}

/* ---- Refused ---- */

static void refused(const char *lines, size_t line, const char *why)
{
    plan_file plan;
    failure err;
    if (parses(lines, &plan, &err))
        CHECK_FAIL("accepted: %s", lines);
    if (err.place != line || !strstr(err.text, why))
        CHECK_FAIL("line %" PRIu64 ": %s; expected line %zu: %s, in: %s", err.place, err.text, line,
                   why, lines);
    plan_file_free(&plan);
}

static void body_refused(const char *wrong, size_t line, const char *why)
{
    char *lines = join(header, wrong, "");
    refused(lines, line, why);
    free(lines);
}

TEST(wrong_first_lines_are_refused)
{
    refused("", 1, "not a plan");
    refused("tokmap plan 2\n", 1, "another version");
    refused("tokmap plans\n", 1, "not a plan");
    refused("tokmap plan 1\nfolder data\n", 2, "\"folder /...\" expected");
    refused("tokmap plan 1\nfolder /a\ncells \n", 3, "1 to 16384");
    refused("tokmap plan 1\nfolder /a\nfolder /a\n", 3, "cells DIR");
    refused("tokmap plan 1\nfolder /a\ncells b\ncell-size 0\n", 4, "above 0");
    refused("tokmap plan 1\nfolder /a\ncells b\ncell-size 01\n", 4, "whole number");
    refused("tokmap plan 1\nfolder /a\ncells b\ncell-size 1 \n", 4, "nothing must follow");
    refused("tokmap plan 1\nfolder /a\ncells b\ncell-size 18446744073709551616\n", 4,
            "whole number");
}

TEST(wrong_lines_are_refused)
{
    body_refused("option A b\n", 5, "option NAME");
    body_refused("option a \n", 5, "1 to 16384");
    body_refused("option a b \n", 5, "must be written");
    body_refused("option a \\x41\n", 5, "must be written");
    body_refused("option a \\x0A\n", 5, "must be written");
    body_refused("option a \\x00\n", 5, "must be written");
    body_refused("option a \\x0\n", 5, "must be written");
    body_refused("option a \tb\n", 5, "must be written");
    body_refused("fact a\tb\n", 5, "control character");
    body_refused("fact a\noption b\n", 6, "in the wrong place");
    body_refused("input 1 2 text\n", 5, "input SIZE");
    body_refused("input 1 2 te/xt a\n", 5, "input SIZE");
    body_refused("input 1 -2 text a\n", 5, "whole number");
    body_refused("cell 0 0 0\n", 6, "no inputs");
    body_refused("input 9 2 text a\n", 6, "no cells");
    body_refused("input 9 2 text a\ncell 0 1 0\n", 6, "first cell");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 0 3 3\ncell 0 0 0\n", 8, "before the one");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 0 3 3\ncell 0 4 2\n", 8, "before the one");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 0 3 3\ncell 0 3 4\n", 8, "before the one");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 0 0 3\n", 7, "offset is 0");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 0 9 0\n", 7, "after the end");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 1 1 0\n", 7, "no input 1");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 2 0 0\n", 7, "no input 2");
    body_refused("input 9 2 text a\ncell 0 0 0\norigin 0123456789abcdeF\n", 7, "a checksum");
    body_refused("input 9 2 text a\ncell 0 0 0\norigin 0123456789abcdef\n"
                 "origin 0123456789abcdef\n",
                 8, "once");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 0 5\n", 7, "row");
    body_refused("input 9 2 text a\ncell 0 0 0\ncell 0 5 0 1\n", 7, "nothing must follow");
    body_refused("input 9 2 text a\ncell 0 0 0\ninput 9 2 text b\n", 7, "in the wrong place");
    body_refused("\n", 5, "in the wrong place");
}

TEST(a_changed_plan_is_refused)
{
    size_t n;
    char *lines = join(header, body, cells), *text = with_checksum(lines, &n);
    failure err;
    for (size_t i = 0; i < n; i++) {
        plan_file plan = {0};
        text[i] ^= 1;
        if (plan_file_parse(&plan, text, n, &err))
            CHECK_FAIL("byte %zu may change", i);
        CHECK(err.place > 0 && err.text[0]);
        plan_file_free(&plan);
        text[i] ^= 1;
    }
    free(text);
    free(lines);
}

TEST(a_part_of_a_plan_is_refused)
{
    size_t n;
    char *lines = join(header, body, cells), *text = with_checksum(lines, &n);
    failure err;
    for (size_t i = 0; i < n; i++) {
        plan_file plan = {0};
        CHECK(!plan_file_parse(&plan, text, i, &err));
        plan_file_free(&plan);
    }
    plan_file plan = {0};
    text[n - 1] = '\0'; /* a zero byte in place of the newline */
    CHECK(!plan_file_parse(&plan, text, n, &err));
    plan_file_free(&plan);
    free(text);
    free(lines);
}
