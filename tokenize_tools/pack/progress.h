/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - prints the progress of packing on stderr. */
#ifndef TOKMAP_PACK_PROGRESS_H
#define TOKMAP_PACK_PROGRESS_H

#include "cli/cli.h"
#include "pack/documents.h"

/* All counts at one moment. */
typedef struct pack_counts {
    corpus_counts corpus;
    pack_position packed;
} pack_counts;

uint64_t pack_counts_skipped(const pack_counts *counts);

typedef struct pack_progress {
    cli_progress line;
    uint64_t tokens, stored_bytes; /* when this run began */
    uint64_t total_bytes;          /* of the inputs; 0: unknown */
    uint64_t text_bytes;           /* packed by this run; kept up by the caller */
} pack_progress;

void pack_progress_begin(pack_progress *p, const pack_counts *from, uint64_t total_bytes,
                         bool quiet);
/* Prints a line when it is due. stored_bytes: read so far, of all inputs. */
void pack_progress_update(pack_progress *p, const pack_counts *now, uint64_t stored_bytes);
void pack_progress_clear(pack_progress *p);
/* Call when everything is done: see cli_progress_end. */
void pack_progress_end(pack_progress *p, const pack_counts *now);
uint64_t pack_progress_ns(const pack_progress *p); /* since the start */

#endif /* TOKMAP_PACK_PROGRESS_H */
