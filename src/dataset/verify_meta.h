/* SPDX-License-Identifier: Apache-2.0 */
/* verify_meta.h - checks the values of documents, without the map. */
#ifndef TOKMAP_VERIFY_META_H
#define TOKMAP_VERIFY_META_H

#include "dataset/index_reader.h"

/* Reads all parts and checks what the format says about them. Open has checked the directory. */
tokmap_status tokmap_i_verify_meta(tokmap_i_index_reader *r, tokmap_error *err);

#endif /* TOKMAP_VERIFY_META_H */
