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

int cli_refuse_word(const char *kind, const char *name, const cli_word *words)
{
    const char *nearest = NULL;
    size_t least = 3;
    for (; words->name; words++) {
        const size_t d = word_distance(name, strlen(name), words->name, strlen(words->name));
        nearest = d < least ? words->name : nearest;
        least = d < least ? d : least;
    }
    return nearest ? cli_usage("there is no %s '%s'; did you mean '%s'?", kind, name, nearest)
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
