/* SPDX-License-Identifier: Apache-2.0 */
#include "format/column_file.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/le.h"

enum {
    VERSION = 1,
    CHECKSUMS_AT = 80,
    RESERVED_AT = 112,
    CHECKSUM_AT = TOKMAP_I_COLUMN_HEADER_BYTES - 8
};

const uint8_t tokmap_i_column_magic[8] = {0x89, 'T', 'M', 'C', '\r', '\n', 0x1A, '\n'};

bool tokmap_i_column_name_valid(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const size_t n_bytes = strlen(name);
    return n_bytes > 0 && n_bytes <= TOKMAP_I_COLUMN_NAME_MAX && strspn(name, letters) == n_bytes;
}

uint64_t tokmap_i_column_part_end(const tokmap_i_meta_column *c, int part)
{
    return round_up(c->at[part] + c->n_bytes[part], TOKMAP_I_META_ALIGNMENT);
}

bool tokmap_i_column_place(tokmap_i_column_header *h)
{
    uint64_t end = TOKMAP_I_COLUMN_HEADER_BYTES;
    if (!tokmap_i_meta_place_column(&h->column, h->n_documents, &end))
        return false;
    h->n_bytes = round_up(end, TOKMAP_I_META_ALIGNMENT);
    return true;
}

void tokmap_i_column_header_encode(const tokmap_i_column_header *h, uint8_t *bytes)
{
    memset(bytes, 0, TOKMAP_I_COLUMN_HEADER_BYTES);
    memcpy(bytes, tokmap_i_column_magic, sizeof tokmap_i_column_magic);
    le_put32(bytes + 8, VERSION);
    le_put32(bytes + 12, h->column.type);
    le_put32(bytes + 16, h->column.number_bytes);
    le_put32(bytes + 20, h->column.code_bytes);
    memcpy(bytes + 24, h->dataset_id, sizeof h->dataset_id);
    le_put64(bytes + 40, h->n_documents);
    le_put64(bytes + 48, h->column.n_nulls);
    le_put64(bytes + 56, h->column.n_strings);
    le_put64(bytes + 64, h->column.text_bytes);
    le_put64(bytes + 72, h->n_bytes);
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++)
        le_put64(bytes + CHECKSUMS_AT + 8 * (size_t)part, h->checksums[part]);
    le_put64(bytes + CHECKSUM_AT, tokmap_i_checksum(bytes, CHECKSUM_AT));
}

const char *tokmap_i_column_header_decode(tokmap_i_column_header *h, const uint8_t *bytes,
                                          bool *is_newer)
{
    *is_newer = false;
    if (memcmp(bytes, tokmap_i_column_magic, sizeof tokmap_i_column_magic) != 0)
        return "not a column: remove it";
    if (le_get64(bytes + CHECKSUM_AT) != tokmap_i_checksum(bytes, CHECKSUM_AT))
        return "damaged: the header does not match its checksum: add the column again";
    *is_newer =
        le_get32(bytes + 8) != VERSION || !is_zero(bytes + RESERVED_AT, CHECKSUM_AT - RESERVED_AT);
    if (*is_newer)
        return "a newer format: use a newer version of tokmap";
    *h = (tokmap_i_column_header){
        .column = {.type = le_get32(bytes + 12),
                   .number_bytes = le_get32(bytes + 16),
                   .code_bytes = le_get32(bytes + 20),
                   .n_nulls = le_get64(bytes + 48),
                   .n_strings = le_get64(bytes + 56),
                   .text_bytes = le_get64(bytes + 64)},
        .n_documents = le_get64(bytes + 40),
    };
    memcpy(h->dataset_id, bytes + 24, sizeof h->dataset_id);
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++)
        h->checksums[part] = le_get64(bytes + CHECKSUMS_AT + 8 * (size_t)part);
    if (h->n_documents > TOKMAP_I_MAX_DOCUMENTS ||
        !tokmap_i_meta_column_fits(&h->column, h->n_documents) || !tokmap_i_column_place(h) ||
        h->n_bytes != le_get64(bytes + 72))
        return "damaged: impossible type or sizes: add the column again";
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++)
        if (!h->column.has[part] && h->checksums[part] != 0)
            return "damaged: a checksum of a part that it does not have: add the column again";
    return NULL;
}
