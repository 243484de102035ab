/* SPDX-License-Identifier: Apache-2.0 */
/* segments.h - the token files of a joined dataset, as its index lists them. */
#ifndef TOKMAP_SEGMENTS_H
#define TOKMAP_SEGMENTS_H

#include "dataset/token_files.h"

/* Reads and checks the segments section of an index, which must have one, and opens the folder of
 * the index; opens no token file. */
tokmap_status tokmap_i_segments_open(tokmap_dataset *ds, tokmap_i_named_file index,
                                     tokmap_error *err);
void tokmap_i_segments_close(tokmap_dataset *ds);

#endif /* TOKMAP_SEGMENTS_H */
