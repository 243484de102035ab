/* SPDX-License-Identifier: Apache-2.0 */
/* segments_text.h - the segments of a joined dataset as text. */
#ifndef TOKMAP_SEGMENTS_TEXT_H
#define TOKMAP_SEGMENTS_TEXT_H

#include "tokmap.h"

/* A line for each segment, under a heading; nothing if there are none. */
void segments_print_table(const tokmap_dataset *ds, uint64_t n_segments);
/* A JSON array of objects. */
void segments_print_json(const tokmap_dataset *ds, uint64_t n_segments);

#endif /* TOKMAP_SEGMENTS_TEXT_H */
