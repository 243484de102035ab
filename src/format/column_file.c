/* SPDX-License-Identifier: Apache-2.0 */
#include "format/column_file.h"

#include <string.h>

#include "base/base.h"
#include "base/le.h"

#define FIELD(at, member) LE_FIELD(tokmap_i_column_header, at, member)
static const le_field fields[] = {FIELD(12, column.type),       FIELD(16, column.number_bytes),
                                  FIELD(20, column.code_bytes), FIELD(24, dataset_id),
                                  FIELD(40, n_documents),       FIELD(48, column.n_nulls),
                                  FIELD(56, column.n_strings),  FIELD(64, column.text_bytes),
                                  FIELD(72, n_bytes),           FIELD(80, checksums)};

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
    uint64_t end = TOKMAP_I_SIDE_HEADER_BYTES;
    if (!tokmap_i_meta_place_column(&h->column, h->n_documents, &end))
        return false;
    h->n_bytes = round_up(end, TOKMAP_I_META_ALIGNMENT);
    return true;
}

static const char *check_parts(void *header)
{
    tokmap_i_column_header *h = header;
    const uint64_t n_bytes = h->n_bytes;
    if (h->n_documents > TOKMAP_I_MAX_DOCUMENTS ||
        !tokmap_i_meta_column_fits(&h->column, h->n_documents) || !tokmap_i_column_place(h) ||
        h->n_bytes != n_bytes)
        return "impossible type or sizes";
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++)
        if (!h->column.has[part] && h->checksums[part] != 0)
            return "a checksum of a part that it does not have";
    return NULL;
}

const tokmap_i_side_kind tokmap_i_column_kind = {
    .magic = {0x89, 'T', 'M', 'C', '\r', '\n', 0x1A, '\n'},
    .what = "a column",
    .again = "add the column again",
    TOKMAP_I_SIDE_FIELDS(fields),
    .size_at = 72,
    .check = check_parts};
