/* SPDX-License-Identifier: Apache-2.0 */
/* side_header.h - the header of a file beside a dataset: rows, a view, a column, a lane. All
 * kinds have the same form: docs/FORMAT.md, sections 13 to 16. Pure. */
#pragma once

#include <stdbool.h>

#include "base/le.h"

enum {
    TOKMAP_I_SIDE_HEADER_BYTES = 128
};

typedef struct tokmap_i_side_kind {
    uint8_t magic[8];
    const char *what;  /* such as "a view" */
    const char *again; /* what to do if a file is damaged */
    const le_field *fields;
    size_t n_fields;
    uint32_t size_at; /* where the size of the file is in the header */
    /* Checks the decoded header, and fills in what follows from it. Returns what is wrong, such as
     * "impossible counts"; NULL: nothing. */
    const char *(*check)(void *header);
} tokmap_i_side_kind;

#define TOKMAP_I_SIDE_FIELDS(table) .fields = table, .n_fields = sizeof table / sizeof *table

void tokmap_i_side_header_encode(const tokmap_i_side_kind *kind, const void *header,
                                 uint8_t *bytes);

typedef enum tokmap_i_side_result {
    TOKMAP_I_SIDE_FITS,
    TOKMAP_I_SIDE_OTHER, /* a file of another kind */
    TOKMAP_I_SIDE_NEWER, /* only the version is not known */
    TOKMAP_I_SIDE_DAMAGED
} tokmap_i_side_result;

/* Decodes the members of the header that the fields list. *problem: what is damaged. */
tokmap_i_side_result tokmap_i_side_header_decode(const tokmap_i_side_kind *kind, void *header,
                                                 const uint8_t *bytes, const char **problem);
