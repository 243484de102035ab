/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - lists of words: the values of an option, commands, pages. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A list of words ends with {NULL}. Either all of them have a help text or none has. */
typedef struct cli_word {
    const char *name;
    uint32_t value;
    const char *help;
    const char *title; /* a heading of --help, before this word; or NULL */
} cli_word;

/* Returns the word with this name, or NULL. */
const cli_word *cli_find_word(const cli_word *words, const char *name);
/* The word of several that is nearest to another one. */
typedef struct cli_nearest {
    const char *name; /* NULL: none is similar */
    size_t distance;
} cli_nearest;
/* Takes `name` into account as another word that may have been meant by `wrong`. */
void cli_find_nearest(cli_nearest *nearest, const char *wrong, const char *name);
/* Prints that the `kind` of this name does not exist, and which word is similar; returns
 * CLI_USAGE. */
int cli_refuse_word(const char *kind, const char *name, const cli_word *words);
/* Writes "auto, text or lines". */
void cli_list_words(char *out, size_t n_bytes, const cli_word *words);
/* Returns the name of the word with this value, which must exist. */
const char *cli_word_name(const cli_word *words, uint32_t value);
