/* SPDX-License-Identifier: Apache-2.0 */
#include "request/propose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/plain_text.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "input/input_list.h"
#include "plan/plan_file.h"
#include "request/own_files.h"
#include "system/files.h"
#include "system/memory_file.h"
#include "system/output_file.h"

#define MOST_NAMED 4 /* inputs that a command names one by one */
#define MOST_PATTERNS 8
#define PATTERN_BYTES 64

/* The inputs that one command packs. */
typedef struct proposed {
    const pack_inputs *inputs;
    const pack_options *options;
    bool is_text; /* else they have records */
    size_t n;
    const char *ending; /* of the names of its outputs */
    char patterns[MOST_PATTERNS][PATTERN_BYTES];
    size_t n_patterns; /* 0: patterns cannot say which inputs these are */
    bool by_list;
} proposed;

static bool has(const proposed *p, size_t which)
{
    const corpus_format format = p->inputs->found[which];
    return format != CORPUS_AUTO && (format == CORPUS_TEXT) == p->is_text;
}

/* ---- Patterns ---- */

/* Copies the pattern for names that end like this one; false if the name has no ending. */
static bool pattern_of(const char *name, char pattern[PATTERN_BYTES])
{
    const char *last = name_in_path(name), *dot = strrchr(last, '.');
    if (dot && (strcmp(dot, ".gz") == 0 || strcmp(dot, ".zst") == 0)) {
        const char *before = memrchr(last, '.', (size_t)(dot - last));
        dot = before ? before : dot;
    }
    return dot && dot > last && !strpbrk(dot, "*?[\\") &&
           snprintf(pattern, PATTERN_BYTES, "*%s", dot) < PATTERN_BYTES;
}

/* False if some name has no ending, or there are too many of them. */
static bool collect_patterns(proposed *p)
{
    char pattern[PATTERN_BYTES];
    for (size_t i = 0; i < p->inputs->n; i++) {
        size_t k = 0;
        if (!has(p, i))
            continue;
        if (!pattern_of(p->inputs->names[i], pattern))
            return false;
        while (k < p->n_patterns && strcmp(p->patterns[k], pattern) != 0)
            k++;
        if (k == MOST_PATTERNS)
            return false;
        if (k == p->n_patterns)
            memcpy(p->patterns[p->n_patterns++], pattern, PATTERN_BYTES);
    }
    return true;
}

static bool needs_no_file(void *context, const char *name)
{
    (void)context;
    (void)name;
    return false;
}

/* Whether the list has the inputs of the command, in their order, and no others. */
static bool has_exactly(const proposed *p, const input_list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < p->inputs->n; i++) {
        if (!has(p, i))
            continue;
        if (n == list->n_names || strcmp(list->names[n], p->inputs->names[i]) != 0)
            return false;
        n++;
    }
    return n == list->n_names;
}

/* Keeps the patterns only if the command finds by them what it is meant to find: a pattern also
 * takes names that a folder leaves out without it. */
static int choose_patterns(proposed *p)
{
    failure err;
    name_filter filter = {.exclude = p->options->filter.exclude};
    input_list list = {.needs_no_file = needs_no_file, .filter = &filter};
    const char *patterns[MOST_PATTERNS];
    bool has_matched[MOST_PATTERNS] = {false};
    bool fits = p->options->filter.include.n == 0 && collect_patterns(p);
    for (size_t k = 0; k < p->n_patterns; k++)
        patterns[k] = p->patterns[k];
    filter.include = (name_patterns){patterns, has_matched, p->n_patterns};
    for (size_t i = 0; i < p->inputs->n_arguments && fits; i++)
        fits = input_list_expand(&list, p->inputs->arguments[i], NULL, &err);
    if (!fits || !has_exactly(p, &list))
        p->n_patterns = 0;
    input_list_free(&list);
    return CLI_OK;
}

/* ---- Lists ---- */

/* Whether a line of a list can name the input. */
static bool fits_on_line(const char *name)
{
    const size_t n = strlen(name);
    return !strchr(name, '\n') && name[n - 1] != '\r';
}

/* Whether a terminal shows the name as it is, so that it can be pasted. */
static bool is_plain(const char *name)
{
    size_t n = strlen(name), length;
    for (; n > 0 && (length = plain_text_length(name, n)) > 0; n -= length)
        name += length;
    return n == 0;
}

static path_text list_path(const proposed *p)
{
    return path_of(path_of(p->options->output, p->ending).s, PACK_LIST_SUFFIX);
}

static int write_list(const proposed *p)
{
    output_file out;
    memory_file text;
    FILE *lines = memory_file_open(&text);
    if (!lines)
        return cli_no_memory();
    for (size_t i = 0; i < p->inputs->n; i++) {
        if (has(p, i))
            fprintf(lines, "%s\n", p->inputs->names[i]);
    }
    if (!memory_file_close(lines, &text))
        return cli_no_memory();
    whole_file before = {0};
    const bool is_there = file_read_whole(list_path(p).s, text.n_bytes + 1, &before) == 0 &&
                          before.n_bytes == text.n_bytes &&
                          memcmp(before.data, text.text, text.n_bytes) == 0;
    free(before.data);
    if (is_there) {
        free(text.text);
        return CLI_OK;
    }
    int code = output_name(&out, list_path(p).s, "", p->options->force);
    if (code == CLI_OK)
        code = output_begin(&out);
    if (code == CLI_OK)
        code = output_write(&out, text.text, text.n_bytes);
    if (code == CLI_OK)
        code = output_place(&out);
    output_close(&out);
    free(text.text);
    return code;
}

/* ---- Commands ---- */

static bool is_one_of(const char *name, const char *const *list)
{
    while (*list && strcmp(name, *list) != 0)
        list++;
    return *list != NULL;
}

/* Prints the options that were given: those that name an output with the ending, and none of those
 * that choose the inputs or what is printed. */
static void print_options(const proposed *p)
{
    static const char *const choosing[] = {"format",  "lines",   "skip-input",
                                           "include", "dry-run", "write-lists",
                                           "json",    "report",  NULL};
    static const char *const outputs[] = {"output", "cells", NULL};
    static const char *const of_records[] = {"field", "columns", NULL};
    size_t n;
    const cli_setting *settings = cli_get_settings(&n);
    for (size_t i = 0; i < n; i++) {
        const char *name = settings[i].option->name, *value = settings[i].value;
        if (is_one_of(name, choosing) || strcmp(name, "output") == 0 ||
            (p->is_text && is_one_of(name, of_records)) ||
            (strcmp(name, "exclude") == 0 && p->n_patterns == 0))
            continue;
        fprintf(stderr, " --%s", name);
        if (value)
            cli_print_word(stderr, *value == '-' ? "=" : " ", value,
                           is_one_of(name, outputs) ? p->ending : "");
    }
    cli_print_word(stderr, " -o ", p->options->output, p->ending);
    putc('\n', stderr);
}

static void print_inputs(const proposed *p)
{
    const pack_inputs *in = p->inputs;
    for (size_t i = 0; i < in->n_arguments && p->n_patterns > 0; i++)
        cli_print_word(stderr, " ", in->arguments[i], "");
    for (size_t k = 0; k < p->n_patterns; k++)
        cli_print_word(stderr, " --include ", p->patterns[k], "");
    for (size_t i = 0; i < in->n && p->n_patterns == 0 && !p->by_list; i++) {
        if (has(p, i)) /* a name may begin as an option does */
            cli_print_word(stderr, *in->names[i] == '-' ? " ./" : " ", in->names[i], "");
    }
    if (p->by_list)
        cli_print_word(stderr, " ", path_of("@", list_path(p).s).s, "");
}

static int propose(proposed *p)
{
    bool fits = true, plain = true;
    for (size_t i = 0; i < p->inputs->n; i++) {
        p->n += has(p, i);
        fits = fits && (!has(p, i) || fits_on_line(p->inputs->names[i]));
        plain = plain && (!has(p, i) || is_plain(p->inputs->names[i]));
    }
    int code = choose_patterns(p);
    p->by_list = p->n_patterns == 0 && (p->n > MOST_NAMED || !plain);
    const bool by_list = p->by_list;
    if (by_list && !fits) {
        fprintf(stderr, "  (no command: a name has a line end in it, which a list cannot have)\n");
        return code;
    }
    if (code == CLI_OK && by_list && p->options->write_lists)
        code = write_list(p);
    fprintf(stderr, "  tokmap %s%s", p->options->cells_folder ? "plan" : "pack",
            p->is_text ? " --format text" : "");
    print_inputs(p);
    print_options(p);
    if (by_list && !p->options->write_lists)
        fprintf(stderr, "  (--write-lists writes the list that it names)\n");
    return code;
}

/* Prints the command that merges a split of both results. */
static void print_merge(const pack_options *o, const proposed *a, const proposed *b,
                        const char *split)
{
    const path_text from_a = path_of(o->output, a->ending), from_b = path_of(o->output, b->ending);
    cli_print_word(stderr, "  tokmap merge ", plan_split_path(from_a.s, split, "").s, "");
    cli_print_word(stderr, " ", plan_split_path(from_b.s, split, "").s, "");
    cli_print_word(stderr, " -o ", plan_split_path(o->output, split, "").s, "");
    putc('\n', stderr);
}

int pack_propose_commands(const pack_inputs *inputs, const pack_options *options)
{
    proposed text = {inputs, options, true, .ending = PACK_OF_TEXT};
    proposed records = {inputs, options, false, .ending = PACK_OF_RECORDS};
    fputs("Pack each kind by itself:\n", stderr);
    const int of_text = propose(&text), code = cli_first_failure(propose(&records), of_text);
    for (size_t i = 0; i <= options->n_splits && !options->cells_folder; i++)
        print_merge(options, &text, &records, i ? options->splits[i - 1].name : "");
    return code;
}
