/* SPDX-License-Identifier: Apache-2.0 */
/* export_megatron.h - writes the index that Megatron reads beside a .bin. */
#ifndef TOKMAP_EXPORT_MEGATRON_H
#define TOKMAP_EXPORT_MEGATRON_H

#include "system/output_file.h"
#include "tokmap.h"

/* Writes it to out, which was begun: one sequence for each document. Prints the error and returns
 * an exit code. */
int write_megatron_index(output_file *out, const tokmap_dataset *ds);

#endif /* TOKMAP_EXPORT_MEGATRON_H */
