/* SPDX-License-Identifier: Apache-2.0 */
/* field_list.h - the fields of documents that a run needs: those that --meta keeps, and those that
 * --where reads.
 *
 * A name is a dotted path, such as "meta.score": each part is a key of an object in JSON, or a
 * level of a nested column. "@row" is the number of the record in its input. Pure. */
#ifndef TOKMAP_FIELD_LIST_H
#define TOKMAP_FIELD_LIST_H

#include <stdbool.h>
#include <stddef.h>

enum {
    FIELD_LIST_MAX = 64,
    FIELD_NAME_MAX = 255 /* bytes, so a path has at most 128 parts */
};

#define FIELD_ROW "@row"

/* Starts as {0}; freed by field_list_free. */
typedef struct field_list {
    size_t n_fields;
    char *names[FIELD_LIST_MAX];
} field_list;

/* Where a text is wrong, and why. */
typedef struct field_error {
    size_t character; /* from 1; 0: out of memory */
    char text[160];
} field_error;

/* Fills an empty list from the text of --meta, "a,b.c,@row": names as they are, with commas between
 * them. */
bool field_list_parse(field_list *l, const char *text, field_error *err);
void field_list_free(field_list *l);

/* The position of a name in the list; n_fields if it is not in it. */
size_t field_list_find(const field_list *l, const char *name, size_t n_bytes);

/* ---- For field_list_parse and where_compile ---- */

/* *index: the position of the name, which is added if the list does not have it. Returns NULL, or
 * what is wrong with it, and in *at the byte of the name. */
const char *field_list_add(field_list *l, const char *name, size_t n_bytes, size_t *index,
                           size_t *at);
/* Always returns false. The error is at byte `at` of the text. */
bool field_fail(field_error *err, const char *text, size_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif /* TOKMAP_FIELD_LIST_H */
