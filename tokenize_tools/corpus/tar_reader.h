/* SPDX-License-Identifier: Apache-2.0 */
/* tar_reader.h - a reader of the members of a tar archive: a layer over text_reader.h, which reads
 * each member that holds documents as if it were an input. Other members are named and left out. */
#ifndef TOKMAP_TAR_READER_H
#define TOKMAP_TAR_READER_H

#include "corpus/reader_kind.h"

/* Takes over the window, except on failure. With CORPUS_AUTO, the first member that is text or JSON
 * decides which of the two is read. */
reader *tar_reader_open(const corpus_options *options, const window *w, failure *err);

#endif /* TOKMAP_TAR_READER_H */
