/* SPDX-License-Identifier: Apache-2.0 */
/* role_names.h - the names of the roles of tokens, as text: NAME,... (docs/FORMAT.md, section 3.9).
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Checks a list of names. */
bool role_names_check(const char *list, failure *err);
/* Takes the next name of a list that was checked. Returns false at its end. */
bool role_names_next(const char **list, const char **name, size_t *n_bytes);
/* Returns the number of a name in a list that was checked; -1: it is not there. */
int role_names_find(const char *list, const char *name, size_t n_bytes);
