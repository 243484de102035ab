/* help.c - prints the manual of a command: wrapped, options in columns. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

enum {
    LAST_COLUMN = 79,
    MAX_TEXT_COLUMN = 28, /* where the text of options begins at the latest */
    WORD_INDENT = 2
};

static void print_spaces(int n)
{
    printf("%*s", n > 0 ? n : 0, "");
}

/* Prints the words of the text from column `at` on, with later lines indented by `indent`. */
static void print_wrapped(const char *text, int at, int indent)
{
    bool first = true;
    for (;;) {
        text += strspn(text, " ");
        int n = (int)strcspn(text, " \n");
        if (n > 0 && !first && at + 1 + n > LAST_COLUMN) {
            putchar('\n');
            print_spaces(indent);
            at = indent;
            first = true;
        }
        at += printf("%s%.*s", first || !n ? "" : " ", n, text);
        first = false;
        text += n;
        if (!*text)
            break;
        if (*text == '\n') { /* between paragraphs there are two */
            fputs("\n\n", stdout);
            text += strspn(text, "\n");
            at = 0;
            first = true;
        }
    }
    putchar('\n');
}

/* "  -o, --output P"; returns its width. */
static int format_option(const cli_option *o, char *out, size_t n_bytes)
{
    char letter[] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(out, n_bytes, "  %.4s--%s%s%s", o->letter ? letter : "    ", o->name,
                    o->placeholder ? " " : "", o->placeholder ? o->placeholder : "");
}

static int find_text_column(const cli_option *options)
{
    char text[128];
    int column = 0;
    for (const cli_option *o = options; o->name; o++) {
        int n = o->kind == CLI_SECTION ? 0 : format_option(o, text, sizeof text) + 2;
        column = n > column && n <= MAX_TEXT_COLUMN ? n : column;
    }
    return column;
}

/* One a line with its help, or all in one list. */
static void print_words(const cli_word *words, int column)
{
    char list[512] = "";
    int width = 0;
    if (!words->help) {
        cli_list_words(list, sizeof list, words);
        print_spaces(column);
        print_wrapped(list, column, column);
        return;
    }
    for (const cli_word *w = words; w->name; w++)
        width = (int)strlen(w->name) > width ? (int)strlen(w->name) : width;
    for (const cli_word *w = words; w->name; w++) {
        int indent = column + width + 2;
        print_spaces(column);
        printf("%-*s", width + 2, w->name);
        print_wrapped(w->help, indent, indent);
    }
}

static void print_option(const cli_option *o, int column)
{
    char text[128];
    int n = format_option(o, text, sizeof text);
    fputs(text, stdout);
    if (n + 2 > column)
        putchar('\n');
    print_spaces(n + 2 > column ? column : column - n);
    print_wrapped(o->help, column, column);
    const cli_word *words = cli_get_words(o);
    if (words)
        print_words(words, column + WORD_INDENT);
}

static void print_options(const cli_option *options)
{
    static const cli_option help = {"help", 'h', CLI_FLAG, .help = "print this help and exit"};
    const int column = find_text_column(options);
    if (options->kind != CLI_SECTION)
        puts("\nOptions:");
    for (const cli_option *o = options; o->name; o++) {
        if (o->kind == CLI_SECTION)
            printf("\n%s:\n", o->name);
        else
            print_option(o, column);
    }
    print_option(&help, column);
}

int cli_print_help(const cli_manual *manual)
{
    printf("Usage: %s\n\n", manual->usage);
    print_wrapped(manual->about, 0, 0);
    print_options(manual->options);
    if (manual->notes) {
        putchar('\n');
        print_wrapped(manual->notes, 0, 0);
    }
    printf("\nExamples:\n%s", manual->examples);
    return cli_finish();
}
