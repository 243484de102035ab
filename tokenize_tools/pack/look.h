/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - opens every input before the run, and finds what it is or why it is refused: a bad input
 * ends a run before anything is packed. For pack, its --dry-run, and plan. */
#ifndef TOKMAP_PACK_LOOK_H
#define TOKMAP_PACK_LOOK_H

#include "corpus/reader.h"
#include "pack/facts.h"

typedef struct pack_seen {
    corpus_format format;
    reader_summary summary;
} pack_seen;

/* Looks at the beginning of each input that can be read again, and names all that cannot be
 * packed. seen: one for each input, or NULL.
 * Returns an exit code, and prints the error. */
int pack_look(const pack_parts *parts, pack_seen *seen);

#endif /* TOKMAP_PACK_LOOK_H */
