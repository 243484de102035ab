/* SPDX-License-Identifier: Apache-2.0 */
/* unsuitable.h - inputs that are recognized as something other than text: refuses them together, or
 * says what was left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/json_out.h"

#define UNSUITABLE_NAMED 3

#define UNSUITABLE_HINT                                                                            \
    "Use --skip-unsuitable to leave out files that are not text, or that lack the column.\n"

typedef struct unsuitable_file {
    size_t which; /* number of the input */
    const char *name;
    const char *kind; /* "a PDF document" */
} unsuitable_file;

typedef struct unsuitable_list { /* start with {0} */
    unsuitable_file *files;
    size_t n;
    char *whys[UNSUITABLE_NAMED]; /* of the first ones, as if each was refused alone */
    bool owns_names;              /* set by the caller: they were left out of the inputs */
} unsuitable_list;

/* Appends an input, which was refused with this failure. Returns false when out of memory. */
bool unsuitable_add(unsuitable_list *list, size_t which, const char *name, const failure *why);
/* Prints why these inputs cannot be packed, on one screen, and what to do. alone: there are no
 * other inputs. Returns CLI_INPUT. */
int unsuitable_refuse(const unsuitable_list *list, bool alone);
/* Prints how many inputs of each kind were left out. */
void unsuitable_note(const unsuitable_list *list);
/* Prints the member `unsuitable` of an object, if there are any: one number for each kind. */
void unsuitable_print_counts(const unsuitable_list *list, json_out *o);
/* Prints the member `unsuitable_inputs`, if there are any: the name and the kind of each. */
void unsuitable_print_files(const unsuitable_list *list, json_out *o);
void unsuitable_free(unsuitable_list *list);
