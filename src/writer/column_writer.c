/* SPDX-License-Identifier: Apache-2.0 */
/* column_writer.c - writes the file of a late column.
 *
 * Values wait in a file that has lost its name: for each document a record of its type, and 8 bytes
 * that are the number, or the place and size of the string; then the strings, as they came. A
 * document without a value has a record of zeros, which is null. */
#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/options.h"
#include "dataset/side_file.h"
#include "dataset/store.h"
#include "dataset/token_files.h"
#include "format/column_file.h"
#include "tokmap_writer.h"
#include "writer/column_parts.h"
#include "writer/value_types.h"

enum {
    RECORD_BYTES = 9,
    RUN_RECORDS = 1 << 16,
    BUFFER_BYTES = 1 << 20,
    SIZE_BITS = 17,   /* of the size of a string, at most TOKMAP_I_MAX_META_STRING */
    LONE_BYTES = 4096 /* read for a string that does not follow the one before */
};
_Static_assert(TOKMAP_I_MAX_META_STRING < 1 << SIZE_BITS, "sizes of strings");

struct tokmap_column_writer {
    const tokmap_dataset *ds;
    tokmap_i_column_header header;
    char name[TOKMAP_I_COLUMN_NAME_MAX + 1];
    tokmap_i_side_file file;
    tokmap_i_named_file waiting; /* the file of the values */
    tokmap_error failure;        /* the first one */
    bool finished;

    tokmap_i_meta_state types;
    uint64_t n_values;   /* values that are not null */
    int64_t least, most; /* of the integers */
    bool is_single;      /* every number is a float of 32 bits */

    uint8_t *run; /* RUN_RECORDS: records that are not written yet, or were read */
    uint64_t run_first;
    uint32_t n_run;
    uint64_t put_end;    /* no document from here on has been given a value */
    tokmap_i_bytes text; /* strings that are not written yet, or were read */
    uint64_t text_at;    /* where `text` begins among the bytes of all strings */

    uint64_t row; /* the document whose value is read next */
    uint8_t *out; /* BUFFER_BYTES that are not written yet */
    size_t n_out;
    uint64_t written;
    tokmap_i_hasher *hasher; /* of the part */
};

/* ---- Waiting values ---- */

static tokmap_status write_waiting(tokmap_column_writer *w, const void *data, size_t n_bytes,
                                   uint64_t at, tokmap_error *err)
{
    return CHECK_IO(err, tokmap_i_file_write(w->waiting.fd, data, n_bytes, at), "%s: cannot write",
                    w->waiting.name);
}

static uint64_t text_begin(const tokmap_column_writer *w)
{
    return RECORD_BYTES * w->header.n_documents;
}

static tokmap_status flush_run(tokmap_column_writer *w, tokmap_error *err)
{
    const tokmap_status status =
        write_waiting(w, w->run, (size_t)w->n_run * RECORD_BYTES, w->run_first * RECORD_BYTES, err);
    w->run_first += w->n_run;
    w->n_run = 0;
    return status;
}

static tokmap_status flush_text(tokmap_column_writer *w, tokmap_error *err)
{
    const tokmap_status status =
        w->text.n_bytes == 0
            ? TOKMAP_OK
            : write_waiting(w, w->text.data, w->text.n_bytes, text_begin(w) + w->text_at, err);
    w->text_at += w->text.n_bytes;
    w->text.n_bytes = 0;
    return status;
}

/* Remembers a string. Returns what its record has. */
static tokmap_status keep_text(tokmap_column_writer *w, const tokmap_value *v, uint64_t *bits,
                               tokmap_error *err)
{
    *bits = (w->text_at + w->text.n_bytes) << SIZE_BITS | v->text_bytes;
    if ((w->text_at + w->text.n_bytes) >> (64 - SIZE_BITS) != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: the values are too large", w->file.path);
    if (!tokmap_i_bytes_append(&w->text, v->text, v->text_bytes))
        return FAIL_MEMORY(err);
    return w->text.n_bytes < BUFFER_BYTES ? TOKMAP_OK : flush_text(w, err);
}

static void measure(tokmap_column_writer *w, const tokmap_value *v)
{
    const double real = v->type == TOKMAP_VALUE_INT64 ? (double)v->integer : v->real;
    w->is_single &= (double)(float)real == real || real != real;
    if (v->type == TOKMAP_VALUE_INT64) {
        w->least = MIN(w->least, v->integer);
        w->most = MAX(w->most, v->integer);
    }
}

/* Makes the next record of the run that of a document. A gap behind all values so far is filled
 * with records of zeros, so that a few values in order take few writes. */
static tokmap_status begin_record(tokmap_column_writer *w, uint64_t document, tokmap_error *err)
{
    const uint64_t next = w->run_first + w->n_run;
    tokmap_status status = TOKMAP_OK;
    if (w->n_run > 0 && next == w->put_end && document > next &&
        document - w->run_first < RUN_RECORDS) {
        memset(w->run + (size_t)w->n_run * RECORD_BYTES, 0, (document - next) * RECORD_BYTES);
        w->n_run = (uint32_t)(document - w->run_first);
    } else if (document != next || w->n_run == RUN_RECORDS)
        status = flush_run(w, err);
    if (w->n_run == 0)
        w->run_first = document;
    w->put_end = MAX(w->put_end, document + 1);
    return status;
}

static tokmap_status put_value(tokmap_column_writer *w, uint64_t document, const tokmap_value *v,
                               tokmap_error *err)
{
    const tokmap_i_value_place at = {w->file.path, w->name, document};
    tokmap_status status = tokmap_i_meta_state_take(&w->types, &at, v, err);
    uint64_t bits = (uint64_t)v->integer;
    if (!status)
        status = begin_record(w, document, err);
    if (!status && v->type == TOKMAP_VALUE_STRING)
        status = keep_text(w, v, &bits, err);
    if (status)
        return status;
    if (v->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&bits, &v->real, sizeof bits);
    if (v->type == TOKMAP_VALUE_INT64 || v->type == TOKMAP_VALUE_FLOAT64)
        measure(w, v);
    uint8_t *record = w->run + (size_t)w->n_run++ * RECORD_BYTES;
    record[0] = (uint8_t)v->type;
    le_put64(record + 1, v->type == TOKMAP_VALUE_NULL ? 0 : bits);
    w->n_values += v->type != TOKMAP_VALUE_NULL;
    return TOKMAP_OK;
}

/* ---- Reading them ---- */

static void rewind_values(void *context)
{
    tokmap_column_writer *w = context;
    w->row = w->run_first = 0;
    w->n_run = 0;
}

static tokmap_status read_text(tokmap_column_writer *w, uint64_t bits, tokmap_value *out,
                               tokmap_error *err)
{
    const uint64_t at = bits >> SIZE_BITS, n_text = w->types.text_bytes;
    const size_t n_bytes = bits & ((1u << SIZE_BITS) - 1);
    const bool follows = at >= w->text_at && at <= w->text_at + w->text.n_bytes;
    if (at > n_text || n_bytes > n_text - at)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: changed while it was read", w->waiting.name);
    if (!follows || n_bytes > w->text_at + w->text.n_bytes - at) {
        const uint64_t n_wanted = MAX(n_bytes, follows ? BUFFER_BYTES : LONE_BYTES);
        w->text.n_bytes = 0;
        w->text_at = at;
        uint8_t *p = tokmap_i_bytes_add(&w->text, (size_t)MIN(n_wanted, n_text - at));
        if (!p)
            return FAIL_MEMORY(err);
        const tokmap_status status =
            tokmap_i_read_exactly(w->waiting, text_begin(w) + at, w->text.n_bytes, p, err);
        if (status)
            return status;
    }
    out->text = (const char *)w->text.data + (at - w->text_at);
    out->text_bytes = n_bytes;
    return TOKMAP_OK;
}

static tokmap_status next_value(void *context, tokmap_value *out, tokmap_error *err)
{
    tokmap_column_writer *w = context;
    if (w->row == w->header.n_documents)
        return TOKMAP_END;
    if (w->row == w->run_first + w->n_run) {
        w->run_first = w->row;
        w->n_run = (uint32_t)MIN(w->header.n_documents - w->row, RUN_RECORDS);
        const tokmap_status status = tokmap_i_read_exactly(
            w->waiting, w->run_first * RECORD_BYTES, (size_t)w->n_run * RECORD_BYTES, w->run, err);
        if (status)
            return status;
    }
    const uint8_t *record = w->run + (w->row++ - w->run_first) * RECORD_BYTES;
    const uint64_t bits = le_get64(record + 1);
    *out = (tokmap_value){.type = (tokmap_value_type)record[0]};
    if (out->type == TOKMAP_VALUE_STRING)
        return read_text(w, bits, out, err);
    if (out->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&out->real, &bits, sizeof bits);
    else
        out->integer = (int64_t)bits;
    return TOKMAP_OK;
}

/* ---- The file ---- */

static tokmap_status flush_out(tokmap_column_writer *w, tokmap_error *err)
{
    const tokmap_status status =
        CHECK_IO(err, tokmap_i_file_write(w->file.fd, w->out, w->n_out, w->written),
                 "%s: cannot write", w->file.partial);
    tokmap_i_hasher_add(w->hasher, w->out, w->n_out);
    w->written += w->n_out;
    w->n_out = 0;
    return status;
}

static tokmap_status put_bytes(void *context, const void *data, size_t n_bytes, tokmap_error *err)
{
    tokmap_column_writer *w = context;
    tokmap_status status = TOKMAP_OK;
    for (size_t done = 0; !status && done < n_bytes;) {
        const size_t n = MIN(n_bytes - done, BUFFER_BYTES - w->n_out);
        memcpy(w->out + w->n_out, (const uint8_t *)data + done, n);
        w->n_out += n;
        done += n;
        if (w->n_out == BUFFER_BYTES)
            status = flush_out(w, err);
    }
    return status;
}

/* Returns the smallest size of numbers that holds them all. */
static uint32_t choose_number_bytes(const tokmap_column_writer *w)
{
    if (w->types.type == TOKMAP_VALUE_FLOAT64)
        return w->is_single ? 4 : 8;
    if (w->types.type != TOKMAP_VALUE_INT64)
        return 0;
    uint32_t n_bytes = 1;
    while (n_bytes < 8 && (w->least < -((int64_t)1 << (8 * n_bytes - 1)) ||
                           w->most >= (int64_t)1 << (8 * n_bytes - 1)))
        n_bytes *= 2;
    return n_bytes;
}

static tokmap_status write_parts(tokmap_column_writer *w, const tokmap_i_values *values,
                                 tokmap_error *err)
{
    tokmap_i_column_header *h = &w->header;
    tokmap_i_column_parts parts = {.values = *values,
                                   .column = &h->column,
                                   .context = w,
                                   .put = put_bytes,
                                   .at = TOKMAP_I_SIDE_HEADER_BYTES};
    tokmap_status status = TOKMAP_OK;
    for (int part = 0; !status && part < TOKMAP_I_META_PARTS; part++) {
        if (!h->column.has[part])
            continue;
        tokmap_i_hasher_reset(w->hasher);
        status = tokmap_i_column_parts_put(&parts, (tokmap_i_meta_part)part, err);
        if (!status)
            status =
                tokmap_i_column_parts_pad(&parts, tokmap_i_column_part_end(&h->column, part), err);
        if (!status)
            status = flush_out(w, err);
        h->checksums[part] = tokmap_i_hasher_get(w->hasher);
    }
    tokmap_i_column_parts_end(&parts);
    return status;
}

static tokmap_status write_column(tokmap_column_writer *w, tokmap_error *err)
{
    tokmap_i_column_header *h = &w->header;
    uint8_t bytes[TOKMAP_I_SIDE_HEADER_BYTES];
    const tokmap_i_values values = {w->waiting.name, h->n_documents, w, rewind_values, next_value};
    const bool is_string = w->types.type == TOKMAP_VALUE_STRING;
    h->column = (tokmap_i_meta_column){
        .type = (uint32_t)w->types.type,
        .number_bytes = choose_number_bytes(w),
        .n_nulls = h->n_documents - w->n_values,
        .n_strings = is_string ? h->n_documents : 0,
        .text_bytes = w->types.text_bytes,
    };
    tokmap_status status = flush_run(w, err);
    if (!status)
        status = flush_text(w, err);
    if (!status && is_string)
        status = tokmap_i_choose_dictionary(&h->column, &values, err);
    if (!status && !tokmap_i_column_place(h))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: the values are too large", w->file.path);
    w->written = TOKMAP_I_SIDE_HEADER_BYTES;
    if (!status)
        status = write_parts(w, &values, err);
    tokmap_i_side_header_encode(&tokmap_i_column_kind, h, bytes);
    if (!status)
        status = CHECK_IO(err, tokmap_i_file_write(w->file.fd, bytes, sizeof bytes, 0),
                          "%s: cannot write", w->file.partial);
    return status ? status : tokmap_i_side_file_finish(&w->file, err);
}

/* ---- Calls ---- */

/* Opens both files. */
static tokmap_status open_files(tokmap_column_writer *w, const char *path, bool replace,
                                tokmap_error *err)
{
    if (!replace && tokmap_i_file_exists(path))
        return FAIL_REASON(err, TOKMAP_ERR_EXISTS, TOKMAP_REASON_REPLACEABLE, "%s: exists", path);
    tokmap_status status = tokmap_i_side_file_open(&w->file, &tokmap_i_column_kind, path, err);
    char *name = NULL;
    if (status)
        return status;
    if (asprintf(&name, "%s.values.partial", path) < 0)
        return FAIL_MEMORY(err);
    w->waiting.name = name;
    int error = tokmap_i_file_create(name, &w->waiting.fd);
    if (!error)
        error = tokmap_i_file_remove(name);
    if (!error)
        error = tokmap_i_file_resize(w->waiting.fd, text_begin(w));
    return CHECK_IO(err, error, "%s: cannot create", name);
}

static tokmap_status open_writer(tokmap_column_writer *w, const tokmap_column_options *o,
                                 tokmap_error *err)
{
    const tokmap_i_header *h = &w->ds->header;
    uint32_t index;
    if (!o->name || !tokmap_i_column_name_valid(o->name))
        return FAIL(
            err, TOKMAP_ERR_ARGUMENT,
            "'%.100s' is not the name of a late column: 1 to 64 of the letters A-Z and a-z, "
            "digits, _ and -",
            o->name ? o->name : "");
    strcpy(w->name, o->name);
    if (h->n_documents == 0 && h->n_tokens > 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: the document boundaries are not known",
                    w->ds->index_path);
    if (tokmap_i_find_column(w->ds, o->name, &index))
        return FAIL(err, TOKMAP_ERR_EXISTS, "%s: has a column '%s' of its own: choose another name",
                    w->ds->index_path, o->name);
    w->run = malloc((size_t)RUN_RECORDS * RECORD_BYTES);
    w->out = malloc(BUFFER_BYTES);
    w->hasher = tokmap_i_hasher_open();
    char *path = tokmap_i_side_path(w->ds, "%s.tmc", o->name);
    const tokmap_status status = w->run && w->out && w->hasher && path
                                     ? open_files(w, path, o->replace, err)
                                     : FAIL_MEMORY(err);
    free(path);
    return status;
}

tokmap_status tokmap_column_writer_open(tokmap_column_writer **out, const tokmap_dataset *ds,
                                        const tokmap_column_options *options, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_column_options, reserved)};
    tokmap_column_options o;
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL_NULL(err);
    *out = NULL;
    if (!ds)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_take_options(&o, options, &kind, err);
    if (!status)
        status = tokmap_i_need_files(ds, err);
    if (!status)
        status = tokmap_i_check_flag("replace", o.replace, err);
    if (!status && o.reserved != 0)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "reserved is %d: must be 0", (int)o.reserved);
    if (status)
        return status;
    tokmap_column_writer *w = calloc(1, sizeof *w);
    if (!w)
        return FAIL_MEMORY(err);
    w->ds = ds;
    w->file.fd = w->waiting.fd = -1;
    w->is_single = true;
    w->header.n_documents = ds->header.n_documents;
    memcpy(w->header.dataset_id, ds->header.dataset_id, sizeof w->header.dataset_id);
    status = open_writer(w, &o, err);
    if (status)
        tokmap_column_writer_close(w);
    else
        *out = w;
    return status;
}

/* Begins a call: repeats an earlier failure. */
static tokmap_status enter(tokmap_column_writer *w, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (w->finished)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: is finished", w->file.path);
    if (w->failure.status && err)
        *err = w->failure;
    return w->failure.status;
}

static tokmap_status leave(tokmap_column_writer *w, tokmap_status status, tokmap_error *err)
{
    if (status && err)
        *err = w->failure;
    return status;
}

tokmap_status tokmap_column_writer_put(tokmap_column_writer *w, uint64_t first,
                                       const tokmap_value *values, uint64_t n_values,
                                       tokmap_error *err)
{
    if (!w || (!values && n_values > 0))
        return FAIL_NULL(err);
    tokmap_status status = enter(w, err);
    if (status)
        return status;
    if (first > w->header.n_documents || n_values > w->header.n_documents - first)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                      "%s: values for %" PRIu64 " documents from document %" PRIu64
                      " on, but there are %" PRIu64,
                      w->file.path, n_values, first, w->header.n_documents);
    for (uint64_t i = 0; !status && i < n_values; i++)
        status = put_value(w, first + i, &values[i], &w->failure);
    return leave(w, status, err);
}

tokmap_status tokmap_column_writer_finish(tokmap_column_writer *w, tokmap_error *err)
{
    if (!w)
        return FAIL_NULL(err);
    tokmap_status status = enter(w, err);
    if (status)
        return status;
    status = write_column(w, &w->failure);
    w->finished = !status;
    return leave(w, status, err);
}

void tokmap_column_writer_close(tokmap_column_writer *w)
{
    if (!w)
        return;
    tokmap_i_side_file_close(&w->file);
    tokmap_i_file_close(w->waiting.fd);
    free((char *)w->waiting.name);
    tokmap_i_hasher_close(w->hasher);
    free(w->run);
    free(w->out);
    free(w->text.data);
    free(w);
}
