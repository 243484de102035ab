/* SPDX-License-Identifier: Apache-2.0 */
#include "request/unsuitable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/cli.h"

#define MAX_KINDS 64
#define MAX_SHOWN 16 /* kinds on a screen */

bool unsuitable_add(unsuitable_list *list, size_t which, const char *name, const failure *why)
{
    if (list->n < UNSUITABLE_NAMED && !(list->whys[list->n] = strdup(why->text)))
        return false;
    if (!array_grow(&list->files, list->n, sizeof *list->files))
        return false;
    list->files[list->n++] = (unsuitable_file){which, name, why->kind};
    return true;
}

void unsuitable_free(unsuitable_list *list)
{
    for (size_t i = 0; i < UNSUITABLE_NAMED; i++)
        free(list->whys[i]);
    for (size_t i = 0; list->owns_names && i < list->n; i++)
        free((char *)list->files[i].name);
    free(list->files);
    *list = (unsuitable_list){0};
}

/* ---- Kinds ---- */

typedef struct kind_count {
    const char *kind; /* without its article */
    size_t n;
    const char *names[UNSUITABLE_NAMED]; /* the first ones */
} kind_count;

static const char *without_article(const char *kind)
{
    const size_t n = strncmp(kind, "an ", 3) == 0 ? 3 : strncmp(kind, "a ", 2) == 0 ? 2 : 0;
    return kind + n;
}

static int compare_counts(const void *a, const void *b)
{
    const kind_count *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n ? -1 : 1) : strcmp(x->kind, y->kind);
}

/* Returns how many kinds there are; the most frequent one is the first. */
static size_t count_kinds(const unsuitable_list *list, kind_count kinds[MAX_KINDS])
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const char *kind = without_article(list->files[i].kind);
        size_t k = 0;
        while (k < n && strcmp(kinds[k].kind, kind) != 0)
            k++;
        if (k == n && n < MAX_KINDS)
            kinds[n++] = (kind_count){.kind = kind};
        if (k < n && kinds[k].n++ < UNSUITABLE_NAMED)
            kinds[k].names[kinds[k].n - 1] = list->files[i].name;
    }
    qsort(kinds, n, sizeof *kinds, compare_counts);
    return n;
}

static void print_kinds(const unsuitable_list *list)
{
    kind_count kinds[MAX_KINDS];
    const size_t n = count_kinds(list, kinds);
    for (size_t k = 0; k < n && k < MAX_SHOWN; k++) {
        fprintf(stderr, "%8s  %s: ", cli_count(kinds[k].n).s, kinds[k].kind);
        for (size_t i = 0; i < kinds[k].n && i < UNSUITABLE_NAMED; i++) {
            fputs(i ? ", " : "", stderr);
            cli_print_plain(stderr, kinds[k].names[i], strlen(kinds[k].names[i]));
        }
        fputs(kinds[k].n > UNSUITABLE_NAMED ? ", ...\n" : "\n", stderr);
    }
    if (n > MAX_SHOWN)
        fprintf(stderr, "%8s  more kinds\n", cli_count(n - MAX_SHOWN).s);
}

int unsuitable_refuse(const unsuitable_list *list, bool alone)
{
    if (list->n <= UNSUITABLE_NAMED) {
        for (size_t i = 0; i < list->n; i++)
            cli_error(CLI_INPUT, "%s", list->whys[i]);
        if (!alone)
            fputs(UNSUITABLE_HINT, stderr);
        return CLI_INPUT;
    }
    cli_error(CLI_INPUT, "%s cannot be packed, because they are not text, or lack the column:",
              cli_count_of(list->n, "input").s);
    print_kinds(list);
    fputs("Use --skip-unsuitable to leave all of them out, --exclude PATTERN or --include PATTERN "
          "to choose files of a folder, or --format text to pack their bytes as they are.\n",
          stderr);
    return CLI_INPUT;
}

void unsuitable_note(const unsuitable_list *list)
{
    if (list->n == 0)
        return;
    cli_warn("left out %s that %s not text:", cli_count_of(list->n, "input").s,
             list->n == 1 ? "is" : "are");
    print_kinds(list);
}

/* ---- JSON ---- */

void unsuitable_print_counts(const unsuitable_list *list, json_out *o)
{
    kind_count kinds[MAX_KINDS];
    const size_t n = count_kinds(list, kinds);
    if (n == 0)
        return;
    json_out_begin(o, "unsuitable", '{');
    for (size_t k = 0; k < n; k++)
        json_out_number(o, kinds[k].kind, kinds[k].n);
    json_out_end(o, '}');
}

void unsuitable_print_files(const unsuitable_list *list, json_out *o)
{
    if (list->n == 0)
        return;
    json_out_begin(o, "unsuitable_inputs", '[');
    for (size_t i = 0; i < list->n; i++) {
        json_out_begin(o, NULL, '{');
        json_out_string(o, "name", list->files[i].name);
        json_out_string(o, "kind", without_article(list->files[i].kind));
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}
