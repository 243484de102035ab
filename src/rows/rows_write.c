/* SPDX-License-Identifier: Apache-2.0 */
/* rows_write.c - tokmap_rows_write: writes a rows file that is complete or absent. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "rows/rows.h"
#include "system/platform.h"

#define PARTIAL ".partial"

/* Makes the rows in the open partial file, and gives it its name. */
static tokmap_status write_rows(tokmap_i_rows *r, const tokmap_i_rows_kind *kind,
                                const tokmap_rows_options *o, const char *path, tokmap_error *err)
{
    tokmap_status status =
        CHECK_IO(err, tokmap_i_file_resize(r->fd, 0), "%s: cannot write", r->path);
    if (!status)
        status = tokmap_i_rows_make(r, kind, o, err);
    if (!status)
        status = CHECK_IO(err, tokmap_i_file_sync(r->fd), "%s: cannot write", r->path);
    if (!status && tokmap_i_file_exists(path))
        status = CHECK_IO(err, tokmap_i_file_remove(path), "%s: cannot replace", path);
    if (!status)
        status = CHECK_IO(err, tokmap_i_file_rename(r->path, path), "%s: cannot be named", path);
    if (!status)
        return CHECK_IO(err, tokmap_i_folder_sync(path), "%s: cannot be made durable", path);
    tokmap_i_file_remove(r->path);
    return status;
}

/* Whether the file may be replaced: it does not exist, or is a rows file. */
static bool may_replace(const char *path)
{
    uint8_t bytes[sizeof tokmap_i_rows_magic];
    size_t n_read = 0;
    int fd;
    if (tokmap_i_file_open(path, &fd))
        return !tokmap_i_file_exists(path);
    const int error = tokmap_i_file_read(fd, bytes, sizeof bytes, 0, &n_read);
    tokmap_i_file_close(fd);
    return !error && n_read == sizeof bytes && memcmp(bytes, tokmap_i_rows_magic, n_read) == 0;
}

static tokmap_status open_and_write(const tokmap_dataset *ds, const tokmap_i_rows_kind *kind,
                                    const tokmap_rows_options *o, const char *path,
                                    tokmap_i_rows *r, tokmap_error *err)
{
    const size_t n_bytes = strlen(path) + sizeof PARTIAL;
    *r = (tokmap_i_rows){
        .ds = ds, .fd = -1, .path = malloc(n_bytes), .end_document = ds->header.n_documents};
    if (!r->path)
        return FAIL_MEMORY(err);
    if (!may_replace(path))
        return FAIL(err, TOKMAP_ERR_EXISTS,
                    "%s: exists and is not a rows file: remove it, or choose another path", path);
    snprintf(r->path, n_bytes, "%s" PARTIAL, path);
    const char *text;
    int error = tokmap_i_file_lock(r->path, &r->fd);
    if (error == EWOULDBLOCK)
        return FAIL(err, TOKMAP_ERR_LOCKED, "%s: another process is writing this file", path);
    if (error)
        return FAIL_IO(err, error, "%s: %s", r->path, tokmap_i_file_lock_text(error));
    error = tokmap_i_file_probe(path, &text);
    if (error) {
        tokmap_i_file_remove(r->path);
        return FAIL_IO(err, error, "%s: %s", path, text);
    }
    return write_rows(r, kind, o, path, err);
}

tokmap_status tokmap_rows_write(const tokmap_dataset *ds, const tokmap_rows_options *options,
                                tokmap_rows_info *info, tokmap_error *err)
{
    static const tokmap_i_struct_kind options_kind = {STRUCT_KIND(tokmap_rows_options, path)};
    static const tokmap_i_struct_kind info_kind = {STRUCT_KIND(tokmap_rows_info, n_bytes)};
    tokmap_rows_options o;
    tokmap_i_rows r;
    tokmap_i_error_clear(err);
    if (!ds)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_take_options(&o, options, &options_kind, err);
    if (!status && info)
        status = tokmap_i_check_struct(info, &info_kind, err);
    if (status)
        return status;
    const tokmap_i_rows_kind kind = {o.sequence_length, MAX(o.align, 1), o.max_documents,
                                     o.whole_documents};
    status = tokmap_i_rows_check(&kind, err);
    if (!status && o.path && !*o.path)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "path is empty: must be NULL, or name a file");
    if (status)
        return status;
    char *beside = o.path ? NULL : tokmap_i_rows_path(ds, &kind);
    if (!o.path && !beside)
        return FAIL_MEMORY(err);
    status = open_and_write(ds, &kind, &o, o.path ? o.path : beside, &r, err);
    free(beside);
    const tokmap_rows_info full = {.n_rows = r.header.n_rows,
                                   .n_pieces = r.header.n_pieces,
                                   .n_labels = r.header.n_labels,
                                   .n_bytes = r.header.n_bytes};
    tokmap_i_rows_close(&r);
    return status || !info ? status : tokmap_i_give_struct(info, &full, &info_kind, err);
}
