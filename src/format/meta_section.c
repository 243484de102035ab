/* SPDX-License-Identifier: Apache-2.0 */
#include "format/meta_section.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/utf8.h"

/* Byte offsets of fields, in file order. */
enum {
    AT_N_COLUMNS = 0,
    AT_NAMES_BYTES = 4,
    AT_CHECKSUM = 8
};
enum { /* of an entry, besides `fields` */
    AT_OFFSET = 8,
    AT_NAME_END = 40
};

#define FIELD(at, member) LE_FIELD(tokmap_i_meta_column, at, member)
static const le_field fields[] = {FIELD(0, type), FIELD(4, code_bytes), FIELD(16, n_nulls),
                                  FIELD(24, n_strings), FIELD(32, text_bytes)};

static const char no_text[1]; /* the text of an empty part, so that the pointer is never NULL */

/* ---- Names ---- */

bool tokmap_i_meta_name_valid(const char *name, size_t n_bytes)
{
    return n_bytes > 0 && n_bytes <= TOKMAP_I_MAX_META_NAME && !memchr(name, 0, n_bytes) &&
           utf8_valid_prefix((const uint8_t *)name, n_bytes) == n_bytes;
}

/* ---- Places ---- */

bool tokmap_i_meta_place_column(tokmap_i_meta_column *c, uint64_t n_documents, uint64_t *end)
{
    const bool is_null = c->type == TOKMAP_I_META_NULL, codes = c->type == TOKMAP_I_META_DICTIONARY;
    const uint64_t width = codes ? c->code_bytes : c->number_bytes;
    const uint64_t n_bytes[] = {div_up(n_documents, 8), width * n_documents, 8 * (c->n_strings + 1),
                                c->text_bytes};
    c->has[TOKMAP_I_META_VALIDITY] = !is_null && c->n_nulls > 0;
    c->has[TOKMAP_I_META_VALUES] = !is_null && c->type != TOKMAP_I_META_STRING;
    c->has[TOKMAP_I_META_OFFSETS] = c->has[TOKMAP_I_META_TEXT] =
        c->type == TOKMAP_I_META_STRING || codes;
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++) {
        c->n_bytes[part] = c->has[part] ? n_bytes[part] : 0;
        c->at[part] = c->has[part] ? round_up(*end, TOKMAP_I_META_ALIGNMENT) : 0;
        if ((c->has[part] && __builtin_add_overflow(c->at[part], c->n_bytes[part], end)) ||
            *end > UINT64_MAX / 4)
            return false;
    }
    return true;
}

bool tokmap_i_meta_place(tokmap_i_meta *m)
{
    uint64_t end = TOKMAP_I_META_HEAD_BYTES + (uint64_t)m->n_columns * TOKMAP_I_META_ENTRY_BYTES;
    for (uint32_t i = 0; i < m->n_columns; i++)
        end += m->columns[i].name_bytes;
    m->directory_bytes = end;
    for (uint32_t i = 0; i < m->n_columns; i++)
        if (!tokmap_i_meta_place_column(&m->columns[i], m->n_documents, &end))
            return false;
    m->section_bytes = end;
    return true;
}

/* Returns where the first part begins; 0 if there is none. */
static uint64_t column_offset(const tokmap_i_meta_column *c)
{
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++)
        if (c->has[part])
            return c->at[part];
    return 0;
}

/* ---- The directory ---- */

uint64_t tokmap_i_meta_directory_bytes(const uint8_t *head)
{
    const uint64_t n_columns = le_get32(head + AT_N_COLUMNS);
    const uint64_t names_bytes = le_get32(head + AT_NAMES_BYTES);
    if (n_columns == 0 || n_columns > TOKMAP_I_MAX_META_COLUMNS ||
        names_bytes > n_columns * TOKMAP_I_MAX_META_NAME)
        return 0;
    return TOKMAP_I_META_HEAD_BYTES + n_columns * TOKMAP_I_META_ENTRY_BYTES + names_bytes;
}

static bool width_fits(const tokmap_i_meta_column *c)
{
    const uint32_t n = c->number_bytes;
    if (c->type == TOKMAP_I_META_INT64)
        return n == 1 || n == 2 || n == 4 || n == 8;
    return c->type == TOKMAP_I_META_FLOAT64 ? n == 4 || n == 8 : n == 0;
}

bool tokmap_i_meta_column_fits(const tokmap_i_meta_column *c, uint64_t n_documents)
{
    const bool codes = c->type == TOKMAP_I_META_DICTIONARY;
    const uint64_t most = c->code_bytes == 1 ? 256 : TOKMAP_I_MAX_META_DICTIONARY;
    if (c->type > TOKMAP_I_META_DICTIONARY || !width_fits(c))
        return false;
    if (codes ? c->code_bytes != 1 && c->code_bytes != 2 : c->code_bytes != 0)
        return false;
    if (c->type == TOKMAP_I_META_NULL ? c->n_nulls != n_documents : c->n_nulls >= n_documents)
        return false;
    if (codes)
        return c->n_strings >= 1 && c->n_strings <= most;
    if (c->type == TOKMAP_I_META_STRING)
        return c->n_strings == n_documents;
    return c->n_strings == 0 && c->text_bytes == 0;
}

const char *tokmap_i_meta_decode(const uint8_t *bytes, tokmap_i_meta *m)
{
    const uint64_t n_bytes = tokmap_i_meta_directory_bytes(bytes);
    const uint64_t section_bytes = m->section_bytes;
    if (n_bytes == 0 || n_bytes > section_bytes)
        return "the number of columns is out of range";
    if (le_get64(bytes + AT_CHECKSUM) !=
        tokmap_i_checksum(bytes + TOKMAP_I_META_HEAD_BYTES,
                          (size_t)n_bytes - TOKMAP_I_META_HEAD_BYTES))
        return "the directory of columns does not match its checksum";
    m->n_columns = le_get32(bytes + AT_N_COLUMNS);
    const uint64_t names_bytes = le_get32(bytes + AT_NAMES_BYTES);
    const uint8_t *entry = bytes + TOKMAP_I_META_HEAD_BYTES;
    const char *names = (const char *)entry + m->n_columns * (size_t)TOKMAP_I_META_ENTRY_BYTES;
    uint64_t name_start = 0;
    for (uint32_t i = 0; i < m->n_columns; i++, entry += TOKMAP_I_META_ENTRY_BYTES) {
        tokmap_i_meta_column *c = &m->columns[i];
        const uint64_t name_end = le_get64(entry + AT_NAME_END);
        if (name_end < name_start || name_end > names_bytes)
            return "the name of a column is not where it must be";
        *c = (tokmap_i_meta_column){.name = names + name_start,
                                    .name_bytes = (size_t)(name_end - name_start)};
        LE_GET_FIELDS(c, entry, fields);
        name_start = name_end;
        c->number_bytes = tokmap_i_meta_number_bytes(c->type);
        bool is_new = true;
        for (uint32_t k = 0; k < i; k++)
            is_new &= m->columns[k].name_bytes != c->name_bytes ||
                      memcmp(m->columns[k].name, c->name, c->name_bytes) != 0;
        if (!tokmap_i_meta_name_valid(c->name, c->name_bytes) || !is_new)
            return "the name of a column is not valid";
        if (!tokmap_i_meta_column_fits(c, m->n_documents))
            return "the type or a count of a column is out of range";
    }
    if (name_start != names_bytes)
        return "there are bytes after the name of the last column";
    if (!tokmap_i_meta_place(m) || m->section_bytes != section_bytes)
        return "the columns do not have the size of their section";
    entry = bytes + TOKMAP_I_META_HEAD_BYTES;
    for (uint32_t i = 0; i < m->n_columns; i++, entry += TOKMAP_I_META_ENTRY_BYTES)
        if (le_get64(entry + AT_OFFSET) != column_offset(&m->columns[i]))
            return "a column is not where it must be";
    return NULL;
}

size_t tokmap_i_meta_encode(const tokmap_i_meta *m, uint8_t *bytes)
{
    uint8_t *entry = bytes + TOKMAP_I_META_HEAD_BYTES;
    uint8_t *names = entry + m->n_columns * (size_t)TOKMAP_I_META_ENTRY_BYTES;
    uint64_t name_end = 0;
    for (uint32_t i = 0; i < m->n_columns; i++, entry += TOKMAP_I_META_ENTRY_BYTES) {
        const tokmap_i_meta_column *c = &m->columns[i];
        memcpy(names + name_end, c->name, c->name_bytes);
        name_end += c->name_bytes;
        LE_PUT_FIELDS(entry, c, fields);
        le_put64(entry + AT_OFFSET, column_offset(c));
        le_put64(entry + AT_NAME_END, name_end);
    }
    const size_t n_bytes = (size_t)(names - bytes) + (size_t)name_end;
    le_put32(bytes + AT_N_COLUMNS, m->n_columns);
    le_put32(bytes + AT_NAMES_BYTES, (uint32_t)name_end);
    le_put64(bytes + AT_CHECKSUM, tokmap_i_checksum(bytes + TOKMAP_I_META_HEAD_BYTES,
                                                    n_bytes - TOKMAP_I_META_HEAD_BYTES));
    return n_bytes;
}

/* ---- Values ---- */

tokmap_status tokmap_i_meta_get_string(const tokmap_i_meta *m, uint32_t column, uint64_t index,
                                       tokmap_value *out)
{
    const tokmap_i_meta_column *c = &m->columns[column];
    if (index >= c->n_strings)
        return TOKMAP_ERR_CORRUPT;
    const uint8_t *entry = m->section + c->at[TOKMAP_I_META_OFFSETS] + 8 * index;
    const uint64_t start = le_get64(entry), end = le_get64(entry + 8);
    if (start > end || end > c->text_bytes || end - start > TOKMAP_I_MAX_META_STRING)
        return TOKMAP_ERR_CORRUPT;
    const char *text = (const char *)m->section + c->at[TOKMAP_I_META_TEXT] + start;
    *out = (tokmap_value){.type = TOKMAP_VALUE_STRING,
                          .text = start == end ? no_text : text,
                          .text_bytes = (size_t)(end - start)};
    return TOKMAP_OK;
}

tokmap_status tokmap_i_meta_get(const tokmap_i_meta *m, uint32_t column, uint64_t document,
                                tokmap_value *out)
{
    const tokmap_i_meta_column *c = &m->columns[column];
    const uint8_t *validity = m->section + c->at[TOKMAP_I_META_VALIDITY];
    const uint8_t *values = m->section + c->at[TOKMAP_I_META_VALUES];
    *out = (tokmap_value){.type = TOKMAP_VALUE_NULL};
    if (c->type == TOKMAP_I_META_NULL ||
        (c->has[TOKMAP_I_META_VALIDITY] && !(validity[document / 8] >> document % 8 & 1)))
        return TOKMAP_OK;
    if (c->type == TOKMAP_I_META_STRING)
        return tokmap_i_meta_get_string(m, column, document, out);
    if (c->type == TOKMAP_I_META_DICTIONARY)
        return tokmap_i_meta_get_string(
            m, column, c->code_bytes == 1 ? values[document] : le_get16(values + 2 * document),
            out);
    const uint8_t *number = values + c->number_bytes * document;
    out->type = tokmap_i_meta_value_type(c);
    if (c->type == TOKMAP_I_META_INT64)
        out->integer = le_get_signed(number, c->number_bytes);
    else
        out->real = le_get_real(number, c->number_bytes);
    return TOKMAP_OK;
}

tokmap_value_type tokmap_i_meta_value_type(const tokmap_i_meta_column *c)
{
    return c->type == TOKMAP_I_META_DICTIONARY ? TOKMAP_VALUE_STRING : (tokmap_value_type)c->type;
}
