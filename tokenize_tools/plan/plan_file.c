/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "system/files.h"
#include "system/memory_file.h"
#include "system/protected.h"
#include "base/array.h"
#include "base/number.h"
#include "cli/line_text.h"

void plan_file_free(plan_file *plan)
{
    free(plan->options);
    free(plan->inputs);
    free(plan->cells);
    free(plan->memory);
    *plan = (plan_file){0};
}

#define LONGEST_CELL_NAME 64 /* a number, the name of a split, a suffix */

bool plan_file_folders_fit(const plan_file *plan)
{
    return strlen(plan->folder) + strlen(plan->cells_folder) + LONGEST_CELL_NAME <=
           PATH_PREFIX_BYTES;
}

const char *plan_file_option(const plan_file *plan, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < plan->n_options; i++) {
        if (strcmp(plan->options[i].name, name) == 0)
            value = plan->options[i].value;
    }
    return value;
}

/* ---- Print ---- */

#define FIRST_LINE "tokmap plan 1"

static void put_value(FILE *out, const char *value)
{
    putc(' ', out);
    line_text_print(out, value, strlen(value));
}

static void put_line(FILE *out, const char *word, const char *value)
{
    fputs(word, out);
    put_value(out, value);
    putc('\n', out);
}

char *plan_file_print(plan_file *plan, size_t *n_bytes)
{
    memory_file text;
    FILE *out = memory_file_open(&text);
    if (!out)
        return NULL;
    fputs(FIRST_LINE "\n", out);
    put_line(out, "folder", plan->folder);
    put_line(out, "cells", plan->cells_folder);
    fprintf(out, "cell-size %" PRIu64 "\n", plan->cell_bytes);
    for (size_t i = 0; i < plan->n_options; i++) {
        const plan_option *o = &plan->options[i];
        fprintf(out, "option %s", o->name);
        if (o->value)
            put_value(out, o->value);
        putc('\n', out);
    }
    for (size_t at = 0, n; at < plan->fingerprint_bytes; at += n) {
        n = strcspn(plan->fingerprint + at, "\n") + 1;
        fprintf(out, "fact %.*s", (int)n, plan->fingerprint + at);
    }
    for (size_t i = 0; i < plan->n_inputs; i++) {
        const plan_input *in = &plan->inputs[i];
        fprintf(out, "input %" PRIu64 " %" PRIu64 " %s", in->n_bytes, in->mtime_ns, in->format);
        put_value(out, in->name);
        putc('\n', out);
    }
    for (size_t i = 0; i < plan->n_cells; i++) {
        const plan_cell *c = &plan->cells[i];
        fprintf(out, "cell %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c->input, c->offset, c->row);
    }
    if (plan->updated)
        fprintf(out, "origin %016" PRIx64 "\n", plan->origin);
    fflush(out);
    plan->hash = text.text ? XXH3_64bits(text.text, text.n_bytes) : 0;
    fprintf(out, "checksum %016" PRIx64 "\n", plan->hash);
    if (!memory_file_close(out, &text))
        return NULL;
    *n_bytes = text.n_bytes;
    return text.text;
}

/* ---- Cells ---- */

plan_part plan_file_part(const plan_file *plan, size_t cell)
{
    const plan_cell end_of_all = {.input = plan->n_inputs}, *begin = &plan->cells[cell];
    const plan_cell *end = cell + 1 == plan->n_cells ? &end_of_all : begin + 1;
    const size_t first = (size_t)begin->input;
    if (begin->input == end->input && begin->offset == end->offset)
        return (plan_part){.first_input = first, .end_input = first};
    return (plan_part){.first_input = first,
                       .end_input = (size_t)end->input + (end->offset > 0),
                       .begin_offset = begin->offset,
                       .begin_row = begin->row,
                       .end_offset = end->offset,
                       .end_row = end->row};
}

uint64_t plan_file_cell_bytes(const plan_file *plan, size_t cell)
{
    const plan_part part = plan_file_part(plan, cell);
    uint64_t n_bytes = 0;
    for (size_t i = part.first_input; i < part.end_input; i++) {
        bool last = i + 1 == part.end_input && part.end_offset > 0;
        uint64_t begin = i == part.first_input ? part.begin_offset : 0;
        n_bytes += (last ? part.end_offset : plan->inputs[i].n_bytes) - begin;
    }
    return n_bytes;
}

path_text plan_split_path(const char *prefix, const char *split, const char *suffix)
{
    path_text path;
    snprintf(path.s, sizeof path.s, "%s%s%.32s%s", prefix, *split ? "-" : "", split, suffix);
    return path;
}

path_text plan_file_cell_path(const plan_file *plan, size_t cell, const char *split,
                              const char *suffix)
{
    /* It fits: the parser has checked the length of the folders. */
    char prefix[PATH_PREFIX_BYTES];
    const bool absolute = *plan->cells_folder == '/';
    snprintf(prefix, sizeof prefix, "%s%s%s/%06zu", absolute ? "" : plan->folder,
             absolute ? "" : "/", plan->cells_folder, cell);
    return plan_split_path(prefix, split, suffix);
}

/* ---- Parsing ---- */

typedef struct plan_parser {
    plan_file *plan;
    failure *err;
    char *at, *end;          /* the rest of the text; each line is cut off with a zero byte */
    char *line;              /* the current one */
    size_t n_lines, n_facts; /* so far */
    /* Where the lines of these kinds end in the text. */
    size_t folder_end, header_end, inputs_end;
} plan_parser;

/* ---- Lines and words ---- */

static bool next_line(plan_parser *p)
{
    char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    p->n_lines++;
    if (!newline) {
        fail(p->err, "the plan ends here, without its checksum; part of the file is missing");
        return false;
    }
    p->line = p->at;
    p->at = newline + 1;
    if (memchr(p->line, '\0', (size_t)(newline - p->line)))
        return fail(p->err, "the line has a zero byte");
    *newline = '\0';
    return true;
}

static size_t offset_of(const plan_parser *p, const char *at)
{
    return (size_t)(at - p->plan->memory);
}

/* Whether the line begins with this word; *rest is what follows the blank after it. */
static bool is_line(const plan_parser *p, const char *word, char **rest)
{
    size_t n = strlen(word);
    if (strncmp(p->line, word, n) != 0 || p->line[n] != ' ')
        return false;
    *rest = p->line + n + 1;
    return true;
}

/* Reads the next line, which must begin with this word. */
static bool take_line(plan_parser *p, const char *word, const char *value, char **rest)
{
    return next_line(p) &&
           (is_line(p, word, rest) || fail(p->err, "\"%s %s\" expected", word, value));
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

/* Reads a number as plans have it: without a sign and leading zeros. */
static bool take_number(plan_parser *p, char **rest, const char *name, uint64_t *number)
{
    const char *word = take_word(rest);
    size_t n = strspn(word, "0123456789");
    bool plain = !word[n] && (*word != '0' || n == 1);
    return (plain && number_read_digits(word, n, number)) ||
           fail(p->err, "%s must be a whole number", name);
}

/* The same as take_number, but the number must end the line. */
static bool take_last_number(plan_parser *p, char *rest, const char *name, uint64_t *number)
{
    if (strchr(rest, ' '))
        return fail(p->err, "nothing must follow %s", name);
    return take_number(p, &rest, name, number);
}

/* Reads the rest of the line as a text. */
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

/* Makes room for one more entry; at most `most` are allowed. */
#define ADD(p, list, n, most, what)                                                                \
    ((n) == (size_t)(most) ? fail((p)->err, "there are more than %zu %s", (size_t)(most), what)    \
                           : array_grow(&(list), n, sizeof *(list)) || fail_memory((p)->err))

/* ---- The lines ---- */

static bool parse_first_line(plan_parser *p)
{
    if (!next_line(p))
        return false;
    if (strcmp(p->line, FIRST_LINE) == 0)
        return true;
    if (strncmp(p->line, FIRST_LINE, strlen(FIRST_LINE) - 1) == 0)
        return fail(p->err, "this plan has another version; this tokmap reads version 1");
    return fail(p->err, "not a plan: the first line is not \"" FIRST_LINE "\"");
}

static bool parse_folders(plan_parser *p)
{
    plan_file *plan = p->plan;
    char *rest;
    if (!take_line(p, "folder", "/...", &rest))
        return false;
    if (*rest != '/')
        return fail(p->err, "\"folder /...\" expected");
    p->folder_end = offset_of(p, p->at);
    if (!take_text(p, rest, "the folder", &plan->folder) || !take_line(p, "cells", "DIR", &rest) ||
        !take_text(p, rest, "the folder of the cells", &plan->cells_folder))
        return false;
    if (!plan_file_folders_fit(plan))
        return fail(p->err, "the path of the folder of the cells is too long");
    if (!take_line(p, "cell-size", "BYTES", &rest) ||
        !take_last_number(p, rest, "the size", &plan->cell_bytes))
        return false;
    p->header_end = offset_of(p, p->at);
    return plan->cell_bytes > 0 || fail(p->err, "the size must be above 0");
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
    plan_splits *splits = &plan->splits;
    const size_t n = option.value ? strcspn(option.value, "=") : 0;
    if (strcmp(option.name, "split") == 0 && n > 0 && n < sizeof *splits->names &&
        splits->n <= PLAN_MAX_SPLITS)
        memcpy(splits->names[splits->n++], option.value, n);
    return true;
}

/* Appends a line to the fingerprint, which is only compared as text. The lines are moved together,
 * to the place of the first one. */
static bool parse_fact(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    const size_t n_bytes = strlen(rest);
    if (p->n_facts++ == PLAN_MAX_FACTS)
        return fail(p->err, "there are more than %d facts", PLAN_MAX_FACTS);
    for (const char *c = rest; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return fail(p->err, "the fact has a control character");
    }
    plan->fingerprint = plan->fingerprint ? plan->fingerprint : rest;
    memmove(plan->fingerprint + plan->fingerprint_bytes, rest, n_bytes);
    plan->fingerprint_bytes += n_bytes + 1;
    plan->fingerprint[plan->fingerprint_bytes - 1] = '\n';
    return true;
}

static bool parse_input(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    plan_input input = {.line = offset_of(p, p->line)};
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
    p->inputs_end = offset_of(p, p->at);
    return true;
}

static bool parse_cell(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    const plan_cell before = plan->n_cells ? plan->cells[plan->n_cells - 1] : (plan_cell){0};
    plan_cell cell = {0};
    if (!ADD(p, plan->cells, plan->n_cells, PLAN_MAX_CELLS, "cells") ||
        !take_number(p, &rest, "the input of the cell", &cell.input) ||
        !take_number(p, &rest, "the offset of the cell", &cell.offset) ||
        !take_last_number(p, rest, "the row of the cell", &cell.row))
        return false;
    if (cell.input > plan->n_inputs || (cell.input == plan->n_inputs && cell.offset > 0))
        return fail(p->err, "there is no input %" PRIu64 "; inputs are counted from 0", cell.input);
    if (cell.row > 0 && cell.offset == 0)
        return fail(p->err, "the cell begins at a row, but its offset is 0");
    if (cell.offset > 0 && cell.offset >= plan->inputs[cell.input].n_bytes)
        return fail(p->err, "the cell begins after the end of its input");
    if (plan->n_cells == 0 && (cell.input || cell.offset || cell.row))
        return fail(p->err, "the first cell must begin where the inputs begin: \"cell 0 0 0\"");
    if (plan->n_cells > 0 &&
        (cell.input < before.input ||
         (cell.input == before.input && (cell.offset < before.offset || cell.row < before.row)) ||
         (cell.input == before.input && cell.offset == before.offset && cell.row > before.row)))
        return fail(p->err, "the cell must not begin before the one before it");
    plan->cells[plan->n_cells++] = cell;
    return true;
}

static bool parse_origin(plan_parser *p, char *rest)
{
    plan_file *plan = p->plan;
    char same[17];
    plan->origin = strtoull(rest, NULL, 16);
    snprintf(same, sizeof same, "%016" PRIx64, plan->origin);
    if (plan->updated || strcmp(rest, same) != 0)
        return fail(p->err, "\"origin\" and a checksum expected, once");
    plan->updated = true;
    return true;
}

/* ---- All ---- */

typedef struct plan_section {
    const char *word;
    bool (*parse)(plan_parser *p, char *rest);
} plan_section;

/* Parses the lines after the header, in the order of the sections. */
static bool parse_sections(plan_parser *p)
{
    static const plan_section sections[] = {{"option", parse_option},
                                            {"fact", parse_fact},
                                            {"input", parse_input},
                                            {"cell", parse_cell},
                                            {"origin", parse_origin}};
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
        return fail(p->err, "not a line of a plan, or in the wrong place");
    if (plan->n_inputs == 0 || plan->n_cells == 0)
        return fail(p->err, "the plan has no %s", plan->n_inputs == 0 ? "inputs" : "cells");
    if (p->at != p->end)
        return fail(p->err, "the checksum must be the last line");
    return strcmp(p->line, line) == 0 ||
           fail(p->err, "wrong checksum: the plan was changed or is damaged; make a new one with "
                        "tokmap plan");
}

/* Hashes for each cell the lines that decide what is packed into it, and where it begins and
 * ends. */
static bool hash_cells(const plan_parser *p, const char *text)
{
    const size_t first = strlen(FIRST_LINE "\n");
    plan_file *plan = p->plan;
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return fail_memory(p->err);
    for (size_t i = 0; i < plan->n_cells; i++) {
        const plan_part part = plan_file_part(plan, i);
        const size_t n = plan->n_inputs;
        const size_t begin =
            part.first_input < n ? plan->inputs[part.first_input].line : p->inputs_end;
        const size_t end = part.end_input < n ? plan->inputs[part.end_input].line : p->inputs_end;
        char line[128];
        snprintf(line, sizeof line, "cell %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 part.begin_offset, part.begin_row, part.end_offset, part.end_row);
        XXH3_64bits_reset(state);
        XXH3_64bits_update(state, text + first, p->folder_end - first);
        XXH3_64bits_update(state, text + p->header_end, plan->inputs[0].line - p->header_end);
        XXH3_64bits_update(state, text + begin, end - begin);
        XXH3_64bits_update(state, line, strlen(line));
        plan->cells[i].hash = XXH3_64bits_digest(state);
    }
    XXH3_freeState(state);
    return true;
}

bool plan_file_parse(plan_file *plan, const char *text, size_t n_bytes, failure *err)
{
    plan_parser p = {.plan = plan, .err = err};
    plan->splits.n = 1;
    plan->memory = malloc(n_bytes + 1);
    if (!plan->memory)
        return fail_memory(err);
    memcpy(plan->memory, text, n_bytes);
    p.at = plan->memory;
    p.end = plan->memory + n_bytes;
    size_t before = n_bytes ? n_bytes - 1 : 0; /* the beginning of the last line */
    while (before > 0 && text[before - 1] != '\n')
        before--;
    plan->hash = XXH3_64bits(text, before);
    if (parse_first_line(&p) && parse_folders(&p) && parse_sections(&p) &&
        parse_checksum(&p, plan->hash) && hash_cells(&p, text)) {
        plan->origin = plan->updated ? plan->origin : plan->hash;
        return true;
    }
    err->place = p.n_lines;
    return false;
}

/* ---- Reading ---- */

int plan_read_to_update(plan_file *plan, const char *path)
{
    whole_file file;
    failure err;
    const int error = file_read_whole(path, PLAN_MAX_FILE_BYTES, &file);
    if (error == EFBIG)
        return cli_error(CLI_INPUT, "%s: is larger than 4 GiB, so it is not a plan", path);
    if (error) {
        fail_system(&err, error, "%s", path);
        return cli_print_failure(&err);
    }
    if (!file.data)
        return cli_error(CLI_INPUT, "%s: there is no such plan", path);
    const bool ok = plan_file_parse(plan, (const char *)file.data, file.n_bytes, &err);
    free(file.data);
    if (!ok && err.status == ENOMEM)
        return cli_no_memory();
    return ok ? CLI_OK : cli_error(CLI_INPUT, "%s:%" PRIu64 ": %s", path, err.place, err.text);
}

int plan_read(plan_file *plan, const char *path)
{
    const int code = path_protect_name(path, "a plan");
    return code == CLI_OK ? plan_read_to_update(plan, path) : code;
}
