/* SPDX-License-Identifier: Apache-2.0 */
#include "format/column_file.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/le.h"

enum {
    VERSION = 1,
    RESERVED_AT = 112,
    CHECKSUM_AT = TOKMAP_I_COLUMN_HEADER_BYTES - 8
};

#define FIELD(at, member) LE_FIELD(tokmap_i_column_header, at, member)
static const le_field fields[] = {FIELD(12, column.type),       FIELD(16, column.number_bytes),
                                  FIELD(20, column.code_bytes), FIELD(24, dataset_id),
                                  FIELD(40, n_documents),       FIELD(48, column.n_nulls),
                                  FIELD(56, column.n_strings),  FIELD(64, column.text_bytes),
                                  FIELD(72, n_bytes),           FIELD(80, checksums)};

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
    LE_PUT_FIELDS(bytes, h, fields);
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
    *h = (tokmap_i_column_header){0};
    LE_GET_FIELDS(h, bytes, fields);
    const uint64_t n_bytes = h->n_bytes;
    if (h->n_documents > TOKMAP_I_MAX_DOCUMENTS ||
        !tokmap_i_meta_column_fits(&h->column, h->n_documents) || !tokmap_i_column_place(h) ||
        h->n_bytes != n_bytes)
        return "damaged: impossible type or sizes: add the column again";
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++)
        if (!h->column.has[part] && h->checksums[part] != 0)
            return "damaged: a checksum of a part that it does not have: add the column again";
    return NULL;
}
