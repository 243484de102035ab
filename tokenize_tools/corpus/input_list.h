/* input_list.h - what the INPUT arguments of a command stand for, in a stated order.
 *
 * A file is itself, and `-` is stdin. A folder is all files in it and below, in natural order:
 * names are compared as bytes, runs of digits in them by value, so that shard-2 comes before
 * shard-10. Left out and told are names that begin with a dot, what is neither file nor folder, and
 * folders that links lead to a second time; links are followed. What does not exist and has *, ? or
 * [ in it is a pattern, for glob(3); its matches are taken in natural order. `@FILE` is the
 * arguments in FILE, one a line, blank lines and carriage returns at the ends of lines aside; there
 * @ and - are the beginning of a name. */
#ifndef TOKMAP_INPUT_LIST_H
#define TOKMAP_INPUT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "corpus/corpus.h"

typedef struct input_list { /* {0} and what tells; freed by input_list_free */
    char **names;
    size_t n_names, capacity;
    void (*report)(void *context, const char *text); /* a line about what was left out; or NULL */
    void *context;
} input_list;

/* Appends. False: err, with the list as it was. */
bool input_list_expand(input_list *list, const char *arg, corpus_error *err);
void input_list_free(input_list *list);

/* < 0, 0, > 0: the natural order of two paths; a folder's files stand before its neighbours'. */
int input_list_compare(const char *a, const char *b);

/* A file or folder, whatever its name. */
typedef struct input_file {
    dev_t device;
    ino_t inode;
} input_file;
/* For qsort: an order in which names of the same file are neighbours. */
int input_file_compare(const void *a, const void *b);

#endif /* TOKMAP_INPUT_LIST_H */
