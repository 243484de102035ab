/* SPDX-License-Identifier: Apache-2.0 */
#include "format/side_header.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"

enum {
    VERSION = 1,
    VERSION_AT = 8,
    FIELDS_AT = 12,
    CHECKSUM_AT = TOKMAP_I_SIDE_HEADER_BYTES - 8
};

void tokmap_i_side_header_encode(const tokmap_i_side_kind *kind, const void *header, uint8_t *bytes)
{
    memset(bytes, 0, TOKMAP_I_SIDE_HEADER_BYTES);
    memcpy(bytes, kind->magic, sizeof kind->magic);
    le_put32(bytes + VERSION_AT, VERSION);
    le_put_fields(bytes, header, kind->fields, kind->n_fields);
    le_put64(bytes + CHECKSUM_AT, tokmap_i_checksum(bytes, CHECKSUM_AT));
}

/* Whether all bytes that are in no field are 0. */
static bool rest_is_zero(const tokmap_i_side_kind *kind, const uint8_t *bytes)
{
    uint8_t rest[CHECKSUM_AT];
    memcpy(rest, bytes, sizeof rest);
    for (size_t i = 0; i < kind->n_fields; i++)
        memset(rest + kind->fields[i].at, 0, kind->fields[i].n_bytes);
    return is_zero(rest + FIELDS_AT, sizeof rest - FIELDS_AT);
}

tokmap_i_side_result tokmap_i_side_header_decode(const tokmap_i_side_kind *kind, void *header,
                                                 const uint8_t *bytes, const char **problem)
{
    *problem = NULL;
    if (memcmp(bytes, kind->magic, sizeof kind->magic) != 0)
        return TOKMAP_I_SIDE_OTHER;
    if (le_get64(bytes + CHECKSUM_AT) != tokmap_i_checksum(bytes, CHECKSUM_AT)) {
        *problem = "the header does not match its checksum";
        return TOKMAP_I_SIDE_DAMAGED;
    }
    if (le_get32(bytes + VERSION_AT) != VERSION || !rest_is_zero(kind, bytes))
        return TOKMAP_I_SIDE_NEWER;
    le_get_fields(header, bytes, kind->fields, kind->n_fields);
    *problem = kind->check(header);
    return *problem ? TOKMAP_I_SIDE_DAMAGED : TOKMAP_I_SIDE_FITS;
}
