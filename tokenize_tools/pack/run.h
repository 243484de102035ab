/* run.h - one run of tokmap pack: from the names on the command line to finished datasets. */
#ifndef TOKMAP_PACK_RUN_H
#define TOKMAP_PACK_RUN_H

#include "pack/options.h"

/* Return exit codes, with messages. */
int pack_run(const pack_options *options, char **names, size_t n_names);

#endif /* TOKMAP_PACK_RUN_H */
