/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.h - tokmap pack --dry-run: prints what a run would do, and an estimate of its size. */
#ifndef TOKMAP_PACK_DRY_RUN_H
#define TOKMAP_PACK_DRY_RUN_H

#include "pack/facts.h"

/* Reads the beginning of the inputs, whose formats it counts in `kinds`; writes nothing. Returns an
 * exit code. */
int pack_dry_run(const pack_parts *parts, pack_kinds *kinds);

#endif /* TOKMAP_PACK_DRY_RUN_H */
