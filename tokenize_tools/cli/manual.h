/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - what a command is and takes, as data: printed as -h and --help, from which the man
 * page is made, completed by complete.h, and parsed by options.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/words.h"

typedef enum cli_kind {
    CLI_SECTION, /* not an option: a heading of --help */
    CLI_FLAG,    /* takes no value; sets a bool to true */
    CLI_TEXT,    /* const char *; must not be empty */
    CLI_LIST,    /* the same as CLI_TEXT, but each value counts: cli_get_settings has them */
    CLI_WORD,    /* an enum or uint32_t: the value of one of the words */
    CLI_NUMBER,  /* uint64_t from lowest to highest; may have a unit: cli_parse_u64 */
    CLI_CALL     /* `call` decides what it means */
} cli_kind;

/* A table of options ends with {NULL}. --help is part of every table without a row. */
typedef struct cli_option {
    const char *name; /* without dashes */
    char letter;      /* or 0 */
    cli_kind kind;
    size_t target;           /* offset in the struct of options */
    const char *placeholder; /* what --help calls the value; NULL: there is none */
    const char *help;        /* ends with the default in brackets; NULL: not listed */
    const char *refused;     /* the error that it is; NULL: it is allowed */
    const cli_word *words;   /* the values of CLI_WORD; with other kinds only listed in --help */
    const cli_word *(*get_words)(
        void);                /* in place of `words`, if they are made from a table elsewhere */
    uint64_t lowest, highest; /* for CLI_NUMBER; highest 0: no limit */
    int (*call)(void *options, const char *value); /* returns an exit code, with a message */
    bool is_required;
    const char *group; /* options of the same group exclude each other; NULL: none */
    bool takes_more;   /* the words after its value, until the next option, are values too */
} cli_option;

typedef struct cli_manual {
    const char *usage;                 /* without "Usage: " */
    const char *about;                 /* paragraphs, wrapped when printed; "\n\n" between them */
    const char *list_title;            /* "Commands", or NULL */
    const cli_word *(*get_list)(void); /* printed before the options */
    const cli_option *options;
    const char *most_used; /* " output tokenizer ": what -h lists; NULL: all options */
    const char *notes;     /* as `about`, after the options; or NULL */
    const char *examples;  /* lines, printed as they are */
    const char *more;      /* a last line, or NULL */
    const char *operand;   /* the name of the other arguments: "dataset"; NULL: not checked */
    int n_least, n_most;   /* how many there must be; n_most 0: any number */
} cli_manual;

/* Returns the words of an option, or NULL. */
const cli_word *cli_get_words(const cli_option *option);
/* Prints all that the manual has. */
void cli_print_help(FILE *out, const cli_manual *manual);
/* Prints what most users need: the usage, the first sentence, the options that are most used, each
 * with the beginning of its text, and the examples. */
void cli_print_short_help(FILE *out, const cli_manual *manual);
/* Copies the beginning of the help text of an option, up to a semicolon or the end of a sentence,
 * and its default. */
typedef struct cli_summary {
    char text[256];
} cli_summary;
cli_summary cli_shorten(const char *help);
