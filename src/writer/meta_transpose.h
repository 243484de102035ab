/* SPDX-License-Identifier: Apache-2.0 */
/* meta_transpose.h - the section of values: they come by document and are stored by column. */
#pragma once

#include "writer/index_writer.h"
#include "writer/meta_writer.h"
#include "tokmap.h"

/* Writes the section to an index, from its first byte to its last. Reads P.tmv.partial once or more
 * for each column. */
tokmap_status tokmap_i_put_values(tokmap_i_meta_writer *w, tokmap_i_index_writer *to,
                                  tokmap_error *err);
