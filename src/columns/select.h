/* SPDX-License-Identifier: Apache-2.0 */
/* select.h - what an expression depends on. */
#pragma once

#include "tokmap.h"

/* Computes a hash of the compiled expression and of the checksums of the columns that it reads: if
 * it is the same, tokmap_dataset_select keeps the same documents. */
tokmap_status tokmap_i_select_key(const tokmap_dataset *ds, const char *text, uint64_t *key,
                                  tokmap_error *err);
