/* SPDX-License-Identifier: Apache-2.0 */
/* sections.h - finishes an index file: everything that follows the ends of the documents. */
#pragma once

#include "format/format.h"
#include "writer/index_writer.h"
#include "tokmap.h"

/* Writes all sections and the header, and flushes the file to the disk. The caller fills in the
 * header's tokens, widths, ids and suffix; this call fills in counts and sections. */
tokmap_status tokmap_i_index_writer_finish(tokmap_i_index_writer *w, tokmap_i_header *header,
                                           const void *metadata, size_t metadata_bytes,
                                           tokmap_error *err);
