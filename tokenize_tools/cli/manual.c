/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

#include <stdio.h>
#include <string.h>

enum {
    LAST_COLUMN = 79,
    MAX_TEXT_COLUMN = 28, /* the text of options begins here or before */
    WORD_INDENT = 2
};

const cli_word *cli_get_words(const cli_option *option)
{
    return option->get_words ? option->get_words() : option->words;
}

/* Prints the text from column `indent` on, where the cursor is, in lines that begin there. */
static void print_wrapped(FILE *out, const char *text, int indent)
{
    for (int at = indent, n; *text; text += n + (int)strspn(text + n, " ")) {
        if (*text == '\n') { /* paragraphs are separated by two */
            n = (int)strspn(text, "\n");
            at = indent;
            fputs("\n\n", out);
            continue;
        }
        n = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + n > LAST_COLUMN)
            at = fprintf(out, "\n%*s", indent, "") - 1;
        at += fprintf(out, "%s%.*s", at > indent ? " " : "", n, text);
    }
    putc('\n', out);
}

/* Formats "  -o, --output P"; returns its width. */
static int format_option(const cli_option *o, char *text, size_t n_bytes)
{
    char letter[5] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(text, n_bytes, "  %s--%s%s%s", letter, o->name, o->placeholder ? " " : "",
                    o->placeholder ? o->placeholder : "");
}

static int find_text_column(const cli_option *options)
{
    char text[128];
    int column = 0;
    for (const cli_option *o = options; o->name; o++) {
        int n = o->help ? format_option(o, text, sizeof text) + 2 : 0;
        column = n > column && n <= MAX_TEXT_COLUMN ? n : column;
    }
    return column;
}

/* Prints one word a line with its help, or, without help, all words as one list. */
static void print_words(FILE *out, const cli_word *words, int column)
{
    char list[512] = "";
    int width = 0;
    if (!words->help) {
        cli_list_words(list, sizeof list, words);
        fprintf(out, "%*s", column, "");
        print_wrapped(out, list, column);
        return;
    }
    for (const cli_word *w = words; w->name; w++)
        width = (int)strlen(w->name) > width ? (int)strlen(w->name) : width;
    for (const cli_word *w = words; w->name; w++) {
        fprintf(out, "%*s%-*s", column, "", width + 2, w->name);
        print_wrapped(out, w->help, column + width + 2);
    }
}

static void print_option(FILE *out, const cli_option *o, int column)
{
    char text[128];
    int n = format_option(o, text, sizeof text);
    if (n + 2 > column)
        fprintf(out, "%s\n%*s", text, column, "");
    else
        fprintf(out, "%-*s", column, text);
    print_wrapped(out, o->help, column);
    const cli_word *words = cli_get_words(o);
    if (words)
        print_words(out, words, column + WORD_INDENT);
}

static void print_options(FILE *out, const cli_option *options)
{
    static const cli_option help = {"help", 'h', CLI_FLAG, .help = "print this help and exit"};
    const int column = find_text_column(options);
    if (options->kind != CLI_SECTION)
        fputs("\nOptions:\n", out);
    for (const cli_option *o = options; o->name; o++) {
        if (o->kind == CLI_SECTION)
            fprintf(out, "\n%s:\n", o->name);
        else if (o->help)
            print_option(out, o, column);
    }
    print_option(out, &help, column);
}

void cli_print_help(FILE *out, const cli_manual *manual)
{
    fprintf(out, "Usage: %s\n\n", manual->usage);
    print_wrapped(out, manual->about, 0);
    if (manual->list_title) {
        fprintf(out, "\n%s:\n", manual->list_title);
        print_words(out, manual->get_list(), WORD_INDENT);
    }
    print_options(out, manual->options);
    if (manual->notes) {
        putc('\n', out);
        print_wrapped(out, manual->notes, 0);
    }
    fprintf(out, "\nExamples:\n%s", manual->examples);
}
