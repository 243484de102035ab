/* SPDX-License-Identifier: Apache-2.0 */
/* platform_library.h - opens shared libraries at run time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Opens the library of that name, which is never unloaded. NULL: it cannot be opened; `why` has the
 * system's reason. */
void *tokmap_i_library_open(const char *name, char *why, size_t why_bytes);
/* Writes the address of a function to *function, a pointer to a function of any type; false: the
 * library has no such name. */
bool tokmap_i_library_find(void *library, const char *name, void *function);
