/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - one run of tokmap pack, from the parsed options to finished datasets. */
#ifndef TOKMAP_PACK_RUN_H
#define TOKMAP_PACK_RUN_H

#include "pack/options.h"

/* Return exit codes, and print the error. */
int pack_run(const pack_options *options, char **names, size_t n_names);

#endif /* TOKMAP_PACK_RUN_H */
