/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a command as one table. It drives the parsing of the command line and
 * the text of --help; the man page and the completion are made from that text. */
#pragma once

#include <getopt.h> /* optind */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cli_kind {
    CLI_SECTION, /* not an option: a heading of --help */
    CLI_FLAG,    /* takes no value; sets a bool to true */
    CLI_TEXT,    /* const char *; must not be empty */
    CLI_WORD,    /* an enum or uint32_t: the value of one of the words */
    CLI_NUMBER,  /* uint64_t from lowest to highest; may have a unit: cli_parse_u64 */
    CLI_CALL     /* `call` decides what it means */
} cli_kind;

/* A list of words ends with {NULL}. Either all of them have a help text or none has. */
typedef struct cli_word {
    const char *name;
    uint32_t value;
    const char *help;
} cli_word;

/* A table of options ends with {NULL}. --help is part of every table without a row. */
typedef struct cli_option {
    const char *name; /* without dashes */
    char letter;      /* or 0 */
    cli_kind kind;
    size_t target;                      /* offset in the struct of options */
    const char *placeholder;            /* what --help calls the value; NULL: there is none */
    const char *help;                   /* ends with the default in brackets; NULL: not listed */
    const char *refused;                /* why it is an error; NULL: it is none */
    const cli_word *words;              /* of CLI_WORD; of others: listed in --help */
    const cli_word *(*get_words)(void); /* in place of `words`, for those of a table elsewhere */
    uint64_t lowest, highest;           /* of CLI_NUMBER; highest 0: no limit */
    int (*call)(void *options, const char *value); /* returns an exit code, with a message */
    bool is_required;
} cli_option;

typedef struct cli_manual {
    const char *usage;                 /* without "Usage: " */
    const char *about;                 /* paragraphs, wrapped when printed; "\n\n" between them */
    const char *list_title;            /* "Commands", or NULL */
    const cli_word *(*get_list)(void); /* printed before the options */
    const cli_option *options;
    const char *notes;    /* as `about`, after the options; or NULL */
    const char *examples; /* lines, printed as they are */
    const char *operand;  /* what the other arguments are: "dataset"; NULL: not checked */
    int n_least, n_most;  /* how many there must be; n_most 0: any number */
} cli_manual;

#define CLI_GO_ON (-1)
/* Reads the options into the struct at `target`. CLI_GO_ON: the operands are argv[optind] and what
 * follows. Otherwise the exit code to end with, after --help or a message. */
int cli_parse_options(const cli_manual *manual, int argc, char **argv, void *target);
/* Whether cli_parse_options has seen the option. */
bool cli_is_given(const char *name);

/* An option as it was given. */
typedef struct cli_setting {
    const cli_option *option;
    const char *value; /* NULL: it takes none */
} cli_setting;
/* Those that cli_parse_options has seen, in their order. */
const cli_setting *cli_get_settings(size_t *n);
/* The option with this name in one of the tables, the last of which is NULL; or NULL. */
const cli_option *cli_find_option(const cli_option *const *tables, const char *name);
/* Sets it as the command line does; value NULL: none. Returns an exit code, prints the error. */
int cli_set_option(const cli_option *option, const char *value, void *target);
/* Makes one table of several, the last of which is NULL. */
#define CLI_MAX_OPTIONS 64
const cli_option *cli_join_options(cli_option joined[CLI_MAX_OPTIONS + 1],
                                   const cli_option *const *tables);

/* The words of an option, or NULL. */
const cli_word *cli_get_words(const cli_option *option);
/* "auto, text or lines" */
void cli_list_words(char *out, size_t n_bytes, const cli_word *words);
/* The word with this name, or NULL. */
const cli_word *cli_find_word(const cli_word *words, const char *name);
/* Prints that there is no `kind` of this name, and which word is near it; returns CLI_USAGE. */
int cli_refuse_word(const char *kind, const char *name, const cli_word *words);
/* The name of the word with this value, which must exist. */
const char *cli_word_name(const cli_word *words, uint32_t value);

void cli_print_help(FILE *out, const cli_manual *manual);
