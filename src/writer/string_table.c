/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/string_table.h"

#include "base/hash.h"

tokmap_i_string_table *tokmap_i_string_table_open(void)
{
    return calloc(1, sizeof(tokmap_i_string_table));
}

void tokmap_i_string_table_close(tokmap_i_string_table *t)
{
    if (t)
        free(t->text.data);
    free(t);
}

static bool is_string(const tokmap_i_string_table *t, uint32_t number, const char *text,
                      size_t n_bytes)
{
    const size_t start = number == 0 ? 0 : t->ends[number - 1];
    return t->ends[number] - start == n_bytes &&
           (n_bytes == 0 || memcmp(t->text.data + start, text, n_bytes) == 0);
}

tokmap_i_string_result tokmap_i_string_table_number(tokmap_i_string_table *t, const char *text,
                                                    size_t n_bytes, uint32_t *number)
{
    size_t slot = tokmap_i_checksum(text, n_bytes) % TOKMAP_I_STRING_SLOTS;
    while (t->slots[slot] != 0) {
        *number = t->slots[slot] - 1;
        if (is_string(t, *number, text, n_bytes))
            return TOKMAP_I_STRING_FOUND;
        slot = (slot + 1) % TOKMAP_I_STRING_SLOTS;
    }
    if (t->n_strings == TOKMAP_I_MAX_META_DICTIONARY ||
        n_bytes > TOKMAP_I_STRING_TABLE_BYTES - t->text.n_bytes)
        return TOKMAP_I_STRING_TOO_MANY;
    uint8_t *p = tokmap_i_bytes_add(&t->text, n_bytes);
    if (!p)
        return TOKMAP_I_STRING_NO_MEMORY;
    if (n_bytes > 0)
        memcpy(p, text, n_bytes);
    *number = t->n_strings++;
    t->ends[*number] = (uint32_t)t->text.n_bytes;
    t->slots[slot] = t->n_strings;
    return TOKMAP_I_STRING_FOUND;
}
