/* SPDX-License-Identifier: Apache-2.0 */
/* string_table.h - the different strings of a column, numbered in the order in which they came. */
#ifndef TOKMAP_STRING_TABLE_H
#define TOKMAP_STRING_TABLE_H

#include "base/bytes.h"
#include "format/format_limits.h"

enum {
    TOKMAP_I_STRING_TABLE_BYTES = 16 << 20, /* of text, at most */
    TOKMAP_I_STRING_SLOTS = 2 * TOKMAP_I_MAX_META_DICTIONARY
};

typedef struct tokmap_i_string_table {
    uint32_t n_strings;
    tokmap_i_bytes text;
    uint32_t ends[TOKMAP_I_MAX_META_DICTIONARY];
    uint32_t slots[TOKMAP_I_STRING_SLOTS]; /* number + 1; 0: free */
} tokmap_i_string_table;

/* NULL when out of memory. */
tokmap_i_string_table *tokmap_i_string_table_open(void);
void tokmap_i_string_table_close(tokmap_i_string_table *t);

typedef enum tokmap_i_string_result {
    TOKMAP_I_STRING_FOUND,
    TOKMAP_I_STRING_TOO_MANY,
    TOKMAP_I_STRING_NO_MEMORY
} tokmap_i_string_result;

/* The number of a string, which is added if it is new. */
tokmap_i_string_result tokmap_i_string_table_number(tokmap_i_string_table *t, const char *text,
                                                    size_t n_bytes, uint32_t *number);

#endif /* TOKMAP_STRING_TABLE_H */
