/* SPDX-License-Identifier: Apache-2.0 */
/* select.h - an expression and the columns that it reads, opened once: its key and the documents
 * that it keeps are of the same values, also if other programs replace the columns meanwhile. */
#pragma once

#include "base/progress.h"

typedef struct tokmap_i_selection tokmap_i_selection;

/* Compiles the expression and opens its columns. *out is NULL after a failure. */
tokmap_status tokmap_i_selection_open(tokmap_i_selection **out, const tokmap_dataset *ds,
                                      const char *text, tokmap_error *err);
/* Accepts NULL. */
void tokmap_i_selection_close(tokmap_i_selection *s);
/* Computes a hash of the compiled expression and of the checksums that its columns state:
 * tokmap_i_selection_run keeps the same documents whenever it is the same. */
tokmap_status tokmap_i_selection_key(const tokmap_i_selection *s, uint64_t *key, tokmap_error *err);
/* Compares the columns with their checksums, whole, and then evaluates the expression. progress: of
 * the comparison, in bytes, of which there are tokmap_i_selection_bytes; or NULL. */
tokmap_status tokmap_i_selection_run(tokmap_i_selection *s, tokmap_use_kept *use, void *context,
                                     tokmap_i_progress *progress, tokmap_error *err);
uint64_t tokmap_i_selection_bytes(const tokmap_i_selection *s);
/* Whether the files of the late columns are still the ones that were opened, unchanged. */
bool tokmap_i_selection_is_current(const tokmap_i_selection *s);
