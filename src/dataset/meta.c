/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c - the values of documents of an open dataset. */
#include "base/base.h"
#include "base/status.h"
#include "dataset/dataset.h"

static const void *part_at(const tokmap_i_meta *m, const tokmap_i_meta_column *c,
                           tokmap_i_meta_part part)
{
    return c->has[part] ? m->section + c->at[part] : NULL;
}

tokmap_status tokmap_dataset_get_meta_column(const tokmap_dataset *ds, uint32_t column,
                                             tokmap_meta_column *out)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_meta_column, name)};
    if (!ds || !ds->meta || column >= ds->meta->n_columns)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_i_meta_column *c = &ds->meta->columns[column];
    const void *values = part_at(ds->meta, c, TOKMAP_I_META_VALUES);
    const tokmap_meta_column full = {
        .name = c->name,
        .name_bytes = c->name_bytes,
        .type = tokmap_i_meta_value_type(c),
        .code_bytes = c->code_bytes,
        .n_nulls = c->n_nulls,
        .n_strings = c->n_strings,
        .validity = part_at(ds->meta, c, TOKMAP_I_META_VALIDITY),
        .values = c->code_bytes > 0 ? NULL : values,
        .codes = c->code_bytes > 0 ? values : NULL,
        .offsets = part_at(ds->meta, c, TOKMAP_I_META_OFFSETS),
        .text = part_at(ds->meta, c, TOKMAP_I_META_TEXT),
        .text_bytes = c->text_bytes,
    };
    return tokmap_i_give_struct(out, &full, &kind, NULL);
}

tokmap_status tokmap_dataset_get_meta(const tokmap_dataset *ds, uint32_t column, uint64_t document,
                                      tokmap_value *out)
{
    if (!ds || !out || !ds->meta || column >= ds->meta->n_columns ||
        document >= ds->header.n_documents)
        return TOKMAP_ERR_ARGUMENT;
    return tokmap_i_meta_get(ds->meta, column, document, out);
}
