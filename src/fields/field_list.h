/* SPDX-License-Identifier: Apache-2.0 */
/* field_list.h - the fields of documents that a run needs: --meta keeps them, --where reads them.
 *
 * A name is a dotted path, such as "meta.score": each part is a key of an object in JSON, or a
 * level of a nested column. "@row" is the number of the record in its input. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    FIELD_LIST_MAX = 64,
    FIELD_NAME_MAX = 255 /* bytes, so that a path has at most 128 parts */
};

#define FIELD_ROW "@row"

/* Starts as {0}; field_list_free frees it. */
typedef struct field_list {
    size_t n_fields;
    char *names[FIELD_LIST_MAX];
} field_list;

/* Fills an empty list from the text of --meta, "a,b.c,@row": names as they are, with commas between
 * them. The place of a failure is a character, counted from 1. */
bool field_list_parse(field_list *l, const char *text, failure *err);
void field_list_free(field_list *l);

/* Returns the position of a name in the list; n_fields if it is not in it. */
size_t field_list_find(const field_list *l, const char *name, size_t n_bytes);

/* A bit for each field of the list. */
uint64_t field_list_bits(const field_list *l);

/* ---- Names one by one ---- */

/* Adds the name, unless the list has it, and sets *index to its position. The place of a failure is
 * a byte of the name. */
bool field_list_add(field_list *l, const char *name, size_t n_bytes, size_t *index, failure *err);
/* Adds the name that a key or a column of a file has, unless no list can have it, or it would mean
 * something else there: a path, or FIELD_ROW. */
bool field_list_add_key(field_list *l, const char *name, size_t n_bytes, failure *err);
/* Makes byte `at` of the text the place of the failure, as a character counted from 1. Returns
 * false. */
bool field_fail_at(failure *err, const char *text, size_t at);
