/* SPDX-License-Identifier: Apache-2.0 */
/* option_rows.h - the options of tokmap pack that decide what is written: tables for all commands
 * that take them, what their values mean, and which do not go together. */
#ifndef TOKMAP_PACK_OPTION_ROWS_H
#define TOKMAP_PACK_OPTION_ROWS_H

#include "pack/options.h"

/* The struct of a command's options begins with pack_options. */
extern const cli_option pack_document_rows[], pack_token_rows[], pack_split_row[],
    pack_memory_row[];
/* All of these; NULL ends the list. */
extern const cli_option *const pack_deciding_rows[];

/* Whether an option of this name is one of these. */
bool pack_option_decides(const char *name);

/* The options before any is given. */
pack_options pack_options_new(void);
/* Called after the options were set: compiles --meta and --where, and refuses what does not go
 * together. Returns an exit code, and prints the error. */
int pack_options_check(pack_options *options);
/* After the result: prints that tokens are bytes, if the command line names no tokenizer. */
int pack_options_say_bytes(const pack_options *options);
/* Takes those that the environment has. */
int pack_options_environment(pack_options *options);
void pack_options_free(pack_options *options);

#endif /* TOKMAP_PACK_OPTION_ROWS_H */
