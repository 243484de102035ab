/* SPDX-License-Identifier: Apache-2.0 */
/* verify_meta.c - checks the values of documents, without the map. */
#include "dataset/index_reader.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/status.h"
#include "dataset/token_files.h"

/* Documents are checked in runs, whose validity, values and offsets are read together. */
enum {
    RUN_DOCUMENTS = 32 << 10, /* a multiple of 8 */
    VALIDITY_BYTES = RUN_DOCUMENTS / 8,
    RUN_BYTES = VALIDITY_BYTES + 8 * RUN_DOCUMENTS + 8 * (RUN_DOCUMENTS + 1)
};
_Static_assert(RUN_BYTES + 0 <= TOKMAP_I_READER_BUFFER_BYTES, "buffer too small");

typedef struct column_check {
    tokmap_i_index_reader *r;
    const tokmap_i_meta *meta;
    const tokmap_i_meta_column *c;
    uint64_t section_offset;
    uint64_t n_valid, last_offset;
    uint8_t *validity, *values, *offsets; /* of the current run */
} column_check;

/* Reads n entries of `width` bytes of a part, from entry number `first`. */
typedef struct entries {
    tokmap_i_meta_part part;
    uint64_t first;
    uint32_t n, width;
} entries;

static tokmap_status read_entries(const column_check *k, entries e, uint8_t *dst, tokmap_error *err)
{
    const tokmap_i_named_file file = {k->r->fd, k->r->ds->index_path};
    return tokmap_i_read_exactly(file, k->section_offset + k->c->at[e.part] + e.first * e.width,
                                 (size_t)e.n * e.width, dst, err);
}

static tokmap_status fail_column(const column_check *k, const char *problem, tokmap_error *err)
{
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, k->section_offset, "%s: damaged: column '%.*s': %s",
                   k->r->ds->index_path, (int)k->c->name_bytes, k->c->name, problem);
}

static const char *check_offsets(column_check *k, uint64_t n_strings)
{
    uint64_t last = load_le64(k->offsets);
    if (last != k->last_offset)
        return "the first string of a column does not begin at 0";
    for (uint64_t i = 1; i <= n_strings; i++) {
        const uint64_t next = load_le64(k->offsets + 8 * i);
        if (next < last || next > k->c->text_bytes || next - last > TOKMAP_I_MAX_META_STRING)
            return "the strings of a column are out of order";
        last = next;
    }
    k->last_offset = last;
    return NULL;
}

/* What a document without a value has instead of one. */
static bool is_empty(const column_check *k, uint32_t i)
{
    const uint32_t width = k->c->type == TOKMAP_I_META_DICTIONARY ? k->c->code_bytes : 8;
    if (k->c->type == TOKMAP_I_META_STRING)
        return load_le64(k->offsets + 8 * (size_t)i) == load_le64(k->offsets + 8 * (size_t)(i + 1));
    return is_zero(k->values + (size_t)i * width, width);
}

static const char *check_run(column_check *k, uint32_t n_documents)
{
    const bool codes = k->c->type == TOKMAP_I_META_DICTIONARY;
    for (uint32_t i = 0; i < n_documents; i++) {
        const bool valid = !k->c->has[TOKMAP_I_META_VALIDITY] || (k->validity[i / 8] >> i % 8 & 1);
        k->n_valid += valid;
        if (!valid && !is_empty(k, i))
            return "a document without a value has one";
        const uint32_t code = !codes                  ? 0
                              : k->c->code_bytes == 1 ? k->values[i]
                                                      : load_le16(k->values + 2 * (size_t)i);
        if (codes && code >= k->c->n_strings)
            return "a code of a column has no string";
    }
    if (k->c->has[TOKMAP_I_META_VALIDITY] && n_documents % 8 != 0 &&
        k->validity[n_documents / 8] >> n_documents % 8 != 0)
        return "there are bits after the last document";
    return NULL;
}

static tokmap_status read_run(column_check *k, uint64_t first, uint32_t n, tokmap_error *err)
{
    const tokmap_i_meta_column *c = k->c;
    const uint32_t width = c->type == TOKMAP_I_META_DICTIONARY ? c->code_bytes : 8;
    tokmap_status status = TOKMAP_OK;
    if (c->has[TOKMAP_I_META_VALIDITY])
        status = read_entries(k, (entries){TOKMAP_I_META_VALIDITY, first / 8, (n + 7) / 8, 1},
                              k->validity, err);
    if (!status && c->has[TOKMAP_I_META_VALUES])
        status = read_entries(k, (entries){TOKMAP_I_META_VALUES, first, n, width}, k->values, err);
    if (!status && c->type == TOKMAP_I_META_STRING)
        status =
            read_entries(k, (entries){TOKMAP_I_META_OFFSETS, first, n + 1, 8}, k->offsets, err);
    return status;
}

static tokmap_status check_column(column_check *k, tokmap_error *err)
{
    const tokmap_i_meta_column *c = k->c;
    const uint64_t n_documents = c->type == TOKMAP_I_META_NULL ? 0 : k->meta->n_documents;
    const uint64_t n_strings = c->type == TOKMAP_I_META_DICTIONARY ? c->n_strings : 0;
    tokmap_status status = TOKMAP_OK;
    const char *problem = NULL;
    for (uint64_t first = 0; !status && !problem && first < n_documents; first += RUN_DOCUMENTS) {
        const uint32_t n = (uint32_t)MIN(n_documents - first, RUN_DOCUMENTS);
        status = read_run(k, first, n, err);
        if (!status && c->type == TOKMAP_I_META_STRING)
            problem = check_offsets(k, n);
        if (!status && !problem)
            problem = check_run(k, n);
    }
    for (uint64_t first = 0; !status && !problem && first < n_strings; first += RUN_DOCUMENTS) {
        const uint32_t n = (uint32_t)MIN(n_strings - first, RUN_DOCUMENTS);
        status =
            read_entries(k, (entries){TOKMAP_I_META_OFFSETS, first, n + 1, 8}, k->offsets, err);
        problem = status ? NULL : check_offsets(k, n);
    }
    if (!problem && n_documents > 0 && k->n_valid != n_documents - c->n_nulls)
        problem = "the number of documents with a value is wrong";
    if (!problem && k->last_offset != c->text_bytes)
        problem = "the last string does not end with the text";
    return status || !problem ? status : fail_column(k, problem, err);
}

/* The zeros before each part. */
static tokmap_status check_gaps(column_check *k, uint64_t *end, tokmap_error *err)
{
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++) {
        uint8_t gap[TOKMAP_I_META_ALIGNMENT];
        if (!k->c->has[part])
            continue;
        const size_t n_bytes = (size_t)(k->c->at[part] - *end);
        const tokmap_i_named_file file = {k->r->fd, k->r->ds->index_path};
        const tokmap_status status =
            tokmap_i_read_exactly(file, k->section_offset + *end, n_bytes, gap, err);
        if (status)
            return status;
        if (!is_zero(gap, n_bytes))
            return fail_column(k, "a byte between its parts is not zero", err);
        *end = k->c->at[part] + k->c->n_bytes[part];
    }
    return TOKMAP_OK;
}

tokmap_status tokmap_i_verify_meta(tokmap_i_index_reader *r, tokmap_error *err)
{
    const tokmap_i_meta *meta = r->ds->meta;
    uint64_t end = meta->directory_bytes;
    tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; !status && i < meta->n_columns; i++) {
        column_check k = {
            .r = r,
            .meta = meta,
            .c = &meta->columns[i],
            .section_offset = tokmap_i_section_find(&r->ds->header, TOKMAP_I_META)->offset,
            .validity = r->buffer,
            .values = r->buffer + VALIDITY_BYTES,
            .offsets = r->buffer + VALIDITY_BYTES + 8 * (size_t)RUN_DOCUMENTS,
        };
        status = check_gaps(&k, &end, err);
        if (!status)
            status = check_column(&k, err);
    }
    return status;
}
