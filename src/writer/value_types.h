/* SPDX-License-Identifier: Apache-2.0 */
/* value_types.h - what the values of a column have in common: its type, and which values go
 * together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tokmap.h"

/* What is known of a column so far. */
typedef struct tokmap_i_meta_state {
    tokmap_value_type type;
    uint64_t n_nulls, text_bytes;
    uint64_t first_document; /* first document with a value, if the type is not NULL */
    uint64_t first_real;     /* first document with a double, if the type is FLOAT64 */
    bool has_inexact;        /* some integer is not exact as a double; the first one is: */
    int64_t inexact;
    uint64_t inexact_document;
} tokmap_i_meta_state;

/* Where a value belongs, for messages. */
typedef struct tokmap_i_value_place {
    const char *path, *column;
    uint64_t document;
} tokmap_i_value_place;

/* Stores what is known of a column after it has this value. TOKMAP_ERR_ARGUMENT: the value does not
 * go with those before it, or is too long. */
tokmap_status tokmap_i_meta_state_take(tokmap_i_meta_state *c, const tokmap_i_value_place *at,
                                       const tokmap_value *v, tokmap_error *err);
