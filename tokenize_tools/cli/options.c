/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <inttypes.h>
#include <string.h>

#include "base/store_name.h"
#include "cli/cli.h"
#include "cli/complete.h"

enum {
    LONG_HELP = 256,             /* getopt_long returns it for --help; lower values are letters */
    FIRST_VALUE = LONG_HELP + 1, /* plus the number of a row */
    MAX_SETTINGS = 1024
};

static cli_setting settings[MAX_SETTINGS];
static size_t n_settings;

/* ---- Values ---- */

static int take_word(const cli_option *option, const char *text, void *target)
{
    char list[512] = "";
    const cli_word *words = cli_get_words(option), *word = cli_find_word(words, text);
    if (word) {
        memcpy(target, &word->value, sizeof word->value);
        return CLI_OK;
    }
    cli_list_words(list, sizeof list, words);
    return cli_usage("--%s %s: must be %s", option->name, text, list);
}

/* Formats 64000000 as "64M", as users write it. */
static cli_text format_limit(uint64_t n)
{
    static const char *const letters[] = {"", "k", "M", "G", "T"};
    cli_text text;
    size_t i = 0;
    for (; n && n % 1000 == 0 && i + 1 < sizeof letters / sizeof *letters; i++)
        n /= 1000;
    snprintf(text.s, sizeof text.s, "%" PRIu64 "%s", n, letters[i]);
    return text;
}

static int take_number(const cli_option *option, const char *text, uint64_t *target)
{
    const uint64_t highest = option->highest ? option->highest : UINT64_MAX;
    const bool is_number = cli_parse_u64(text, target);
    const char *hint = is_number ? "" : "; it may end in k, M, G or T, or in KiB, MiB, GiB or TiB";
    if (is_number && *target >= option->lowest && *target <= highest)
        return CLI_OK;
    if (highest < UINT64_MAX - 1)
        return cli_usage("--%s %s: must be a whole number from %s to %s%s", option->name, text,
                         format_limit(option->lowest).s, format_limit(highest).s, hint);
    return cli_usage("--%s %s: must be a whole number%s%s", option->name, text,
                     option->lowest ? " above 0" : "", hint);
}

static int check_store(const char *name)
{
    char text[STORE_NAME_TEXT_BYTES];
    if (!store_name_is(name))
        return CLI_OK;
    store_name_refuse(name, text);
    return cli_usage("%s", text);
}

/* Whether the value of an option is the name of a file, which its placeholder says. */
static bool names_file(const cli_option *option)
{
    static const char *const names[] = {"FILE", "P",     "Q",      "P:N",
                                        "DIR",  "INPUT", "OUTPUT", "PREFIX"};
    for (size_t i = 0; option->placeholder && i < sizeof names / sizeof *names; i++)
        if (strcmp(option->placeholder, names[i]) == 0)
            return true;
    return false;
}

static int take_value(const cli_option *option, const char *value, void *options)
{
    void *target = (char *)options + option->target;
    if (option->placeholder && !*value)
        return cli_usage("option --%s needs a value", option->name);
    if (option->refused)
        return cli_usage("%s", option->refused);
    if (names_file(option) && check_store(value) != CLI_OK)
        return CLI_USAGE;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)target = true;
        break;
    case CLI_TEXT:
    case CLI_LIST:
        *(const char **)target = value;
        break;
    case CLI_WORD:
        return take_word(option, value, target);
    case CLI_NUMBER:
        return take_number(option, value, target);
    case CLI_CALL:
        return option->call(options, value);
    case CLI_SECTION:
        break;
    }
    return CLI_OK;
}

const cli_option *cli_find_option(const cli_option *const *tables, const char *name)
{
    for (; *tables; tables++) {
        for (const cli_option *o = *tables; o->name; o++) {
            if (o->kind != CLI_SECTION && strcmp(o->name, name) == 0)
                return o;
        }
    }
    return NULL;
}

int cli_set_option(const cli_option *option, const char *value, void *target)
{
    if (!option->placeholder != !value)
        return cli_usage("option --%s %s", option->name,
                         value ? "takes no value" : "needs a value");
    return take_value(option, value, target);
}

/* ---- The command line ---- */

/* Prints that the option --NAME does not exist, or which ones may be meant by its beginning. */
static int refuse_name(const cli_option *options, const char *name, int n_name)
{
    char wrong[128], list[512] = "";
    cli_nearest nearest = {NULL};
    size_t used = 0;
    snprintf(wrong, sizeof wrong, "%.*s", n_name, name);
    for (const cli_option *o = options; o->name; o++) {
        if (o->kind == CLI_SECTION || !o->help)
            continue;
        cli_find_nearest(&nearest, wrong, o->name);
        if (strncmp(o->name, wrong, strlen(wrong)) == 0 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s", used ? ", " : "",
                                     o->name);
    }
    if (used)
        return cli_usage("option --%s is ambiguous: %s", wrong, list);
    return nearest.name ? cli_usage("unknown option --%s; did you mean --%s?", wrong, nearest.name)
                        : cli_usage("unknown option --%s", wrong);
}

/* Prints why getopt_long returned '?' or ':'. */
static int refuse_option(const cli_option *options, int returned, char **argv)
{
    /* Inside a bundle such as -qx, getopt has not advanced optind yet, so this is another word. */
    const char *word = argv[optind - 1];
    bool dashes = strncmp(word, "--", 2) == 0;
    int n_name = (int)strcspn(word, "=");
    if (returned == ':')
        return dashes ? cli_usage("option %s needs a value", word)
                      : cli_usage("option -%c needs a value", optopt);
    if (optopt == 0)
        return refuse_name(options, word + 2, n_name - 2);
    if (dashes && word[n_name] == '=')
        return cli_usage("option %.*s takes no value", n_name, word);
    return cli_usage("unknown option -%c", optopt);
}

typedef struct getopt_table {
    struct option longs[CLI_MAX_OPTIONS + 1];
    char letters[2 * CLI_MAX_OPTIONS + 3];
} getopt_table;

/* Fills the tables of getopt_long. Row i of `longs` is row i of the options; a section becomes a
 * name that no argument can have. */
static void fill_getopt_table(getopt_table *table, const cli_option *options)
{
    int n = 0;
    char *letter = table->letters;
    *letter++ = ':';
    *letter++ = 'h';
    for (; options[n].name; n++) {
        const cli_option *o = &options[n];
        const char *name = o->kind == CLI_SECTION ? "=" : o->name;
        int takes = o->placeholder ? required_argument : no_argument;
        table->longs[n] = (struct option){name, takes, NULL, FIRST_VALUE + n};
        if (o->letter)
            *letter++ = o->letter;
        if (o->letter && o->placeholder)
            *letter++ = ':';
    }
    *letter = '\0';
    table->longs[n] = (struct option){"help", no_argument, NULL, LONG_HELP};
    table->longs[n + 1] = (struct option){NULL, 0, NULL, 0};
}

static const cli_option *find_option(const cli_option *options, int returned)
{
    if (returned >= FIRST_VALUE)
        return &options[returned - FIRST_VALUE];
    while (options->name && options->letter != returned)
        options++;
    return options->name ? options : NULL;
}

static int check_groups(const cli_option *options)
{
    for (const cli_option *a = options; a->name; a++) {
        for (const cli_option *b = a + 1; a->group && cli_is_given(a->name) && b->name; b++) {
            if (b->group && strcmp(a->group, b->group) == 0 && cli_is_given(b->name))
                return cli_usage("use only one of --%s and --%s", a->name, b->name);
        }
    }
    return CLI_GO_ON;
}

static int check_operands(const cli_manual *manual, int n, char **operands)
{
    for (int i = 0; i < n; i++) {
        if (check_store(operands[i]) != CLI_OK)
            return CLI_USAGE;
    }
    if (manual->operand && n < manual->n_least)
        return cli_usage("no %s given", manual->operand);
    if (manual->operand && manual->n_most && n > manual->n_most)
        return cli_usage("only one %s is allowed, and '%s' is the second", manual->operand,
                         operands[manual->n_most]);
    for (const cli_option *o = manual->options; o->name; o++) {
        if (o->is_required && !cli_is_given(o->name))
            return cli_usage("option --%s %s is required", o->name, o->placeholder);
    }
    return check_groups(manual->options);
}

/* Takes the value of an option, and the words after it, if they are values too. */
static int take_setting(const cli_option *option, int argc, char **argv, void *target)
{
    const char *value = optarg;
    int code;
    do {
        if (n_settings == MAX_SETTINGS)
            return cli_usage("more than %d options are given", MAX_SETTINGS);
        settings[n_settings++] = (cli_setting){option, option->placeholder ? value : NULL};
        code = take_value(option, value, target);
        const bool has_more = option->takes_more && optind < argc && argv[optind][0] != '-';
        value = has_more ? argv[optind++] : NULL;
    } while (code == CLI_OK && value);
    return code;
}

int cli_parse_options(const cli_manual *manual, int argc, char **argv, void *target)
{
    getopt_table table;
    if (cli_is_completing())
        return cli_complete(manual, argc, argv);
    n_settings = 0;
    opterr = 0;
    fill_getopt_table(&table, manual->options);
    for (int c; (c = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1;) {
        if (c == 'h' || c == LONG_HELP) {
            (c == 'h' ? cli_print_short_help : cli_print_help)(stdout, manual);
            return cli_finish();
        }
        const cli_option *option = find_option(manual->options, c);
        if (!option)
            return refuse_option(manual->options, c, argv);
        int code = take_setting(option, argc, argv, target);
        if (code != CLI_OK)
            return code;
    }
    return check_operands(manual, argc - optind, argv + optind);
}

const cli_setting *cli_get_settings(size_t *n)
{
    *n = n_settings;
    return settings;
}

const char *cli_find_other(const char *const *allowed)
{
    for (size_t i = 0; i < n_settings; i++) {
        const char *name = settings[i].option->name;
        const char *const *a = allowed;
        while (*a && strcmp(*a, name) != 0)
            a++;
        if (!*a)
            return name;
    }
    return NULL;
}

bool cli_is_given(const char *name)
{
    for (size_t i = 0; i < n_settings; i++) {
        if (strcmp(settings[i].option->name, name) == 0)
            return true;
    }
    return false;
}

const cli_option *cli_join_options(cli_option joined[CLI_MAX_OPTIONS + 1],
                                   const cli_option *const *tables)
{
    size_t n = 0;
    for (; *tables; tables++) {
        for (const cli_option *o = *tables; o->name && n < CLI_MAX_OPTIONS; o++)
            joined[n++] = *o;
    }
    joined[n] = (cli_option){NULL};
    return joined;
}
