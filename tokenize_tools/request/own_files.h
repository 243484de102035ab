/* SPDX-License-Identifier: Apache-2.0 */
/* own_files.h - which files a run of tokmap pack or tokmap plan writes, and so must not read. */
#pragma once

#include <stdbool.h>

#include "request/options.h"

/* What follows P in the names of the outputs of proposed commands, and in those of their lists. */
#define PACK_OF_TEXT "-text"
#define PACK_OF_RECORDS "-records"
#define PACK_LIST_SUFFIX ".list"

/* Whether a file is directly in the folder of the cells. */
bool pack_is_in_cells(const char *name, const pack_options *options);
/* Whether this run, or an earlier one, writes a file: of the dataset, or of the plan and its cells,
 * or a list of inputs beside one of them. */
bool pack_is_own_file(const char *name, const pack_options *options);
/* Whether it is P.bin of any dataset: P.tmi is beside it. */
bool pack_is_token_file(const char *name);
