/* SPDX-License-Identifier: Apache-2.0 */
/* copy_parts.c - a flat dataset from a joined one, by many processes: each copies a share of the
 * tokens, and the last one writes the index and gives the names. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/status.h"
#include "writer/writer.h"
#include "writer/copy.h"

#define MOST_PARTS (UINT64_C(1) << 32)

static tokmap_status take_options(tokmap_copy_options *o, const tokmap_copy_options *options,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_copy_options, replace)};
    *o = (tokmap_copy_options){0};
    tokmap_status status = options ? tokmap_i_take_options(o, options, &kind, err) : TOKMAP_OK;
    if (!status)
        status = tokmap_i_check_flag("replace", o->replace, err);
    o->n_parts = MAX(o->n_parts, 1);
    if (!status && (o->part >= o->n_parts || o->n_parts > MOST_PARTS))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "part is %" PRIu64 " of %" PRIu64 " parts: must be below, at most 2^32",
                      o->part, o->n_parts);
    return status;
}

/* ---- A part ---- */

/* The first of several processes removes what was left of other writers, with the lock for itself;
 * if it must not copy, it removes the file of the lock too. Then it shares the lock. In between
 * another process may have it for itself, so what is copied is compared in any case. */
static tokmap_status share_lock(tokmap_i_names *n, const tokmap_dataset *ds, int *fd,
                                tokmap_error *err)
{
    uint8_t mine[24], theirs[24]; /* what is copied: dataset_id, u64 token_bytes */
    size_t n_read = 0;
    memcpy(mine, ds->header.dataset_id, 16);
    store_le64(mine + 16, ds->header.token_bytes);
    tokmap_status status = tokmap_i_names_lock(n, fd, err);
    if (!status && n->has_journal)
        status = FAIL(err, TOKMAP_ERR_EXISTS,
                      "%s: is the journal of an unfinished run that can be "
                      "resumed",
                      n->journal);
    if (!status)
        status = tokmap_i_names_claim(n, err);
    int error = status ? 0 : tokmap_i_file_write(*fd, mine, sizeof mine, 0);
    if (error)
        return FAIL_IO(err, error, "%s: cannot write", n->index_partial);
    if (status && status != TOKMAP_ERR_LOCKED)
        return status;
    n->owns_partials = false; /* they stay, for the other parts */
    tokmap_i_error_clear(err);
    error = tokmap_i_file_lock_shared(n->index_partial, fd);
    if (error == EWOULDBLOCK)
        return FAIL(err, TOKMAP_ERR_LOCKED, "%s: another writer has this output open",
                    n->index_partial);
    if (error)
        return FAIL_IO(err, error, "%s: cannot open", n->index_partial);
    error = tokmap_i_file_read(*fd, theirs, sizeof theirs, 0, &n_read);
    if (error)
        return FAIL_IO(err, error, "%s: cannot read", n->index_partial);
    if (n_read == sizeof theirs && memcmp(theirs, mine, sizeof mine) == 0)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_LOCKED,
                "%s: another dataset is being copied to this output; wait for it, or choose "
                "another name",
                n->index_partial);
}

/* A second name would be another file that we would write to. */
static tokmap_status open_tokens(const tokmap_i_names *n, int *fd, tokmap_error *err)
{
    tokmap_i_file_stat stat = {0};
    int error = tokmap_i_file_open_or_create(n->token_partial, fd);
    if (!error)
        error = tokmap_i_file_stat_fd(*fd, &stat);
    if (!error && stat.n_names <= 1)
        return TOKMAP_OK;
    tokmap_i_file_close(*fd);
    *fd = -1;
    if (error)
        return FAIL_IO(err, error, "%s: cannot create", n->token_partial);
    return FAIL(err, TOKMAP_ERR_EXISTS, "%s: has a second name (a hard link); remove it",
                n->token_partial);
}

tokmap_status tokmap_writer_copy_part(const tokmap_dataset *ds, const char *prefix,
                                      const tokmap_copy_options *options, tokmap_error *err)
{
    tokmap_copy_options o;
    tokmap_i_names names = {.output = TOKMAP_I_OUTPUT_NEW, .keep_tokens = true};
    tokmap_i_copy_job job = {.index_fd = -1};
    int lock_fd = -1, fd = -1;
    tokmap_i_error_clear(err);
    if (!ds || !prefix)
        return FAIL_NULL(err);
    tokmap_status status = take_options(&o, options, err);
    if (status)
        return status;
    names.replace = o.replace != 0;
    status = tokmap_i_names_open(&names, prefix, tokmap_i_prefix_bytes(prefix), ".bin", err);
    if (!status)
        status = share_lock(&names, ds, &lock_fd, err);
    if (!status)
        status = open_tokens(&names, &fd, err);
    if (!status)
        status = tokmap_i_copy_open(&job, ds, (tokmap_i_named_file){fd, names.token_partial}, err);
    if (!status)
        status = tokmap_i_copy_units(&job, job.n_units * o.part / o.n_parts,
                                     job.n_units * (o.part + 1) / o.n_parts, err);
    tokmap_i_copy_close(&job);
    tokmap_i_file_close(fd);
    tokmap_i_names_close(&names);
    tokmap_i_file_close(lock_fd);
    return status;
}

/* ---- The end ---- */

static tokmap_status take_dataset(tokmap_writer *w, const tokmap_dataset *ds, tokmap_error *err)
{
    const tokmap_i_header *h = &ds->header;
    tokmap_i_append a = {.w = w, .ds = ds};
    tokmap_i_copy_job job = {.index_fd = -1};
    size_t n_bytes;
    const char *json = tokmap_dataset_metadata(ds, &n_bytes);
    tokmap_status status = tokmap_i_append_open(&a, err);
    if (!status)
        status = open_tokens(&w->names, &w->token_fd, err);
    if (!status)
        status = tokmap_i_copy_open(
            &job, ds, (tokmap_i_named_file){w->token_fd, w->names.token_partial}, err);
    if (!status)
        status = tokmap_i_copy_units(&job, 0, job.n_units, err);
    if (!status)
        status = tokmap_i_copy_collect(&job, w->index, &w->header.tokens_hash, err);
    if (!status &&
        memcmp(w->header.tokens_hash.crc, h->tokens_hash.crc, sizeof h->tokens_hash.crc) != 0)
        status = tokmap_i_fail_tokens_hash(ds, err);
    w->n_tokens = h->n_tokens;
    w->header.largest_id = h->largest_id;
    w->token_tail = tokmap_i_copy_file_bytes(&job) - job.n_bytes;
    tokmap_i_copy_close(&job);
    if (!status)
        status = tokmap_i_append_index(&a, err);
    tokmap_i_append_close(&a);
    return status ? status : tokmap_writer_set_metadata(w, json, n_bytes, err);
}

tokmap_status tokmap_writer_copy_finish(const tokmap_dataset *ds, const char *prefix,
                                        const tokmap_copy_options *options, tokmap_error *err)
{
    tokmap_copy_options o;
    tokmap_i_error_clear(err);
    if (!ds || !prefix)
        return FAIL_NULL(err);
    tokmap_status status = take_options(&o, options, err);
    tokmap_writer *w = status ? NULL : tokmap_i_writer_new();
    if (status || !w)
        return status ? status : FAIL_MEMORY(err);
    w->names.replace = o.replace != 0;
    w->names.keep_tokens = true;
    w->header.vocab_size = ds->header.vocab_size;
    w->header.token_bytes = ds->header.token_bytes;
    w->header.eod_id = ds->header.eod_id;
    status = tokmap_i_writer_begin(w, prefix, tokmap_i_prefix_bytes(prefix), ".bin", err);
    if (!status)
        status = take_dataset(w, ds, err);
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    return status;
}
