/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/complete.h"

#include <string.h>

#include "cli/cli.h"

static bool completes;

bool cli_begin_completion(int argc, char **argv)
{
    completes = argc > 2 && strcmp(argv[1], "--complete") == 0;
    return completes;
}

bool cli_is_completing(void)
{
    return completes;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static void print_candidate(const char *before, const char *name, const char *help)
{
    printf("%s%s%s%s\n", before, name, help ? "\t" : "", help ? cli_shorten(help).text : "");
}

static void complete_after(const char *before, const char *word, const cli_word *words)
{
    for (; words->name; words++)
        if (begins_with(words->name, word))
            print_candidate(before, words->name, words->help);
}

void cli_complete_word(const char *word, const cli_word *words)
{
    complete_after("", word, words);
}

/* Finds the option that is `word`, -LETTER or --NAME, or whose name ends at a '='. */
static const cli_option *find_option(const cli_option *options, const char *word)
{
    const bool is_long = begins_with(word, "--");
    const size_t n = is_long ? strcspn(word + 2, "=") : 0;
    for (; options->name; options++) {
        if (options->kind == CLI_SECTION)
            continue;
        if (is_long ? strlen(options->name) == n && memcmp(word + 2, options->name, n) == 0
                    : word[0] == '-' && word[1] && options->letter == word[1] && !word[2])
            return options;
    }
    return NULL;
}

static bool takes_value(const cli_option *option)
{
    return option && option->placeholder;
}

/* Prints the values that begin as `word` does, each after `before`. */
static void complete_value(const cli_option *option, const char *before, const char *word)
{
    const cli_word *words = cli_get_words(option);
    const char *value = option->placeholder;
    if (words)
        complete_after(before, word, words);
    else if (strcmp(value, "P") == 0 || strcmp(value, "Q") == 0)
        puts(":datasets");
    else if (option->kind != CLI_NUMBER)
        puts(strcmp(value, "DIR") == 0 ? ":folders" : ":files");
}

static void complete_option(const cli_option *options, const char *word)
{
    char name[64];
    for (; options->name; options++) {
        snprintf(name, sizeof name, "--%s", options->name);
        if (options->kind != CLI_SECTION && options->help && begins_with(name, word))
            print_candidate("", name, options->help);
    }
    if (begins_with("--help", word))
        print_candidate("", "--help", "explain all options");
}

/* Counts the arguments before the last one that are neither options nor their values. */
static int count_operands(const cli_option *options, int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i + 1 < argc; i++) {
        if (argv[i][0] != '-' || !argv[i][1])
            n++;
        else if (!strchr(argv[i], '=') && takes_value(find_option(options, argv[i])))
            i++;
    }
    return n;
}

static void complete_operand(const cli_manual *manual, int n_before, const char *word)
{
    if (manual->get_list && (n_before == 0 || !manual->operand))
        complete_after("", word, manual->get_list());
    else if (manual->operand && strcmp(manual->operand, "dataset") == 0)
        puts(":datasets");
    else if (!manual->n_most || n_before < manual->n_most)
        puts(manual->operand && strcmp(manual->operand, "DIR") == 0 ? ":folders" : ":files");
}

int cli_complete(const cli_manual *manual, int argc, char **argv)
{
    const char *word = argv[argc - 1];
    const size_t n_name = strcspn(word, "=");
    const cli_option *option = argc > 2 ? find_option(manual->options, argv[argc - 2]) : NULL;
    char before[64];
    if (takes_value(option) && !strchr(argv[argc - 2], '=')) {
        complete_value(option, "", word);
    } else if (begins_with(word, "--") && word[n_name]) { /* --NAME=VALUE */
        option = find_option(manual->options, word);
        snprintf(before, sizeof before, "%.*s", (int)n_name + 1, word);
        if (takes_value(option))
            complete_value(option, before, word + n_name + 1);
    } else if (word[0] == '-') {
        complete_option(manual->options, word);
    } else {
        complete_operand(manual, count_operands(manual->options, argc, argv), word);
    }
    return cli_finish();
}
