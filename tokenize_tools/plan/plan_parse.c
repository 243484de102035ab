/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "plan/plan_file.h"
#include "text/array.h"
#include "text/line_text.h"

#define FIRST_LINE "tokmap plan 1"
#define UPDATED_LINE "tokmap plan 2"

typedef struct plan_parser {
    plan_file *plan;
    failure *err;
    char *at, *end; /* the rest of the text; each line is cut off with a zero byte */
    char *line;     /* the current one */
    bool updated;   /* version 2 */
    size_t n_lines; /* so far */
    void *grown;    /* by ADD */
} plan_parser;

/* ---- Lines and words ---- */

static bool next_line(plan_parser *p)
{
    char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    p->n_lines++;
    if (!newline)
        return fail(p->err,
                    "the plan ends here, without its checksum; part of the file is missing");
    p->line = p->at;
    p->at = newline + 1;
    if (memchr(p->line, '\0', (size_t)(newline - p->line)))
        return fail(p->err, "the line has a zero byte");
    *newline = '\0';
    return true;
}

/* Whether the line has this first word; *rest is what follows the blank after it. */
static bool is_line(const plan_parser *p, const char *word, char **rest)
{
    size_t n = strlen(word);
    if (strncmp(p->line, word, n) != 0 || p->line[n] != ' ')
        return false;
    *rest = p->line + n + 1;
    return true;
}

/* Cuts the first word off. */
static char *take_word(char **rest)
{
    char *word = *rest;
    *rest += strcspn(word, " ");
    if (**rest)
        *(*rest)++ = '\0';
    return word;
}

/* A number as it is printed: no sign, no zeros in front. */
static bool take_number(plan_parser *p, char **rest, const char *name, uint64_t *number)
{
    const char *word = take_word(rest);
    size_t n = strspn(word, "0123456789");
    bool plain = n > 0 && n <= 20 && !word[n] && (*word != '0' || n == 1);
    uint64_t value = 0;
    for (const char *c = word; plain && *c; c++) {
        unsigned digit = (unsigned)(*c - '0');
        plain = value <= (UINT64_MAX - digit) / 10;
        value = 10 * value + digit;
    }
    *number = value;
    return plain || fail(p->err, "%s must be a whole number", name);
}

/* The same, at the end of the line. */
static bool take_last_number(plan_parser *p, char *rest, const char *name, uint64_t *number)
{
    if (strchr(rest, ' '))
        return fail(p->err, "nothing must follow %s", name);
    return take_number(p, &rest, name, number);
}

/* The rest of the line as a text. */
static bool take_text(plan_parser *p, char *rest, const char *name, const char **text)
{
    *text = rest;
    if (!line_text_parse(rest))
        return fail(p->err,
                    "%s has a character that must be written as \\xHH, or an escape that is not "
                    "needed",
                    name);
    size_t n = strlen(rest);
    if (n == 0 || n > PLAN_MAX_TEXT_BYTES)
        return fail(p->err, "%s must have 1 to %d bytes", name, PLAN_MAX_TEXT_BYTES);
    return true;
}

static bool is_name(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n > 0 && n <= 32 && !word[n];
}

/* Makes room for one more entry, of at most `most`. */
#define ADD(p, list, n, most, what)                                                                \
    ((n) == (size_t)(most) ? fail((p)->err, "there are more than %zu %s", (size_t)(most), what)    \
     : !((p)->grown = array_grow(list, n, sizeof *(list))) ? fail_memory((p)->err)                 \
                                                           : ((list) = (p)->grown) != NULL)

/* ---- The lines ---- */

static bool parse_first_line(plan_parser *p)
{
    if (!next_line(p))
        return false;
    p->updated = strcmp(p->line, UPDATED_LINE) == 0;
    if (p->updated || strcmp(p->line, FIRST_LINE) == 0)
        return true;
    if (strncmp(p->line, FIRST_LINE, strlen(FIRST_LINE) - 1) == 0)
        return fail(p->err, "this plan has another version; this tokmap reads versions 1 and 2");
    return fail(p->err, "not a plan: the first line is not \"" FIRST_LINE "\"");
}

static bool parse_folders(plan_parser *p)
{
    plan_file *plan = p->plan;
    char *rest;
    if (!next_line(p))
        return false;
    if (!is_line(p, "folder", &rest) || *rest != '/')
        return fail(p->err, "\"folder /...\" expected");
    if (!take_text(p, rest, "the folder", &plan->folder) || !next_line(p))
        return false;
    if (!is_line(p, "cells", &rest))
        return fail(p->err, "\"cells DIR\" expected");
    if (!take_text(p, rest, "the folder of the cells", &plan->cells_folder))
        return false;
    if (!plan_file_folders_fit(plan))
        return fail(p->err, "the path of the folder of the cells is too long");
    if (!next_line(p))
        return false;
    if (!is_line(p, "cell-size", &rest))
        return fail(p->err, "\"cell-size BYTES\" expected");
    if (!take_last_number(p, rest, "the size", &plan->cell_bytes))
        return false;
    return plan->cell_bytes > 0 || fail(p->err, "the size must be above 0");
}

static bool parse_earlier(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    char same[17];
    if (!ADD(p, plan->earlier, plan->n_earlier, PLAN_MAX_EARLIER, "earlier plans"))
        return false;
    const uint64_t hash = strtoull(rest, NULL, 16);
    snprintf(same, sizeof same, "%016" PRIx64, hash);
    if (!p->updated || strcmp(rest, same) != 0)
        return fail(p->err, "not a line of a plan, or not an earlier checksum");
    plan->earlier[plan->n_earlier++] = hash;
    return true;
}

static bool parse_option(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    plan_option option = {0};
    if (!ADD(p, plan->options, plan->n_options, PLAN_MAX_OPTIONS, "options"))
        return false;
    bool has_value = strchr(rest, ' ') != NULL;
    option.name = take_word(&rest);
    if (!is_name(option.name))
        return fail(p->err, "\"option NAME VALUE\" expected");
    if (has_value && !take_text(p, rest, "the value", &option.value))
        return false;
    plan->options[plan->n_options++] = option;
    return true;
}

/* Facts are compared as text, so what they mean does not matter here. */
static bool parse_fact(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    if (!ADD(p, plan->facts, plan->n_facts, PLAN_MAX_FACTS, "facts"))
        return false;
    for (const char *c = rest; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return fail(p->err, "the fact has a control character");
    }
    plan->facts[plan->n_facts++] = rest;
    return true;
}

static bool parse_input(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    plan_input input;
    if (!ADD(p, plan->inputs, plan->n_inputs, PLAN_MAX_INPUTS, "inputs") ||
        !take_number(p, &rest, "the size of the input", &input.n_bytes) ||
        !take_number(p, &rest, "the time of the input", &input.mtime_ns))
        return false;
    input.format = take_word(&rest);
    if (!is_name(input.format) || !*rest)
        return fail(p->err, "\"input SIZE TIME FORMAT NAME\" expected");
    if (!take_text(p, rest, "the name of the input", &input.name))
        return false;
    plan->inputs[plan->n_inputs++] = input;
    return true;
}

/* Whether a cell may begin at b if the one before it begins at a. */
static bool is_later(const plan_cell *a, const plan_cell *b)
{
    if (a->input != b->input)
        return a->input < b->input;
    return a->offset < b->offset && a->row <= b->row;
}

static bool parse_cell(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    plan_cell cell = {0};
    if (!ADD(p, plan->cells, plan->n_cells, PLAN_MAX_CELLS, "cells") ||
        !take_number(p, &rest, "the input of the cell", &cell.input) ||
        !take_number(p, &rest, "the offset of the cell", &cell.offset) ||
        !(p->updated ? take_number(p, &rest, "the row of the cell", &cell.row) &&
                           take_last_number(p, rest, "the last number of the cell", &cell.since)
                     : take_last_number(p, rest, "the row of the cell", &cell.row)))
        return false;
    if (cell.since > plan->n_earlier)
        return fail(p->err,
                    "the last number of the cell must be at most that of the earlier plans");
    if (cell.input >= plan->n_inputs)
        return fail(p->err, "there is no input %" PRIu64 "; inputs are counted from 0", cell.input);
    if (cell.row > 0 && cell.offset == 0)
        return fail(p->err, "the cell begins at a row, but its offset is 0");
    if (cell.offset > 0 && cell.offset >= plan->inputs[cell.input].n_bytes)
        return fail(p->err, "the cell begins after the end of its input");
    if (plan->n_cells == 0 && (cell.input || cell.offset || cell.row))
        return fail(p->err, "the first cell must begin where the inputs begin: \"cell 0 0 0\"");
    if (plan->n_cells > 0 && !is_later(&plan->cells[plan->n_cells - 1], &cell))
        return fail(p->err, "the cell must begin after the one before it");
    plan->cells[plan->n_cells++] = cell;
    return true;
}

/* ---- All ---- */

typedef struct plan_section {
    const char *word;
    bool (*parse)(plan_parser *p, char *rest);
} plan_section;

/* The lines after the first ones, in the order of the sections. */
static bool parse_sections(plan_parser *p)
{
    static const plan_section sections[] = {{"earlier", parse_earlier},
                                            {"option", parse_option},
                                            {"fact", parse_fact},
                                            {"input", parse_input},
                                            {"cell", parse_cell}};
    const size_t n = sizeof sections / sizeof *sections;
    char *rest;
    for (size_t at = 0; at < n;) {
        if (!next_line(p))
            return false;
        while (at < n && !is_line(p, sections[at].word, &rest))
            at++;
        if (at < n && !sections[at].parse(p, rest))
            return false;
    }
    return true;
}

static bool parse_checksum(plan_parser *p, uint64_t hash)
{
    char line[64];
    const plan_file *plan = p->plan;
    snprintf(line, sizeof line, "checksum %016" PRIx64, hash);
    if (strncmp(p->line, "checksum ", 9) != 0)
        return fail(p->err, "not a line of a plan, or not in its place");
    if (plan->n_inputs == 0 || plan->n_cells == 0)
        return fail(p->err, "the plan has no %s", plan->n_inputs == 0 ? "inputs" : "cells");
    if (p->updated && plan->n_earlier == 0)
        return fail(p->err, "the plan was updated, but has no earlier one");
    if (p->at != p->end)
        return fail(p->err, "the checksum must be the last line");
    return strcmp(p->line, line) == 0 ||
           fail(p->err, "wrong checksum: the plan was changed or is damaged; make a new one with "
                        "tokmap plan");
}

/* How many bytes come before the last line. */
static size_t bytes_before_last_line(const char *text, size_t n_bytes)
{
    size_t n = n_bytes ? n_bytes - 1 : 0;
    while (n > 0 && text[n - 1] != '\n')
        n--;
    return n;
}

bool plan_file_parse(plan_file *plan, const char *text, size_t n_bytes, failure *err)
{
    plan_parser p = {.plan = plan, .err = err};
    plan->memory = malloc(n_bytes + 1);
    if (!plan->memory)
        return fail_memory(err);
    memcpy(plan->memory, text, n_bytes);
    p.at = plan->memory;
    p.end = plan->memory + n_bytes;
    plan->hash = XXH3_64bits(text, bytes_before_last_line(text, n_bytes));
    if (parse_first_line(&p) && parse_folders(&p) && parse_sections(&p) &&
        parse_checksum(&p, plan->hash))
        return true;
    err->place = p.n_lines;
    return false;
}
