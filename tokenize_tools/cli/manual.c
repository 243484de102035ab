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
    int column = (int)strlen("  -h, --help") + 2;
    for (const cli_option *o = options; o->name; o++) {
        int n = o->help ? format_option(o, text, sizeof text) + 2 : 0;
        column = n > column && n <= MAX_TEXT_COLUMN ? n : column;
    }
    return column;
}

/* Prints one word a line with its help; without help, or if only names are wanted, all words as one
 * list. */
static void print_words(FILE *out, const cli_word *words, int column, bool only_names)
{
    char list[512] = "";
    int width = 0;
    if (!words->help || only_names) {
        cli_list_words(list, sizeof list, words);
        fprintf(out, "%*s", column, "");
        print_wrapped(out, list, column);
        return;
    }
    for (const cli_word *w = words; w->name; w++)
        width = (int)strlen(w->name) > width ? (int)strlen(w->name) : width;
    for (const cli_word *w = words; w->name; w++) {
        if (w->title)
            fprintf(out, "%s%s:\n", w == words ? "" : "\n", w->title);
        fprintf(out, "%*s%-*s", column, "", width + 2, w->name);
        print_wrapped(out, w->help, column + width + 2);
    }
}

static void print_option(FILE *out, const cli_option *o, int column, bool in_short)
{
    char text[128];
    int n = format_option(o, text, sizeof text);
    if (n + 2 > column)
        fprintf(out, "%s\n%*s", text, column, "");
    else
        fprintf(out, "%-*s", column, text);
    print_wrapped(out, in_short ? cli_shorten(o->help).text : o->help, column);
    const cli_word *words = cli_get_words(o);
    if (words)
        print_words(out, words, column + WORD_INDENT, in_short);
}

/* Whether -h lists the option or heading. */
static bool is_most_used(const cli_manual *manual, const cli_option *o)
{
    char name[64];
    snprintf(name, sizeof name, " %s ", o->name);
    return !manual->most_used || strstr(manual->most_used, name) != NULL;
}

static void print_options(FILE *out, const cli_manual *manual, bool in_short)
{
    static const cli_option help = {"help", 'h', CLI_FLAG,
                                    .help = "print this help, or with -h a short one, and exit"};
    const int column = find_text_column(manual->options);
    const bool only_some = in_short && manual->most_used;
    if (only_some)
        fputs("\nThe most used options:\n", out);
    else if (!manual->options->name || manual->options->kind != CLI_SECTION)
        fputs("\nOptions:\n", out);
    for (const cli_option *o = manual->options; o->name; o++) {
        if (in_short && !is_most_used(manual, o))
            continue;
        if (o->kind == CLI_SECTION)
            fprintf(out, "\n%s:\n", o->name);
        else if (o->help)
            print_option(out, o, column, in_short);
    }
    print_option(out, &help, column, false);
}

/* Prints the commands, formats and the like that the manual lists before the options. */
static void print_list(FILE *out, const cli_manual *manual)
{
    if (!manual->get_list)
        return;
    putc('\n', out);
    if (manual->list_title)
        fprintf(out, "%s:\n", manual->list_title);
    print_words(out, manual->get_list(), WORD_INDENT, false);
}

void cli_print_help(FILE *out, const cli_manual *manual)
{
    fprintf(out, "Usage: %s\n\n", manual->usage);
    print_wrapped(out, manual->about, 0);
    print_list(out, manual);
    print_options(out, manual, false);
    if (manual->notes) {
        putc('\n', out);
        print_wrapped(out, manual->notes, 0);
    }
    fprintf(out, "\nExamples:\n%s", manual->examples);
    if (manual->more)
        fprintf(out, "\n%s\n", manual->more);
}

/* ---- Short help ---- */

/* Returns how many of these bytes stand before a semicolon, or to the end of the first sentence. */
static int find_end(const char *text, int n_bytes)
{
    for (int i = 0; i + 1 < n_bytes; i++)
        if (strchr(";.\n", text[i]) && strchr(" \n", text[i + 1]) && (i == 0 || text[i - 1] != '.'))
            return i; /* not after "..." */
    return n_bytes;
}

cli_summary cli_shorten(const char *help)
{
    cli_summary summary;
    const int n_all = (int)strlen(help);
    const char *fallback = n_all && help[n_all - 1] == ']' ? strrchr(help, '[') : NULL;
    const int n_text = fallback > help ? (int)(fallback - help) - 1 : n_all;
    const int n_fallback = n_all - n_text - 3; /* without the space and the brackets */
    snprintf(summary.text, sizeof summary.text, "%.*s", find_end(help, n_text), help);
    const size_t used = strlen(summary.text);
    if (n_fallback > 0)
        snprintf(summary.text + used, sizeof summary.text - used, " [%.*s]",
                 find_end(fallback + 1, n_fallback), fallback + 1);
    return summary;
}

/* Returns how many bytes of the usage are the program and the command: "tokmap pack". */
static int measure_name(const char *usage)
{
    int n = 0;
    while (usage[n] >= 'a' && usage[n] <= 'z') {
        n += (int)strcspn(usage + n, " \n");
        n += usage[n] == ' ';
    }
    return n > 0 && usage[n - 1] == ' ' ? n - 1 : n;
}

void cli_print_short_help(FILE *out, const cli_manual *manual)
{
    char about[512];
    snprintf(about, sizeof about, "%.*s.", find_end(manual->about, (int)strlen(manual->about)),
             manual->about);
    fprintf(out, "Usage: %s\n\n", manual->usage);
    print_wrapped(out, about, 0);
    print_list(out, manual);
    print_options(out, manual, true);
    fprintf(out, "\nExamples:\n%s\n'%.*s --help' prints the whole help.\n", manual->examples,
            measure_name(manual->usage), manual->usage);
}
