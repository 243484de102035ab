/* SPDX-License-Identifier: Apache-2.0 */
/* tool_names FOLDER - which files of a folder some patterns choose, for tests in Python.
 *
 * stdin is lines: `i` or `e` and a pattern to include or exclude, and after those of one question
 * an empty line. The answer is the names, each on a line, and an empty line; or `! ` and the reason
 * why a pattern is refused, on a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/input_list.h"

static void answer(const char *folder, const name_filter *filter)
{
    input_list list = {.filter = filter};
    failure err;
    if (!input_list_expand(&list, folder, NULL, &err))
        printf("! %s\n", err.text);
    for (size_t i = 0; i < list.n_names; i++)
        puts(list.names[i]);
    puts("");
    input_list_free(&list);
}

int main(int argc, char **argv)
{
    name_filter filter = {0};
    failure err;
    char *line = NULL;
    size_t capacity = 0;
    bool ok = argc == 2;
    while (argc == 2 && getline(&line, &capacity, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *pattern = *line ? strdup(line + 1) : NULL; /* the program ends soon */
        if (pattern) {
            ok = ok &&
                 name_patterns_add(*line == 'i' ? &filter.include : &filter.exclude, pattern, &err);
            continue;
        }
        if (ok)
            answer(argv[1], &filter);
        else
            printf("! %s\n\n", err.text);
        filter.include.n = filter.exclude.n = 0;
        ok = true;
        fflush(stdout);
    }
    free(line);
    return 0;
}
