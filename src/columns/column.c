/* SPDX-License-Identifier: Apache-2.0 */
#include "columns/column.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "base/word_distance.h"
#include "dataset/index_reader.h"
#include "dataset/side_file.h"
#include "system/platform.h"

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

static tokmap_status read_header(tokmap_column *c, uint64_t n_bytes, tokmap_error *err)
{
    uint8_t bytes[TOKMAP_I_COLUMN_HEADER_BYTES];
    tokmap_i_column_header h;
    uint8_t id[16];
    bool is_newer = false;
    if (n_bytes < sizeof bytes)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: not a column: remove it", c->path);
    const tokmap_status status =
        tokmap_i_read_exactly((tokmap_i_named_file){c->fd, c->path}, 0, sizeof bytes, bytes, err);
    if (status)
        return status;
    const char *problem = tokmap_i_column_header_decode(&h, bytes, &is_newer);
    if (problem)
        return FAIL(err, is_newer ? TOKMAP_ERR_VERSION : TOKMAP_ERR_CORRUPT, "%s: %s", c->path,
                    problem);
    if (h.n_bytes != n_bytes)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: damaged: has %" PRIu64 " bytes, but its header states %" PRIu64
                    ": add the column again",
                    c->path, n_bytes, h.n_bytes);
    if (memcmp(h.dataset_id, c->ds->header.dataset_id, sizeof h.dataset_id) != 0 ||
        h.n_documents != c->ds->header.n_documents)
        return FAIL(
            err, TOKMAP_ERR_MISMATCH,
            tokmap_i_dataset_ids(c->ds, 0, id) > 1
                ? "%s: has the values of another dataset than %s, perhaps of documents that "
                  "were redacted: run 'tokmap redact' again, or remove the file"
                : "%s: has the values of another dataset than %s: add the column again",
            c->path, c->ds->index_path);
    h.column.name = c->name;
    h.column.name_bytes = strlen(c->name);
    c->late->n_columns = 1;
    c->late->n_documents = h.n_documents;
    c->late->columns[0] = h.column;
    c->checksum = le_get64(bytes + TOKMAP_I_COLUMN_HEADER_BYTES - 8);
    memcpy(c->checksums, h.checksums, sizeof c->checksums);
    return TOKMAP_OK;
}

static tokmap_status open_late(tokmap_column *c, const char *name, tokmap_error *err)
{
    const void *map;
    if (!tokmap_i_column_name_valid(name))
        return fail_missing(c, name, err);
    strcpy(c->name, name);
    c->path = tokmap_i_side_path(c->ds, "%s.tmc", name);
    c->meta = c->late = calloc(1, sizeof *c->late);
    if (!c->path || !c->late)
        return FAIL_MEMORY(err);
    int error = tokmap_i_file_open(c->path, &c->fd);
    if (error == ENOENT)
        return fail_missing(c, name, err);
    if (!error)
        error = tokmap_i_file_stat_fd(c->fd, &c->stat);
    if (error)
        return FAIL_IO(err, error, "%s: cannot open", c->path);
    const tokmap_status status = read_header(c, c->stat.n_bytes, err);
    if (status)
        return status;
    error = tokmap_i_map(c->fd, c->stat.n_bytes, &map);
    if (error)
        return FAIL_IO(err, error, "%s: cannot be mapped", c->path);
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
    tokmap_column *c = calloc(1, sizeof *c);
    if (!c)
        return FAIL_MEMORY(err);
    c->ds = ds;
    c->fd = -1;
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
    if (c->late && c->late->section)
        tokmap_i_unmap(c->late->section, c->stat.n_bytes);
    tokmap_i_file_close(c->fd);
    free(c->late);
    free(c->path);
    free(c);
}

/* ---- Use ---- */

tokmap_status tokmap_column_get_info(const tokmap_column *c, tokmap_meta_column *out)
{
    return c ? tokmap_i_give_column(c->meta, c->index, c->path, out) : TOKMAP_ERR_ARGUMENT;
}

tokmap_status tokmap_column_get_value(const tokmap_column *c, uint64_t document, tokmap_value *out)
{
    if (!c || !out || document >= c->meta->n_documents)
        return TOKMAP_ERR_ARGUMENT;
    return tokmap_i_meta_get(c->meta, c->index, document, out);
}

/* Compares a part of a late column with its checksum. */
static tokmap_status check_part(const tokmap_column *c, int part, uint8_t *buffer,
                                tokmap_error *err)
{
    const uint64_t at = tokmap_i_column_of(c)->at[part];
    uint64_t checksum;
    const tokmap_status status = tokmap_i_read_checksum(
        (tokmap_i_named_file){c->fd, c->path}, at,
        tokmap_i_column_part_end(tokmap_i_column_of(c), part), buffer, &checksum, err);
    return status || checksum == c->checksums[part]
               ? status
               : FAIL_AT(err, TOKMAP_ERR_CORRUPT, at, TOKMAP_I_DAMAGED_COLUMN, c->path);
}

tokmap_status tokmap_i_column_check(const tokmap_column *c, tokmap_error *err)
{
    if (!c->late)
        return tokmap_i_check_section(c->ds, TOKMAP_I_META, err);
    uint8_t *buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_READER_BUFFER_BYTES);
    tokmap_status status = buffer ? TOKMAP_OK : FAIL_MEMORY(err);
    for (int part = 0; !status && part < TOKMAP_I_META_PARTS; part++)
        if (tokmap_i_column_of(c)->has[part])
            status = check_part(c, part, buffer, err);
    free(buffer);
    return status;
}

tokmap_status tokmap_column_verify(const tokmap_column *c, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!c)
        return FAIL_NULL(err);
    if (!c->late)
        return TOKMAP_OK;
    tokmap_status status = tokmap_i_column_check(c, err);
    uint8_t *buffer = status ? NULL : malloc(TOKMAP_I_READER_BUFFER_BYTES);
    if (!status && !buffer)
        status = FAIL_MEMORY(err);
    uint64_t end = TOKMAP_I_COLUMN_HEADER_BYTES;
    const tokmap_i_stored_column at = {
        {c->fd, c->path}, 0, tokmap_i_column_of(c), c->meta->n_documents, buffer};
    if (!status)
        status = tokmap_i_verify_column(&at, &end, err);
    free(buffer);
    return status;
}
