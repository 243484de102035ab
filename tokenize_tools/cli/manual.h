/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - what a command is and takes, as data: printed as --help, from which the man page and
 * the completion are made, and parsed by options.h. */
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
} cli_option;

typedef struct cli_manual {
    const char *usage;                 /* without "Usage: " */
    const char *about;                 /* paragraphs, wrapped when printed; "\n\n" between them */
    const char *list_title;            /* "Commands", or NULL */
    const cli_word *(*get_list)(void); /* printed before the options */
    const cli_option *options;
    const char *notes;    /* as `about`, after the options; or NULL */
    const char *examples; /* lines, printed as they are */
    const char *operand;  /* the name of the other arguments: "dataset"; NULL: not checked */
    int n_least, n_most;  /* how many there must be; n_most 0: any number */
} cli_manual;

/* Returns the words of an option, or NULL. */
const cli_word *cli_get_words(const cli_option *option);
void cli_print_help(FILE *out, const cli_manual *manual);
