/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - opens every input before the run, and finds what it is or why it is refused: a bad input
 * ends a run before anything is packed. For pack, its --dry-run, and plan. */
#ifndef TOKMAP_PACK_LOOK_H
#define TOKMAP_PACK_LOOK_H

#include "corpus/reader.h"
#include "pack/facts.h"

typedef struct pack_seen {
    corpus_format format; /* CORPUS_AUTO: it is empty, or can be read only once */
    reader_summary summary;
} pack_seen;

/* Looks at the beginning of each input that can be read again, and counts them in `kinds`. With
 * --format auto, text beside records is refused. seen: one for each input, or NULL. Names all that
 * cannot be packed. Returns an exit code, and prints errors and notes. */
int pack_look(const pack_parts *parts, pack_kinds *kinds, pack_seen *seen);
/* "118 jsonl, 2 parquet, 1 empty"; an empty text if none was looked at. */
const char *pack_kind_name(corpus_format kind); /* CORPUS_AUTO is "empty" */
#define PACK_KINDS_BYTES 256
void pack_kinds_text(const pack_kinds *kinds, char text[PACK_KINDS_BYTES]);
/* Prints it unless the format was given. */
void pack_kinds_note(const pack_parts *parts);

#endif /* TOKMAP_PACK_LOOK_H */
