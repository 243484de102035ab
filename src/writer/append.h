/* SPDX-License-Identifier: Apache-2.0 */
/* append.h - adds a dataset to the output, for merging and joining: what both do alike. */
#ifndef TOKMAP_APPEND_H
#define TOKMAP_APPEND_H

#include "dataset/index_reader.h"
#include "writer/writer.h"

typedef struct tokmap_i_append {
    tokmap_writer *w;
    const tokmap_dataset *ds;
    bool continues_input; /* its first input is the rest of the last one before */
    tokmap_i_index_reader reader;
    uint64_t first_document, first_token; /* where the dataset begins in the output */
    uint8_t *checksums;                   /* of its blocks, as stored */
    uint64_t checksums_bytes;
} tokmap_i_append;

/* The caller has set w, ds and continues_input, and zeroed the rest. Checks that the dataset goes
 * with the output, and reads the checksums. Close it in any case. */
tokmap_status tokmap_i_append_open(tokmap_i_append *a, tokmap_error *err);
/* Adds its documents, with their values, and its inputs. The tokens have been added. */
tokmap_status tokmap_i_append_index(tokmap_i_append *a, tokmap_error *err);
void tokmap_i_append_close(tokmap_i_append *a);

#endif /* TOKMAP_APPEND_H */
