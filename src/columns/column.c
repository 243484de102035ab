/* SPDX-License-Identifier: Apache-2.0 */
#include "columns/column.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "base/word_distance.h"
#include "dataset/index_reader.h"
#include "dataset/store.h"

/* ---- Open ---- */

/* Fails because there is no such column, and suggests one of the index that may be meant, or the
 * list of all. */
static tokmap_status fail_missing(const tokmap_column *c, const char *name, tokmap_error *err)
{
    const tokmap_i_meta *m = c->ds->meta;
    const tokmap_i_meta_column *nearest = NULL;
    size_t least = strlen(name) / 3 + 2;
    for (uint32_t i = 0; m && i < m->n_columns; i++) {
        const size_t d =
            word_distance(name, strlen(name), m->columns[i].name, m->columns[i].name_bytes);
        nearest = d < least ? &m->columns[i] : nearest;
        least = MIN(least, d);
    }
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: there is no column '%.100s'%s%.*s%s",
                c->ds->index_path, name, nearest ? "; did you mean '" : "",
                nearest ? (int)nearest->name_bytes : 0, nearest ? nearest->name : "",
                nearest ? "'? 'tokmap columns list' shows all"
                        : "; 'tokmap columns list' shows all");
}

/* Makes the column of its header. */
static tokmap_status take_header(tokmap_column *c, const tokmap_i_column_header *h,
                                 tokmap_error *err)
{
    uint8_t id[16];
    if (memcmp(h->dataset_id, c->ds->header.dataset_id, sizeof h->dataset_id) != 0 ||
        h->n_documents != c->ds->header.n_documents)
        return FAIL(
            err, TOKMAP_ERR_MISMATCH,
            tokmap_i_dataset_ids(c->ds, 0, id) > 1
                ? "%s: has the values of another dataset than %s, perhaps of documents that "
                  "were redacted: run 'tokmap redact' again, or remove the file"
                : "%s: has the values of another dataset than %s: add the column again",
            c->file.path, c->ds->index_path);
    c->late->n_columns = 1;
    c->late->n_documents = h->n_documents;
    c->late->columns[0] = h->column;
    c->late->columns[0].name = c->name;
    c->late->columns[0].name_bytes = strlen(c->name);
    memcpy(c->checksums, h->checksums, sizeof c->checksums);
    return TOKMAP_OK;
}

static tokmap_status open_late(tokmap_column *c, const char *name, tokmap_error *err)
{
    const void *map;
    uint8_t checksum[8];
    bool exists = false;
    tokmap_i_column_header h = {0};
    if (!tokmap_i_column_name_valid(name))
        return fail_missing(c, name, err);
    strcpy(c->name, name);
    char *path = tokmap_i_side_path(c->ds, "%s.tmc", name);
    c->meta = c->late = calloc(1, sizeof *c->late);
    tokmap_status status = path && c->late ? TOKMAP_OK : FAIL_MEMORY(err);
    if (!status)
        status = tokmap_i_side_open(&c->file, &tokmap_i_column_kind, c->ds, path, &h, &exists, err);
    free(path);
    if (status)
        return exists || status == TOKMAP_ERR_MEMORY ? status : fail_missing(c, name, err);
    status = take_header(c, &h, err);
    if (!status)
        status = tokmap_i_side_read(&c->file, TOKMAP_I_SIDE_HEADER_BYTES - sizeof checksum,
                                    sizeof checksum, checksum, err);
    if (!status)
        status = tokmap_i_side_map(&c->file, &map, err);
    if (status)
        return status;
    c->checksum = le_get64(checksum);
    c->late->section = map;
    return TOKMAP_OK;
}

tokmap_status tokmap_column_open(tokmap_column **out, const tokmap_dataset *ds, const char *name,
                                 tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL_NULL(err);
    *out = NULL;
    if (!ds || !name)
        return FAIL_NULL(err);
    const tokmap_status read = tokmap_i_need_index(ds, err);
    if (read)
        return read;
    tokmap_column *c = calloc(1, sizeof *c);
    if (!c)
        return FAIL_MEMORY(err);
    c->ds = ds;
    c->file.fd = -1;
    c->meta = ds->meta;
    if (ds->meta)
        c->checksum = tokmap_i_section_find(&ds->header, TOKMAP_I_META)->checksum;
    const tokmap_status status =
        tokmap_i_find_column(ds, name, &c->index) ? TOKMAP_OK : open_late(c, name, err);
    if (c->late)
        c->index = 0;
    if (status)
        tokmap_column_close(c);
    else
        *out = c;
    return status;
}

void tokmap_column_close(tokmap_column *c)
{
    if (!c)
        return;
    tokmap_i_side_close(&c->file);
    free(c->late);
    free(c);
}

/* ---- Use ---- */

tokmap_status tokmap_column_get_info(const tokmap_column *c, tokmap_meta_column *out)
{
    return c ? tokmap_i_give_column(c->meta, c->index, c->file.path, out) : TOKMAP_ERR_ARGUMENT;
}

tokmap_status tokmap_column_get_value(const tokmap_column *c, uint64_t document, tokmap_value *out)
{
    if (!c || !out || document >= c->meta->n_documents)
        return TOKMAP_ERR_ARGUMENT;
    return tokmap_i_meta_get(c->meta, c->index, document, out);
}

/* Compares a part of a late column with its checksum. */
static tokmap_status check_part(const tokmap_column *c, int part, uint8_t *buffer,
                                tokmap_i_progress *progress, tokmap_error *err)
{
    const uint64_t at = tokmap_i_column_of(c)->at[part];
    const tokmap_i_file_range range = {
        {c->file.fd, c->file.path}, at, tokmap_i_column_part_end(tokmap_i_column_of(c), part)};
    uint64_t checksum;
    const tokmap_status status = tokmap_i_read_checksum(range, buffer, &checksum, progress, err);
    return status || checksum == c->checksums[part]
               ? status
               : FAIL_AT(err, TOKMAP_ERR_CORRUPT, at, TOKMAP_I_DAMAGED_COLUMN, c->file.path);
}

uint64_t tokmap_i_column_bytes(const tokmap_column *c)
{
    const tokmap_i_meta_column *m = tokmap_i_column_of(c);
    uint64_t n_bytes = 0;
    if (!c->late)
        return tokmap_i_section_find(&c->ds->header, TOKMAP_I_META)->n_bytes;
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++)
        n_bytes += m->has[part] ? tokmap_i_column_part_end(m, part) - m->at[part] : 0;
    return n_bytes;
}

tokmap_status tokmap_i_column_check(const tokmap_column *c, tokmap_i_progress *progress,
                                    tokmap_error *err)
{
    if (!c->late)
        return tokmap_i_check_section(c->ds, TOKMAP_I_META, progress, err);
    uint8_t *buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_READER_BUFFER_BYTES);
    tokmap_status status = buffer ? TOKMAP_OK : FAIL_MEMORY(err);
    for (int part = 0; !status && part < TOKMAP_I_META_PARTS; part++)
        if (tokmap_i_column_of(c)->has[part])
            status = check_part(c, part, buffer, progress, err);
    free(buffer);
    return status;
}

tokmap_status tokmap_column_verify(const tokmap_column *c, tokmap_on_progress *on_progress,
                                   void *context, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!c)
        return FAIL_NULL(err);
    if (!c->late)
        return TOKMAP_OK;
    /* The values are read once more. */
    tokmap_i_progress progress = {on_progress, context, 0, 2 * tokmap_i_column_bytes(c)};
    tokmap_status status = tokmap_i_column_check(c, &progress, err);
    uint8_t *buffer = status ? NULL : malloc(TOKMAP_I_READER_BUFFER_BYTES);
    if (!status && !buffer)
        status = FAIL_MEMORY(err);
    uint64_t end = TOKMAP_I_SIDE_HEADER_BYTES;
    const tokmap_i_stored_column at = {{c->file.fd, c->file.path}, 0,      tokmap_i_column_of(c),
                                       c->meta->n_documents,       buffer, &progress};
    if (!status)
        status = tokmap_i_verify_column(&at, &end, err);
    if (!status)
        status = tokmap_i_progress_add(&progress, progress.n_total, err);
    free(buffer);
    return status;
}
