/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - the files that a run of tokmap pack reads and writes. */
#ifndef TOKMAP_PACK_NAMES_H
#define TOKMAP_PACK_NAMES_H

#include "pack/options.h"

/* The file of bad documents, or NULL if there is none. */
const char *pack_bad_path(char path[PATH_PREFIX_BYTES + 8], const pack_options *options);
/* Checks the names of all outputs, including temporary names, after all inputs are protected
 * (paths.h): no file may be both read and written, or be two outputs, and only a regular file may
 * be replaced. Creates the folders of the outputs, except in a dry run. Returns an exit code, and
 * prints the error. */
int pack_names_check(const pack_options *options);

#endif /* TOKMAP_PACK_NAMES_H */
