/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/words.h"

#include <stdio.h>
#include <string.h>

#include "base/word_distance.h"
#include "cli/cli.h"

const cli_word *cli_find_word(const cli_word *words, const char *name)
{
    while (words->name && strcmp(words->name, name) != 0)
        words++;
    return words->name ? words : NULL;
}

void cli_find_nearest(cli_nearest *nearest, const char *wrong, const char *name)
{
    enum {
        MOST_DIFFERENT = 2
    };
    const size_t d = word_distance(wrong, strlen(wrong), name, strlen(name));
    if (d <= MOST_DIFFERENT && (!nearest->name || d < nearest->distance))
        *nearest = (cli_nearest){name, d};
}

int cli_refuse_word(const char *kind, const char *name, const cli_word *words)
{
    cli_nearest nearest = {NULL};
    for (; words->name; words++)
        cli_find_nearest(&nearest, name, words->name);
    return nearest.name
               ? cli_usage("there is no %s '%s'; did you mean '%s'?", kind, name, nearest.name)
               : cli_usage("there is no %s '%s'", kind, name);
}

void cli_list_words(char *out, size_t n_bytes, const cli_word *words)
{
    size_t used = 0;
    for (const cli_word *w = words; w->name && used < n_bytes; w++) {
        const char *before = w == words ? "" : w[1].name ? ", " : " or ";
        used += (size_t)snprintf(out + used, n_bytes - used, "%s%s", before, w->name);
    }
}

const char *cli_word_name(const cli_word *words, uint32_t value)
{
    while (words->value != value)
        words++;
    return words->name;
}
